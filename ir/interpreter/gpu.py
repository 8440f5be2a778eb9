"""Kernel launches: blocks one after the other, the threads of a block in lockstep.

A value that differs between threads is a `Lanes`, an array (or list, for buffers) with an entry for each thread; all
others are the same for the whole block and are computed once.  Where threads take different ways, both are run, each
with the mask of the threads that take it.  So a barrier is reached by all threads at once, or it is an error.

Threads are numbered as devices do: x runs fastest, then y, then z.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from ..definition import ELEMENTWISE, PURE, TERMINATOR
from ..diagnostics import Error
from ..dialects.gpu import DIMENSIONS, WORKGROUP
from ..dialects.memref import Load, Store
from ..numeric import dtype
from ..operations import Operation, Region
from ..types import MemRefType, Type, VectorType
from ..values import Value
from .machine import Env, Interpreter, Results, handler
from .memory import failed, fault

if TYPE_CHECKING:
    from ..arrays import Array
    from ..dialects import gpu, scf


class Lanes:
    """A value of each thread: an array whose first axis counts threads, or a list of buffers."""

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values


class LaneEnv(dict[Value, Any]):
    """The environment as one thread sees it; what is bound in it stays in it."""

    def __init__(self, env: Env, lane: int) -> None:
        self.env = env
        self.lane = lane

    def __missing__(self, value: Value) -> Any:
        found = self.env[value]
        return found.values[self.lane] if isinstance(found, Lanes) else found


@handler("gpu.module")
def module(machine: Interpreter, op: gpu.Module, env: Env) -> None:
    """Nothing: its kernels run when they are launched."""


@handler("gpu.barrier", "gpu.shuffle", "gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim")
def outside(machine: Interpreter, op: Operation, env: Env) -> None:
    """These need a launch around them."""
    raise fault(op, "stands outside of a kernel's own control flow, where there are no threads")


@handler("gpu.launch_func")
def launch_func(machine: Interpreter, op: gpu.LaunchFunc, env: Env) -> None:
    """All blocks, in order or in one that the machine's seed shuffles."""
    kernel = op.find_kernel(machine.module)
    if kernel is None:
        raise fault(op, f"names {op.kernel}, which is not a kernel of the module")
    grid, block = ([int(env[v]) for v in sizes] for sizes in (op.grid, op.block))
    if any(n < 0 for n in grid) or any(n < 1 for n in block):
        raise fault(op, f"launches a grid of {grid} blocks of {block} threads")
    for what, known, given in (("block", kernel.known_block_size, block), ("grid", kernel.known_grid_size, grid)):
        if known is not None and list(known) != given:
            raise fault(op, f"launches a {what} of {given}, but @{kernel.sym_name} declares {list(known)}")
    arguments = [env[v] for v in op.arguments]
    if len(arguments) != len(kernel.parameters):
        raise fault(op, f"gives {len(arguments)} arguments to @{kernel.sym_name}, which takes {len(kernel.parameters)}")
    blocks = [(x, y, z) for z, y, x in product(*map(range, reversed(grid)))]
    if machine.seed is not None:
        random.Random(machine.seed).shuffle(blocks)
    for place in blocks:
        Team(machine, grid, block, place).run_kernel(kernel, arguments)


class Team:
    """The threads of one block."""

    def __init__(self, machine: Interpreter, grid: Sequence[int], block: Sequence[int], place: Sequence[int]) -> None:
        import numpy as np

        self.machine = machine
        self.memory = machine.memory
        self.size = block[0] * block[1] * block[2]
        self.groups: list[list[Callable[[], None]]] = []
        """The groups of asynchronous copies that have not arrived."""
        linear = np.arange(self.size)
        ids = (linear % block[0], linear // block[0] % block[1], linear // (block[0] * block[1]))
        self.coordinates: dict[str, Sequence[object]] = {
            "gpu.thread_id": [np.int64(0) if n == 1 else Lanes(i) for n, i in zip(block, ids, strict=True)],
            "gpu.block_id": [np.int64(i) for i in place],
            "gpu.block_dim": [np.int64(n) for n in block],
            "gpu.grid_dim": [np.int64(n) for n in grid],
        }

    def run_kernel(self, kernel: gpu.Func, arguments: Sequence[object]) -> None:
        """Run the kernel; buffers of the block are fresh."""
        import numpy as np

        shared = [self.buffer(a.type) for a in kernel.workgroup]
        private = [Lanes([self.buffer(a.type) for _ in range(self.size)]) for a in kernel.private]
        self.memory.barrier()
        self.run(kernel.body, [*arguments, *shared, *private], {}, np.ones(self.size, bool))
        self.memory.barrier()

    def buffer(self, type: Type) -> Array:
        """Undefined memory of a static memref type."""
        assert isinstance(type, MemRefType)
        return self.memory.allocate(type, type.shape)

    def run(self, region: Region, arguments: Sequence[object], env: Env, mask: Array) -> list[Any]:
        """Run a region for the threads of a mask; the values of its terminator's operands."""
        block = region.block
        env.update(zip(block.arguments, arguments, strict=True))
        for op in block:
            if TERMINATOR in op.traits and not op.regions:
                return [env[v] for v in op.operands]
            try:
                self.execute(op, env, mask)
            except Error:
                raise
            except Exception as error:
                raise failed(op, error) from error
        return []

    def execute(self, op: Operation, env: Env, mask: Array) -> None:
        """Run one op for the threads of a mask and bind its results."""
        found = self.machine.handler(op)  # imports the module that has what the op means, in lockstep or not
        special = LOCKSTEP.get(op.name)
        operands = [env[v] for v in op.operands]
        results: Results
        if special is not None:
            results = special(self, op, env, mask)
        elif not any(isinstance(v, Lanes) for v in operands) and self._is_uniform(op):
            results = found(self.machine, op, env) if found else self.machine.evaluate(op, operands)
        elif _is_elementwise(op):
            plain = [v.values if isinstance(v, Lanes) else v for v in operands]
            results = [Lanes(v) for v in self.machine.evaluate(op, plain)]
        else:
            results = self.each(op, env, mask)
        if results is not None:
            env.update(zip(op.results, results, strict=True))

    def _is_uniform(self, op: Operation) -> bool:
        """Whether the op gives the same to all threads when its operands are the same."""
        if PURE in op.traits:
            return True
        return op.name == "memref.alloca" and getattr(op.results[0].type, "space", None) is WORKGROUP

    def each(self, op: Operation, env: Env, mask: Array) -> list[Lanes]:
        """Run an op for one thread after the other."""
        found = self.machine.handler(op)
        outs = [self.blank(r.type) for r in op.results]
        for lane in range(self.size):
            if not mask[lane]:
                continue
            view = LaneEnv(env, lane)
            with self.memory.acting(lane):
                if found is not None:
                    results = found(self.machine, op, view) or ()
                else:
                    results = self.machine.evaluate(op, [view[v] for v in op.operands])
            for out, value in zip(outs, results, strict=True):
                out[lane] = value
        return [Lanes(out) for out in outs]

    def blank(self, type: Type) -> Any:
        """Room for a value of each thread."""
        import numpy as np

        if isinstance(type, MemRefType):
            return [None] * self.size
        shape = type.shape if isinstance(type, VectorType) else ()
        return np.zeros((self.size, *shape), dtype(type))

    def spread(self, value: object, type: Type) -> Any:
        """A value as an entry for each thread."""
        if isinstance(value, Lanes):
            return value.values
        out = self.blank(type)
        for lane in range(self.size):
            out[lane] = value
        return out

    def merge(self, mask: Array, new: Sequence[object], old: Sequence[object], values: Sequence[Value]) -> list[Lanes]:
        """`new` for the threads of a mask, `old` for the others; `values` tell the types."""
        import numpy as np

        merged: list[Lanes] = []
        for a, b, value in zip(new, old, values, strict=True):
            left, right = self.spread(a, value.type), self.spread(b, value.type)
            if isinstance(value.type, MemRefType):
                merged.append(Lanes([a if m else b for m, a, b in zip(mask, left, right, strict=True)]))
            else:
                merged.append(Lanes(np.where(mask.reshape(-1, *[1] * (left.ndim - 1)), left, right)))
        return merged


def _is_elementwise(op: Operation) -> bool:
    """Whether the op works on arrays of threads as on single values: scalars alone, or vectors alone."""
    if ELEMENTWISE not in op.traits:
        return False
    shapes = {v.type.shape if isinstance(v.type, VectorType) else () for v in (*op.operands, *op.results)}
    return len(shapes) == 1


Lockstep = Callable[[Team, Any, Env, "Array"], Results]
_O = TypeVar("_O", bound=Operation)
LOCKSTEP: dict[str, Lockstep] = {}
"""The ops that treat the threads of a block as a whole."""


def lockstep(
    *names: str,
) -> Callable[[Callable[[Team, _O, Env, Array], Results]], Callable[[Team, _O, Env, Array], Results]]:
    """Register what ops mean for a block."""

    def register(function: Callable[[Team, _O, Env, Array], Results]) -> Callable[[Team, _O, Env, Array], Results]:
        for name in names:
            LOCKSTEP[name] = function
        return function

    return register


@lockstep("gpu.thread_id", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim")
def coordinate(team: Team, op: gpu.Coordinate, env: Env, mask: Array) -> Sequence[object]:
    """The coordinate of each thread along the op's dimension, or the size of a block or the grid."""
    return [team.coordinates[op.name][DIMENSIONS.index(op.dimension)]]


@lockstep("gpu.barrier")
def barrier(team: Team, op: gpu.Barrier, env: Env, mask: Array) -> None:
    """All threads must be here."""
    if not mask.all():
        some = f"{int(mask.sum())} of the {team.size} threads"
        raise fault(op, f"is reached by {some}: it stands in divergent control flow")
    team.memory.barrier()


@lockstep("gpu.shuffle")
def shuffle(team: Team, op: gpu.Shuffle, env: Env, mask: Array) -> Sequence[object]:
    """Values change threads within groups of `width` neighbours; without a partner a thread keeps its own."""
    import numpy as np

    value, offset, width = (team.spread(env[v], v.type) for v in op.operands)
    if (width < 1).any():
        raise fault(op, f"has a width of {int(width.min())}")
    lane = np.arange(team.size)
    first = lane // width * width
    own = lane - first
    partner = {"xor": own ^ offset, "up": own - offset, "down": own + offset, "idx": offset}[op.mode]
    valid = (partner >= 0) & (partner < width) & (first + partner < team.size)
    source = np.where(valid, first + partner, lane)
    if not mask[source[mask]].all():
        raise fault(op, "takes a value from a thread that is not here: it stands in divergent control flow")
    return [Lanes(value[source]), Lanes(valid)]


@lockstep("scf.if")
def if_(team: Team, op: scf.If, env: Env, mask: Array) -> Sequence[object]:
    """Both branches, each for its threads."""
    condition = env[op.condition]
    if not isinstance(condition, Lanes):
        branch = op.then if condition else op.otherwise
        return team.run(branch, [], env, mask) if branch.blocks else []
    results: Sequence[object] = [Lanes(team.blank(r.type)) for r in op.results]
    for branch, way in ((op.then, mask & condition.values), (op.otherwise, mask & ~condition.values)):
        if branch.blocks and way.any():
            results = team.merge(way, team.run(branch, [], env, way), results, op.results)
    return results


@lockstep("scf.for")
def for_(team: Team, op: scf.For, env: Env, mask: Array) -> Sequence[object]:
    """Trips in order; threads with fewer of them wait."""
    values: Sequence[object] = [env[v] for v in op.inits]
    bounds = [env[v] for v in (op.lower, op.upper, op.step)]
    if not any(isinstance(v, Lanes) for v in bounds):
        counter = dtype(op.lower.type).type
        lower, upper, step = map(int, bounds)
        if step <= 0:
            raise fault(op, f"needs a positive step, got {step}")
        for i in range(lower, upper, step):
            values = team.run(op.body, [counter(i), *values], env, mask)
        return values
    i, uppers, steps = (team.spread(v, op.lower.type) for v in bounds)
    if (steps[mask] <= 0).any():
        raise fault(op, f"needs a positive step, got {int(steps[mask].min())}")
    active = mask & (i < uppers)
    while active.any():
        values = team.merge(active, team.run(op.body, [Lanes(i), *values], env, active), values, op.results)
        i = i + steps
        active = active & (i < uppers)
    return values


@lockstep("scf.while")
def while_(team: Team, op: scf.While, env: Env, mask: Array) -> Sequence[object]:
    """Both regions by turns; threads whose condition failed wait for the others."""
    values: Sequence[object] = [env[v] for v in op.inits]
    results: Sequence[object] = [Lanes(team.blank(r.type)) for r in op.results]
    live = mask
    while True:
        condition, *leaving = team.run(op.before, values, env, live)
        if not isinstance(condition, Lanes):
            if not condition:
                return leaving if live is mask else team.merge(live, leaving, results, op.results)
            values = team.run(op.after, leaving, env, live)
            continue
        results = team.merge(live & ~condition.values, leaving, results, op.results)
        live = live & condition.values
        if not live.any():
            return results
        values = team.run(op.after, leaving, env, live)


@lockstep("memref.load", "memref.store")
def access(team: Team, op: Load | Store, env: Env, mask: Array) -> Sequence[object] | None:
    """Elements of one buffer for all threads at once, unless single accesses are to be looked at."""
    import numpy as np

    buffer: Array | Lanes = env[op.memref]
    subscripts = [team.spread(env[v], v.type)[mask] for v in op.indices]
    inside = all(((s >= 0) & (s < n)).all() for s, n in zip(subscripts, getattr(buffer, "shape", ()), strict=False))
    if isinstance(buffer, Lanes) or team.memory.checks or team.memory.check_races or not inside:
        results = team.each(op, env, mask)
        return results if op.results else None
    place = tuple(np.asarray(s, np.int64) for s in subscripts)
    if isinstance(op, Store):
        value = team.spread(env[op.value], op.value.type)[mask]
        # A buffer of rank 0 has one element, in which the last thread's value stays.
        buffer[place or ...] = value if place else value[-1]
        return None
    out = team.blank(op.result.type)
    out[mask] = buffer[place]
    return [Lanes(out)]

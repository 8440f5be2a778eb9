"""A launch as its definition says: nested loops over points and inner axes, one scalar at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from ..definition import TERMINATOR
from ..dialects.kernel import Access, Accumulate, Axes, Launch, Load, Local, Reduce, Scan, Store, Sweep
from ..numeric import constant, dtype
from ..operations import Block, Operation, Region
from ..values import Value
from .machine import Env, Interpreter, InterpreterError
from .operands import Memory, Out, as_dtype, out_of_bounds

if TYPE_CHECKING:
    import numpy as np


def run(machine: Interpreter, op: Launch, extents: Sequence[int], ins: Sequence[object], outs: Sequence[Out]) -> None:
    """Run the body of a launch for every point."""
    program = _Program(machine)
    for point in _points(extents):
        program.run(op.body.block, [*point, *ins, *outs], {})


def _points(extents: Sequence[int]) -> Iterator[list[np.int64]]:
    import numpy as np

    for point in product(*map(range, extents)):
        yield [np.int64(i) for i in point]


class _Program:
    def __init__(self, machine: Interpreter) -> None:
        self.machine = machine

    def run(self, block: Block, arguments: Sequence[object], env: Env) -> list[Any]:
        """The values that a block yields."""
        env.update(zip(block.arguments, arguments, strict=True))
        op = block.first
        while op is not None:
            if TERMINATOR in op.traits:
                return [env[v] for v in op.operands]
            handler = _HANDLERS.get(op.name)
            if handler is not None:
                results = handler(self, op, env)
            else:
                results = self.machine.evaluate(op, [env[v] for v in op.operands])
            env.update(zip(op.results, results, strict=True))
            op = op.next
        return []

    def extents(self, op: Axes, env: Env) -> list[int]:
        return [int(env[e]) if isinstance(e, Value) else e for e in op.bounds]

    def place(self, op: Access, indices: Sequence[Value], env: Env, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The subscripts of an access; None when they lie outside."""
        at = op.map.evaluate([int(env[v]) for v in indices])
        inside = all(0 <= i < n for i, n in zip(at, shape, strict=True))
        if not inside and not (isinstance(op, Load) and op.fill is not None):
            raise out_of_bounds(op, at, shape)
        return at if inside else None

    def load(self, op: Load, env: Env) -> Sequence[object]:
        source = env[op.source]
        array = source.array if isinstance(source, Memory) else source
        at = self.place(op, op.indices, env, array.shape)
        found = constant(op.fill) if at is None else array[at]
        return [as_dtype(found, dtype(op.result.type))]

    def store(self, op: Store, env: Env) -> Sequence[object]:
        out = env[op.dest]
        at = self.place(op, op.indices, env, out.array.shape)
        out.array[at] = as_dtype(env[op.value], out.array.dtype)
        if out.counts is not None:
            out.counts[at] += 1
        return []

    def accumulate(self, op: Accumulate, env: Env) -> Sequence[object]:
        outs = [env[d] for d in op.dests]
        at = self.place(op, op.indices, env, outs[0].array.shape)
        kept = [as_dtype(o.array[at], dtype(v.type)) for o, v in zip(outs, op.values)]
        new = self.run(op.combine.block, [*kept, *(env[v] for v in op.values)], {})
        for out, value in zip(outs, new):
            out.array[at] = as_dtype(value, out.array.dtype)
        return []

    def combine(self, region: Region, a: Sequence[object], b: Sequence[object]) -> list[Any]:
        return self.run(region.block, [*a, *b], {})

    def reduce(self, op: Reduce, env: Env) -> Sequence[object]:
        identity = [constant(a) for a in op.identity]
        elements = (self.run(op.body.block, point, env) for point in _points(self.extents(op, env)))
        if not op.tree:
            folded = identity
            for element in elements:
                folded = self.combine(op.combine, folded, element)
            return folded
        row = list(elements)
        while len(row) > 1:
            half = (len(row) + 1) // 2
            pairs = zip(row, row[half:])
            row = [self.combine(op.combine, a, b) for a, b in pairs] + row[len(row) - half : half]
        return row[0] if row else identity

    def scan(self, op: Scan, env: Env) -> Sequence[object]:
        folded = [constant(a) for a in op.identity]
        for point in _points(self.extents(op, env)):
            before = folded
            folded = self.combine(op.combine, before, self.run(op.body.block, point, env))
            self.run(op.do.block, [*point, *before, *folded], env)
        return folded

    def sweep(self, op: Sweep, env: Env) -> Sequence[object]:
        for point in _points(self.extents(op, env)):
            self.run(op.body.block, point, env)
        return []

    def local(self, op: Local, env: Env) -> Sequence[object]:
        import numpy as np

        extents = self.extents(op, env)
        array = np.zeros(extents, dtype(op.result.type))
        for point in _points(extents):
            array[tuple(point)] = self.run(op.body.block, point, env)[0]
        return [array]

    def choose(self, op: Operation, env: Env) -> Sequence[object]:
        branch = op.regions[0 if env[op.operands[0]] else 1]
        return self.run(branch.block, [], env) if branch.blocks else []


def _refuse(program: _Program, op: Operation, env: Env) -> Sequence[object]:
    raise InterpreterError(f"'{op.name}' op cannot stand in a kernel", op.location)


_HANDLERS: dict[str, Callable[[_Program, Any, Env], Sequence[object]]] = {
    "kernel.load": _Program.load,
    "kernel.store": _Program.store,
    "kernel.accumulate": _Program.accumulate,
    "kernel.reduce": _Program.reduce,
    "kernel.scan": _Program.scan,
    "kernel.sweep": _Program.sweep,
    "kernel.local": _Program.local,
    "kernel.launch": _refuse,
    "scf.if": _Program.choose,
}

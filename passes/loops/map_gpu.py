"""map-gpu: kernel functions become kernels of a device module, and their calls become launches.

In: private functions with the attribute `nablair.kernel`, whose bodies are loop nests over buffers, and host functions
that call them.  Out: one `gpu.module @<host function>_kernels` with a `gpu.func` for each nest, and `gpu.launch_func`
in place of each call, with a grid that the host computes.

    func.func private @main_k0(%x: memref<100x40xf32>, %y: memref<100x40xf32>) attributes {nablair.kernel} {
      scf.forall (%i) in (100) { scf.forall (%j) in (40) { ..  memref.store %0, %y[%i, %j] } }
    func.func @main(..) { func.call @main_k0(%x, %y)
        becomes
    gpu.module @main_kernels { gpu.func @main_k0(%x : .., %y : ..) kernel attributes {known_block_size = [256, 1, 1]} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      .. %p = 256 * %b + %t, %j = %p mod 40, %i = %p / 40
      scf.if %p < 4000 { .. }
    func.func @main(..) { gpu.launch_func @main_kernels::@main_k0 blocks in (%c16, %c1, %c1) threads in (%c256, ..)

A nest at the top of a function is a launch of its own: the end of a launch is the barrier of the whole grid, which the
identities of an accumulate need before the points.  The band of foralls at its head is numbered in row-major order, a
thread for each point, so that neighbours touch neighbouring elements.  A `scf.for` over an axis of an accumulate may
stand between them; the parallel axes separate the elements that meet, so it moves inside, and each thread adds its own
elements in order.  All other loops run in the thread (`map_threads`).  Where a point folds lanes in a tree, a block
works on it instead, a thread for each lane (`map_blocks`); tiles of contractions go to blocks too (`map_tiles`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...ir.attribute_names import KERNEL
from ...ir.attributes import UNIT
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import func, gpu, memref, scf
from ...ir.dialects.builtin import Module
from ...ir.operations import Block, Operation
from ...ir.target import DEFAULTS, Target
from ...ir.values import Value
from ..analysis.legality import IllegalError
from ..manager import Pass
from ..schedules.remarks import not_applied
from ..schedules.schedule import Schedule
from .collapse import collapse
from .gpu_kernel import Part, body_of, find_band, is_free
from .map_blocks import Blocks
from .map_threads import Threads
from .map_tiles import Tiles


@dataclass
class MapGpu(Pass):
    """Turn kernel functions into device kernels."""

    name: ClassVar[str] = "map-gpu"
    anchor: ClassVar[str] = "builtin.module"

    threads: int = 0
    """Threads of a block; 0: as the target says."""

    def run(self, op: Operation) -> None:
        assert isinstance(op, Module)
        functions = [f for f in op.block if isinstance(f, func.Func)]
        kernels = {f.sym_name: f for f in functions if KERNEL in f.attributes}
        for host in functions:
            if KERNEL in host.attributes or host.is_declaration:
                continue
            calls = [c for c in host.walk() if isinstance(c, func.Call) and c.callee in kernels]
            if calls:
                op.attributes[gpu.CONTAINER] = UNIT
                self.map_calls(host, calls, kernels)
        for kernel in kernels.values():
            kernel.erase()

    def map_calls(self, host: func.Func, calls: Sequence[func.Call], kernels: dict[str, func.Func]) -> None:
        """Make the device module of a host function and launch its kernels."""
        target = Target.of(host)
        if target.kind == "cpu":
            target = DEFAULTS["opencl"]
        if self.threads:
            target = replace(target, threads=self.threads)
        b = ScalarBuilder(before=host, location=host.location)
        module = gpu.Module.build(b, f"{host.sym_name}_kernels")
        made: dict[str, list[Part]] = {}
        for call in calls:
            if call.callee not in made:
                kernel = kernels[call.callee]
                for key in Schedule.of(kernel).attribute().entries:
                    not_applied(self, kernel, key, "map-gpu gives a thread to each point, and applies no schedule")
                made[call.callee] = map_kernel(kernel, module, target)
                self.count("kernels", len(made[call.callee]))
            arguments: dict[Value, Value] = dict(zip(kernels[call.callee].arguments, call.operands, strict=True))
            for part in made[call.callee]:
                part.launch(module.sym_name, call, arguments)
            call.erase()


def map_kernel(function: func.Func, module: gpu.Module, target: Target) -> list[Part]:
    """The kernels of a function, which go into the module, in the order of their launches."""
    flatten(function)
    known: set[Value] = set(function.arguments)
    for op in function.entry:
        if is_free(op, known):
            known.update(op.results)
    groups = segments(function)
    names = [function.sym_name] if len(groups) == 1 else [f"{function.sym_name}_{i}" for i in range(len(groups))]
    parts: list[Part] = []
    for name, group in zip(names, groups, strict=True):
        band = find_band(group, known)
        mapping = (
            Blocks.of(function, group, band, target)
            or Tiles.of(function, group, band, target)
            or Threads(function, group, band, target)
        )
        parts.append(mapping.build(name, module))
    return parts


def flatten(function: func.Func) -> None:
    """Make one loop of the axes of elementwise nests whose buffers are contiguous along all of them: a point's number
    then is its subscript."""
    for top in [op for op in function.entry if isinstance(op, scf.Forall)]:
        loop = top
        while isinstance(inner := loop.body.block.first, scf.Forall):
            loop = inner
        if any(op.regions for op in body_of(loop.body.block)):
            continue
        try:
            while isinstance(outer := loop.parent_op, scf.Forall):
                loop = collapse(outer, loop)
        except IllegalError:
            continue


def segments(function: func.Func) -> list[list[Operation]]:
    """The ops of a kernel function in groups that may run one launch after the other.

    A loop nest is a group of its own, unless a value or a private buffer passes between it and others.
    """
    known: set[Value] = set(function.arguments)
    work: list[Operation] = []
    private: list[Operation] = []
    for op in function.entry:
        if is_free(op, known):
            known.update(op.results)
        elif isinstance(op, memref.Alloca | memref.Alloc):
            private.append(op)
        elif not isinstance(op, memref.Dealloc | func.Return):
            work.append(op)
    place = {op: i for i, op in enumerate(work)}
    together: list[tuple[int, int]] = []
    for op in (*private, *work):
        users = [place[top] for r in op.results for u in r.users if (top := _top(u, function.entry)) in place]
        if users:
            together.append((place.get(op, min(users)), max(users)))
    groups: list[list[Operation]] = []
    end = -1
    for i, op in enumerate(work):
        alone = isinstance(op, scf.Forall | scf.For)
        serial = bool(groups) and not alone and not isinstance(groups[-1][-1], scf.Forall | scf.For)
        if i <= end or serial:
            groups[-1].append(op)
        else:
            groups.append([op])
        end = max([end, *(last for first, last in together if first <= i)])
    return groups


def _top(op: Operation, block: Block) -> Operation:
    """The op of a block that an op is or stands in."""
    while op.parent is not block:
        outer = op.parent_op
        assert outer is not None
        op = outer
    return op

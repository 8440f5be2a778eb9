"""A thread for each point of a kernel: the mapping that fits every kernel.

Points are numbered in row-major order, so that neighbouring threads touch neighbouring elements.  Ordered loops of the
band, and all loops of the body, run in the thread.  Locals are the thread's own; one that is too large for that, or of
unknown size, is a buffer of the host with an element for each thread, threads innermost, and each thread then takes
several points.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import func, gpu, memref, scf
from ...ir.operations import Operation
from ...ir.target import Target
from ...ir.types import I32, INDEX
from ...ir.values import Value
from .gpu_kernel import Band, Local, Mapping, Part, add_subscript, buffer_of, in_order, product


class Threads(Mapping):
    """The making of a kernel with a thread for each point."""

    def __init__(self, function: func.Func, group: Sequence[Operation], band: Band, target: Target) -> None:
        super().__init__(function, group, band)
        threads = target.threads
        self.target = target
        if self.count is not None:
            threads = min(threads, -(-self.count // target.warp) * target.warp) if self.count > 1 else 1
        self.threads = max(1, threads)

    def build(self, name: str, module: gpu.Module) -> Part:
        """The kernel, in the module."""
        scratch = [(op, True) for op in self.locals if not self.fits_thread(op)]
        kernel, arguments, b = self.begin(name, module, (self.threads, 1), scratch)
        for op in self.locals:
            if op.result not in self.table:
                own = b.value_of(memref.Alloca, [], [], results=[op.result.type])
                own.name = op.result.name
                self.table[op.result] = own
        thread = self.points(b, bool(scratch))
        b.create(gpu.Return, [])
        for op, _ in scratch:
            add_subscript(self.table[op.result], thread, last=True)
        for forall in [op for op in kernel.walk() if isinstance(op, scf.Forall)]:
            in_order(forall)
        most = max(1, self.target.resident_threads // self.threads) if scratch else 0
        block = (self.threads, 1)
        return Part(kernel, arguments, self.band.bounds, self.threads, block, most_blocks=most, scratch=scratch)

    def points(self, b: ScalarBuilder, several: bool) -> Value:
        """The points of a thread, one or `several`; its number in the grid."""
        for op in self.band.between:
            b.insert(op.clone(self.table))
        if not self.band.axes:
            self.body(b)
            return b.index_constant(0)
        kind = I32 if self.small else INDEX
        block = b.value_of(gpu.BlockId, dimension="x")
        thread = b.value_of(gpu.ThreadId, dimension="x")
        size = b.constant(self.threads, kind)
        point = b.add(b.mul(b.index_cast(block, kind), size), b.index_cast(thread, kind))
        number = b.index_cast(point)
        extents = self.extents(b)
        if several:
            total = b.mul(b.index_cast(b.value_of(gpu.GridDim, dimension="x"), kind), size)
            loop = scf.For.build(b, point, product(b, extents), total)
            with b.at(loop.body.block):
                self.one_point(b, loop.counter, extents)
                b.create(scf.Yield, [])
        elif self.count is not None and self.count % self.threads == 0:
            self.one_point(b, point, extents)
        else:
            inside = scf.If.build(b, b.cmp("slt", point, product(b, extents)))
            with b.at(inside.then.block):
                self.one_point(b, point, extents)
                b.create(scf.Yield, [])
        return number

    def one_point(self, b: ScalarBuilder, point: Value, extents: Sequence[Value]) -> None:
        """The body at a point, given by its number."""
        self.place(b, point, extents)
        self.ordered(b, self.band.ordered)

    def ordered(self, b: ScalarBuilder, loops: Sequence[scf.For]) -> None:
        """The loops that run in order, then the body."""
        if not loops:
            self.body(b)
            return
        old, *rest = loops
        lower, upper, step = (self.table.get(v, v) for v in (old.lower, old.upper, old.step))
        loop = scf.For.build(b, lower, upper, step, name=old.counter.name)
        self.table[old.counter] = loop.counter
        with b.at(loop.body.block):
            self.ordered(b, rest)
            b.create(scf.Yield, [])

    def body(self, b: ScalarBuilder) -> None:
        """The ops of the body."""
        for op in self.band.body:
            b.insert(op.clone(self.table))

    def fits_thread(self, op: Local) -> bool:
        """Whether a local is private to a thread; else it is a buffer of the host."""
        type = buffer_of(op)
        return type.is_static and type.num_elements * 8 <= self.target.private_bytes

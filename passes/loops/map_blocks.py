"""A block of threads for each point of a kernel, or for some neighbouring ones: for points that fold lanes in a tree.

In: a point such as the row of a softmax, whose folds split-reduce has cut into lanes.  Out: the loops over lanes, and
all other order-free loops of the point, shared out over the threads of the block.

    scf.forall (%i) in (32) {
      scf.forall (%l) in (256) { ..  memref.store %s, %lanes[%l] }
      scf.for %h = %c0 to %c128 step %c1 { combine %lanes[%h] with %lanes[%h + 128] } {nablair.parallel}
      ..
        becomes
    %i = gpu.block_id x
    %l = gpu.thread_id x
    ..  memref.store %s, %lanes[%l] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    scf.if %l < 128 { combine }
    gpu.barrier
    ..

What a point keeps in locals is shared by its threads: workgroup memory, or, where that does not suffice, a buffer of
the host with a row for each point.  A barrier stands where a thread may read what another one wrote, or write what
another one read, since the last barrier.  Values of the point outside of loops are computed by each of its threads
alike; its first thread stores.  On CUDA devices the last 32 lanes of a tree are folded by shuffles in one warp.

Where the lanes read neighbouring elements, they are the fastest dimension of the block; where the points do, as in sums
of columns, the points are, and a block takes 32 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...ir.attribute_names import NO_ALIAS, PARALLEL, READ_ONLY
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import func, gpu, memref, scf
from ...ir.effects import is_pure
from ...ir.operations import Operation
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.types import F32, F64, I32, I64, INDEX, MemRefType, Type
from ...ir.values import BlockArgument, Value
from ..analysis.launch import depends
from .gpu_kernel import (
    Band,
    Local,
    Mapping,
    Part,
    add_subscript,
    body_of,
    buffer_of,
    in_order,
    product,
)

Table = dict[Value, Value]

SHUFFLED = 32
"""Threads among which `gpu.shuffle` exchanges values."""


class Blocks(Mapping):
    """The making of a kernel with a block for some points."""

    def __init__(self, function: func.Func, group: Sequence[Operation], band: Band, target: Target) -> None:
        super().__init__(function, group, band)
        threads, shared = target.threads, target.shared_bytes
        self.shuffles = target.kind == "cuda" and target.warp == SHUFFLED
        trees = [op for op in band.body if isinstance(op, scf.For) and PARALLEL in op.attributes]
        lanes = 1
        while lanes < 2 * max(op.trips or 1 for op in trees):
            lanes *= 2
        self.lanes_first = not band.axes or not self._points_are_neighbours()
        self.lanes = min(lanes, threads)
        self.points = 1
        if band.axes and self.lanes_first:
            # Points with few lanes share a block, up to half of its threads.
            self.points = max(1, threads // 2 // self.lanes)
        elif band.axes:
            inner = band.bounds[-1]
            # Points whose elements lie side by side: a warp reads them at once.
            while self.points < target.warp and (not isinstance(inner, int) or self.points < inner):
                self.points *= 2
        self.shared = list(self.locals)
        kept = {v for op in trees for inner in op.walk() for v in inner.operands}
        while self.points > 1 and self._bytes(op for op in self.shared if op.result in kept) > shared:
            self.points //= 2
        self.shared.sort(key=lambda op: (op.result not in kept, self._bytes([op])))
        while self.shared and self._bytes(self.shared) > shared:
            self.shared.pop()
        self.lanes = max(1, min(self.lanes, threads // self.points))
        self.ragged = self.count is None or self.count % self.points != 0
        self.read: set[object] = set()
        self.written: set[object] = set()
        self.done: set[Operation] = set()
        """Loops of trees that shuffles did already."""

    @staticmethod
    def of(function: func.Func, group: Sequence[Operation], band: Band, target: Target) -> Blocks | None:
        """The mapping, where it fits the group: there is a tree, and all that stores is order-free."""
        trees = [op for op in band.body if isinstance(op, scf.For) and PARALLEL in op.attributes]
        if band.ordered or not trees or not all(_shareable(op) for op in band.body):
            return None
        return Blocks(function, group, band, target)

    def _bytes(self, locals_: Iterable[Local]) -> int:
        total = 0
        for op in locals_:
            type = buffer_of(op)
            total += self.points * type.num_elements * 8 if type.is_static else 1 << 62
        return total

    def _points_are_neighbours(self) -> bool:
        """Whether loads of the lanes move with the innermost axis of the points in memory, and not with the lanes."""
        point = self.band.axes[-1]
        votes = 0
        for op in self.band.body:
            if isinstance(op, scf.Forall):
                lane = op.axes[-1]
                for load in op.walk():
                    if isinstance(load, memref.Load) and load.indices and load.memref not in self.local_values:
                        last = load.indices[-1]
                        votes += depends(last, point) - depends(last, lane)
        return votes > 0

    @property
    def local_values(self) -> set[Value]:
        """The buffers that a point has for itself."""
        return {op.result for op in self.locals}

    def build(self, name: str, module: gpu.Module) -> Part:
        """The kernel, in the module."""
        scratch = [(op, not self.lanes_first) for op in self.locals if op not in self.shared]
        types = [self._shared_type(op) for op in self.shared]
        block = (self.lanes, self.points) if self.lanes_first else (self.points, self.lanes)
        kernel, arguments, b = self.begin(name, module, block, scratch, types)
        for op, buffer in zip(self.shared, kernel.workgroup, strict=True):
            buffer.name = op.result.name
            self.table[op.result] = buffer
        for op in self.band.between:
            b.insert(op.clone(self.table))
        place = self.coordinates(b)
        for op in self.band.body:
            self.op(b, op)
        b.create(gpu.Return, [])
        for op, _ in scratch:
            add_subscript(self.table[op.result], place, last=not self.lanes_first)
        if self.points > 1:
            for buffer in kernel.workgroup:
                add_subscript(buffer, self.neighbour, last=not self.lanes_first)
        for forall in [op for op in kernel.walk() if isinstance(op, scf.Forall)]:
            in_order(forall)
        return Part(kernel, arguments, self.band.bounds, self.points, block, scratch=scratch)

    def _shared_type(self, op: Local) -> MemRefType:
        type = buffer_of(op)
        shape = type.shape
        if self.points > 1:
            shape = (self.points, *shape) if self.lanes_first else (*shape, self.points)
        return MemRefType(shape, type.element, None, gpu.WORKGROUP)

    def coordinates(self, b: ScalarBuilder) -> Value:
        """Set the lane of the thread and the axes of its point; the point's number."""
        lane, neighbour = ("x", "y") if self.lanes_first else ("y", "x")
        kind = I32 if self.small else INDEX
        point = b.index_cast(b.value_of(gpu.BlockId, dimension="x"), kind)
        self.lane = b.value_of(gpu.ThreadId, dimension=lane)
        self.valid: Value | None = None
        if self.points > 1:
            self.neighbour = b.value_of(gpu.ThreadId, dimension=neighbour)
            point = b.add(b.mul(point, self.points), b.index_cast(self.neighbour, kind))
        if self.band.axes:
            extents = self.extents(b)
            if self.ragged and self.points > 1:
                # Threads without a point take the last one, so that barriers meet, and store nothing.
                count = product(b, extents)
                self.valid = b.cmp("slt", point, count)
                point = b.select(self.valid, point, b.sub(count, 1))
            self.place(b, point, extents)
        return b.index_cast(point)

    # The ops of a point.

    def op(self, b: ScalarBuilder, op: Operation) -> None:
        """One op of the body, after a barrier where it needs one."""
        if op in self.done:
            return
        reads, writes = self.accesses(op)
        if writes & (self.read | self.written) or reads & self.written:
            b.create(gpu.Barrier)
            self.read, self.written = set(), set()
        self.read |= reads
        self.written |= writes
        b.location = op.location
        # Workgroup memory has a place for threads without a point, all other buffers have not.
        guarded = bool(writes - {local.result for local in self.shared})
        if isinstance(op, scf.Forall):
            self.share(b, op, guarded)
        elif isinstance(op, scf.For) and PARALLEL in op.attributes and (tail := self.last_warp(op)):
            self.shuffle(b, tail)
        elif isinstance(op, scf.For) and PARALLEL in op.attributes:
            upper = self.table.get(op.upper, op.upper)
            self.steps(b, op.counter, op.trips if op.trips is not None else upper, op, guarded)
        elif isinstance(op, memref.Store):
            first = b.cmp("eq", self.lane, 0)
            if self.valid is not None and guarded:
                first = b.and_(first, self.valid)
            choice = scf.If.build(b, first)
            with b.at(choice.then.block):
                b.insert(op.clone(self.table))
                b.create(scf.Yield, [])
        else:
            b.insert(op.clone(self.table))

    def last_warp(self, op: scf.For) -> list[scf.For] | None:
        """The loops from here on of a tree that a warp can do by shuffles, if this is the first such loop."""
        if not self.shuffles or not self.lanes_first or self.lanes % SHUFFLED or op.trips != SHUFFLED // 2:
            return None
        body = self.band.body
        following = [o for o in body[body.index(op) :] if isinstance(o, scf.For) and PARALLEL in o.attributes]
        trips = [o.trips for o in following[: SHUFFLED.bit_length() - 1]]
        stored = [{s.memref for s in o.walk() if isinstance(s, memref.Store)} for o in following[: len(trips)]]
        same = all(s == stored[0] for s in stored)
        if trips != [SHUFFLED >> (i + 1) for i in range(SHUFFLED.bit_length() - 1)] or not same:
            return None
        if any(b not in self.local_values or _element(b) not in (F32, F64, I32, I64) for b in stored[0]):
            return None
        return following[: len(trips)]

    def shuffle(self, b: ScalarBuilder, loops: Sequence[scf.For]) -> None:
        """The last elements of a tree, one in each thread of a warp, folded without barriers."""
        self.done.update(loops)
        stores = [o for o in loops[0].walk() if isinstance(o, memref.Store)]
        first_warp = None
        if self.lanes > SHUFFLED:
            first_warp = scf.If.build(b, b.cmp("slt", self.lane, SHUFFLED))
            outside = b
            b = ScalarBuilder(first_warp.then.block, location=outside.location)
        width = b.constant(SHUFFLED, I32)
        values: Table = {s.memref: b.value_of(memref.Load, self.table[s.memref], [self.lane]) for s in stores}
        for loop in loops:
            offset = b.constant(loop.trips or 0, I32)
            others: Table = {}
            for buffer, value in values.items():
                others[buffer] = b.create(gpu.Shuffle, value, offset, width, mode="down").shuffled
            table: Table = {**self.table, loop.counter: self.lane}
            following: Table = {}
            for op in body_of(loop.body.block):
                if isinstance(op, memref.Load):
                    mine = op.indices[0] is loop.counter
                    table[op.result] = (values if mine else others)[op.memref]
                elif isinstance(op, memref.Store):
                    following[op.memref] = table.get(op.value, op.value)
                else:
                    b.insert(op.clone(table))
            values = following
        result = scf.If.build(b, b.cmp("eq", self.lane, 0))
        with b.at(result.then.block):
            zero = b.index_constant(0)
            for buffer, value in values.items():
                b.create(memref.Store, value, self.table[buffer], [zero])
            b.create(scf.Yield, [])
        if first_warp is not None:
            b.create(scf.Yield, [])

    def accesses(self, op: Operation) -> tuple[set[object], set[object]]:
        """What an op reads and writes; buffers that may overlap are one thing."""
        reads: set[object] = set()
        writes: set[object] = set()
        for inner in op.walk():
            if isinstance(inner, memref.Load | memref.Store):
                buffer = inner.memref
                if buffer in self.local_values or NO_ALIAS in self.function.attributes:
                    thing: object = buffer
                else:
                    thing = "buffers of the caller"
                if isinstance(inner, memref.Store):
                    writes.add(thing)
                elif not self._constant(buffer):
                    reads.add(thing)
        return reads, writes

    def _constant(self, buffer: Value) -> bool:
        positions = getattr(self.function.attributes.get(READ_ONLY), "values", ())
        return isinstance(buffer, BlockArgument) and buffer.index in positions

    def share(self, b: ScalarBuilder, op: scf.Forall, guarded: bool) -> None:
        """Share a nest of order-free loops out over the lanes: its innermost one."""
        ops = body_of(op.body.block)
        (axis,), (bound,) = op.axes, op.upper
        inner = [o for o in ops if not is_pure(o) or o.regions]
        nested = inner[0] if len(inner) == 1 else None
        if isinstance(nested, scf.Forall) and nested.is_normalized:
            zero, one = b.index_constant(0), b.index_constant(1)
            upper = b.index_of(bound if isinstance(bound, int) else self.table.get(bound, bound))
            loop = scf.For.build(b, zero, upper, one, name=axis.name)
            self.table[axis] = loop.counter
            with b.at(loop.body.block):
                for o in ops:
                    if o is nested:
                        self.share(b, nested, guarded)
                    else:
                        b.insert(o.clone(self.table))
                b.create(scf.Yield, [])
            return
        self.steps(b, axis, bound if isinstance(bound, int) else self.table.get(bound, bound), op, guarded)

    def steps(self, b: ScalarBuilder, axis: Value, bound: Extent, op: scf.Forall | scf.For, guarded: bool) -> None:
        """The steps of a loop from 0 that fall to this lane."""
        ops = body_of(op.body.block)
        valid = self.valid if guarded else None
        if isinstance(bound, int) and bound <= self.lanes:
            inside = valid
            if bound < self.lanes:
                near = b.cmp("slt", self.lane, bound)
                inside = near if inside is None else b.and_(near, inside)
            self.table[axis] = self.lane
            if inside is None:
                for o in ops:
                    b.insert(o.clone(self.table))
                return
            choice = scf.If.build(b, inside)
            with b.at(choice.then.block):
                for o in ops:
                    b.insert(o.clone(self.table))
                b.create(scf.Yield, [])
            return
        upper = b.index_of(bound)
        if valid is not None:
            upper = b.select(valid, upper, 0)
        loop = scf.For.build(b, self.lane, upper, b.index_constant(self.lanes), name=axis.name)
        self.table[axis] = loop.counter
        with b.at(loop.body.block):
            for o in ops:
                b.insert(o.clone(self.table))
            b.create(scf.Yield, [])


def _shareable(op: Operation) -> bool:
    """Whether an op of a point can run on several threads: an order-free loop, a store, or what stores nothing."""
    if isinstance(op, scf.Forall):
        return op.is_normalized and len(op.axes) == 1
    if isinstance(op, scf.For) and PARALLEL in op.attributes:
        return True
    if isinstance(op, memref.Load | memref.Store):
        return True
    return all(is_pure(o) or o.regions or isinstance(o, memref.Load) for o in op.walk())


def _element(buffer: Value) -> Type:
    type = buffer.type
    assert isinstance(type, MemRefType)
    return type.element

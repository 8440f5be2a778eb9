"""vectorize: neighbouring points of a forall become the lanes of vectors.

In: kernels whose schedule says `vector = [[axis, lanes], ..]`.  Out: the innermost foralls over these axes step by
`lanes`, and their bodies hold vectors.

    scf.forall (%i) in (100) {
      %0 = memref.load %x[%i] : memref<100xf32>
      %1 = arith.mulf %0, %half : f32
      memref.store %1, %y[%i] : memref<100xf32>
    } {axis = 0 : i64}
        becomes
    scf.forall (%i) = (0) to (96) step (16) {
      %0 = vector.load %x[%i] : memref<100xf32>, vector<16xf32>
      %1 = arith.mulf %0, %halves : vector<16xf32>
      vector.store %1, %y[%i] : memref<100xf32>, vector<16xf32>
    } {axis = 0 : i64}
    %mask = vector.create_mask %c4 : vector<16xi1>
    ..                                                       // the same with masked loads and stores

Every value is uniform (it does not depend on the lane), a line (an index `base + stride * lane`) or wide (a vector).
Which values vary is found first, by one forward analysis; then the body is copied once.  A subscript that is a line of
stride 1 in the last place makes a contiguous access, any other that varies a gather or scatter on the flat buffer.  An
`scf.if` that varies becomes both branches under masks and a select.  Loops inside keep their bounds, which must be
uniform, and widen what they carry.  Where the last vector is not full, it is masked; a loop that is to be unrolled
whole is masked in every step, so that its copies stay alike.

Memory of the kernel that each point writes for itself gets a last axis for the lanes.

Exact: each lane computes what its point computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import MAX_TRIP_COUNT
from ...ir.attributes import ArrayAttr, IntegerAttr, constant_attr
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, memref, scf, vector
from ...ir.dialects.memref.layout import row_major
from ...ir.operations import Block, Operation, Region
from ...ir.support.mixed import Extent, known
from ...ir.target import Target
from ...ir.types import DYNAMIC, I1, I64, INDEX, MemRefType, Type, VectorType
from ...ir.values import Value
from ..analysis.legality import IllegalError
from ..analysis.variance import check, private_buffers, varying_values
from ..manager import Pass
from ..schedules.remarks import entry, not_applied
from ..schedules.schedule import Schedule
from . import nest


@dataclass
class Vectorize(Pass):
    """Make vectors of the loops that the schedule names."""

    name: ClassVar[str] = "vectorize"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            schedule = Schedule.of(function)
            unroll = dict(schedule.unroll)
            for axis, lanes in schedule.vector:
                loops = nest.point_loops(function, axis)
                if not loops:
                    not_applied(self, function, entry("vector", axis, lanes), nest.NO_POINTS)
                for loop in loops:
                    try:
                        vectorize(loop, lanes, unroll.get(axis, 1))
                        self.count("vectorized")
                    except IllegalError as reason:
                        self.count(f"not vectorized: {reason}")
                        not_applied(self, function, entry("vector", axis, lanes), reason)


def vectorize(loop: scf.Forall, lanes: int, unroll: int = 1) -> None:
    """Replace a forall of one axis by vectors of `lanes`; IllegalError when it has to stay scalar."""
    (step,) = loop.step
    if step != 1:
        raise IllegalError("the loop does not count by one")
    buffers = private_buffers(loop)
    varying = varying_values(loop, buffers)
    check(loop, varying, buffers)
    private: dict[Value, Value] = {}
    before = loop.prev
    try:
        for buffer in buffers:
            private[buffer] = _with_lanes(buffer, lanes)
        _replace(loop, lanes, unroll, varying, private)
    except IllegalError:
        # What was found illegal while it was copied: the copy goes.
        while loop.prev is not before:
            assert loop.prev is not None
            loop.prev.erase()
        for wide in private.values():
            _free(wide)
        raise
    loop.erase()
    for buffer in private:
        _free(buffer)


def _with_lanes(buffer: Value, lanes: int) -> Value:
    """Memory for the lanes of a private buffer, side by side at each of its places."""
    maker, type = buffer.defining_op, buffer.type
    assert maker is not None and isinstance(type, MemRefType)
    wide = MemRefType([*type.shape, lanes], type.element)
    if wide.is_static and wide.num_elements * 4 > Target.of(maker).l2 // 2:
        raise IllegalError("the lanes of what is private to a point take too much memory")
    new = maker.__class__(maker.operands, [wide], maker.properties, location=maker.location)
    new.results[0].name = buffer.name
    assert maker.parent is not None
    maker.parent.insert_before(new, maker)
    for user in buffer.users:
        if isinstance(user, memref.Dealloc):
            ScalarBuilder(before=user, location=user.location).create(memref.Dealloc, new.results[0])
    return new.results[0]


def _free(buffer: Value) -> None:
    """Drop a buffer that nothing reads or writes any more."""
    for user in list(buffer.users):
        user.erase()
    assert buffer.defining_op is not None
    buffer.defining_op.erase()


def _replace(loop: scf.Forall, lanes: int, unroll: int, varying: set[Value], private: dict[Value, Value]) -> None:
    """The vectors before the loop."""
    (lower,), (upper,) = loop.lower, loop.upper
    b = ScalarBuilder(before=loop, location=loop.location)
    name = loop.axes[0].name
    attributes = {k: v for k, v in loop.attributes.items() if k != MAX_TRIP_COUNT}
    count = nest.trips(loop)
    limit = count if count is not None else nest.number_of(loop, MAX_TRIP_COUNT)
    if (limit is not None and limit % lanes and -(-limit // lanes) <= unroll) or (count is None and limit is not None):
        # All steps masked, so that they are alike and their number is known.
        end = nest.add(b, lower, -(-limit // lanes) * lanes)
        new = nest.forall(b, lower, end, lanes, name=name, attributes=attributes)
        inner = nest.at_end(b, new.body.block)
        left = inner.index_of(nest.subtract(inner, upper, new.axes[0]))
        _Lanes(inner, lanes, varying, _mask(inner, left, lanes), private).run(loop, new.axes[0])
        return
    end = nest.whole(b, lower, upper, lanes)
    if not (isinstance(end, int) and end == lower):
        new = nest.forall(b, lower, end, lanes, name=name, attributes=attributes)
        _Lanes(nest.at_end(b, new.body.block), lanes, varying, None, private).run(loop, new.axes[0])
    if isinstance(end, int) and isinstance(upper, int):
        if end < upper:
            start = b.index_constant(end)
            _Lanes(b, lanes, varying, _mask(b, b.index_constant(upper - end), lanes), private).run(loop, start)
    else:
        rest = nest.forall(b, end, upper, lanes, name=name)
        inner = nest.at_end(b, rest.body.block)
        left = inner.index_of(nest.subtract(inner, upper, rest.axes[0]))
        _Lanes(inner, lanes, varying, _mask(inner, left, lanes), private).run(loop, rest.axes[0])


def _mask(b: ScalarBuilder, left: Value, lanes: int) -> Value:
    return b.value_of(vector.CreateMask, [left], results=[VectorType([lanes], I1)])


class _Lanes:
    """One copy of a body with lanes in place of points."""

    def __init__(
        self, b: ScalarBuilder, lanes: int, varying: set[Value], mask: Value | None, private: dict[Value, Value]
    ) -> None:
        self.b = b
        self.lanes = lanes
        self.varying = varying
        self.mask = mask
        self.private = private
        """The buffers of the lanes in place of those private to a point."""
        self.table: dict[Value, Value] = {}
        """Uniform values, and the base of lines."""
        self.lines: dict[Value, int] = {}
        """Strides of the values that are lines."""
        self.wide: dict[Value, Value] = {}

    def run(self, loop: scf.Forall, start: Value) -> None:
        """Copy the body; lane 0 stands at `start`."""
        self.table[loop.axes[0]] = start
        self.lines[loop.axes[0]] = 1
        self.block(loop.body.block)

    def block(self, block: Block) -> tuple[Value, ...]:
        """The ops of a block but its terminator, whose operands are returned."""
        last = block.terminator
        for op in block:
            if op is last:
                break
            self.b.location = op.location
            self.op(op)
        return last.operands

    def op(self, op: Operation) -> None:
        """Copy an op: once where it is the same in all lanes, else as an op of vectors."""
        match op:
            case memref.Load():
                self.load(op)
            case memref.Store():
                self.store(op)
            case scf.For():
                self.loop(op)
            case scf.Forall():
                self.forall(op)
            case scf.If() if op.condition in self.varying:
                self.divergent_if(op)
            case scf.If():
                self.uniform_if(op)
            case _ if not any(v in self.varying for v in op.operands):
                self.b.insert(op.clone(self.table))
            case _:
                self.elementwise(op)

    # Values.

    def uniform(self, value: Value) -> Value:
        """A value that is the same in all lanes, or lane 0 of a line."""
        return self.table.get(value, value)

    def vector(self, value: Value) -> Value:
        """A value in every lane."""
        found = self.wide.get(value)
        if found is not None:
            return found
        type = VectorType([self.lanes], value.type)
        base = self.splat(self.uniform(value), type)
        return self.b.value_of(arith.AddI, base, self.steps(self.lines[value])) if value in self.lines else base

    def steps(self, stride: int) -> Value:
        """`[0, stride, 2 * stride, ..]`."""
        type = VectorType([self.lanes], INDEX)
        steps = self.b.value_of(vector.Step, results=[type])
        return (
            steps if stride == 1 else self.b.value_of(arith.MulI, steps, self.b.constant(constant_attr(stride, type)))
        )

    def splat(self, value: Value, type: VectorType) -> Value:
        """A scalar in every lane."""
        maker = value.defining_op
        if isinstance(maker, arith.Constant):
            attribute = maker.properties["value"]
            number = getattr(attribute, "value")  # noqa: B009 (numbers have one)
            if number == number:
                return self.b.constant(constant_attr(number, type))
        return self.b.value_of(vector.Broadcast, value, results=[type])

    def elementwise(self, op: Operation) -> None:
        """An op of scalars as the op of vectors; sums of lines stay lines."""
        (result,) = op.results
        stride = self.stride_of(op)
        if stride is not None:
            self.b.insert(op.clone(self.table))
            if stride:
                self.lines[result] = stride
            else:
                self.wide[result] = self.b.value_of(
                    vector.Broadcast, self.table[result], results=[VectorType([self.lanes], result.type)]
                )
            return
        keep = isinstance(op, arith.Select) and op.condition not in self.varying
        operands = [self.uniform(v) if keep and i == 0 else self.vector(v) for i, v in enumerate(op.operands)]
        vector_type = VectorType([self.lanes], result.type)
        new = op.__class__(operands, [vector_type], op.properties, op.attributes, location=op.location)
        self.b.insert(new)
        self.wide[result] = new.results[0]

    def stride_of(self, op: Operation) -> int | None:
        """The stride of an index that an op makes of lines and uniform values; None when it is not a line."""
        if op.results[0].type is not INDEX or any(v in self.varying and v not in self.lines for v in op.operands):
            return None
        strides = [self.lines.get(v, 0) for v in op.operands]
        match op:
            case arith.AddI():
                return strides[0] + strides[1]
            case arith.SubI():
                return strides[0] - strides[1]
            case arith.MulI():
                for stride, factor in ((strides[0], known(op.operands[1])), (strides[1], known(op.operands[0]))):
                    if stride and factor is not None:
                        return stride * factor
                return None
            case _:
                return None

    # Memory.

    def contiguous(self, indices: tuple[Value, ...]) -> bool:
        """Whether lanes lie side by side along the last axis."""
        *outer, last = indices
        return self.lines.get(last) == 1 and not any(v in self.varying for v in outer)

    def load(self, op: memref.Load) -> None:
        """A scalar, contiguous or gathered load."""
        if op.result not in self.varying:
            self.b.insert(op.clone(self.table))
            return
        type = VectorType([self.lanes], op.result.type)
        wide = self.private.get(op.memref)
        if wide is not None:
            at = [*map(self.uniform, op.indices), self.b.index_constant(0)]
            self.wide[op.result] = self.b.value_of(vector.Load, wide, at, results=[type])
            return
        if not op.indices or not self.contiguous(op.indices):
            self.wide[op.result] = self.gather(op)
            return
        at = [self.uniform(i) for i in op.indices]
        base = self.uniform(op.memref)
        if self.mask is None:
            self.wide[op.result] = self.b.value_of(vector.Load, base, at, results=[type])
        else:
            zero = self.b.constant(constant_attr(0, type))
            self.wide[op.result] = self.b.value_of(vector.MaskedLoad, base, at, self.mask, zero)

    def store(self, op: memref.Store) -> None:
        """A contiguous or scattered store."""
        value = self.vector(op.value)
        wide = self.private.get(op.memref)
        if wide is not None:
            at = [*map(self.uniform, op.indices), self.b.index_constant(0)]
            self.write(value, wide, at, op.nontemporal)
            return
        base = self.uniform(op.memref)
        if not self.contiguous(op.indices):
            buffer, start, places = self.flat_places(op)
            self.b.create(vector.Scatter, buffer, [start], places, self.full_mask(), value)
            return
        self.write(value, base, [self.uniform(i) for i in op.indices], op.nontemporal)

    def write(self, value: Value, base: Value, at: Sequence[Value], nontemporal: bool) -> None:
        """A store of the lanes in use, side by side."""
        if self.mask is None:
            self.b.create(vector.Store, value, base, at, nontemporal=nontemporal or None)
        else:
            self.b.create(vector.MaskedStore, base, at, self.mask, value)

    def gather(self, op: memref.Load) -> Value:
        """Elements that lie anywhere."""
        buffer, start, places = self.flat_places(op)
        zero = self.b.constant(constant_attr(0, VectorType([self.lanes], op.result.type)))
        return self.b.value_of(vector.Gather, buffer, [start], places, self.full_mask(), zero)

    def full_mask(self) -> Value:
        """The lanes that are in use."""
        if self.mask is not None:
            return self.mask
        return self.b.constant(constant_attr(1, VectorType([self.lanes], I1)))

    def flat_places(self, op: memref.Load | memref.Store) -> tuple[Value, Value, Value]:
        """`(flat buffer, place of lane 0, places of the lanes from there)`."""
        type = op.memref.type
        assert isinstance(type, MemRefType)
        strides = self.strides(op.memref, type)
        b = self.b
        start: Extent = 0
        step = 0
        spread: Value | None = None
        index_type = VectorType([self.lanes], INDEX)
        for index, stride in zip(op.indices, strides, strict=True):
            line = index in self.lines
            if (not line and index in self.varying) or (line and not isinstance(stride, int)):
                lane = self.vector(index)
                if stride != 1:
                    lane = b.value_of(arith.MulI, lane, self.splat(b.index_of(stride), index_type))
                spread = lane if spread is None else b.value_of(arith.AddI, spread, lane)
                continue
            base = self.uniform(index)
            constant = known(base)
            start = nest.add(b, start, nest.multiply(b, base if constant is None else constant, stride))
            if line:
                assert isinstance(stride, int)
                step += self.lines[index] * stride
        if step or spread is None:
            steps = self.steps(step)
            spread = steps if spread is None else b.value_of(arith.AddI, spread, steps)
        return self.flattened(op.memref, type), b.index_of(start), spread

    def flattened(self, buffer: Value, type: MemRefType) -> Value:
        """The buffer as one axis."""
        base = self.uniform(buffer)
        if type.rank == 1:
            return base
        if type.rank == 0:
            raise IllegalError("a buffer without axes is read where no lane may be in use")
        groups = ArrayAttr([ArrayAttr([IntegerAttr(i, I64) for i in range(type.rank)])])
        return self.b.create(memref.CollapseShape, base, reassociation=groups).result

    def strides(self, buffer: Value, type: MemRefType) -> list[Extent]:
        """The distances of neighbours along each axis, in elements."""
        if type.layout is not None:
            raise IllegalError("lanes lie apart in a buffer that is not contiguous")
        static = row_major(type.shape)
        if DYNAMIC not in static:
            return list(static)
        b = self.b
        found: list[Extent] = [1] * type.rank
        for axis in range(type.rank - 2, -1, -1):
            extent: Extent = type.shape[axis + 1]
            if extent == DYNAMIC:
                extent = b.value_of(memref.Dim, self.uniform(buffer), b.index_constant(axis + 1))
            found[axis] = nest.multiply(b, found[axis + 1], extent)
        return found

    # Control.

    def widened(self, value: Value) -> Type:
        """The type that a carried value gets."""
        return VectorType([self.lanes], value.type) if value in self.varying else value.type

    def carried(self, value: Value, wide: bool) -> Value:
        """A value as it is carried."""
        return self.vector(value) if wide else self.uniform(value)

    def bind(self, old: Value, new: Value) -> None:
        """Say what a value became."""
        if old in self.varying:
            self.wide[old] = new
        else:
            self.table[old] = new

    def loop(self, op: scf.For) -> None:
        """A loop in order; it carries vectors where a value varies."""
        inits = [self.carried(v, a in self.varying) for v, a in zip(op.inits, op.carried, strict=True)]
        lower, upper, step = (self.uniform(v) for v in (op.lower, op.upper, op.step))
        new = scf.For.build(self.b, lower, upper, step, inits, name=op.counter.name)
        new.attributes.update(op.attributes)
        self.table[op.counter] = new.counter
        for old, argument in zip(op.carried, new.carried, strict=True):
            argument.name = old.name
            self.bind(old, argument)
        with self.b.at(new.body.block):
            ends = self.block(op.body.block)
            values = [self.carried(v, a in self.varying) for v, a in zip(ends, op.carried, strict=True)]
            self.b.create(scf.Yield, values)
        for old, result in zip(op.results, new.results, strict=True):
            self.bind(old, result)

    def forall(self, op: scf.Forall) -> None:
        """Points inside a point."""
        lower, upper, step = (
            [self.uniform(e) if isinstance(e, Value) else e for e in entries]
            for entries in (op.lower, op.upper, op.step)
        )
        new = scf.Forall.build(self.b, upper, lower, step, op.mapping, [a.name or "i" for a in op.axes])
        new.attributes.update(op.attributes)
        self.table.update(zip(op.axes, new.axes, strict=True))
        with self.b.at(new.body.block, new.body.block.last):
            self.block(op.body.block)

    def uniform_if(self, op: scf.If) -> None:
        """A choice that all lanes make alike."""
        types = [self.widened(r) for r in op.results]
        new = scf.If.build(self.b, self.uniform(op.condition), types, bool(op.otherwise.blocks))
        for old, region in zip(op.regions, new.regions, strict=True):
            if old.blocks:
                with self.b.at(region.block):
                    ends = self.block(old.block)
                    values = [self.carried(v, r in self.varying) for v, r in zip(ends, op.results, strict=True)]
                    self.b.create(scf.Yield, values)
        for old, result in zip(op.results, new.results, strict=True):
            self.bind(old, result)

    def divergent_if(self, op: scf.If) -> None:
        """A choice that each lane makes: both branches, each under its mask."""
        condition = self.vector(op.condition)
        yielded = [
            self.branch(region, condition, negated=i == 1) for i, region in enumerate(op.regions) if region.blocks
        ]
        for result, *values in zip(op.results, *yielded, strict=True):
            self.wide[result] = self.b.value_of(arith.Select, condition, *values)

    def branch(self, region: Region, condition: Value, negated: bool) -> list[Value]:
        """One branch under its mask; what it yields."""
        saved = self.mask
        if any(isinstance(o, memref.Load | memref.Store) for inner in region.block for o in inner.walk()):
            chosen = condition
            if negated:
                chosen = self.b.xor(condition, self.b.constant(constant_attr(1, condition.type)))
            self.mask = chosen if self.mask is None else self.b.and_(self.mask, chosen)
        values = [self.vector(v) for v in self.block(region.block)]
        self.mask = saved
        return values

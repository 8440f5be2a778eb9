"""block-reduction: a fold goes block by block outside the loops over its results.

In: kernels whose schedule names the axis of a fold in `loops = [[axis, block], ..]`.  Out: a loop over blocks of the
fold around the band of foralls; between blocks the partial results lie where the results will.

    scf.forall (%i) in (64) { scf.forall (%j) in (64) {
      %s = scf.for %k = 0 to 1024 step 1 iter_args(%a = %zero) -> (f32) {..}
      %r = ..%s..
      memref.store %r, %c[%i, %j]
    } }
        becomes
    scf.for %k0 = 0 to 1024 step 256 {
      %first = arith.cmpi eq, %k0, 0
      %last = arith.cmpi sge, %k0 + 256, 1024
      scf.forall (%i) in (64) { scf.forall (%j) in (64) {
        %init = scf.if %first -> (f32) { %zero } else { memref.load %c[%i, %j] }
        %s = scf.for %kk = 0 to 256 step 1 iter_args(%a = %init) -> (f32) {.. %k0 + %kk ..}
        scf.if %last { %r = ..%s.. memref.store %r, %c[%i, %j] } else { memref.store %s, %c[%i, %j] }
      } }
    }

Exact: the fold goes on from the stored partial result in the same order.  Legal when the fold is the only loop in a
perfect nest of foralls, what stands before it is pure, and the loops around carry nothing.  The results serve as the
partial results when there is one, of the fold's type, stored once at the point of the band, in a buffer that nothing
else in the kernel touches; else they lie in a buffer of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import AXIS, BLOCK, NO_ALIAS
from ...ir.builders.scalar import ScalarBuilder
from ...ir.captures import defined_inside
from ...ir.dialects import arith, func, memref, scf
from ...ir.effects import is_pure, only_reads
from ...ir.operations import Operation
from ...ir.support.mixed import Extent, known
from ...ir.target import ALIGNMENT
from ...ir.types import DYNAMIC, MemRefType, Type
from ...ir.values import BlockArgument, Value
from ..analysis.legality import IllegalError
from ..manager import Pass
from ..schedules.remarks import entry, not_applied
from ..schedules.schedule import Schedule
from . import nest


@dataclass
class BlockReduction(Pass):
    """Block the folds that the schedule names."""

    name: ClassVar[str] = "block-reduction"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            schedule = Schedule.of(function)
            axes = {axis for axis, _ in schedule.loops}
            for place, (axis, size) in enumerate(schedule.loops):
                folds = [o for o in function.walk() if isinstance(o, scf.For) and o.inits and nest.axis_of(o) == axis]
                for loop in folds:
                    try:
                        block_reduction(function, loop, size, place, axes)
                        self.count("blocked")
                    except IllegalError as reason:
                        self.count(f"not blocked: {reason}")
                        not_applied(self, function, entry("loops", axis, size), reason)


def block_reduction(function: func.Func, loop: scf.For, size: int, place: int, axes: set[int]) -> None:
    """Block one fold by `size`; `axes` are those whose foralls go inside the loop over blocks."""
    band = _band(loop, axes)
    if not band:
        raise IllegalError("the fold stands in no nest")
    if known(loop.lower) != 0 or known(loop.step) != 1:
        raise IllegalError("the fold does not count from zero by one")
    body = band[-1].body.block
    before = [op for op in nest.body_ops(body) if op is not loop and op.is_before(loop)]
    after = [op for op in nest.body_ops(body) if op is not loop and loop.is_before(op)]
    if any(op.regions or not only_reads(op) for op in before):
        raise IllegalError("something that is not pure stands before the fold")
    if defined_inside(loop.upper, band[0]) and known(loop.upper) is None and not _hoist(loop.upper, band):
        raise IllegalError("the extent of the fold depends on the point")
    extent = nest.simple(loop.upper)
    if isinstance(extent, int) and extent <= size:
        raise IllegalError("one block holds the fold")
    b = ScalarBuilder(before=band[0], location=loop.location)
    point = [forall.axes[0] for forall in band]
    buffers = _partials(b, function, loop, band, after)
    zero, step = b.index_constant(0), b.index_constant(size)
    # A fold of nothing still has its result to store.
    upper = extent if isinstance(extent, int) else b.value_of(arith.MaxSI, extent, b.index_constant(1))
    outer = scf.For.build(b, zero, b.index_of(upper), step, name=f"{loop.counter.name or 'k'}0")
    outer.attributes.update({AXIS: nest.number(nest.axis_of(loop) or 0), BLOCK: nest.number(place)})
    inner = ScalarBuilder(outer.body.block, location=loop.location)
    first = inner.cmp("eq", outer.counter, zero)
    end = inner.value_of(arith.AddI, outer.counter, step)
    last = inner.cmp("sge", end, inner.index_of(extent))
    left = nest.subtract(inner, extent, outer.counter)
    divides = isinstance(extent, int) and extent % size == 0
    count: Extent = size if divides else nest.minimum(inner, size, left)
    trips = inner.index_of(count)
    band[0].detach()
    outer.body.block.append(band[0])
    inner.create(scf.Yield, [])
    _rewrite(loop, after, outer.counter, size, trips, first, last, buffers, point)


def _hoist(value: Value, band: Sequence[scf.Forall]) -> bool:
    """Compute an extent before the band, where it is the same for all its points; whether it is now."""
    needed: list[Operation] = []
    pending = [value]
    while pending:
        found = pending.pop()
        maker = found.defining_op
        if not defined_inside(found, band[0]):
            continue
        if maker is None or maker.regions or not is_pure(maker):
            return False
        if maker not in needed:
            needed.append(maker)
            pending += maker.operands
    body = band[-1].body.block
    if any(op.parent is not body for op in needed):
        return False
    for op in [op for op in body if op in needed]:
        op.move_before(band[0])
    return True


def _band(loop: scf.For, axes: set[int]) -> list[scf.Forall]:
    """The perfect nest of foralls around a loop, outermost first."""
    band: list[scf.Forall] = []
    child: Operation = loop
    parent = loop.parent_op
    while isinstance(parent, scf.Forall) and nest.axis_of(parent) in axes and len(parent.axes) == 1:
        if band and not (parent.body.block.first is child and isinstance(child.next, scf.InParallel)):
            break
        band.insert(0, parent)
        child, parent = parent, parent.parent_op
    return band


Place = tuple[Value, Sequence[Value]]


def _partials(
    b: ScalarBuilder, function: func.Func, loop: scf.For, band: Sequence[scf.Forall], after: Sequence[Operation]
) -> list[Place]:
    """Where each carried value lies between blocks."""
    point = [forall.axes[0] for forall in band]
    stores = [o for op in after for o in op.walk() if isinstance(o, memref.Store)]
    if len(loop.inits) == 1 and len(stores) == 1 and stores[0].parent is band[-1].body.block:
        (store,) = stores
        if (
            isinstance(store.memref.type, MemRefType)
            and store.memref.type.element is loop.inits[0].type
            and list(store.memref.users) == [store]
            and isinstance(store.memref, BlockArgument)
            and NO_ALIAS in function.attributes
            and all(i in point or not defined_inside(i, band[-1]) for i in store.indices)
            and set(point) <= set(store.indices)
        ):
            return [(store.memref, list(store.indices))]
    return [(_scratch(b, function, v.type, band), point) for v in loop.inits]


def _scratch(b: ScalarBuilder, function: func.Func, type: Type, band: Sequence[scf.Forall]) -> Value:
    """A buffer with an element for each point of the band."""
    extents = [forall.upper[0] for forall in band]
    shape = [e if isinstance(e, int) else DYNAMIC for e in extents]
    sizes = [e for e in extents if isinstance(e, Value)]
    buffer = b.value_of(memref.Alloc, sizes, [], results=[MemRefType(shape, type)], alignment=ALIGNMENT)
    ScalarBuilder(before=band[0].next, location=b.location).create(memref.Dealloc, buffer)
    return buffer


def _rewrite(
    loop: scf.For,
    after: Sequence[Operation],
    base: Value,
    size: int,
    trips: Value,
    first: Value,
    last: Value,
    buffers: Sequence[Place],
    point: Sequence[Value],
) -> None:
    """The body of the band for one block of the fold."""
    b = ScalarBuilder(before=loop, location=loop.location)
    start = scf.If.build(b, first, [v.type for v in loop.inits])
    with b.at(start.then.block):
        b.create(scf.Yield, list(loop.inits))
    with b.at(start.otherwise.block):
        b.create(scf.Yield, [b.value_of(memref.Load, buffer, at) for buffer, at in buffers])
    if size == 1:
        sums = _body(b, loop, base, start.results) if known(trips) == 1 else _one(b, loop, base, trips, start.results)
    else:
        inside = scf.For.build(
            b, b.index_constant(0), trips, b.index_constant(1), list(start.results), name=loop.counter.name
        )
        inside.attributes.update(loop.attributes)
        with b.at(inside.body.block):
            counter = b.value_of(arith.AddI, base, inside.counter)
            b.create(scf.Yield, _body(b, loop, counter, inside.carried))
        sums = list(inside.results)
    choice = scf.If.build(b, last, [], True)
    for old, new in zip(loop.results, sums, strict=True):
        old.replace_by(new)
    for op in after:
        op.detach()
        choice.then.block.append(op)
    with b.at(choice.then.block):
        b.create(scf.Yield, [])
    with b.at(choice.otherwise.block):
        for (buffer, at), value in zip(buffers, sums, strict=True):
            b.create(memref.Store, value, buffer, at)
        b.create(scf.Yield, [])
    loop.erase()


def _one(b: ScalarBuilder, loop: scf.For, base: Value, trips: Value, carried: Sequence[Value]) -> list[Value]:
    """The only step of a block, if the fold has one at all."""
    choice = scf.If.build(b, b.cmp("ne", trips, 0), [v.type for v in carried])
    with b.at(choice.then.block):
        b.create(scf.Yield, _body(b, loop, base, carried))
    with b.at(choice.otherwise.block):
        b.create(scf.Yield, list(carried))
    return list(choice.results)


def _body(b: ScalarBuilder, loop: scf.For, counter: Value, carried: Sequence[Value]) -> list[Value]:
    """A copy of one step of a loop; what it carries on."""
    table: dict[Value, Value] = {loop.counter: counter, **dict(zip(loop.carried, carried, strict=True))}
    last = loop.body.block.terminator
    for op in loop.body.block:
        if op is not last:
            b.insert(op.clone(table))
    return [table.get(v, v) for v in last.operands]

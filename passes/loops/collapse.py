"""collapse: two loops over neighbouring axes of contiguous buffers become one.

In: kernels whose schedule makes vectors along an axis and no blocks.  Out: perfect nests of foralls that end in that
axis are as shallow as they can be, so that vectors run over the ends of rows.

    scf.forall (%i) in (64) { scf.forall (%j) in (3) { .. memref.load %x[%i, %j] : memref<64x3xf32> .. } }
        becomes
    %0 = memref.collapse_shape %x [[0, 1]] : memref<64x3xf32> into memref<192xf32>
    scf.forall (%j) in (192) { .. memref.load %0[%j] : memref<192xf32> .. }

Legal when the counters of both loops are used as neighbouring subscripts only, in buffers that are contiguous and as
wide as the inner loop is long.  The loop that is left keeps the inner axis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.attributes import ArrayAttr, IntegerAttr
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import memref, scf
from ...ir.operations import Operation
from ...ir.types import I64, MemRefType
from ...ir.values import Value
from ..analysis.legality import IllegalError
from ..manager import Pass
from ..schedules.schedule import Schedule
from . import nest


@dataclass
class Collapse(Pass):
    """Collapse the nests that end in a vectorized axis."""

    name: ClassVar[str] = "collapse"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            schedule = Schedule.of(function)
            for axis, _ in schedule.vector if not schedule.loops else ():
                for loop in nest.point_loops(function, axis):
                    try:
                        while isinstance(outer := loop.parent_op, scf.Forall):
                            loop = collapse(outer, loop)
                            self.count("collapsed")
                    except IllegalError as reason:
                        self.count(f"not collapsed: {reason}")


def collapse(outer: scf.Forall, inner: scf.Forall) -> scf.Forall:
    """Make one loop of two; the loop."""
    if outer.body.block.first is not inner or not isinstance(inner.next, scf.InParallel):
        raise IllegalError("the nest is not perfect")
    if not (outer.is_normalized and inner.is_normalized and len(outer.axes) == len(inner.axes) == 1):
        raise IllegalError("the loops do not count from zero by one")
    (width,) = inner.upper
    if not isinstance(width, int):
        raise IllegalError("the width of a row is not known")
    i, j = outer.axes[0], inner.axes[0]
    users = [*dict.fromkeys([*i.users, *j.users])]
    places = [_place(op, i, j, width) for op in users]
    b = ScalarBuilder(before=outer, location=outer.location)
    new = nest.forall(b, 0, nest.multiply(b, outer.upper[0], width), name=j.name, attributes=dict(inner.attributes))
    views: dict[tuple[Value, int], Value] = {}
    for op, place in zip(users, places, strict=True):
        assert isinstance(op, memref.Load | memref.Store)
        buffer = op.memref
        view = views.get((buffer, place))
        if view is None:
            view = views[buffer, place] = _merged(ScalarBuilder(before=new, location=op.location), buffer, place)
        indices = [*op.indices[:place], new.axes[0], *op.indices[place + 2 :]]
        op.set_operands([*([op.value] if isinstance(op, memref.Store) else []), view, *indices])
    end = new.body.block.last
    assert end is not None
    for op in nest.body_ops(inner.body.block):
        op.move_before(end)
    outer.erase()
    return new


def _place(op: Operation, i: Value, j: Value, width: int) -> int:
    """Where an access has both counters as neighbours."""
    if not isinstance(op, memref.Load | memref.Store):
        raise IllegalError("a counter is used for more than subscripts")
    type = op.memref.type
    assert isinstance(type, MemRefType)
    indices = list(op.indices)
    if indices.count(i) != 1 or indices.count(j) != 1 or indices.index(j) != indices.index(i) + 1:
        raise IllegalError("an access does not have the counters side by side")
    if type.layout is not None or type.shape[indices.index(j)] != width:
        raise IllegalError("a buffer is not contiguous where the loops run")
    if isinstance(op, memref.Store) and op.value in (i, j):
        raise IllegalError("a counter is used for more than subscripts")
    return indices.index(i)


def _merged(b: ScalarBuilder, buffer: Value, place: int) -> Value:
    """A view of a buffer with two neighbouring axes merged."""
    assert isinstance(buffer.type, MemRefType)
    groups = [[a] for a in range(buffer.type.rank)]
    groups[place : place + 2] = [[place, place + 1]]
    numbers = ArrayAttr([ArrayAttr([IntegerAttr(a, I64) for a in g]) for g in groups])
    return b.create(memref.CollapseShape, buffer, reassociation=numbers).result

"""What a schedule is chosen by: the axes of a launch, its accesses, and how each axis moves through memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum

from ...ir.dialects import kernel
from ...ir.operations import Operation
from ...ir.support.mixed import Extent
from ...ir.types import element_bytes
from ...ir.values import BlockArgument, Value
from ..kernel import build, structure

Access = kernel.Load | kernel.Store | kernel.Accumulate


class Movement(Enum):
    """How an access moves along an axis."""

    INVARIANT = "not at all"
    UNIT_STRIDE = "to the neighbour"
    STRIDED = "elsewhere"


@dataclass
class Axis:
    """An axis of a launch: its number, index value and extent, and the op whose axis it is."""

    number: int
    value: BlockArgument
    extent: Extent
    op: kernel.Axes

    @property
    def size(self) -> float:
        """The extent; infinite when it is known at run time only."""
        return self.extent if isinstance(self.extent, int) else math.inf


@dataclass
class LaunchAnalysis:
    """The axes and accesses of a launch."""

    launch: kernel.Launch
    axes: list[Axis] = field(default_factory=list[Axis])
    accesses: list[Access] = field(default_factory=list[Access])

    @staticmethod
    def of(launch: kernel.Launch) -> LaunchAnalysis:
        """The analysis of a launch."""
        found = LaunchAnalysis(launch)
        for op in launch.walk():
            if isinstance(op, kernel.Axes):
                for value, extent in zip(op.axes, op.bounds, strict=True):
                    found.axes.append(Axis(len(found.axes), value, extent, op))
            elif isinstance(op, Access):
                found.accesses.append(op)
        return found

    @property
    def domain(self) -> list[Axis]:
        """The axes of the points."""
        return self.axes[: self.launch.rank]

    @property
    def accumulated(self) -> list[Axis]:
        """The axes of the points along which an accumulate adds to the same elements."""
        accumulates = [a for a in self.accesses if isinstance(a, kernel.Accumulate)]
        return [axis for axis in self.domain if any(accumulates_along(op, axis.value) for op in accumulates)]

    def inner(self) -> Iterator[Axis]:
        """The innermost axes of loops inside a point that hold no further loop."""
        for axis in self.axes[self.launch.rank :]:
            last = axis.value.index == axis.op.rank - 1
            if last and not any(isinstance(o, kernel.Axes) for o in axis.op.walk() if o is not axis.op):
                yield axis

    def within(self, op: Operation) -> list[Access]:
        """The accesses inside an op."""
        return [a for a in self.accesses if op.is_ancestor_of(a)]


def movement(access: Access, axis: Value) -> Movement:
    """How an access moves along an axis."""
    indices = build.indices_of(access)
    places = [i for i, index in enumerate(indices) if any(depends(v, axis) for v in index.values)]
    if not places:
        return Movement.INVARIANT
    last = indices[-1]
    if places != [len(indices) - 1] or axis not in last.values:
        return Movement.STRIDED
    linear = last.expr.linear()
    if linear is None or linear[0].get(last.values.index(axis)) != 1:
        return Movement.STRIDED
    others = [v for v in last.values if v is not axis]
    return Movement.STRIDED if any(depends(v, axis) for v in others) else Movement.UNIT_STRIDE


def accumulates_along(op: kernel.Accumulate, axis: Value) -> bool:
    """Whether all points along an axis add to the same elements."""
    return not any(depends(v, axis) for v in op.indices)


def depends(value: Value, axis: Value) -> bool:
    """Whether an index value is computed from an axis."""
    return any(v is axis for v in origins(value))


def origins(value: Value) -> Iterator[Value]:
    """A value and all that it is computed from, each once."""
    pending, seen = [value], {value}
    while pending:
        found = pending.pop()
        yield found
        maker = found.defining_op
        if maker is not None:
            fresh = [v for v in dict.fromkeys(maker.operands) if v not in seen]
            seen.update(fresh)
            pending += fresh


def bare(access: Access) -> list[Value] | None:
    """The subscripts of an access when each is an index value alone."""
    found = structure.subscripts(access)
    alone = [s for s in found if isinstance(s, Value)]
    return alone if len(alone) == len(found) else None


def widest_bits(launch: kernel.Launch) -> int:
    """The bits of the widest number in memory that a launch touches."""
    widths = [8 * element_bytes(v.type) for v in (*launch.in_arguments, *launch.out_arguments)]
    return max(widths, default=32)


def work(launch: kernel.Launch) -> int:
    """The declared cost of a body."""
    return structure.cost(structure.body(launch))

"""Schedules of kernels whose points are independent and cheap: lanes along the last axis of the domain.

Four vectors a step hide the latency of a short body; a long one has enough independent work in itself, and copies of it
only cost compile time.
"""

from __future__ import annotations

from ...ir.dialects import kernel
from ...ir.target import Target
from ..analysis.launch import Axis, LaunchAnalysis, Movement, movement, widest_bits, work
from .chains import CHAIN, is_long
from .schedule import Schedule

SHORT, LONG = 12, 40
"""Declared costs of a body up to which it is unrolled by four, by two."""
COLUMNS = 8
"""Vectors side by side in a fold along another axis: whole cache lines of each row, and enough sums to hide latency."""
ROWS = 8
"""Rows of a tall fold that are read together; of a long one, as many as are added in one chain (`chains`)."""


def lanes_of(facts: LaunchAnalysis, target: Target) -> int:
    """Lanes of a vector of the widest elements."""
    return max(2, target.vector_bits // max(16, widest_bits(facts.launch)))


def elementwise(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """Vectors along the last axis; None when it has no neighbours in memory."""
    if not facts.domain:
        return None
    axis = facts.domain[-1]
    moves = [movement(a, axis.value) for a in facts.accesses]
    if Movement.UNIT_STRIDE not in moves or axis.size < 2:
        return None
    lanes = lanes_of(facts, target)
    cost = work(facts.launch)
    folds = len(facts.axes) > len(facts.domain)
    if any(isinstance(a.op, kernel.Local) for a in facts.axes):
        # Each lane has its own of the locals; copies of the body would need as many again.
        return Schedule(vector=((axis.number, lanes),))
    copies = COLUMNS if folds and cost <= SHORT else 4 if cost <= SHORT else 2 if cost <= LONG else 1
    fold = _tall_fold(facts)
    if fold is not None and copies == COLUMNS and axis.size > copies * lanes:
        return Schedule(
            loops=((fold.number, CHAIN if is_long(fold.size) else ROWS), (axis.number, copies * lanes)),
            vector=((axis.number, lanes),),
            unroll=((axis.number, copies),),
        )
    accumulates = any(
        isinstance(a, kernel.Accumulate) and movement(a, axis.value) == Movement.INVARIANT for a in facts.accesses
    )
    if accumulates:
        # The lanes of a split axis are all there is to unroll.
        while copies > 1 and axis.size < copies * lanes:
            copies //= 2
    return Schedule(
        split=((axis.number, copies * lanes),) if accumulates else (),
        vector=((axis.number, lanes),),
        unroll=((axis.number, copies),) if copies > 1 else (),
    )


def _tall_fold(facts: LaunchAnalysis) -> Axis | None:
    """The axis of the only fold, when it is long."""
    loops = facts.axes[len(facts.domain) :]
    if len(loops) == 1 and isinstance(loops[0].op, kernel.Reduce) and loops[0].size > 4 * ROWS:
        return loops[0]
    return None


def fits(facts: LaunchAnalysis) -> bool:
    """Whether all accesses lie side by side along the last axis, or do not move with it."""
    axis = facts.domain[-1].value if facts.domain else None
    return axis is not None and all(
        movement(a, axis) in (Movement.INVARIANT, Movement.UNIT_STRIDE) for a in facts.accesses
    )

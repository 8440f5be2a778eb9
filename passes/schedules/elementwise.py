"""Schedules of kernels whose points are independent and cheap: lanes along the last axis of the domain.

Several vectors a step hide the latency of a short body; a long one has enough independent work in itself, and copies of
it only cost compile time.
"""

from __future__ import annotations

from ...ir.dialects import kernel
from ...ir.target import Target
from ..analysis.launch import Axis, LaunchAnalysis, Movement, movement, widest_bits, work
from .chains import CHAIN, is_long
from .schedule import Schedule

SHORT, LONG = 12, 40
"""Declared costs of a body, in additions, up to which it is unrolled in full, by half: from a dozen ops on, several of
a body run at once by themselves.  A property of programs; how many copies are full is the target's."""


def lanes_of(facts: LaunchAnalysis, target: Target) -> int:
    """Lanes of a vector of the widest elements."""
    return max(2, target.vector_bits // max(16, widest_bits(facts.launch)))


def copies_of(cost: int, target: Target) -> int:
    """Copies of a body of some cost, side by side, that keep a core busy."""
    full = target.independent_vectors
    return full if cost <= SHORT else max(1, full // 2) if cost <= LONG else 1


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
    copies = copies_of(cost, target)
    if folds and cost <= SHORT:
        # A fold along another axis reads whole cache lines of each row, and holds its sums meanwhile.
        copies *= 2
        fold = _tall_fold(facts, target)
        if fold is not None and axis.size > copies * lanes:
            # The rows that are read together; of a long fold, as many as are added in one chain.
            rows = CHAIN if is_long(fold.size) else target.streams
            return Schedule(
                loops=((fold.number, rows), (axis.number, copies * lanes)),
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


def _tall_fold(facts: LaunchAnalysis, target: Target) -> Axis | None:
    """The axis of the only fold, when it is long."""
    loops = facts.axes[len(facts.domain) :]
    if len(loops) == 1 and isinstance(loops[0].op, kernel.Reduce) and loops[0].size > 4 * target.streams:
        return loops[0]
    return None


def fits(facts: LaunchAnalysis) -> bool:
    """Whether all accesses lie side by side along the last axis, or do not move with it."""
    axis = facts.domain[-1].value if facts.domain else None
    return axis is not None and all(
        movement(a, axis) in (Movement.INVARIANT, Movement.UNIT_STRIDE) for a in facts.accesses
    )

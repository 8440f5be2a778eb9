"""Blocks for workers where the points of a launch alone give them nothing to do.

A fold that is all that a launch does, and the axes over which accumulates meet, run in order; cut in blocks, each with
partial results of its own, they run on several threads.  The number of blocks depends on the extent alone.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.dialects import kernel
from .facts import Axis, Facts, depends
from .schedule import WORKER, Schedule

MOST_BLOCKS = 32
LEAST_POINTS = 1 << 17
"""Points of a launch, inner loops counted, from which blocks pay."""


def blocks_for_workers(facts: Facts, schedule: Schedule) -> Schedule:
    """The schedule with a block loop in front that workers run, where there is need of one."""
    axis = _meeting_axis(facts) or _long_fold(facts, schedule)
    if axis is None or not isinstance(axis.extent, int):
        return schedule
    points = 1.0
    for other in facts.axes:
        points *= other.size
    size = _block_size(axis.extent)
    if points < LEAST_POINTS or size is None:
        return schedule
    map_ = schedule.map or ("",) * len(schedule.loops)
    return replace(schedule, loops=((axis.number, size), *schedule.loops), map=(WORKER, *map_))


def _block_size(extent: int) -> int | None:
    """The points of a block: the most blocks that divide the extent evenly; None of too few, or of no points at all."""
    if extent == 0:
        return None
    counts = [n for n in range(2, MOST_BLOCKS + 1) if extent % n == 0]
    return extent // counts[-1] if counts and counts[-1] >= 4 else None


def _meeting_axis(facts: Facts) -> Axis | None:
    """The first axis of the domain, when accumulates lack it."""
    if not facts.domain:
        return None
    axis = facts.domain[0]
    lacking = any(
        isinstance(a, kernel.Accumulate) and not any(depends(v, axis.value) for v in a.indices) for a in facts.accesses
    )
    return axis if lacking else None


def _long_fold(facts: Facts, schedule: Schedule) -> Axis | None:
    """The first axis of the only fold, when the domain is a point or is read row by row."""
    loops = facts.axes[len(facts.domain) :]
    rows = {axis for axis, _ in schedule.loops}
    if not loops or not isinstance(loops[0].op, kernel.Reduce) or any(a.op is not loops[0].op for a in loops):
        return None
    return loops[0] if not facts.domain or loops[0].number in rows else None

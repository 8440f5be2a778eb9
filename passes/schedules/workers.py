"""Blocks for workers where the points of a launch alone give them nothing to do.

A fold that is all that a launch does runs in order; cut in blocks, each with a partial result of its own, it runs on
several threads.  The number of blocks depends on the extent alone.

A fold that is read row by row gets blocks of `TALL` rows: they bound its chains as well (`chains`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...ir.dialects import kernel
from ...ir.target import Target
from ..analysis.launch import Axis, LaunchAnalysis
from .schedule import WORKER, Schedule

TALL = 1024
"""Rows of a block of a tall fold.  Its sum is cut there, so that no machine has a say in it."""


def blocks_for_workers(facts: LaunchAnalysis, schedule: Schedule, target: Target) -> Schedule:
    """The schedule with a block loop in front that workers run, `target.tasks` blocks at most, where it needs one."""
    axis = _long_fold(facts)
    if axis is None:
        return schedule
    if any(number == axis.number for number, _ in schedule.loops):
        size = _tall_block(axis)
    elif facts.domain:
        return schedule
    else:
        points = math.prod(other.size for other in facts.axes)
        pays = points >= target.task_points
        size = _block_size(axis.extent, target.tasks) if isinstance(axis.extent, int) and pays else None
    if size is None:
        return schedule
    map_ = schedule.map or ("",) * len(schedule.loops)
    return replace(schedule, loops=((axis.number, size), *schedule.loops), map=(WORKER, *map_))


def _block_size(extent: int, tasks: int) -> int | None:
    """The points of a block: the most blocks, up to `tasks`, that divide the extent evenly; None of too few points."""
    if extent == 0:
        return None
    counts = [n for n in range(2, tasks + 1) if extent % n == 0]
    return extent // counts[-1] if counts and counts[-1] >= 4 else None


def _tall_block(axis: Axis) -> int | None:
    """The rows of a block: `TALL`, or a divisor of the extent that is near."""
    if not isinstance(axis.extent, int):
        return TALL
    if axis.extent <= TALL:
        return None
    return next((n for n in range(TALL, TALL // 2, -1) if axis.extent % n == 0), TALL)


def _long_fold(facts: LaunchAnalysis) -> Axis | None:
    """The first axis of the only fold."""
    loops = facts.axes[len(facts.domain) :]
    if not loops or not isinstance(loops[0].op, kernel.Reduce) or any(a.op is not loops[0].op for a in loops):
        return None
    return loops[0]

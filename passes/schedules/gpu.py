"""Schedules of kernels on GPUs: which folds are split over the threads of a block.

A GPU wants some ten thousand threads.  Elementwise kernels have a point for each; a fold has points only where its
results are many.  So a fold that reads along its own axis gets lanes, which read neighbouring elements; one that reads
across, such as the sum of columns, is coalesced with a thread for each point, and gets lanes where points are few.  An
accumulate gets lanes of the domain, each a partial result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from ...ir.dialects import kernel
from ...ir.target import Target
from ..analysis.launch import Axis, LaunchAnalysis, Movement, movement
from .schedule import WORKER, Schedule

STEPS = 4
"""A lane folds at least so many elements, else there is more tree than fold: 32 lanes combine in 5 steps, on any
machine."""


def gpu(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """The folds to split; None where each point is work for one thread."""
    if any(isinstance(op, kernel.Scan) for op in facts.launch.body.block):
        return None
    points = math.prod(axis.size for axis in facts.domain)
    if any(axis.size == 0 for axis in facts.domain):
        return None
    partial = facts.accumulated
    if partial:
        return _partial_results(facts, partial, target)
    folds = list(_folds(facts, target))
    if not folds:
        return None
    lanes = min(_lanes(facts, axis, points, target) for axis in folds)
    if lanes < 2:
        return None
    schedule = Schedule(split=tuple((axis.number, lanes) for axis in folds))
    if len(folds) == 1 and points * lanes < target.resident_threads:
        return _blocks(facts, folds[0], schedule, points, target)
    return schedule


def _blocks(facts: LaunchAnalysis, axis: Axis, schedule: Schedule, points: float, target: Target) -> Schedule:
    """The schedule of a fold with few results, whose blocks become points first, if they divide it."""
    outer = next(a for a in facts.axes if a.op is axis.op)
    extent = outer.extent
    lanes = schedule.split[0][1]
    if not isinstance(extent, int) or extent < 1 or points < 1:
        return schedule
    own = math.prod(a.size for a in facts.axes if a.op is axis.op and a is not outer)
    # One block folds what the blocks leave, a thread for each.
    most = min(target.resident_threads / (points * lanes), extent * own / (STEPS * lanes), target.threads)
    found = [count for count in range(2, int(most) + 1) if extent % count == 0]
    if not found or (outer is axis and extent // found[-1] < lanes):
        return schedule
    return replace(schedule, loops=((outer.number, extent // found[-1]),), map=(WORKER,))


def _folds(facts: LaunchAnalysis, target: Target) -> Iterator[Axis]:
    """The last axes of reduces at the top of a point that are long enough."""
    for axis in facts.axes[facts.launch.rank :]:
        op = axis.op
        if not isinstance(op, kernel.Reduce) or op.tree or op.parent is not facts.launch.body.block:
            continue
        if axis.value.index == op.rank - 1 and axis.size >= 2 * target.warp:
            yield axis


def _lanes(facts: LaunchAnalysis, axis: Axis, points: float, target: Target) -> int:
    """The lanes of a fold; 1 for none."""
    moves = [movement(access, axis.value) for access in facts.within(axis.op)]
    most = min(target.threads, _power_of_two(axis.size / STEPS))
    if Movement.STRIDED not in moves:
        # Along memory, or computed: neighbours are lanes.
        return max(most, target.warp) if Movement.UNIT_STRIDE in moves or points < target.resident_threads else 1
    # Points side by side: a warp of them, and the other threads of a block are lanes.
    across = max(1, target.threads // target.warp) if points >= target.threads else target.warp
    return 1 if points >= target.resident_threads else min(most, across)


def _power_of_two(size: float) -> int:
    return 1 << 30 if math.isinf(size) else 1 << max(0, int(math.log2(max(size, 1))))


def _partial_results(facts: LaunchAnalysis, accumulated: list[Axis], target: Target) -> Schedule | None:
    """Lanes for the longest axis along which points meet, so many that all threads have work."""
    apart = math.prod(axis.size for axis in facts.domain if axis not in accumulated)
    axis = max(accumulated, key=lambda a: a.size)
    lanes = min(
        _power_of_two(target.resident_threads / apart if math.isfinite(apart) else 1),
        _power_of_two(axis.size / STEPS),
        target.threads,
    )
    return Schedule(split=((axis.number, lanes),)) if lanes >= 2 else None

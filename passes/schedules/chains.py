"""Chains: how many numbers a sum adds one after another.

A sum of n numbers in one chain is off by up to n roundings; in chains of chains of 32 by a few times 32, however many
there are.  So folds by addition of floats are cut in chains, and so are accumulates: the points that meet in one go
block by block, each block with a partial result of its own.  What the chains are follows from the extents alone.

Blocks of accumulates serve workers too: each block is work for one.  Accumulates by other operations are cut for
workers only.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ...ir.dialects import arith, kernel
from ...ir.target import Target
from ...ir.types import FloatType
from ..analysis.launch import Axis, LaunchAnalysis
from ..kernel import structure
from .schedule import Pairs, Schedule

CHAIN = 32
"""The most floats that a sum adds one after another, up to a factor of two.  A bound of the error: the same on all
machines, so that their sums are."""
PART = 8
"""The steps of an inner axis in a chain of an accumulate over several axes, where its extent is not known: its share of
`CHAIN`, the others get what is left."""


def with_chains(facts: LaunchAnalysis, schedule: Schedule, target: Target) -> Schedule:
    """A schedule with the chains that the sums of a launch need."""
    of_folds = _of_folds(facts, schedule, target.kind != "cpu")
    return replace(schedule, chain=(*_of_accumulates(facts, schedule, target), *of_folds))


def is_long(steps: float) -> bool:
    """Whether so many steps are too many for one chain."""
    return steps > 2 * CHAIN


def _of_folds(facts: LaunchAnalysis, schedule: Schedule, gpu: bool) -> Pairs:
    """Chains of the reduces."""
    lanes = dict(schedule.split)
    found: list[tuple[int, int]] = []
    for op in dict.fromkeys(a.op for a in facts.axes[facts.launch.rank :]):
        if not isinstance(op, kernel.Reduce) or op.tree or not adds_floats(op):
            continue
        axes = [a for a in facts.axes if a.op is op]
        if gpu and structure.is_product(op) and axes[-1].number not in lanes:
            continue  # map-gpu makes tiles of its loop as it is
        left = CHAIN
        for axis in reversed(axes):
            steps = axis.size / lanes.get(axis.number, 1)
            if steps <= (2 * CHAIN if left == CHAIN else left):
                left = max(2, int(left // max(1, steps)))
            else:
                found.append((axis.number, left))
                left = CHAIN
    return tuple(found)


def adds_floats(op: kernel.Reduce | kernel.Accumulate) -> bool:
    """Whether a monoid adds floats, beside what else it does."""
    values = op.values if isinstance(op, kernel.Accumulate) else op.results
    pairs = zip(op.operators or (), values, strict=False)
    return any(operator is arith.AddF and isinstance(v.type, FloatType) for operator, v in pairs)


def _of_accumulates(facts: LaunchAnalysis, schedule: Schedule, target: Target) -> Pairs:
    """Blocks of the axes of the domain along which points accumulate, the innermost first in need of them."""
    accumulates = [a for a in facts.accesses if isinstance(a, kernel.Accumulate)]
    accumulated = facts.accumulated
    if not accumulated:
        return ()
    if not any(adds_floats(op) for op in accumulates):
        return _for_workers(facts, accumulated[0], target)
    lanes = dict(schedule.split)
    left = CHAIN
    found: list[tuple[int, int]] = []
    for axis in reversed(accumulated):
        across = lanes.get(axis.number, 1)
        steps = axis.size / across
        if steps <= (left if len(accumulated) > 1 else 2 * left):
            left = max(1, left // max(1, math.ceil(steps)))
            continue
        inner = math.isinf(steps) and axis is not accumulated[0]
        own = min(left, PART) if inner else _even(axis, across, left)
        found.append((axis.number, own * across))
        left = left // own if inner else 1
    return tuple(found)


def _even(axis: Axis, across: int, steps: int) -> int:
    """Steps of a block: a divisor of what there are, if one is near."""
    if isinstance(axis.extent, int):
        for own in range(steps, steps // 2, -1):
            if axis.extent % (own * across) == 0:
                return own
    return steps


def _for_workers(facts: LaunchAnalysis, axis: Axis, target: Target) -> Pairs:
    """`target.tasks` blocks at most, that give workers something to do."""
    points = math.prod(a.size for a in facts.axes)
    if not isinstance(axis.extent, int) or axis is not facts.domain[0] or points < target.task_points:
        return ()
    return ((axis.number, -(-axis.extent // target.tasks)),) if axis.extent > target.tasks else ()

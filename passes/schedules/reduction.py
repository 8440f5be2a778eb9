"""Schedules of kernels with loops inside their points: rows that are folded, kept and swept.

Each inner axis whose accesses lie side by side gets lanes.  A fold is split first: lane l of `split` partial results
folds the elements l, l + split, ..; several vectors of them hide the latency of the combining op.
"""

from __future__ import annotations

from ...ir.dialects import kernel
from ...ir.target import Target
from ..analysis.launch import Axis, LaunchAnalysis, Movement, movement
from ..kernel import structure
from .elementwise import copies_of, lanes_of
from .schedule import Schedule


def reduction(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """Lanes along the inner axes; None when no inner axis has neighbours in memory."""
    lanes = lanes_of(facts, target)
    split: list[tuple[int, int]] = []
    vector: list[tuple[int, int]] = []
    unroll: list[tuple[int, int]] = []
    for axis in facts.inner():
        if not _neighbours(facts, axis) or isinstance(axis.op, kernel.Scan) or axis.size < 2:
            continue
        if isinstance(axis.op, kernel.Reduce):
            if axis.size < lanes:
                continue  # no step that all lanes take
            chains = _chains(axis, lanes, target.independent_vectors)
            split.append((axis.number, chains * lanes))
        else:
            chains = copies_of(structure.cost(axis.op.body.block), target)
        vector.append((axis.number, lanes))
        if chains > 1:
            unroll.append((axis.number, chains))
    if not vector:
        return None
    return Schedule(split=tuple(split), vector=tuple(vector), unroll=tuple(unroll))


def _neighbours(facts: LaunchAnalysis, axis: Axis) -> bool:
    moves = [movement(a, axis.value) for a in facts.within(axis.op)]
    return Movement.UNIT_STRIDE in moves and Movement.STRIDED not in moves


def _chains(axis: Axis, lanes: int, most: int) -> int:
    """Vectors of partial results: no more than the extent fills."""
    assert isinstance(axis.op, kernel.Reduce)
    if axis.op.operators is None:
        return 1
    chains = most
    while chains > 1 and axis.size < chains * lanes:
        chains //= 2
    return chains

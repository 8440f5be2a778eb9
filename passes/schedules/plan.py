"""plan: each launch gets a schedule.

In: functions of `kernel.launch` ops.  Out: the same, with the attribute `schedule` on each launch that has none; the
passes below apply it.

    kernel.launch (%i) in (4096) ins(%x : tensor<4096xf32>) outs(%y : tensor<4096xf32>) {..}
        becomes
    kernel.launch (%i) in (4096) .. {..} {schedule = {vector = [[0, 16]], unroll = [[0, 4]]}}

A schedule that is there already, from a person or a tuner, is kept, and its launch marked `nablair.given`: what later
passes cannot do of it, they warn of.

The choice reads the target's numbers, the axes and how each access moves along them (`analysis.launch`), and the
declared monoids and costs; never the names of ops.  The schedules of CPUs say how loops are tiled and vectorized; those
of GPUs only how folds are split, since map-gpu maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import GIVEN, SCHEDULE
from ...ir.attributes import UNIT
from ...ir.dialects import kernel
from ...ir.operations import Operation
from ...ir.target import Target
from ..analysis.launch import LaunchAnalysis
from ..manager import Pass
from .chains import with_chains
from .contraction import contraction
from .elementwise import elementwise, fits
from .gpu import gpu
from .reduction import reduction
from .schedule import Schedule
from .workers import blocks_for_workers


@dataclass
class Plan(Pass):
    """Choose schedules."""

    name: ClassVar[str] = "plan"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: Operation) -> None:
        target = Target.of(op)
        for launch in [o for o in op.walk() if isinstance(o, kernel.Launch)]:
            if launch.schedule is not None:
                launch.attributes[GIVEN] = UNIT
            else:
                schedule = choose(LaunchAnalysis.of(launch), target)
                if schedule is not None:
                    launch.properties[SCHEDULE] = schedule.attribute()


def choose(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """The schedule for a launch."""
    if target.kind != "cpu":
        found = gpu(facts, target)
    else:
        found = contraction(facts, target)
        if found is not None:
            return found
        found = _by_family(facts, target)
    chained = with_chains(facts, found or Schedule(), target)
    return chained if chained != Schedule() or found is not None else None


def _by_family(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """The schedule of a launch that is not a contraction, on a CPU."""
    private = any(isinstance(axis.op, kernel.Local | kernel.Sweep) for axis in facts.axes)
    found = elementwise(facts, target) if fits(facts) else None
    if found is None:
        found = reduction(facts, target) or (None if private else elementwise(facts, target))
    return found if found is None else blocks_for_workers(facts, found, target)

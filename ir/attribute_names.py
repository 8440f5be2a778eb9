"""Names of the discardable attributes by which passes and lowerings speak to each other.

Each is a claim of the pass that wrote it; nothing verifies them.  The pass `strip-annotations` drops those in text that
one does not trust.  A name with our prefix may stand on any op, the others on functions and loops only.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "nablair."

TARGET: Final = "nablair.target"
"""On a module: the device, as `ir.target` reads it.  The only one that is data and no claim."""
KERNEL: Final = "nablair.kernel"
"""On a function: it was a launch, and its loops may be transformed as the schedule has it."""
READ_ONLY: Final = "nablair.readonly"
"""On a function: the numbers of the arguments, buffers, that nobody writes while it runs."""
NO_ALIAS: Final = "nablair.noalias"
"""On a function: its buffers do not overlap, but for those that are read only."""
WORKER: Final = "nablair.worker"
"""On a `scf.forall`: its points are tasks, for several threads."""
PARALLEL: Final = "nablair.parallel"
"""On a `scf.for`: its steps are independent."""
GIVEN: Final = "nablair.given"
"""On a launch or kernel: a person wrote its schedule, so that what cannot be done is a warning."""

SCHEDULE: Final = "schedule"
"""On a function: the schedule of the launch that it was (`passes.schedules.schedule`)."""
AXIS: Final = "axis"
"""On a loop: the number by which the schedule names what it runs over."""
BLOCK: Final = "block"
"""On a block loop: its place in the schedule's `loops`."""
MAX_TRIP_COUNT: Final = "max_trip_count"
"""On a loop with an extent that is known at run time only: it has at most this many points."""

LOOP_CLAIMS: Final = (SCHEDULE, AXIS, BLOCK, MAX_TRIP_COUNT)
"""Those without our prefix."""

SPACE: Final = "space"
"""On a `kernel.local`: where it lies; "out": in the rows of an out."""
RECOMPUTE: Final = "recompute"
"""On a `kernel.local`: its elements are computed where they are read."""

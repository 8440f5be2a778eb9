"""What passes say of schedules that they cannot follow."""

from __future__ import annotations

from ...ir.attribute_names import GIVEN
from ...ir.operations import Operation
from ..manager import Pass


def not_applied(pass_: Pass, kernel: Operation, asked: str, reason: object) -> None:
    """Say why what the schedule of a kernel asks was not done: a warning where it was there before one was chosen."""
    severity = "warning" if GIVEN in kernel.attributes else "remark"
    pass_.remark(f"did not apply {asked}: {reason}", kernel.location, severity)


def entry(key: str, axis: int, size: int) -> str:
    """An entry of a schedule, as it stands there."""
    return f"{key} = [[{axis}, {size}]]"

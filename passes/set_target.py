"""set-target: a module for a kind of device.

In: a module.  Out: the same with `nablair.target` for the kind, with the defaults of `ir.target`, unless it names a
device of that kind already.

    module {..}
        becomes
    module attributes {nablair.target = {kind = "cuda", ..}} {..}

Pipelines for a kind of device begin with it, so that passes choose for that kind also where nobody named a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..ir.operations import Operation
from ..ir.target import ATTRIBUTE, DEFAULTS, Target
from .manager import Pass


@dataclass
class SetTarget(Pass):
    """Say which kind of device a module is for."""

    name: ClassVar[str] = "set-target"
    anchor: ClassVar[str] = "builtin.module"

    kind: Literal["cpu", "opencl", "cuda"] = "cpu"
    """The kind of device."""

    def run(self, op: Operation) -> None:
        if Target.of(op).kind != self.kind:
            op.attributes[ATTRIBUTE] = DEFAULTS[self.kind].attribute()

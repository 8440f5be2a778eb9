"""set-target: a module for a kind of device, or for one of which more is known.

In: a module.  Out: the same with `nablair.target` for the kind, with the defaults of `ir.target`, unless it names a
device of that kind already; without a kind that of the module stays.  Numbers that are given replace what stands there.

    module {..}
        becomes by set-target{kind=cuda threads=128}
    module attributes {nablair.target = {kind = "cuda", threads = 128 : i64, ..}} {..}

Pipelines for a kind of device begin with it, so that passes choose for that kind also where nobody named a device.
Every number of `ir.target.Target` is an option.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, replace
from typing import ClassVar

from ..ir.attribute_names import TARGET
from ..ir.diagnostics import PassError
from ..ir.operations import Operation
from ..ir.target import NUMBERS, Target, of_numbers
from .manager import Pass


class SetTarget(Pass):
    """Say which kind of device a module is for, and its numbers."""

    name: ClassVar[str] = "set-target"
    anchor: ClassVar[str] = "builtin.module"

    def __init__(self, **numbers: str | int | tuple[str, ...]) -> None:
        super().__init__()
        self.numbers = numbers
        try:
            self.target = of_numbers(numbers)
        except ValueError as error:
            raise PassError(f"pass 'set-target' {error}") from None

    @classmethod
    def options(cls) -> dict[str, Field[object]]:
        return {name.replace("_", "-"): f for name, f in NUMBERS.items()}

    def given(self) -> Mapping[str, object]:
        return self.numbers

    def run(self, op: Operation) -> None:
        present = Target.of(op)
        if self.numbers.get("kind", present.kind) != present.kind:
            op.attributes[TARGET] = self.target.attribute()
        elif self.numbers.keys() - {"kind"}:
            op.attributes[TARGET] = replace(present, **self.numbers).attribute()

"""strip-annotations: drop what a text claims of its loops and functions and nothing verifies.

In: any module.  Out: the same without the attributes by which passes tell each other what they know: `nablair.kernel`,
`nablair.noalias`, `nablair.readonly`, `nablair.worker`, the schedules of functions, non-temporal stores.  In a text of
unknown origin they may be lies; passes that run later write their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import LOOP_CLAIMS, PREFIX, TARGET
from ...ir.dialects import func, scf
from ...ir.operations import Operation
from ..manager import Pass


@dataclass
class StripAnnotations(Pass):
    """Drop claims that nothing verifies."""

    name: ClassVar[str] = "strip-annotations"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for inner in op.walk():
            claims = [key for key in inner.attributes if key.startswith(PREFIX) and key != TARGET]
            if isinstance(inner, func.Func | scf.Forall | scf.For):
                claims += [key for key in LOOP_CLAIMS if key in inner.attributes]
            for key in claims:
                del inner.attributes[key]
            inner.properties.pop("nontemporal", None)

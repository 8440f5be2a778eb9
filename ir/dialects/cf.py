"""The one op of upstream's `cf` dialect that the loop level needs: a condition that must hold."""

from __future__ import annotations

from ..definition import Op, operand, string
from ..types import I1


class Assert(Op):
    """`cf.assert %condition, "message"`: the program goes on where the condition holds, and fails where it does not.

    It declares no effects, hence nothing moves across it.
    """

    name = "cf.assert"
    arg = operand()
    msg = string()
    assembly = "$arg `,` $msg attr-dict"

    def verify_(self) -> None:
        if self.arg.type is not I1:
            raise self.error(f"needs a condition of type i1, got {self.arg.type}")

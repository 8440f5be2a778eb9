"""Emission of `math`: only functions that OpenCL C defines exactly.  The others were expanded before."""

from __future__ import annotations

from typing import Any

from ...ir.types import F64, bit_width
from .arith import computed
from .function import Function, emits
from .types import c_type, is_narrow, signed

EXACT = {
    "math.sqrt": "sqrt",
    "math.roundeven": "rint",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.trunc": "trunc",
    "math.absf": "fabs",
    "math.copysign": "copysign",
}
"""sqrt is exact where the program is built with correctly rounded square roots, as the runtime does."""


@emits(*EXACT)
def _function(f: Function, op: Any) -> None:
    f.set(op.result, computed(f, op.result.type, f"{EXACT[op.name]}({', '.join(f.operands(op))})"))


@emits("math.fma")
def _fma(f: Function, op: Any) -> None:
    a, b, c = f.operands(op)
    type = op.result.type
    if is_narrow(type):
        # The product is exact in float, the sum nearly so in double.
        f.type_of(F64)
        f.set(op.result, computed(f, type, f"fma((double){a}, (double){b}, (double){c})", double=True))
    else:
        f.set(op.result, f"fma({a}, {b}, {c})")


@emits("math.absi")
def _absi(f: Function, op: Any) -> None:
    type, text = op.result.type, f.of(op.operand)
    if bit_width(type) == 1:
        f.bind(op.result, text)
    else:
        f.set(op.result, f"({signed(type)}){text} < 0 ? ({c_type(type)})(0 - {text}) : {text}")

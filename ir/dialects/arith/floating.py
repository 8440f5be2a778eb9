"""Floating-point arithmetic: IEEE, rounded to nearest even."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, folded_attr
from ...definition import FLOAT_LIKE, FoldResult, Op, operand, result
from ...interfaces import Evaluates
from ...numeric import where
from ...support.dialect_properties import fast_math
from .base import PURE_SAME, PURE_SAME_COMMUTATIVE, FloatBinary, Monoid, binary, number

if TYPE_CHECKING:
    from ...arrays import Array


class AddF(FloatBinary, Monoid):
    """lhs + rhs."""

    name = "arith.addf"
    traits = PURE_SAME_COMMUTATIVE
    compute = binary("add")
    neutral = -0.0  # +0.0 is not: it turns -0.0 into +0.0
    unit = 0.0


class SubF(FloatBinary):
    """lhs - rhs."""

    name = "arith.subf"
    compute = binary("sub")
    neutral = 0.0


class MulF(FloatBinary, Monoid):
    """lhs * rhs."""

    name = "arith.mulf"
    traits = PURE_SAME_COMMUTATIVE
    compute = binary("mul")
    neutral = 1.0
    unit = 1.0


class DivF(FloatBinary):
    """lhs / rhs."""

    name = "arith.divf"
    cost = 4
    compute = binary("truediv")
    neutral = 1.0


def _remainder(lhs: Any, rhs: Any) -> Any:
    if type(lhs) is float:  # a float64 is one too, by inheritance
        return math.fmod(lhs, rhs) if math.isfinite(lhs) and rhs else math.nan
    import numpy as np

    # Exact in any format, so float64 serves the ones that NumPy computes by way of another.
    return np.fmod(lhs.astype(np.float64), rhs.astype(np.float64)).astype(lhs.dtype)


class RemF(FloatBinary):
    """The remainder of the division rounded toward zero, with the sign of lhs (C's fmod)."""

    name = "arith.remf"
    cost = 20
    compute = binary(_remainder)


class NegF(Op, Evaluates):
    """The sign bit flipped, NaN's too."""

    name = "arith.negf"
    traits = PURE_SAME
    operand = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    fastmath = fast_math()
    assembly = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return -value

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        value = number(constants[0])
        if value is not None and value == value:
            return folded_attr(-value, self.result.type)
        source = self.operand.defining_op
        return source.operand if isinstance(source, NegF) else None


class Extremum(FloatBinary):
    """A maximum or minimum; -0.0 is less than +0.0."""

    traits = PURE_SAME_COMMUTATIVE
    cost = 4
    function: str
    """NumPy's function, which gives the same but for the sign of zero."""
    greatest: bool

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        import numpy as np

        negative = np.signbit(lhs)
        zero = where(negative if self.greatest else ~negative, rhs, lhs)
        return where(lhs == rhs, zero, getattr(np, self.function)(lhs, rhs))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.lhs is self.rhs:
            return self.lhs
        a, b = map(number, constants)
        if a is None or b is None or a != a or b != b:
            return None
        pick = max if self.greatest else min
        return folded_attr(pick(a, b, key=lambda v: (v, math.copysign(1.0, v))), self.result.type)


class MaximumF(Extremum, Monoid):
    """The greater one; NaN when either is NaN."""

    name = "arith.maximumf"
    function, greatest = "maximum", True
    unit = -math.inf


class MinimumF(Extremum, Monoid):
    """The lesser one; NaN when either is NaN."""

    name = "arith.minimumf"
    function, greatest = "minimum", False
    unit = math.inf


class MaxNumF(Extremum):
    """The greater one; the other one when one is NaN."""

    name = "arith.maxnumf"
    function, greatest = "fmax", True


class MinNumF(Extremum):
    """The lesser one; the other one when one is NaN."""

    name = "arith.minnumf"
    function, greatest = "fmin", False

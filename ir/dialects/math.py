"""Mathematical functions on floats: the part of upstream's `math` that is used here.

`evaluate` computes f16, bf16 and f32 in float64 and rounds once, so it is correct but for the rarest of halfway cases;
f64 is NumPy's.  `math.fma` is exactly rounded in every format.  Only functions with exact results are folded.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ..attributes import Attribute, folded_attr
from ..definition import (
    ELEMENTWISE,
    FLOAT_LIKE,
    PURE,
    SAME_TYPE,
    SIGNLESS_LIKE,
    FoldResult,
    Op,
    operand,
    result,
)
from ..interfaces import Evaluates
from ..numeric import is_bool, round_to
from ..support.dialect_properties import fast_math
from .arith.base import number, signed

if TYPE_CHECKING:
    from ..arrays import Array

PURE_SAME = frozenset({PURE, SAME_TYPE, ELEMENTWISE})


class Function(Op, Evaluates):
    """A function of one float."""

    traits = PURE_SAME
    operand = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    fastmath = fast_math()
    assembly = "$operand (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

    function: ClassVar[str]
    """NumPy's function, where it has one."""

    @classmethod
    def compute(cls, x: Array) -> Array:
        """The function on a float64 scalar or array."""
        import numpy as np

        return getattr(np, cls.function)(x)

    def evaluate(self, value: Array) -> Array:
        """The function on a NumPy scalar or array."""
        import numpy as np

        return round_to(self.compute(value.astype(np.float64)), value.dtype)


class Exact(Function):
    """A function whose result is exact or, for sqrt, correctly rounded, so that it may be computed at compile time."""

    @staticmethod
    @abstractmethod
    def python(x: float) -> float:
        """The function on a finite Python float."""

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        value = number(constants[0])
        if value is None or not math.isfinite(value):
            return None
        try:
            return folded_attr(self.python(value), self.result.type)
        except ValueError:
            return None


def _signed_zero(rounded: float, x: float) -> float:
    return math.copysign(rounded, x) if rounded == 0 else float(rounded)


class Sqrt(Exact):
    """The square root, correctly rounded; NaN below zero."""

    name = "math.sqrt"
    cost = 8

    function = "sqrt"

    @staticmethod
    def python(x: float) -> float:
        return math.sqrt(x) if x else x


class RSqrt(Function):
    """1 / sqrt(x)."""

    name = "math.rsqrt"
    cost = 12

    @classmethod
    def compute(cls, x: Array) -> Array:
        import numpy as np

        return 1.0 / np.sqrt(x)


class RoundEven(Exact):
    """The nearest integer, ties to even."""

    name = "math.roundeven"

    function = "rint"

    @staticmethod
    def python(x: float) -> float:
        return _signed_zero(round(x), x)


class Floor(Exact):
    """The greatest integer not above x."""

    name = "math.floor"

    function = "floor"

    @staticmethod
    def python(x: float) -> float:
        return _signed_zero(math.floor(x), x)


class Ceil(Exact):
    """The least integer not below x."""

    name = "math.ceil"

    function = "ceil"

    @staticmethod
    def python(x: float) -> float:
        return _signed_zero(math.ceil(x), x)


class Trunc(Exact):
    """The integer part."""

    name = "math.trunc"

    function = "trunc"

    @staticmethod
    def python(x: float) -> float:
        return _signed_zero(math.trunc(x), x)


class AbsF(Exact):
    """The sign bit cleared, NaN's too."""

    name = "math.absf"

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return abs(value)

    @staticmethod
    def python(x: float) -> float:
        return abs(x)


class AbsI(Op, Evaluates):
    """The absolute value of a signed integer; the least one stays."""

    name = "math.absi"
    traits = PURE_SAME
    operand = operand(SIGNLESS_LIKE)
    result = result(SIGNLESS_LIKE)
    assembly = "$operand attr-dict `:` type($result)"

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return value if is_bool(value) else abs(signed(value))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        value = number(constants[0])
        return None if value is None else folded_attr(abs(value), self.result.type)


class Exp(Function):
    """e**x."""

    name = "math.exp"
    cost = 16

    function = "exp"


class Exp2(Function):
    """2**x."""

    name = "math.exp2"
    cost = 14

    function = "exp2"


class ExpM1(Function):
    """e**x - 1."""

    name = "math.expm1"
    cost = 20

    function = "expm1"


class Log(Function):
    """The natural logarithm; -inf at 0, NaN below."""

    name = "math.log"
    cost = 18

    function = "log"


class Log2(Function):
    """The logarithm to base 2."""

    name = "math.log2"
    cost = 18

    function = "log2"


class Log10(Function):
    """The logarithm to base 10."""

    name = "math.log10"
    cost = 18

    function = "log10"


class Log1p(Function):
    """log(1 + x)."""

    name = "math.log1p"
    cost = 20

    function = "log1p"


class Sinh(Function):
    """The hyperbolic sine."""

    name = "math.sinh"
    cost = 24

    function = "sinh"


class Cosh(Function):
    """The hyperbolic cosine."""

    name = "math.cosh"
    cost = 20

    function = "cosh"


class Tanh(Function):
    """The hyperbolic tangent."""

    name = "math.tanh"
    cost = 20

    function = "tanh"


class Erf(Function):
    """The error function."""

    name = "math.erf"
    cost = 20

    @classmethod
    def compute(cls, x: Array) -> Array:
        import numpy as np

        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)[()]


class Sin(Function):
    """The sine."""

    name = "math.sin"
    cost = 20

    function = "sin"


class Cos(Function):
    """The cosine."""

    name = "math.cos"
    cost = 20

    function = "cos"


class Tan(Function):
    """The tangent."""

    name = "math.tan"
    cost = 40

    function = "tan"


class Asin(Function):
    """The inverse of the sine, in [-pi/2, pi/2]; NaN beyond 1."""

    name = "math.asin"
    cost = 24

    function = "arcsin"


class Acos(Function):
    """The inverse of the cosine, in [0, pi]; NaN beyond 1."""

    name = "math.acos"
    cost = 28

    function = "arccos"


class Atan(Function):
    """The inverse of the tangent, in [-pi/2, pi/2]."""

    name = "math.atan"
    cost = 24

    function = "arctan"


class Asinh(Function):
    """The inverse of the hyperbolic sine."""

    name = "math.asinh"
    cost = 60

    function = "arcsinh"


class Acosh(Function):
    """The inverse of the hyperbolic cosine, not negative; NaN below 1."""

    name = "math.acosh"
    cost = 60

    function = "arccosh"


class Atanh(Function):
    """The inverse of the hyperbolic tangent; infinite at 1, NaN beyond."""

    name = "math.atanh"
    cost = 56

    function = "arctanh"


class BinaryFunction(Op, Evaluates):
    """A function of two floats."""

    traits = PURE_SAME
    lhs = operand(FLOAT_LIKE)
    rhs = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    fastmath = fast_math()
    assembly = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"
    function: ClassVar[str]
    """NumPy's function."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The function on NumPy scalars or arrays of one dtype."""
        import numpy as np

        found = getattr(np, self.function)(lhs.astype(np.float64), rhs.astype(np.float64))
        return round_to(found, lhs.dtype)


class CopySign(BinaryFunction):
    """|lhs| with the sign of rhs."""

    name = "math.copysign"
    function = "copysign"

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        a, b = map(number, constants)
        if a is None or b is None or a != a or b != b:
            return None
        return folded_attr(math.copysign(a, b), self.result.type)


class PowF(BinaryFunction):
    """lhs ** rhs; 1 where rhs is 0 or lhs is 1, NaN included."""

    name = "math.powf"
    cost = 40
    function = "power"

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        power = number(constants[1])
        return self.lhs if power == 1.0 else None


class Atan2(BinaryFunction):
    """The angle of the point (rhs, lhs), in [-pi, pi]; quadrants and zeros as in C."""

    name = "math.atan2"
    cost = 30
    function = "arctan2"


class Fma(Op, Evaluates):
    """a * b + c, rounded once."""

    name = "math.fma"
    traits = PURE_SAME
    a = operand(FLOAT_LIKE)
    b = operand(FLOAT_LIKE)
    c = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    fastmath = fast_math()
    assembly = "$a `,` $b `,` $c (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"

    def evaluate(self, a: Array, b: Array, c: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        import numpy as np

        wide = [np.asarray(v, np.float64) for v in (a, b, c)]
        with np.errstate(all="ignore"):
            if a.dtype == np.float64:
                return _fma64(*wide)[()]
            # A product of narrow floats is exact in float64; the sum, rounded to odd, may then be rounded again.
            return round_to(_add_odd(wide[0] * wide[1], wide[2]), a.dtype)[()]


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded product and its error (Dekker, with Veltkamp's splitting)."""

    def halves(x: Array) -> tuple[Array, Array]:
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _add_odd(a: Array, b: Array) -> Array:
    """a + b in float64, rounded to odd: where inexact, to the neighbour whose last bit is set (Boldo, Melquiond)."""
    import numpy as np

    total, error = _two_sum(a, b)
    even = (np.asarray(total).view(np.int64) & 1) == 0
    move = np.isfinite(total) & (error != 0) & even
    return np.where(move, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)


def _fma64(a: Array, b: Array, c: Array) -> Array:
    """Emulation by Boldo and Melquiond, "Emulation of FMA and correctly rounded sums"; exact fractions at the edges."""
    import numpy as np

    a, b, c = np.broadcast_arrays(a, b, c)
    product, low = _two_product(a, b)
    middle, tail = _two_sum(c, low)
    high, rest = _two_sum(product, middle)
    found = np.asarray(high + _add_odd(rest, tail))
    magnitudes = [np.abs(v) for v in (a, b, product)]
    safe = np.ones(a.shape, bool)
    for m in magnitudes:
        safe &= (m < 1e290) & ((m > 1e-270) | (m == 0))
    safe &= (np.abs(c) < 1e290) & (product != 0)
    for place in np.argwhere(~safe):
        i = tuple(place)
        found[i] = _fma_fraction(float(a[i]), float(b[i]), float(c[i]))
    return found


def _fma_fraction(a: float, b: float, c: float) -> float:
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)) or a == 0 or b == 0:
        # The product must not overflow beside an infinite c; otherwise two roundings are as good as one here.
        product = a * b if math.isfinite(c) or not (math.isfinite(a) and math.isfinite(b)) else 0.0
        return product + c
    from fractions import Fraction

    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return c + -c if c else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf

"""Parts of scalar forms that keep functions accurate far from 0, where their results are exponentials.

An argument of exp that is rounded costs as many units in the last place as it is large, so it is carried as a sum of
two floats, which fma gives at little cost (Dekker, Numerische Mathematik 18, 1971).  The values are f32 or f64, or
vectors of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ...support.exp_constants import EXP, LN2_HIGH, LN2_LOW, LOG2_E
from ...types import F32, IntegerType, element_type, with_element
from ...values import Value

if TYPE_CHECKING:
    from ...builders.scalar import ScalarBuilder


def is_single(x: Value) -> bool:
    """Whether a value is an f32 and not an f64."""
    return element_type(x.type) is F32


def bounded_size(b: ScalarBuilder, x: Value, single: float, double: float) -> Value:
    """|x|, but at most a limit, which is `single` for f32 and `double` for f64; NaN stays."""
    limit = single if is_single(x) else double
    size = b.abs(x)
    return b.select(b.cmp("ogt", size, limit), b.constant(limit, x.type), size)


def product(b: ScalarBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """(p, e) with p = x y rounded and p + e = x y."""
    p = b.mul(x, y)
    return p, b.fma(x, y, b.neg(p))


@dataclass(frozen=True, slots=True)
class Exponential:
    """e**x as (1 + part) 2**n, with 2**n = power * last; neither factor is denormal."""

    part: Value
    power: Value
    last: float


class Scaled(NamedTuple):
    """factor value, the factor a power of two: a number that may be denormal by one that is not."""

    value: Value
    factor: float


def exponential(b: ScalarBuilder, high: Value, low: Value | None = None, rises: bool = False) -> Exponential:
    """e**(high + low) of a high between -130 (f64: -880) and 0, or 0 and 130 (880) where it `rises`, and of a low as
    small as a rounding error of it.

    As the expansion of `math.exp` has it, but that the low part joins the remainder, and that no bound is needed."""
    width = 32 if is_single(high) else 64
    mantissa, bias, excess = (23, 127, 64) if width == 32 else (52, 1023, 256)
    excess = -excess if rises else excess
    shifter = b.constant(1.5 * 2.0**mantissa + bias + excess, high.type)
    shifted = b.fma(high, LOG2_E, shifter)
    n = b.sub(shifted, shifter)
    near = b.fma(n, -LN2_HIGH[width], high)
    if low is None:
        r = b.fma(n, -LN2_LOW[width], near)
        part = b.fma(b.mul(r, r), polynomial(b, r, EXP[width]), r)
    else:
        low = b.fma(n, -LN2_LOW[width], low)
        r = b.add(near, low)
        part = b.add(near, b.fma(b.mul(r, r), polynomial(b, r, EXP[width]), low))
    bits = b.bitcast(shifted, with_element(high.type, IntegerType(width)))
    return Exponential(part, b.bitcast(b.shl(bits, mantissa), high.type), 2.0**-excess)


def times(b: ScalarBuilder, x: Value, e: Exponential) -> Value:
    """x times the exponential: rounded once beside the rounding of its part, and once more where it is denormal."""
    return b.mul(b.mul(b.fma(x, e.part, x), e.power), e.last)


def polynomial(b: ScalarBuilder, x: Value, coefficients: Sequence[float]) -> Value:
    """c[0] + c[1] x + c[2] x**2 + .., one fma a step."""
    *others, last = coefficients
    total = b.constant(last, x.type)
    for c in reversed(others):
        total = b.fma(total, x, c)
    return total


def over_one_plus(b: ScalarBuilder, x: Value, e: Exponential) -> Scaled:
    """x / (1 + e) of an exponential that rises, rounded twice beside the rounding of the part of e."""
    unit = 1.0 / e.last
    total = b.add(e.power, unit)
    low = b.sub(unit, b.sub(total, e.power))
    return Scaled(b.div(x, b.add(total, b.fma(e.power, e.part, low))), unit)


def rectified_less(b: ScalarBuilder, x: Value, lower: Scaled) -> Value:
    """max(x, 0) - lower, rounded once, of a lower of at least 0, which is 0 at 0: -0.0 stays, and is what is left of a
    negative x where lower is 0."""
    rectified = b.select(b.cmp("ogt", -0.0, x), -0.0, x)
    return b.fma(lower.value, -lower.factor, rectified)

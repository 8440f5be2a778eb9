"""tanh, sinh, cosh and their inverses.

Two regions and one select (both sides are computed). Near zero tanh and sinh are odd polynomials, x + x**3 p(x**2),
whose first term is exact. Elsewhere tanh is 1 - 2 / (e**(2|x|) + 1), whose error is damped by the subtraction, with |x|
bounded where tanh rounds to 1; sinh and cosh are h -+ 1 / (4h) with h = e**|x| / 2, which overflows no earlier than
they do. The inverses are log1p of arguments without cancellation, in f64 for f32 too, since log1p's error adds to the
argument's.
"""

from __future__ import annotations

from collections.abc import Callable

from .builder import MathBuilder, V
from .exponential import exp_moderate, half_exp
from .logarithm import log1p
from .polynomial import horner

TANH = {
    32: (-3.33333e-01, 1.3331936e-01, -5.378463e-02, 2.0797921e-02, -5.8965986e-03),
    64: (
        -0.33333333333333126, 0.13333333333299732, -0.05396825394929355, 0.021869488001687983, -0.008863226754668427,
        0.0035920370995193773, -0.0014552134055321837, 0.0005871801770712576, -0.00023037623317991298,
        7.92857219034757e-05, -1.7162364485496532e-05,
    ),
}  # fmt: skip
"""p with tanh(x) = x + x**3 p(x**2); minimax on |x| <= 0.6 for the error relative to x: 2**-28.5 and 2**-57.8."""

SINH = {
    32: (1.6666667e-01, 8.333311e-03, 1.984263e-04, 2.7839799e-06),
    64: (
        0.16666666666666669, 0.008333333333332915, 0.0001984126984158935, 2.755731910838928e-06, 2.5052130703672664e-08,
        1.605668377534609e-10, 7.775829389479104e-13,
    ),
}  # fmt: skip
"""p with sinh(x) = x + x**3 p(x**2); minimax on |x| <= 1 for the error relative to x: 2**-34.0 and 2**-63.2."""

LOG_2 = 0.6931471805599453
LARGE = 2.0**28
"""Beyond, the square root of x**2 +- 1 in f64 is x."""

TANH_POLYNOMIAL_END = 0.6
TANH_IS_ONE = {32: 10.0, 64: 20.0}


def tanh(b: MathBuilder[V], x: V) -> V:
    width = b.width(x)
    one = b.constant(1.0, x)
    magnitude = b.abs(x)
    z = b.mul(magnitude, magnitude)
    near = b.fma(b.mul(magnitude, z), horner(b, z, TANH[width]), magnitude)
    limit = b.constant(TANH_IS_ONE[width], x)
    bounded = b.select(b.cmp("ogt", magnitude, limit), limit, magnitude)
    e = exp_moderate(b, b.add(bounded, bounded))
    far = b.sub(one, b.div(b.constant(2.0, x), b.add(e, one)))
    y = b.select(b.cmp("olt", magnitude, b.constant(TANH_POLYNOMIAL_END, x)), near, far)
    # The sign comes last: near turns -0.0 to +0.0.
    return b.copysign(y, x)


def sinh(b: MathBuilder[V], x: V) -> V:
    magnitude = b.abs(x)
    z = b.mul(magnitude, magnitude)
    near = b.fma(b.mul(magnitude, z), horner(b, z, SINH[b.width(x)]), magnitude)
    h = half_exp(b, magnitude)
    far = b.sub(h, b.div(b.constant(0.25, x), h))
    return b.copysign(b.select(b.cmp("olt", magnitude, b.constant(1.0, x)), near, far), x)


def cosh(b: MathBuilder[V], x: V) -> V:
    h = half_exp(b, b.abs(x))
    return b.add(h, b.div(b.constant(0.25, x), h))


def in_f64(function: Callable[[MathBuilder[V], V], V], b: MathBuilder[V], x: V) -> V:
    """The function computed in f64 whatever the format of x."""
    return function(b, x) if b.width(x) == 64 else b.truncate(function(b, b.extend(x)))


def asinh(b: MathBuilder[V], x: V) -> V:
    return in_f64(asinh_f64, b, x)


def acosh(b: MathBuilder[V], x: V) -> V:
    return in_f64(acosh_f64, b, x)


def atanh(b: MathBuilder[V], x: V) -> V:
    return in_f64(atanh_f64, b, x)


def log1p_or_log_twice(b: MathBuilder[V], x: V, argument: V) -> V:
    """log1p(argument), but log(2 x) for large x, as log1p(x - 1) + log 2."""
    large = b.cmp("ogt", x, b.constant(LARGE, x))
    argument = b.select(large, b.sub(x, b.constant(1.0, x)), argument)
    return b.add(log1p(b, argument), b.select(large, b.constant(LOG_2, x), b.constant(0.0, x)))


def asinh_f64(b: MathBuilder[V], x: V) -> V:
    """log1p(a + a**2 / (1 + sqrt(1 + a**2))) with a = |x|, and the sign of x."""
    one = b.constant(1.0, x)
    magnitude = b.abs(x)
    square = b.mul(magnitude, magnitude)
    quotient = b.div(square, b.add(one, b.sqrt(b.add(square, one))))
    return b.copysign(log1p_or_log_twice(b, magnitude, b.add(magnitude, quotient)), x)


def acosh_f64(b: MathBuilder[V], x: V) -> V:
    """log1p(t + sqrt(t**2 + 2 t)) with t = x - 1, which is exact near 1."""
    one = b.constant(1.0, x)
    t = b.sub(x, one)
    argument = b.add(t, b.sqrt(b.fma(t, t, b.add(t, t))))
    y = log1p_or_log_twice(b, x, argument)
    return b.select(b.cmp("olt", x, one), b.constant(float("nan"), x), y)


def atanh_f64(b: MathBuilder[V], x: V) -> V:
    """log1p(2a / (1 - a)) / 2 with a = |x|, and the sign of x."""
    magnitude = b.abs(x)
    quotient = b.div(b.add(magnitude, magnitude), b.sub(b.constant(1.0, x), magnitude))
    return b.copysign(b.mul(log1p(b, quotient), b.constant(0.5, x)), x)

"""The standard normal distribution, on floats.

Its lower tail is bell(z) ratio(z) for z >= 0, bell(z) = exp(-z**2 / 2) and ratio(z) = p(t) / (S (z + K)),
t = 2 z / (z + K) - MIDDLE: that variable makes Mills' ratio, which falls as 1 / z, smooth on the whole half-line
(Schonfelder, "Chebyshev expansions for the error and related functions", Mathematics of Computation 32, 1978).  A
MIDDLE below 1 makes t smaller at z = 0, and with it the rounding of t.  Nothing cancels, so that the relative error is
a few units in the last place down to the smallest floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...definition import Sample
from ...interfaces import HasPartials, Tame
from ...support.reference import where
from ...values import Value
from . import tails
from .family import ComposedFloat

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial

SCALE = 0.40625
"""S.  It makes p near sqrt(2) / 2 at z = 0, for `times_lower_tail`, and S (z + K), whose rounding is largest just above
2, cross 2 where the result depends less on it."""

MIDDLE = 0.75

CENTER = {32: 1.361794352531433, 64: 1.375}
"""S K.  That of f32 is one of those whose leading coefficients lie very near to f32 numbers."""

COEFFICIENTS: dict[int, tuple[float, ...]] = {
    32: (
        0.364738464, -0.290276378, 0.148018613, -0.039371334, -0.00166945136, 0.00394331431, -7.00344826e-05,
        -0.00046990838, -9.61010119e-06, 5.50344339e-05,
    ),
    64: (
        0.3656214690756621, -0.2931449903546087, 0.15190920259356527, -0.04210517062332519, -0.0008138288080519585,
        0.00404240949580306, -0.00019642041256992887, -0.00047982658180159, -4.7599801739668146e-06,
        6.592965771194914e-05, 1.14867130229943e-05, -7.842877410170819e-06, -3.772196763138397e-06,
        2.728443586708629e-07, 7.434537674657227e-07, 2.001481028206199e-07, -6.435614583400949e-08,
        -5.921957964552877e-08, -1.4834314256676323e-08, 1.7603379158528078e-09, 8.835199456420216e-09,
        4.396591039705663e-09, -3.5389921524132633e-09, -1.0984468444315683e-09, 1.0045783360795859e-09,
        -1.6187185151941265e-10,
    ),
}  # fmt: skip
"""p; minimax for the relative error on 0 <= z <= 14.5 and on 0 <= z <= 39: 2**-28.1 and 2**-54.8, rounded as here
(2**-56.9 for z <= 1.5)."""

END = 0.45 * SCALE
"""Nearly p at its last z."""

TAIL_IS_ZERO = {32: 14.5, 64: 39.0}
"""Where the lower tail times z rounds to 0."""

INVERSE_ROOT = 1.0 / math.sqrt(2.0 * math.pi)


def bounded_size(b: ScalarBuilder, x: Value) -> Value:
    """|x|, bounded where the tail is 0."""
    return tails.bounded_size(b, x, TAIL_IS_ZERO[32], TAIL_IS_ZERO[64])


def bell(b: ScalarBuilder, z: Value) -> tails.Exponential:
    """exp(-z**2 / 2)."""
    return tails.exponential(b, *tails.product(b, z, b.mul(z, -0.5)))


def divisor(b: ScalarBuilder, z: Value) -> Value:
    """S (z + K)."""
    return b.fma(z, SCALE, CENTER[32 if tails.is_single(z) else 64])


def polynomial(b: ScalarBuilder, quotient: Value) -> tuple[Value, Value]:
    """p, as a sum of two floats, of z / (S (z + K))."""
    t = b.fma(quotient, 2.0 * SCALE, -MIDDLE)
    first, *others = COEFFICIENTS[32 if tails.is_single(t) else 64]
    rest = tails.polynomial(b, t, others)
    high = b.fma(t, rest, first)
    return high, b.fma(t, rest, b.sub(first, high))


def times_lower_tail(b: ScalarBuilder, z: Value) -> tails.Scaled:
    """z times the lower tail at -z, rounded once beside the roundings of its parts.

    The quotient is also the argument of p, where its rounding partly cancels.  So its remainder, a part of z, counts as
    much as the derivative of z ratio(z) says: 1 / 2 at 0, and falling nearly as p**2 - END**2."""
    e = bell(b, z)
    below = divisor(b, z)
    quotient = b.div(z, below)
    p, p_low = polynomial(b, quotient)
    remainder = b.fma(b.neg(quotient), below, z)
    # Below 1 / 2, so that the least remainder adds 0: the sum stays positive where z is denormal.
    added = b.mul(remainder, b.fma(p, p, -(END**2)))
    low = b.fma(quotient, b.fma(p, e.part, p_low), added)
    return tails.Scaled(b.mul(b.fma(quotient, p, low), e.power), e.last)


def ratio(b: ScalarBuilder, z: Value) -> Value:
    """The lower tail at -z by bell(z)."""
    inverse = b.div(b.constant(1.0, z.type), divisor(b, z))
    p, _ = polynomial(b, b.mul(z, inverse))
    return b.mul(inverse, p)


def bell_of_array(z: Array) -> Array:
    """exp(-z**2 / 2) of a float64 array; the square is split where its high part is exact."""
    import numpy as np

    near = np.rint(z * 16.0) / 16.0
    return np.exp(near * near * -0.5) * np.exp((z - near) * (z + near) * -0.5)


def lower_tail_of_array(z: Array, factor: Array | float = 1.0) -> Array:
    """The lower tail at -z, times the factor, of a float64 array z of 0 and above."""
    import numpy as np

    z = np.minimum(z, TAIL_IS_ZERO[64])
    inverse = 1.0 / (z * SCALE + CENTER[64])
    polynomial: Any = np.polyval
    found = polynomial(COEFFICIENTS[64][::-1], z * inverse * (2.0 * SCALE) - MIDDLE)
    return found * inverse * factor * bell_of_array(z)


class NormalCdf(ComposedFloat, Tame, HasPartials):
    """The distribution function: the integral of the density from -inf to x."""

    name = "elementwise.normal_cdf"
    samples = (Sample("scipy.special:ndtr"),)
    slope = 0.4

    def formula(self, x: Array) -> Array:
        import numpy as np

        lower = lower_tail_of_array(np.abs(x))
        return where(x > 0, 1.0 - lower, lower)

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        size = bounded_size(b, x)
        lower = tails.times(b, ratio(b, size), bell(b, size))
        return b.select(b.cmp("ogt", x, 0.0), b.sub(1.0, lower), lower)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, b.normal_pdf(self.x))


class NormalPdf(ComposedFloat, Tame, HasPartials):
    """The density, exp(-x**2 / 2) / sqrt(2 pi)."""

    name = "elementwise.normal_pdf"
    samples = (Sample("np.exp(-x * x / 2) / np.sqrt(2 * np.pi)"),)
    slope = 0.25

    def formula(self, x: Array) -> Array:
        import numpy as np

        return bell_of_array(np.minimum(np.abs(x), TAIL_IS_ZERO[64])) * INVERSE_ROOT

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        return tails.times(b, b.constant(INVERSE_ROOT, x.type), bell(b, bounded_size(b, x)))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.neg(b.mul(t, b.mul(bounded(b, self.x), self.result)))


def bounded(b: TensorBuilder, x: Value) -> Value:
    """x where the density is not 0; beyond, a number whose product with it is 0 and not NaN."""
    return b.clip(x, -40.0, 40.0)

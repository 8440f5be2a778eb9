"""The standard normal distribution, on floats.

Its lower tail is bell(z) ratio(z) for z >= 0, bell(z) = exp(-z**2 / 2) and ratio(z) = p(t) / (z + K), t = (z - K) / (z
+ K): that variable makes Mills' ratio, which falls as 1 / z, smooth on the whole half-line (Schonfelder, "Chebyshev
expansions for the error and related functions", Mathematics of Computation 32, 1978).  Nothing cancels, so that the
relative error is a few units in the last place down to the smallest floats.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...values import Value
from ..reference import where
from . import tails
from .family import ComposedFloat

if TYPE_CHECKING:
    from ..scalar_builder import ScalarBuilder

CENTER = {32: 3.366333484649658, 64: 5.0}
"""K.  That of f32 is one of those whose leading coefficients lie very near to f32 numbers."""

COEFFICIENTS: dict[int, tuple[float, ...]] = {
    32: (
        0.740838051, -0.552086949, 0.293953568, -0.0971656293, 0.00815475918, 0.00788567401, -0.0021792117,
        -0.000869228097, 0.000298705214, 0.000135265713,
    ),
    64: (
        0.769193049750063, -0.6653825028900568, 0.49530561596997424, -0.31353315667128795, 0.16502036617047627,
        -0.06911863870685252, 0.02079506679805241, -0.0029933767624577465, -0.0007978693775415261,
        0.0005448989999733242, -5.9375877287953715e-05, -4.976250835961815e-05, 1.6681905781887447e-05,
        3.9800413811438695e-06, -2.7713761855330973e-06, -3.352637162642288e-07, 4.3731162194291225e-07,
        4.147319587271425e-08, -7.104964382842057e-08, -1.0068444066483607e-08, 1.1110143346263983e-08,
        3.2211518216480122e-09, -1.0378510467602892e-09, -6.67805611527167e-10, -1.0088165333469396e-10,
    ),
}  # fmt: skip
"""p; minimax for the relative error on 0 <= z <= 14.5 and on 0 <= z <= 39: 2**-28.5 and 2**-55.6, rounded as here."""

TAIL_IS_ZERO = {32: 14.5, 64: 39.0}
"""Where the lower tail times z rounds to 0."""

INVERSE_ROOT = 1.0 / math.sqrt(2.0 * math.pi)


def bounded_size(b: ScalarBuilder, x: Value) -> Value:
    """|x|, bounded where the tail is 0."""
    return tails.bounded_size(b, x, TAIL_IS_ZERO[32], TAIL_IS_ZERO[64])


def bell(b: ScalarBuilder, z: Value) -> tails.Exponential:
    """exp(-z**2 / 2)."""
    high, low = tails.product(b, z, z)
    return tails.exponential(b, b.mul(high, -0.5), b.mul(low, -0.5))


def ratio_times(b: ScalarBuilder, z: Value) -> Value:
    """z times the lower tail at -z by bell(z): t is 2 z / (z + K) - 1, so that an error of the quotient enters twice,
    which partly cancels."""
    width = 32 if tails.is_single(z) else 64
    quotient = b.div(z, b.add(z, CENTER[width]))
    return b.mul(quotient, polynomial_of(b, quotient))


def ratio(b: ScalarBuilder, z: Value) -> Value:
    """The lower tail at -z by bell(z)."""
    width = 32 if tails.is_single(z) else 64
    inverse = b.div(b.constant(1.0, z.type), b.add(z, CENTER[width]))
    return b.mul(inverse, polynomial_of(b, b.mul(z, inverse)))


def polynomial_of(b: ScalarBuilder, quotient: Value) -> Value:
    """p, of z / (z + K)."""
    t = b.fma(quotient, 2.0, -1.0)
    return tails.polynomial(b, t, COEFFICIENTS[32 if tails.is_single(t) else 64])


def bell_of_array(z: Any) -> Any:
    """exp(-z**2 / 2) of a float64 array; the square is split where its high part is exact."""
    import numpy as np

    near = np.rint(z * 16.0) / 16.0
    return np.exp(near * near * -0.5) * np.exp((z - near) * (z + near) * -0.5)


def lower_tail_of_array(z: Any, factor: Any = 1.0) -> Any:
    """The lower tail at -z, times the factor, of a float64 array z of 0 and above."""
    import numpy as np

    z = np.minimum(z, TAIL_IS_ZERO[64])
    inverse = 1.0 / (z + CENTER[64])
    polynomial: Any = np.polyval
    found = polynomial(COEFFICIENTS[64][::-1], (z - CENTER[64]) * inverse)
    return found * inverse * factor * bell_of_array(z)


class NormalCdf(ComposedFloat):
    """The distribution function: the integral of the density from -inf to x."""

    name = "elementwise.normal_cdf"

    def formula(self, x: Any) -> Any:
        import numpy as np

        lower = lower_tail_of_array(np.abs(x))
        return where(x > 0, 1.0 - lower, lower)

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        size = bounded_size(b, x)
        lower = tails.times(b, ratio(b, size), bell(b, size))
        return b.select(b.cmp("ogt", x, 0.0), b.sub(1.0, lower), lower)


class NormalPdf(ComposedFloat):
    """The density, exp(-x**2 / 2) / sqrt(2 pi)."""

    name = "elementwise.normal_pdf"

    def formula(self, x: Any) -> Any:
        import numpy as np

        return bell_of_array(np.minimum(np.abs(x), TAIL_IS_ZERO[64])) * INVERSE_ROOT

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        return tails.times(b, b.constant(INVERSE_ROOT, x.type), bell(b, bounded_size(b, x)))

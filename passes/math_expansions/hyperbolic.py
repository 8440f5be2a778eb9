"""tanh.

Two regions and one select (both sides are computed): near zero an odd polynomial, x + x**3 p(x**2), whose first term is
exact; elsewhere 1 - 2 / (e**(2|x|) + 1), whose error is damped by the cancellation-free subtraction, with the sign of x
put back. |x| is bounded where tanh rounds to 1.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .exponential import exp_moderate
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

"""erf.

Two regions and one select: near zero an odd polynomial, x + x p(x**2); elsewhere 1 - e**(-q(|x|)) with a polynomial q
for -log(erfc), which is smooth and nearly quadratic. An error of q counts only as much as erfc is large, so it is
fitted with that weight. |x| is bounded where erf rounds to 1.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .exponential import exp_moderate
from .polynomial import horner

ERF = {
    32: (1.2837917e-01, -3.761261e-01, 1.1283207e-01, -2.682437e-02, 5.09089e-03, -6.568606e-04),
    64: (
        0.12837916709551256, -0.37612638903183315, 0.1128379167093268, -0.026866170640437434, 0.0052239775741377064,
        -0.0008548323713789045, 0.0001205519864946259, -1.4922118046606202e-05, 1.6401837960412531e-06,
        -1.571741626456582e-07, 1.0739084566855774e-08,
    ),
}  # fmt: skip
"""p with erf(x) = x + x p(x**2); minimax on |x| <= 0.8 for the error relative to x: 2**-28.3 and 2**-58.1."""

LOG_ERFC = {
    32: (-6.5014654e-05, -1.1282332e00, -6.3621426e-01, -1.0480586e-01, 2.2659797e-02, -3.1545525e-03, 2.0755253e-04),
    64: (
        -1.959497688250752e-08, -1.1283789584676815, -0.6366207589774185, -0.10276995572125548, 0.01912439968377148,
        0.00021113754371817538, -0.0016896613766886567, 0.0005703901578713454, 5.090728041590176e-06,
        -9.839017818623864e-05, 5.759258417776459e-05, -2.0991533832596156e-05, 5.588635756918401e-06,
        -1.1275871500010365e-06, 1.7206247817183486e-07, -1.933194774921786e-08, 1.511972509366459e-09,
        -7.357584453184221e-11, 1.6773038452929476e-12,
    ),
}  # fmt: skip
"""-q = log(erfc(a)); minimax on 0.8 <= a <= 4 and 0.8 <= a <= 5.95 with the weight erfc(a): 2**-28.6 and 2**-57.3."""

ERF_POLYNOMIAL_END = 0.8
ERF_IS_ONE = {32: 4.0, 64: 5.95}


def erf(b: MathBuilder[V], x: V) -> V:
    width = b.width(x)
    magnitude = b.abs(x)
    near = b.fma(x, horner(b, b.mul(x, x), ERF[width]), x)
    limit = b.constant(ERF_IS_ONE[width], x)
    bounded = b.select(b.cmp("ogt", magnitude, limit), limit, magnitude)
    far = b.sub(b.constant(1.0, x), exp_moderate(b, horner(b, bounded, LOG_ERFC[width])))
    return b.select(b.cmp("olt", magnitude, b.constant(ERF_POLYNOMIAL_END, x)), near, b.copysign(far, x))

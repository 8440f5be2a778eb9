"""atan, atan2, asin and acos.

atan works on the smaller of |x| and 1/|x|, atan2 on the smaller of |y / x| and |x / y|: one division either way and
one odd polynomial on [0, 1]; the rest is subtraction from pi/2 and pi in two parts. asin is an odd polynomial up to
1/2, and above pi/2 - 2 asin(sqrt((1 - x) / 2)), where the root's own rounding error is put back; acos shares both.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .polynomial import horner

ATAN = {
    32: (
        -3.3333302e-01, 1.9998628e-01, -1.4265122e-01, 1.0956882e-01, -8.417315e-02, 5.8196176e-02, -3.1416066e-02,
        1.1042527e-02, -1.822193e-03,
    ),
    64: (
        -0.33333333333333093, 0.1999999999995543, -0.14285714282801418, 0.11111111013622252, -0.09090907118708759,
        0.07692281179981386, -0.06666414939124193, 0.05880592191377242, -0.052538038734200494, 0.04723287462107731,
        -0.042217018606158, 0.036693191789246474, -0.029985022070235737, 0.022084458474197387, -0.013994320592177324,
        0.007262878339103755, -0.002919092262189786, 0.0008433956564963053, -0.0001547776531296851,
        1.3487325729633743e-05,
    ),
}  # fmt: skip
"""p with atan(t) = t + t**3 p(t**2); minimax on |t| <= 1 for the error relative to t: 2**-28.7 and 2**-57.8."""

ASIN = {
    32: (1.6666754e-01, 7.4952535e-02, 4.5475766e-02, 2.4153683e-02, 4.220888e-02),
    64: (
        0.16666666666666763, 0.07499999999970171, 0.04464285717517899, 0.030381942681846085, 0.022372215688704414,
        0.017351599880472718, 0.013980961129660515, 0.01139779767937788, 0.010786318780915712, 0.003684118262876409,
        0.021760296238157208, -0.021072049234516235, 0.03267322633497854,
    ),
}  # fmt: skip
"""p with asin(s) = s + s**3 p(s**2); minimax on |s| <= 1/2 for the error relative to s: 2**-27.6 and 2**-59.8."""

PI_HALF = {32: (1.5707963705062866, -4.3711390001862426e-08), 64: (1.5707963267948966, 6.123233995736766e-17)}
"""pi / 2 rounded to the format, and the rest."""


def atan_of_quotient(b: MathBuilder[V], numerator: V, denominator: V) -> V:
    """The angle in [0, pi/2] of two magnitudes, both of which may be zero or infinite."""
    high, low = (b.constant(part, numerator) for part in PI_HALF[b.width(numerator)])
    steep = b.cmp("ogt", numerator, denominator)
    small = b.select(steep, denominator, numerator)
    t = b.div(small, b.select(steep, numerator, denominator))
    # 0/0 counts as 0 and inf/inf as 1; NaN stays.
    equal = b.cmp("oeq", numerator, denominator)
    t = b.select(equal, b.select(b.cmp("oeq", small, b.constant(0.0, t)), small, b.constant(1.0, t)), t)
    z = b.mul(t, t)
    correction = b.mul(b.mul(t, z), horner(b, z, ATAN[b.width(t)]))
    complement = b.sub(high, b.add(t, b.sub(correction, low)))
    return b.select(steep, complement, b.add(t, correction))


def atan(b: MathBuilder[V], x: V) -> V:
    return b.copysign(atan_of_quotient(b, b.abs(x), b.constant(1.0, x)), x)


def atan2(b: MathBuilder[V], y: V, x: V) -> V:
    """The angle of the point (x, y), with C's values at zeros and infinities."""
    angle = atan_of_quotient(b, b.abs(y), b.abs(x))
    high, low = (b.constant(2.0 * part, x) for part in PI_HALF[b.width(x)])
    # The sign of x counts, that of -0.0 too.
    left = b.cmp("olt", b.copysign(b.constant(1.0, x), x), b.constant(0.0, x))
    angle = b.select(left, b.sub(high, b.sub(angle, low)), angle)
    return b.copysign(angle, y)


def asin_parts(b: MathBuilder[V], magnitude: V) -> tuple[V, V, V, V]:
    """(whether beyond 1/2, s, what s lacks, asin(s) - s), with s = sqrt((1 - magnitude) / 2) beyond 1/2."""
    half = b.constant(0.5, magnitude)
    beyond = b.cmp("ogt", magnitude, half)
    z = b.select(beyond, b.fma(magnitude, b.constant(-0.5, magnitude), half), b.mul(magnitude, magnitude))
    root = b.sqrt(z)
    s = b.select(beyond, root, magnitude)
    remainder = b.div(b.fma(b.neg(root), root, z), b.add(root, root))
    # At magnitude 1 the root is 0 and its remainder 0/0.
    known = b.iand(beyond, b.cmp("one", z, b.constant(0.0, z)))
    lack = b.select(known, remainder, b.constant(0.0, z))
    return beyond, s, lack, b.mul(b.mul(s, z), horner(b, z, ASIN[b.width(z)]))


def asin(b: MathBuilder[V], x: V) -> V:
    high, low = (b.constant(part, x) for part in PI_HALF[b.width(x)])
    beyond, s, lack, rest = asin_parts(b, b.abs(x))
    rest = b.add(rest, lack)
    minus_two = b.constant(-2.0, x)
    far = b.add(b.fma(s, minus_two, high), b.fma(rest, minus_two, low))
    return b.copysign(b.select(beyond, far, b.add(s, rest)), x)


def acos(b: MathBuilder[V], x: V) -> V:
    """2 asin(s) and pi less it beyond 1/2 and -1/2; pi/2 - asin(x) between."""
    high, low = (b.constant(part, x) for part in PI_HALF[b.width(x)])
    zero, two = b.constant(0.0, x), b.constant(2.0, x)
    beyond, s, lack, rest = asin_parts(b, b.abs(x))
    rest = b.add(rest, lack)
    negative = b.cmp("olt", x, zero)
    between = b.sub(high, b.add(b.copysign(s, x), b.sub(b.copysign(rest, x), low)))
    twice = b.mul(two, b.add(s, rest))
    left = b.add(b.fma(s, b.constant(-2.0, x), b.mul(two, high)), b.mul(two, b.sub(low, rest)))
    return b.select(beyond, b.select(negative, left, twice), between)

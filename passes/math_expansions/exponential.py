"""exp, exp2 and expm1.

Range reduction after Cody and Waite (Software Manual for the Elementary Functions, 1980): x = n ln 2 + r with |r| <= ln
2 / 2, a polynomial for e**r and a scaling by 2**n. With fma the two-part ln 2 leaves r exact up to the rounding of its
last step. n comes from adding 1.5 * 2**(mantissa bits): the sum is rounded to an integer by the addition itself, and
its low bits are n, so neither `roundeven` nor a float-to-integer conversion (undefined for NaN) is needed. The scaling
is two multiplications by powers of two built from those bits, so that results in the denormal range round once more
instead of flushing, and those just under the overflow threshold do not overflow early.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.support.exp_constants import EXP, LN2_HIGH, LN2_LOW, LOG2_E
from .builder import MathBuilder, V
from .polynomial import horner


@dataclass(frozen=True, slots=True)
class Format:
    """What the integer tricks need to know of a binary format."""

    mantissa: int
    """Stored bits of the significand: 23 or 52."""
    bias: int
    shifter: float
    """1.5 * 2**mantissa: numbers around it are the integers."""
    shifter_bits: int


FORMATS = {32: Format(23, 127, 1.5 * 2.0**23, 0x4B400000), 64: Format(52, 1023, 1.5 * 2.0**52, 0x4338000000000000)}

EXP2 = {
    32: (6.931472e-01, 2.402265e-01, 5.550359e-02, 9.618072e-03, 1.3391364e-03, 1.5458869e-04),
    64: (
        0.6931471805599453, 0.24022650695910122, 0.055504108664822666, 0.009618129107596598, 0.0013333558146239584,
        0.0001540353045485635, 1.5252733964351336e-05, 1.3215436119527796e-06, 1.0178014928642685e-07,
        7.0736748438932175e-09, 4.461294588273765e-10,
    ),
}  # fmt: skip
"""q with 2**r = 1 + r q(r); minimax on |r| <= 1/2 for the absolute error of 2**r: 2**-28.9 and 2**-58.0."""

EXPM1 = {
    32: (0.5, 1.6666667e-01, 4.1666485e-02, 8.333198e-03, 1.3933047e-03, 1.9953423e-04),
    64: (
        0.5, 0.16666666666666677, 0.04166666666666668, 0.0083333333333214, 0.001388888888887701, 0.00019841269886754093,
        2.480158734220754e-05, 2.7557243535794708e-06, 2.7557257359988513e-07, 2.5109285305169406e-08,
        2.0920188453524324e-09,
    ),
}  # fmt: skip
"""q with e**r - 1 = r + r**2 q(r); minimax on |r| <= ln 2 / 2 for the error relative to r: 2**-31.9 and 2**-61.7."""

EXP_RANGE = {32: (-104.0, 89.0), 64: (-746.0, 710.0)}
"""Beyond these e**x rounds to 0 and to infinity."""
HALF_EXP_RANGE = {32: (0.0, 90.0), 64: (0.0, 711.0)}
"""For e**x / 2 of non-negative x."""
EXP2_RANGE = {32: (-151.0, 129.0), 64: (-1076.0, 1025.0)}
EXPM1_RANGE = {32: (-20.0, 89.0), 64: (-40.0, 710.0)}
"""Below, e**x - 1 rounds to -1."""


def clamp(b: MathBuilder[V], x: V, bounds: tuple[float, float]) -> V:
    """x within the bounds; NaN stays, because a comparison with it is false."""
    low, high = (b.constant(bound, x) for bound in bounds)
    x = b.select(b.cmp("ogt", x, high), high, x)
    return b.select(b.cmp("olt", x, low), low, x)


def two_powers(b: MathBuilder[V], shifted: V) -> tuple[V, V]:
    """Two powers of two whose product is 2**n, of `shifted` = n + shifter + 2 bias.

    The low bits of `shifted` hold n + 2 bias. Half of that, rounded down, is the exponent field of the first factor,
    and the rest that of the second; the shifts drop the bits of the shifter.
    """
    form = FORMATS[b.width(shifted)]
    bits = b.bitcast_to_int(shifted)
    first = b.iand(b.shl(bits, form.mantissa - 1), b.iconstant(-(1 << form.mantissa), bits))
    second = b.isub(b.shl(bits, form.mantissa), first)
    return b.bitcast_to_float(first), b.bitcast_to_float(second)


def reduce_by_ln2(b: MathBuilder[V], x: V, biases: int) -> tuple[V, V, V]:
    """(n + shifter + biases * bias, n, r) with x = n ln 2 + r."""
    width = b.width(x)
    form = FORMATS[width]
    shifter = b.constant(form.shifter + biases * form.bias, x)
    shifted = b.fma(x, b.constant(LOG2_E, x), shifter)
    n = b.sub(shifted, shifter)
    r = b.fma(n, b.constant(-LN2_HIGH[width], x), x)
    r = b.fma(n, b.constant(-LN2_LOW[width], x), r)
    return shifted, n, r


def exp_polynomial(b: MathBuilder[V], r: V) -> V:
    """e**r for |r| <= ln 2 / 2."""
    one = b.constant(1.0, r)
    p = b.fma(horner(b, r, EXP[b.width(r)]), r, one)
    return b.fma(p, r, one)


def exp_moderate(b: MathBuilder[V], x: V) -> V:
    """e**x where it is neither denormal nor near overflow: one power of two suffices and no clamp is needed."""
    shifted, _, r = reduce_by_ln2(b, x, biases=1)
    scale = b.bitcast_to_float(b.shl(b.bitcast_to_int(shifted), FORMATS[b.width(x)].mantissa))
    return b.mul(exp_polynomial(b, r), scale)


def exp(b: MathBuilder[V], x: V) -> V:
    x = clamp(b, x, EXP_RANGE[b.width(x)])
    shifted, _, r = reduce_by_ln2(b, x, biases=2)
    first, second = two_powers(b, shifted)
    return b.mul(b.mul(exp_polynomial(b, r), first), second)


def half_exp(b: MathBuilder[V], x: V) -> V:
    """e**x / 2 of a non-negative x, infinite only where that itself overflows."""
    x = clamp(b, x, HALF_EXP_RANGE[b.width(x)])
    shifted, _, r = reduce_by_ln2(b, x, biases=2)
    first, second = two_powers(b, shifted)
    return b.mul(b.mul(exp_polynomial(b, r), first), b.mul(second, b.constant(0.5, x)))


def exp2(b: MathBuilder[V], x: V) -> V:
    width = b.width(x)
    form = FORMATS[width]
    x = clamp(b, x, EXP2_RANGE[width])
    shifter = b.constant(form.shifter + 2 * form.bias, x)
    shifted = b.add(x, shifter)
    r = b.sub(x, b.sub(shifted, shifter))
    p = b.fma(horner(b, r, EXP2[width]), r, b.constant(1.0, x))
    first, second = two_powers(b, shifted)
    return b.mul(b.mul(p, first), second)


def expm1(b: MathBuilder[V], x: V) -> V:
    """2**n p + (2**n - 1) with p = e**r - 1; as half of both and doubled at the end, since 2**n itself may overflow."""
    width = b.width(x)
    form = FORMATS[width]
    bounded = clamp(b, x, EXPM1_RANGE[width])
    shifted, _, r = reduce_by_ln2(b, bounded, biases=1)
    p = b.fma(b.mul(r, r), horner(b, r, EXPM1[width]), r)
    exponent = b.shl(b.bitcast_to_int(shifted), form.mantissa)
    half = b.bitcast_to_float(b.isub(exponent, b.iconstant(1 << form.mantissa, exponent)))
    y = b.fma(half, p, b.sub(half, b.constant(0.5, x)))
    # The sign is that of x everywhere; only -0.0 needs telling.
    return b.copysign(b.add(y, y), x)

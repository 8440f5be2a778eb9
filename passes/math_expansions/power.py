"""pow (math.powf).

|x|**y = 2**(y log2 |x|). The product multiplies the error of the logarithm by up to 1074, so the logarithm needs some
11 bits more than the result. f32 computes in f64, with polynomials of only that accuracy; the final conversion rounds
once, denormal results included. f64 carries log2 |x| and its product with y as sums of two doubles (double-double
arithmetic: Dekker, Numerische Mathematik 18, 1971), from the series of 2 atanh(s) with s = f / (2 + f). The special
values are those of C (annex F.10.4.4): pow(x, 0) = pow(1, y) = 1 even for NaN.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .exponential import EXP2, EXP2_RANGE, FORMATS, clamp, two_powers
from .logarithm import split, split_any
from .polynomial import fast_two_sum, horner, two_product

LOG2_OF_F32 = (
    1.4426950408667891, -0.7213475207471044, 0.4808983625025982, -0.36067369910299846, 0.2885372026551786,
    -0.24045175674547978, 0.20617748751777562, -0.18033509414517668, 0.15876406090449058, -0.1427771805437711,
    0.14446810221134523, -0.14438551544879313, 0.07949261312204912,
)  # fmt: skip
"""p with log2(1 + f) = f p(f); minimax on sqrt(1/2) <= 1 + f <= sqrt(2) for the relative error: 2**-35.3."""

EXP2_OF_F32 = (
    0.6931472069041157, 0.24022651199605088, 0.0555032669869503, 0.00961802035940619, 0.0013400655783625248,
    0.00015471944417858808,
)  # fmt: skip
"""q with 2**r = 1 + r q(r); minimax on |r| <= 1/2 for the absolute error of 2**r: 2**-28.9."""

POWER_RANGE_F32 = (-160.0, 140.0)
"""Binary logarithms beyond these give 0 and infinity after rounding to f32."""

ATANH_TAIL = (
    0.20000000000001128, 0.14285714285049864, 0.1111111125993783, 0.09090892186392326, 0.07693378504705248,
    0.06628413237704914, 0.06598118830495596,
)  # fmt: skip
"""p with atanh(s) = s + s z/3 + s z**2 p(z), z = s**2; minimax on |s| <= 0.1716 for the error relative to s: 2**-66.3.
"""

THIRD_HIGH, THIRD_LOW = 0.3333333333333333, 1.850371707708594e-17
TWO_LOG2_E_HIGH, TWO_LOG2_E_LOW = 2.8853900817779268, 4.0710547481862066e-17


def log2_magnitude_f32(b: MathBuilder[V], magnitude: V) -> V:
    """log2 of a positive f64 that holds an f32 value, to 35 bits."""
    e, m, _ = split(b, magnitude)
    f = b.sub(m, b.constant(1.0, m))
    return b.fma(f, horner(b, f, LOG2_OF_F32), e)


def log2_pair(b: MathBuilder[V], magnitude: V) -> tuple[V, V]:
    """log2 of a positive f64 as high + low, to about 2**-65."""
    one = b.constant(1.0, magnitude)
    e, f = split_any(b, magnitude)
    # s = f / (2 + f), with the remainder of the division as its low part.
    divisor, divisor_low = fast_two_sum(b, b.constant(2.0, f), f)
    inverse = b.div(one, divisor)
    s = b.mul(f, inverse)
    negative = b.neg(s)
    s_low = b.mul(b.fma(negative, divisor_low, b.fma(negative, divisor, f)), inverse)
    z, z_low = two_product(b, s, s)
    z_low = b.fma(b.add(s, s), s_low, z_low)
    # t = 1/3 + z p(z), w = z t, o = 1 + w, v = s o: log(1 + f) = 2 v.
    t, t_low = fast_two_sum(b, b.constant(THIRD_HIGH, z), b.mul(z, horner(b, z, ATANH_TAIL)))
    t_low = b.add(t_low, b.constant(THIRD_LOW, z))
    w, w_low = pair_product(b, z, z_low, t, t_low)
    o, o_low = fast_two_sum(b, one, w)
    v, v_low = pair_product(b, s, s_low, o, b.add(o_low, w_low))
    g, g_low = pair_product(b, v, v_low, b.constant(TWO_LOG2_E_HIGH, v), b.constant(TWO_LOG2_E_LOW, v))
    high, low = fast_two_sum(b, e, g)
    return high, b.add(low, g_low)


def pair_product(b: MathBuilder[V], x: V, x_low: V, y: V, y_low: V) -> tuple[V, V]:
    """(x + x_low) (y + y_low) without the product of the low parts."""
    p, error = two_product(b, x, y)
    return p, b.fma(x_low, y, b.fma(x, y_low, error))


def power_of_two_f32(b: MathBuilder[V], p: V) -> V:
    """2**p of an f64, to f32 accuracy; NaN stays."""
    form = FORMATS[64]
    p = clamp(b, p, POWER_RANGE_F32)
    shifter = b.constant(form.shifter + form.bias, p)
    shifted = b.add(p, shifter)
    r = b.sub(p, b.sub(shifted, shifter))
    scale = b.bitcast_to_float(b.shl(b.bitcast_to_int(shifted), form.mantissa))
    return b.mul(b.fma(horner(b, r, EXP2_OF_F32), r, b.constant(1.0, p)), scale)


def power_of_two_pair(b: MathBuilder[V], p: V, low: V) -> V:
    """2**(p + low) of f64; NaN stays."""
    form = FORMATS[64]
    # Beyond the range low is meaningless (of an infinite product it is NaN).
    minimum, maximum = EXP2_RANGE[64]
    inside = b.iand(b.cmp("ogt", p, b.constant(minimum, p)), b.cmp("olt", p, b.constant(maximum, p)))
    low = b.select(inside, low, b.constant(0.0, p))
    p = clamp(b, p, EXP2_RANGE[64])
    shifter = b.constant(form.shifter + 2 * form.bias, p)
    shifted = b.add(p, shifter)
    r = b.add(b.sub(p, b.sub(shifted, shifter)), low)
    first, second = two_powers(b, shifted)
    return b.mul(b.mul(b.fma(horner(b, r, EXP2[64]), r, b.constant(1.0, p)), first), second)


def exact_logarithm(b: MathBuilder[V], magnitude: V, logarithm: V) -> V:
    """The logarithm, but -inf of 0 and infinity and NaN as they are."""
    logarithm = b.select(b.cmp("olt", magnitude, b.constant(float("inf"), magnitude)), logarithm, magnitude)
    zero = b.cmp("oeq", magnitude, b.constant(0.0, magnitude))
    return b.select(zero, b.constant(float("-inf"), magnitude), logarithm)


def power_of_magnitude(b: MathBuilder[V], x: V, y: V, is_one: V) -> V:
    """|x|**y, and 1 where is_one."""
    if b.width(x) == 32:
        magnitude = b.extend(b.abs(x))
        p = b.mul(b.extend(y), exact_logarithm(b, magnitude, log2_magnitude_f32(b, magnitude)))
        return b.truncate(power_of_two_f32(b, b.select(is_one, b.constant(0.0, p), p)))
    magnitude = b.abs(x)
    high, low = log2_pair(b, magnitude)
    high = exact_logarithm(b, magnitude, high)
    p, p_low = two_product(b, y, high)
    p = b.select(is_one, b.constant(0.0, p), p)
    p_low = b.select(is_one, b.constant(0.0, p), b.fma(y, low, p_low))
    return power_of_two_pair(b, p, p_low)


def pow(b: MathBuilder[V], x: V, y: V) -> V:
    zero, one, half = (b.constant(value, x) for value in (0.0, 1.0, 0.5))
    magnitude = b.abs(x)
    # Also pow(-1, +-inf) = 1; pow(-1, NaN) becomes NaN below, because NaN is not an integer.
    is_one = b.ior(b.cmp("oeq", magnitude, one), b.cmp("oeq", y, zero))
    power = power_of_magnitude(b, x, y, is_one)
    integer = b.cmp("oeq", b.round_even(y), y)
    half_y = b.mul(y, half)
    odd = b.iand(integer, b.cmp("one", b.round_even(half_y), half_y))
    power = b.select(odd, b.copysign(power, x), power)
    finite_negative = b.iand(b.cmp("olt", x, zero), b.cmp("ogt", x, b.constant(float("-inf"), x)))
    no_real_power = b.iand(finite_negative, b.cmp("une", b.round_even(y), y))
    return b.select(no_real_power, b.constant(float("nan"), x), power)

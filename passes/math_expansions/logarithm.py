"""log, log2, log10 and log1p.

x = 2**e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2): subtracting the bits of sqrt(1/2) from those of x lets the exponent
field carry e. Denormals are scaled up first. For f32, log(1 + f) = f - f**2/2 + f**3 p(f), one polynomial; for f64,
where that would take a degree above 20, the series in s = f / (2 + f), log(1 + f) = 2 atanh(s), with the rearrangement
f - f**2/2 + s (f**2/2 + s**2 r(s**2)) that keeps the leading terms exact (the method of Tang, ACM TOMS 16, 1990, and of
fdlibm). Infinity, zero, negative numbers and NaN are selected at the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from .builder import MathBuilder, V
from .exponential import FORMATS, LN2_HIGH, LN2_LOW
from .polynomial import horner, two_sum

SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
SMALLEST_NORMAL = {32: 2.0**-126, 64: 2.0**-1022}

LOG_F32 = (
    3.3333316e-01, -2.500081e-01, 2.00023e-01, -1.6624554e-01, 1.4181012e-01, -1.3128653e-01, 1.2882397e-01,
    -7.860401e-02,
)  # fmt: skip
"""p with log(1 + f) = f - f**2/2 + f**3 p(f); minimax on sqrt(1/2) <= 1 + f <= sqrt(2) for the error relative to f:
2**-27.3.
"""

LOG_F64 = (
    0.6666666666666734, 0.3999999999941672, 0.28571428742003135, 0.22222198608075047, 0.181835626790517,
    0.15314089524658617, 0.14795584432850767,
)  # fmt: skip
"""r with 2 atanh(s) = 2 s + s z r(z), z = s**2; minimax on |s| <= 0.1716 for the error relative to s: 2**-58.5."""


@dataclass(frozen=True, slots=True)
class Base:
    """A base of logarithms: log(2) and log(e) in it, each as a number of the format and the rest of it."""

    two: tuple[float, float]
    e: tuple[float, float]


BASE_2 = {
    32: Base((1.0, 0.0), (1.4426950216293335, 1.9259629911266175e-08)),
    64: Base((1.0, 0.0), (1.4426950408889634, 2.0355273740931033e-17)),
}
BASE_10 = {
    32: Base((0.3010300099849701, -1.4320988897559699e-08), (0.4342944920063019, -1.0103050052231683e-08)),
    64: Base((0.3010299956639812, -2.8037281277851704e-18), (0.4342944819032518, 1.098319650216765e-17)),
}


def split(b: MathBuilder[V], x: V) -> tuple[V, V, V]:
    """(e, 1 + f, bits of 2**e less those of 1.0) of a normal positive x; e as a float."""
    width = b.width(x)
    form = FORMATS[width]
    bits = b.bitcast_to_int(x)
    offset = b.isub(bits, b.iconstant(SQRT_HALF_BITS[width], bits))
    scale = b.iand(offset, b.iconstant(-(1 << form.mantissa), bits))
    m = b.bitcast_to_float(b.isub(bits, scale))
    if width == 32:
        return b.int_to_float(b.shr_s(offset, form.mantissa)), m, scale
    # AVX2 and GPUs lack fast conversions and arithmetic shifts of 64-bit integers: e + bias becomes the low bits of a
    # float near the shifter.
    biased = b.shr_u(b.iadd(offset, b.iconstant(form.bias << form.mantissa, bits)), form.mantissa)
    shifted = b.bitcast_to_float(b.ior(biased, b.iconstant(form.shifter_bits, bits)))
    return b.sub(shifted, b.constant(form.shifter + form.bias, x)), m, scale


def split_any(b: MathBuilder[V], x: V) -> tuple[V, V]:
    """(e, f) of a positive x, which may be denormal."""
    width = b.width(x)
    digits = float(FORMATS[width].mantissa + 1)
    tiny = b.cmp("olt", x, b.constant(SMALLEST_NORMAL[width], x))
    x = b.select(tiny, b.mul(x, b.constant(2.0**digits, x)), x)
    e, m, _ = split(b, x)
    e = b.add(e, b.select(tiny, b.constant(-digits, x), b.constant(0.0, x)))
    return e, b.sub(m, b.constant(1.0, x))


def tail(b: MathBuilder[V], f: V) -> V:
    """log(1 + f) - f."""
    if b.width(f) == 32:
        square = b.mul(f, f)
        return b.fma(b.mul(square, f), horner(b, f, LOG_F32), b.mul(square, b.constant(-0.5, f)))
    half_square = b.mul(b.mul(f, f), b.constant(0.5, f))
    s = b.div(f, b.add(f, b.constant(2.0, f)))
    z = b.mul(s, s)
    return b.fma(s, b.fma(z, horner(b, z, LOG_F64), half_square), b.neg(half_square))


def combine(b: MathBuilder[V], e: V, f: V) -> V:
    """e ln 2 + log(1 + f), smallest terms first."""
    width = b.width(f)
    low = b.fma(e, b.constant(LN2_LOW[width], f), tail(b, f))
    return b.fma(e, b.constant(LN2_HIGH[width], f), b.add(f, low))


def special_values(b: MathBuilder[V], x: V, y: V, pole: float) -> V:
    """y, but -inf at the pole, NaN below it, and infinity and NaN as they are."""
    pole_value = b.constant(pole, x)
    y = b.select(b.cmp("olt", x, b.constant(float("inf"), x)), y, x)
    y = b.select(b.cmp("oeq", x, pole_value), b.constant(float("-inf"), x), y)
    return b.select(b.cmp("olt", x, pole_value), b.constant(float("nan"), x), y)


def log(b: MathBuilder[V], x: V) -> V:
    e, f = split_any(b, x)
    return special_values(b, x, combine(b, e, f), 0.0)


def log_in_base(b: MathBuilder[V], x: V, base: Base) -> V:
    """e log 2 + f log e + the rest; log e in two parts, because f log e is the whole result near 1."""
    two, two_low, euler, euler_low = (b.constant(part, x) for part in (*base.two, *base.e))
    e, f = split_any(b, x)
    rest = b.mul(tail(b, f), euler)
    if base.two[1]:
        rest = b.fma(e, two_low, rest)
    y = b.fma(e, two, b.fma(f, euler, b.fma(f, euler_low, rest)))
    return special_values(b, x, y, 0.0)


def log2(b: MathBuilder[V], x: V) -> V:
    return log_in_base(b, x, BASE_2[b.width(x)])


def log10(b: MathBuilder[V], x: V) -> V:
    return log_in_base(b, x, BASE_10[b.width(x)])


def log1p(b: MathBuilder[V], x: V) -> V:
    """log of u + c, the exact sum 1 + x; the rounding error c joins f after the split, where it has its full weight."""
    one = b.constant(1.0, x)
    u, c = two_sum(b, one, x)
    e, m, scale = split(b, u)
    # 2**(1 - e), from the bits of 2.0 (2**-e would be out of range for the largest u); the multiplications of c are
    # exact.
    form = FORMATS[b.width(x)]
    inverse = b.bitcast_to_float(b.isub(b.iconstant(form.bias + 1 << form.mantissa, scale), scale))
    f = b.fma(b.mul(c, inverse), b.constant(0.5, x), b.sub(m, one))
    # -0.0 came out as +0.0.
    y = b.copysign(combine(b, e, f), x)
    return special_values(b, x, y, -1.0)

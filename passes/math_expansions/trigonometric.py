"""sin, cos and tan, for arguments of any size.

Argument reduction after Payne and Hanek (SIGNUM Newsletter 18, 1983): |x| = (n + y) pi/2 with |y| <= 1/2, and of the
product of x and 2/pi only the bits around its binary point matter. 2/pi is cut into chunks, narrow enough for the
product of each with x to be known exactly. Chunks so high that their product is a multiple of 4 are skipped: a few
selects by the size of x, no branch, no table in memory. The remaining products are reduced modulo 4 and added, largest
first, so that every step before the subtraction of n is exact, or its error is kept.

f32 reduces in f64: chunks of 29 bits have exact products with the 24 bits of x, four chunks suffice, and y is rounded
to f32 once. f64 uses chunks of 53 bits, products as pairs (p, e) by fma, and five chunks: the arguments closest to a
multiple of pi/2 leave y near 2**-62 (Muller et al., Handbook of Floating-Point Arithmetic, ch. 11), and its last place
then has the weight 2**-115.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .exponential import FORMATS
from .polynomial import fast_two_sum, horner, two_product, two_sum

TWO_OVER_PI_BITS = 1248
TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921CFE1DEB1C"
    "B129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F"
    "6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BABF0CFBC20",
    16,
)
"""floor(2/pi * 2**TWO_OVER_PI_BITS)."""


def chunks_of_two_over_pi(bits: int, count: int) -> tuple[int, ...]:
    """The first `count` groups of `bits` binary digits of 2/pi."""
    return tuple(TWO_OVER_PI >> TWO_OVER_PI_BITS - bits * (k + 1) & (1 << bits) - 1 for k in range(count))


CHUNK_F32 = 29
CHUNKS_F32 = tuple(
    digits * 2.0 ** (-CHUNK_F32 * (k + 1)) for k, digits in enumerate(chunks_of_two_over_pi(CHUNK_F32, 7))
)
SKIP_F32 = (2.0**54, 2.0**83, 2.0**112)
"""From these sizes on, the products with the first, second and third chunk are multiples of 4."""
WINDOW_F32 = 4

CHUNK_F64 = 53
CHUNKS_F64 = tuple(digits * 2.0**-CHUNK_F64 for digits in chunks_of_two_over_pi(CHUNK_F64, 23))
"""Chunk k, without its weight 2**(-53 k)."""
SKIP_F64 = 2.0**107
"""From this size on, the product with the first chunk is a multiple of 4."""
WINDOW_F64 = 5

PI_HALF_HIGH = 1.5707963267948966
PI_HALF_LOW = 6.123233995736766e-17

SIN = {
    32: (-1.6666654e-01, 8.332109e-03, -1.9508401e-04),
    64: (
        -0.16666666666666627, 0.008333333333321136, -0.00019841269828774135, 2.755731332802674e-06,
        -2.5050700250836788e-08, 1.5893390238644217e-10,
    ),
}  # fmt: skip
"""p with sin(y) = y + y**3 p(y**2); minimax on |y| <= 1.01 pi/4 for the error relative to y: 2**-27.9 and 2**-57.8."""

COS = {
    32: (4.1666646e-02, -1.3887302e-03, 2.4430881e-05),
    64: (
        0.04166666666666659, -0.0013888888888872136, 2.480158728823391e-05, -2.755731398909235e-07,
        2.087567350201741e-09, -1.1357049562571355e-11,
    ),
}  # fmt: skip
"""p with cos(y) = 1 - y**2/2 + y**4 p(y**2); minimax on |y| <= 1.01 pi/4 for the absolute error: 2**-33.1 and 2**-64.0.
"""

TINY_F64 = 2.0**-27
"""Below, sin(x) and tan(x) round to x."""


def modulo_four(b: MathBuilder[V], x: V) -> V:
    """x less the nearest multiple of 4, exactly."""
    return b.fma(b.round_even(b.mul(x, b.constant(0.25, x))), b.constant(-4.0, x), x)


def nearest_integer(b: MathBuilder[V], x: V) -> tuple[V, V]:
    """(n, bits whose low ones are those of n)."""
    shifter = b.constant(FORMATS[b.width(x)].shifter, x)
    shifted = b.add(x, shifter)
    return b.sub(shifted, shifter), b.bitcast_to_int(shifted)


def reduce_f32(b: MathBuilder[V], magnitude: V) -> tuple[V, V]:
    """(n as an i32, y in radians as an f64) of a non-negative f32."""
    x = b.extend(magnitude)
    window = [b.constant(chunk, x) for chunk in CHUNKS_F32[:WINDOW_F32]]
    for skipped, bound in enumerate(SKIP_F32, start=1):
        large = b.cmp("oge", x, b.constant(bound, x))
        window = [b.select(large, b.constant(CHUNKS_F32[skipped + j], x), window[j]) for j in range(WINDOW_F32)]
    first, second, third, fourth = (b.mul(x, chunk) for chunk in window)
    first = modulo_four(b, first)
    # The third product may still be 1/16; without it y would leave the range of the polynomials.
    n, bits = nearest_integer(b, b.add(b.add(first, second), third))
    y = b.add(b.add(b.add(b.sub(first, n), second), third), fourth)
    return b.truncate_int(bits), b.mul(y, b.constant(PI_HALF_HIGH, x))


def window_f64(b: MathBuilder[V], x: V) -> tuple[V, list[V]]:
    """x scaled below 2**107, and the five chunks of 2/pi that matter to it, picked by a binary search over the number
    of chunks to skip.
    """
    window = [b.constant(chunk, x) for chunk in CHUNKS_F64]
    for step in (16, 8, 4, 2, 1):
        weight = CHUNK_F64 * step
        large = b.cmp("oge", x, b.constant(SKIP_F64 * 2.0 ** (weight - CHUNK_F64), x))
        x = b.select(large, b.mul(x, b.constant(2.0**-weight, x)), x)
        needed = min(WINDOW_F64 + step - 1, len(window))
        window = [
            b.select(large, window[step + j], window[j]) if step + j < len(window) else window[j] for j in range(needed)
        ]
    return x, window


def reduce_f64(b: MathBuilder[V], magnitude: V) -> tuple[V, V, V]:
    """(n as an i64, y, the part of y below its last place) of a non-negative f64."""
    x, window = window_f64(b, magnitude)
    products: list[tuple[V, V]] = []
    for j, chunk in enumerate(window):
        products.append(two_product(b, b.mul(x, b.constant(2.0 ** (-CHUNK_F64 * j), x)) if j else x, chunk))
    (p0, e0), (p1, e1), (p2, e2), (p3, e3), (p4, _) = products
    total = modulo_four(b, p0)
    errors: list[V] = []
    for term in (modulo_four(b, e0), modulo_four(b, p1), e1, p2):
        total, error = two_sum(b, total, term)
        errors.append(error)
    n, bits = nearest_integer(b, total)
    low = errors[0]
    rest = b.add(e3, p4)
    for term in (*errors[1:], e2, p3):
        low, error = two_sum(b, low, term)
        rest = b.add(rest, error)
    y, low = two_sum(b, b.sub(total, n), low)
    y, low = fast_two_sum(b, y, b.add(low, rest))
    high = b.constant(PI_HALF_HIGH, x)
    radians, error = two_product(b, y, high)
    error = b.fma(y, b.constant(PI_HALF_LOW, x), b.fma(low, high, error))
    return bits, radians, error


def sine_and_cosine(b: MathBuilder[V], y: V, low: V | None = None) -> tuple[V, V]:
    """sin and cos of y + low for |y| <= pi/4, where low is below y's last place."""
    width = b.width(y)
    one = b.constant(1.0, y)
    z = b.mul(y, y)
    cubic = b.mul(y, z)
    half = b.mul(z, b.constant(0.5, y))
    quartic = b.mul(b.mul(z, z), horner(b, z, COS[width]))
    near_one = b.sub(one, half)
    if low is None:
        sine = b.fma(cubic, horner(b, z, SIN[width]), y)
    else:
        sine = b.add(y, b.fma(cubic, horner(b, z, SIN[width]), b.fma(b.neg(half), low, low)))
        quartic = b.fma(b.neg(y), low, quartic)
    cosine = b.add(near_one, b.add(b.sub(b.sub(one, near_one), half), quartic))
    return sine, cosine


def reduce(b: MathBuilder[V], x: V) -> tuple[V, V, V]:
    """(n, sin y, cos y) of |x| = (n + y) pi/2."""
    magnitude = b.abs(x)
    if b.width(x) == 32:
        n, y = reduce_f32(b, magnitude)
        return (n, *sine_and_cosine(b, b.truncate(y)))
    n, y, low = reduce_f64(b, magnitude)
    return (n, *sine_and_cosine(b, y, low))


def is_odd(b: MathBuilder[V], n: V) -> V:
    return b.icmp("ne", b.iand(n, b.iconstant(1, n)), b.iconstant(0, n))


def with_quadrant_sign(b: MathBuilder[V], value: V, n: V) -> V:
    """value, negated in the third and fourth quadrant (bit 1 of n)."""
    width = b.width(value)
    sign = b.iand(b.shl(n, width - 2), b.iconstant(1 << width - 1, n))
    return b.bitcast_to_float(b.ixor(b.bitcast_to_int(value), sign))


def with_sign_of(b: MathBuilder[V], value: V, x: V) -> V:
    """value, negated where x is negative."""
    bits = b.bitcast_to_int(x)
    sign = b.iand(bits, b.iconstant(1 << b.width(x) - 1, bits))
    return b.bitcast_to_float(b.ixor(b.bitcast_to_int(value), sign))


def identity_if_tiny(b: MathBuilder[V], x: V, y: V) -> V:
    """x where it is so small that y should round to it, and in f64 the products with chunks would underflow."""
    if b.width(x) == 32:
        return y
    return b.select(b.cmp("olt", b.abs(x), b.constant(TINY_F64, x)), x, y)


def sin(b: MathBuilder[V], x: V) -> V:
    n, sine, cosine = reduce(b, x)
    y = with_quadrant_sign(b, b.select(is_odd(b, n), cosine, sine), n)
    return identity_if_tiny(b, x, with_sign_of(b, y, x))


def cos(b: MathBuilder[V], x: V) -> V:
    n, sine, cosine = reduce(b, x)
    y = b.select(is_odd(b, n), sine, cosine)
    return with_quadrant_sign(b, y, b.iadd(n, b.iand(n, b.iconstant(1, n))))


def tan(b: MathBuilder[V], x: V) -> V:
    """sin / cos, or -cos / sin in odd quadrants; f32 in f64, so that one rounding remains."""
    if b.width(x) == 32:
        n, y = reduce_f32(b, b.abs(x))
        sine, cosine = sine_and_cosine(b, y)
        odd = is_odd(b, n)
        quotient = b.truncate(b.div(b.select(odd, cosine, sine), b.select(odd, sine, cosine)))
    else:
        n, sine, cosine = reduce(b, x)
        odd = is_odd(b, n)
        quotient = b.div(b.select(odd, cosine, sine), b.select(odd, sine, cosine))
    return identity_if_tiny(b, x, with_sign_of(b, b.select(odd, b.neg(quotient), quotient), x))

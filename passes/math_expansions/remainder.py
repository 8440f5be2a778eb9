"""The remainder of a division rounded toward zero, C's fmod (arith.remf); it is exact.

A remainder that a fused multiply-add leaves is exact where the quotient is a whole number of no more bits than the
significand.  So where |x| is no more than 2**(p - 2) times |y|, one division does.  Else multiples of |y| times powers
of two are taken away first, p - 2 bits of the quotient at a time, in a loop that hardly any argument enters.
"""

from __future__ import annotations

from .builder import MathBuilder, V
from .exponential import FORMATS


def remf(b: MathBuilder[V], x: V, y: V) -> V:
    zero, infinity = b.constant(0.0, x), b.constant(float("inf"), x)
    magnitude, divisor = b.abs(x), b.abs(y)
    # Of an infinity, by zero, and of or by NaN: these comparisons hold for NaN too.
    undefined = b.ior(b.cmp("uge", magnitude, infinity), b.cmp("ule", divisor, zero))
    start = b.select(undefined, zero, magnitude)
    limit = b.mul(divisor, b.constant(2.0 ** (FORMATS[b.width(x)].mantissa - 1), x))
    rest = b.repeat_while(
        lambda rest: b.cmp("ogt", rest, limit), lambda rest: reduce(b, rest, scaled(b, divisor, rest)), start
    )
    # An infinite divisor leaves what is smaller as it is.
    rest = b.select(b.cmp("olt", start, divisor), start, reduce(b, rest, divisor))
    return b.select(undefined, b.constant(float("nan"), x), b.copysign(rest, x))


def reduce(b: MathBuilder[V], x: V, y: V) -> V:
    """x modulo y, both positive, x below 2**(p - 1) y.  The quotient rounded to nearest leaves no more than y / 2."""
    rest = b.fma(b.neg(b.round_even(b.div(x, y))), y, x)
    return b.select(b.cmp("olt", rest, b.constant(0.0, x)), b.add(rest, y), rest)


def scaled(b: MathBuilder[V], y: V, x: V) -> V:
    """y times the least power of two, of 1 or more, so that x is less than 2**(p - 1) times it."""
    form = FORMATS[b.width(x)]
    tiny = b.cmp("olt", y, b.constant(2.0 ** (1 - form.bias), y))
    shift = form.mantissa + 1
    normal = b.select(tiny, b.mul(y, b.constant(2.0**shift, y)), y)
    exponent = b.isub(stored_exponent(b, normal), b.select(tiny, b.iconstant(shift, y), b.iconstant(0, y)))
    power = b.isub(b.isub(stored_exponent(b, x), exponent), b.iconstant(form.mantissa - 1, x))
    power = b.select(b.icmp("sgt", power, b.iconstant(0, x)), power, b.iconstant(0, x))
    half = b.shr_s(power, 1)
    return b.mul(b.mul(y, power_of_two(b, half)), power_of_two(b, b.isub(power, half)))


def stored_exponent(b: MathBuilder[V], x: V) -> V:
    """The exponent of a positive float, counted from the least."""
    return b.shr_u(b.bitcast_to_int(x), FORMATS[b.width(x)].mantissa)


def power_of_two(b: MathBuilder[V], n: V) -> V:
    form = FORMATS[b.width(n)]
    return b.bitcast_to_float(b.shl(b.iadd(n, b.iconstant(form.bias, n)), form.mantissa))

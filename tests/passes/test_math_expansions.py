"""Every expansion of a math function, run on arrays and compared with a more precise reference on its whole domain."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.special

from nablair.passes.math_expansions import EXPANSIONS

FLOATS = {32: np.float32, 64: np.float64}
INTEGERS = {32: np.int32, 64: np.int64}

MORE_PRECISE = {
    "math.acos": (np.arccos, mpmath.acos),
    "math.acosh": (np.arccosh, mpmath.acosh),
    "math.asin": (np.arcsin, mpmath.asin),
    "math.asinh": (np.arcsinh, mpmath.asinh),
    "math.atan": (np.arctan, mpmath.atan),
    "math.atan2": (np.arctan2, mpmath.atan2),
    "math.atanh": (np.arctanh, mpmath.atanh),
    "math.cos": (np.cos, mpmath.cos),
    "math.cosh": (np.cosh, mpmath.cosh),
    "math.erf": (scipy.special.erf, mpmath.erf),
    "math.exp": (np.exp, mpmath.exp),
    "math.exp2": (np.exp2, lambda x: mpmath.mpf(2) ** x),
    "math.expm1": (np.expm1, mpmath.expm1),
    "math.log": (np.log, mpmath.log),
    "math.log10": (np.log10, mpmath.log10),
    "math.log1p": (np.log1p, mpmath.log1p),
    "math.log2": (np.log2, lambda x: mpmath.log(x, 2)),
    "math.powf": (np.power, lambda x, y: mpmath.power(abs(x), y) * (-1 if x < 0 and y % 2 else 1)),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), lambda x: 1 / mpmath.sqrt(x)),
    "math.sin": (np.sin, mpmath.sin),
    "math.sinh": (np.sinh, mpmath.sinh),
    "math.tan": (np.tan, mpmath.tan),
    "math.tanh": (np.tanh, mpmath.tanh),
}
"""For f32 a function of f64 arrays, for f64 one of mpmath."""

INTERVALS = {
    "math.acos": [(-1.0, 1.0), (0.99, 1.0)],
    "math.acosh": [(1.0, 1.1), (1.0, 1e4)],
    "math.asin": [(-1.0, 1.0), (0.99, 1.0)],
    "math.asinh": [(-2.0, 2.0), (-1e4, 1e4)],
    "math.atan": [(-2.0, 2.0), (-1e4, 1e4)],
    "math.atanh": [(-1.0, 1.0), (-0.1, 0.1)],
    "math.cos": [(-8.0, 8.0), (-1e4, 1e4)],
    "math.cosh": [(-3.0, 3.0), (-90.0, 90.0)],
    "math.erf": [(-1.0, 1.0), (-6.2, 6.2)],
    "math.exp": [(-1.0, 1.0), (-104.0, 89.0), (-750.0, 711.0)],
    "math.exp2": [(-1.0, 1.0), (-151.0, 129.0), (-1080.0, 1026.0)],
    "math.expm1": [(-0.5, 0.5), (-18.0, 89.0), (-40.0, 711.0)],
    "math.log": [(0.5, 2.0), (0.0, 100.0)],
    "math.log10": [(0.5, 2.0), (0.0, 100.0)],
    "math.log1p": [(-1.0, 1.0), (-0.01, 0.01), (0.0, 100.0)],
    "math.log2": [(0.5, 2.0), (0.0, 100.0)],
    "math.rsqrt": [(0.0, 4.0)],
    "math.sin": [(-8.0, 8.0), (-1e4, 1e4)],
    "math.sinh": [(-3.0, 3.0), (-90.0, 90.0), (-711.0, 711.0)],
    "math.tan": [(-8.0, 8.0), (-1e4, 1e4)],
    "math.tanh": [(-1.0, 1.0), (-20.0, 20.0)],
}
"""Where a function does something, so that samples are dense there; samples of all exponents come on top."""

UNARY = [name for name, row in EXPANSIONS.items() if row.arity == 1]


def two_sum(a, b):
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def sum_to_odd(a, b):
    """a + b, where inexact the neighbour with an odd last bit: rounding that again is as rounding the exact sum."""
    total, error = two_sum(a, b)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(error) & (bits & 1 == 0)
    return np.where(inexact, bits + np.where((error > 0) == (total > 0), 1, -1), bits).view(np.float64)


def fma_f32(a, b, c):
    """The product is exact in f64."""
    return sum_to_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)).astype(np.float32)


def fma_f64(a, b, c):
    """Boldo and Melquiond, IEEE Transactions on Computers 57, 2008; rational numbers where a part may underflow."""
    product = a * b
    high_a, high_b = (x * 134217729.0 - (x * 134217729.0 - x) for x in (a, b))
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    middle, tail = two_sum(c, error)
    high, rest = two_sum(product, middle)
    total = high + sum_to_odd(rest, tail)
    finite = np.isfinite(a) & np.isfinite(b)
    ordinary = [(abs(x) > 1e-250) & (abs(x) < 1e280) for x in (a, b, product, total)]
    simple = np.logical_and.reduce(ordinary) & (abs(c) < 1e280)
    total = np.where(finite & ~np.isfinite(c), c, np.where(simple, total, product + c))
    for i in np.flatnonzero(finite & np.isfinite(c) & ~simple & (a != 0) & (b != 0)):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        try:
            total[i] = float(exact)
        except OverflowError:
            total[i] = np.inf if exact > 0 else -np.inf
    return total


class ArrayBuilder:
    """Runs the primitives on numpy arrays instead of building them."""

    def width(self, x):
        return x.dtype.itemsize * 8

    def constant(self, value, like):
        return np.full(like.shape, value, like.dtype)

    def iconstant(self, value, like):
        width = self.width(like)
        return np.full(like.shape, (value + (1 << width - 1)) % (1 << width) - (1 << width - 1), INTEGERS[width])

    add = staticmethod(np.add)
    sub = staticmethod(np.subtract)
    mul = staticmethod(np.multiply)
    div = staticmethod(np.divide)
    neg = staticmethod(np.negative)
    sqrt = staticmethod(np.sqrt)
    round_even = staticmethod(np.rint)
    abs = staticmethod(np.abs)
    copysign = staticmethod(np.copysign)
    select = staticmethod(np.where)
    iadd = staticmethod(np.add)
    isub = staticmethod(np.subtract)
    iand = staticmethod(np.bitwise_and)
    ior = staticmethod(np.bitwise_or)
    ixor = staticmethod(np.bitwise_xor)

    def fma(self, a, b, c):
        assert a.dtype == b.dtype == c.dtype
        return (fma_f32 if a.dtype == np.float32 else fma_f64)(a, b, c)

    def cmp(self, predicate, a, b):
        if predicate in ("uno", "ord"):
            return (np.isnan(a) | np.isnan(b)) == (predicate == "uno")
        relation = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal}
        relation |= {"gt": np.greater, "ge": np.greater_equal}
        nan = np.isnan(a) | np.isnan(b)
        return relation[predicate[1:]](a, b) & ~nan if predicate[0] == "o" else relation[predicate[1:]](a, b) | nan

    def icmp(self, predicate, a, b):
        return {"eq": np.equal, "ne": np.not_equal, "slt": np.less, "sgt": np.greater}[predicate](a, b)

    def repeat_while(self, condition, step, start):
        while condition(start).any():
            start = step(start)
        return start

    def bitcast_to_int(self, a):
        return a.view(INTEGERS[self.width(a)])

    def bitcast_to_float(self, a):
        return a.view(FLOATS[self.width(a)])

    def shl(self, a, count):
        return np.left_shift(a, a.dtype.type(count))

    def shr_s(self, a, count):
        return np.right_shift(a, a.dtype.type(count))

    def shr_u(self, a, count):
        unsigned = a.view(np.dtype(f"u{a.dtype}"))
        return np.right_shift(unsigned, unsigned.dtype.type(count)).view(a.dtype)

    def int_to_float(self, a):
        return a.astype(FLOATS[self.width(a)])

    def extend(self, a):
        return a.astype(np.float64)

    def truncate(self, a):
        return a.astype(np.float32)

    def truncate_int(self, a):
        return a.astype(np.int32)


def run(name, *arguments):
    with np.errstate(all="ignore"):
        return EXPANSIONS[name].program(ArrayBuilder(), *arguments)


def special_values(dtype):
    info = np.finfo(dtype)
    positive = [0.0, info.smallest_subnormal, info.tiny, info.max, np.inf, np.nan, info.eps, 1.0, 0.5, 2.0, 1.5, 3.0]
    positive += [info.tiny - info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg, 0.1, 10.0, 100.0, 1e4, 2.0**24]
    return np.array([sign * value for value in positive for sign in (1, -1)], dtype)


def samples_f32(name):
    """Some 300,000: all exponents and signs, dense intervals, special values."""
    bits = np.arange(0, 2**32, 2**32 // 120_000, dtype=np.uint32)
    random = np.random.default_rng(0)
    dense = [random.uniform(low, high, 60_000).astype(np.float32) for low, high in INTERVALS[name]]
    return np.concatenate([bits.view(np.float32), special_values(np.float32), *dense])


def samples_f64(name, count):
    random = np.random.default_rng(1)
    any_bits = random.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    dense = [random.uniform(low, high, count) for low, high in INTERVALS[name]]
    return np.concatenate([any_bits, special_values(np.float64), *dense])


def assert_same_special_values(y, expected, *arguments):
    """Where the rounded reference is NaN, infinite or a zero, y is that (or, beside a zero, the smallest denormal)."""
    smallest = np.finfo(y.dtype).smallest_subnormal
    nan = np.isnan(expected)
    special = np.isinf(expected) | np.isinf(y) | (expected == 0)
    almost_zero = (expected == 0) & (np.abs(y) <= smallest) & (np.signbit(y) == np.signbit(expected))
    same = np.where(special, (y == expected) & (np.signbit(y) == np.signbit(expected)) | almost_zero, True)
    wrong = np.flatnonzero((np.isnan(y) != nan) | ~nan & ~same)
    assert not wrong.size, [(*(float(a[i]) for a in arguments), float(y[i]), float(expected[i])) for i in wrong[:5]]


def largest_error(y, reference, dtype):
    """In units in the last place of the binade of the reference (an array of longer floats)."""
    info = np.finfo(dtype)
    exponent = np.maximum(np.frexp(reference)[1], info.minexp + 1)
    return np.abs(y - reference) / np.ldexp(1.0, exponent - info.nmant - 1)


@pytest.mark.parametrize("name", UNARY)
def test_f32_is_within_its_bound(name):
    x = samples_f32(name)
    y = run(name, x)
    assert y.dtype == np.float32
    with np.errstate(all="ignore"):
        reference = MORE_PRECISE[name][0](x.astype(np.float64))
        expected = reference.astype(np.float32)
        assert_same_special_values(y, expected, x)
        finite = np.isfinite(expected) & np.isfinite(y)
        errors = largest_error(y[finite].astype(np.float64), reference[finite], np.float32)
    worst = errors.argmax()
    assert errors[worst] <= EXPANSIONS[name].ulp_f32, (errors[worst], x[finite][worst])
    assert errors[worst] > 0.3 * EXPANSIONS[name].ulp_f32, "the stated bound is far from what is measured"


@pytest.mark.parametrize("name", UNARY)
def test_f64_is_within_its_bound(name):
    assert_f64_within_bound(name, samples_f64(name, 400))


def assert_f64_within_bound(name, *arguments):
    y = run(name, *arguments)
    assert y.dtype == np.float64
    with mpmath.workprec(200), np.errstate(all="ignore"):
        plain = MORE_PRECISE[name][0](*arguments)
        # Special arguments, and the signs of zeros, are left to NumPy.
        ordinary = np.isfinite([plain, y, *arguments]).all(axis=0) & np.all([plain, *arguments], axis=0)
        for i in np.flatnonzero(ordinary):
            reference = MORE_PRECISE[name][1](*(mpmath.mpf(float(a[i])) for a in arguments))
            plain[i] = float(reference)
            exponent = max(int(mpmath.frexp(reference)[1]), -1021)
            error = abs(mpmath.mpf(float(y[i])) - reference) * mpmath.mpf(2) ** (53 - exponent)
            assert error <= EXPANSIONS[name].ulp_f64, (float(error), *(float(a[i]) for a in arguments), float(y[i]))
        assert_same_special_values(y, plain, *arguments)


HARD_TO_REDUCE = [
    # The doubles nearest to multiples of pi/2 (relative to their size), from the Handbook of Floating-Point Arithmetic,
    # and large ones.
    6381956970095103.0 * 2.0**797,
    5.319372648326541e255,
    2.0**1023,
    1.7976931348623157e308,
    1e22,
    3.0 * np.pi / 2,
    np.pi,
    np.pi / 2,
    2.0**107,
    np.nextafter(2.0**107, 0),
    np.nextafter(2.0**160, 0),
]


@pytest.mark.parametrize("name", ["math.sin", "math.cos", "math.tan"])
def test_f64_reduction_of_hard_arguments(name):
    random = np.random.default_rng(2)
    multiples = np.rint(random.uniform(1, 2.0**52, 300)) * (np.pi / 2)
    with mpmath.workprec(1300):
        x = np.concatenate([HARD_TO_REDUCE, multiples, np.ldexp(1.0, np.arange(-40, 1024, 7))])
        y = run(name, x)
        for argument, value in zip(x, y):
            reference = MORE_PRECISE[name][1](mpmath.mpf(float(argument)))
            unit = mpmath.mpf(2) ** (int(mpmath.frexp(reference)[1]) - 53)
            assert abs(mpmath.mpf(float(value)) - reference) / unit <= EXPANSIONS[name].ulp_f64, argument


def power_arguments(dtype, count):
    """Pairs with results of every size, bases near 1, random bits, and all pairs of special values."""
    random = np.random.default_rng(3)
    info = np.finfo(dtype)
    limit = info.maxexp
    base = np.concatenate(
        [np.exp2(random.uniform(-limit + 2, limit - 1, count)), 1 + random.uniform(-0.3, 0.4, count) ** 3]
    )
    exponent = random.uniform(-1.06, 1.06, 2 * count) * limit / np.abs(np.log2(base))
    integers = random.integers(-60, 60, count).astype(np.float64)
    bits = random.integers(0, 2**info.bits, (2, count), dtype=np.uint64).astype(f"u{info.bits // 8}").view(dtype)
    special = np.concatenate([special_values(dtype), np.array([5, -5, -7.5, 1e30, 16777215], dtype)])
    x = [
        base.astype(dtype),
        -np.exp(random.normal(0, 2, count)).astype(dtype),
        bits[0],
        np.repeat(special, special.size),
    ]
    y = [exponent.astype(dtype), integers.astype(dtype), bits[1], np.tile(special, special.size)]
    return np.concatenate(x), np.concatenate(y)


def test_power_f32():
    x, y = power_arguments(np.float32, 50_000)
    z = run("math.powf", x, y)
    with np.errstate(all="ignore"):
        reference = np.power(x.astype(np.float64), y.astype(np.float64))
        expected = reference.astype(np.float32)
        assert_same_special_values(z, expected, x, y)
        finite = np.isfinite(expected) & np.isfinite(z)
        errors = largest_error(z[finite].astype(np.float64), reference[finite], np.float32)
    assert errors.max() <= EXPANSIONS["math.powf"].ulp_f32


def test_power_f64():
    with np.errstate(all="ignore"):
        x, y = power_arguments(np.float64, 300)
    assert_f64_within_bound("math.powf", x, y)


def angle_arguments(dtype, count):
    """Points at all angles, at quotients of every size, random bits, and all pairs of special values."""
    random = np.random.default_rng(5)
    info = np.finfo(dtype)
    near = random.normal(size=(2, count)).astype(dtype)
    sizes = np.ldexp(random.normal(size=(2, count)), random.integers(info.minexp, info.maxexp - 4, (2, count)))
    bits = random.integers(0, 2**info.bits, (2, count), dtype=np.uint64).astype(f"u{info.bits // 8}").view(dtype)
    special = special_values(dtype)
    pairs = [np.repeat(special, special.size), np.tile(special, special.size)]
    return [np.concatenate([near[i], sizes[i].astype(dtype), bits[i], pairs[i]]) for i in (0, 1)]


def test_atan2_f32():
    y, x = angle_arguments(np.float32, 50_000)
    angle = run("math.atan2", y, x)
    with np.errstate(all="ignore"):
        reference = np.arctan2(y.astype(np.float64), x.astype(np.float64))
        expected = reference.astype(np.float32)
        assert_same_special_values(angle, expected, y, x)
        finite = np.isfinite(expected)
        errors = largest_error(angle[finite].astype(np.float64), reference[finite], np.float32)
    assert errors.max() <= EXPANSIONS["math.atan2"].ulp_f32


def test_atan2_f64():
    assert_f64_within_bound("math.atan2", *angle_arguments(np.float64, 300))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_are_exact(dtype):
    """Of quotients of every size, of random bits, and all pairs of special values."""
    x, y = angle_arguments(dtype, 2000)
    found = run("arith.remf", x, y)
    with np.errstate(all="ignore"):
        expected = np.fmod(x, y)
    same = (found == expected) & (np.signbit(found) == np.signbit(expected)) | np.isnan(found) & np.isnan(expected)
    assert found.dtype == dtype and same.all(), (x[~same][:3], y[~same][:3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_fma_of_the_model_rounds_once(dtype):
    """The tests' own arithmetic: fma of random and of cancelling operands against rational numbers."""
    random = np.random.default_rng(4)
    a, b = random.normal(size=(2, 500)).astype(dtype)
    c = np.concatenate([-(a[:250] * b[:250]), random.normal(size=250).astype(dtype) * dtype(2.0) ** -30])
    got = ArrayBuilder().fma(a, b, c)
    for i in range(500):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        error = abs(Fraction(float(got[i])) - exact)
        for neighbour in (np.nextafter(got[i], dtype(np.inf)), np.nextafter(got[i], dtype(-np.inf))):
            assert error <= abs(Fraction(float(neighbour)) - exact)

"""Activations against mpmath and SciPy: near 0, of ordinary size and in the tails, where results are smallest.

An error counts in units in the last place of the exact result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
import scipy.special as special
from fuzzing import cases
from ml_dtypes import bfloat16, finfo

from nablair import autograd as ag


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def normal_cdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def gelu_tanh(x: Any) -> Any:
    return x * logistic(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3))


# The function, the same of mpmath, and where its left tail ends in f32 and f64.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], tuple[float, float]]] = {
    "gelu": (ag.gelu, lambda x: x * normal_cdf(x), (-14.5, -38.8)),
    "gelu by tanh": (lambda x: ag.gelu(x, approximate=True), gelu_tanh, (-11, -22)),
    "silu": (ag.silu, lambda x: x * logistic(x), (-110, -760)),
    "sigmoid": (ag.sigmoid, logistic, (-104, -750)),
    "softplus": (ag.softplus, lambda x: mp.log1p(mp.exp(x)), (-104, -750)),
}

UNITS = 2.0
"""How many units f32 and f64 may err."""

CUBE = 2 * math.sqrt(2 / math.pi)
IN_DOUBLE: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: x * special.ndtr(x),
    "gelu by tanh": lambda x: x * special.expit(CUBE * (x + 0.044715 * x**3)),
    "silu": lambda x: x * special.expit(x),
    "sigmoid": special.expit,
    "softplus": lambda x: np.logaddexp(0, x),
}
"""The same on float64 arrays, many units of f64 off, which are none of f32."""


def points(random: Any, tail: float, dtype: Any, count: int) -> np.ndarray:
    """Denormal and small numbers, ordinary ones, those of the tail and of its end."""
    info = finfo(dtype)
    least = float(info.smallest_subnormal)
    small = np.exp(random.uniform(np.log(least), 0, count)) * random.choice((-1, 1), count)
    drawn = [small, random.uniform(-6, 6, count), random.uniform(tail, 0, count), tail * random.uniform(0.9, 1, count)]
    edges = np.array([0.0, -0.0, least, -least, float(info.tiny), -float(info.tiny), float(info.max)])
    return np.concatenate([edges, *drawn]).astype(dtype)


def units(found: np.ndarray, exact: list[Any], dtype: Any) -> np.ndarray:
    """By how many units in the last place each number is off."""
    info = finfo(dtype)
    off: list[float] = []
    for a, e in zip(found, exact, strict=True):
        exponent = max(int(mp.frexp(e)[1]) - 1, info.minexp) - info.nmant
        off.append(float(abs(mp.mpf(float(a)) - e) / mp.mpf(2) ** exponent))
    return np.array(off)


CASES = [(d, np.float32) for d in ag.devices()] + [("cpu", t) for t in (np.float64, np.float16, bfloat16)]


@pytest.mark.parametrize(("device", "dtype"), CASES)
def test_values_are_accurate_everywhere(device: str, dtype: Any) -> None:
    random = np.random.default_rng(11)
    double = dtype is np.float64
    given = [points(random, tails[double], dtype, cases(60)) for *_, tails in FUNCTIONS.values()]

    def values(arrays: list[Any]) -> list[Any]:
        return [f(x) for (f, *_), x in zip(FUNCTIONS.values(), arrays, strict=True)]

    found = [np.asarray(y) for y in ag.jit(values)([ag.asarray(x, device=device) for x in given])]
    with mp.workdps(60):
        for (name, (_, function, _)), x, y in zip(FUNCTIONS.items(), given, found, strict=True):
            off = units(y, [function(mp.mpf(float(v))) for v in x], dtype)
            bound = UNITS if finfo(dtype).bits >= 32 else 0.51
            assert (off <= bound).all(), (name, float(off.max()), float(x[off.argmax()]), float(y[off.argmax()]))
            signs = np.signbit(x) if name.startswith(("gelu", "silu")) else np.zeros(x.shape, bool)
            assert (np.signbit(y) == signs).all(), name


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("device", ag.devices())
def test_single_precision_is_accurate_at_every_exponent(device: str, name: str) -> None:
    """Numbers of any bits, half of them from 2**-12 to the end of the tail, where roundings meet."""
    function, _, tails = FUNCTIONS[name]
    random = np.random.default_rng(13)
    count = cases(40_000 if device == "cpu" else 4000)
    start, end = np.array([2.0**-12, -tails[0]], np.float32).view(np.int32)
    bits = np.concatenate([random.integers(0, 0x7F800000, count), random.integers(start, end, count)])
    x = np.copysign(bits.astype(np.uint32).view(np.float32), random.choice((-1, 1), 2 * count).astype(np.float32))
    found = np.asarray(ag.jit(function)(ag.asarray(x, device=device))).astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        exact = IN_DOUBLE[name](x.astype(np.float64))
    unit = np.ldexp(1.0, np.maximum(np.frexp(exact)[1] - 1, -126) - 23)
    off = np.abs(found - exact) / unit
    assert (off <= UNITS).all(), (float(off.max()), float(x[off.argmax()]), float(found[off.argmax()]))


@pytest.mark.parametrize(("device", "dtype"), CASES)
def test_limits(device: str, dtype: Any) -> None:
    def values_and_slopes(x: Any) -> list[Any]:
        functions = [f for f, *_ in FUNCTIONS.values()]
        return [f(x) for f in functions] + [ag.grad(lambda x, f=f: ag.sum(f(x)))(x) for f in functions]

    x = ag.asarray(np.array([np.inf, -np.inf, np.nan], dtype), device=device)
    found = [np.asarray(y).astype(np.float64) for y in ag.jit(values_and_slopes)(x)]
    wanted = {"sigmoid": [1.0, 0.0, np.nan], "softplus": [np.inf, 0.0, np.nan]}
    slopes = {"sigmoid": [0.0, 0.0, np.nan]}
    for i, name in enumerate(FUNCTIONS):
        np.testing.assert_array_equal(found[i], wanted.get(name, [np.inf, -0.0, np.nan]), name)
        assert np.signbit(found[i][1]) == (name not in wanted), name
        np.testing.assert_array_equal(found[len(FUNCTIONS) + i], slopes.get(name, [1.0, 0.0, np.nan]), name)


@pytest.mark.parametrize(("device", "dtype"), [c for c in CASES if finfo(c[1]).bits >= 32])
def test_slope_of_gelu_is_as_accurate_as_its_terms(device: str, dtype: Any) -> None:
    """The distribution function and x times the density: a few units of the larger one, where neither is denormal."""
    random = np.random.default_rng(12)
    x = points(random, -37 if dtype is np.float64 else -12.9, dtype, cases(60))
    x = x[np.abs(x.astype(np.float64)) < 37]
    slope = ag.grad(lambda x: ag.sum(ag.gelu(x)))
    found = np.asarray(ag.jit(slope)(ag.asarray(x, device=device)))
    epsilon = float(finfo(dtype).eps)
    with mp.workdps(60):
        for value, y in zip(x, found, strict=True):
            v = mp.mpf(float(value))
            terms = normal_cdf(v), v * mp.npdf(v)
            allowed = 4 * epsilon * max(abs(t) for t in terms) + float(finfo(dtype).smallest_subnormal) * 40
            assert abs(mp.mpf(float(y)) - sum(terms)) <= allowed, (float(value), float(y), float(sum(terms)))

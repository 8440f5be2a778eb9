"""Error bounds hold: what float32 gives for drawn chains of ops lies no further from the exact result than is said."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from fuzzing import cases

from nablair.ir.support.error_bounds import Bounded, certain, exact, is_exact_kind, moved, of_function, rounded

UNIT = 2.0**-24


def test_rounding_after_every_step_stays_within_the_bound() -> None:
    for seed in range(cases(60)):
        rng = random.Random(seed)
        start = np.float32(rng.uniform(-4, 4))
        found, true, bound = start, Fraction(float(start)), exact(np.asarray(start, np.float64))
        for _ in range(12):
            other = np.float32(rng.uniform(-4, 4))
            if rng.random() < 0.5:
                found, true = np.float32(found + other), true + Fraction(float(other))
                bound = rounded(bound.value + float(other), bound.error, UNIT)
            else:
                found, true = np.float32(found * other), true * Fraction(float(other))
                bound = rounded(bound.value * float(other), bound.error * abs(float(other)), UNIT)
        assert abs(Fraction(float(found)) - true) <= Fraction(float(bound.error)) + abs(true) * Fraction(2) ** -48
        # A bound of nothing but infinity would hold, too.
        assert bound.error <= 1e-3 * max(1.0, abs(bound.value)) * 4.0**12


def test_what_moves_takes_its_error_along() -> None:
    x = Bounded(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.2, 0.3]))
    found = moved(lambda a, at: a[at], x, exact(np.array([2, 0])))
    np.testing.assert_array_equal(found.value, [3.0, 1.0])
    np.testing.assert_array_equal(found.error, [0.3, 0.1])


def test_what_is_not_known_has_no_bound() -> None:
    found = certain(np.array([1.0, 2.0]), np.array([True, False]))
    np.testing.assert_array_equal(found.error, [0.0, np.inf])
    assert of_function(np.asarray(1.0), np.asarray(0.0), UNIT).error >= 8 * UNIT
    assert [is_exact_kind(np.ones(1, t)) for t in ("?", "i4", "u1", "f4")] == [True, True, True, False]

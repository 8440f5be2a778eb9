"""The polynomials of exp reach the accuracy that they claim."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from nablair.ir.support.exp_constants import EXP, LN2_HIGH, LN2_LOW, LOG2_E

LN2 = Fraction(6931471805599453094172321214581765680755001343602552, 10**52)
"""ln 2, from OEIS A002162."""


@pytest.mark.parametrize(("width", "claimed"), [(32, 2.0**-28.2), (64, 2.0**-58.0)])
def test_the_polynomial_is_e_to_the_r(width: int, claimed: float) -> None:
    for i in range(-200, 201):
        r = Fraction(i, 200) * LN2 / 2
        value, power = Fraction(0), Fraction(1)
        for factor in EXP[width]:
            value += Fraction(factor) * power
            power *= r
        exact, term = Fraction(0), Fraction(1)
        for n in range(30):
            exact += term
            term *= r / (n + 1)
        assert abs(1 + r + r * r * value - exact) <= Fraction(claimed) * Fraction(21, 20)


@pytest.mark.parametrize(("width", "kind"), [(32, np.float32), (64, np.float64)])
def test_the_two_parts_of_ln_2_are_numbers_of_the_format(width: int, kind: type) -> None:
    high, low = LN2_HIGH[width], LN2_LOW[width]
    assert float(kind(high)) == high
    assert abs(Fraction(high) + Fraction(low) - LN2) <= abs(Fraction(low)) * Fraction(2) ** -23
    assert abs(Fraction(LOG2_E) * LN2 - 1) < Fraction(2) ** -52

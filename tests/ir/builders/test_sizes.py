"""Sizes that are computed from others: arithmetic on their texts is arithmetic on their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from built import computed
from fuzzing import cases

from nablair.ir.builders import sizes
from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.types import INDEX


def random_size(draw: Any, depth: int) -> Any:
    if depth == 0:
        return [*"nm", 1, 2, 3][draw.integers(5)]
    a, b = random_size(draw, depth - 1), random_size(draw, depth - 1)
    choices = [sizes.plus, sizes.minus, sizes.times, sizes.largest, sizes.smallest]
    pick = draw.integers(6)
    return sizes.quotient(a, int(draw.integers(1, 4))) if pick == 5 else choices[pick](a, b)


@pytest.mark.parametrize("seed", range(cases(40)))
def test_sizes_compute_like_numbers(seed: int) -> None:
    draw = np.random.default_rng(seed)
    size = random_size(draw, 3)
    assert sizes.plus(size, 0) == size
    bound = sizes.lower_bound(size, 2)
    for n, m in ((2, 2), (2, 7), (5, 3)):
        known = {"n": n, "m": m}
        value = sizes.evaluate(size, known)
        assert bound is None or bound <= value
        other = random_size(draw, 2)
        right = sizes.evaluate(other, known)
        assert sizes.evaluate(sizes.plus(size, other), known) == value + right
        assert sizes.evaluate(sizes.minus(size, other), known) == value - right
        assert sizes.evaluate(sizes.times(size, other), known) == value * right
        assert sizes.evaluate(sizes.largest(size, other), known) == max(value, right)
        assert sizes.evaluate(sizes.smallest(size, other), known) == min(value, right)
        assert sizes.minus(sizes.plus(size, other), other) == size


@pytest.mark.parametrize("seed", range(cases(20)))
def test_the_code_of_a_size_computes_its_number(seed: int) -> None:
    size = random_size(np.random.default_rng(seed), 3)
    for n, m in ((2, 2), (2, 7), (5, 3)):

        def write(b: ScalarBuilder, n: Any, m: Any) -> list[Any]:
            return [sizes.compute(b, size, {"n": n, "m": m}.__getitem__)]

        (found,) = computed(ScalarBuilder, [INDEX, INDEX], write, n, m)
        assert found == sizes.evaluate(size, {"n": n, "m": m})


def test_what_contradicts_is_said_with_the_numbers() -> None:
    assert sizes.contradiction({"n": 5, "n + 1": 6, "floordiv(n, 2)": 2, "m + 1": 9}) is None
    assert sizes.contradiction({"n": 5, "n + 1": 3}) == "'n + 1' is 3, but n is 5"
    assert sizes.symbols("n * m + max(k - 1, 0) - floordiv(l, 2)") == {"n", "m", "k", "l"}
    assert [sizes.is_symbol(s) for s in ("n", "n + 1", 3, "max(n, 0)", "?")] == [True, False, False, False, True]
    with pytest.raises(ZeroDivisionError):
        sizes.quotient("n", 0)

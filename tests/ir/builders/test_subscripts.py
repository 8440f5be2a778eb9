"""Subscripts: their arithmetic is that of integers, and so is the code that computes them."""

from __future__ import annotations

import random
from typing import Any

import pytest
from built import computed
from fuzzing import cases

from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.builders.subscripts import AffineSubscript, access
from nablair.ir.operations import Block
from nablair.ir.types import INDEX
from nablair.ir.values import Value

Pair = tuple[Any, int]
"""A subscript (or integer), and its number."""


def drawn(rng: random.Random, leaves: list[Pair], depth: int) -> Pair:
    """An expression of subscripts, and its number."""
    if depth == 0:
        return rng.choice([*leaves, (n := rng.randrange(-4, 5), n)])
    x, a = drawn(rng, leaves, depth - 1)
    pick = rng.randrange(6)
    if pick < 2:
        y, b = drawn(rng, leaves, depth - 1)
        return (x + y, a + b) if pick else (x - y, a - b)
    n = rng.randrange(1, 5)
    if pick == 2:
        return x * n, a * n
    if pick == 3:
        return -AffineSubscript.of(x), -a
    x = AffineSubscript.of(x)
    return (x // n, a // n) if pick == 4 else (x % n, a % n)


def test_subscripts_compute_like_integers() -> None:
    for seed in range(cases(60)):
        rng = random.Random(seed)
        numbers = [rng.randrange(-9, 10) for _ in range(3)]
        expected = 0

        def write(b: ScalarBuilder, *values: Any, numbers: Any = numbers, rng: Any = rng) -> list[Any]:
            nonlocal expected
            leaves = [(AffineSubscript.of(v), n) for v, n in zip(values, numbers, strict=True)]
            subscript, expected = drawn(rng, leaves, 4)
            found = AffineSubscript.of(subscript)
            # What the expression says, before any code.
            known = dict(zip(values, numbers, strict=True))
            assert found.expr.evaluate([known[v] for v in found.values]) == expected
            assert len(set(found.values)) == len(found.values)
            return [found.value(b)]

        (result,) = computed(ScalarBuilder, [INDEX] * 3, write, *numbers)
        assert result == expected, seed


def test_equal_subscripts_are_equal_however_they_are_written() -> None:
    i, j = (AffineSubscript.of(v) for v in Block([INDEX, INDEX]).arguments)
    assert i + j - j == i
    assert hash(2 * i + 3) == hash(i + 1 + i + 2)
    assert i - i == AffineSubscript.of(0)
    assert (i * 4 + j) // 1 == 4 * i + j
    assert i != j


def test_an_access_lists_each_index_once() -> None:
    i, j = (AffineSubscript.of(v) for v in Block([INDEX, INDEX]).arguments)
    map_, values = access([i + j, 2 * j, 0, j - i])
    assert values == [*i.values, *j.values]
    assert map_.evaluate([5, 7]) == (12, 14, 0, 2)


def test_what_is_not_affine_is_refused_with_what_to_do() -> None:
    i, j = (AffineSubscript.of(v) for v in Block([INDEX, INDEX]).arguments)
    with pytest.raises(TypeError, match="multiply the index values with `mul`"):
        assert i * j
    with pytest.raises(TypeError, match="divide the index values with `floordiv`"):
        assert i // j
    with pytest.raises(TypeError, match="divide the index values"):
        assert i % j


def test_values_are_replaced_by_subscripts() -> None:
    for seed in range(cases(60)):
        rng = random.Random(seed)
        values = Block([INDEX] * 5).arguments
        numbers: dict[Value, int] = {v: rng.randrange(-9, 10) for v in values}
        leaves: list[Pair] = [(AffineSubscript.of(v), numbers[v]) for v in values]
        outer = AffineSubscript.of(drawn(rng, leaves[:3], 3)[0])
        placed = {v: drawn(rng, leaves, 2) for v in rng.sample(values[:3], rng.randrange(4))}
        found = outer.replaced({v: AffineSubscript.of(s) for v, (s, _) in placed.items()})
        known = {**numbers, **{v: n for v, (_, n) in placed.items()}}
        assert found.expr.evaluate([numbers[v] for v in found.values]) == outer.expr.evaluate(
            [known[v] for v in outer.values]
        ), seed
        assert len(set(found.values)) == len(found.values)

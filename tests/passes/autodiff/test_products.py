"""Derivatives of products over axes: of first and second order, with zeros, infinities and overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzzing import cases
from masked_programs import interpreted

from nablair import autograd as ag

Places = tuple[int, ...]


def others(x: np.ndarray, axes: Places, without: set[Places]) -> float:
    """The product of the elements that share the axes kept with the places left out, in float64."""
    (one, *_) = without
    kept = [slice(None) if i in axes else one[i] for i in range(x.ndim)]
    left = np.ones(x.shape, bool)
    for place in without:
        left[place] = False
    return float(np.prod(x[tuple(kept)][left[tuple(kept)]]))


def expected(x: np.ndarray, axes: Places) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the sum of products, and the sums of the rows of its Hessian."""
    first, second = np.zeros(x.shape), np.zeros(x.shape)
    for place in np.ndindex(*x.shape):
        first[place] = others(x, axes, {place})
        fellows = [p for p in np.ndindex(*x.shape) if all(i in axes or p[i] == place[i] for i in range(x.ndim))]
        second[place] = sum(others(x, axes, {place, p}) for p in fellows if p != place)
    return first, second


def derivatives(axes: Places) -> Any:
    first = ag.grad(lambda x: ag.sum(ag.prod(x, axis=axes)))
    return lambda x: (first(x), ag.grad(lambda x: ag.sum(first(x)))(x))


SHAPES = [(1,), (4,), (0,), (3, 2), (2, 3, 2), (33,), (70,), (2, 40), (0, 3)]


@pytest.mark.parametrize("seed", range(cases(12)))
def test_products_of_the_others(seed: int) -> None:
    random = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    axes = tuple(sorted(random.choice(len(shape), random.integers(1, len(shape) + 1), replace=False).tolist()))
    x = np.where(random.random(shape) < 0.15, random.choice([0.0, -0.0, 3.0]), random.uniform(-1.5, 1.5, shape))
    for actual, wanted in zip(interpreted(derivatives(axes), x), expected(x, axes), strict=True):
        np.testing.assert_allclose(actual, wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("device", ag.devices())
def test_products_on_devices(device: str) -> None:
    rows: list[tuple[list[float], list[float]]] = [
        ([2, 3, 0, 0], [0, 0, 0, 0]),
        ([2, 3, 4, 0], [0, 0, 0, 24]),
        ([np.inf, 2, 1, 1], [2, np.inf, np.inf, np.inf]),
        ([1e25, 1e25, 1e-5, 1], [1e20, 1e20, np.inf, np.inf]),
    ]
    x = ag.asarray(np.array([r for r, _ in rows], np.float32), device=device)
    compiled: Any = ag.jit(derivatives((1,)))
    first, second = compiled(x)
    np.testing.assert_allclose(np.asarray(first), [r for _, r in rows], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(second)[:2], [[0, 0, 6, 6], [12, 8, 6, 26]], rtol=1e-6)
    x.requires_grad = True
    ag.sum(ag.prod(x, axis=1)).backward()
    np.testing.assert_array_equal(np.asarray(x.grad), np.asarray(first))

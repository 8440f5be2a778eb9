"""First and second derivatives of smooth functions against mpmath: at kinks of their formulas and in the far tails,
where a difference of numbers near 1 would leave nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag


def logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def softplus(x: Any) -> Any:
    return mp.log(1 + mp.exp(x))


def gelu_tanh(x: Any) -> Any:
    return x * logistic(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf(0.044715) * x**3))


def entropy(target: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The binary cross entropy against one target."""
    return (
        lambda x: ag.bce_with_logits(x, ag.full_like(x, target), reduction="none"),
        lambda x: (1 - target) * softplus(x) + target * softplus(-x),
    )


# The function, the same of mpmath, and between which limits.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], float, float]] = {
    "softplus": (ag.softplus, softplus, -80, 80),
    "log sigmoid": (lambda x: -ag.softplus(-x), lambda x: -softplus(-x), -80, 80),
    "sigmoid": (ag.sigmoid, logistic, -80, 80),
    "silu": (ag.silu, lambda x: x * logistic(x), -80, 80),
    "tanh": (ag.tanh, mp.tanh, -4, 4),  # beyond, as exact as the result near 1
    "gelu": (ag.gelu, lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, -12.9, 20),
    "gelu by tanh": (lambda x: ag.gelu(x, approximate=True), gelu_tanh, -7, 7),
    "expm1": (ag.expm1, mp.expm1, -80, 80),
    "elu": (ag.elu, lambda x: x if x > 0 else mp.expm1(x), -80, 80),
    "log1p": (ag.log1p, lambda x: mp.log(1 + x), -0.999, 80),
    "erf": (ag.erf, mp.erf, -8, 8),
    "log": (ag.log, mp.log, 1e-6, 80),
    "sqrt": (ag.sqrt, mp.sqrt, 1e-6, 80),
    "rsqrt": (ag.rsqrt, lambda x: 1 / mp.sqrt(x), 1e-6, 80),
    "power": (lambda x: x**2.5, lambda x: x ** mp.mpf(2.5), 1e-6, 80),
    "cross entropy of 0": (*entropy(0.0), -80, 80),
    "cross entropy of 1": (*entropy(1.0), -80, 80),
    "cross entropy of 1/4": (*entropy(0.25), -80, 80),
}


def points(random: Any, low: float, high: float, count: int) -> np.ndarray:
    """Points near 0, of ordinary size, and far out, and 0 itself, where the function has them."""
    size = np.concatenate(
        [10 ** random.uniform(-6, 0, count), random.uniform(0, 8, count), random.uniform(8, 80, count)]
    )
    drawn = np.where(random.random(size.size) < 0.5, -size, size)
    return np.concatenate([[0.0] if low < 0 else [], drawn[(drawn > low) & (drawn < high)]])


def exact(function: Callable[[Any], Any], name: str, x: float, order: int) -> float:
    """The derivative by mpmath; of elu, whose formulas meet at 0, by the one for the sign."""
    found: Any = mp.diff(function, mp.mpf(x), order)
    if name == "elu":
        found = mp.exp(x) if x <= 0 else 2.0 - order
    return float(found)


@pytest.mark.parametrize(("device", "dtype"), [(d, np.float32) for d in ag.devices()] + [("cpu", np.float64)])
def test_derivatives_are_accurate_everywhere(device: str, dtype: Any) -> None:
    random = np.random.default_rng(7)
    given = [points(random, low, high, cases(3)).astype(dtype) for _, _, low, high in FUNCTIONS.values()]

    def derivatives(arrays: list[Any]) -> list[Any]:
        made: list[Any] = []
        for (function, *_), x in zip(FUNCTIONS.values(), arrays, strict=True):
            first = ag.grad(lambda x, f=function: ag.sum(f(x)))
            made += [first(x), ag.grad(lambda x, f=first: ag.sum(f(x)))(x)]
        return made

    found = ag.jit(derivatives)([ag.asarray(x, device=device) for x in given])
    epsilon, least = float(np.finfo(dtype).eps), float(np.finfo(dtype).tiny)
    with mp.workdps(150):
        for i, (name, (_, function, *_)) in enumerate(FUNCTIONS.items()):
            for order in (1, 2):
                actual = np.asarray(found[2 * i + order - 1]).astype(np.float64)
                wanted = np.array([exact(function, name, float(x), order) for x in given[i]])
                # Near 0 a second derivative may pass through 0, and is as exact as what it is the difference of.
                near = np.abs(given[i]) < 4
                allowed = 64 * epsilon * np.abs(wanted) + np.where(near, 4 * epsilon, least)
                worst = np.abs(actual - wanted) / allowed
                assert (worst <= 1).all(), (name, order, given[i][~(worst <= 1)], actual[~(worst <= 1)])

"""Optimizers against their formulas in float64 NumPy; eager and compiled steps agree bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

F32 = np.float32
TARGET = np.array([1.0, -2.0, 3.0])


def gradient(p: Any) -> Any:
    return 2 * (p - TARGET) * np.array([1.0, 0.5, 2.0])


def sgd(lr: float, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False):
    def run(p: Any, steps: int) -> Any:
        v = None
        for _ in range(steps):
            g = gradient(p) + weight_decay * p
            if momentum:
                v = g if v is None else momentum * v + (1 - dampening) * g
                g = g + momentum * v if nesterov else v
            p = p - lr * g
        return p

    return run


def adam(lr: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8, decay: float = 0, shrink: float = 0):
    def run(p: Any, steps: int) -> Any:
        m = v = 0.0
        for t in range(1, steps + 1):
            p = p * (1 - lr * shrink)
            g = gradient(p / (1 - lr * shrink)) + decay * p
            m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
            p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
        return p

    return run


CASES: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (lambda p: ag.optim.SGD(p, 0.05), sgd(0.05)),
    (lambda p: ag.optim.SGD(p, 0.05, momentum=0.9), sgd(0.05, 0.9)),
    (lambda p: ag.optim.SGD(p, 0.05, 0.9, 0.3, 0.01), sgd(0.05, 0.9, 0.3, 0.01)),
    (lambda p: ag.optim.SGD(p, 0.05, 0.9, 0, 0.01, True), sgd(0.05, 0.9, 0, 0.01, True)),
    (lambda p: ag.optim.Adam(p, 0.1), adam(0.1)),
    (lambda p: ag.optim.Adam(p, 0.1, (0.8, 0.95), 1e-6, 0.1), adam(0.1, 0.8, 0.95, 1e-6, 0.1)),
    (lambda p: ag.optim.AdamW(p, 0.1, weight_decay=0.2), adam(0.1, shrink=0.2)),
]


def train(make: Callable[..., Any], compiled: bool, steps: int) -> tuple[Any, Any]:
    p = ag.Tensor([0.5, 0.5, 0.5], requires_grad=True)
    optimizer = make([p])
    weights = ag.asarray([1.0, 0.5, 2.0])

    def step() -> None:
        optimizer.zero_grad()
        ag.sum((p - TARGET.astype(F32)) ** 2 * weights).backward()
        optimizer.step()

    run = ag.jit(step) if compiled else step
    for _ in range(steps):
        run()
    return p.numpy().copy(), run


@pytest.mark.parametrize("number", range(len(CASES)))
def test_steps(number):
    make, reference = CASES[number]
    eager, _ = train(make, False, 12)
    compiled, step = train(make, True, 12)
    np.testing.assert_allclose(eager, reference(np.full(3, 0.5), 12), rtol=3e-5, atol=3e-6)
    np.testing.assert_allclose(eager, compiled, rtol=1e-6, atol=1e-7)
    assert step.stats().compiles == 1


def test_the_learning_rate_changes_compiled_steps():
    p = ag.Tensor([1.0], requires_grad=True)
    optimizer = ag.optim.SGD([p], 0.5)

    @ag.jit
    def step() -> None:
        optimizer.zero_grad()
        ag.sum(p * 2).backward()
        optimizer.step()

    for rate in (0.5, 0.5, 0.25, 0.0, 1.0):
        before = float(p)
        optimizer.lr = rate
        assert optimizer.lr == rate
        step()
        assert float(p) == before - 2 * rate
    assert step.stats().compiles == 1


def test_parameters_without_a_gradient_stay():
    p, q = ag.Tensor([1.0], requires_grad=True), ag.Tensor([2.0], requires_grad=True)
    optimizer = ag.optim.Adam([p, q], 0.1)
    (p * 1.0).backward()
    optimizer.step()
    assert float(q) == 2 and float(p) != 1


def test_bad_arguments():
    with pytest.raises(nablair.Error, match="requires_grad"):
        ag.optim.SGD([ag.asarray([1.0])], 0.1)
    with pytest.raises(nablair.Error, match="at least one"):
        ag.optim.SGD([], 0.1)
    p = ag.Tensor([1.0, 2.0], requires_grad=True)
    for kind in (ag.optim.SGD, ag.optim.Adam, ag.optim.AdamW):
        with pytest.raises(nablair.DTypeError, match="the parameters must be a sequence, got one Tensor"):
            kind(p)
        for made in (p * 1.0, p[0]):
            with pytest.raises(nablair.Error, match="parameter 1 is the result of an op"):
                kind([p, made])
        with pytest.raises(nablair.Error, match="parameter 2 is parameter 0 again"):
            kind([p, ag.Tensor([1.0], requires_grad=True), p])
    with pytest.raises(nablair.Error, match="momentum"):
        ag.optim.SGD([ag.Tensor([1.0], requires_grad=True)], 0.1, nesterov=True)


def test_half_precision_parameters():
    p = ag.Tensor([1.0, 2.0], dtype=ag.float16, requires_grad=True)
    optimizer = ag.optim.Adam([p], 0.1)
    ag.sum(p * p).backward()
    optimizer.step()
    assert p.dtype is ag.float16
    np.testing.assert_allclose(p.detach(), [0.9, 1.9], rtol=2e-3)


@pytest.mark.parametrize("value", [None, "a", [0.5], (0.1, 0.2, 0.3)])
@pytest.mark.parametrize("kind", [ag.optim.SGD, ag.optim.Adam, ag.optim.AdamW])
def test_settings_that_are_no_numbers(kind, value):
    own = ("momentum", "dampening") if kind is ag.optim.SGD else ("betas", "eps")
    for name in ("lr", "weight_decay", *own):
        with pytest.raises(nablair.Error, match=kind.__name__):
            kind([ag.Tensor([1.0], requires_grad=True)], **{name: value})


@pytest.mark.parametrize("params", [3, None, "ab", {"w": ag.Tensor([1.0], requires_grad=True)}])
@pytest.mark.parametrize("kind", [ag.optim.SGD, ag.optim.Adam, ag.optim.AdamW])
def test_parameters_that_are_no_sequence(kind, params):
    with pytest.raises(nablair.DTypeError, match=f"{kind.__name__}: the parameters must be a sequence"):
        kind(params)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (ag.optim.SGD, {"lr": -1.0}, "SGD: lr must be at least 0, got -1.0"),
        (ag.optim.SGD, {"lr": float("nan")}, "SGD: lr must be at least 0, got nan"),
        (ag.optim.SGD, {"lr": "a"}, "SGD: lr must be a number, got 'a'"),
        (ag.optim.SGD, {"momentum": -0.1}, "SGD: momentum must be at least 0, got -0.1"),
        (ag.optim.SGD, {"weight_decay": -0.1}, "SGD: weight_decay must be at least 0, got -0.1"),
        (ag.optim.Adam, {"betas": (1.5, 0.9)}, r"Adam: a beta must be in \[0, 1\), got 1.5"),
        (ag.optim.AdamW, {"eps": -1e-8}, "AdamW: eps must be at least 0, got -1e-08"),
    ],
)
def test_settings_that_descend_nowhere(kind, settings, message):
    w = ag.Tensor([1.0], requires_grad=True)
    with pytest.raises(nablair.Error, match=message):
        kind([w], **settings)


@pytest.mark.parametrize("kind", [ag.optim.SGD, ag.optim.Adam])
def test_an_optimizer_may_be_made_inside_a_compiled_function(kind):
    @ag.jit
    def stepped(p, g):
        p.grad = g
        kind([p], lr=0.5).step()
        return p

    w, g = ag.Tensor([1.0, 2.0], requires_grad=True), ag.asarray([1.0, -1.0])
    eager = ag.Tensor([1.0, 2.0], requires_grad=True)
    eager.grad = g
    kind([eager], lr=0.5).step()
    assert stepped(w, g).tolist() == eager.tolist()

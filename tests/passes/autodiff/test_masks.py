"""Masks of cotangents: gradients of drawn programs with branches not taken against those of their safe formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases
from masked_programs import Program, draw, interpreted

from nablair import autograd as ag


def orders(program: Program, formula: bool) -> list[Callable[..., Any]]:
    """First derivatives, and derivatives of a sum of them with weights."""

    def value(t: Any, w: Any, constants: Any) -> Any:
        return program.call(t, w, constants, formula)

    first = ag.grad(value, argnums=(0, 1))

    def mixed(t: Any, w: Any, constants: Any) -> Any:
        by_t, by_w = first(t, w, constants)
        return ag.sum(by_t * 0.7) + ag.sum(by_w * by_w)

    return [first, ag.grad(mixed, argnums=(0, 1))]


def expected(program: Program) -> list[list[np.ndarray]] | None:
    """The derivatives of the safe formula; None of a program that leaves the range of ordinary numbers."""
    found = [interpreted(f, program.safe, program.w, program.constants) for f in orders(program, True)]
    ordinary = all(bool((np.abs(g) < 1e9).all()) for order in found for g in order)
    return found if ordinary else None


def check(program: Program, actual: Any, wanted: Any) -> None:
    for order, (some, others) in enumerate(zip(actual, wanted, strict=True), 1):
        for which, got, right in zip("tw", some, others, strict=True):
            scale = max(1.0, float(np.abs(right).max(initial=0.0)))
            message = f"order {order}, by {which}: {' > '.join(program.text)}"
            np.testing.assert_allclose(np.asarray(got), right, rtol=1e-6, atol=1e-6 * scale, err_msg=message)


def test_gradients_of_drawn_programs_equal_those_of_the_safe_formula() -> None:
    checked = 0
    for seed in range(cases(40)):
        program = draw(seed)
        wanted = expected(program)
        if wanted is not None:
            arguments = program.singular, program.w, program.constants
            check(program, [interpreted(f, *arguments) for f in orders(program, False)], wanted)
            checked += 1
    assert checked > 0.9 * cases(40)


@pytest.mark.parametrize("seed", range(1000, 1000 + cases(6)))
def test_gradients_of_drawn_programs_on_devices(seed: int) -> None:
    """Compiled, on every device in turn, by `grad` and by `backward`."""
    program = draw(seed)
    wanted = expected(program)
    if wanted is None:
        return
    devices = ag.devices()
    device = devices[seed % len(devices)]
    t, w, *constants = (ag.asarray(a, device=device) for a in (program.singular, program.w, *program.constants))
    if seed // len(devices) % 2:
        t.requires_grad = w.requires_grad = True
        program.call(t, w, constants).backward()
        reached = [np.zeros(v.shape) if v.grad is None else v.grad for v in (t, w)]
        check(program, [reached], wanted[:1])
    else:
        both = ag.jit(lambda *a: [f(*a) for f in orders(program, False)])
        check(program, both(t, w, constants), wanted)


def rows(x: Any) -> Any:
    """Which rows have no zeros: a condition of shape (n, 1)."""
    return ag.reshape(ag.min(x, axis=1) > 0, (-1, 1))


SYMBOLIC = {
    "a fold": lambda x, w: ag.where(rows(x), ag.sum(ag.sqrt(x), axis=1, keepdims=True), 0.0),
    "a product of matrices": lambda x, w: ag.where(rows(x), (1.0 / x) @ w, 0.0),
    "a product of elements": lambda x, w: ag.where(rows(x), ag.prod(ag.sqrt(x), axis=1, keepdims=True), 0.0),
    "normalisation": lambda x, w: ag.where(rows(x), ag.layer_norm(ag.log(x), w[:, 0]), 0.0),
    "a slice": lambda x, w: ag.sqrt(x)[0] * w[:, 0],
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_masks_of_sizes_that_are_known_at_run_time(name: str) -> None:
    def loss(x: Any, w: Any) -> Any:
        return ag.sum(SYMBOLIC[name](x, w))

    gradient = ag.jit(ag.grad(loss, argnums=(0, 1)), dynamic=True)
    x, w = np.array([[4.0, 1.0, 2.0], [0.0, 0.0, 1.0], [9.0, 4.0, 0.0]]), np.full((3, 2), 0.5)
    live = (x > 0).all(axis=1, keepdims=True)
    actual, wanted = gradient(x, w), ag.grad(loss, argnums=(0, 1))(np.where(live, x, 1.0), w)
    if name != "a slice":
        by_x = ag.grad(lambda x, w: ag.sum(SYMBOLIC[name](x, w)))(x[:1], w)
        wanted = np.concatenate([np.asarray(by_x), np.zeros((2, 3))]), ag.grad(loss, argnums=1)(x[:1], w)
    for got, right in zip(actual, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(right), rtol=1e-6)

"""Drawn programs of additions at places from data, which start at values that others start at or read too."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag

from ..fuzzing import cases

pytestmark = pytest.mark.fuzz

ROWS, COLUMNS, ADDED = 5, 3, 7
STEPS = ("index_add", "index_add", "scatter_add", "scatter_add", "take", "multiply", "base")


def program(seed: int) -> Callable[..., Any]:
    """A function (of ag or of NumPy, by its first argument) of a matrix, updates and indices; its results, a list."""
    steps = random.Random(seed)
    chosen = [(steps.choice(STEPS), steps.randrange(1 << 30), steps.randrange(1 << 30)) for _ in range(6)]
    kept = steps.randint(0, 2)

    def run(m: Any, x: Any, u: Any, rows: Any, places: Any) -> Any:
        # What additions start at has several users, and is seldom a result itself.
        bases, made = [x * 0.0], [x]
        for step, one, other in chosen:
            base, second = bases[one % len(bases)], made[other % len(made)]
            if step == "index_add":
                made.append(m.index_add(base, rows, u * (1.0 + other % 5)))
            elif step == "scatter_add":
                made.append(m.scatter_add(base, places, u))
            elif step == "take":
                made.append(m.index_add(base, rows, m.take(second, rows)))
            elif step == "multiply":
                made.append(second * made[one % len(made)] * 0.125)
            else:
                bases.append(second * 0.25)
        product = made[-1]
        for other in made[-3:-1]:
            product = product * other
        return [product, *[(bases + made)[-1 - i] for i in range(kept)]]

    return run


class InNumPy:
    """The functions that programs use, by NumPy."""

    @staticmethod
    def take(x: Any, rows: Any) -> Any:
        return x[rows]

    @staticmethod
    def index_add(x: Any, rows: Any, u: Any) -> Any:
        found = x.copy()
        np.add.at(found, rows, u)
        return found

    @staticmethod
    def scatter_add(x: Any, places: Any, u: Any) -> Any:
        found = x.copy()
        np.add.at(found, (places, *np.ogrid[tuple(slice(n) for n in u.shape)][1:]), u)
        return found


class InFrontEnd:
    """The same by the front-end."""

    @staticmethod
    def take(x: Any, rows: Any) -> Any:
        return ag.take(x, rows, axis=0)

    @staticmethod
    def index_add(x: Any, rows: Any, u: Any) -> Any:
        return ag.index_add(x, rows, u)

    @staticmethod
    def scatter_add(x: Any, places: Any, u: Any) -> Any:
        return ag.scatter_add(x, places, u)


def check(seed: int, device: str, ways: dict[str, Any]) -> None:
    rng, run, inner = np.random.default_rng(seed), program(seed), [(), (COLUMNS,)][seed % 2]
    given = [
        rng.normal(size=(ROWS, *inner)),
        rng.normal(size=(ADDED, *inner)),
        rng.integers(0, ROWS, ADDED),
        rng.integers(0, ROWS, (ADDED, *inner)),
    ]
    tensors = [ag.to_device(ag.asarray(a), device) for a in given]
    expected = run(InNumPy, *given)
    for name, way in ways.items():
        results = way(partial(run, InFrontEnd))(*tensors)
        for number, (found, wanted) in enumerate(zip(results, expected, strict=True)):
            about = f"seed {seed}, {name}, result {number}"
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12, err_msg=about)


EAGERLY: dict[str, Any] = {"eager": lambda f: f}
COMPILED: dict[str, Any] = {"jit": ag.jit, "dynamic": lambda f: ag.jit(f, dynamic=True)}


@pytest.mark.parametrize(("device", "count"), [("cpu", 20), ("opencl:0", 4), ("ptx-sim", 2)])
def test_drawn_accumulates(device: str, count: int) -> None:
    for seed in range(cases(count)):
        check(seed, device, {**EAGERLY, **COMPILED} if device == "cpu" else EAGERLY)


@pytest.mark.parametrize("seed", range(cases(6)))
def test_gradients_of_gathers(seed: int) -> None:
    """A gather's derivative adds at places twice: the cotangents, and where there are any."""
    rng = np.random.default_rng(seed)
    inner, last = [((), 0), ((COLUMNS,), 0), ((COLUMNS,), 1)][seed % 3]
    count = COLUMNS if last else ROWS
    x, places = rng.uniform(0.5, 4.0, (ROWS, *inner)), rng.integers(0, count, (ROWS if last else ADDED, *inner))
    function = [ag.sqrt, ag.log, ag.exp, ag.square, ag.tanh, lambda t: 1.0 / t][seed % 6]

    def f(t: Any, at: Any, weights: Any) -> Any:
        return ag.sum(ag.gather(function(t), at, axis=last) * weights)

    others = ag.asarray(places), ag.asarray(rng.normal(size=places.shape))
    step = 1e-6
    expected = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        near = [x.copy(), x.copy()]
        near[0][at] += step
        near[1][at] -= step
        expected[at] = (float(f(ag.asarray(near[0]), *others)) - float(f(ag.asarray(near[1]), *others))) / (2 * step)
    leaf = ag.Tensor(x, requires_grad=True)
    f(leaf, *others).backward()
    assert leaf.grad is not None
    ways = [ag.grad(f), ag.jit(ag.grad(f)), ag.jit(ag.grad(f), dynamic=True)]
    for found in (leaf.grad, *[way(x, *others) for way in ways]):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [ag.float16, ag.bfloat16, ag.float32, ag.float64])
@pytest.mark.parametrize("device", ["cpu", "opencl:0", "ptx-sim"])
def test_many_updates_of_one_element_keep_their_digits(dtype: Any, device: str) -> None:
    """As exact as a sum of the same numbers: half types in float32, float32 (on a CPU) in float64."""
    if device != "cpu" and dtype in (ag.float32, ag.float64):
        return
    count = 600_000 if device == "cpu" and dtype is ag.float32 else 600
    rng = np.random.default_rng(0)
    updates = ag.astype(ag.asarray(rng.uniform(0.0, 0.2, count)), dtype)
    rows = rng.integers(0, 2, count)
    held = ag.astype(updates, ag.float64).numpy()
    wanted = np.bincount(rows, held, 2)
    u, at = ag.to_device(updates, device), ag.to_device(ag.asarray(rows), device)
    start = ag.zeros((2,), dtype=dtype, device=device)

    def picked(t: Any, u: Any, at: Any) -> Any:
        return ag.sum(ag.take(t, at) * u)

    t = ag.Tensor(np.ones(2, np.float32), requires_grad=True)
    t = ag.Tensor(ag.to_device(ag.astype(t.detach(), dtype), device), requires_grad=True)
    picked(t, u, at).backward()
    found = [
        ag.index_add(start, at, u),
        ag.jit(ag.index_add)(start, at, u),
        ag.scatter_add(start, at, u),
        t.grad,
        ag.jit(ag.grad(picked))(t.detach(), u, at),
    ]
    digits = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 2e-6, "float64": 1e-12}[dtype.name]
    for value in found:
        np.testing.assert_allclose(ag.astype(value, ag.float64).numpy(), wanted, rtol=digits)

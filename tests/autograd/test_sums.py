"""Sums keep their digits: along every axis, alone and inside fused kernels and gradients, eager and compiled.

Drawn over shapes with one long axis at any place, dtypes, what is summed and how, on every device.  The error is
measured against the sum of the absolute values; a chain of additions as long as the axis would be off by a hundred
times what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag

DEVICES = ag.devices()
LONG = {"cpu": 40000, "ptx-sim": 3000}
"""Elements along the long axis, about."""
DTYPES = [np.dtype(np.float32)] * 4 + [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16), np.dtype(np.float64)]
ROUNDING = {2: 0.0, 4: 2.0**-24, 8: 2.0**-53}


def drawn_shape(rng: np.random.Generator, device: str) -> tuple[tuple[int, ...], int]:
    """A shape and its long axis."""
    long = int(LONG.get(device, 10000) * rng.uniform(0.5, 1.5))
    small = rng.choice([1, 2, 3, 5, 8, 17], size=int(rng.integers(0, 3))).tolist()
    axis = int(rng.integers(0, len(small) + 1))
    if rng.random() < 0.2:
        small = [int(rng.choice([64, 130]))] if rng.random() < 0.5 else small
        axis = min(axis, len(small))
    return (*small[:axis], long, *small[axis:]), axis


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """All alike, so that roundings go one way, or spread."""
    made = np.full(shape, 0.1) if rng.random() < 0.5 else rng.uniform(0.5, 1.5, shape)
    return made.astype(dtype)


def allowed(dtype: np.dtype[Any], steps: int = 1) -> float:
    """The relative error of a sum in chains of chains, and of `steps` roundings of what is summed."""
    unit = 2.0**-24 if dtype.itemsize < 8 else 2.0**-53
    stored = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype.name, 0.0)
    return (24 + 4 * steps) * unit + 1.01 * stored


def wide(x: Any) -> Any:
    """As float64."""
    return np.asarray(x).astype(np.float64)


def check(found: Any, expected: Any, size: Any, bound: float, what: str) -> None:
    error = np.max(np.abs(wide(found) - expected) / np.maximum(size, 1e-300), initial=0.0)
    assert error <= bound, f"{what}: off by {error:.2e} of the sum of absolute values, {bound:.2e} is allowed"


def axes_of(rng: np.random.Generator, shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Axes to sum over, the long one among them."""
    return tuple(a for a in range(len(shape)) if a == axis or rng.random() < 0.4)


def plain(rng: np.random.Generator, device: str) -> None:
    """sum, mean, of an array, its transpose, or an expression."""
    shape, long = drawn_shape(rng, device)
    dtype = DTYPES[int(rng.integers(len(DTYPES)))]
    x = values(rng, shape, dtype)
    axis = axes_of(rng, shape, long)
    mean, flip, squares = (bool(v) for v in rng.random(3) < 0.4)
    if dtype.name == "float16" and not mean:
        x = x * dtype.type(2.0**-6)
    wanted = (wide(x) ** 2 if squares else wide(x)).astype(np.longdouble)
    total = np.apply_over_axes(np.sum, wanted, axis).reshape([n for a, n in enumerate(shape) if a not in axis])
    count = math.prod(shape[a] for a in axis) if mean else 1

    def f(t: Any) -> Any:
        t = ag.astype(t, ag.float32) ** 2 if squares and dtype.itemsize == 2 else t * t if squares else t
        over = axis
        if flip:
            t = ag.transpose(t)
            over = tuple(len(shape) - 1 - a for a in axis)
        found = ag.mean(t, axis=over) if mean else ag.sum(t, axis=over)
        return ag.transpose(found) if flip else found

    run = ag.jit(f, dynamic=bool(rng.random() < 0.3)) if rng.random() < 0.7 else f
    found = ag.astype(run(ag.asarray(x, device=device)), ag.float64).numpy()
    bound = allowed(np.dtype(np.float32) if squares and dtype.itemsize == 2 else dtype, 2)
    check(found, total / count, total / count, bound, f"{shape} {dtype} over {axis}, {mean=} {flip=} {squares=}")


def beside(rng: np.random.Generator, device: str) -> None:
    """Sums beside what is summed, in one kernel, over different axes."""
    shape, long = drawn_shape(rng, device)
    x = values(rng, shape, np.dtype(np.float32))
    axis = axes_of(rng, shape, long)

    def f(t: Any) -> Any:
        y = t * 3
        return y, ag.sum(y, axis=axis), ag.sum(y * y), ag.max(y, axis=axis)

    run = ag.jit(f, dynamic=bool(rng.random() < 0.4)) if rng.random() < 0.7 else f
    y, some, squares, most = run(ag.asarray(x, device=device))
    wanted = 3 * wide(x)
    np.testing.assert_array_equal(y.numpy(), np.float32(3) * x)
    np.testing.assert_array_equal(most.numpy(), np.max(np.float32(3) * x, axis=axis))
    bound = allowed(np.dtype(np.float32), 3)
    check(some.numpy(), wanted.sum(axis), wanted.sum(axis), bound, f"{shape} over {axis}")
    check(squares.numpy(), (wanted**2).sum(), (wanted**2).sum(), bound, f"squares of {shape}")


def bias(rng: np.random.Generator, device: str) -> None:
    """The gradients of a bias and of a weight of each column, and the loss."""
    rows = int(LONG.get(device, 10000) * rng.uniform(0.5, 1.5))
    columns = int(rng.choice([1, 3, 16, 40]))
    x = values(rng, (rows, columns), np.dtype(np.float32))
    w, b = (rng.uniform(0.5, 1.5, columns).astype(np.float32) for _ in range(2))

    def loss(w: Any, b: Any, x: Any) -> Any:
        return ag.sum((x * w + b) ** 2)

    if rng.random() < 0.5:
        f = ag.value_and_grad(loss, argnums=(0, 1, 2))
        run = ag.jit(f, dynamic=bool(rng.random() < 0.4)) if rng.random() < 0.7 else f
        value, (dw, db, dx) = run(*(ag.asarray(v, device=device) for v in (w, b, x)))
    else:
        tensors: list[Any] = [ag.Tensor(v, device=device, requires_grad=True) for v in (w, b, x)]
        value = loss(*tensors)
        value.backward()
        dw, db, dx = (t.grad for t in tensors)
    y = wide(x) * wide(w) + wide(b)
    bound = allowed(np.dtype(np.float32), 4)
    what = f"{rows} x {columns}"
    check(value.numpy(), (y**2).sum(), (y**2).sum(), bound, f"loss of {what}")
    check(db.numpy(), 2 * y.sum(0), 2 * y.sum(0), bound, f"bias of {what}")
    check(dw.numpy(), (2 * y * x).sum(0), (2 * y * x).sum(0), bound, f"weight of {what}")
    check(dx.numpy(), 2 * y * w, 2 * y * w, bound, f"gradient of {what}")


def norm(rng: np.random.Generator, device: str) -> None:
    """The gradients of a layer norm's weight and bias."""
    rows = int(LONG.get(device, 10000) * rng.uniform(0.2, 0.4))
    columns = int(rng.choice([4, 24]))
    x = np.tile(rng.uniform(0, 1, columns).astype(np.float32), (rows, 1))
    w, b = np.ones(columns, np.float32), np.full(columns, 3.0, np.float32)

    def loss(w: Any, b: Any, x: Any) -> Any:
        return ag.sum(ag.layer_norm(x, w, b) ** 2)

    g: Callable[..., Any] = ag.grad(loss, argnums=(0, 1))
    run = ag.jit(g) if rng.random() < 0.6 else g
    dw, db = run(*(ag.asarray(v, device=device) for v in (w, b, x)))
    centred = wide(x) - wide(x).mean(1, keepdims=True)
    h = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    y = h + 3
    bound = allowed(np.dtype(np.float32), 40)
    check(db.numpy(), 2 * y.sum(0), np.abs(2 * y).sum(0), bound, f"bias of {rows} x {columns}")
    check(dw.numpy(), (2 * y * h).sum(0), np.abs(2 * y * h).sum(0), bound, f"weight of {rows} x {columns}")


def gradient(rng: np.random.Generator, device: str) -> None:
    """The gradient of a weight over a long batch: products whose sums are long, in blocks of a few hundred."""
    rows = int(LONG[device] * rng.uniform(0.5, 1.5)) if device == "cpu" else 200
    m, n = (int(v) for v in rng.integers(6, 40, 2))
    x, w = values(rng, (rows, m), np.dtype(np.float32)), values(rng, (m, n), np.dtype(np.float32))

    def loss(w: Any, x: Any) -> Any:
        return ag.sum((x @ w) ** 2)

    g = ag.grad(loss)
    run = ag.jit(g, dynamic=bool(rng.random() < 0.4)) if rng.random() < 0.7 else g
    wanted = 2 * wide(x).T @ (wide(x) @ wide(w))
    found = run(ag.asarray(w, device=device), ag.asarray(x, device=device)).numpy()
    check(found, wanted, wanted, allowed(np.dtype(np.float32), 60), f"{rows} x {m} x {n}")


def product(rng: np.random.Generator, device: str) -> None:
    """The sum, or the sums along an axis, of a product of matrices."""
    m, n = (int(v) for v in rng.integers(60, 300, 2)) if device == "cpu" else (40, 50)
    k = int(rng.integers(1, 30))
    a, b = values(rng, (m, k), np.dtype(np.float32)), values(rng, (k, n), np.dtype(np.float32))
    axis = [None, 0, 1][int(rng.integers(3))]

    def f(a: Any, b: Any) -> Any:
        return ag.sum(a @ b, axis=axis)

    run = ag.jit(f, dynamic=bool(rng.random() < 0.4)) if rng.random() < 0.7 else f
    wanted = (wide(a) @ wide(b)).sum(axis)
    found = run(ag.asarray(a, device=device), ag.asarray(b, device=device)).numpy()
    check(found, wanted, wanted, allowed(np.dtype(np.float32), k // 4 + 1), f"{m} x {k} x {n}, axis {axis}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [plain, beside, bias, norm, gradient, product])
def test_sums_keep_their_digits(kind: Callable[[np.random.Generator, str], None], device: str) -> None:
    few = 2 if device == "cpu" or kind is plain else 1
    for seed in range(cases(few * (4 if kind is plain and device == "cpu" else 1))):
        kind(np.random.default_rng([seed, len(kind.__name__)]), device)


@pytest.mark.parametrize("device", [d for d in DEVICES if d == "cpu" or d.startswith("opencl")])
def test_a_million_rows(device: str) -> None:
    x = np.full((10**6, 3), np.float32(0.1))
    for f in (lambda t: ag.sum(t, axis=0), ag.jit(lambda t: ag.sum(t, axis=0)), lambda t: ag.mean(t, axis=0) * 10**6):
        np.testing.assert_allclose(f(ag.asarray(x, device=device)).numpy(), float(x[0, 0]) * 1e6, rtol=2e-6)

"""Functions compiled once for all sizes: what a program of shape functions gives for each, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag

Step = tuple[Callable[[Any], Any], Callable[[Any], Any]]


def same(function: Callable[[Any], Any]) -> Step:
    """A step that is written alike for Tensors and ndarrays."""
    return function, function


STEPS: dict[str, Step] = {
    "front": same(lambda x: x[:-1]),
    "back": same(lambda x: x[1:]),
    "inner": same(lambda x: x[1:-1, :]),
    "some": same(lambda x: x[:3]),
    "last": same(lambda x: x[-2:]),
    "every other": same(lambda x: x[::2, 1:]),
    "reversed": same(lambda x: x[::-1]),
    "reversed from": same(lambda x: x[-2::-1, ::-2]),
    "half": same(lambda x: x[: x.shape[0] // 2 + 1]),
    "by size": same(lambda x: x[: x.shape[0] - 1] * x.shape[1]),
    "row": same(lambda x: x[0] + x),
    "last row": same(lambda x: x - x[x.shape[0] - 1, None]),
    "differences": same(lambda x: x[1:] - x[:-1]),
    "smooth": same(lambda x: x[2:] + x[1:-1] - x[:-2]),
    "turned": same(lambda x: x.T),
    "product": same(lambda x: x @ x.T),
    "flat": (lambda x: ag.reshape(x, (1, -1)), lambda x: x.reshape(1, -1)),
    "regrouped": (
        lambda x: ag.reshape(x, (x.shape[1], x.shape[0])),
        lambda x: x.reshape(x.shape[1], x.shape[0]),
    ),
    "joined": (lambda x: ag.concat([x, x[1:]]), lambda x: np.concatenate([x, x[1:]])),
    "joined aside": (lambda x: ag.concat([x, x[:, ::-1]], axis=1), lambda x: np.concatenate([x, x[:, ::-1]], 1)),
    "padded": (lambda x: ag.pad(x, ((1, 0), (0, 2))), lambda x: np.pad(x, ((1, 0), (0, 2)))),
    "flipped": (lambda x: ag.flip(x), lambda x: np.flip(x)),
    "rolled": (lambda x: ag.roll(x, 3, axis=1), lambda x: np.roll(x, 3, axis=1)),
    "rolled flat": (lambda x: ag.roll(x, -2), lambda x: np.roll(x, -2)),
    "stacked": (
        lambda x: ag.reshape(ag.stack([x, x + 1], axis=1), (-1, x.shape[1])),
        lambda x: np.stack([x, x + 1], 1).reshape(-1, x.shape[1]),
    ),
    "numbered": (
        lambda x: x + ag.arange(x.shape[1], dtype=x.dtype),
        lambda x: x + np.arange(x.shape[1], dtype=x.dtype),
    ),
    "mean": (
        lambda x: x - ag.sum(x, axis=0) / x.shape[0],
        lambda x: x - np.sum(x, axis=0) / x.dtype.type(max(x.shape[0], 1)),
    ),
    "triangle": (lambda x: ag.tril(x), lambda x: np.tril(x)),
    "filled": (lambda x: x + ag.full(x.shape, 2.0, dtype=x.dtype), lambda x: x + 2),
    "diagonal": (
        lambda x: x * ag.eye(x.shape[0], x.shape[1], dtype=x.dtype),
        lambda x: x * np.eye(*x.shape, dtype=x.dtype),
    ),
    "stretched": (
        lambda x: ag.broadcast_to(x[:1], x.shape),
        lambda x: np.broadcast_to(x[:1], x.shape),
    ),
    "added": (
        lambda x: ag.index_add(x, ag.asarray([0, 0], device=x.device), x[:2]),
        lambda x: np.concatenate([x[:1] + x[:2].sum(0, keepdims=True), x[1:]]),
    ),
}


def drawn(seed: int) -> tuple[Callable[[Any], Any], Callable[[Any], Any], str]:
    """A program of some steps, for Tensors and for ndarrays."""
    draw = np.random.default_rng(seed)
    names = [str(n) for n in draw.choice(sorted(STEPS), draw.integers(1, 4))]

    def program(side: int) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for name in names:
                x = STEPS[name][side](x) * 0.5
            return x

        return run

    return program(0), program(1), ", ".join(names)


SHAPES = [(4, 5), (7, 3), (12, 9)]
"""Sizes that leave something of themselves after every three steps."""


def check(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], device: str, names: str) -> None:
    compiled = ag.jit(ours, dynamic=True)
    gradient: Any = ag.grad(lambda x: ag.sum(ag.sin(ours(x))))
    dynamic: Any = ag.jit(gradient, dynamic=True)
    static: Any = ag.jit(gradient)
    for shape in SHAPES:
        x = np.random.default_rng(0).uniform(-1, 1, shape)
        given = ag.asarray(x, device=device)
        wanted = theirs(x)
        found = compiled(given)
        assert found.shape == wanted.shape, (names, shape)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-10, err_msg=names)
        if device == "cpu" and shape == SHAPES[len(names) % 3]:
            np.testing.assert_allclose(
                dynamic(given).numpy(), static(given).numpy(), rtol=1e-9, atol=1e-9, err_msg=names
            )
    assert compiled.stats().compiles == 1, names


@pytest.mark.parametrize("name", sorted(STEPS))
def test_each_function_of_shapes_for_all_sizes(name: str) -> None:
    check(*STEPS[name], "cpu", name)


@pytest.mark.parametrize("seed", range(cases(5)))
def test_programs_are_compiled_once_for_all_sizes(seed: int) -> None:
    ours, theirs, names = drawn(seed)
    check(ours, theirs, "cpu", names)


@pytest.mark.parametrize("device", ["opencl:0", "ptx-sim"])
@pytest.mark.parametrize("seed", range(100, 100 + cases(1)))
def test_programs_on_devices(seed: int, device: str) -> None:
    ours, theirs, names = drawn(seed)
    check(ours, theirs, device, names)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x[5], (4,)),
        (lambda x: x[-6], (4,)),
        (lambda x: x[x.shape[0]], (4,)),
        (lambda x: ag.reshape(x, (-1, 3)), (4,)),
        (lambda x: ag.reshape(x, (2, x.shape[0] // 2)), (5,)),
        (lambda x: ag.zeros(x.shape[0] - 5), (4,)),
    ],
)
def test_sizes_that_do_not_fit_are_errors_of_the_call(function: Any, shape: tuple[int, ...]) -> None:
    f: Any = ag.jit(function, dynamic=True)
    with pytest.raises(nablair.Error, match=r"\(here n0|out of"):
        f(ag.zeros(shape))


def test_a_size_that_fits_after_one_that_does_not() -> None:
    f = ag.jit(lambda x: (x[5], ag.reshape(x, (2, -1))), dynamic=True)
    with pytest.raises(IndexError, match=r"index 5 is out of range for axis 0 of shape \(n0,\) \(here n0 = 4\)"):
        f(ag.zeros(4))
    with pytest.raises(nablair.ShapeError, match=r"reshape: shape \(n0,\) cannot become"):
        f(ag.zeros(7))
    row, pair = f(ag.arange(8, dtype=ag.float32))
    assert float(row) == 5 and pair.shape == (2, 4)
    assert f.stats().compiles == 1


def test_recorded_calls_know_their_sizes() -> None:
    f = ag.jit(lambda w: w[1:] * w[:-1], dynamic=True)
    for n in (4, 6, 4):
        w = ag.Tensor(np.arange(n, dtype=np.float32), requires_grad=True)
        y = f(w)
        assert y.shape == (n - 1,) and y.tolist() == [i * (i + 1.0) for i in range(n - 1)]
        ag.sum(y).backward()
        assert w.grad is not None
        assert w.grad.tolist() == [1.0, *[2.0 * i for i in range(1, n - 1)], n - 2.0]


def refuses(x: ag.Tensor) -> Any:
    return x if x.shape[0] > 3 else -x


@pytest.mark.parametrize(
    "function",
    [
        len,
        refuses,
        lambda x: [x[i] for i in range(x.shape[0])],
        lambda x: x * int(x.shape[0]),
        lambda x: x if x.shape[0] - 2 else -x,
        lambda x: x if x.shape[0] == 5 else -x,
        lambda x: ag.unstack(x)[0],
        lambda x: ag.linspace(0, 1, x.shape[0]),
        list,
    ],
)
def test_what_python_asks_of_a_size_is_refused_by_name(function: Any) -> None:
    with pytest.raises(nablair.Error, match="n0") as error:
        ag.jit(lambda x: function(x), dynamic=True)(ag.zeros(5))
    assert "test_dynamic.py" in str(error.value)


def test_what_is_known_of_a_size_is_answered() -> None:
    def f(x: ag.Tensor, y: ag.Tensor) -> ag.Tensor:
        n, m = x.shape[0], y.shape[0]
        assert n > 1 and n >= 2 and n != 1 and n != m and n == x.shape[0] and n + 1 > n and not n - 1 == n  # noqa: SIM201
        assert 2 * n - n == n and n * m // m == n and n and 3 - n < 2
        return x

    ag.jit(f, dynamic=True)(ag.zeros(5), ag.zeros(4))

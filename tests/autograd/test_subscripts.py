"""Eager shape functions compile once for each structure, whatever the numbers in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag

Function = Callable[[Any, int], Any]
ROWS, COLUMNS = 40, 6
X = np.random.default_rng(0).uniform(-1, 1, (ROWS, COLUMNS))

TABLE: dict[str, tuple[Function, Function]] = {
    "element": (lambda x, i: x[i, 0], lambda x, i: x[i, 0]),
    "row": (lambda x, i: x[i], lambda x, i: x[i]),
    "from behind": (lambda x, i: x[-i], lambda x, i: x[-i]),
    "front": (lambda x, i: x[: i + 2] * 2, lambda x, i: x[: i + 2] * 2),
    "part": (lambda x, i: x[i : 2 * i + 1, 1:], lambda x, i: x[i : 2 * i + 1, 1:]),
    "every other": (lambda x, i: x[i::2], lambda x, i: x[i::2]),
    "reversed": (lambda x, i: x[i::-1] + 1, lambda x, i: x[i::-1] + 1),
    "reshape": (lambda x, i: ag.reshape(x[: 2 * i], (i, -1)), lambda x, i: x[: 2 * i].reshape(i, -1)),
    "regroup": (
        lambda x, i: ag.reshape(x[: 2 * i] * 2, (-1, 4)) + 1,
        lambda x, i: (x[: 2 * i] * 2).reshape(-1, 4) + 1,
    ),
    "pad": (lambda x, i: ag.pad(x, ((i, 2 * i), (0, i))), lambda x, i: np.pad(x, ((i, 2 * i), (0, i)))),
    "roll": (lambda x, i: ag.roll(x, i, axis=0), lambda x, i: np.roll(x, i, axis=0)),
    "concat": (
        lambda x, i: ag.concat([x[:i], x[i + 3 :] * 2]),
        lambda x, i: np.concatenate([x[:i], x[i + 3 :] * 2]),
    ),
    "flip": (lambda x, i: ag.flip(x[i:]), lambda x, i: np.flip(x[i:])),
    "broadcast": (
        lambda x, i: ag.broadcast_to(x[0], (i + 50, COLUMNS)),
        lambda x, i: np.broadcast_to(x[0], (i + 50, COLUMNS)),
    ),
    "filled": (lambda x, i: ag.ones((i, i + 50)) * 3, lambda x, i: np.ones((i, i + 50), np.float32) * 3),
    "counted": (lambda x, i: ag.arange(i + 50) + 1, lambda x, i: np.arange(i + 50) + 1),
    "triangle": (lambda x, i: ag.tril(x[i:]), lambda x, i: np.tril(x[i:])),
    "assigned": (lambda x, i: put(x, i), lambda x, i: put(x, i)),
    "taken": (
        lambda x, i: ag.take(x[i:], ag.asarray([0, 1], device=x.device), axis=0),
        lambda x, i: x[i:][[0, 1]],
    ),
    "product": (lambda x, i: x[:i].T @ x[:i], lambda x, i: x[:i].T @ x[:i]),
    "softmax": (
        lambda x, i: ag.softmax(x[i:], axis=0),
        lambda x, i: np.exp(x[i:]) / np.exp(x[i:]).sum(0, keepdims=True),
    ),
    "stack": (lambda x, i: ag.stack([x[i:], x[:-i]]), lambda x, i: np.stack([x[i:], x[:-i]])),
    "sum of a window": (lambda x, i: ag.sum(x[i : i + 4] ** 2, axis=1), lambda x, i: (x[i : i + 4] ** 2).sum(1)),
}
"""Functions of an array and a number from 8 to 18, for Tensors and for ndarrays."""


def put(x: Any, i: int) -> Any:
    """x with other values in a part."""
    y = x + 0
    y[i : i + 3, ::2] = x[:3, :3]
    return y


def counted(function: Callable[[int], Any], numbers: list[int]) -> int:
    """How many plans calls with these numbers make."""
    before = ag.eager_stats().compiles
    for number in numbers:
        function(number)
    return ag.eager_stats().compiles - before


NUMBERS = [9, 11, 14, 17]
"""Sizes that they make do not coincide with others."""


def compare(name: str, device: str) -> Callable[[int], None]:
    ours, theirs = TABLE[name]
    x = ag.asarray(X, device=device)

    def run(i: int) -> None:
        found, wanted = ours(x, i), theirs(X, i)
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-12, atol=1e-12)

    return run


@pytest.mark.parametrize("name", sorted(TABLE))
def test_one_compilation_for_all_numbers(name: str) -> None:
    assert counted(compare(name, "cpu"), NUMBERS) <= 2
    assert counted(compare(name, "cpu"), [13, 16]) == 0


@pytest.mark.parametrize("device", ["opencl:0", "ptx-sim"])
@pytest.mark.parametrize("seed", range(cases(1)))
def test_one_compilation_on_devices(seed: int, device: str) -> None:
    name = sorted(TABLE)[np.random.default_rng(seed).integers(len(TABLE))]
    assert counted(compare(name, device), NUMBERS[:3]) <= 2


@pytest.mark.parametrize("seed", range(cases(2)))
def test_gradients_compile_once_for_all_numbers(seed: int) -> None:
    names = [n for n in sorted(TABLE) if n not in ("filled", "counted", "assigned")]
    one, two = (TABLE[str(n)][0] for n in np.random.default_rng(seed).choice(names, 2, replace=False))
    static = ag.jit(ag.grad(lambda x, i: ag.sum(ag.sin(one(x, i))) + ag.sum(two(x, i) ** 2)), static_argnames=("i",))

    def run(i: int) -> None:
        w = ag.Tensor(X, requires_grad=True)
        (ag.sum(ag.sin(one(w, i))) + ag.sum(two(w, i) ** 2)).backward()
        assert w.grad is not None
        if i == NUMBERS[-1]:
            np.testing.assert_allclose(w.grad.numpy(), static(ag.asarray(X), i=i).numpy(), rtol=1e-10, atol=1e-12)

    assert counted(run, NUMBERS) <= 3


def test_reading_all_elements_compiles_once() -> None:
    x = ag.asarray(X) * 2
    found: list[float] = []
    assert counted(lambda i: found.append(float(x[i // COLUMNS, i % COLUMNS])), list(range(ROWS * COLUMNS))) <= 2
    np.testing.assert_array_equal(found, (X * 2).reshape(-1))
    assert counted(lambda i: found.append(float(x[-i, -1])), list(range(1, ROWS))) == 0


def test_sizes_that_coincide_with_others() -> None:
    """Equal sizes are one symbol, others are not: each way is right."""
    x = ag.asarray(X)
    for i in range(1, ROWS, 7):
        a, b = x[:i] * 2, ag.concat([x[: i // 2], x[i // 2 : i]])
        np.testing.assert_allclose((a + b).numpy(), 3 * X[:i])
        c = ag.reshape(ag.pad(x[:i], ((0, ROWS - i), (0, 0))), (COLUMNS, ROWS))
        wanted = np.pad(X[:i], ((0, ROWS - i), (0, 0))).reshape(COLUMNS, ROWS)
        np.testing.assert_array_equal((c + ag.ones((COLUMNS, ROWS))).numpy(), wanted + 1)

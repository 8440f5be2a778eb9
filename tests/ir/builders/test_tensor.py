"""The methods that say shapes: slices, margins, joins, repetitions, with extents that are known, or not yet."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from built import built, computed
from fuzzing import cases

from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.diagnostics import ShapeError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.support.shapes import tensor_type
from nablair.ir.types import F32


def drawn(rng: random.Random, shape: tuple[int, ...], dynamic: bool) -> tuple[Any, np.ndarray]:
    """A function of a builder and a tensor, and what it gives for arange of the shape."""
    x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
    rank = len(shape)
    pick = rng.randrange(4)
    if pick == 0:
        bounds = [sorted(rng.choices(range(n + 1), k=2)) for n in shape]
        steps = [rng.choice([1, 1, 2, 3]) for _ in shape]
        starts, stops = [a for a, _ in bounds], [b for _, b in bounds]
        return (
            lambda b, v: b.slice(v, starts, stops, steps),
            x[tuple(slice(a, z, s) for a, z, s in zip(starts, stops, steps, strict=True))],
        )
    if pick == 1:
        low, high = [rng.randrange(3) for _ in shape], [rng.randrange(3) for _ in shape]
        return lambda b, v: b.pad(v, low, high), np.pad(x, list(zip(low, high, strict=True)))
    if pick == 2:
        axis = rng.randrange(rank)
        count = rng.randrange(1, 4)
        return lambda b, v: b.concat([v] * count, axis - rng.choice([0, rank])), np.concatenate([x] * count, axis)
    names = [f"d{i}" for i in range(rank)] if dynamic else list(shape)
    return lambda b, v: b.broadcast(v, [2, *names]), np.broadcast_to(x, (2, *shape))


@pytest.mark.parametrize("dynamic", [False, True])
def test_shapes_are_those_of_numpy(dynamic: bool) -> None:
    for seed in range(cases(60)):
        rng = random.Random(seed)
        shape = tuple(rng.randrange(1, 6) for _ in range(rng.randrange(1, 4)))
        make, expected = drawn(rng, shape, dynamic)
        type = tensor_type([f"d{i}" for i in range(len(shape))] if dynamic else shape, F32)
        x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
        (found,) = computed(TensorBuilder, [type], lambda b, v, make=make: [make(b, v)], x)
        np.testing.assert_array_equal(found, expected)


def test_one_program_serves_all_sizes() -> None:
    type = tensor_type(["n", "m"], F32)

    def write(b: TensorBuilder, x: Any) -> list[Any]:
        inner = b.slice(x, [1, 0], ["n - 1", "m"])
        return [b.pad(inner, [1, 2], [1, 0]), b.concat([x, inner], 0), b.full_like(2.0, inner)]

    module = built(TensorBuilder, [type], write)
    for n, m in ((2, 1), (5, 3)):
        x = np.ones((n, m), np.float32)
        padded, joined, full = Interpreter(module).call("main", [x])
        np.testing.assert_array_equal(padded, np.pad(x[1:-1], [(1, 1), (2, 0)]))
        assert joined.shape == (2 * n - 2, m)
        np.testing.assert_array_equal(full, np.full((n - 2, m), 2.0))


def test_numbers_become_constants_of_the_first_tensor() -> None:
    x = np.array([[-1.0, 2.0]], np.float32)
    (found,) = computed(
        TensorBuilder, [tensor_type((1, 2), F32)], lambda b, v: [b.reduce_sum(b.maximum(v, 0.5), axes=[-1])], x
    )
    np.testing.assert_array_equal(found, [2.5])


@pytest.mark.parametrize(
    ("write", "error", "message"),
    [
        (lambda b, x: [b.slice(x, [0], [2])], ShapeError, "a start, a stop and a step for each axis of \\(3, n\\)"),
        (lambda b, x: [b.concat([], 0)], ShapeError, "at least one operand"),
        (lambda b, x: [b.pad(x, [1])], ShapeError, "interior padding for each axis of \\(3, n\\)"),
        (lambda b, x: [b.broadcast(x, [2, 3, "k"])], ValueError, "no tensor of the shapes \\(3, n\\) has the extent k"),
        (lambda b, x: [b.broadcast(x, [2, 4, "n"])], ShapeError, "array.broadcast"),
        (lambda b, x: [b.no_such_op(x)], AttributeError, "no_such_op"),
    ],
)
def test_what_does_not_fit_is_refused_and_leaves_nothing(write: Any, error: type[Exception], message: str) -> None:
    def guarded(b: TensorBuilder, x: Any) -> list[Any]:
        block = b.block
        assert block is not None
        before = [op.name for op in block if not op.results]
        with pytest.raises(error, match=message):
            write(b, x)
        assert [op.name for op in block if not op.results] == before
        assert not any(op.name.startswith("array.broadcast") for op in block)
        return [x]

    built(TensorBuilder, [tensor_type((3, "n"), F32)], guarded)

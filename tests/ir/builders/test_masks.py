"""Masks of cotangents, against the same statements about arrays of bools."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from built import computed
from fuzzing import cases

from nablair.ir.builders.masks import Masks
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.cotangents import Cotangent, Factor
from nablair.ir.support.shapes import tensor_type
from nablair.ir.types import F32, I1

SHAPE = (3, 4)


def conditions(rng: random.Random) -> list[np.ndarray]:
    """Conditions that broadcast to the shape."""
    shapes = [(3, 4), (3, 1), (1, 4), (4,), ()]
    return [
        np.array([rng.random() < 0.5 for _ in range(int(np.prod(s)))], np.bool_).reshape(s)
        for s in rng.choices(shapes, k=4)
    ]


def test_masks_say_where_a_cotangent_counts() -> None:
    for seed in range(cases(60)):
        rng = random.Random(seed)
        arrays = conditions(rng)
        whole = [np.broadcast_to(a, SHAPE) for a in arrays]
        one, other = rng.sample(range(4), 2), rng.sample(range(4), 2)
        axes = rng.choice([[0], [1], [0, 1]])
        x = np.full(SHAPE, np.nan, np.float32)
        x[whole[one[0]] & whole[one[1]]] = 7.0

        def write(
            b: TensorBuilder, x: Any, *values: Any, one: Any = one, other: Any = other, axes: Any = axes
        ) -> list[Any]:
            masks = Masks(b)
            mask = tuple(Factor(values[i]) for i in one)
            second = tuple(Factor(values[i]) for i in other)
            live = masks.folded(mask, 2, axes, x)
            either = masks.condition(masks.either([mask, second]))
            moving, staying = masks.parted(mask, 2, axes)
            assert {*moving, *staying} == set(mask)
            assert not any(masks.varies(f, 2, axes) for f in staying)
            everywhere = b.constant(True, tensor_type((), I1))
            return [
                masks.applied(Cotangent(x, mask)),
                masks.condition(live) or everywhere,
                everywhere if either is None else either,
                masks.counts(mask, x, axes),
            ]

        types = [tensor_type(SHAPE, F32), *(tensor_type(a.shape, I1) for a in arrays)]
        applied, folded, either, counts = computed(TensorBuilder, types, write, x, *arrays)
        holds = whole[one[0]] & whole[one[1]]
        np.testing.assert_array_equal(applied, np.where(holds, np.float32(7), np.float32(0)))
        some = holds.any(axis=tuple(axes), keepdims=True)
        np.testing.assert_array_equal(np.broadcast_to(folded, SHAPE), np.broadcast_to(some, SHAPE))
        union = holds | (whole[other[0]] & whole[other[1]])
        np.testing.assert_array_equal(np.broadcast_to(either, SHAPE) | union, np.broadcast_to(either, SHAPE))
        if set(one) != set(other):
            np.testing.assert_array_equal(np.broadcast_to(either, SHAPE), union)
        np.testing.assert_array_equal(np.broadcast_to(counts, SHAPE), holds)


def test_inserted_axes_come_and_go() -> None:
    condition = np.array([True, False, True])

    def write(b: TensorBuilder, c: Any) -> list[Any]:
        masks = Masks(b)
        put = masks.inserted((Factor(c, soft=True),), 1, [0, 2])
        assert [f.soft for f in put] == [True]
        back = masks.dropped(put, 3, [0, 2])
        return [put[0].value, back[0].value]

    put, back = computed(TensorBuilder, [tensor_type((3,), I1)], write, condition)
    assert put.shape == (1, 3, 1)
    np.testing.assert_array_equal(back, condition)

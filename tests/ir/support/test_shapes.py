"""Shapes against NumPy's rules."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from fuzzing import cases

from nablair.ir.support.shapes import broadcast, reassociation, shape_text, tensor_type
from nablair.ir.types import F32


def test_broadcasting_is_that_of_numpy() -> None:
    refused = 0
    for seed in range(cases(300)):
        rng = random.Random(seed)
        shapes = [
            tuple(rng.choice([0, 1, 1, 2, 3]) for _ in range(rng.randrange(4))) for _ in range(rng.randrange(1, 4))
        ]
        try:
            expected = np.broadcast_shapes(*shapes)
        except ValueError:
            expected = None
            refused += 1
        assert broadcast(*shapes) == expected, shapes
    assert 0 < refused < cases(300)


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([("n", 1), ("n", 4)], ("n", 4)),
        ([("n",), (1,)], ("n",)),
        ([("n",), ("m",)], None),
        ([("n",), (5,)], None),
        ([(), ("n", "m")], ("n", "m")),
    ],
)
def test_a_symbol_equals_itself_alone(shapes: list[tuple[int | str, ...]], expected: object) -> None:
    assert broadcast(*shapes) == expected
    assert broadcast(*reversed(shapes)) == expected


def test_groups_of_a_reshape_span_equally_many_elements() -> None:
    for seed in range(cases(300)):
        rng = random.Random(seed)
        old = [rng.choice([1, 2, 3, 4]) for _ in range(rng.randrange(4))]
        new = [f for n in old for f in rng.choice([(n,), (n, 1), (1, n), (2, n // 2) if n % 2 == 0 else (n,)])]
        if rng.random() < 0.5 and len(new) > 1:
            new[:2] = [new[0] * new[1]]
        groups = reassociation(tuple(old), tuple(new))
        assert groups is not None
        for before, after in groups:
            assert math.prod(old[i] for i in before) == math.prod(new[i] for i in after)
        assert [i for before, _ in groups for i in before] == [i for i, n in enumerate(old) if n != 1]
        assert [i for _, after in groups for i in after] == [i for i, n in enumerate(new) if n != 1]
        # What each group moves by itself is what the whole reshape moves.
        x = np.arange(math.prod(old))
        assert x.reshape(old).reshape(new).ravel().tolist() == x.tolist()
        assert reassociation(tuple(old), (*new, 2)) is None


def test_text_and_type_of_a_shape() -> None:
    assert [shape_text(s) for s in ((4, "n"), (5,), ())] == ["(4, n)", "(5,)", "()"]
    assert str(tensor_type((4, "n"), F32)) == 'tensor<4x?xf32, ["n"]>'
    assert str(tensor_type((4, "?"), F32)) == "tensor<4x?xf32>"
    assert tensor_type((4, "n"), F32).dims == (4, "n")

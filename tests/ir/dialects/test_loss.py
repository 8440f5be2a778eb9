"""Losses: meaning, expansion, stability, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_table import LOSS
from tensor_programs import arguments, check_expansion, check_row, check_text, run

from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.diagnostics import DTypeError, ShapeError
from nablair.ir.dialects import loss
from nablair.ir.operations import Block
from nablair.ir.types import BF16, F32, F64, I64, TensorType

PAIRS = [(row, element) for row in LOSS for element in row.elements]
IDS = [f"{row.id}-{element}" for row, element in PAIRS]


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_meaning(row: Any, element: Any) -> None:
    check_row(row, element)


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_expansion(row: Any, element: Any) -> None:
    check_expansion(row, element)


@pytest.mark.parametrize("row", LOSS, ids=lambda row: row.id)
def test_text(row: Any) -> None:
    check_text(row)


def test_every_op_has_a_row() -> None:
    assert {getattr(loss, name).name for name in loss.__all__} == {row.name for row in LOSS}


def both(values: Any, arrays: list[Any]) -> list[Any]:
    """An op's results by its meaning and by its expansion."""
    op = values[0].defining_op
    parts = op.expand(TensorBuilder(op.parent))
    return run(*values, *parts, arrays=arrays)


def test_logits_of_any_size() -> None:
    b, x, t = arguments((4,), (4,))
    y = b.bce_with_logits(x, t, reduction="none")
    arrays = [np.array([1000, -1000, 1000, -1000], np.float32), np.array([1, 0, 0, 1], np.float32)]
    for found in both([y], arrays):
        assert found.tolist() == [0, 0, 1000, 1000]


def test_cross_entropy_of_large_logits() -> None:
    block = Block([TensorType((2, 3), F32), TensorType((2,), I64)])
    b = TensorBuilder(block)
    values = b.cross_entropy(*block.arguments, reduction="none")
    found = both(values, [np.array([[1000, 0, 0], [0, -1000, 0]], np.float32), np.array([0, -2])])
    for losses, lse in (found[:2], found[2:]):
        np.testing.assert_allclose(losses, [0, 1000 + np.log(2)], rtol=1e-6)
        np.testing.assert_allclose(lse, [1000, np.log(2)], rtol=1e-6)


def test_mean_of_nothing_is_nan() -> None:
    b, x, t = arguments((0,), (0,))
    for found in both([b.mse(x, t)], [np.zeros(0, np.float32)] * 2):
        assert np.isnan(found)


def test_detection_clips_probabilities() -> None:
    b, *values = arguments((4,), (4,), (4,), (4,))
    y = b.detection(*values)
    arrays = [
        np.array([0, 1, -5, 5], np.float32),
        np.array([1, 0, 0, 1], np.float32),
        np.array([1, 1, 1, 1], np.float32),
        np.zeros(4, np.float32),
    ]
    low, high = np.float32(1e-7), np.float32(1 - 1e-7)
    expected = -np.log(float(low)) - np.log(1 - float(high)) - np.log(1 - float(low)) - np.log(float(high))
    for found in both([y], arrays):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_refusals() -> None:
    block = Block([TensorType((3, 4), F32), TensorType((3,), F32), TensorType((3, 4), F64), TensorType((3,), I64)])
    b = TensorBuilder(block)
    x, row, double, classes = block.arguments
    shapes = [
        (lambda: b.mse(x, row), r"loss\.mse: prediction \(3, 4\) and target \(3,\) differ in shape"),
        (lambda: b.cross_entropy(row, classes), r"logits \(3,\) and classes \(3,\): classes must have the shape"),
        (
            lambda: b.detection(x, x, row, x),
            r"the shapes must be equal, got prediction \(3, 4\), .*\(3,\)",
        ),
        (lambda: b.smooth_l1(x, x, beta=-1.0), r"beta must not be negative"),
        (lambda: b.detection(x, x, x, x, beta=float("nan")), r"beta must not be negative, got nan"),
    ]
    for build, message in shapes:
        with pytest.raises(ShapeError, match=message):
            build()
    types = [
        (lambda: b.mse(x, double), r"loss\.mse: element types differ \(prediction f32, target f64\)"),
        (lambda: b.detection(x, x, x, double), r"element types differ"),
        (lambda: b.cross_entropy(x, row), r"classes must have integer elements"),
        (lambda: b.mse(classes, classes), r"prediction must have float elements"),
    ]
    for build, message in types:
        with pytest.raises(DTypeError, match=message):
            build()


def test_lse_of_16_bits_is_32_bits_wide() -> None:
    block = Block([TensorType((2, 3), BF16), TensorType((2,), I64)])
    total, lse = TensorBuilder(block).cross_entropy(*block.arguments)
    assert total.type is TensorType((), BF16)
    assert lse.type is TensorType((2,), F32)


def test_unknown_reduction() -> None:
    b, x, t = arguments((2,), (2,))
    with pytest.raises(ValueError, match="'median' is none of mean, sum, none"):
        b.mse(x, t, reduction="median")

"""Products, reductions, normalisation, indexing: meaning, scalar code, expansions, types, special values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy_point
import pytest
from op_table import LINALG
from tensor_programs import arguments, check_expansion, check_point, check_row, check_text, fold, run

from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.diagnostics import DTypeError, ShapeError
from nablair.ir.dialects import linalg
from nablair.ir.numeric import dtype
from nablair.ir.operations import Block
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I32, I64, UI8, UI64, TensorType

PAIRS = [(row, element) for row in LINALG for element in row.elements]
IDS = [f"{row.id}-{element}" for row, element in PAIRS]
EXPANDED = ("linalg.softmax", "linalg.log_softmax", "linalg.layer_norm")


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_meaning(row: Any, element: Any) -> None:
    check_row(row, element)


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_scalar_code_or_expansion(row: Any, element: Any) -> None:
    (check_expansion if row.name in EXPANDED else check_point)(row, element)


@pytest.mark.parametrize("row", LINALG, ids=lambda row: row.id)
def test_text(row: Any) -> None:
    check_text(row)


def test_every_op_has_a_row() -> None:
    defined = {cls.name for cls in map(linalg.__dict__.get, linalg.__all__) if cls is not None and "name" in vars(cls)}
    assert defined == {row.name for row in LINALG}


# Contraction.


def test_16_bit_products_accumulate_in_32() -> None:
    ones = np.ones(4096, dtype(BF16))
    b, x, y = arguments((4096,), (4096,), element=BF16)
    op = b.matmul(x, y).defining_op
    assert float(op.evaluate(ones, ones)) == 4096
    small = np.full(300, 1, dtype(BF16))
    block = Block([TensorType((300,), BF16)] * 2)
    short = TensorBuilder(block).matmul(*block.arguments, preferred_element_type=F32).defining_op
    points = numpy_point.compute(short, [small, small])
    assert points.dtype == np.float32 and points == 300  # 256 + 1 is 256 in bfloat16


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4, 3), (4, 5), r"linalg\.matmul: shapes \(4, 3\) and \(4, 5\) do not multiply"),
        ((3,), (4,), r"shapes \(3,\) and \(4,\) do not multiply"),
        ((2, 4, 3), (3, 3, 5), r"do not multiply"),
        ((), (3,), r"shapes \(\) and \(3,\): no operand may be 0-d"),
        ((2, "n"), ("m", 2), r"shapes \(2, n\) and \(m, 2\) do not multiply"),
        ((2, "n"), (4, 2), r"do not multiply"),
    ],
)
def test_matmul_shapes(left: Any, right: Any, message: str) -> None:
    b, x, y = arguments(left, right)
    with pytest.raises(ShapeError, match=message):
        b.matmul(x, y)


def test_matmul_types() -> None:
    block = Block([TensorType((2, 2), t) for t in (F32, F64, I1)])
    b = TensorBuilder(block)
    single, double, truth = block.arguments
    with pytest.raises(DTypeError, match="element types differ"):
        b.matmul(single, double)
    with pytest.raises(DTypeError, match="lhs must have integer or float elements"):
        b.matmul(truth, truth)
    with pytest.raises(DTypeError, match="cannot give elements of type i32 for operands of f32"):
        b.matmul(single, single, preferred_element_type=I32)


def test_symbolic_matmul() -> None:
    b, x, y = arguments(("n", 3), (3, "m"))
    z = b.matmul(x, y)
    assert str(z.type) == 'tensor<?x?xf32, ["n", "m"]>'
    assert [z.defining_op.result_extent(i) for i in (0, 1)] == [(x, 0), (y, 1)]
    (found,) = run(b.matmul(b.transpose(x, permutation=[1, 0]), x), arrays=[np.ones((4, 3)), np.ones((3, 5))])
    assert found.tolist() == [[4.0] * 3] * 3


# Reductions.


@pytest.mark.parametrize(
    ("name", "source", "result"),
    [
        ("reduce_sum", I8, I64),
        ("reduce_sum", I1, I64),
        ("reduce_sum", UI8, UI64),
        ("reduce_sum", BF16, BF16),
        ("reduce_product", I32, I64),
        ("reduce_max", UI8, UI8),
        ("reduce_max", I1, I1),
    ],
)
def test_reduced_types(name: str, source: Any, result: Any) -> None:
    b, x = arguments((2, 3), element=source)
    assert getattr(b, name)(x, axes=[0]).type is TensorType((3,), result)


def test_sums_wrap() -> None:
    b, x = arguments((2,), element=I64)
    (found,) = run(b.reduce_sum(x, axes=[0]), arrays=[np.array([2**63 - 1, 1])])
    assert found == -(2**63)


def test_sums_keep_digits() -> None:
    b, x = arguments((1_000_000,))
    (found,) = run(b.reduce_sum(x, axes=[0]), arrays=[np.full(1_000_000, 0.1, np.float32)])
    assert abs(float(found) / (1e6 * float(np.float32(0.1))) - 1) < 1e-7


def test_empty_reductions() -> None:
    b, x = arguments((0, 3))
    arrays = [np.zeros((0, 3), np.float32)]
    total, product, mean = run(
        b.reduce_sum(x, axes=[0]), b.reduce_product(x, axes=[0]), b.reduce_mean(x, axes=[0]), arrays=arrays
    )
    assert total.tolist() == [0] * 3 and product.tolist() == [1] * 3 and np.isnan(mean).all()
    (none,) = run(b.reduce_max(x, axes=[1]), arrays=arrays)
    assert none.shape == (0,)
    with pytest.raises(ShapeError, match=r"linalg\.reduce_max: no value for the empty axes \[0\] of shape \(0, 3\)"):
        b.reduce_max(x, axes=[0])
    with pytest.raises(ShapeError, match=r"linalg\.argmax: axis 0 of shape \(0, 3\) is empty"):
        b.argmax(x, axis=0)


def test_reduction_axes() -> None:
    b, x = arguments((2, 3))
    with pytest.raises(ShapeError, match=r"axis 2 is out of range for 2 dimensions"):
        b.reduce_sum(x, axes=[2])
    with pytest.raises(ShapeError, match=r"axes \[1, 1\] repeat"):
        b.reduce_sum(x, axes=[1, -1])
    assert fold(b.reduce_sum(x, axes=[])) is x
    assert b.reduce_mean(x, axes=[-1], keepdims=True).type is TensorType((2, 1), F32)


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
def test_extremes_of_special_values(name: str) -> None:
    rows = [[1, np.nan, 2], [0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [-np.inf, np.inf, 0], [-1, -0.0, 0.0]]
    array = np.array(rows, np.float32)
    b, x = arguments(array.shape)
    op = getattr(b, name)(x, axes=[1]).defining_op
    found, points = op.evaluate(array), numpy_point.compute(op, [array])
    assert np.isnan(found[0]) and np.isnan(points[0])
    np.testing.assert_array_equal(found[1:].view(np.uint32), points[1:].view(np.uint32))
    zeros = [0.0, -0.0, np.inf, 0.0] if name == "reduce_max" else [-0.0, -0.0, -np.inf, -1]
    np.testing.assert_array_equal(found[1:].view(np.uint32), np.array(zeros, np.float32).view(np.uint32))


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_special_values(name: str) -> None:
    rows = [[3, 7, 7, 1, 1], [1, np.nan, 9, np.nan, -9], [-np.inf] * 5, [np.inf] * 5, [-0.0, 0.0, 0.0, -0.0, 0.0]]
    array = np.array(rows, np.float32)
    b, x = arguments(array.shape)
    op = getattr(b, name)(x, axis=1).defining_op
    expected = [1, 1, 0, 0, 0] if name == "argmax" else [3, 1, 0, 0, 0]
    assert op.evaluate(array).tolist() == expected
    assert numpy_point.compute(op, [array]).tolist() == expected


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_places_of_extreme_integers(name: str) -> None:
    for element in (I8, UI8):
        info = np.iinfo(dtype(element))
        array = np.array([[info.min] * 3, [info.max] * 3, [info.max, info.min, 5]], dtype(element))
        b, x = arguments(array.shape, element=element)
        op = getattr(b, name)(x, axis=1).defining_op
        expected = [0, 0, 0 if name == "argmax" else 1]
        assert op.evaluate(array).tolist() == expected
        assert numpy_point.compute(op, [array]).tolist() == expected


def test_mean_over_a_dynamic_axis() -> None:
    b, x = arguments(("n", 2))
    y = b.reduce_mean(x, axes=[0, 1])
    array = np.arange(6, dtype=np.float32).reshape(3, 2)
    (found,) = run(y, arrays=[array])
    assert found == 2.5
    k = numpy_point.NumpyPoint((), [array], [x.type])
    k.extent = lambda operand, axis: k.index_constant(array.shape[axis]) if axis == 0 else 2  # type: ignore[method-assign]
    k.reduce = lambda extents, by, body: [k.constant(15.0, F32)]  # type: ignore[method-assign]
    assert y.defining_op.point(k).array == 2.5


# Indexing.


def test_indices_wrap_and_what_is_not_there_reads_as_nan() -> None:
    block = Block([TensorType((4,), F32), TensorType((7,), I64)])
    b = TensorBuilder(block)
    x, i = block.arguments
    op: Any = b.take(x, i, axis=0).defining_op
    values, indices = np.array([10, 11, 12, 13], np.float32), np.array([0, 3, -1, -4, 4, -5, 2**62])
    expected = [10, 13, 13, 10, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(op.evaluate(values, indices), expected)
    np.testing.assert_array_equal(numpy_point.compute(op, [values, indices]), expected)


def test_huge_unsigned_indices_name_nothing() -> None:
    block = Block([TensorType((4,), F32), TensorType((2,), UI64)])
    b = TensorBuilder(block)
    op: Any = b.take(*block.arguments, axis=0, missing="zero").defining_op
    values, indices = np.array([10, 11, 12, 13], np.float32), np.array([1, 2**64 - 1], np.uint64)
    assert op.evaluate(values, indices).tolist() == [11, 0]
    assert numpy_point.compute(op, [values, indices]).tolist() == [11, 0]


def test_indexing_refusals() -> None:
    block = Block([TensorType((4, 3), F32), TensorType((2,), F32), TensorType((2,), I64), TensorType((0, 3), F32)])
    b = TensorBuilder(block)
    x, real, i, empty = block.arguments
    with pytest.raises(DTypeError, match=r"linalg\.take: indices must have integer elements"):
        b.take(x, real, axis=0)
    with pytest.raises(ShapeError, match=r"nothing to choose from on axis 0 of shape \(0, 3\)"):
        b.take(empty, i, axis=0)
    with pytest.raises(ShapeError, match=r"shapes \(4, 3\) and \(2,\) differ off axis 0"):
        b.take_along_axis(x, i, axis=0)
    with pytest.raises(ShapeError, match=r"updates must have the shape \(2, 3\), got \(4, 3\)"):
        b.index_add(x, i, x, axis=0)


# Normalisation.


@pytest.mark.parametrize("element", [F32, F64, F16, BF16], ids=str)
def test_softmax_of_large_values(element: Any) -> None:
    b, x = arguments((2, 3), element=element)
    array = np.array([[1000, 1000, -1000], [-np.inf, 0, 0]], dtype(element))
    y, z = run(b.softmax(x, axis=-1), b.log_softmax(x, axis=-1), arrays=[array])
    assert y.astype(float).tolist() == [[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    np.testing.assert_allclose(z[0, 0].astype(float), -np.log(2), rtol=2.0**-7)
    assert np.isneginf(z[1, 0])


def test_layer_norm_refusals() -> None:
    b, x, g = arguments((4, 6), (4,))
    with pytest.raises(ShapeError, match=r"linalg\.layer_norm: weight must have the shape \(6,\), got \(4,\)"):
        b.layer_norm(x, g, axis=1)
    with pytest.raises(ShapeError, match=r"axis 3 is out of range for 2 dimensions"):
        b.layer_norm(x, axis=3)


def test_layer_norm_with_bias_alone() -> None:
    b, x, g = arguments((4, 6), (6,))
    y = b.layer_norm(x, bias=g, axis=-1)[0]
    array, bias = np.arange(24, dtype=np.float32).reshape(4, 6), np.arange(6, dtype=np.float32)
    (found,) = run(y, arrays=[array, bias])
    np.testing.assert_allclose((found - bias).mean(1), 0, atol=1e-6)


def test_symbolic_layer_norm_expands() -> None:
    b, x, g = arguments((2, "n", 3), ("n",))
    y = b.layer_norm(x, g, axis=1)
    parts = y[0].defining_op.expand(b)
    assert [p.type for p in parts] == [v.type for v in y]
    arrays = [np.arange(24, dtype=np.float32).reshape(2, 4, 3), np.arange(4, dtype=np.float32)]
    found = run(*y, *parts, arrays=arrays)
    for whole, part in zip(found[:3], found[3:]):
        np.testing.assert_allclose(part, whole, rtol=1e-5, atol=1e-6)

"""Creation, views, slices, joins: meaning, subscripts, dynamic extents, refusals, folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy_point
import pytest
from hypothesis import given
from hypothesis import strategies as st
from op_table import ARRAY
from tensor_programs import arguments, check_point, check_row, check_text, fold, run

from nablair.ir.attributes import DenseAttr, IntegerAttr
from nablair.ir.definition import CONSTANT
from nablair.ir.diagnostics import DTypeError, ShapeError, VerifyError
from nablair.ir.dialects import array
from nablair.ir.numeric import dtype
from nablair.ir.support.shapes import reassociation, tensor_type
from nablair.ir.types import BF16, DYNAMIC, F32, I1, I32, I64, INDEX, UI8, TensorType

PAIRS = [(row, element) for row in ARRAY for element in row.elements]
IDS = [f"{row.id}-{element}" for row, element in PAIRS]


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_meaning(row: Any, element: Any) -> None:
    check_row(row, element)


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_subscripts(row: Any, element: Any) -> None:
    check_point(row, element)


@pytest.mark.parametrize("row", ARRAY, ids=lambda row: row.id)
def test_text(row: Any) -> None:
    check_text(row)


# Creation.


def test_constant() -> None:
    b, _ = arguments(())
    value = b.constant(np.array([[1, 2], [3, 4]], np.uint8))
    assert str(value.type) == "tensor<2x2xui8>"
    assert CONSTANT in value.defining_op.traits
    assert fold(value) is value.defining_op.value
    (found,) = run(value, arrays=[np.float32(0)])
    assert found.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("element", [F32, BF16, I32, UI8], ids=str)
def test_iota(element: Any) -> None:
    b, _ = arguments(())
    type = TensorType((2, 5), element)
    for axis in (0, 1):
        op = b.iota(type, axis).defining_op
        expected = np.indices((2, 5))[axis].astype(dtype(element))
        np.testing.assert_array_equal(op.evaluate(), expected)
        k = numpy_point.NumpyPoint((2, 5), [], [])
        np.testing.assert_array_equal(op.point(k).array.astype(expected.dtype), expected)
        folded = fold(op.result)
        assert isinstance(folded, DenseAttr) and list(folded.values()) == expected.ravel().tolist()


def test_iota_counts_in_numbers_only() -> None:
    b, _ = arguments(())
    with pytest.raises(DTypeError, match=r"array\.iota: counts in integers or floats, not in i1"):
        b.iota(TensorType((2,), I1))


def test_dynamic_full_and_iota() -> None:
    b, x = arguments(("n", 3))
    ones = b.full_like(1.0, x)
    count = b.iota(tensor_type(("n", 3), I64), 0, b.extents(("n",), x))
    assert ones.type is x.type
    assert ones.defining_op.result_extent(0).defining_op.name == "array.dim"
    found = run(ones, count, arrays=[np.zeros((2, 3), np.float32)])
    assert found[0].tolist() == [[1.0] * 3] * 2
    assert found[1].tolist() == [[0] * 3, [1] * 3]


def test_full_needs_an_extent_for_each_dynamic_axis() -> None:
    b, x = arguments(("n", 3))
    with pytest.raises(ValueError, match="has the extent m"):
        b.full(0.0, tensor_type(("m", 3), F32))
    with pytest.raises(VerifyError, match="has 1 dynamic extents in its result type and 2 given"):
        b.full(0.0, x.type, [b.dim(x, 0)] * 2)
    assert [op.name for op in x.block] == ["array.dim"]
    assert b.full(0.0, x.type).defining_op.extents == (x.block.last.prev.result,)


def test_static_full_is_a_constant() -> None:
    b, x = arguments((2, 3))
    assert b.full_like(0.5, x).defining_op.name == "array.constant"


def test_dim() -> None:
    b, x = arguments(("n", 3))
    assert b.dim(x, 0).type is INDEX
    assert fold(b.dim(x, 0)) is None
    known = fold(b.dim(x, 1))
    assert isinstance(known, IntegerAttr) and known.value == 3 and known.type is INDEX
    extent = b.dim(x, 0)
    assert fold(b.dim(b.full(0.0, x.type, [extent]), 0)) is extent
    (found,) = run(extent, arrays=[np.zeros((7, 3), np.float32)])
    assert found == 7


# Views.


def test_dynamic_reshapes() -> None:
    b, x = arguments(("n", 6, 4))
    array_ = np.arange(48, dtype=np.float32).reshape(2, 6, 4)
    for dims in (("n", 24), ("n", 2, 3, 4), ("n", 1, 6, 4), (1, "n", 8, 3)):
        y = b.reshape(x, dims)
        (found,) = run(y, arrays=[array_])
        assert found.shape == tuple(2 if d == "n" else d for d in dims)
        np.testing.assert_array_equal(found.ravel(), array_.ravel())


def test_a_joined_dynamic_extent() -> None:
    b, x = arguments(("n", 4))
    extent = b.dim(x, 0)
    y = b.reshape(x, ("m",), [extent])
    k = numpy_point.NumpyPoint((2, 4), [], [])
    subscript = y.defining_op.view(k, [numpy_point.AffineSubscript.of(extent)])
    assert [repr(s) for s in subscript] == ["%? floordiv 4", "%? mod 4"]


@pytest.mark.parametrize(
    ("old", "new", "groups"),
    [
        ((4, 6), (24,), [([0, 1], [0])]),
        ((2, 3, 4), (6, 4), [([0, 1], [0]), ([2], [1])]),
        (("n", 1, 12), ("n", 3, 4), [([0], [0]), ([2], [1, 2])]),
        ((4, 6), (5, 5), None),
        (("n", 2), ("n", 3), None),
        (("n",), (4,), None),
        ((0, 3), (0,), []),
        ((0,), (3,), None),
    ],
)
def test_reassociation(old: Any, new: Any, groups: Any) -> None:
    assert reassociation(old, new) == groups


@given(st.lists(st.integers(1, 4), max_size=4), st.randoms(use_true_random=False))
def test_reshape_subscripts(dims: list[int], random: Any) -> None:
    """Any shape to any shape of the same size: primes of the extents dealt out anew."""
    factors = [p for d in dims for p in {1: [], 2: [2], 3: [3], 4: [2, 2]}[d]]
    random.shuffle(factors)
    new = [1] * random.randint(1, 4)
    for factor in factors:
        new[random.randrange(len(new))] *= factor
    b, x = arguments(tuple(dims))
    y = b.reshape(x, tuple(new))
    if y is x:
        return
    elements = np.arange(int(np.prod(dims)), dtype=np.float32).reshape(dims)
    np.testing.assert_array_equal(numpy_point.compute(y.defining_op, [elements]), elements.reshape(new))


def test_view_refusals() -> None:
    b, x = arguments((2, 3))
    cases = [
        (lambda: b.reshape(x, (7,)), r"array\.reshape: shapes \(2, 3\) and \(7,\) differ in size"),
        (lambda: b.transpose(x, permutation=[0, 0]), r"\[0, 0\] is not a permutation of the axes of \(2, 3\)"),
        (lambda: b.broadcast(x, (2, 4)), r"shape \(2, 3\) does not broadcast to \(2, 4\)"),
        (lambda: b.broadcast(x, (2, 3, 4), [0]), r"axes \[0\] must be 2 ascending axes"),
        (lambda: b.broadcast(x, (3, 2), [1, 0]), r"axes \[1, 0\] must be 2 ascending axes"),
        (lambda: b.slice(x, stops=[2, 4]), r"range\(0, 4\) leaves axis 1 of shape \(2, 3\)"),
        (lambda: b.slice(x, steps=[1, 0]), r"the step of axis 1 is 0"),
        (lambda: b.slice(x, starts=[-1, 0]), r"negative limits on axis 0"),
        (lambda: b.concat([x, b.reshape(x, (3, 2))], axis=0), r"shapes \(2, 3\) and \(3, 2\) differ off axis 0"),
        (lambda: b.concat([x], axis=2), r"axis 2 is out of range for 2 dimensions"),
        (lambda: b.pad(x, low=[1, -1], high=[0, 0], value=b.number(0, x)), r"negative padding"),
    ]
    for build, message in cases:
        with pytest.raises(ShapeError, match=message):
            build()


def test_pad_value_type() -> None:
    b, x = arguments((2, 3))
    with pytest.raises(DTypeError, match=r"pads tensor<2x3xf32> with 0 : i64, which is not of type f32"):
        b.pad(x, low=[0, 0], high=[0, 0], value=IntegerAttr(0, I64))


def test_dynamic_axes_pass_through() -> None:
    b, x = arguments(("n", 4))
    y = b.slice(x, starts=[0, 1], stops=[DYNAMIC, 3])
    z = b.concat([y, b.pad(y, low=[0, 1], high=[0, 0], value=b.number(9, y))], axis=1)
    (found,) = run(z, arrays=[np.arange(8, dtype=np.float32).reshape(2, 4)])
    assert found.tolist() == [[1, 2, 9, 1, 2], [5, 6, 9, 5, 6]]
    assert z.defining_op.result_extent(0) == (y, 0)


def test_broadcast_to_a_dynamic_shape() -> None:
    b, x, y = arguments((3,), ("n", 3))
    z = b.broadcast_like(x, y)
    assert z.type is y.type
    (found,) = run(z, arrays=[np.array([1, 2, 3], np.float32), np.zeros((2, 3), np.float32)])
    assert found.tolist() == [[1, 2, 3]] * 2


# Folds.


def test_view_folds() -> None:
    b, x = arguments((2, 3))
    turned = b.transpose(x, permutation=[1, 0])
    assert fold(b.transpose(x, permutation=[0, 1])) is x
    assert fold(b.transpose(turned, permutation=[1, 0])) is x
    assert fold(turned) is None
    assert fold(b.reshape(b.reshape(x, (6,)), (2, 3))) is x
    assert fold(b.slice(x)) is x
    assert fold(b.slice(x, starts=[1, 2], stops=[-1, -1], steps=[-1, -1])) is None
    assert fold(b.concat([x], axis=0)) is x
    assert fold(b.pad(x, low=[0, 0], high=[0, 0], value=b.number(0, x))) is x


def test_views_of_constants_fold() -> None:
    b, _ = arguments(())
    c = b.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    found = fold(b.transpose(c, permutation=[1, 0]))
    assert isinstance(found, DenseAttr) and found.values() == (0, 3, 1, 4, 2, 5)
    found = fold(b.reshape(c, (3, 2)))
    assert isinstance(found, DenseAttr) and found.values() == (0, 1, 2, 3, 4, 5)


def test_every_op_has_a_row_or_a_test() -> None:
    defined = {getattr(array, name).name for name in array.__all__}
    assert defined - {row.name for row in ARRAY} == {"array.constant", "array.full", "array.iota", "array.dim"}
    assert F32 in {element for _, element in PAIRS}

"""Elementwise ops: meaning at ordinary and special values, scalar code, types, broadcasting, folds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy_point
import pytest
from op_table import ELEMENTWISE, SPECIAL
from tensor_programs import arguments, assert_close, check_point, check_row, check_text, fold, interpret

from nablair.ir.attributes import DenseAttr
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.diagnostics import DTypeError, Error, ShapeError
from nablair.ir.dialects import elementwise
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.numeric import dtype
from nablair.ir.operations import Block
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I32, I64, UI8, UI64, TensorType

PAIRS = [(row, element) for row in ELEMENTWISE for element in row.elements]
IDS = [f"{row.id}-{element}" for row, element in PAIRS]
UNARY_FLOAT = [row for row in ELEMENTWISE if row.pointwise and len(row.operands) == 1 and F32 in row.elements]
BINARY_FLOAT = [row for row in ELEMENTWISE if row.pointwise and len(row.operands) == 2 and F32 in row.elements]


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_meaning(row: Any, element: Any) -> None:
    check_row(row, element)


@pytest.mark.parametrize(("row", "element"), PAIRS, ids=IDS)
def test_scalar_code(row: Any, element: Any) -> None:
    check_point(row, element)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=lambda row: row.id)
def test_text(row: Any) -> None:
    check_text(row)


def test_every_op_has_a_row() -> None:
    defined = {
        cls.name
        for cls in map(elementwise.__dict__.get, elementwise.__all__)
        if cls is not None and "name" in vars(cls)
    }
    assert defined - {row.name for row in ELEMENTWISE} == {"elementwise.cast"}


# Special values.


def extremes(element: Any) -> Any:
    """The special values and the ends of a float type's range."""
    import ml_dtypes

    info = ml_dtypes.finfo(dtype(element))
    ends = [info.max, info.min, info.tiny, info.smallest_subnormal, -info.smallest_subnormal]
    return np.array([*SPECIAL, *map(float, ends)], np.float64).astype(dtype(element))


def specials(row: Any, element: Any) -> list[Any]:
    """Every special value, or every pair of them, as the operands of a row."""
    values = extremes(element)
    if len(row.operands) == 1:
        return [values]
    return [np.repeat(values, len(values)), np.tile(values, len(values))]


@pytest.mark.parametrize("element", [F32, F64, F16, BF16], ids=str)
@pytest.mark.parametrize("row", [*UNARY_FLOAT, *BINARY_FLOAT], ids=lambda row: row.id)
def test_special_values(row: Any, element: Any) -> None:
    arrays = specials(row, element)
    block = Block([TensorType(a.shape, element) for a in arrays])
    op = row.apply(TensorBuilder(block), *block.arguments)[0].defining_op
    (expected,) = row.expected(arrays)
    with np.errstate(all="ignore"):
        found = op.evaluate(*arrays)
        assert found.dtype == dtype(op.result.type)
        # What is rounded from float64 may overflow in the narrow type.
        rounded = np.asarray(expected).astype(found.dtype)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(rounded))
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(found[~finite].astype(np.float64), rounded[~finite].astype(np.float64))
        np.testing.assert_allclose(
            found[finite].astype(np.float64),
            rounded[finite].astype(np.float64),
            rtol=2.0**-6 if element is BF16 else 1e-3,
        )
        points = numpy_point.compute(op, arrays)
    np.testing.assert_array_equal(np.isnan(points), np.isnan(found))


@pytest.mark.parametrize(
    "name", ["exp", "sqrt", "floor", "ceil", "trunc", "round", "neg", "abs", "relu", "tanh", "sin", "sign"]
)
def test_signs_of_zeros(name: str) -> None:
    b, x = arguments((2,))
    op = getattr(b, name)(x).defining_op
    zeros = np.array([0.0, -0.0], np.float32)
    with np.errstate(all="ignore"):
        found = op.evaluate(zeros)
        points = numpy_point.compute(op, [zeros])
    never = [False, False]
    expected = {"exp": never, "neg": [True, False], "abs": never, "sign": never}.get(name, [False, True])
    assert np.signbit(found).tolist() == expected
    assert np.signbit(points).tolist() == expected


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_extremes_keep_nan_on_both_sides(name: str) -> None:
    b, x, y = arguments((3,), (3,))
    op = getattr(b, name)(x, y).defining_op
    arrays = [np.array([np.nan, 2, np.nan], np.float32), np.array([2, np.nan, np.nan], np.float32)]
    assert np.isnan(op.evaluate(*arrays)).all()
    assert np.isnan(numpy_point.compute(op, arrays)).all()


@pytest.mark.parametrize("nan_at", [0, 1, 2])
def test_clip_keeps_nan(nan_at: int) -> None:
    b, *values = arguments((1,), (1,), (1,))
    op = b.clip(*values).defining_op
    arrays = [np.array([v], np.float32) for v in (0.5, 0.0, 1.0)]
    arrays[nan_at][0] = np.nan
    assert np.isnan(op.evaluate(*arrays)).all()
    assert np.isnan(numpy_point.compute(op, arrays)).all()


def test_extremes_are_bit_identical_to_their_scalar_code() -> None:
    b, x, y = arguments((256,), (256,))
    left, right = np.repeat(extremes(F32), 16), np.tile(extremes(F32), 16)
    for name in ("maximum", "minimum"):
        op = getattr(b, name)(x, y).defining_op
        found, points = op.evaluate(left, right), numpy_point.compute(op, [left, right])
        real = ~np.isnan(found)
        np.testing.assert_array_equal(found[real].view(np.uint32), points[real].view(np.uint32))


@pytest.mark.parametrize("element", [I8, I32, I64, UI8, UI64], ids=str)
def test_integer_division_at_the_ends(element: Any) -> None:
    info = np.iinfo(dtype(element))
    values = np.array(
        sorted({0, 1, 2, 5, info.max, info.min, info.max - 1, *([-1, -3] if info.min else [])}), dtype(element)
    )
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    b, x, y = arguments(left.shape, left.shape, element=element)
    for name, python in (("floor_divide", lambda a, c: a // c), ("remainder", lambda a, c: a % c)):
        op = getattr(b, name)(x, y).defining_op
        exact = [python(int(a), int(c)) if c else 0 for a, c in zip(left, right)]
        expected = (
            np.array([e % 2**info.bits for e in exact], np.uint64).astype(f"u{info.bits // 8}").view(dtype(element))
        )
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(op.evaluate(left, right), expected)
            np.testing.assert_array_equal(numpy_point.compute(op, [left, right]), expected)


@pytest.mark.parametrize("element", [F64, F32, F16, BF16], ids=str)
def test_float_division_is_numpys_and_its_scalar_code(element: Any) -> None:
    values = extremes(element)
    left, right = np.repeat(values, len(values)), np.tile(values, len(values))
    b, x, y = arguments(left.shape, left.shape, element=element)
    wide = np.float64 if element is F64 else np.float32
    for name, function in (("floor_divide", np.floor_divide), ("remainder", np.remainder)):
        op = getattr(b, name)(x, y).defining_op
        with np.errstate(all="ignore"):
            expected = function(left.astype(wide), right.astype(wide)).astype(left.dtype)
            for found in (op.evaluate(left, right), numpy_point.compute(op, [left, right])):
                np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))
                real = ~np.isnan(expected)
                np.testing.assert_array_equal(np.signbit(found[real]), np.signbit(expected[real]))


def test_sums_of_16_bits_round_once() -> None:
    """The sum of these is just above a tie of bfloat16, but a tie once rounded to float32."""
    b, x, y = arguments((1,), (1,), element=BF16)
    op = b.add(x, y).defining_op
    left, right = (np.array([v], dtype(BF16)) for v in (1 + 2.0**-7, 2.0**-8 + 2.0**-15))
    assert float(op.evaluate(left, right)[0]) == 1 + 2.0**-6


# Casts.


@pytest.mark.parametrize("source", [F64, F32, F16, BF16], ids=str)
@pytest.mark.parametrize("target", [I8, I32, I64, UI8, UI64], ids=str)
def test_float_to_integer_saturates(source: Any, target: Any) -> None:
    info = np.iinfo(dtype(target))
    b, x = arguments((9,), element=source)
    op = b.cast(x, target).defining_op
    expected = [0, 0, 2, 0, info.max, info.min, info.max, info.min, 100]
    with np.errstate(all="ignore"):
        array = np.array([0.9, -0.9, 2.5, np.nan, np.inf, -np.inf, 1e30, -1e30, 100.0]).astype(dtype(source))
        assert op.evaluate(array).tolist() == expected
        assert op.evaluate(array).dtype == dtype(target)


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        (I32, I8, 300, 44),
        (I32, UI8, -1, 255),
        (UI8, I8, 200, -56),
        (UI64, F32, 2**64 - 1, 2.0**64),
        (I64, F64, 2**53 + 1, 2.0**53),
        (I1, F32, 1, 1.0),
        (I1, I32, 1, 1),
        (F32, I1, 0.5, True),
        (F32, I1, np.nan, True),
        (F32, I1, -0.0, False),
        (I32, I1, 256, True),
        (F64, BF16, 1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-7),
        (F64, F16, 65519.999, 65504.0),
        (F64, F32, 1e300, np.inf),
    ],
)
def test_casts(source: Any, target: Any, value: Any, expected: Any) -> None:
    b, x = arguments((1,), element=source)
    op = b.cast(x, target).defining_op
    array = np.array([value], dtype(source))
    with np.errstate(all="ignore"):
        assert op.evaluate(array).item() == expected
        assert numpy_point.compute(op, [array]).item() == expected


# Types.


def test_broadcasting_of_symbols() -> None:
    b, x, y, z = arguments(("n", 3), (3,), ("n", 1))
    assert str(b.add(x, y).type) == 'tensor<?x3xf32, ["n"]>'
    assert str(b.add(z, y).type) == 'tensor<?x3xf32, ["n"]>'
    assert str(b.less(x, z).type) == 'tensor<?x3xi1, ["n"]>'


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((4, 3), (5,), r"elementwise\.add: shapes \(4, 3\) and \(5,\) do not broadcast"),
        (("n",), (4,), r"shapes \(n,\) and \(4,\) do not broadcast"),
        (("n",), ("m",), r"shapes \(n,\) and \(m,\) do not broadcast"),
        ((2, "n"), ("n", 2), r"shapes \(2, n\) and \(n, 2\) do not broadcast"),
    ],
)
def test_shapes_that_do_not_broadcast(left: Any, right: Any, message: str) -> None:
    b, x, y = arguments(left, right)
    with pytest.raises(ShapeError, match=message):
        b.add(x, y)


def test_operand_types() -> None:
    block = Block([TensorType((2,), t) for t in (F32, F64, I32, I1)])
    b = TensorBuilder(block)
    single, double, integer, truth = block.arguments
    cases = [
        (lambda: b.exp(integer), r"elementwise\.exp: x must have float elements, got tensor<2xi32>"),
        (lambda: b.div(integer, integer), r"elementwise\.div: lhs must have float elements"),
        (lambda: b.add(single, double), r"element types differ \(lhs f32, rhs f64\); cast explicitly"),
        (lambda: b.add(truth, truth), r"elementwise\.add: lhs must have integer or float elements, got tensor<2xi1>"),
        (lambda: b.logical_and(integer, integer), r"must have i1 elements"),
        (lambda: b.where(single, single, single), r"elementwise\.where: condition must have i1 elements"),
        (lambda: b.where(truth, single, double), r"element types differ \(x f32, y f64\)"),
        (lambda: b.floor_divide(truth, truth), r"must have integer or float elements"),
    ]
    for build, message in cases:
        with pytest.raises(DTypeError, match=message):
            build()


def test_extent_of_a_dynamic_axis_comes_from_the_operand_that_has_it() -> None:
    b, x, y = arguments((3, 1), ("n",))
    op = b.add(x, y).defining_op
    assert op.result_extent(0) == 3
    assert op.result_extent(1) == (y, 0)


# Folds.


def test_identities() -> None:
    b, x = arguments((2, 3))
    for build in (
        lambda: b.add(x, -0.0),
        lambda: b.add(-0.0, x),
        lambda: b.sub(x, 0.0),
        lambda: b.mul(x, 1.0),
        lambda: b.mul(1.0, x),
        lambda: b.div(x, 1.0),
        lambda: b.pow(x, 1.0),
        lambda: b.neg(b.neg(x)),
        lambda: b.where(b.constant(True, I1), x, b.neg(x)),
    ):
        assert fold(build()) is x


def test_what_is_no_identity() -> None:
    b, x = arguments((2, 3))
    assert fold(b.add(x, 0.0)) is None  # -0.0 + 0.0 is 0.0
    assert fold(b.sub(x, -0.0)) is None
    assert fold(b.sub(0.0, x)) is None
    assert fold(b.mul(x, 0.0)) is None  # NaN and infinities
    big = b.constant(1.0, TensorType((4, 2, 3), F32))
    assert fold(b.mul(x, big)) is None  # the shape grows


def test_integer_zero_is_an_identity() -> None:
    b, x = arguments((2,), element=I32)
    assert fold(b.add(x, 0)) is x


def test_constants_fold() -> None:
    b, _ = arguments((1,))
    found = fold(b.mul(b.constant(np.array([1.5, -2.0], np.float32)), 3.0))
    assert isinstance(found, DenseAttr)
    assert found.values() == (4.5, -6.0)
    large = b.constant(1.0, TensorType((4096,), F32))
    assert fold(b.add(large, large)) is None


def test_casts_there_and_back() -> None:
    block = Block([TensorType((2,), F32), TensorType((2,), I32), TensorType((2,), BF16)])
    b = TensorBuilder(block)
    single, integer, brain = block.arguments
    assert fold(b.cast(b.cast(single, F64), F32)) is single
    assert fold(b.cast(b.cast(single, BF16), F32)) is None
    assert fold(b.cast(b.cast(integer, F64), I32)) is integer
    assert fold(b.cast(b.cast(integer, F32), I32)) is None
    assert fold(b.cast(b.cast(brain, F16), BF16)) is None


def test_numbers_take_the_type_beside_them() -> None:
    b, x = arguments((2,), element=BF16)
    y = b.maximum(x, 0.1)
    assert y.type is x.type
    row = next(r for r in ELEMENTWISE if r.name == "elementwise.maximum")
    assert_close(interpret(row, BF16, row.arrays(BF16))[0], row.expected(row.arrays(BF16))[0])


def test_interpreter_runs_elementwise_text() -> None:
    from nablair.ir.parser import parse_module

    module = parse_module("""
        func.func @main(%x: tensor<2x2xf32>, %b: tensor<2xf32>) -> tensor<2x2xi1> {
          %0 = array.constant dense<0.5> : tensor<f32>
          %1 = elementwise.mul %x, %0 : tensor<2x2xf32>, tensor<f32> -> tensor<2x2xf32>
          %2 = elementwise.greater_or_nan %1, %b : tensor<2x2xf32>, tensor<2xf32> -> tensor<2x2xi1>
          func.return %2 : tensor<2x2xi1>
        }""")
    x = np.array([[1, 4], [np.nan, 0]], np.float32)
    (found,) = Interpreter(module).call("main", [x, np.array([1, 1], np.float32)])
    assert found.tolist() == [[False, True], [True, False]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("elementwise.add %x, %y : tensor<2xf32>, tensor<f32> -> tensor<3xf32>", "tensor<3xf32>"),
        ("elementwise.add %x, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xf64>", "tensor<2xf64>"),
        ("elementwise.gelu %x {approximate = median} : tensor<2xf32>", "median"),
    ],
)
def test_wrong_text(line: str, message: str) -> None:
    from nablair.ir.parser import parse_module
    from nablair.ir.verifier import verify

    text = f"func.func @main(%x: tensor<2xf32>, %y: tensor<f32>) {{\n  %0 = {line}\n  func.return\n}}"
    with pytest.raises(Error, match=message):
        verify(parse_module(text))

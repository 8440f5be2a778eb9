"""Attributes: interning, text, floats bit for bit, dense bodies, and parsing of every spelling."""

import copy
import math
import pickle
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablair.ir.attributes import (
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from nablair.ir.diagnostics import ParseError
from nablair.ir.float_bits import bits_to_float, float_text, float_to_bits
from nablair.ir.parser import Parser
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I32, I64, INDEX, UI8, FloatType, TensorType


def parse(text: str) -> Attribute:
    parser = Parser(text)
    found = parser.attribute()
    assert not parser.tokens[parser.i], "the whole text is read"
    return found


@pytest.mark.parametrize(
    "text",
    [
        "unit",
        "true",
        "false",
        "7 : i32",
        "-7 : i64",
        "255 : ui8",
        "-128 : si8",
        "3 : index",
        "0.5 : f32",
        "1.0e-05 : f32",
        "-0.0 : f64",
        "0x7F800000 : f32",
        "0x7E00 : f16",
        "0xFFC1 : bf16",
        "0x7FF8000000000001 : f64",
        '"text"',
        '"a\\22b\\\\c\\0A\\C3\\A9"',
        "[]",
        '[1 : i64, "a", [unit]]',
        "{}",
        '{a = 1 : i64, b, "odd key" = false}',
        "@f",
        "@f::@g",
        '@"a b"',
        "i32",
        "tensor<4xf32>",
        "(i32) -> f32",
        "affine_map<(d0)[s0] -> (d0 + s0)>",
        "strided<[?, 1], offset: ?>",
        "strided<[4, 1]>",
        "#gpu.thread<x>",
        "#gpu<dim x>",
        "#arith.fastmath<reassoc,contract>",
        '#test.a<b<c>, ">", (d -> e)>',
        "array<i64: 1, -2>",
        "array<i1: true, false>",
        "array<f32: 0.5, -1.0>",
        "array<i32>",
        "dense<[1, 2, 3]> : tensor<3xi32>",
        "dense<[[1.0, 2.0], [0x7FC00000, -0.0]]> : tensor<2x2xf32>",
        "dense<0.5> : vector<4xf32>",
        "dense<true> : tensor<4xi1>",
        "dense<[true, false]> : vector<2xi1>",
        "dense<> : tensor<0x4xf32>",
        "dense<3> : tensor<i64>",
        "dense<[-1, 2]> : tensor<2xindex>",
    ],
)
def test_text_round_trips(text: str) -> None:
    found = parse(text)
    assert str(found) == text
    assert parse(str(found)) is found
    assert copy.deepcopy(found) is found
    assert pickle.loads(pickle.dumps(found)) is found


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("7", "7 : i64"),
        ("0x10 : i32", "16 : i32"),
        ("0xFF : i8", "-1 : i8"),
        ("1.5", "1.5 : f64"),
        ("1.000000e-05 : f32", "1.0e-05 : f32"),
        ("1. : f32", "1.0 : f32"),
        ("3.40282347E+38 : f32", "3.4028235e+38 : f32"),
        ("true : i1", "true"),
        ("1 : i1", "true"),
        ("{b = unit, a}", "{a, b}"),
        ("dense<[[1, 1], [1, 1]]> : tensor<2x2xi32>", "dense<1> : tensor<2x2xi32>"),
        ('dense<"0x0000803F00000040"> : tensor<2xf32>', "dense<[1.0, 2.0]> : tensor<2xf32>"),
        ('dense<"0x0000803F"> : tensor<2xf32>', "dense<1.0> : tensor<2xf32>"),
        ("dense<[0x3F800000, 2.0]> : tensor<2xf32>", "dense<[1.0, 2.0]> : tensor<2xf32>"),
        ("dense<0xFF> : tensor<2xi8>", "dense<-1> : tensor<2xi8>"),
        ("dense<[]> : tensor<0xf32>", "dense<> : tensor<0xf32>"),
        ("strided<[1], offset: 0>", "strided<[1]>"),
    ],
)
def test_other_spellings(text: str, same: str) -> None:
    assert parse(text) is parse(same)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 : f32", "write '1.0'"),
        ("1.0 : i32", "float literal"),
        ("-0x7F800000 : f32", "no sign"),
        ("0x1FFFFFFFF : f32", "more bits"),
        ("256 : i8", "does not fit"),
        ("-1 : ui8", "does not fit"),
        ("1 : tensor<4xf32>", "cannot have the type"),
        ("{a = 1, a = 2}", "duplicate"),
        ("[1, ]", "expected"),
        ("{a,}", "expected"),
        ("#undefined", "undefined attribute alias"),
        ("#test.open<(>", "unbalanced"),
        ("dense<[1, 2]> : tensor<3xi32>", "shape"),
        ("dense<[[1], 2]> : tensor<2x1xi32>", "depths"),
        ("dense<[[1], [2, 3]]> : tensor<2x1xi32>", "lengths"),
        ("dense<1> : tensor<2xf32>", "write '1.0'"),
        ("dense<true> : tensor<2xf32>", "a bool"),
        ("dense<1.0> : tensor<?xf32>", "static"),
        ("dense<1.0> : f32", "cannot have the type"),
        ("dense<> : tensor<2xf32>", "empty body"),
        ('dense<"0x00"> : tensor<2xf32>', "bytes"),
        ('dense<"12"> : tensor<2xf32>', "hexadecimal"),
        ("array<tensor<4xf32>: 1>", "element type"),
        ("sparse<1> : tensor<4xf32>", "not supported"),
        ("+", "expected an attribute"),
    ],
)
def test_bad_attributes(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


@pytest.mark.parametrize("type", [F16, BF16])
def test_every_half_survives(type: FloatType) -> None:
    for bits in range(1 << 16):
        text = float_text(bits, type)
        token = text.removeprefix("-")
        attribute = Parser("").number_value(token, text.startswith("-"), type, 0)
        assert isinstance(attribute, FloatAttr)
        assert attribute.bits == bits, text


@pytest.mark.parametrize(("type", "code"), [(F32, "I"), (F64, "Q")])
def test_samples_of_wide_floats_survive(type: FloatType, code: str) -> None:
    rng = random.Random(1)
    mantissa = (1 << type.mantissa_bits) - 1
    top = ((1 << type.exponent_bits) - 1) << type.mantissa_bits
    special = [0, 1, mantissa, mantissa + 1, top, top - 1, top | 1, top | mantissa, 1 << (type.width - 1)]
    for bits in special + [rng.getrandbits(type.width) for _ in range(5000)]:
        attribute = FloatAttr.from_bits(bits, type)
        assert parse(str(attribute)) is attribute
        assert parse(f"dense<{str(attribute).partition(' : ')[0]}> : tensor<2x{type}>").bits() == (bits,)  # type: ignore[attr-defined]
        assert struct.calcsize(code) * 8 == type.width


@given(st.floats(width=32))
def test_mlirs_own_float_forms_parse(value: float) -> None:
    """Six significant digits where that is exact, else nine, as MLIR prints them."""
    bits = float_to_bits(value, F32)
    if not math.isfinite(value):
        return
    for digits in (5, 8):
        text = f"{value:.{digits}e}"
        if float_to_bits(float(text), F32) == bits:
            assert parse(f"{text} : f32") is FloatAttr.from_bits(bits, F32)


@given(st.floats(allow_nan=False) | st.floats(width=16, allow_nan=False))
def test_rounding_is_to_nearest_even(value: float) -> None:
    assert bits_to_float(float_to_bits(value, F64), F64) == value
    try:
        expected = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        expected = math.copysign(math.inf, value)
    assert bits_to_float(float_to_bits(value, F32), F32) == expected
    try:
        half = struct.unpack("<e", struct.pack("<e", value))[0]
    except OverflowError:
        half = math.copysign(math.inf, value)
    assert bits_to_float(float_to_bits(value, F16), F16) == half


def test_integers_wrap_into_their_type() -> None:
    assert IntegerAttr(200, I8).value == -56
    assert IntegerAttr(-1, UI8).value == 255
    assert IntegerAttr(3, I1).value == 1
    assert IntegerAttr(1 << 63, INDEX).value == -(1 << 63)


def test_attributes_are_interned() -> None:
    assert IntegerAttr(1, I32) is IntegerAttr(1, I32)
    assert IntegerAttr(1, I32) is not IntegerAttr(1, I64)
    assert FloatAttr(0.0, F32) is not FloatAttr(-0.0, F32)
    assert DictAttr({"b": StringAttr("x"), "a": ArrayAttr([])}) is DictAttr({"a": ArrayAttr([]), "b": StringAttr("x")})
    assert DenseArrayAttr([0.0], F32) is not DenseArrayAttr([-0.0], F32)


def test_dense_data() -> None:
    type = TensorType([2, 2], F32)
    found = DenseAttr.from_values(type, [1, 2, 3, 4])
    assert found.data == struct.pack("<4f", 1, 2, 3, 4)
    assert found.values() == (1.0, 2.0, 3.0, 4.0)
    assert DenseAttr.from_values(type, [5, 5, 5, 5]) is DenseAttr.splat(type, 5)
    assert DenseAttr.splat(type, 5).values() == (5.0,) * 4
    assert DenseAttr.splat(type, 5).scalar() is FloatAttr(5.0, F32)
    with pytest.raises(ValueError, match="bytes of data"):
        DenseAttr(type, b"123")


def test_big_dense_data_is_hexadecimal() -> None:
    type = TensorType([300], F32)
    found = DenseAttr.from_values(type, range(300))
    assert str(found).startswith('dense<"0x000000000000803F')
    assert parse(str(found)) is found
    flags = DenseAttr.from_values(TensorType([300], I1), [i % 2 for i in range(300)])
    assert str(flags).startswith("dense<[false, true")
    assert parse(str(flags)) is flags


def test_nothing_has_no_elements_however_it_was_made() -> None:
    type = TensorType([0, 5], F32)
    assert DenseAttr.splat(type, 1.0) is DenseAttr.from_values(type, [])
    assert DenseAttr.splat(type, 1.0).values() == ()

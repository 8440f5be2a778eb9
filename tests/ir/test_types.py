"""Types: interning, text, and parsing of every spelling."""

import copy
import pickle

import pytest

from nablair.ir.diagnostics import ParseError
from nablair.ir.parser import Parser
from nablair.ir.types import (
    DYNAMIC,
    F32,
    I32,
    INDEX,
    FloatType,
    FunctionType,
    IntegerType,
    MemRefType,
    TensorType,
    Type,
    VectorType,
)


def parse(text: str) -> Type:
    parser = Parser(text)
    found = parser.type()
    assert not parser.tokens[parser.i], "the whole text is read"
    return found


@pytest.mark.parametrize(
    "text",
    [
        "i1",
        "si8",
        "ui64",
        "i17",
        "f16",
        "bf16",
        "f64",
        "index",
        "none",
        "tensor<f32>",
        "tensor<4x?xf32>",
        "tensor<0x4xi8>",
        'tensor<?x64xf32, ["n"]>',
        "tensor<2xvector<4xf32>>",
        "tensor<4xf32, #test.encoding<a, b>>",
        "vector<4x8xbf16>",
        "vector<f32>",
        "memref<4x?xf32, strided<[?, 1], offset: ?>, 1>",
        "memref<256xf32, #gpu.address_space<workgroup>>",
        "memref<4xf32, affine_map<(d0) -> (d0 + 1)>>",
        "memref<2xvector<16xf32>>",
        "(i32, f32) -> index",
        "() -> ()",
        "(i32) -> (i32, f32)",
        "((i32) -> f32) -> ((f32) -> i32)",
        "!test.opaque",
        '!test.opaque<4xf32, [(a -> b)], ">">',
        "!test<short form>",
    ],
)
def test_text_round_trips(text: str) -> None:
    found = parse(text)
    assert str(found) == text
    assert parse(str(found)) is found


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("tensor< 4 x ? x f32 >", "tensor<4x?xf32>"),
        ("tensor<\n4xf32>", "tensor<4xf32>"),
        ("tensor<0x0xbf16>", "tensor<0x0xbf16>"),
        ("memref<4xf32, affine_map<(d0) -> (d0)>>", "memref<4xf32>"),
        ("memref<4xf32, strided<[1], offset: 0>>", "memref<4xf32, strided<[1]>>"),
        ("() -> (i32)", "() -> i32"),
        ("vector<4 x f32>", "vector<4xf32>"),
    ],
)
def test_other_spellings(text: str, same: str) -> None:
    assert parse(text) is parse(same)


@pytest.mark.parametrize(
    "text",
    [
        "i0",
        "i99999999",
        "f8",
        "tensor<4x>",
        "tensor<x4xf32>",
        "tensor<-1xf32>",
        "tensor<4xf32",
        "tensor<99999999999999999999xf32>",
        "vector<?xf32>",
        "vector<0xf32>",
        "vector<4xtensor<4xf32>>",
        "memref<4xf32, strided<[1, 2]>>",
        "memref<4xf32, 1, 2, 3>",
        "tensor<4xf32, 1, 2>",
        "(i32)",
        "!alias",
        "!test.open<",
        "complex<f32>",
        "",
    ],
)
def test_bad_types(text: str) -> None:
    with pytest.raises(ParseError):
        parse(text)


def test_types_are_interned_and_survive_copies() -> None:
    for type in (I32, F32, INDEX, TensorType((4, DYNAMIC), F32), FunctionType([I32], [F32]), VectorType((4,), F32)):
        assert copy.deepcopy(type) is type
        assert pickle.loads(pickle.dumps(type)) is type
    assert TensorType([4], F32) is TensorType((4,), FloatType("f32"))
    assert TensorType([4], F32) is not MemRefType([4], F32)
    assert IntegerType(32) is I32


def test_symbols_name_dynamic_extents() -> None:
    found = parse('tensor<?x64x?xf32, ["n", "m"]>')
    assert isinstance(found, TensorType)
    assert found.symbols == ("n", None, "m")
    assert found.dims == ("n", 64, "m")
    plain = parse("tensor<?x64xf32>")
    assert isinstance(plain, TensorType)
    assert plain.dims == ("?", 64)
    foreign = parse("tensor<?xf32, [unit]>")
    assert isinstance(foreign, TensorType)
    assert foreign.symbols == (None,)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="negative extent"):
        TensorType([-2], F32)
    with pytest.raises(ValueError, match="positive"):
        VectorType([0], F32)
    with pytest.raises(ValueError, match="dynamic"):
        _ = TensorType([DYNAMIC], F32).num_elements

"""vector: both forms as mlir-opt takes them, verifier messages, folds, NumPy meaning."""

import re

import numpy as np
import pytest
from find import every
from mlir_opt import check_forms, parse

from nablair.ir.attributes import DenseAttr, FloatAttr, IntegerAttr
from nablair.ir.builder import Builder
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import vector
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.types import F32, I1, I8, I32, INDEX, VectorType
from nablair.ir.verifier import verify

HEAD = (
    "func.func @f(%m: memref<8x?xf32>, %s: memref<8xf32, strided<[2]>>, %n: index, %x: f32, %v: vector<16xf32>, "
    "%k: vector<16xi1>, %at: vector<16xi32>, %w: vector<4x16xf32>) {\n"
)
TAIL = "\n  return\n}"

FORMS = {
    "load": "%a = vector.load %m[%n, %n] : memref<8x?xf32>, vector<16xf32>",
    "load of rows": "%a = vector.load %m[%n, %n] : memref<8x?xf32>, vector<4x16xf32>",
    "streaming": "vector.store %v, %m[%n, %n] {nontemporal = true} : memref<8x?xf32>, vector<16xf32>",
    "maskedload": """
      %a = vector.maskedload %m[%n, %n], %k, %v : memref<8x?xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>""",
    "maskedstore": "vector.maskedstore %m[%n, %n], %k, %v : memref<8x?xf32>, vector<16xi1>, vector<16xf32>",
    "gather": """
      %a = vector.gather %m[%n, %n] [%at], %k, %v
        : memref<8x?xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %b = vector.gather %s[%n] [%at], %k, %v
        : memref<8xf32, strided<[2]>>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>""",
    "scatter": """
      vector.scatter %m[%n, %n] [%at], %k, %v : memref<8x?xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32>""",
    "broadcast": """
      %a = vector.broadcast %x : f32 to vector<16xf32>
      %b = vector.broadcast %v : vector<16xf32> to vector<4x16xf32>
      %c = vector.broadcast %x : f32 to vector<f32>""",
    "masks": """
      %a = vector.create_mask %n : vector<16xi1>
      %b = vector.constant_mask [4] : vector<16xi1>
      %c = vector.constant_mask [2, 3] : vector<4x8xi1>""",
    "shuffle": "%a = vector.shuffle %v, %v [8, 31, 0] : vector<16xf32>, vector<16xf32>",
    "extract": """
      %a = vector.extract %v[3] : f32 from vector<16xf32>
      %b = vector.extract %v[%n] : f32 from vector<16xf32>
      %c = vector.extract %w[2] : vector<16xf32> from vector<4x16xf32>
      %d = vector.extract %w[2, %n] : f32 from vector<4x16xf32>""",
    "insert": """
      %a = vector.insert %x, %v[3] : f32 into vector<16xf32>
      %b = vector.insert %x, %v[%n] : f32 into vector<16xf32>
      %c = vector.insert %v, %w[2] : vector<16xf32> into vector<4x16xf32>""",
    "reductions": """
      %a = vector.reduction <add>, %v : vector<16xf32> into f32
      %b = vector.reduction <add>, %v, %x fastmath<reassoc,contract> : vector<16xf32> into f32
      %c = vector.reduction <maximumf>, %v : vector<16xf32> into f32
      %d = vector.reduction <minui>, %at : vector<16xi32> into i32
      %e = vector.reduction <xor>, %at {flag} : vector<16xi32> into i32""",
    "step": "%a = vector.step : vector<16xindex>",
    "slice": """
      %a = vector.extract_strided_slice %v {offsets = [4], sizes = [8], strides = [1]} : vector<16xf32> to vector<8xf32>
      %b = vector.extract_strided_slice %w {offsets = [1], sizes = [2], strides = [1]}
        : vector<4x16xf32> to vector<2x16xf32>""",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    check_forms(HEAD + FORMS[name] + TAIL)


ERRORS = {
    "subscripts": (
        "%a = vector.load %m[%n] : memref<8x?xf32>, vector<16xf32>",
        "needs 2 subscripts for memref<8x?xf32>, got 1",
    ),
    "element": ("%a = vector.load %m[%n, %n] : memref<8x?xf32>, vector<16xf64>", "the element types differ"),
    "stride": ("%a = vector.load %s[%n] : memref<8xf32, strided<[2]>>, vector<16xf32>", "whose last axis has stride 1"),
    "axes": ("%a = vector.load %m[%n, %n] : memref<8x?xf32>, vector<1x4x16xf32>", "more axes than memref<8x?xf32>"),
    "mask": (
        "vector.maskedstore %m[%n, %n], %v, %v : memref<8x?xf32>, vector<16xf32>, vector<16xf32>",
        "needs a mask of type vector<16xi1> for vector<16xf32>, got vector<16xf32>",
    ),
    "places": (
        "vector.scatter %m[%n, %n] [%v], %k, %v : memref<8x?xf32>, vector<16xf32>, vector<16xi1>, vector<16xf32>",
        "needs a vector of integers or indices with the lanes of vector<16xf32>, got vector<16xf32>",
    ),
    "broadcast element": ("%a = vector.broadcast %n : index to vector<16xf32>", "the element types differ"),
    "broadcast shape": ("%a = vector.broadcast %v : vector<16xf32> to vector<4x8xf32>", "must be equal or 1"),
    "mask type": ("%a = vector.create_mask %n : vector<16xi8>", "gives a vector of i1, not vector<16xi8>"),
    "mask rank": ("%a = vector.create_mask %n : vector<4x4xi1>", "needs 2 sizes for vector<4x4xi1>, got 1"),
    "constant mask": (
        "%a = vector.constant_mask [17] : vector<16xi1>",
        "from 0 to the extents of vector<16xi1>, got [17]",
    ),
    "shuffle lane": ("%a = vector.shuffle %v, %v [32] : vector<16xf32>, vector<16xf32>", "has lane 32 in its mask"),
    "extract place": (
        "%a = vector.extract %v[16] : f32 from vector<16xf32>",
        "has position 16 along an axis of 16 elements",
    ),
    "insert type": (
        "%a = vector.insert %n, %v[0] : index into vector<16xf32>",
        "needs a f32 for position [0], got index",
    ),
    "reduction kind": ("%a = vector.reduction <maxsi>, %v : vector<16xf32> into f32", "<maxsi> reduces integers"),
    "reduction axes": ("%a = vector.reduction <add>, %w : vector<4x16xf32> into f32", "reduces vectors of one axis"),
    "reduction word": ("%a = vector.reduction <plus>, %v : vector<16xf32> into f32", "'plus' is none of add, mul"),
    "step": ("%a = vector.step : vector<16xi32>", "gives a vector of indices"),
    "slice": (
        "%a = vector.extract_strided_slice %v {offsets = [12], sizes = [8], strides = [1]} "
        ": vector<16xf32> to vector<8xf32>",
        "needs strides of 1 and a box inside vector<16xf32>",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    text, message = ERRORS[name]
    with pytest.raises(Error, match=re.escape(message)):
        verify(parse_module(HEAD + text + TAIL))


def build(cls, *operands, types, **keywords):
    block = Block(types)
    groups = [block.arguments[o] if isinstance(o, int) else o for o in operands]
    return Builder(block).create(cls, *groups, **keywords)


V16, V4 = VectorType((16,), F32), VectorType((4,), F32)


def test_folds_to_constants():
    broadcast = build(vector.Broadcast, 0, types=[F32], results=[V16])
    assert broadcast.fold([FloatAttr(0.5, F32)]) is DenseAttr.splat(V16, 0.5)
    assert broadcast.fold([None]) is None
    mask = VectorType((4,), I1)
    block = Block([INDEX])
    create = Builder(block).create(vector.CreateMask, block.arguments, results=[mask])
    for size, bits in ((2, [1, 1, 0, 0]), (9, [1] * 4), (-3, [0] * 4)):
        assert create.fold([IntegerAttr(size, INDEX)]) is DenseAttr.from_values(mask, bits)


def test_extract_sees_through_broadcast_and_insert():
    block = Block([F32, V16])
    x, v = block.arguments
    b = Builder(block)
    splat = b.value(vector.Broadcast, x, results=[V16])
    assert b.create(vector.Extract, splat, [], static_position=[3]).fold([None]) is x
    put = b.value(vector.Insert, x, v, [], static_position=[5])
    assert b.create(vector.Extract, put, [], static_position=[5]).fold([None, None]) is x
    assert b.create(vector.Extract, put, [], static_position=[6]).fold([None, None]) is None
    constant = DenseAttr.splat(V16, 2.0)
    assert b.create(vector.Extract, v, [], static_position=[0]).fold([constant]) is FloatAttr(2.0, F32)


def reduction(kind, type, **keywords):
    return build(vector.Reduction, 0, None, types=[type], kind=kind, **keywords)


def test_reduction_in_order_and_as_a_halving_tree():
    lanes = np.array([2.0**24, 1, 1, 1, -(2.0**24), 1, 1, 1], np.float32)
    type = VectorType((8,), F32)
    in_order = np.float32(0)
    for lane in lanes:
        in_order = np.float32(in_order + lane)
    first = lanes[:4] + lanes[4:]
    second = first[:2] + first[2:]
    assert reduction("add", type).evaluate(lanes) == in_order == 3
    assert reduction("add", type, fastmath="reassoc").evaluate(lanes) == second[0] + second[1] == 6


def test_reduction_of_an_odd_number_of_lanes():
    lanes = np.arange(1, 8, dtype=np.float32)
    assert reduction("add", VectorType((7,), F32), fastmath="reassoc").evaluate(lanes) == 28


def test_reduction_takes_the_accumulator():
    op = build(vector.Reduction, 0, 1, types=[V4, F32], kind="mul")
    assert op.evaluate(np.array([1, 2, 3, 4], np.float32), np.array(10, np.float32)) == 240


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("add", -128),
        ("mul", 0),
        ("minsi", -128),
        ("maxsi", 1),
        ("minui", 0),
        ("maxui", -1),
        ("and", 0),
        ("or", -1),
        ("xor", 126),
    ],
)
def test_integer_reductions(kind, expected):
    lanes = np.array([1, -1, -128, 0], np.int8)
    found = reduction(kind, VectorType((4,), I8)).evaluate(lanes)
    assert found == expected and found.dtype == np.int8


def test_reduction_to_the_maximum_keeps_nan():
    lanes = np.array([1, np.nan, 3, -0.0], np.float32)
    assert np.isnan(reduction("maximumf", V4).evaluate(lanes))
    assert reduction("maxnumf", V4).evaluate(lanes) == 3


def test_meaning_of_lane_ops():
    v = np.arange(16, dtype=np.float32)
    w = np.arange(64, dtype=np.float32).reshape(4, 16)
    assert (build(vector.Shuffle, 0, 0, types=[V16], mask=[8, 31, 0]).evaluate(v, -v) == [8, -15, 0]).all()
    assert (build(vector.Broadcast, 0, types=[F32], results=[V4]).evaluate(np.float32(3)) == [3] * 4).all()
    assert (
        build(vector.Extract, 0, [], types=[VectorType((4, 16), F32)], static_position=[2]).evaluate(w) == w[2]
    ).all()
    out = build(vector.Insert, 0, 1, [], types=[F32, V16], static_position=[3]).evaluate(np.float32(9), v)
    assert out[3] == 9 and v[3] == 3
    step = Builder(Block()).create(vector.Step, results=[VectorType((4,), INDEX)])
    assert step.evaluate().tolist() == [0, 1, 2, 3] and step.evaluate().dtype == np.int64
    box = build(vector.ExtractStridedSlice, 0, types=[V16], offsets=[4], sizes=[2], strides=[1])
    assert box.evaluate(v).tolist() == [4, 5]


def test_masks_saturate():
    block = Block([INDEX, INDEX])
    op = Builder(block).create(vector.CreateMask, block.arguments, results=[VectorType((2, 3), I1)])
    assert op.evaluate(np.int64(9), np.int64(2)).tolist() == [[True, True, False]] * 2
    assert not op.evaluate(np.int64(-1), np.int64(2)).any()


def test_computed_position_out_of_range():
    block = Block([VectorType((4,), I32), INDEX])
    v, i = block.arguments
    op = Builder(block).create(vector.Extract, v, [i], static_position=[-(1 << 63)])
    assert op.evaluate(np.array([5, 6, 7, 8], np.int32), np.int64(2)) == 7
    with pytest.raises(Error, match=r"has position \[4\] in a vector of shape \[4\]"):
        op.evaluate(np.array([5, 6, 7, 8], np.int32), np.int64(4))


def test_properties_read_as_python_values():
    module = parse(HEAD + FORMS["reductions"] + TAIL)
    ops = every(module, vector.Reduction)
    assert [op.kind for op in ops] == ["add", "add", "maximumf", "minui", "xor"]
    assert [op.fastmath for op in ops][:2] == [frozenset(), {"reassoc", "contract"}]

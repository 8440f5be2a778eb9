"""memref: both forms as mlir-opt takes them, the types of views, verifier messages, folds."""

import re

import pytest
from find import first
from mlir_opt import check_forms, parse

from nablair.ir.attributes import IntegerAttr
from nablair.ir.builder import Builder
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import memref
from nablair.ir.dialects.memref.layout import collapsed_type, dropped_axes, strided, subview_type
from nablair.ir.effects import is_removable
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.types import DYNAMIC, F32, INDEX, MemRefType
from nablair.ir.verifier import verify

HEAD = (
    "func.func @f(%m: memref<8x?xf32>, %s: memref<4x6xf32, strided<[12, 2], offset: 3>>, %q: memref<2x1x3xf32>, "
    "%n: index, %x: f32, %i: i32, %p: memref<8xi32>) {\n"
    "  %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n"
)
TAIL = "\n  return\n}"

FORMS = {
    "alloc": "%a = memref.alloc(%n, %c1) {alignment = 64 : i64} : memref<?x4x?xf32>",
    "alloca": "%a = memref.alloca() : memref<256xf32, #gpu.address_space<workgroup>>",
    "dealloc": "memref.dealloc %m : memref<8x?xf32>",
    "load": "%a = memref.load %m[%c0, %n] : memref<8x?xf32>",
    "streaming": """
      %a = memref.load %m[%c0, %n] {nontemporal = true} : memref<8x?xf32>
      memref.store %a, %m[%c0, %n] {nontemporal = true} : memref<8x?xf32>""",
    "scalar buffer": """
      %a = memref.alloca() : memref<f32>
      memref.store %x, %a[] : memref<f32>
      %b = memref.load %a[] : memref<f32>""",
    "subview": """
      %a = memref.subview %m[%n, 0] [4, %n] [1, 2] : memref<8x?xf32> to memref<4x?xf32, strided<[?, 2], offset: ?>>""",
    "subview of a strided buffer": """
      %a = memref.subview %s[1, 2] [2, 3] [2, 1]
        : memref<4x6xf32, strided<[12, 2], offset: 3>> to memref<2x3xf32, strided<[24, 2], offset: 19>>""",
    "subview that drops an axis": """
      %a = memref.subview %m[%n, 0] [1, %n] [1, 1] : memref<8x?xf32> to memref<?xf32, strided<[1], offset: ?>>""",
    "subview from the start": """
      %a = memref.subview %q[0, 0, 0] [1, 1, 3] [1, 1, 1] : memref<2x1x3xf32> to memref<3xf32>
      %b = memref.subview %m[0, 0] [8, 4] [1, 1] : memref<8x?xf32> to memref<8x4xf32, strided<[?, 1]>>""",
    "collapse": "%a = memref.collapse_shape %q [[0, 1, 2]] : memref<2x1x3xf32> into memref<6xf32>",
    "collapse of a dynamic shape": "%a = memref.collapse_shape %m [[0, 1]] : memref<8x?xf32> into memref<?xf32>",
    "collapse of a strided buffer": """
      %a = memref.collapse_shape %s [[0, 1]]
        : memref<4x6xf32, strided<[12, 2], offset: 3>> into memref<24xf32, strided<[2], offset: 3>>""",
    "expand": """
      %a = memref.expand_shape %m [[0, 1], [2, 3]] output_shape [2, 4, %n, 4]
        : memref<8x?xf32> into memref<2x4x?x4xf32>""",
    "expand of a strided buffer": """
      %a = memref.expand_shape %s [[0], [1, 2]] output_shape [4, 2, 3]
        : memref<4x6xf32, strided<[12, 2], offset: 3>> into memref<4x2x3xf32, strided<[12, 6, 2], offset: 3>>""",
    "reinterpret": """
      %a = memref.reinterpret_cast %m to offset: [%n], sizes: [4, %n], strides: [%n, 1]
        : memref<8x?xf32> to memref<4x?xf32, strided<[?, 1], offset: ?>>""",
    "cast": """
      %a = memref.cast %m : memref<8x?xf32> to memref<?x?xf32>
      %b = memref.cast %a : memref<?x?xf32> to memref<8x4xf32>
      %d = memref.cast %s
        : memref<4x6xf32, strided<[12, 2], offset: 3>> to memref<?x6xf32, strided<[?, 2], offset: ?>>""",
    "dim": "%a = memref.dim %m, %c1 : memref<8x?xf32>",
    "copy": "memref.copy %m, %m : memref<8x?xf32> to memref<8x?xf32>",
    "prefetch": """
      memref.prefetch %m[%c0, %c1], write, locality<1>, instr : memref<8x?xf32>
      memref.prefetch %m[%c0, %c1], read, locality<3>, data : memref<8x?xf32>""",
    "atomics": "\n".join(
        f"%a{k} = memref.atomic_rmw {k} %x, %m[%c0, %c1] : (f32, memref<8x?xf32>) -> f32"
        for k in ("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf", "assign")
    )
    + "\n"
    + "\n".join(
        f"%a{k} = memref.atomic_rmw {k} %i, %p[%c0] : (i32, memref<8xi32>) -> i32"
        for k in ("addi", "muli", "maxs", "maxu", "mins", "minu", "ori", "andi")
    ),
    "global": "%a = memref.get_global @weights : memref<2x2xf32>",
}
GLOBALS = """
memref.global "private" constant @weights : memref<2x2xf32> = dense<[[1.0, 2.0], [3.0, 4.0]]> {alignment = 64 : i64}
memref.global @zeros : memref<4xi64> = dense<0>
"""


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    check_forms(GLOBALS + HEAD + FORMS[name] + TAIL)


ERRORS = {
    "rank": ("%a = memref.load %m[%n] : memref<8x?xf32>", "needs 2 subscripts for memref<8x?xf32>, got 1"),
    "element": ("memref.store %i, %m[%n, %n] : memref<8x?xf32>", "stores a value of type i32 into memref<8x?xf32>"),
    "sizes": ("%a = memref.alloc() : memref<?xf32>", "needs 1 sizes for the dynamic extents of memref<?xf32>, got 0"),
    "layout": ("%a = memref.alloc() : memref<4xf32, strided<[2]>>", "allocates contiguous memory only"),
    "subview type": (
        "%a = memref.subview %s[1, 2] [2, 3] [1, 1] : memref<4x6xf32, strided<[12, 2], offset: 3>> to memref<2x3xf32>",
        "expects the result type memref<2x3xf32, strided<[12, 2], offset: 19>>, perhaps with unit axes dropped",
    ),
    "subview bounds": (
        "%a = memref.subview %s[1, 2] [2, 3] [1, 2] : memref<4x6xf32, strided<[12, 2], offset: 3>> "
        "to memref<2x3xf32, strided<[12, 4], offset: 19>>",
        "runs from 2 to 6 along axis 1, which has 6 elements",
    ),
    "subview rank": (
        "%a = memref.subview %m[0] [1] [1] : memref<8x?xf32> to memref<1xf32>",
        "needs 2 offsets for memref<8x?xf32>, got 1",
    ),
    "collapse groups": (
        "%a = memref.collapse_shape %m [[1, 0]] : memref<8x?xf32> into memref<?xf32>",
        "needs groups that name the axes 0 to 1 in order, got [[1, 0]]",
    ),
    "collapse type": (
        "%a = memref.collapse_shape %q [[0, 1], [2]] : memref<2x1x3xf32> into memref<3x3xf32>",
        "memref<2x3xf32>",
    ),
    "expand product": (
        "%a = memref.expand_shape %q [[0], [1], [2, 3]] output_shape [2, 1, 2, 2] : memref<2x1x3xf32> "
        "into memref<2x1x2x2xf32>",
        "splits an axis of 3 elements into 2 x 2",
    ),
    "reinterpret type": (
        "%a = memref.reinterpret_cast %m to offset: [0], sizes: [4], strides: [2] : memref<8x?xf32> to memref<4xf32>",
        "expects the result type memref<4xf32, strided<[2]>>, got memref<4xf32>",
    ),
    "cast shape": (
        "%a = memref.cast %m : memref<8x?xf32> to memref<4x?xf32>",
        "cannot cast memref<8x?xf32> to memref<4x?xf32>",
    ),
    "cast element": ("%a = memref.cast %m : memref<8x?xf32> to memref<8x?xf64>", "cannot cast"),
    "copy": ("memref.copy %m, %p : memref<8x?xf32> to memref<8xi32>", "cannot copy memref<8x?xf32> to memref<8xi32>"),
    "locality": (
        "memref.prefetch %p[%n], read, locality<4>, data : memref<8xi32>",
        "needs a locality from 0 to 3, got 4",
    ),
    "atomic kind": (
        "%a = memref.atomic_rmw addf %i, %p[%n] : (i32, memref<8xi32>) -> i32",
        "'addf' combines floats, got i32",
    ),
    "operand type": ("%a = memref.load %m[%n, %n] : memref<8xf32>", "memref<8x?xf32>"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    text, message = ERRORS[name]
    with pytest.raises(Error, match=re.escape(message)):
        verify(parse_module(HEAD + text + TAIL))


def test_global_needs_its_own_shape():
    with pytest.raises(Error, match=r"needs an initial value of type tensor<4xf32>, got tensor<3xf32>"):
        verify(parse_module('"memref.global"() <{sym_name = "w", type = memref<4xf32>, initial_value = dense<0.0> : '
                            "tensor<3xf32>}> : () -> ()"))  # fmt: skip


def fold_of(text, axis):
    module = parse(HEAD + text + TAIL)
    op = first(module, memref.Dim)
    return op.fold([None, axis]), op


def test_dim_of_a_static_axis():
    found, _ = fold_of("%d = memref.dim %m, %c0 : memref<8x?xf32>", IntegerAttr(0, INDEX))
    assert found is IntegerAttr(8, INDEX)


def test_dim_of_an_argument_stays():
    found, _ = fold_of("%d = memref.dim %m, %c1 : memref<8x?xf32>", IntegerAttr(1, INDEX))
    assert found is None


def test_dim_of_an_allocation_is_its_size():
    text = "%a = memref.alloc(%c1, %n) : memref<?x4x?xf32>\n%k = arith.constant 2 : index\n"
    found, op = fold_of(text + "%d = memref.dim %a, %k : memref<?x4x?xf32>", IntegerAttr(2, INDEX))
    allocation = op.source.defining_op
    assert isinstance(allocation, memref.Alloc) and found is allocation.sizes[1]


def test_dim_of_a_view_is_its_size_without_dropped_axes():
    text = "%a = memref.subview %m[0, 0] [1, %n] [1, 1] : memref<8x?xf32> to memref<?xf32, strided<[1]>>\n"
    found, op = fold_of(text + "%d = memref.dim %a, %c0 : memref<?xf32, strided<[1]>>", IntegerAttr(0, INDEX))
    view = op.source.defining_op
    assert isinstance(view, memref.Subview) and found is view.size_values[0]


def test_cast_to_the_same_type_goes():
    module = parse(HEAD + "%a = memref.cast %m : memref<8x?xf32> to memref<8x?xf32>" + TAIL)
    op = first(module, memref.Cast)
    assert op.fold([None]) is op.source


def test_strides():
    assert strided(MemRefType((4, DYNAMIC, 8), F32)) == ([DYNAMIC, 8, 1], 0)
    whole = subview_type(MemRefType((4, 6), F32), [1, 2], [1, 3], [1, 2])
    assert str(whole) == "memref<1x3xf32, strided<[6, 2], offset: 8>>"
    assert dropped_axes(whole, whole) == ()
    assert dropped_axes(whole, MemRefType((3,), F32)) is None
    assert collapsed_type(whole, [[0, 1]]) is not None
    rows = subview_type(MemRefType((4, 6), F32), [0, 0], [2, 3], [1, 1])
    assert collapsed_type(rows, [[0, 1]]) is None


def test_building_a_view_infers_its_type():
    block = Block([MemRefType((32, 64), F32), INDEX])
    m, i = block.arguments
    view = memref.Subview.build(Builder(block), m, [i, 0], [1, 16], drop=[0])
    view.verify_()
    assert str(view.result.type) == "memref<16xf32, strided<[1], offset: ?>>"
    assert view.dropped == (0,)


def test_effects():
    module = parse(HEAD + FORMS["alloc"] + "\n" + FORMS["copy"] + "\n" + FORMS["prefetch"] + TAIL)
    by_name = {op.name: op for op in module.walk()}
    assert is_removable(by_name["memref.alloc"])
    assert not is_removable(by_name["memref.prefetch"])
    read, written = first(module, memref.Copy).effects()
    assert [v.name for v in read] == ["m"] and [v.name for v in written] == ["m"]

"""The kernel dialect: text, what mlir-opt makes of it, construction, effects, and what the verifier refuses."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from find import first

from nablair.ir.affine import constant, dim
from nablair.ir.attributes import ArrayAttr, FloatAttr
from nablair.ir.builders.point import PointBuilder
from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.builders.subscripts import AffineSubscript, access
from nablair.ir.diagnostics import ParseError, VerifyError
from nablair.ir.dialects import arith, kernel
from nablair.ir.dialects.func import Func, Return
from nablair.ir.effects import is_pure, is_removable
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import F32, I8, I64, INDEX, UI8, MemRefType, TensorType
from nablair.ir.verifier import verify

PROGRAMS = sorted((Path(__file__).parents[2] / "filecheck" / "kernels").glob("*.mlir"))

MORE = """
func.func @buffers(%n: index, %x: memref<?x64xf32>, %y: memref<?x64xf32>, %s: memref<64xi8>) {
  kernel.launch (%i, %j) in (%n, 64) ins(%x : memref<?x64xf32>, %x2 = %x : memref<?x64xf32>, %s : memref<64xi8>) outs(%x_0 into %x : memref<?x64xf32>, %y = %y : memref<?x64xf32>) schedule {loops = [[0, 4096]], map = ["worker"], stream = false} attributes {hint = "a"} {
    %0 = kernel.load %x[%i, %j]
    %1 = kernel.load %s[%j] : i1
    %2 = arith.select %1, %0, %0 : f32
    kernel.store %2, %x_0[%i, %j]
    kernel.accumulate %2, %y[%i, %j] by arith.addf
  }
  return
}
func.func @tuples(%x: tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xi64>, tensor<32xf32>, tensor<4x8xf32>) {
  %0:2 = kernel.launch (%i, %j) in (8, 4) ins(%x : tensor<8x4xf32>) outs(%m : tensor<8xf32>, %at : tensor<8xi64>) {
    %0 = kernel.load %x[%i, %j]
    %1 = arith.index_cast %j : index to i64
    kernel.accumulate (%0, %1), (%m[%i], %at[%i]) from (0xFF800000 : f32, -1 : i64) combine (%a, %ia, %b, %ib) {
      %c = arith.cmpf ogt, %b, %a : f32
      %v = arith.select %c, %b, %a : f32
      %iv = arith.select %c, %ib, %ia : i64
      kernel.yield %v, %iv
    }
  }
  %y, %z = kernel.launch (%i) in (32) ins(%x : tensor<8x4xf32>) outs(%y : tensor<32xf32>, %z : tensor<4x8xf32>) {
    %0 = kernel.load %x[%i floordiv 4, %i mod 4]
    kernel.store %0, %y[-%i + 31]
    kernel.store %0, %z[%i mod 4, %i floordiv 4]
  }
  return %0#0, %0#1, %y, %z : tensor<8xf32>, tensor<8xi64>, tensor<32xf32>, tensor<4x8xf32>
}
func.func @tree(%x: tensor<3x5xf32>, %f: f32) -> tensor<3xf32> {
  %y = kernel.launch (%i) in (3) ins(%x : tensor<3x5xf32>, %f : f32) outs(%y : tensor<3xf32>) {
    %s = kernel.reduce tree (%k) in (5) by arith.addf {
      %0 = kernel.load %x[%i, %k + 2] else -1.5
      kernel.yield %0
    }
    %0 = arith.addf %s, %f : f32
    kernel.store %0, %y[%i]
  }
  return %y : tensor<3xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_programs_round_trip(path):
    module = parse_module(path.read_text(), str(path))
    verify(module)
    text = print_op(module)
    again = parse_module(text)
    verify(again)
    assert print_op(again) == text
    generic = print_op(module, generic=True)
    back = parse_module(generic)
    verify(back)
    assert print_op(back, generic=True) == generic
    assert print_op(back, keep_names=False) == print_op(module, keep_names=False)


def test_there_are_21_programs():
    assert len(PROGRAMS) == 21


def words(text):
    """The text of a function's body without the numbers of unnamed values and without line breaks."""
    body = "\n".join(line for line in text.splitlines() if not line.startswith("//"))
    body = body[body.index("kernel.launch") :].rpartition("}")[0].removesuffix("}\n")
    return re.sub(r"%\d+", "%#", " ".join(body.split()))


def test_custom_form_prints_what_was_written():
    """But for the numbers of values, line breaks, and the order of terms in a sum."""
    for path in PROGRAMS:
        source = path.read_text().replace("4 * %k + %l", "%l + %k * 4")
        printed = words(print_op(parse_module(source)).removeprefix("module {").rpartition("}")[0])
        printed = printed.replace("0.70710677", "0.707106769").replace("0.35355338", "0.353553385")
        printed = printed.replace("-3.4028235e+38", "0xFF7FFFFF").replace("%k * 4 + %l", "%l + %k * 4")
        assert printed == words(source), path.stem


def test_more_forms():
    module = parse_module(MORE)
    verify(module)
    text = print_op(module)
    body = [line.strip() for line in text.splitlines()[1:-1]]
    assert body == [line.strip() for line in MORE.strip().splitlines()]


@pytest.mark.skipif(shutil.which("mlir-opt-19") is None, reason="needs mlir-opt-19")
def test_mlir_opt_reads_the_generic_form():
    for text in (*(p.read_text() for p in PROGRAMS), MORE):
        module = parse_module(text)
        command = ["mlir-opt-19", "--allow-unregistered-dialect"]
        done = subprocess.run(command, input=print_op(module, generic=True), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        again = parse_module(done.stdout)
        verify(again)
        assert print_op(again, keep_names=False) == print_op(module, keep_names=False)


def test_generic_form_is_as_specified():
    module = parse_module(next(p for p in PROGRAMS if p.stem == "l").read_text())
    text = print_op(module, generic=True)
    assert (
        '"kernel.load"(%x_0, %n, %c, %h, %p, %v, %q) <{fill = 0.0 : f32, '
        "map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2 + d3 - 1, d4 + d5 - 1)>}>" in text
    )
    assert '"kernel.reduce"() <{extents = array<i64: 3, 3, 3>, identity = [0.0 : f32]}> ({' in text
    assert "extents = array<i64: 1, 4, 8, 8>, operandSegmentSizes = array<i32: 0, 2, 0>}>" in text
    dynamic = print_op(parse_module(next(p for p in PROGRAMS if p.stem == "n").read_text()), generic=True)
    assert "extents = array<i64: -9223372036854775808, 64>, operandSegmentSizes = array<i32: 1, 2, 0>" in dynamic
    partial = print_op(parse_module(next(p for p in PROGRAMS if p.stem == "o").read_text()), generic=True)
    assert "inits = array<i64: 0>" in partial


def launch(body, header="(%i, %j) in (4, 8) ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>)"):
    """A function of one launch with a scalar program; `%x` is the in, `%y` the out."""
    results = "%y = " if "outs(%y : tensor" in header or "outs(%y = " in header else ""
    arguments = "%x: tensor<4x8xf32>, %z: tensor<3x8xf32>, %n: index"
    return f"func.func @f({arguments}) {{\n  {results}kernel.launch {header} {{\n{body}\n  }}\n  return\n}}"


def refused(text):
    with pytest.raises((ParseError, VerifyError)) as caught:
        verify(parse_module(text))
    assert caught.value.location is not None
    return caught.value.message


LOAD = "%0 = kernel.load %x[%i, %j]\n"
STORE = "kernel.store %0, %y[%i, %j]\n"


@pytest.mark.parametrize(
    "body,message",
    [
        ("", "never writes out number 0"),
        (LOAD + STORE + STORE, "does not provably store each element of out number 0, tensor<4x8xf32>, once"),
        (LOAD + "kernel.store %0, %y[%i, 0]", "does not provably store"),
        (LOAD + "kernel.store %0, %y[%i, %i]", "does not provably store"),
        (
            LOAD + STORE + "kernel.accumulate %0, %y[%i, %j] by arith.addf",
            "both stores to and accumulates into out number 0",
        ),
        (
            LOAD + STORE + "kernel.store %0, %x[%i, %j]",
            "in number 0 used by 'kernel.store'; an in is read by kernel.load only",
        ),
        ("%0 = kernel.load %y[%i, %j]\n" + STORE, "out number 0 used by 'kernel.load'; an out is written only"),
        (
            "%0 = kernel.load %x[%j, %i]\n" + STORE,
            "has an axis of extent 8 as subscript 0 of tensor<4x8xf32>, which has 4",
        ),
        ("%0 = kernel.load %x[%i]\n" + STORE, "has 1 subscripts for tensor<4x8xf32> of rank 2"),
        ("%0 = kernel.load %x[%i, %j] else 1\n" + STORE, "integer literal for a value of type f32"),
        ("%0 = arith.constant 1.0 : f64\n" + STORE, "writes f64 to tensor<4x8xf32>, whose elements are f32"),
        (
            "%0 = kernel.reduce (%k) in (8) by arith.addf {\n%1 = kernel.load %x[%i, %k]\n"
            "kernel.accumulate %1, %y[%i, %k] by "
            "arith.addf\nkernel.yield %1\n}",
            "cannot stand in kernel.reduce; only the bodies of launch and sweep, and do, may write",
        ),
        (
            "%0 = kernel.reduce (%k) in (8) by arith.subf {\n%1 = kernel.load %x[%i, %k]\nkernel.yield %1\n}",
            "'arith.subf' is not a monoid with a known identity",
        ),
        (
            "%0 = kernel.reduce (%k) in (8) by (arith.addf, arith.addf) {\n"
            "%1 = kernel.load %x[%i, %k]\nkernel.yield %1\n}",
            "2 monoid ops for elements of 1 components",
        ),
        (
            LOAD + "%1 = kernel.reduce (%k) in (8) from (0.0 : f32) {\nkernel.yield %0\n} combine (%a, %b) {\n"
            "%2 = arith.addf %a, %0 : f32\nkernel.yield %2\n}\n" + STORE,
            "combine region that uses a value from outside in 'arith.addf'",
        ),
        (
            LOAD + "%1 = kernel.reduce (%k) in (8) from (0.0 : f64) {\nkernel.yield %0\n} "
            "combine (%a, %b) {\nkernel.yield %a\n}\n" + STORE,
            "must yield (f64) in its body, got (f32)",
        ),
        (
            LOAD + "%e = kernel.local (%k) in (8) : tensor<4xf32> {\nkernel.yield %0\n}\n" + STORE,
            "has extents [8] but the result tensor<4xf32>",
        ),
        (
            LOAD
            + "%e = kernel.local (%k) in (8) : tensor<8xf32> {\nkernel.yield %0\n}\nkernel.store %0, %e[%j]\n"
            + STORE,
            "is used by 'kernel.store'; a local is read by kernel.load, or yielded",
        ),
        (LOAD + STORE + "kernel.yield %0", "must yield () in its body, got (f32)"),
        (LOAD + "%1 = arith.addf %n, %0 : f32\n" + STORE, "undefined"),
    ],
)
def test_refused_bodies(body, message):
    assert message in refused(launch(body))


@pytest.mark.parametrize(
    "header,message",
    [
        ("(%i, %j) in (4) ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>)", "2 axes but 1 extents"),
        (
            "(%i, %j) in (4, 8) ins(%x : tensor<4x8xf32>) outs(%y = %x : tensor<4x9xf32>)",
            "expects type tensor<4x9xf32>",
        ),
        ("(%i, %j) in (4, 8) ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x9xf32>)", "does not provably store"),
        (
            "(%i, %j) in (4, 8) ins(%x : tensor<4x8xf32>) outs(%y = %z : tensor<3x8xf32>)",
            "extent 4 as subscript 0 of tensor<3x8xf32>",
        ),
    ],
)
def test_refused_headers(header, message):
    assert message in refused(launch(LOAD + STORE, header))


@pytest.mark.parametrize(
    "axes,stores,shape",
    [
        ("(%i, %j) in (4, 8)", ["[%j, %i]"], "8x4"),
        ("(%i) in (4)", ["[%i, 0]"], "4x1"),
        ("(%i, %j) in (4, 1)", ["[%i]"], "4"),
        ("(%i, %j) in (4, 8)", ["[8 * %i + %j]"], "32"),
        ("(%i, %j) in (4, 8)", ["[31 - 8 * %i - %j]"], "32"),
        ("(%i) in (32)", ["[%i floordiv 8, %i mod 8]"], "4x8"),
        ("(%i) in (32)", ["[%i mod 2, (%i floordiv 2) mod 4, %i floordiv 8]"], "2x4x4"),
        ("(%i, %j) in (4, 3)", ["[%i, %j]", "[%i, %j + 3]"], "4x6"),
        ("(%i) in (4)", ["[%i, 0]", "[%i, 1]", "[3 - %i, 2]"], "4x3"),
        ("(%i, %j) in (0, 8)", ["[%i, %j]"], "0x8"),
        ("() in ()", ["[]"], ""),
    ],
)
def test_stores_that_cover(axes, stores, shape):
    lines = "".join(f"kernel.store %0, %y{s}\n" for s in stores)
    type = f"tensor<{shape}{'x' if shape else ''}f32>"
    verify(parse_module(launch("%0 = arith.constant 0.0 : f32\n" + lines, f"{axes} outs(%y : {type})")))


@pytest.mark.parametrize(
    "axes,stores,shape",
    [
        ("(%i, %j) in (4, 8)", ["[4 * %i + %j]"], "32"),
        ("(%i, %j) in (4, 8)", ["[2 * %i, %j]"], "8x8"),
        ("(%i) in (32)", ["[%i floordiv 8, %i mod 4]"], "4x4"),
        ("(%i) in (30)", ["[%i floordiv 8, %i mod 8]"], "4x8"),
        ("(%i, %j) in (4, 3)", ["[%i, %j]", "[%i, %j + 2]"], "4x6"),
        ("(%i, %j) in (4, 2)", ["[%i]"], "4"),
        ("(%i) in (4)", ["[%i, 0]"], "4x2"),
        ("(%i) in (%n)", ["[%i]"], "8"),
    ],
)
def test_stores_that_do_not_cover(axes, stores, shape):
    lines = "".join(f"kernel.store %0, %y{s}\n" for s in stores)
    text = launch("%0 = arith.constant 0.0 : f32\n" + lines, f"{axes} outs(%y : tensor<{shape}xf32>)")
    assert "does not provably store" in refused(text)


def test_partial_stores_need_an_init():
    body = "%0 = arith.constant 0.0 : f32\nkernel.store %0, %y[%i + 2, %j]"
    verify(parse_module(launch(body, "(%i, %j) in (2, 8) outs(%y = %x : tensor<4x8xf32>)")))


def test_building_and_effects():
    type = TensorType([4, 8], F32)
    function = Func.of("f", [type], [type])
    (x,) = function.arguments
    b = ScalarBuilder(function.entry)
    op = kernel.Launch.build(b, [4, 8], [x], [type], names=["i", "j"])
    b.create(Return, op.results)
    with b.at(op.body.block):
        i, j = (AffineSubscript.of(a) for a in op.axes)
        map, values = access([i, j])
        loaded = b.value(kernel.Load, op.in_arguments[0], values, map=map)
        stored = b.create(kernel.Store, b.mul(loaded, 2.0), op.out_arguments[0], values, map=map)
        b.create(kernel.Yield, [])
    verify(function)
    assert loaded.type is F32
    assert is_pure(op) and is_removable(op)
    assert not is_removable(stored)
    buffers = parse_module(MORE.split("func.func @tuples")[0])
    bufferized = first(buffers, kernel.Launch)
    assert not is_removable(bufferized)
    read, written = bufferized.effects()
    assert [str(v.name) for v in written] == ["x", "y"] and "y" in [v.name for v in read]


def test_loaded_scalars_are_signless():
    for type, scalar in ((TensorType([2], UI8), I8), (MemRefType([2], UI8), I8), (TensorType([2], F32), F32)):
        assert kernel.scalar_type(type) is scalar
    assert kernel.holds(MemRefType([2], I8), parse_type("i1"))
    assert not kernel.holds(TensorType([2], I8), parse_type("i1"))


def parse_type(text):
    return parse_module(f"func.func private @f({text})").regions[0].block.first.type.inputs[0]


def test_subscript_arithmetic():
    block = Block([INDEX, INDEX])
    i, j = (AffineSubscript.of(a) for a in block.arguments)
    assert (i * 4 + j - 1).expr is dim(0) * 4 + dim(1) - 1
    assert (j + i).values == (block.arguments[1], block.arguments[0])
    assert (i - i).expr is constant(0) and (i - i).values == ()
    assert (2 - i).expr is 2 - dim(0)
    assert (i + 0) == i and hash(i) == hash(i + 0)
    assert ((i * 4) // 4) == i
    map, values = access([j, i + j, 3])
    assert str(map) == "(d0, d1) -> (d0, d0 + d1, 3)" and values == [block.arguments[1], block.arguments[0]]
    for bad in (lambda: i * j, lambda: i // j, lambda: i % j):
        with pytest.raises(TypeError, match="not affine"):
            bad()


class OnePoint(PointBuilder):
    """A point over the ins of a launch, to test the interface with."""

    def __init__(self, op):
        super().__init__(op.body.block)
        self.op = op
        self.axes = [AffineSubscript.of(a) for a in op.axes]

    def load(self, operand, subscripts, fill=None):
        map, values = access(subscripts)
        attribute = None if fill is None else FloatAttr(fill, F32)
        return self.value_of(kernel.Load, self.op.in_arguments[operand], values, map=map, fill=attribute)

    def extent(self, operand, axis):
        return self.op.ins[operand].type.shape[axis]

    def outside(self, value):
        return value

    def extent_of(self, value: Any, axis):
        return value.type.shape[axis]


def test_point_builds_reductions():
    source, target = TensorType([4, 8], F32), TensorType([4], F32)
    function = Func.of("f", [source], [target])
    b = ScalarBuilder(function.entry)
    op = kernel.Launch.build(b, [4], [function.arguments[0]], [target])
    b.create(Return, op.results)
    k = OnePoint(op)
    (i,) = k.axes
    (total,) = k.reduce([k.extent(0, 1)], "arith.addf", lambda at: k.load(0, [i, at[0]]))
    pair = k.reduce(
        [8], ("arith.addf", "arith.maximumf"), lambda at: [k.load(0, [i, at[0]]), k.load(0, [i, 7 - at[0]])], ["k"]
    )
    identities = [FloatAttr(0.0, F32)]
    (custom,) = k.reduce(
        [8], (identities, lambda a, c: k.sub(k.add(a, c), 0.0)), lambda at: k.load(0, [i, at[0] + 4], 1.0)
    )
    value = k.add(k.add(total, pair[0]), k.add(pair[1], custom))
    map, values = access(k.axes)
    k.create(kernel.Store, value, op.out_arguments[0], values, map=map)
    k.create(kernel.Yield, [])
    verify(function)
    text = print_op(function)
    assert "in (8) by arith.addf {" in text and "by (arith.addf, arith.maximumf) {" in text
    assert "from (0.0 : f32) {" in text and "else 1.0" in text
    assert print_op(parse_module(text).regions[0].block.first) == text


def test_subscripts_as_values():
    function = Func.of("f", [INDEX], [])
    b = ScalarBuilder(function.entry)
    target = TensorType([8], I64)
    op = kernel.Launch.build(b, [8], [], [target])
    b.create(Return, [])
    k = OnePoint(op)
    (i,) = k.axes
    first = k.value((i * 3 - 1) // 2 % 5)
    assert k.value(i) is op.axes[0]
    same = k.index(first)
    assert k.value(same) is first
    map, values = access([i])
    k.create(kernel.Store, k.index_cast(first, I64), op.out_arguments[0], values, map=map)
    k.create(kernel.Yield, [])
    verify(function)
    names = [o.name for o in op.body.block]
    assert names.count("arith.floordivsi") == 2 and names.count("arith.muli") == 2


def test_operators_of_a_monoid():
    module = parse_module(MORE + next(p for p in PROGRAMS if p.stem == "e1").read_text())
    found = [op.operators for op in module.walk() if isinstance(op, kernel.Monoidal)]
    assert [arith.AddF, arith.AddF] in found and None in found and [arith.AddF] in found


def test_long_form_where_the_identity_is_another():
    text = launch(
        "%0 = kernel.reduce (%k) in (8) from (1.0 : f32) {\n%1 = kernel.load %x[%i, %k]\nkernel.yield %1\n} "
        "combine (%a, %b) {\n%1 = arith.addf %a, %b : f32\nkernel.yield %1\n}\n" + STORE
    )
    printed = print_op(parse_module(text))
    assert "from (1.0 : f32)" in printed and print_op(parse_module(printed)) == printed


def test_an_identity_of_another_type_is_refused():
    module = parse_module(next(p for p in PROGRAMS if p.stem == "d").read_text())
    reduce = next(op for op in module.walk() if op.name == "kernel.reduce")
    reduce.properties["identity"] = ArrayAttr([])
    with pytest.raises(VerifyError):
        verify(module)

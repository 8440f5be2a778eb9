"""scf: both forms as mlir-opt takes them, verifier messages, folds, builders."""

import re
from pathlib import Path

import pytest
from find import every, first
from mlir_opt import check_forms, parse

from nablair.ir.attributes import IntegerAttr
from nablair.ir.builder import Builder
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import arith, gpu, memref, scf
from nablair.ir.effects import is_pure, is_removable, only_reads
from nablair.ir.operations import Block, Region
from nablair.ir.parser import parse_module
from nablair.ir.types import F32, I1, INDEX, MemRefType
from nablair.ir.verifier import verify

LOOPS = sorted((Path(__file__).parents[2] / "filecheck" / "loops").glob("*.mlir"))

HEAD = "func.func @f(%m: memref<8x?xf32>, %n: index, %x: f32, %c: i1, %i: i32) {\n"
TAIL = "\n  return\n}"


@pytest.mark.parametrize("path", LOOPS, ids=lambda p: p.stem)
def test_loop_programs_are_the_same_to_mlir_opt(path):
    check_forms(path.read_text())


FORMS = {
    "forall": "scf.forall (%a, %b) in (%n, 4) { memref.store %x, %m[%a, %b] : memref<8x?xf32> }",
    "forall with bounds": """
      scf.forall (%a, %b) = (0, %n) to (%n, 4) step (2, 1) {
        memref.store %x, %m[%a, %b] : memref<8x?xf32>
      } {axis = 3 : i64, mapping = [#gpu.block<x>, #gpu.thread<linear_dim_0>]}""",
    "forall with its terminator": "scf.forall (%a) in (4) { scf.forall.in_parallel {} }",
    "for": "scf.for %a = %n to %n step %n { memref.store %x, %m[%a, %a] : memref<8x?xf32> } {axis = 1 : i64}",
    "for of integers": "scf.for %a = %i to %i step %i : i32 { }",
    "for with values": """
      %r:2 = scf.for %a = %n to %n step %n iter_args(%p = %x, %q = %n) -> (f32, index) {
        %s = arith.addf %p, %p : f32
        scf.yield %s, %a : f32, index
      }
      memref.store %r#0, %m[%r#1, %n] : memref<8x?xf32>""",
    "for with one type": """
      %r = scf.for %a = %n to %n step %n iter_args(%p = %x) -> f32 {
        scf.yield %p : f32
      }""",
    "if": "scf.if %c { memref.store %x, %m[%n, %n] : memref<8x?xf32> }",
    "if else": "scf.if %c { } else { memref.store %x, %m[%n, %n] : memref<8x?xf32> } {flag}",
    "if with values": """
      %r:2 = scf.if %c -> (f32, index) { scf.yield %x, %n : f32, index } else { scf.yield %x, %n : f32, index }
      memref.store %r#0, %m[%r#1, %n] : memref<8x?xf32>""",
    "while": """
      %r:2 = scf.while (%p = %x, %k = %n) : (f32, index) -> (index, f32) {
        %go = arith.cmpf olt, %p, %x : f32
        scf.condition(%go) %k, %p : index, f32
      } do {
      ^bb0(%k2: index, %p2: f32):
        scf.yield %p2, %k2 : f32, index
      } attributes {flag}""",
    "while without values": "scf.while : () -> () { scf.condition(%c) } do { scf.yield }",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    check_forms(HEAD + FORMS[name] + TAIL)


def test_names_are_free_again_after_a_loop():
    text = HEAD + FORMS["for"] + FORMS["for"] + TAIL
    assert str(parse(text)).count("scf.for %a = ") == 2


ERRORS = {
    "bounds differ": (
        '"scf.for"(%n, %n, %i) ({^bb0(%a: index): scf.yield}) : (index, index, i32) -> ()',
        "bounds and step must have one type, got index, index, i32",
    ),
    "body arguments": (
        '"scf.for"(%n, %n, %n) ({^bb0(%a: i32): scf.yield}) : (index, index, index) -> ()',
        "expects a body with arguments (index), got (i32)",
    ),
    "yield types": (
        "%r = scf.for %a = %n to %n step %n iter_args(%p = %x) -> (f32) { scf.yield %a : index }",
        "must yield (f32), got (index)",
    ),
    "iter_args types": (
        "%r = scf.for %a = %n to %n step %n iter_args(%p = %x) -> (index) { scf.yield %a : index }",
        "result types (index) differ from those of iter_args (f32)",
    ),
    "results": (
        '%r = "scf.for"(%n, %n, %n) ({^bb0(%a: index): scf.yield}) : (index, index, index) -> f32',
        "has results of type (f32), but its operands give ()",
    ),
    "no else": (
        '%r = "scf.if"(%c) ({scf.yield %x : f32}, {}) : (i1) -> f32',
        "has results (f32) and so must have an else region",
    ),
    "if yields": (
        "%r = scf.if %c -> (f32) { scf.yield %x : f32 } else { scf.yield %n : index }",
        "must yield (f32), got (index)",
    ),
    "bounds missing": (
        "scf.forall (%a, %b) in (4) { }",
        "2 axes but 2 lower bounds, 1 upper bounds and 2 steps",
    ),
    "mapping": (
        "scf.forall (%a, %b) in (4, 4) { } {mapping = [#gpu.block<x>]}",
        "has 2 axes but a mapping of 1 entries",
    ),
    "forall step": (
        "scf.forall (%a) = (0) to (4) step (0) { }",
        "needs positive steps, got 0",
    ),
    "forall operands": (
        '"scf.forall"(%n) <{operandSegmentSizes = array<i32: 0, 1, 0, 0>, staticLowerBound = array<i64: 0>, '
        "staticUpperBound = array<i64: 4>, staticStep = array<i64: 1>}> ({^bb0(%a: index): "
        '"scf.forall.in_parallel"() ({^bb0:}) : () -> ()}) : (index) -> ()',
        "has 0 dynamic upper bounds in its property but 1 operands for them",
    ),
    "in_parallel holds an op": (
        "scf.forall (%a) in (4) { scf.forall.in_parallel { %z = arith.constant 1 : i32 } }",
        "must be empty",
    ),
    "while results": (
        """%r = scf.while (%p = %x) : (f32) -> index { scf.condition(%c) %p : f32 } do {
        ^bb0(%k: index):
          scf.yield %x : f32
        }""",
        "has results (index) but scf.condition gives (f32)",
    ),
    "condition elsewhere": (
        "scf.if %c { scf.condition(%c) }",
        "must end each body in scf.yield",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    text, message = ERRORS[name]
    with pytest.raises(Error, match=re.escape(message)):
        verify(parse_module(HEAD + text + TAIL))


def test_for_without_trips_folds_to_its_start_values():
    module = parse(
        HEAD
        + """
      %lo = arith.constant 4 : index
      %hi = arith.constant 4 : index
      %r = scf.for %a = %lo to %hi step %n iter_args(%p = %x) -> (f32) { scf.yield %p : f32 }"""
        + TAIL
    )
    loop = first(module, scf.For)
    four, five = IntegerAttr(4, INDEX), IntegerAttr(5, INDEX)
    assert loop.fold([four, four, None, None]) == loop.inits
    assert loop.fold([four, five, None, None]) is None
    assert loop.fold([four, None, None, None]) is None
    assert loop.trips is None


@pytest.mark.parametrize(("lower", "upper", "step", "trips"), [(0, 8, 2, 4), (0, 7, 2, 4), (3, 3, 1, 0), (5, 3, 1, 0)])
def test_trips(lower, upper, step, trips):
    block = Block()
    b = Builder(block)
    start, end, by = (b.value(arith.Constant, value=IntegerAttr(v, INDEX)) for v in (lower, upper, step))
    assert scf.For.build(b, start, end, by).trips == trips


def test_if_folds_when_the_branch_only_yields():
    module = parse(HEAD + FORMS["if with values"] + FORMS["if else"] + TAIL)
    yielding, storing = every(module, scf.If)
    true, false = IntegerAttr(1, I1), IntegerAttr(0, I1)
    assert yielding.fold([true]) == first(yielding, scf.Yield).operands
    assert yielding.fold([None]) is None
    assert storing.fold([true]) == ()
    assert storing.fold([false]) is None  # the branch stores


def test_inline_moves_a_branch_before_the_op():
    module = parse(
        HEAD
        + """
      %r = scf.if %c -> (f32) {
        %d = arith.addf %x, %x : f32
        scf.yield %d : f32
      } else { scf.yield %x : f32 }
      memref.store %r, %m[%n, %n] : memref<8x?xf32>"""
        + TAIL
    )
    op = first(module, scf.If)
    op.inline(op.then)
    verify(module)
    add, store = first(module, arith.AddF), first(module, memref.Store)
    assert store.value is add.result and add.next is store


def test_effects_are_those_of_the_body():
    module = parse(HEAD + FORMS["forall"] + FORMS["for with one type"] + TAIL)
    forall, loop = first(module, scf.Forall), first(module, scf.For)
    assert is_pure(loop) and is_removable(loop)
    assert not only_reads(forall) and not is_removable(forall)


def test_builders():
    block = Block([INDEX, F32, MemRefType((64,), F32), I1])
    n, x, m, c = block.arguments
    b = Builder(block)
    loop = scf.For.build(b, n, n, n, [x], name="k")
    with b.at(loop.body.block):
        b.create(scf.Yield, [b.value(memref.Load, m, [loop.counter])])
    branch = scf.If.build(b, c, [F32])
    for region in (branch.then, branch.otherwise):
        with b.at(region.block):
            b.create(scf.Yield, loop.values)
    points = scf.Forall.build(b, [n, 4], mapping=[gpu.block_mapping("x"), gpu.thread_mapping("x")], names=["i", "j"])
    with b.at(points.body.block, points.body.block.last):
        b.create(memref.Store, branch.values[0], m, [points.axes[1]])
    again = scf.While.build(b, [x])
    with b.at(again.before.block):
        b.create(scf.Condition, c, again.before.block.arguments)
    with b.at(again.after.block):
        b.create(scf.Yield, again.after.block.arguments)
    for op in (loop, branch, points, again):
        op.verify_()
    assert points.upper == [n, 4] and points.lower == [0, 0] and points.is_normalized
    assert loop.counter.name == "k" and loop.carried == [loop.body.block.arguments[1]]


def test_a_yield_needs_a_loop_around_it():
    op = scf.Yield(())
    Region([block := Block()])
    block.append(op)
    with pytest.raises(Error, match="must stand in scf"):
        op.verify_()

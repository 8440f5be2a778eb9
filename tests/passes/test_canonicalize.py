"""canonicalize: exactness of its rules, convergence, tracing, listing.  Forms are in tests/filecheck/canonicalize."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest

from nablair.ir.diagnostics import PassError
from nablair.ir.dialect import DIALECTS, Dialect
from nablair.ir.dialects.arith import AddF, SubF
from nablair.ir.dialects.arith.comparison import FLOAT_RELATIONS, INTEGER_RELATIONS
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.rewrite_rules import captures, table, term
from nablair.passes import canonicalize
from nablair.passes.canonicalize import Canonicalize, all_rules, rules_for
from nablair.passes.manager import PassManager

SPECIAL = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, 1e-45, -3e-39, 3e38, 0.1]


def optimized(text: str, **options):
    """A module before and after."""
    before, after = parse_module(text), parse_module(text)
    PassManager([Canonicalize(**options)]).run(after)
    return before, after


FLOAT_BODIES = {
    "x + -y": "%0 = arith.negf %y : f32\n %1 = arith.addf %x, %0 : f32",
    "-y + x": "%0 = arith.negf %y : f32\n %1 = arith.addf %0, %x : f32",
    "x - -y": "%0 = arith.negf %y : f32\n %1 = arith.subf %x, %0 : f32",
    "-x * -y": "%0 = arith.negf %y : f32\n %2 = arith.negf %x : f32\n %1 = arith.mulf %2, %0 : f32",
    "-x / -y": "%0 = arith.negf %y : f32\n %2 = arith.negf %x : f32\n %1 = arith.divf %2, %0 : f32",
    "|-x|": "%0 = arith.negf %x : f32\n %1 = math.absf %0 : f32",
    "x / 8": "%0 = arith.constant 8.0 : f32\n %1 = arith.divf %x, %0 : f32",
    "x / -2**-126": "%0 = arith.constant -1.17549435e-38 : f32\n %1 = arith.divf %x, %0 : f32",
    "3 < x": "%0 = arith.constant 0.1 : f32\n %2 = arith.cmpf ult, %0, %x : f32\n %1 = arith.select %2, %x, %y : f32",
}


@pytest.mark.parametrize("body", FLOAT_BODIES.values(), ids=FLOAT_BODIES)
def test_float_rules_are_exact(body: str):
    text = f"func.func @main(%x: f32, %y: f32) -> f32 {{\n {body}\n return %1 : f32\n}}"
    before, after = optimized(text)
    assert str(before) != str(after)
    with np.errstate(all="ignore"):
        for x in SPECIAL:
            for y in SPECIAL:
                given = [np.float32(x), np.float32(y)]
                (a,), (b,) = Interpreter(before).call("main", given), Interpreter(after).call("main", given)
                assert np.float32(a).tobytes() == np.float32(b).tobytes() or (a != a and b != b), (x, y, a, b)


@pytest.mark.parametrize("predicate", FLOAT_RELATIONS)
def test_negated_float_comparisons(predicate: str):
    check_comparison("cmpf", predicate, "f32", [np.float32(v) for v in (*SPECIAL, np.nan)])


@pytest.mark.parametrize("predicate", INTEGER_RELATIONS)
def test_negated_integer_comparisons(predicate: str):
    check_comparison("cmpi", predicate, "i8", [np.int8(v) for v in (-128, -1, 0, 1, 127)])


def check_comparison(op: str, predicate: str, type: str, values: list):
    text = f"""func.func @main(%x: {type}, %y: {type}) -> i1 {{
      %true = arith.constant true
      %0 = arith.{op} {predicate}, %x, %y : {type}
      %1 = arith.xori %0, %true : i1
      return %1 : i1
    }}"""
    before, after = optimized(text)
    assert "xori" not in str(after)
    for x in values:
        for y in values:
            assert Interpreter(before).call("main", [x, y]) == Interpreter(after).call("main", [x, y]), (x, y)


def test_what_would_not_be_exact_stays():
    text = """func.func @main(%x: f32) -> (f32, f32, f32) {
      %0 = arith.constant 3.0 : f32
      %1 = arith.divf %x, %0 : f32
      %2 = arith.constant 0.0 : f32
      %3 = arith.addf %x, %2 : f32
      %4 = arith.mulf %x, %2 : f32
      return %1, %3, %4 : f32, f32, f32
    }"""
    _, after = optimized(text)
    names = [op.name for op in after.walk()]
    assert [names.count(f"arith.{n}") for n in ("divf", "addf", "mulf")] == [1, 1, 1]


def test_fast_math_flags_stay():
    text = """func.func @main(%x: f32, %y: f32) -> f32 {
      %0 = arith.negf %y : f32
      %1 = arith.addf %x, %0 fastmath<reassoc> : f32
      return %1 : f32
    }"""
    _, after = optimized(text)
    assert "arith.subf %x, %y fastmath<reassoc>" in str(after)


def test_vectors_and_splats():
    text = """func.func @main(%x: vector<4xi32>) -> vector<4xi32> {
      %0 = arith.constant dense<2> : vector<4xi32>
      %1 = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
      %2 = arith.addi %x, %0 : vector<4xi32>
      %3 = arith.addi %2, %1 : vector<4xi32>
      return %3 : vector<4xi32>
    }"""
    _, after = optimized(text)
    assert "dense<[3, 4, 5, 6]>" in str(after)
    assert sum(op.name == "arith.addi" for op in after.walk()) == 1


def test_unregistered_ops_stay() -> None:
    module = parse_module('"foo.op"() ({ "foo.end"() : () -> () }) : () -> ()', allow_unregistered=True)
    before = str(module)
    PassManager([Canonicalize()]).run(module)
    assert str(module) == before


def test_a_plugin_rewrites_ops_of_ours_beside_our_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = captures("x y")
    module = ModuleType("canonicalizetest")
    module.__dict__["RULES"] = table((term(SubF)(x, term(SubF)(x, y)), y, "x - (x - y) -> y, but for rounding"))
    monkeypatch.setitem(sys.modules, "canonicalizetest", module)
    text = """func.func @main(%x: f32, %y: f32) -> (f32, f32) {
      %0 = arith.subf %x, %y : f32
      %1 = arith.subf %x, %0 : f32
      %2 = arith.negf %y : f32
      %3 = arith.subf %x, %2 : f32
      return %1, %3 : f32, f32
    }"""
    without = str(optimized(text)[1])
    row = Dialect("canonicalizetest", "any", ops="canonicalizetest", rewrites="canonicalizetest")
    monkeypatch.setitem(DIALECTS, row.name, row)
    found = str(optimized(text)[1])
    assert "arith.subf %x, %0" in without and "return %y, " in found
    assert without.count("arith.addf") == found.count("arith.addf") == 1  # a rule of ours for the same op


@pytest.fixture
def cycling_rules(monkeypatch: pytest.MonkeyPatch):
    x, y = captures("x y")
    rules = table((term(AddF)(x, y), term(SubF)(x, y), "there"), (term(SubF)(x, y), term(AddF)(x, y), "back"))
    found = {rule.root: [rule] for rule in rules}
    monkeypatch.setitem(canonicalize._loaded, DIALECTS["arith"], found)


CYCLE = "func.func @main(%x: f32) -> f32 {\n %0 = arith.addf %x, %x : f32\n return %0 : f32\n}"


@pytest.mark.usefixtures("cycling_rules")
def test_rules_that_cycle_are_named():
    with pytest.warns(RuntimeWarning, match=r"did not converge.*arith.(addf: there|subf: back); arith"):
        optimized(CYCLE)
    with pytest.raises(PassError, match="canonicalize did not converge"):
        optimized(CYCLE, test_convergence=True)


def test_rewrites_can_be_shown(capsys: pytest.CaptureFixture[str]):
    text = """func.func @main(%x: i32) -> i32 {
      %0 = arith.constant 1 : i32
      %1 = arith.subi %x, %0 : i32
      return %1 : i32
    }"""
    optimized(text, trace=True)
    shown = capsys.readouterr().err
    assert "// arith.subi: x - c -> x + -c" in shown and "-  " in shown and "+  " in shown


def test_rules_are_listed():
    texts = [str(rule) for rule in all_rules()]
    assert "arith.subi: x - x -> 0" in texts and len(texts) == len(set(texts))
    assert all(rule.root is SubF for rule in rules_for(SubF)) and rules_for(SubF)


def test_a_constant_leaves_three_hundred_regions():
    depth = 300
    text = "func.func @main(%c: i1, %m: memref<f32>, %x: f32) {\n" + "scf.if %c {\n" * depth
    text += "%0 = arith.constant 1.0 : f32\n memref.store %0, %m[] : memref<f32>\n" + "}\n" * depth + "return\n}"
    _, after = optimized(text)
    assert next(iter(next(after.functions()).body.block)).name == "arith.constant"

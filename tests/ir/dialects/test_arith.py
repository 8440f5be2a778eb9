"""Arithmetic: what ops compute, what they fold to, and that upstream's mlir-opt reads them as we do."""

import math
import shutil
import subprocess
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nablair.ir import registry
from nablair.ir.attributes import DenseAttr, FloatAttr, IntegerAttr, constant_attr
from nablair.ir.builder import Builder
from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.diagnostics import ParseError, VerifyError
from nablair.ir.dialects import arith
from nablair.ir.dialects.arith.base import Monoid
from nablair.ir.numeric import constant
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I8,
    I16,
    I32,
    I64,
    INDEX,
    UI8,
    IntegerType,
    TensorType,
    VectorType,
)
from nablair.ir.verifier import verify

NUMPY = {
    F16: np.float16,
    BF16: ml_dtypes.bfloat16,
    F32: np.float32,
    F64: np.float64,
    I1: np.bool_,
    I8: np.int8,
    I16: np.int16,
    I32: np.int32,
    I64: np.int64,
    INDEX: np.int64,
}
INTEGERS = [I1, I8, I16, I32, I64]


def build(name, *types, results=None, **properties) -> Any:
    """An op of a name on block arguments of these types."""
    block = Block(types)
    cls = registry.lookup(name)
    assert cls is not None
    return Builder(block).create(cls, *block.arguments, results=results, **properties)


def defining(value) -> Any:
    return value.defining_op


def evaluate(op, *values):
    with np.errstate(all="ignore"):
        return op.evaluate(*values)


def python_integer(name, a, b, width):
    """The result of an integer op by Python's integers, as unsigned bits."""
    mask = (1 << width) - 1
    ua, ub = a & mask, b & mask
    sa, sb = (x - (1 << width) if x >> (width - 1) else x for x in (ua, ub))
    table = {
        "addi": lambda: sa + sb,
        "subi": lambda: sa - sb,
        "muli": lambda: sa * sb,
        "divsi": lambda: int(math.copysign(1, sa) * math.copysign(1, sb)) * (abs(sa) // abs(sb)),
        "divui": lambda: ua // ub,
        "remsi": lambda: sa - int(math.copysign(1, sa) * math.copysign(1, sb)) * (abs(sa) // abs(sb)) * sb,
        "remui": lambda: ua % ub,
        "floordivsi": lambda: sa // sb,
        "ceildivsi": lambda: -(-sa // sb),
        "andi": lambda: ua & ub,
        "ori": lambda: ua | ub,
        "xori": lambda: ua ^ ub,
        "maxsi": lambda: max(sa, sb),
        "minsi": lambda: min(sa, sb),
        "maxui": lambda: max(ua, ub),
        "minui": lambda: min(ua, ub),
        "shli": lambda: ua << ub,
        "shrsi": lambda: sa >> ub,
        "shrui": lambda: ua >> ub,
    }
    return table[name]() & mask


OPS = [
    "addi",
    "subi",
    "muli",
    "divsi",
    "divui",
    "remsi",
    "remui",
    "floordivsi",
    "ceildivsi",
    "andi",
    "ori",
    "xori",
    "maxsi",
    "minsi",
    "maxui",
    "minui",
    "shli",
    "shrsi",
    "shrui",
]


def interesting(width):
    """Bit patterns at the edges and some between."""
    top = 1 << (width - 1)
    rng = np.random.default_rng(width)
    found = {0, 1, 2, 3, top - 1, top, (1 << width) - 1, (1 << width) - 2} | {int(v) for v in rng.integers(0, top, 5)}
    return sorted(v & ((1 << width) - 1) for v in found)


def as_array(patterns, type):
    return np.array([IntegerAttr(v, type).value for v in patterns], NUMPY[type])


def bits(value, width):
    return int(value) & ((1 << width) - 1)


@pytest.mark.parametrize("type", INTEGERS, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_integers_wrap_exactly(name, type):
    width = type.width
    pairs = [(a, b) for a in interesting(width) for b in interesting(width)]
    if name.startswith("sh"):
        pairs = [(a, b) for a, b in pairs if b < width]
    if "div" in name or "rem" in name:
        pairs = [(a, b) for a, b in pairs if b and not (b == (1 << width) - 1 and a == 1 << (width - 1))]
    op = build(f"arith.{name}", type, type)
    want = [python_integer(name, a, b, width) for a, b in pairs]
    a, b = (as_array(p, type) for p in zip(*pairs, strict=True))
    got = evaluate(op, a, b)
    assert got.dtype == NUMPY[type]
    assert [bits(v, width) for v in got] == want
    for i in range(0, len(pairs), 7):
        assert bits(evaluate(op, a[i], b[i]), width) == want[i]
        folded = op.fold([IntegerAttr(pairs[i][0], type), IntegerAttr(pairs[i][1], type)])
        value = constant(folded) if not hasattr(folded, "uses") else (a[i] if folded is op.lhs else b[i])
        assert bits(value, width) == want[i]


@pytest.mark.parametrize("type", [F16, BF16, F32, F64], ids=str)
@pytest.mark.parametrize(
    "name,function",
    [
        ("addf", lambda a, b: a + b),
        ("subf", lambda a, b: a - b),
        ("mulf", lambda a, b: a * b),
        ("divf", lambda a, b: a / b),
    ],
)
def test_floats_round_once(name, function, type):
    """Against exact fractions, rounded to the type."""
    from fractions import Fraction

    rng = np.random.default_rng(1)
    op = build(f"arith.{name}", type, type)
    a, b = ((rng.standard_normal(60) * 10.0 ** rng.integers(-1, 2, 60)).astype(NUMPY[type]) for _ in range(2))
    got = evaluate(op, a, b)
    for x, y, z in zip(a, b, got, strict=True):
        exact = function(Fraction(float(x)), Fraction(float(y)))
        # The neighbours of the result are no nearer.
        error = abs(Fraction(float(z)) - exact)
        for other in (np.nextafter(z, NUMPY[type](np.inf)), np.nextafter(z, NUMPY[type](-np.inf))):
            assert error <= abs(Fraction(float(other)) - exact)
        folded = op.fold([constant_attr(float(x), type), constant_attr(float(y), type)])
        if not hasattr(folded, "uses"):
            assert constant(folded).tobytes() == z.tobytes()


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "name,a,b,want",
    [
        ("maximumf", 1.0, NAN, NAN),
        ("maximumf", NAN, 1.0, NAN),
        ("maximumf", -0.0, 0.0, 0.0),
        ("maximumf", 0.0, -0.0, 0.0),
        ("minimumf", 1.0, NAN, NAN),
        ("minimumf", 0.0, -0.0, -0.0),
        ("minimumf", -0.0, 0.0, -0.0),
        ("maxnumf", 1.0, NAN, 1.0),
        ("maxnumf", NAN, 1.0, 1.0),
        ("minnumf", NAN, 2.0, 2.0),
        ("minnumf", -INF, 2.0, -INF),
        ("remf", 5.5, 2.0, 1.5),
        ("remf", -5.5, 2.0, -1.5),
        ("remf", 1.0, 0.0, NAN),
        ("divf", 1.0, 0.0, INF),
    ],
)
@pytest.mark.parametrize("type", [F16, BF16, F32, F64], ids=str)
def test_special_values(name, a, b, want, type):
    op = build(f"arith.{name}", type, type)
    got = evaluate(op, NUMPY[type](a), NUMPY[type](b))
    lanes = evaluate(op, np.full(20, a, NUMPY[type]), np.full(20, b, NUMPY[type]))
    for value in (got, *lanes):
        assert value.dtype == NUMPY[type]
        assert math.isnan(value) if math.isnan(want) else (value == want and np.signbit(value) == np.signbit(want))


def test_float_predicates():
    """Ordered ones are false and unordered ones true with NaN; all agree with Python on numbers."""
    order = {"eq": "==", "gt": ">", "ge": ">=", "lt": "<", "le": "<=", "ne": "!="}
    values = [NAN, 1.0, 2.0, -0.0, 0.0, INF]
    a, b = (np.array(v, np.float32) for v in zip(*[(x, y) for x in values for y in values], strict=True))
    for predicate in arith.FLOAT_RELATIONS:
        op = build("arith.cmpf", F32, F32, predicate=predicate)
        assert op.predicate == predicate and op.result.type is I1
        for x, y, got in zip(a, b, evaluate(op, a, b), strict=True):
            nan = math.isnan(x) or math.isnan(y)
            if predicate in ("true", "false"):
                want = predicate == "true"
            elif predicate in ("ord", "uno"):
                want = nan == (predicate == "uno")
            else:
                want = predicate[0] == "u" if nan else eval(f"x {order[predicate[1:]]} y")
            assert got == want, (predicate, x, y)
    assert list(arith.FLOAT_RELATIONS).index("ord") == 7 and list(arith.FLOAT_RELATIONS).index("une") == 13


def test_integer_predicates():
    for type in (I1, I8, I64):
        patterns = interesting(type.width)
        pairs = [(a, b) for a in patterns for b in patterns]
        a, b = (as_array(p, type) for p in zip(*pairs, strict=True))
        for predicate in arith.INTEGER_RELATIONS:
            op = build("arith.cmpi", type, type, predicate=predicate)
            for (x, y), got in zip(pairs, evaluate(op, a, b), strict=True):
                sx, sy = (v - (1 << type.width) if v >> (type.width - 1) else v for v in (x, y))
                left, right = (x, y) if predicate[0] == "u" else (sx, sy)
                relation = {
                    "eq": left == right,
                    "ne": left != right,
                    "lt": left < right,
                    "le": left <= right,
                    "gt": left > right,
                    "ge": left >= right,
                }[predicate[-2:]]
                assert got == relation
                assert constant(op.fold([IntegerAttr(x, type), IntegerAttr(y, type)])) == relation


def cast(name, source, target, value):
    op = build(f"arith.{name}", source, results=[target])
    got = evaluate(op, NUMPY[source](value))
    lanes = evaluate(op, np.full(9, value, NUMPY[source]))
    assert got.dtype == lanes.dtype == NUMPY[target]
    assert all(v.tobytes() == got.tobytes() for v in lanes)
    return got


@pytest.mark.parametrize(
    "name,source,target,value,want",
    [
        ("fptosi", F32, I8, 300.0, 127),
        ("fptosi", F32, I8, -300.0, -128),
        ("fptosi", F32, I32, NAN, 0),
        ("fptosi", F64, I64, 1e30, (1 << 63) - 1),
        ("fptosi", F64, I64, -INF, -(1 << 63)),
        ("fptosi", F32, I32, -1.9, -1),
        ("fptoui", F32, I8, 255.9, -1),
        ("fptoui", F32, I8, -3.0, 0),
        ("fptoui", F64, I64, 1e30, -1),
        ("fptoui", F64, I64, NAN, 0),
        ("fptoui", F64, I64, 1.8e19, 18000000000000000000 - (1 << 64)),
        ("fptosi", BF16, I16, 2.5, 2),
        ("fptosi", F32, I1, -5.0, True),
        ("fptoui", F32, I1, 0.5, False),
        ("extsi", I1, I32, True, -1),
        ("extui", I1, I32, True, 1),
        ("extsi", I8, I64, -5, -5),
        ("extui", I8, I64, -5, 251),
        ("trunci", I32, I8, 0x1FF, -1),
        ("trunci", I32, I1, 3, True),
        ("trunci", I64, I32, 1 << 31, -(1 << 31)),
        ("sitofp", I1, F32, True, -1.0),
        ("uitofp", I1, F32, True, 1.0),
        ("sitofp", I32, F32, (1 << 24) + 1, 16777216.0),
        ("uitofp", I64, F64, -1, 18446744073709551616.0),
        ("sitofp", I32, F16, 70000, INF),
        ("index_cast", I1, INDEX, True, -1),
        ("index_castui", I8, INDEX, -1, 255),
        ("index_cast", INDEX, I32, 1 << 32, 0),
        ("bitcast", F32, I32, 1.0, 0x3F800000),
        ("bitcast", I16, BF16, 0x3F80, 1.0),
        ("bitcast", I64, F64, 0, 0.0),
        ("truncf", F64, F32, 1e300, INF),
        ("truncf", F32, F16, -0.0, -0.0),
        ("extf", BF16, F64, 1.5, 1.5),
    ],
)
def test_casts(name, source, target, value, want):
    got = cast(name, source, target, value)
    assert got == want and np.signbit(np.float64(got)) == np.signbit(np.float64(want))


def test_truncf_rounds_once():
    """A value just above a tie of the narrow type, which a detour through float32 would lose."""
    above = 1.0 + 2.0**-8 + 2.0**-40
    assert float(cast("truncf", F64, BF16, above)) == 1.0 + 2.0**-7
    assert float(cast("truncf", F64, BF16, 1.0 + 2.0**-8)) == 1.0
    assert float(cast("truncf", F64, F16, 1.0 + 2.0**-11 + 2.0**-40)) == 1.0 + 2.0**-10
    assert math.isnan(cast("truncf", F64, BF16, NAN))
    big = (1 << 62) + (1 << 54) + 1
    assert float(cast("sitofp", I64, BF16, big)) == float((1 << 62) + (1 << 55))
    assert float(cast("sitofp", I64, BF16, -big)) == -float((1 << 62) + (1 << 55))


def test_select_takes_one_condition_or_many():
    values = np.array([1.0, 2.0], np.float32)
    vector = VectorType([2], F32)
    one = build("arith.select", I1, vector, vector)
    assert list(evaluate(one, np.bool_(False), values, -values)) == [-1.0, -2.0]
    many = build("arith.select", VectorType([2], I1), vector, vector)
    assert list(evaluate(many, np.array([True, False]), values, -values)) == [1.0, -2.0]
    scalar = build("arith.select", I1, F32, F32)
    assert type(evaluate(scalar, np.bool_(True), np.float32(1), np.float32(2))) is np.float32


def folded(name, *types, constants, **properties):
    op = build(name, *types, **properties)
    found = op.fold([None if c is None else constant_attr(c, t) for c, t in zip(constants, types, strict=True)])
    return op, found


def test_identities_that_are_exact():
    for name, type, constants, operand in [
        ("arith.addf", F32, (None, -0.0), 0),
        ("arith.addf", F32, (-0.0, None), 1),
        ("arith.subf", F32, (None, 0.0), 0),
        ("arith.mulf", F32, (None, 1.0), 0),
        ("arith.divf", F32, (None, 1.0), 0),
        ("arith.addi", I32, (0, None), 1),
        ("arith.muli", I32, (None, 1), 0),
        ("arith.andi", I8, (None, -1), 0),
        ("arith.ori", I1, (None, 0), 0),
        ("arith.shli", I32, (None, 0), 0),
        ("arith.divsi", INDEX, (None, 1), 0),
    ]:
        op, found = folded(name, type, type, constants=constants)
        assert found is op.operands[operand], name
    for name, type, constants in [
        ("arith.addf", F32, (None, 0.0)),
        ("arith.subf", F32, (None, -0.0)),
        ("arith.mulf", F32, (None, 0.0)),
        ("arith.divsi", I32, (1, 0)),
        ("arith.shli", I32, (1, 40)),
        ("arith.subi", I32, (0, None)),
        ("arith.divf", F32, (1.0, 0.0)),
        ("arith.subf", F32, (INF, INF)),
    ]:
        assert folded(name, type, type, constants=constants)[1] is None, name
    assert folded("arith.muli", I32, I32, constants=(None, 0))[1] is IntegerAttr(0, I32)


def test_folds_of_vectors_are_splats():
    vector = VectorType([4], F32)
    assert folded("arith.addf", vector, vector, constants=(1.0, 2.0))[1] is DenseAttr.splat(vector, 3.0)
    op = build("arith.cmpi", I32, I32, predicate="sle")
    op.set_operand(1, op.lhs)
    assert op.fold([None, None]) is IntegerAttr(1, I1)


def test_casts_that_undo_each_other():
    block = Block([BF16, I8, I32, INDEX])
    b = ScalarBuilder(block)
    h, i, w, n = block.arguments
    assert defining(b.cast(b.cast(h, BF16, F32), F32, BF16)).fold([None]) is h
    assert defining(b.cast(b.cast(i, I8, I32), I32, I8)).fold([None]) is i
    assert defining(b.index_cast(b.index_cast(w), I32)).fold([None]) is w
    assert defining(b.index_cast(b.index_cast(n, I64))).fold([None]) is n
    assert defining(b.index_cast(b.index_cast(n, I32))).fold([None]) is None
    assert defining(b.bitcast(b.bitcast(w, F32), I32)).fold([None]) is w


@pytest.mark.parametrize(
    "name,type,want",
    [
        ("addf", F32, 0.0),
        ("mulf", BF16, 1.0),
        ("maximumf", F64, -INF),
        ("minimumf", F16, INF),
        ("addi", I8, 0),
        ("muli", I64, 1),
        ("maxsi", I8, -128),
        ("minsi", I32, (1 << 31) - 1),
        ("maxui", I8, 0),
        ("minui", I8, -1),
        ("andi", I1, 1),
        ("ori", I1, 0),
        ("xori", I64, 0),
        ("maxsi", INDEX, -(1 << 63)),
    ],
)
def test_monoid_identities(name, type, want):
    cls = registry.lookup(f"arith.{name}")
    assert cls is not None and issubclass(cls, Monoid)
    found = cls.identity(type)
    assert isinstance(found, IntegerAttr | FloatAttr)
    assert found.type is type and found.value == want
    if name == "addf":
        assert math.copysign(1.0, found.value) == 1.0
    tensor = TensorType([3], type)
    assert cls.identity(tensor) is DenseAttr.splat(tensor, want)
    # e * x = x for numbers
    op = build(f"arith.{name}", type, type)
    one = NUMPY[type](1)
    assert evaluate(op, constant(found), one) == one


def test_scalar_builder_dispatches_on_types():
    block = Block([F32, I32, INDEX])
    b = ScalarBuilder(block)
    x, i, n = block.arguments
    names = [
        defining(v).name
        for v in (
            b.add(x, 1.0),
            b.add(i, 1),
            b.mul(2, n),
            b.div(x, x),
            b.div(i, i),
            b.div(i, i, unsigned=True),
            b.neg(x),
            b.abs(i),
            b.cmp("ult", x, 0.0),
            b.cmp("ult", i, 0),
            b.select(b.cmp("eq", n, 1), x, 0.0),
            b.fma(x, 2.0, 1.0),
        )
    ]
    assert names == [
        "arith.addf",
        "arith.addi",
        "arith.muli",
        "arith.divf",
        "arith.divsi",
        "arith.divui",
        "arith.negf",
        "math.absi",
        "arith.cmpf",
        "arith.cmpi",
        "arith.select",
        "math.fma",
    ]
    with pytest.raises(TypeError):
        b.add(1, 2)


@pytest.mark.parametrize(
    "source,target,names",
    [
        (F16, BF16, ["extf", "truncf"]),
        (F32, F64, ["extf"]),
        (UI8, F32, ["uitofp"]),
        (I8, F32, ["sitofp"]),
        (I1, F32, ["uitofp"]),
        (F32, I1, ["constant", "cmpf"]),
        (F32, UI8, ["fptoui"]),
        (I1, I32, ["extui"]),
        (UI8, I32, ["extui"]),
        (I8, I32, ["extsi"]),
        (I32, UI8, ["trunci"]),
        (UI8, I8, []),
        (F32, INDEX, ["fptosi", "index_cast"]),
        (I64, I1, ["constant", "cmpi"]),
        (IntegerType(32, "u"), INDEX, ["index_castui"]),
    ],
)
def test_cast_between_element_types(source, target, names):
    signless = IntegerType(source.width) if isinstance(source, IntegerType) else source
    block = Block([signless])
    b = ScalarBuilder(block)
    b.cast(block.arguments[0], source, target)
    assert [op.name.removeprefix("arith.") for op in block] == names


TEXT = """
func.func @f(%a: f32, %b: i32, %v: vector<4xf32>, %c: vector<4xi1>, %i: index, %h: bf16) -> f32 {
  %0 = arith.addf %a, %a fastmath<reassoc,contract> : f32
  %1 = arith.addi %b, %b overflow<nsw, nuw> : i32
  %2 = arith.cmpf ogt, %a, %0 fastmath<nnan> : f32
  %3 = arith.select %2, %a, %0 : f32
  %4 = arith.select %c, %v, %v : vector<4xi1>, vector<4xf32>
  %5 = arith.constant false
  %6 = arith.constant dense<1.0> : vector<4xf32>
  %7 = arith.constant 7 : index
  %8 = arith.index_cast %i : index to i64
  %9 = math.fma %a, %a, %0 : f32
  %10 = arith.negf %a : f32
  %11 = arith.fptosi %a : f32 to i32
  %12 = math.absi %b : i32
  %13 = arith.cmpi ult, %b, %b : i32
  %14 = arith.extf %h : bf16 to f32
  %15 = math.powf %a, %14 : f32
  %16 = arith.maximumf %v, %6 : vector<4xf32>
  %17 = arith.bitcast %b : i32 to f32
  return %0 : f32
}
"""


def test_text():
    module = parse_module(TEXT)
    verify(module)
    body = print_op(module).splitlines()[2:-2]
    assert [line.strip() for line in body] == [line.strip() for line in TEXT.strip().splitlines()[1:-1]]
    assert print_op(parse_module(print_op(module, generic=True)), keep_names=False) == print_op(
        module, keep_names=False
    )


@pytest.mark.skipif(shutil.which("mlir-opt-19") is None, reason="needs mlir-opt-19")
@pytest.mark.parametrize("generic", [False, True])
def test_mlir_opt_verifies_it(generic):
    text = print_op(parse_module(TEXT), generic=generic)
    done = subprocess.run(["mlir-opt-19"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    again = parse_module(done.stdout)
    assert print_op(again, keep_names=False) == print_op(parse_module(TEXT), keep_names=False)


@pytest.mark.parametrize(
    "line,message",
    [
        ("%0 = arith.addf %b, %b : i32", "float"),
        ("%0 = arith.extf %a : f32 to bf16", "needs a wider result: f32 to bf16"),
        ("%0 = arith.bitcast %a : f32 to i64", "needs equal widths: f32 to i64"),
        ("%0 = arith.index_cast %b : i32 to i64", "needs one index and one integer"),
        ("%0 = arith.select %a, %b, %b : i32", "expects type i1"),
        ("%0 = arith.cmpf slt, %a, %a : f32", "'slt' is none of"),
        ("%0 = arith.addf %a, %a fastmath<quick> : f32", "quick: not among reassoc"),
        ("%0 = arith.constant 1 : ui8", "signless"),
    ],
)
def test_errors(line, message):
    with pytest.raises((ParseError, VerifyError)) as caught:
        verify(parse_module(f"func.func @f(%a: f32, %b: i32) {{\n  {line}\n  return\n}}"))
    assert message in str(caught.value)


def test_constants_keep_their_bits():
    payload = FloatAttr.from_bits(0x7FC12345, F32)
    block = Block()
    value = ScalarBuilder(block).constant(payload)
    assert defining(value).evaluate().view(np.uint32) == 0x7FC12345
    assert defining(ScalarBuilder(block).constant(-0.0, BF16)).evaluate().view(np.uint16) == 0x8000

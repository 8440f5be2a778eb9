"""Mathematical functions: correct rounding, special values, folds."""

import math
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nablair.ir import registry
from nablair.ir.attributes import constant_attr
from nablair.ir.builder import Builder
from nablair.ir.numeric import constant
from nablair.ir.operations import Block
from nablair.ir.types import BF16, F16, F32, F64, I8

NUMPY = {F16: np.float16, BF16: ml_dtypes.bfloat16, F32: np.float32, F64: np.float64}
INF, NAN = math.inf, math.nan


def build(name, type) -> Any:
    cls = registry.lookup(name)
    assert cls is not None
    block = Block([type] * len(cls.definition.operands))
    return Builder(block).create(cls, *block.arguments)


def evaluate(op, *values):
    with np.errstate(all="ignore"):
        return op.evaluate(*values)


FUNCTIONS = {
    "exp": math.exp,
    "exp2": lambda x: 2.0**x,
    "expm1": math.expm1,
    "tanh": math.tanh,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "roundeven": round,
    "absf": abs,
    "log": math.log,
    "log2": math.log2,
    "log1p": math.log1p,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
}


@pytest.mark.parametrize("type", [F16, BF16, F32], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree_with_libm_rounded_once(name, type):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal(200) * 3).astype(NUMPY[type])
    if name in ("log", "log2", "log1p", "sqrt", "rsqrt"):
        x = np.abs(x) + NUMPY[type](0.001)
    op = build(f"math.{name}", type)
    got = evaluate(op, x)
    assert got.dtype == NUMPY[type]
    want = np.array([float(FUNCTIONS[name](float(v))) for v in x])
    # float64's own error may decide a halfway case, but not by more than the last place of the narrow type
    close = np.abs(got.astype(np.float64) - want) <= np.abs(np.spacing(want.astype(np.float32))) * (
        1 if type is F32 else 2.0 ** (24 - (8 if type is BF16 else 11))
    )
    assert close.all()
    for i in range(0, 200, 37):
        one = evaluate(op, x[i])
        assert one.tobytes() == got[i].tobytes()


@pytest.mark.parametrize(
    "name,x,want",
    [
        ("exp", -INF, 0.0),
        ("exp", INF, INF),
        ("log", 0.0, -INF),
        ("log", -1.0, NAN),
        ("sqrt", -0.0, -0.0),
        ("sqrt", -1.0, NAN),
        ("rsqrt", 0.0, INF),
        ("tanh", -INF, -1.0),
        ("erf", INF, 1.0),
        ("erf", NAN, NAN),
        ("floor", -0.0, -0.0),
        ("ceil", -0.5, -0.0),
        ("roundeven", 2.5, 2.0),
        ("roundeven", -0.5, -0.0),
        ("trunc", -1.7, -1.0),
        ("absf", -INF, INF),
        ("sin", INF, NAN),
        ("log1p", -1.0, -INF),
        ("expm1", -0.0, -0.0),
    ],
)
@pytest.mark.parametrize("type", NUMPY, ids=str)
def test_special_values(name, x, want, type):
    op = build(f"math.{name}", type)
    got = evaluate(op, NUMPY[type](x))
    assert math.isnan(got) if math.isnan(want) else (got == want and np.signbit(got) == np.signbit(want))
    found = op.fold([constant_attr(x, type)])
    if found is not None:
        assert constant(found) == want and np.signbit(constant(found)) == np.signbit(want)


@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "log", "sin"])
def test_inexact_functions_are_not_folded(name):
    assert build(f"math.{name}", F32).fold([constant_attr(0.5, F32)]) is None


def test_power():
    op = build("math.powf", F32)
    assert float(evaluate(op, np.float32(3), np.float32(0.5))) == float(np.float32(3**0.5))
    assert evaluate(op, np.float32(NAN), np.float32(0)) == 1.0
    assert op.fold([None, constant_attr(1.0, F32)]) is op.lhs
    assert float(evaluate(build("math.copysign", F16), np.float16(2), np.float16(-0.0))) == -2.0


def test_absolute_integers():
    op = build("math.absi", I8)
    assert list(evaluate(op, np.array([-128, -1, 5], np.int8))) == [-128, 1, 5]


def nearest(exact, type):
    """An exact number rounded to nearest even in a type, through Python's own correct rounding."""
    bits = {F16: 11, BF16: 8, F32: 24, F64: 53}[type]
    if exact == 0:
        return 0.0
    exponent = math.frexp(float(exact))[1]
    lowest = {F16: -24, BF16: -133, F32: -149, F64: -1074}[type]
    unit = Fraction(2) ** max(exponent - bits, lowest)
    return float(round(exact / unit) * unit)


@pytest.mark.parametrize("type", NUMPY, ids=str)
def test_fma_rounds_once(type):
    rng = np.random.default_rng(5)
    scale = 2.0 ** rng.integers(-6, 6, (3, 3000))
    a, b, c = (rng.standard_normal((3, 3000)) * scale).astype(NUMPY[type])
    c[::3] = (-(a[::3].astype(np.float64) * b[::3].astype(np.float64))).astype(NUMPY[type])  # cancellation
    c[1::3] = c[1::3] * NUMPY[type](2.0**-9)
    op = build("math.fma", type)
    got = evaluate(op, a, b, c)
    want = [nearest(Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z)), type) for x, y, z in zip(a, b, c)]
    assert got.astype(np.float64).tolist() == want
    assert isinstance(evaluate(op, a[0], b[0], c[0]), NUMPY[type])


def test_fma_at_the_edges():
    op = build("math.fma", F64)

    def fma(a, b, c):
        return float(evaluate(op, np.float64(a), np.float64(b), np.float64(c)))

    assert fma(1e308, 10.0, -INF) == -INF
    assert fma(1e308, 1e308, -1e308) == INF
    assert fma(1e200, 1e200, -INF) == -INF
    assert math.isnan(fma(0.0, INF, 1.0))
    assert fma(2.0**-600, 2.0**-600, 1.0) == 1.0
    assert fma(2.0**-537, 2.0**-537, 0.0) == 2.0**-1074
    assert math.copysign(1, fma(-0.0, 1.0, -0.0)) == -1.0
    assert math.copysign(1, fma(1.0, 1.0, -1.0)) == 1.0
    assert fma(1.0 + 2.0**-52, 1.0 + 2.0**-52, -(1.0 + 2.0**-51)) == 2.0**-104

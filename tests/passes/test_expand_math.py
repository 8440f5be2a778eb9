"""The pass expand-math: what it makes of the IR, and that the interpreter then computes the same within the bounds."""

import ml_dtypes
import numpy as np
import pytest

from nablair.ir.diagnostics import PassError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.passes.expand_math import FUNCTIONS
from nablair.passes.manager import PassManager
from nablair.passes.math_expansions import EXPANSIONS

PRIMITIVES = {"math.fma", "math.sqrt", "math.roundeven", "math.absf", "math.copysign"}
DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
FORMATS = {"f16": (10, -13), "bf16": (7, -125), "f32": (23, -125), "f64": (52, -1021)}
"""Stored bits of the significand, and the exponent of `frexp` of the least normal number."""


def module_of(function, type):
    arity = EXPANSIONS[FUNCTIONS[function]].arity
    names = ["%x", "%y"][:arity]
    return parse_module(
        f"""
        func.func @f({", ".join(f"{n}: {type}" for n in names)}) -> {type} {{
          %0 = {FUNCTIONS[function]} {", ".join(names)} : {type}
          func.return %0 : {type}
        }}
        """
    )


def expand(module, options=""):
    PassManager.parse(f"expand-math{options}").run(module)
    return module


def names_in(module):
    return [op.name for op in module.walk()]


def call(module, *arguments):
    return Interpreter(module).call("f", arguments)[0]


def arguments_of(function, count):
    """Values around 1 and of several sizes, inside the domain of the function."""
    random = np.random.default_rng(len(function))
    x = np.concatenate([random.normal(1, 1, count - 8), [0.0, -0.0, 1.0, -1.0, 0.25, 8.0, 50.0, -50.0]])
    inside = {"acosh": lambda x: 1 + abs(x), "asin": lambda x: x / 60, "acos": lambda x: x / 60}
    inside |= {"atanh": lambda x: x / 60, "log1p": lambda x: abs(x) - 0.9}
    positive = ("log", "log2", "log10", "rsqrt", "powf")
    x = inside.get(function, abs if function in positive else np.positive)(x)
    return [x, np.roll(x, 3)][: EXPANSIONS[FUNCTIONS[function]].arity]


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_values_stay_within_the_bound(function, element):
    arguments = [a.astype(DTYPES[element]) for a in arguments_of(function, 40)]
    type = f"vector<40x{element}>"
    expected = call(module_of(function, type), *arguments).astype(np.float64)
    module = expand(module_of(function, type))
    assert not any(n in EXPANSIONS or (n.startswith("math.") and n not in PRIMITIVES) for n in names_in(module))
    found = call(module, *arguments)
    assert found.dtype == DTYPES[element]
    found = found.astype(np.float64)
    row = EXPANSIONS[FUNCTIONS[function]]
    # The half-precision formats round an f32 result; references are themselves half a unit away.
    bound = {"f32": row.ulp_f32, "f64": row.ulp_f64}.get(element, 0.5) + 0.5
    mantissa, least = FORMATS[element]
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    unit = np.ldexp(1.0, np.maximum(np.frexp(expected[finite])[1], least) - mantissa - 1)
    assert (np.abs(found[finite] - expected[finite]) <= bound * unit).all()


@pytest.mark.parametrize("function", ["exp", "log", "tanh", "powf", "remf"])
def test_a_scalar_computes_what_a_vector_lane_does(function):
    arguments = [a.astype(np.float32) for a in arguments_of(function, 40)]
    lanes = call(expand(module_of(function, "vector<40xf32>")), *arguments)
    scalar = expand(module_of(function, "f32"))
    each = np.array([call(scalar, *values) for values in zip(*arguments)])
    np.testing.assert_array_equal(each.view(np.int32), lanes.view(np.int32))


TWO_FUNCTIONS = """
func.func @f(%x: f32) -> (f32, f32) {
  %0 = math.exp %x : f32
  %1 = math.tanh %x : f32
  func.return %0, %1 : f32, f32
}
"""


@pytest.mark.parametrize(
    ("options", "left"),
    [("", []), ("{functions=exp}", ["math.tanh"]), ("{keep=exp}", ["math.exp"]), ("{functions=exp keep=exp}", None)],
)
def test_functions_and_keep_choose(options, left):
    module = expand(parse_module(TWO_FUNCTIONS), options)
    rest = [n for n in names_in(module) if n.startswith("math.") and n not in PRIMITIVES]
    assert rest == (["math.exp", "math.tanh"] if left is None else left)


def test_an_unknown_function_is_an_error_with_a_suggestion():
    with pytest.raises(PassError, match="expand-math knows no function 'tnah'; did you mean 'tan"):
        expand(parse_module(TWO_FUNCTIONS), "{keep=tnah}")


def test_equal_constants_of_a_block_are_made_once():
    module = expand(parse_module(TWO_FUNCTIONS))
    constants = [str(op) for op in module.walk() if op.name == "arith.constant"]
    values = [text.partition("=")[2] for text in constants]
    assert len(values) == len(set(values)) > 10


NESTED = """
func.func @f(%n: index, %x: f32) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> f32 {
    %1 = math.exp %a : f32
    %2 = math.log %1 : f32
    scf.yield %2 : f32
  }
  %3 = math.exp %0 : f32
  func.return %3 : f32
}
"""


def test_nested_blocks_get_their_own_constants():
    """A constant made inside a loop is not used after it; the verifier would reject that."""
    module = expand(parse_module(NESTED))
    assert call(module, 3, 1.0) == pytest.approx(np.e, rel=1e-6)


def test_ops_take_the_location_of_the_function_that_they_replace():
    module = expand(parse_module(TWO_FUNCTIONS), "{functions=tanh}")
    tanh_line = [op.location for op in parse_module(TWO_FUNCTIONS).walk() if op.name == "math.tanh"]
    locations = {op.location for op in module.walk() if op.name in ("math.fma", "arith.divf", "arith.constant")}
    assert [str(location) for location in locations] == [str(location) for location in tanh_line]

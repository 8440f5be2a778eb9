"""autodiff: every op's derivatives against central differences in float64, its form, masks, and its errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_table import ROWS, Row

from nablair.ir.diagnostics import PassError
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func
from nablair.ir.interfaces import Expands
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import F64
from nablair.ir.verifier import verify
from nablair.passes.autodiff.transform import RULES
from nablair.passes.manager import PassManager

SMOOTH = [r for r in ROWS if F64 in r.elements and r.differentiable]
STEP = 1e-6


def differentiated(module: Module, function: str, wrt: tuple[int, ...], options: str = "") -> None:
    numbers = ",".join(map(str, wrt))
    PassManager.parse(f"autodiff{{function={function} wrt={numbers}{options}}}").run(module)
    verify(module)


def float_results(module: Module, name: str) -> list[int]:
    function = module.symbol(name)
    assert isinstance(function, Func)
    return [i for i, t in enumerate(function.type.results) if str(t).rstrip(">").endswith("f64")]


def cotangents(module: Module, name: str) -> list[Any]:
    """A random cotangent for each float result."""
    function = module.symbol(name)
    assert isinstance(function, Func)
    random = np.random.default_rng(3)
    results: Any = function.type.results
    return [random.uniform(0.5, 1.5, results[i].shape) for i in float_results(module, name)]


def numeric(machine: Interpreter, name: str, arrays: list[Any], which: int, seeds: list[Any], places: list[int]) -> Any:
    """The gradient of sum(result * seed) with respect to an argument, by central differences."""

    def value(shift: float, index: tuple[int, ...]) -> float:
        moved = [a.copy() for a in arrays]
        moved[which][index] += shift
        results = machine.call(name, moved)
        return float(sum((np.asarray(results[p]) * s).sum() for p, s in zip(places, seeds, strict=True)))

    gradient = np.zeros(arrays[which].shape)
    for index in np.ndindex(*gradient.shape):
        gradient[index] = (value(STEP, index) - value(-STEP, index)) / (2 * STEP)
    return gradient


def check(module: Module, name: str, arrays: list[Any], wrt: tuple[int, ...], tolerance: float) -> None:
    places, seeds = float_results(module, name), cotangents(module, name)
    differentiated(module, name, wrt)
    machine = Interpreter(module)
    results = machine.call(f"{name}_vjp", [*arrays, *seeds])
    for which, gradient in zip(wrt, results[len(results) - len(wrt) :], strict=True):
        expected = numeric(machine, name, arrays, which, seeds, places)
        np.testing.assert_allclose(gradient, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.id)
def test_gradients_agree_with_central_differences(row: Row) -> None:
    check(row.module(F64), "main", row.arrays(F64), row.differentiable, 2e-7)


@pytest.mark.parametrize("row", SMOOTH, ids=lambda r: r.id)
def test_second_gradients_agree_with_central_differences(row: Row) -> None:
    module = row.module(F64)
    seeds = cotangents(module, "main")
    differentiated(module, "main", row.differentiable)
    check(module, "main_vjp", [*row.arrays(F64), *seeds], row.differentiable, 5e-6)


@pytest.mark.parametrize("row", [r for r in SMOOTH if r.name.startswith(("linalg", "loss"))], ids=lambda r: r.id)
def test_split_functions_agree_with_the_whole(row: Row) -> None:
    module = row.module(F64)
    seeds = cotangents(module, "main")
    differentiated(module, "main", row.differentiable)
    differentiated(module, "main", row.differentiable, " split")
    machine = Interpreter(module)
    arrays = row.arrays(F64)
    whole = machine.call("main_vjp", [*arrays, *seeds])
    count = len(whole) - len(row.differentiable)
    forward = machine.call("main_fwd", arrays)
    backward = machine.call("main_bwd", [*forward[count:], *seeds])
    for one, other in zip([*forward[:count], *backward], whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_every_op_with_float_operands_has_a_rule_an_expansion_or_no_derivative() -> None:
    seen = {type(op) for row in ROWS for element in row.elements[:1] for op in row.module(element).walk()}
    bare = [
        c.name
        for c in seen
        if c.name.partition(".")[0] in ("elementwise", "array", "linalg", "loss")
        and not issubclass(c, RULES)
        and not issubclass(c, Expands)
    ]
    assert bare == []


def gradient_at(text: str, *arrays: Any) -> list[Any]:
    """The gradients of a scalar @main with respect to all arguments."""
    module = parse_module(text)
    differentiated(module, "main", tuple(range(len(arrays))))
    results = Interpreter(module).call("main_vjp", [*arrays, np.float64(1.0).reshape(())])
    return results[1:]


def test_a_mask_keeps_what_an_untaken_branch_computes_out_of_the_gradient() -> None:
    """where(x == 0, 0, x * sqrt(x)): the derivative of sqrt is infinite at 0, and 0 * inf would be NaN."""
    text = """func.func @main(%x: tensor<2xf64>) -> tensor<f64> {
      %zero = array.constant dense<0.0> : tensor<f64>
      %p = elementwise.equal %x, %zero : tensor<2xf64>, tensor<f64> -> tensor<2xi1>
      %r = elementwise.sqrt %x : tensor<2xf64>
      %y = elementwise.mul %x, %r : tensor<2xf64>
      %w = elementwise.where %p, %zero, %y : tensor<2xi1>, tensor<f64>, tensor<2xf64> -> tensor<2xf64>
      %s = linalg.reduce_sum %w {axes = [0]} : tensor<2xf64> -> tensor<f64>
      return %s : tensor<f64>
    }"""
    (gradient,) = gradient_at(text, np.array([0.0, 4.0]))
    np.testing.assert_allclose(gradient, [0.0, 3.0])


def unary(op: str) -> str:
    return f"""func.func @main(%x: tensor<3xf64>) -> tensor<f64> {{
      %y = {op} : tensor<3xf64>
      %s = linalg.reduce_sum %y {{axes = [0]}} : tensor<3xf64> -> tensor<f64>
      return %s : tensor<f64>
    }}"""


@pytest.mark.parametrize("op", ["elementwise.relu %x", "elementwise.abs %x"])
def test_the_derivative_at_a_kink_is_zero(op: str) -> None:
    (gradient,) = gradient_at(unary(op), np.array([-0.0, 0.0, 2.0]))
    np.testing.assert_array_equal(gradient, [0.0, 0.0, 1.0])


@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_a_tie_shares_evenly(op: str) -> None:
    text = f"""func.func @main(%a: tensor<2xf64>, %b: tensor<2xf64>) -> tensor<f64> {{
      %y = elementwise.{op} %a, %b : tensor<2xf64>
      %s = linalg.reduce_sum %y {{axes = [0]}} : tensor<2xf64> -> tensor<f64>
      return %s : tensor<f64>
    }}"""
    a, b = gradient_at(text, np.array([1.0, 1.0]), np.array([1.0, 1.0]))
    np.testing.assert_array_equal(a, [0.5, 0.5])
    np.testing.assert_array_equal(b, [0.5, 0.5])


def test_x_to_the_zero_has_no_slope_at_zero() -> None:
    text = """func.func @main(%x: tensor<2xf64>) -> tensor<f64> {
      %zero = array.constant dense<0.0> : tensor<f64>
      %y = elementwise.pow %x, %zero : tensor<2xf64>, tensor<f64> -> tensor<2xf64>
      %s = linalg.reduce_sum %y {axes = [0]} : tensor<2xf64> -> tensor<f64>
      return %s : tensor<f64>
    }"""
    (gradient,) = gradient_at(text, np.array([0.0, 2.0]))
    np.testing.assert_array_equal(gradient, [0.0, 0.0])


def test_an_argument_that_is_not_used_has_a_gradient_of_zeros() -> None:
    text = """func.func @main(%x: tensor<f64>, %u: tensor<2x3xf64>) -> tensor<f64> {
      %y = elementwise.exp %x : tensor<f64>
      return %y : tensor<f64>
    }"""
    _, unused = gradient_at(text, np.array(1.0), np.ones((2, 3)))
    np.testing.assert_array_equal(unused, np.zeros((2, 3)))


CALL = """func.func private @f(tensor<2xf32>) -> tensor<2xf32>
func.func @main(%x: tensor<2xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {
  %y = func.call @f(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}"""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("function=other", "the module has no function '@other' with a body"),
        ("function=f", "the module has no function '@f' with a body"),
        ("wrt=2", "wrt=2 is out of range: '@main' has 2 arguments"),
        ("wrt=1", "argument 1 of '@main' is tensor<2xi64>; only float tensors can be differentiated"),
        ("wrt=0", "'func.call' has no derivative rule and no expansion"),
    ],
)
def test_errors(options: str, message: str) -> None:
    with pytest.raises(PassError, match="autodiff: ") as caught:
        PassManager.parse(f"autodiff{{{options}}}").run(parse_module(CALL))
    assert message in caught.value.message


def test_locations_lead_to_the_op_that_was_differentiated() -> None:
    text = """func.func @main(%x: tensor<f64>) -> tensor<f64> {
      %y = elementwise.exp %x : tensor<f64> loc("user.py":7:3)
      return %y : tensor<f64>
    }"""
    module = parse_module(text)
    differentiated(module, "main", (0,))
    function = module.symbol("main_vjp")
    assert isinstance(function, Func)
    (product,) = [op for op in function.walk() if op.name == "elementwise.mul"]
    place = product.location.file_position()
    assert place is not None
    assert (place.file, place.line) == ("user.py", 7)


REVERSED = "{starts = [3], stops = [-1], steps = [-1]}"
MARGIN = "{low = [1], high = [0], value = 1.0 : f64}"
VIEWS = {
    "reshape": ("array.reshape %r : tensor<4xf64> -> tensor<2x2xf64>", "2x2", [[0, 1], [0, 1]]),
    "slice": (
        "array.slice %r {starts = [3], stops = [-1], steps = [-1]} : tensor<4xf64> -> tensor<4xf64>",
        "4",
        [1, 0] * 2,
    ),
    "pad": (
        "array.pad %r {low = [1], high = [0], value = 1.0 : f64} : tensor<4xf64> -> tensor<5xf64>",
        "5",
        [1, 0, 1, 0, 1],
    ),
    "concat": ("array.concat %r, %r {axis = 0} : tensor<4xf64>, tensor<4xf64> -> tensor<8xf64>", "8", [0, 1] * 4),
    "sum": ("elementwise.add %r, %r : tensor<4xf64>", "4", [0, 1, 0, 1]),
}


@pytest.mark.parametrize("view", VIEWS)
def test_masks_travel_through_views(view: str) -> None:
    """where(m, view(sqrt(x)), 0): the square root of 0, whose derivative is infinite, is never taken."""
    op, shape, mask = VIEWS[view]
    type = f"tensor<{shape}xf64>"
    axes = list(range(np.ndim(mask)))
    text = f"""func.func @main(%x: tensor<4xf64>) -> tensor<f64> {{
      %zero = array.constant dense<0.0> : tensor<f64>
      %m = array.constant dense<{str(np.array(mask, bool).tolist()).lower()}> : tensor<{shape}xi1>
      %r = elementwise.sqrt %x : tensor<4xf64>
      %v = {op}
      %w = elementwise.where %m, %v, %zero : tensor<{shape}xi1>, {type}, tensor<f64> -> {type}
      %s = linalg.reduce_sum %w {{axes = {axes}}} : {type} -> tensor<f64>
      return %s : tensor<f64>
    }}"""
    (gradient,) = gradient_at(text, np.array([0.0, 4.0, 0.0, 1.0]))
    times = 2.0 if view in ("concat", "sum") else 1.0
    np.testing.assert_allclose(gradient, times * np.array([0.0, 0.25, 0.0, 0.5]))

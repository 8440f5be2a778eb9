"""Running error analysis: how far a computation in finite precision may lie from the exact result.

A tensor-level function is evaluated in float64 together with a bound for each element: whatever order a target sums in,
whether it contracts products and sums, and as long as its functions stay within `FUNCTION_ULP`, its result differs from
the exact one by no more.  One rule an op (Wilkinson's running error analysis; Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 3.3).  A bound is infinite where the analysis can say nothing: a division by
what may be 0, a comparison of inexact values.

    values, errors = Bounds(module).call("main", arrays)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..dialects.builtin import Module
from ..dialects.elementwise.cast import is_exact
from ..dialects.func import Func, Return
from ..dialects.linalg.indexing import places
from ..operations import Operation
from ..types import FloatType, TensorType, element_type
from ..values import Value

FUNCTION_ULP = 4.0
"""Errors of functions that a target may make, in units of the last place: f32 promises 2, f64 promises 4."""

SMALLEST = {"f16": 2.0**-24, "bf16": 2.0**-133, "f32": 2.0**-149, "f64": 2.0**-1074}

Pair = tuple[Any, Any]
Rule = Callable[[Any, Any, list[Pair], float], Pair]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register how ops carry values and errors: `rule(np, op, operands, unit)` with pairs (value, error)."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


class Bounds:
    """Evaluation of a module's functions with bounds.  Ops with an expansion must have been decomposed."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def call(self, name: str, arrays: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Results in float64 (integers and bools as they are) and the bounds of their errors."""
        import numpy as np

        function = self.module.symbol(name)
        assert isinstance(function, Func)
        env: dict[Value, Pair] = {}
        for argument, array in zip(function.arguments, arrays, strict=True):
            env[argument] = (_wide(np, np.asarray(array)), np.zeros(np.shape(array)))
        with np.errstate(all="ignore"):
            for op in function.entry:
                if isinstance(op, Return):
                    pairs = [env[v] for v in op.operands]
                    return [v for v, _ in pairs], [e for _, e in pairs]
                self.op(np, op, env)
        raise AssertionError("a function without a return")

    def op(self, np: Any, op: Operation, env: dict[Value, Pair]) -> None:
        """One op."""
        operands = [env[v] for v in op.operands]
        found = RULES.get(op.name)
        if found is None:
            raise NotImplementedError(f"no error rule for {op.name}")
        (result,) = op.results
        element = element_type(result.type)
        value, error = found(np, op, operands, _unit(element))
        if isinstance(element, FloatType) and isinstance(result.type, TensorType):
            # Below the smallest normal number a rounding errs by a fixed amount.
            error = np.where(error > 0, error + SMALLEST[element.name], error)
            largest = _largest(np, element)
            error = np.where(np.isfinite(value) & (np.abs(value) + error < largest), error, np.inf)
            error = np.where(np.isnan(error), np.inf, error)
        env[result] = (value, error)


def _wide(np: Any, array: Any) -> Any:
    return array.astype(np.float64) if array.dtype.kind not in "iub" else array


def _unit(element: Any) -> float:
    """The unit roundoff of a type."""
    return 2.0 ** -(element.mantissa_bits + 1) if isinstance(element, FloatType) else 0.0


def _largest(np: Any, element: FloatType) -> float:
    return float((2.0 - 2.0**-element.mantissa_bits) * 2.0 ** (2 ** (element.exponent_bits - 1) - 1))


def _rounded(np: Any, value: Any, error: Any, unit: float, ulps: float = 1.0) -> Pair:
    """A result that is rounded to its type once more."""
    return value, error + ulps * unit * (np.abs(value) + error) * (1 + 2.0**-40) + (2.0**-149 if unit else 0.0)


@rule("elementwise.add", "elementwise.sub")
def _add(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    return _rounded(np, a + b if op.name.endswith("add") else a - b, ea + eb, unit)


@rule("elementwise.mul")
def _mul(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    return _rounded(np, a * b, np.abs(a) * eb + np.abs(b) * ea + ea * eb, unit)


@rule("elementwise.div")
def _div(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    value = a / b
    room = np.abs(b) - eb
    return _rounded(np, value, np.where(room > 0, (ea + np.abs(value) * eb) / room, np.inf), unit)


@rule("elementwise.neg", "elementwise.abs", "elementwise.relu")
def _exact_unary(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    functions: dict[str, Any] = {"neg": np.negative, "abs": np.abs, "relu": partial(np.maximum, 0.0)}
    return functions[op.name.rpartition(".")[2]](a), ea


@rule("elementwise.maximum", "elementwise.minimum")
def _extremum(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    return (np.maximum if op.name.endswith("maximum") else np.minimum)(a, b), np.maximum(ea, eb)


@rule("elementwise.clip")
def _clip(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (low, el), (high, eh) = operands
    return np.minimum(np.maximum(a, low), high), np.maximum(np.maximum(ea, el), eh)


@rule("elementwise.where")
def _where(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (p, _), (a, ea), (b, eb) = operands
    return np.where(p, a, b), np.where(p, ea, eb) + np.where(operands[0][1] > 0, np.inf, 0.0)


def _function(np: Any, value: Any, error: Any, unit: float) -> Pair:
    return _rounded(np, value, error, unit, 2 * FUNCTION_ULP)


@rule("elementwise.exp", "elementwise.expm1")
def _exp(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    value = np.exp(a) if op.name.endswith("exp") else np.expm1(a)
    return _function(np, value, np.exp(a) * np.expm1(ea), unit)


@rule("elementwise.log", "elementwise.log1p")
def _log(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    base = a if op.name.endswith("log") else a + 1.0
    room = base - ea
    return _function(np, np.log(base), np.where(room > 0, ea / room, np.inf), unit)


@rule("elementwise.sqrt", "elementwise.rsqrt")
def _sqrt(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    room = a - ea
    root = np.sqrt(a)
    if op.name.endswith("rsqrt"):
        return _function(np, 1.0 / root, np.where(room > 0, 0.5 * ea / (room * np.sqrt(room)), np.inf), unit)
    spread = np.where((room >= 0) & (root > 0), ea / (root + np.sqrt(np.maximum(room, 0.0))), np.sqrt(ea))
    return _rounded(np, root, np.where((room >= 0) | (ea == 0), spread, np.inf), unit)


# Functions whose slope is bounded everywhere.
SLOPES = {
    "tanh": 1.0,
    "sin": 1.0,
    "cos": 1.0,
    "sigmoid": 0.25,
    "silu": 1.1,
    "erf": 1.1284,
    "normal_cdf": 0.4,
    "normal_pdf": 0.25,
}


@rule(*(f"elementwise.{name}" for name in SLOPES))
def _bounded_slope(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    name = op.name.rpartition(".")[2]
    value = _SMOOTH[name](np, a) if name in _SMOOTH else _wide(np, op.formula(a))
    return _function(np, value, SLOPES[name] * ea, unit)


_SMOOTH: dict[str, Callable[[Any, Any], Any]] = {
    "tanh": lambda np, a: np.tanh(a),
    "sin": lambda np, a: np.sin(a),
    "cos": lambda np, a: np.cos(a),
    "sigmoid": lambda np, a: 1.0 / (1.0 + np.exp(-a)),
}


@rule("elementwise.gelu")
def _gelu(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """Both forms have slopes below 1.13.  The reference of the tanh form rounds the argument of an exponential, which
    is below 2 |x|**3 + 4 where that matters."""
    ((a, ea),) = operands
    value, error = _function(np, _wide(np, op.formula(a)), 1.13 * ea, unit)
    cubic = 2.0 * np.minimum(np.abs(a), 32.0) ** 3 + 4.0 if op.approximate == "tanh" else 0.0
    return value, error + 4.0 * 2.0**-53 * cubic * np.abs(value)


@rule("elementwise.floor", "elementwise.ceil", "elementwise.trunc", "elementwise.round")
def _rounding(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """Exact where no admissible error crosses to another integer."""
    ((a, ea),) = operands
    value = _wide(np, op.evaluate(a))
    same = (op.evaluate(a - ea) == value) & (op.evaluate(a + ea) == value)
    return value, np.where(same | (ea == 0), 0.0, np.inf)


@rule("elementwise.floor_divide", "elementwise.remainder")
def _integer_division(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    value = op.evaluate(a, b)
    exact = value.dtype.kind in "iu"
    return _wide(np, value), np.zeros(value.shape) if exact else np.where(ea + eb > 0, np.inf, unit * np.abs(value))


@rule("elementwise.cast")
def _cast(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    target = element_type(op.result.type)
    if not isinstance(target, FloatType):
        return op.evaluate(a), np.where(ea > 0, np.inf, 0.0)
    if is_exact(op.element, target):
        return a.astype(np.float64), ea
    return a.astype(np.float64), ea + unit * (np.abs(a) + ea) + SMALLEST[target.name]


@rule(
    "elementwise.equal", "elementwise.not_equal", "elementwise.less", "elementwise.less_equal", "elementwise.greater",
    "elementwise.greater_equal", "elementwise.greater_or_nan", "elementwise.less_or_nan", "elementwise.equal_or_nan",
)  # fmt: skip
def _compare(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """True only where no admissible error turns the comparison."""
    (a, ea), (b, eb) = operands
    return op.evaluate(a, b), np.where((np.abs(a - b) > ea + eb) | ((ea == 0) & (eb == 0)), 0.0, np.inf)


@rule("elementwise.logical_and", "elementwise.logical_or", "elementwise.logical_xor", "elementwise.logical_not")
def _logical(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    error = operands[0][1]
    for _, other in operands[1:]:
        error = error + other
    return op.evaluate(*(v for v, _ in operands)), error


@rule("elementwise.sign")
def _sign(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    return np.sign(a), np.where((np.abs(a) > ea) | (ea == 0), 0.0, np.inf)


@rule("array.constant", "array.full", "array.iota", "array.dim", "linalg.one_hot")
def _creation(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    value = _wide(np, np.asarray(op.evaluate(*(v for v, _ in operands))))
    return value, np.zeros(value.shape)


@rule("array.transpose", "array.reshape", "array.broadcast", "array.slice", "array.concat")
def _view(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """Errors move with the values; extents are exact."""
    if op.name == "array.concat":
        return op.evaluate(*(v for v, _ in operands)), op.evaluate(*(e for _, e in operands))
    rest = [v for v, _ in operands[1:]]
    return op.evaluate(operands[0][0], *rest), op.evaluate(operands[0][1], *rest)


@rule("array.pad")
def _pad(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """Laid out in float64: the op's own meaning rounds to its type."""
    ((a, ea),) = operands
    gaps = op.gaps()
    inside = tuple(
        slice(low, low + n + max(n - 1, 0) * gap, gap + 1) for n, low, gap in zip(a.shape, op.low, gaps, strict=True)
    )
    shape = [
        low + n + max(n - 1, 0) * gap + high for n, low, high, gap in zip(a.shape, op.low, op.high, gaps, strict=True)
    ]
    value = np.full(shape, op.value.value, a.dtype)
    error = np.zeros(value.shape)
    value[inside], error[inside] = a, ea
    return value, error


@rule("linalg.reduce_sum", "linalg.reduce_mean")
def _sum(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    """n additions in any order: n unit roundoffs of the sum of magnitudes."""
    ((a, ea),) = operands
    axes, keep = tuple(op.axes), bool(op.keepdims)
    if a.dtype.kind in "iub":
        return op.evaluate(a), np.zeros(np.shape(op.evaluate(a)))
    count = int(np.prod([a.shape[i] for i in axes]))
    step = min(unit, 2.0**-24)
    value = a.sum(axis=axes, keepdims=keep)
    total = ea.sum(axis=axes, keepdims=keep) + (count + 1) * step * (np.abs(a) + ea).sum(axis=axes, keepdims=keep)
    if op.name.endswith("mean"):
        value, total = value / count, total / count
    return _rounded(np, value, total, unit, 2.0)


@rule("linalg.reduce_max", "linalg.reduce_min")
def _reduce_extremum(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    fold = np.max if op.name.endswith("max") else np.min
    axes, keep = tuple(op.axes), bool(op.keepdims)
    return fold(a, axis=axes, keepdims=keep), np.max(ea, axis=axes, keepdims=keep)


@rule("linalg.matmul")
def _matmul(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (b, eb) = operands
    if a.dtype.kind in "iub":
        return op.evaluate(a, b), np.zeros(np.shape(op.evaluate(a, b)))
    magnitude = np.matmul(np.abs(a) + ea, np.abs(b) + eb)
    exact = np.matmul(np.abs(a), eb) + np.matmul(ea, np.abs(b)) + np.matmul(ea, eb)
    step = min(unit, 2.0**-24)
    return _rounded(np, np.matmul(a, b), exact + (a.shape[-1] + 2) * step * magnitude, unit)


@rule("linalg.argmax", "linalg.argmin")
def _place(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    ((a, ea),) = operands
    value = op.evaluate(a)
    return value, np.where(np.any(ea > 0), np.inf, 0.0) + np.zeros(np.shape(value))


@rule("linalg.take", "linalg.take_along_axis")
def _take(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (i, _) = operands
    return op.evaluate(a, i), np.nan_to_num(op.evaluate(ea, i), posinf=np.inf)


@rule("linalg.index_add", "linalg.scatter_add")
def _scatter(np: Any, op: Any, operands: list[Pair], unit: float) -> Pair:
    (a, ea), (i, _), (u, eu) = operands
    magnitude = _scattered(np, op, np.abs(a) + ea, i, np.abs(u) + eu)
    spread = _scattered(np, op, ea, i, eu)
    return _rounded(np, _scattered(np, op, a, i, u), spread + (u.size + 1) * unit * magnitude, unit)


def _scattered(np: Any, op: Any, x: Any, indices: Any, updates: Any) -> Any:
    """The sum in float64, where the op's own meaning rounds to its type."""
    axis: int = op.axis
    chosen, inside = places(indices, x.shape[axis])
    if op.name.endswith("along_axis"):
        out = np.array(x)
        at: list[Any] = list(np.indices(indices.shape))
        at[axis] = chosen
        np.add.at(out, tuple([p[inside] for p in at]), updates[inside])
        return out
    out = np.moveaxis(np.array(x), axis, 0)
    parts = np.moveaxis(updates, range(axis, axis + indices.ndim), range(indices.ndim))
    np.add.at(out, chosen[inside], parts[inside])
    return np.moveaxis(out, 0, axis)

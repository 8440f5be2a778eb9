"""Derivatives of `elementwise`: the partials of each op."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ...ir.dialects import elementwise as e
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.dialects.tensor_op import splat_number
from ...ir.types import FloatType
from .rules import ONE, Masked, Partial, constant, partials

constant(
    e.Equal, e.NotEqual, e.Less, e.LessEqual, e.Greater, e.GreaterEqual, e.GreaterOrNan, e.LessOrNan, e.EqualOrNan,
    e.LogicalAnd, e.LogicalOr, e.LogicalXor, e.LogicalNot, e.Sign, e.Floor, e.Ceil, e.Trunc, e.Round, e.FloorDivide,
    e.StopGradient,
)  # fmt: skip

Rule = Iterator[Partial]


@partials(e.Add)
def _add(b: TensorBuilder, op: Any) -> Rule:
    yield ONE
    yield ONE


@partials(e.Sub)
def _sub(b: TensorBuilder, op: Any) -> Rule:
    yield ONE
    yield b.neg


@partials(e.Mul)
def _mul(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(t, op.rhs)
    yield lambda t: b.mul(t, op.lhs)


@partials(e.Div)
def _div(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.div(t, op.rhs)
    yield lambda t: b.neg(b.mul(b.div(t, op.rhs), op.result))


@partials(e.Remainder)
def _remainder(b: TensorBuilder, op: Any) -> Rule:
    yield ONE
    yield lambda t: b.neg(b.mul(t, b.floor_divide(op.lhs, op.rhs)))


@partials(e.Neg)
def _neg(b: TensorBuilder, op: Any) -> Rule:
    yield b.neg


@partials(e.Abs)
def _abs(b: TensorBuilder, op: Any) -> Rule:
    """0 at 0."""
    yield lambda t: b.mul(t, b.sign(op.x))


@partials(e.Pow)
def _pow(b: TensorBuilder, op: Any) -> Rule:
    """x**0 is the constant 1, so its derivative is 0 everywhere; x**y has none in y where x is not positive."""
    x, y = op.lhs, op.rhs

    def by_base(t: Any) -> Any:
        return b.mul(t, b.mul(y, b.pow(x, b.sub(y, 1.0))))

    exponent = splat_number(y)
    if exponent is None:
        yield Masked(b.not_equal(y, 0.0), by_base)
    else:
        yield by_base if exponent else None
    yield Masked(b.greater(x, 0.0), lambda t: b.mul(t, b.mul(op.result, b.log(x))))


@partials(e.Maximum)
def _maximum(b: TensorBuilder, op: Any) -> Rule:
    yield from _extremum(b, op.lhs, op.rhs, "greater_or_nan", "less_or_nan")


@partials(e.Minimum)
def _minimum(b: TensorBuilder, op: Any) -> Rule:
    yield from _extremum(b, op.lhs, op.rhs, "less_or_nan", "greater_or_nan")


def _extremum(b: TensorBuilder, x: Any, y: Any, left: str, right: str) -> Rule:
    """The operand that was taken has all; where both are equal each has half."""
    tie = b.equal(x, y)

    def share(t: Any) -> Any:
        return b.mul(t, b.where(tie, b.constant(0.5, _element(x)), b.constant(1.0, _element(x))))

    yield Masked(b.logical_or(getattr(b, left)(x, y), tie), share, soft=True)
    yield Masked(b.logical_or(getattr(b, right)(x, y), tie), share, soft=True)


def _element(value: Any) -> Any:
    return value.type.element


@partials(e.Clip)
def _clip(b: TensorBuilder, op: Any) -> Rule:
    """Inside the limits, which count as inside, x has all; outside the limit that holds x."""
    x, low, high = op.operands
    inside = b.logical_and(b.logical_not(b.less(x, low)), b.logical_not(b.greater(x, high)))
    below, above = b.less(x, low), b.greater(x, high)
    yield Masked(inside, soft=True)
    yield Masked(b.logical_and(below, b.logical_not(b.greater(low, high))), soft=True)
    yield Masked(b.logical_or(b.logical_and(above, b.logical_not(below)), b.greater(low, high)), soft=True)


@partials(e.Relu)
def _relu(b: TensorBuilder, op: Any) -> Rule:
    """0 at 0; a NaN keeps its cotangent.  The result, which the next op needs anyway, is positive or NaN where x is."""
    yield Masked(b.greater_or_nan(op.result, 0.0), soft=True)


@partials(e.Where)
def _where(b: TensorBuilder, op: Any) -> Rule:
    yield None
    yield Masked(op.condition)
    yield Masked(b.logical_not(op.condition))


@partials(e.Cast)
def _cast(b: TensorBuilder, op: Any) -> Rule:
    source = op.x.type.element
    yield (lambda t: b.cast(t, source)) if isinstance(source, FloatType) else None


@partials(e.Exp)
def _exp(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(t, op.result)


@partials(e.Expm1)
def _expm1(b: TensorBuilder, op: Any) -> Rule:
    """exp(x), and not the result + 1, which is 0 far below 0."""
    yield lambda t: b.mul(t, b.exp(op.x))


@partials(e.Log)
def _log(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.div(t, op.x)


@partials(e.Log1p)
def _log1p(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.div(t, b.add(op.x, 1.0))


@partials(e.Sqrt)
def _sqrt(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.div(b.mul(t, 0.5), op.result)


@partials(e.Rsqrt)
def _rsqrt(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(b.mul(t, -0.5), b.div(op.result, op.x))


@partials(e.Erf)
def _erf(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(b.mul(t, 2.0 / math.sqrt(math.pi)), b.exp(b.neg(b.mul(op.x, op.x))))


@partials(e.Sin)
def _sin(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(t, b.cos(op.x))


@partials(e.Cos)
def _cos(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.neg(b.mul(t, b.sin(op.x)))


@partials(e.Tanh)
def _tanh(b: TensorBuilder, op: Any) -> Rule:
    """1 - y*y, from the result alone and as exact as it: far out, where y is 1 but for its rounding, it is right to the
    spacing of numbers at 1 and no further.  A form without cancellation takes another exp and a division, which double
    the time of a chain with a tanh."""
    yield lambda t: b.mul(t, b.sub(1.0, b.mul(op.result, op.result)))


@partials(e.Sigmoid)
def _sigmoid(b: TensorBuilder, op: Any) -> Rule:
    """sigmoid(x) sigmoid(-x), where 1 - y would cancel."""
    yield lambda t: b.mul(t, b.mul(op.result, b.sigmoid(b.neg(op.x))))


@partials(e.Softplus)
def _softplus(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(t, b.sigmoid(op.x))


@partials(e.Silu)
def _silu(b: TensorBuilder, op: Any) -> Rule:
    """sigmoid(x) (1 + x sigmoid(-x)), whose product is bounded so that -inf gives 0."""
    factor = b.add(b.mul(b.clip(op.x, -1000.0, 1000.0), b.sigmoid(b.neg(op.x))), 1.0)
    yield lambda t: b.mul(t, b.mul(b.sigmoid(op.x), factor))


@partials(e.NormalCdf)
def _normal_cdf(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.mul(t, b.normal_pdf(op.x))


@partials(e.NormalPdf)
def _normal_pdf(b: TensorBuilder, op: Any) -> Rule:
    yield lambda t: b.neg(b.mul(t, b.mul(_bounded(b, op.x), op.result)))


def _bounded(b: TensorBuilder, x: Any) -> Any:
    """x where the density is not 0; beyond, a number whose product with it is 0 and not NaN."""
    return b.clip(x, -40.0, 40.0)


@partials(e.Gelu)
def _gelu(b: TensorBuilder, op: Any) -> Rule:
    """d/dx x p(x) = p(x) + x p'(x), p the normal distribution function or its tanh form (Hendrycks and Gimpel,
    "Gaussian Error Linear Units", 2016), which is sigmoid(2 u).  The products that vanish are formed so that a large
    |x| gives 0 and not 0 * inf."""
    x = op.x
    if op.approximate == "tanh":
        c, d = math.sqrt(2.0 / math.pi), 0.044715
        bounded = b.clip(x, -24.0, 24.0)
        squared = b.mul(bounded, bounded)
        twice = b.mul(b.mul(bounded, 2.0 * c), b.add(b.mul(squared, d), 1.0))
        below, above = b.sigmoid(twice), b.sigmoid(b.neg(twice))
        slope = b.mul(b.add(b.mul(squared, 3.0 * d), 1.0), 2.0 * c)
        yield lambda t: b.mul(t, b.mul(below, b.add(b.mul(b.mul(bounded, above), slope), 1.0)))
        return
    yield lambda t: b.mul(t, b.add(b.normal_cdf(x), b.mul(_bounded(b, x), b.normal_pdf(x))))

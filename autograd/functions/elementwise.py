"""Elementwise functions, by the names of the Python array API standard, and activations.

Operands broadcast as in NumPy and are promoted by dtypes.py.  Functions of real numbers take integers as float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.diagnostics import DTypeError, shown
from ...ir.location import called_function, caller_location
from ..dtypes import as_dtype, promote
from ..graph import Lazy
from ..numbers import TracedNumber, of_number
from ..tensor import Tensor, copied, make
from ..trace import emit
from .checks import flag
from .promotion import as_tensor, bool_operands, cast, float_operand, operands, stored


def add(x1: Any, x2: Any, /) -> Tensor:
    """x1 + x2."""
    return emit("add", *operands(x1, x2))


def subtract(x1: Any, x2: Any, /) -> Tensor:
    """x1 - x2."""
    return emit("sub", *operands(x1, x2))


def multiply(x1: Any, x2: Any, /) -> Tensor:
    """x1 * x2."""
    return emit("mul", *operands(x1, x2))


def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2; integers are divided as float32."""
    return emit("div", *operands(x1, x2, floats=True))


def floor_divide(x1: Any, x2: Any, /) -> Tensor:
    """The quotient rounded toward minus infinity, as NumPy does; integers divided by 0 give 0."""
    return emit("floor_divide", *operands(x1, x2))


def remainder(x1: Any, x2: Any, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2 without the errors of its steps, with the sign of x2; integers divided by 0 give 0."""
    return emit("remainder", *operands(x1, x2))


def pow(x1: Any, x2: Any, /) -> Tensor:
    """x1 ** x2; integers stay integers, and a negative power of one is cut off to 0, but for those of 1 and -1."""
    if of_number(x2) is not None and isinstance(x1, Tensor) and x1.dtype.is_float:
        is_two = x2.decide(lambda n: n == 2) if type(x2) is TracedNumber else x2 == 2
        if is_two:
            return emit("mul", x1, x1)
    return emit("pow", *operands(x1, x2))


def maximum(x1: Any, x2: Any, /) -> Tensor:
    """The larger; NaN where either is."""
    return emit("maximum", *operands(x1, x2))


def minimum(x1: Any, x2: Any, /) -> Tensor:
    """The smaller; NaN where either is."""
    return emit("minimum", *operands(x1, x2))


def negative(x: Any, /) -> Tensor:
    """-x."""
    return emit("neg", as_tensor(x))


def positive(x: Any, /) -> Tensor:
    """+x: a copy."""
    return copied(as_tensor(x))


def abs(x: Any, /) -> Tensor:
    """|x|."""
    return emit("abs", as_tensor(x))


def sign(x: Any, /) -> Tensor:
    """-1, 0 or 1; NaN stays."""
    return emit("sign", as_tensor(x))


def square(x: Any, /) -> Tensor:
    """x * x."""
    x = as_tensor(x)
    return emit("mul", x, x)


def reciprocal(x: Any, /) -> Tensor:
    """1 / x."""
    return divide(1, x)


# Comparisons and truth values.


def equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 == x2; NaN equals nothing."""
    return emit("equal", *operands(x1, x2))


def not_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 != x2."""
    return emit("not_equal", *operands(x1, x2))


def less(x1: Any, x2: Any, /) -> Tensor:
    """x1 < x2."""
    return emit("less", *operands(x1, x2))


def less_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 <= x2."""
    return emit("less_equal", *operands(x1, x2))


def greater(x1: Any, x2: Any, /) -> Tensor:
    """x1 > x2."""
    return emit("greater", *operands(x1, x2))


def greater_equal(x1: Any, x2: Any, /) -> Tensor:
    """x1 >= x2."""
    return emit("greater_equal", *operands(x1, x2))


def logical_and(x1: Any, x2: Any, /) -> Tensor:
    """Both, of bools."""
    return emit("logical_and", *bool_operands("logical_and", x1, x2))


def logical_or(x1: Any, x2: Any, /) -> Tensor:
    """Either or both, of bools."""
    return emit("logical_or", *bool_operands("logical_or", x1, x2))


def logical_xor(x1: Any, x2: Any, /) -> Tensor:
    """Just one, of bools."""
    return emit("logical_xor", *bool_operands("logical_xor", x1, x2))


def logical_not(x: Any, /) -> Tensor:
    """The other truth value."""
    return emit("logical_not", *bool_operands("logical_not", x))


def isnan(x: Any, /) -> Tensor:
    """Whether x is NaN."""
    x = as_tensor(x)
    return emit("not_equal", x, x)


def isinf(x: Any, /) -> Tensor:
    """Whether x is an infinity; False for integers."""
    x = as_tensor(x)
    return equal(abs(x), math.inf) if x.dtype.is_float else emit("not_equal", x, x)


def isfinite(x: Any, /) -> Tensor:
    """Whether x is neither NaN nor an infinity."""
    x = as_tensor(x)
    return less(abs(x), math.inf) if x.dtype.is_float else emit("equal", x, x)


# Choice.


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition (bools) holds, else x2; the branch not taken never reaches a gradient."""
    like = next((v for v in (condition, x1, x2) if isinstance(v, Tensor)), None)
    (chosen,) = bool_operands("where", as_tensor(condition, None if like is None else like.device))
    return emit("where", chosen, *operands(x1, x2, device=chosen.device))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max], None for no limit; the dtype is that of x.

    DTypeError for limits that are no values of it: 0.5 or an array of int64 for int8.  An infinity is not a limit of
    integers."""
    x = as_tensor(x)
    low, high = _limit(x, min, -math.inf), _limit(x, max, math.inf)
    if low is not None and high is not None:
        return emit("clip", x, low, high)
    if low is not None:
        return emit("maximum", x, low)
    return copied(x) if high is None else emit("minimum", x, high)


def _limit(x: Tensor, limit: Any, none: float) -> Tensor | None:
    if limit is None:
        return None
    if of_number(limit) is not None and x.dtype.is_integer:
        is_none = limit.decide(lambda n: n == none) if type(limit) is TracedNumber else limit == none
        if is_none:
            return None
    made = stored(limit, x.dtype, x.device) if of_number(limit) is not None else as_tensor(limit)
    if x.dtype.is_integer and promote(x.dtype, made.dtype) is not x.dtype:
        raise DTypeError(f"clip: limits of {made.dtype} for {x.dtype}; cast them with ag.astype", caller_location())
    return cast(made, x.dtype)


# Functions of floats.


def exp(x: Any, /) -> Tensor:
    """e ** x."""
    return emit("exp", float_operand(x))


def expm1(x: Any, /) -> Tensor:
    """e ** x - 1, precise near 0."""
    return emit("expm1", float_operand(x))


def log(x: Any, /) -> Tensor:
    """The natural logarithm."""
    return emit("log", float_operand(x))


def log1p(x: Any, /) -> Tensor:
    """log(1 + x), precise near 0."""
    return emit("log1p", float_operand(x))


def sqrt(x: Any, /) -> Tensor:
    """The square root; the gradient at 0 is inf, so that of sqrt(x * x) there is NaN: use abs."""
    return emit("sqrt", float_operand(x))


def rsqrt(x: Any, /) -> Tensor:
    """1 / sqrt(x)."""
    return emit("rsqrt", float_operand(x))


def erf(x: Any, /) -> Tensor:
    """The error function."""
    return emit("erf", float_operand(x))


def sin(x: Any, /) -> Tensor:
    """The sine of radians."""
    return emit("sin", float_operand(x))


def cos(x: Any, /) -> Tensor:
    """The cosine of radians."""
    return emit("cos", float_operand(x))


def tanh(x: Any, /) -> Tensor:
    """The hyperbolic tangent."""
    return emit("tanh", float_operand(x))


def _rounded(method: str, x: Any) -> Tensor:
    x = as_tensor(x)
    return emit(method, x) if x.dtype.is_float else copied(x)


def floor(x: Any, /) -> Tensor:
    """Rounded toward minus infinity; integers stay."""
    return _rounded("floor", x)


def ceil(x: Any, /) -> Tensor:
    """Rounded toward plus infinity; integers stay."""
    return _rounded("ceil", x)


def trunc(x: Any, /) -> Tensor:
    """Rounded toward zero; integers stay."""
    return _rounded("trunc", x)


def round(x: Any, /) -> Tensor:
    """Rounded to nearest, halves to even; integers stay."""
    return _rounded("round", x)


# Activations.


def relu(x: Any, /) -> Tensor:
    """x where it is positive, else 0; NaN stays, the gradient at 0 is 0."""
    return emit("relu", as_tensor(x))


def sigmoid(x: Any, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow."""
    return emit("sigmoid", float_operand(x))


def gelu(x: Any, /, approximate: bool = False) -> Tensor:
    """x times the normal distribution function, or (approximate) times its form by tanh."""
    return emit("gelu", float_operand(x), approximate="tanh" if flag("approximate", approximate) else "none")


def silu(x: Any, /) -> Tensor:
    """x * sigmoid(x)."""
    return emit("silu", float_operand(x))


def softplus(x: Any, /) -> Tensor:
    """log(1 + exp(x)), without overflow."""
    return emit("softplus", float_operand(x))


def leaky_relu(x: Any, /, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else negative_slope * x."""
    x = float_operand(x)
    return where(greater(x, 0), x, multiply(x, _number("negative_slope", negative_slope)))


def elu(x: Any, /, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1); the gradient at 0 is alpha."""
    x = float_operand(x)
    return where(greater(x, 0), x, multiply(expm1(x), _number("alpha", alpha)))


def _number(what: str, value: Any) -> Any:
    """A number as it is (it may be traced), or a Tensor."""
    if of_number(value) is None and not isinstance(value, Tensor | np.ndarray | np.number):
        raise DTypeError(f"{called_function()}: {what} must be a number, got {shown(value)}", caller_location())
    return value


# Dtypes and gradients.


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x with another dtype: floats become integers by truncation, saturating, NaN 0; integers wrap; bools are 0, 1.

    A copy unless `copy` is False; then x itself where nothing changes."""
    x, wanted = as_tensor(x), as_dtype(dtype)
    made = copied(x) if flag("copy", copy) and wanted is x.dtype else cast(x, wanted)
    return made if device is None or device == made.device else to_device(made, device)


def stop_gradient(x: Any, /) -> Tensor:
    """x as a constant: no gradient passes."""
    x = as_tensor(x)
    if not x._aval.dtype.is_float:
        return copied(x)
    made = emit("stop_gradient", x)
    if made._aval.requires_grad:
        made._aval = made._aval.replace(requires_grad=False)
        if isinstance(made._state, Lazy):
            made._state.aval = made._aval
    return made


def to_device(x: Any, device: str, /) -> Tensor:
    """A copy of x on a device; its history for `backward` ends where that is another one."""
    from ..abstract import abstract_value
    from ..context import device_name

    x, name = as_tensor(x), device_name(device)
    aval = x._aval
    if aval.device == name:
        return copied(x)
    return make(abstract_value(aval.dtype, aval.shape, name), x._array())

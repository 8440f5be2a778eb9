"""Elementwise functions of several ops, or of arguments that no declaration describes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.diagnostics import DTypeError, shown
from ...ir.location import called_function, caller_location
from ..abstract import abstract_value
from ..array_like import ArrayLike, DTypeLike
from ..context import device_name
from ..dtypes import as_dtype, promote
from ..graph import Lazy
from ..numbers import TracedNumber, of_number
from ..tensor import Tensor, copied, make
from ..trace import ops
from .checks import flag
from .declared import abs, divide, equal, expm1, greater, less, maximum, minimum, multiply, where
from .promotion import as_tensor, cast, float_operand, operands, stored
from .public import public


@public
def pow(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 ** x2; integers stay integers, and a negative power of one is cut off to 0, but for those of 1 and -1."""
    if of_number(x2) is not None and isinstance(x1, Tensor) and x1.dtype.is_float:
        is_two = x2.decide(lambda n: n == 2) if type(x2) is TracedNumber else x2 == 2
        if is_two:
            return ops.mul(x1, x1)
    return ops.pow(*operands(x1, x2))


@public
def positive(x: ArrayLike, /) -> Tensor:
    """+x: a copy."""
    return copied(as_tensor(x))


@public
def square(x: ArrayLike, /) -> Tensor:
    """x * x."""
    x = as_tensor(x)
    return ops.mul(x, x)


@public
def reciprocal(x: ArrayLike, /) -> Tensor:
    """1 / x."""
    return divide(1, x)


@public
def isnan(x: ArrayLike, /) -> Tensor:
    """Whether x is NaN."""
    x = as_tensor(x)
    return ops.not_equal(x, x)


@public
def isinf(x: ArrayLike, /) -> Tensor:
    """Whether x is an infinity; False for integers."""
    x = as_tensor(x)
    return equal(abs(x), math.inf) if x.dtype.is_float else ops.not_equal(x, x)


@public
def isfinite(x: ArrayLike, /) -> Tensor:
    """Whether x is neither NaN nor an infinity."""
    x = as_tensor(x)
    return less(abs(x), math.inf) if x.dtype.is_float else ops.equal(x, x)


@public
def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Tensor:
    """x limited to [min, max], None for no limit; the dtype is that of x.

    DTypeError for limits that are no values of it: 0.5 or an array of int64 for int8.  An infinity is not a limit of
    integers."""
    x = as_tensor(x)
    low, high = _limit(x, min, -math.inf), _limit(x, max, math.inf)
    if low is not None and high is not None:
        return ops.clip(x, low, high)
    if low is not None:
        return maximum(x, low)
    return copied(x) if high is None else minimum(x, high)


def _limit(x: Tensor, limit: object, none: float) -> Tensor | None:
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


@public
def gelu(x: ArrayLike, /, approximate: bool = False) -> Tensor:
    """x times the normal distribution function, or (approximate) times its form by tanh."""
    return ops.gelu(float_operand(x), approximate="tanh" if flag("approximate", approximate) else "none")


@public
def leaky_relu(x: ArrayLike, /, negative_slope: float = 0.01) -> Tensor:
    """x where it is positive, else negative_slope * x."""
    x = float_operand(x)
    return where(greater(x, 0), x, multiply(x, _number("negative_slope", negative_slope)))


@public
def elu(x: ArrayLike, /, alpha: float = 1.0) -> Tensor:
    """x where it is positive, else alpha * (exp(x) - 1); the gradient at 0 is alpha."""
    x = float_operand(x)
    return where(greater(x, 0), x, multiply(expm1(x), _number("alpha", alpha)))


def _number(what: str, value: object) -> Any:
    """A number as it is (it may be traced), or a Tensor."""
    if of_number(value) is None and not isinstance(value, Tensor | np.ndarray | np.number):
        raise DTypeError(f"{called_function()}: {what} must be a number, got {shown(value)}", caller_location())
    return value


# Dtypes and gradients.


@public
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: str | None = None) -> Tensor:
    """x with another dtype: floats become integers by truncation, saturating, NaN 0; integers wrap; bools are 0, 1.

    A copy unless `copy` is False; then x itself where nothing changes."""
    x, wanted = as_tensor(x), as_dtype(dtype)
    made = copied(x) if flag("copy", copy) and wanted is x.dtype else cast(x, wanted)
    return made if device is None or device == made.device else to_device(made, device)


@public
def stop_gradient(x: ArrayLike, /) -> Tensor:
    """x as a constant: no gradient passes."""
    x = as_tensor(x)
    if not x._aval.dtype.is_float:
        return copied(x)
    made = ops.stop_gradient(x)
    if made._aval.requires_grad:
        made._aval = made._aval.replace(requires_grad=False)
        if isinstance(made._state, Lazy):
            made._state.aval = made._aval
    return made


@public
def to_device(x: ArrayLike, device: str, /) -> Tensor:
    """A copy of x on a device; its history for `backward` ends where that is another one."""
    x, name = as_tensor(x), device_name(device)
    aval = x._aval
    if aval.device == name:
        return copied(x)
    return make(abstract_value(aval.dtype, aval.shape, name), x._array())

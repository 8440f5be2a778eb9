"""Operands of functions as Tensors of one dtype: numbers, arrays and Tensors by the rules of dtypes.py."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any
from weakref import ref

import numpy as np

from ...ir.attributes import DenseAttr
from ...ir.diagnostics import DTypeError
from ...ir.location import UNKNOWN, called_function, caller_location
from ..abstract import AbstractValue, abstract_value
from ..context import CONTEXT
from ..conversion import asarray
from ..dtypes import DType, bool_, check_fits, element, float32, holds_kind, promote, promote_weak
from ..graph import Lazy, Node
from ..numbers import TracedNumber, of_number
from ..sizes import SymbolicSize
from ..tensor import Tensor, make
from ..trace import constant, emit, is_traced

_BAKED = frozenset({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, -1, -2, 0.5})
"""Numbers that an eager op takes as constants; all others are inputs, so that they may change without compiling."""


def as_tensor(value: object, device: str | None = None) -> Tensor:
    """A Tensor as it is; an array without a copy (what it holds when the op is computed counts); a number as a Tensor
    of its own dtype, on the device."""
    if isinstance(value, Tensor):
        return value
    dtype = of_number(value)
    if dtype is not None:
        return number(value, dtype, device)
    trace = CONTEXT.trace
    if trace is not None and isinstance(value, np.ndarray):
        return trace.array(value)
    return asarray(value, copy=None if isinstance(value, np.ndarray) else False)


def as_tensors(*given: object) -> list[Tensor]:
    """`as_tensor` of each; numbers lie where the first Tensor does."""
    device = next((v._aval.device for v in given if isinstance(v, Tensor)), None)
    return [as_tensor(v, device) for v in given]


def number(value: Any, dtype: DType, device: str | None = None, in_trace: bool = True) -> Tensor:
    """A Python number as a 0-d Tensor of a dtype; a constant of the trace that is being made if `in_trace` holds.

    DTypeError where the number does not fit."""
    trace = CONTEXT.trace
    place = device or (CONTEXT.device if trace is None else trace.device)
    if type(value) is SymbolicSize:
        value = value.number()
    if type(value) is TracedNumber:
        return value.tensor(dtype, place)
    aval = abstract_value(dtype, (), place)
    if trace is not None and in_trace:
        return constant(value, aval)
    if is_baked(value):
        check_fits(value, dtype)
        return make(aval, None, _baked(value, aval))
    return make(aval, element(value, dtype))


def is_baked(value: Any) -> bool:
    """Whether an eager op takes a number as a constant, and not as an input of its plan."""
    return value in _BAKED and bool(value or math.copysign(1, value) > 0)


@lru_cache(maxsize=1024)
def _baked(value: float, aval: AbstractValue) -> Lazy:
    """A constant that all chains share; it has no owner, so no plan computes it for its own sake."""
    node = Node("constant", (), (("value", DenseAttr.splat(aval.type, value)),), False, UNKNOWN)
    node.order -= 1 << 62  # before everything else, whenever it was made: the order is part of a chain's structure
    lazy = Lazy(aval, None, node)
    node.results = [ref(lazy)]
    return lazy


def common_dtype(given: tuple[object, ...]) -> DType:
    """The dtype that Tensors and Python numbers are promoted to."""
    strong: DType | None = None
    weak: DType | None = None
    for value in given:
        kind = value._aval.dtype if isinstance(value, Tensor) else of_number(value)
        assert kind is not None
        if isinstance(value, Tensor):
            strong = kind if strong is None or strong is kind else _promoted(strong, kind)
        else:
            weak = kind if weak is None or weak is kind else promote(weak, kind)
    if strong is None:
        assert weak is not None
        return weak
    return strong if weak is None else promote_weak(strong, weak)


def _promoted(a: DType, b: DType) -> DType:
    try:
        return promote(a, b)
    except DTypeError as error:
        raise DTypeError(error.message, caller_location()) from None


def operands(
    *given: object, floats: bool = False, dtype: DType | None = None, device: str | None = None
) -> list[Tensor]:
    """The operands as Tensors of their common dtype (or of `dtype`); with `floats` others become float32.

    Numbers lie where the first Tensor does, or on `device`; DTypeError for one that does not fit."""
    if not given:
        return []
    if len(given) == 2 and dtype is None:
        a, b = given
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            one, other = a._aval, b._aval
            if one.dtype is other.dtype and (one.dtype.is_float or not floats):
                return [a, b]
    values = tuple([v if isinstance(v, Tensor) or of_number(v) is not None else as_tensor(v) for v in given])
    if dtype is None:
        dtype = common_dtype(values)
        if floats and not dtype.is_float:
            dtype = float32
    device = next((v._aval.device for v in values if isinstance(v, Tensor)), device)
    in_trace = is_traced(values) or not any(isinstance(v, Tensor) for v in values)
    return [cast(v, dtype) if isinstance(v, Tensor) else number(v, dtype, device, in_trace) for v in values]


def stored(value: object, dtype: DType, device: str | None = None) -> Tensor:
    """What is to become elements of a dtype: numbers must fit, arrays must be of no higher kind (bool, then integers,
    then floats) and are cast as by `astype`."""
    if of_number(value) is not None:
        return number(value, dtype, device)
    made = as_tensor(value)
    if not holds_kind(dtype, made.dtype):
        message = f"{called_function()}: values of {made.dtype} do not fit {dtype}; cast them with ag.astype"
        raise DTypeError(message, caller_location())
    return cast(made, dtype)


def cast(x: Tensor, dtype: DType) -> Tensor:
    """x with another dtype, by the meaning of `astype`."""
    return x if x._aval.dtype is dtype else emit("cast", x, to=dtype.element)


def float_operand(x: object) -> Tensor:
    """An operand of a function of floats: integers and bools become float32."""
    (made,) = operands(x, floats=True)
    return made


def bool_operands(name: str, *given: object) -> list[Tensor]:
    """Operands of a connective; DTypeError for other than bools."""
    tensors = as_tensors(*given)
    for tensor in tensors:
        if tensor.dtype is not bool_:
            raise DTypeError(f"{name}: needs bools, got {tensor.dtype}; compare with 0 first", caller_location())
    return tensors


def chosen_operands(name: str, condition: object, *values: object) -> list[Tensor]:
    """A condition, of bools, and values of one dtype."""
    if not isinstance(condition, Tensor) or condition._aval.dtype is not bool_:
        like = next((v for v in (condition, *values) if isinstance(v, Tensor)), None)
        (condition,) = bool_operands(name, as_tensor(condition, None if like is None else like.device))
    return [condition, *operands(*values, device=condition._aval.device)]

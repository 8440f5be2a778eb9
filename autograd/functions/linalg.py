"""Reductions, products, normalisations and indexing, by the names of the Python array API standard."""

from __future__ import annotations

import math
from typing import Any

from ...ir.diagnostics import ShapeError
from ...ir.dialects.shapes import shape_text, tensor_type
from ...ir.location import caller_location
from ..dtypes import as_dtype, bool_, float32
from ..tensor import Tensor
from ..trace import emit
from .array import flatten_axes, permute_dims, reshape
from .elementwise import (
    add,
    equal,
    exp,
    isfinite,
    log,
    logical_not,
    not_equal,
    sqrt,
    square,
    stop_gradient,
    subtract,
    where,
)
from .promotion import as_tensor, as_tensors, cast, float_operand, normal_axes, normal_axis, operands

Axis = int | tuple[int, ...] | None


def _reduce(name: str, method: str, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    axes = normal_axes(name, axis, x.ndim)
    return emit(method, x, axes=axes, keepdims=bool(keepdims))


def sum(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes (all by default), in `dtype`; integers and bools sum to 64 bits, float16 adds up in float32."""
    x = as_tensor(x)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    made = _reduce("sum", "reduce_sum", x, axis, keepdims)
    return made if dtype is None else cast(made, as_dtype(dtype))


def prod(x: Any, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes (all by default); dtypes as in `sum`."""
    x = as_tensor(x)
    if dtype is not None:
        x = cast(x, as_dtype(dtype))
    made = _reduce("prod", "reduce_product", x, axis, keepdims)
    return made if dtype is None else cast(made, as_dtype(dtype))


def mean(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes (all by default); integers as float32."""
    return _reduce("mean", "reduce_mean", float_operand(x), axis, keepdims)


def var(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean of the squared deviations from the mean, of n - correction elements."""
    x = float_operand(x)
    squares = square(subtract(x, mean(x, axis=axis, keepdims=True)))
    if not correction:
        return mean(squares, axis=axis, keepdims=keepdims)
    count = _size(x, normal_axes("var", axis, x.ndim))
    return sum(squares, axis=axis, keepdims=keepdims) / (count - correction)


def std(x: Any, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes (all by default); NaN where there is one; ShapeError of an empty axis."""
    return _reduce("max", "reduce_max", as_tensor(x), axis, keepdims)


def min(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes (all by default); NaN where there is one; ShapeError of an empty axis."""
    return _reduce("min", "reduce_min", as_tensor(x), axis, keepdims)


def any(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not zero."""
    return not_equal(sum(_truth(x), axis=axis, keepdims=keepdims), 0)


def all(x: Any, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    return equal(sum(logical_not(_truth(x)), axis=axis, keepdims=keepdims), 0)


def _truth(x: Any) -> Tensor:
    x = as_tensor(x)
    return x if x.dtype is bool_ else not_equal(x, 0)


def _place(name: str, x: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(x)
    if axis is not None:
        return emit(name, x, axis=normal_axis(name, axis, x.ndim), keepdims=bool(keepdims))
    made = emit(name, flatten_axes(x), axis=0, keepdims=False)
    return reshape(made, (1,) * x.ndim) if keepdims else made


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands (int64), the first of equals; without an axis in row-major order."""
    return _place("argmax", x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands (int64), the first of equals; without an axis in row-major order."""
    return _place("argmin", x, axis, keepdims)


# Products.


def matmul(x1: Any, x2: Any, /, *, preferred_element_type: Any = None) -> Tensor:
    """The matrix product as `numpy.matmul`; float16 and bfloat16 accumulate in float32, which
    `preferred_element_type` asks for as the result."""
    a, b = operands(x1, x2)
    if preferred_element_type is None:
        return emit("matmul", a, b)
    return emit("matmul", a, b, preferred_element_type=as_dtype(preferred_element_type).element)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis."""
    a, b = operands(x1, x2)
    return sum(emit("mul", a, b), axis=axis, dtype=a.dtype)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over the last `axes` axes of x1 and the first of x2, or over two lists of axes."""
    a, b = operands(x1, x2)
    if isinstance(axes, int):
        left, right = tuple(range(a.ndim - axes, a.ndim)), tuple(range(axes))
    else:
        left, right = (normal_axes("tensordot", tuple(s), t.ndim) for s, t in zip(axes, (a, b), strict=True))
    rows = tuple([i for i in range(a.ndim) if i not in left])
    columns = tuple([i for i in range(b.ndim) if i not in right])
    inner = _size(a, left)
    shape = tuple([a.shape[i] for i in rows] + [b.shape[i] for i in columns])
    first = reshape(permute_dims(a, (*rows, *left)), (_size(a, rows), inner))
    second = reshape(permute_dims(b, (*right, *columns)), (inner, _size(b, columns)))
    return reshape(matmul(first, second), shape)


def _size(x: Tensor, axes: tuple[int, ...]) -> int:
    """The number of elements along axes; ShapeError where one is a symbol."""
    extents = [d for a in axes if isinstance(d := x.shape[a], int)]
    if len(extents) < len(axes):
        raise ShapeError(f"needs known sizes, got shape {shape_text(x.shape)}", caller_location())
    return math.prod(extents)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """All products of two vectors."""
    a, b = operands(x1, x2)
    return emit("mul", reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


# Normalisation.


def softmax(x: Any, /, axis: int = -1) -> Tensor:
    """exp(x - max) over its sum along an axis."""
    x = float_operand(x)
    return emit("softmax", x, axis=normal_axis("softmax", axis, x.ndim))


def log_softmax(x: Any, /, axis: int = -1) -> Tensor:
    """The logarithm of `softmax`."""
    x = float_operand(x)
    return emit("log_softmax", x, axis=normal_axis("log_softmax", axis, x.ndim))


def logsumexp(x: Any, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes (all by default), without overflow."""
    x = float_operand(x)
    top = stop_gradient(max(x, axis=axis, keepdims=True))
    shift = where(isfinite(top), top, 0)
    total = log(sum(exp(subtract(x, shift)), axis=axis, keepdims=keepdims))
    return add(total, reshape(shift, total.shape))


def layer_norm(x: Any, /, weight: Any = None, bias: Any = None, axis: int = -1, eps: float = 1e-5) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias along an axis; weight and bias have its extent, or are None."""
    x = float_operand(x)
    place = normal_axis("layer_norm", axis, x.ndim)
    if weight is None and bias is not None:
        return emit("layer_norm", x, axis=place, eps=float(eps))[0] + _column(bias, x.ndim - place - 1)
    given = as_tensors(x, *[v for v in (weight, bias) if v is not None])
    return emit("layer_norm", *given, axis=place, eps=float(eps))[0]


def _column(x: Any, axes: int) -> Tensor:
    x = as_tensor(x)
    return reshape(x, (*x.shape, *(1,) * axes))


# Indexing.


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The slices of x along an axis that `indices` (integers of any shape) name; negative ones count from the end;
    what lies out of range reads as NaN (of integers and bools as 0).  Without an axis x is flattened."""
    x, at = as_tensors(x, indices)
    if axis is None:
        axis = 0
        x = x if x.ndim == 1 else flatten_axes(x)
    return emit("take", x, at, axis=normal_axis("take", axis, x.ndim))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """x[.., indices[.., i, ..], ..]: for each place of `indices` the element of x that it names along the axis."""
    x, at = as_tensors(x, indices)
    return emit("take_along_axis", x, at, axis=normal_axis("take_along_axis", axis, x.ndim))


gather = take_along_axis


def index_add(x: Any, indices: Any, updates: Any, /, *, axis: int = 0) -> Tensor:
    """x with `updates` added to the slices along an axis that `indices` name: the transpose of `take`.  Equal indices
    add up; what would be added out of range is dropped."""
    base, added = operands(x, updates)
    place = normal_axis("index_add", axis, base.ndim)
    return emit("scatter_add", base, as_tensor(indices, base.device), added, axis=place)


def scatter_add(x: Any, indices: Any, updates: Any, /, *, axis: int = 0) -> Tensor:
    """x[.., indices[.., i, ..], ..] += updates[.., i, ..] for each place of `indices`: the transpose of `gather`."""
    base, added = operands(x, updates)
    place = normal_axis("scatter_add", axis, base.ndim)
    return emit("scatter_add_along_axis", base, as_tensor(indices, base.device), added, axis=place)


def one_hot(indices: Any, num_classes: int, /, *, dtype: Any = float32) -> Tensor:
    """1 at the place along a new last axis that each index names, 0 elsewhere (and all 0 where it is out of range)."""
    at = as_tensor(indices)
    places = emit("iota", type=tensor_type((num_classes,), at.dtype.element), axis=0)
    return cast(equal(reshape(at, (*at.shape, 1)), places), as_dtype(dtype))

"""Reductions, products, normalisations and indexing that take more than one op."""

from __future__ import annotations

import builtins

from ...ir.builders.sizes import Size, times
from ...ir.diagnostics import DTypeError, ShapeError, shown
from ...ir.location import caller_location
from ...ir.support.shapes import shape_text
from ..abstract import checked_size
from ..array_like import ArrayLike, Axis, DTypeLike
from ..dtypes import as_dtype, bool_, float32, int64
from ..sizes import symbolic
from ..tensor import Tensor
from ..trace import ops
from .array import flatten_axes, full, permute_dims, reshape
from .checks import (
    check_indices,
    extents,
    integer,
    integers,
    normal_axes,
    normal_axis,
    real,
    sequence,
    size,
)
from .declared import (
    add,
    equal,
    exp,
    log,
    log1p,
    logical_not,
    matmul,
    max,
    mean,
    not_equal,
    sqrt,
    subtract,
    sum,
    where,
)
from .elementwise import isfinite, square, stop_gradient
from .promotion import as_tensor, as_tensors, cast, float_operand, operands
from .public import PUBLIC, public


@public
def var(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean of the squared deviations from the mean, of n - correction elements."""
    x = float_operand(x)
    squares = square(subtract(x, mean(x, axis=axis, keepdims=True)))
    correction = real("correction", correction)
    if not correction:
        return mean(squares, axis=axis, keepdims=keepdims)
    count = _size(x, normal_axes(axis, x.ndim))
    return sum(squares, axis=axis, keepdims=keepdims) / (symbolic(count) - correction)


@public
def std(x: ArrayLike, /, *, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@public
def any(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether some element is not zero."""
    return not_equal(sum(_truth(x), axis=axis, keepdims=keepdims), 0)


@public
def all(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether no element is zero."""
    return equal(sum(logical_not(_truth(x)), axis=axis, keepdims=keepdims), 0)


def _truth(x: ArrayLike) -> Tensor:
    x = as_tensor(x)
    return x if x.dtype is bool_ else not_equal(x, 0)


# Products.


@public
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """The sum of products along an axis."""
    a, b = operands(x1, x2)
    place = integer("axis", axis)
    if place >= 0 and a.ndim != b.ndim:
        shapes = f"{shape_text(a._aval.shape)} and {shape_text(b._aval.shape)}"
        raise ShapeError(f"vecdot: axis {place} of shapes {shapes}: count it from the end", caller_location())
    left, right = (t._aval.shape[normal_axis(place, t.ndim)] for t in (a, b))
    if left != right:
        shapes = f"{shape_text(a._aval.shape)} and {shape_text(b._aval.shape)}"
        raise ShapeError(f"vecdot: axis {place} of shapes {shapes} differs in extent", caller_location())
    return sum(ops.mul(a, b), axis=place, dtype=a.dtype)


@public
def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: object = 2) -> Tensor:
    """The sum of products over the last `axes` axes of x1 and the first of x2, or over two lists of axes, whose extents
    must be equal in pairs."""
    a, b = operands(x1, x2)
    if hasattr(axes, "__index__"):
        count = integer("axes", axes)
        if not 0 <= count <= builtins.min(a.ndim, b.ndim):
            shapes = f"{shape_text(a._aval.shape)} and {shape_text(b._aval.shape)}"
            raise ShapeError(f"tensordot: there are no {count} axes in shapes {shapes}", caller_location())
        left, right = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        pair = sequence("axes", axes)
        if len(pair) != 2:
            raise ShapeError(f"tensordot: axes must be a number or two lists, got {shown(axes)}", caller_location())
        left, right = (normal_axes(integers("axes", s), t.ndim) for s, t in zip(pair, (a, b)))
    if [a._aval.shape[i] for i in left] != [b._aval.shape[i] for i in right]:
        shapes = f"{shape_text(a._aval.shape)} and {shape_text(b._aval.shape)}"
        raise ShapeError(f"tensordot: axes {left} and {right} of shapes {shapes} differ in extent", caller_location())
    rows = tuple([i for i in range(a.ndim) if i not in left])
    columns = tuple([i for i in range(b.ndim) if i not in right])
    inner = _size(a, left)
    shape = tuple([a._aval.shape[i] for i in rows] + [b._aval.shape[i] for i in columns])
    first = reshape(permute_dims(a, (*rows, *left)), (_size(a, rows), inner))
    second = reshape(permute_dims(b, (*right, *columns)), (inner, _size(b, columns)))
    return reshape(matmul(first, second), shape)


def _size(x: Tensor, axes: tuple[int, ...]) -> Size:
    """The number of elements along axes."""
    return times(*[x._aval.shape[a] for a in axes])


@public
def outer(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """All products of two vectors."""
    a, b = operands(x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        shapes = f"{shape_text(a.shape)} and {shape_text(b.shape)}"
        raise ShapeError(f"outer: needs two vectors, got shapes {shapes}", caller_location())
    return ops.mul(reshape(a, (a.size, 1)), reshape(b, (1, b.size)))


# Normalisation.


@public
def logsumexp(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes (all by default), without overflow; of no elements -inf.

    With the largest element m that is m + log1p(s), where s, the sum of exp(x - m) less 1, is formed without it."""
    x = float_operand(x)
    axes = normal_axes(axis, x.ndim)
    if 0 in [x._aval.shape[a] for a in axes]:
        return log(sum(exp(x), axis=axes, keepdims=keepdims))
    top = stop_gradient(max(x, axis=axes, keepdims=True))
    shift = where(isfinite(top), top, 0)
    hit = cast(equal(x, top), x.dtype)
    rest = sum(subtract(exp(subtract(x, shift)), hit), axis=axes, keepdims=keepdims)
    total = log1p(add(rest, subtract(sum(hit, axis=axes, keepdims=keepdims), 1)))
    return add(total, reshape(shift, total._aval.shape))


@public
def layer_norm(
    x: ArrayLike, /, weight: ArrayLike | None = None, bias: ArrayLike | None = None, axis: int = -1, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(variance + eps) * weight + bias along an axis; weight and bias have its extent, or are None."""
    x = float_operand(x)
    place, small = normal_axis(axis, x.ndim), real("eps", eps)
    given = as_tensors(x, *[v for v in (weight, bias) if v is not None])
    if weight is None and bias is not None:
        if given[1]._aval.shape != (x._aval.shape[place],):
            shapes = f"{shape_text(given[1]._aval.shape)} for axis {place} of shape {shape_text(x._aval.shape)}"
            raise ShapeError(f"layer_norm: a bias of shape {shapes}", caller_location())
        column = reshape(given[1], (x._aval.shape[place], *(1,) * (x.ndim - place - 1)))
        return ops.layer_norm(x, axis=place, eps=small)[0] + column
    return ops.layer_norm(*given, axis=place, eps=small)[0]


# Indexing.


@public
def take(x: ArrayLike, indices: ArrayLike, /, *, axis: int | None = None) -> Tensor:
    """The slices of x along an axis that `indices` (integers of any shape) name; negative ones count from the end.
    Without an axis x is flattened.

    IndexError for an index out of range; where it is computed in the same run, as in a jitted function, it reads as NaN
    (of integers and bools as 0), and no gradient passes."""
    x, at = as_tensors(x, indices)
    if axis is None:
        axis = 0
        x = x if x.ndim == 1 else flatten_axes(x)
    place = normal_axis(axis, x.ndim)
    check_indices("the indices", at, x, place)
    return ops.take(x, at, axis=place)


@public
def take_along_axis(x: ArrayLike, indices: ArrayLike, /, *, axis: int = -1) -> Tensor:
    """x[.., indices[.., i, ..], ..]: for each place of `indices` the element of x that it names along the axis.

    An index out of range does what it does in `take`."""
    x, at = as_tensors(x, indices)
    place = normal_axis(axis, x.ndim)
    check_indices("the indices", at, x, place)
    return ops.take_along_axis(x, at, axis=place)


gather = PUBLIC["gather"] = take_along_axis


@public
def index_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, *, axis: int = 0) -> Tensor:
    """x with `updates` added to the slices along an axis that `indices` name: the transpose of `take`.  Equal indices
    add up.

    IndexError for an index out of range; where it is computed in the same run, as in a jitted function, what it would
    add is dropped."""
    base, added = operands(x, updates)
    place, at = normal_axis(axis, base.ndim), as_tensor(indices, base.device)
    check_indices("the indices", at, base, place)
    return ops.index_add(base, at, added, axis=place)


@public
def scatter_add(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, /, *, axis: int = 0) -> Tensor:
    """x[.., indices[.., i, ..], ..] += updates[.., i, ..] for each place of `indices`: the transpose of `gather`.

    An index out of range does what it does in `index_add`."""
    base, added = operands(x, updates)
    place, at = normal_axis(axis, base.ndim), as_tensor(indices, base.device)
    check_indices("the indices", at, base, place)
    return ops.scatter_add(base, at, added, axis=place)


@public
def one_hot(indices: ArrayLike, num_classes: int, /, *, dtype: DTypeLike = float32) -> Tensor:
    """1 at the place along a new last axis that each index names, 0 elsewhere (and all 0 where it is out of range)."""
    at, wanted = as_tensor(indices), as_dtype(dtype)
    if not at.dtype.is_integer:
        raise DTypeError(f"one_hot: the indices must be integers, got {at.dtype}", caller_location())
    shape = extents(size("num_classes", num_classes))
    checked_size(int64, (*at._aval.shape, *shape))
    like = full((*at._aval.shape, *shape), False, dtype=bool_, device=at.device)
    return cast(ops.one_hot(at, like), wanted)

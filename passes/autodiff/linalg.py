"""Derivatives of `linalg`: contractions and sums are linear; extremes share a cotangent among equal elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.dialects import linalg
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.dialects.tensor_op import accumulator, type_of_tensor
from ...ir.values import Value
from .rules import constant, transpose, vjp

constant(linalg.Argmax, linalg.Argmin, linalg.OneHot)

Rule = Iterator[Value | None]


def spread(b: TensorBuilder, op: Any, value: Value) -> Value:
    """A result of a reduction at every element that it was made from."""
    type = type_of_tensor(op.x)
    kept = [i for i in range(type.rank) if i not in op.axes]
    if op.keepdims:
        value = b.reshape(value, [type.dims[i] for i in kept], b.extents([type.dims[i] for i in kept], op.x))
    return b.broadcast(value, type.dims, kept, b.extents(type.dims, op.x))


@transpose(linalg.ReduceSum)
def _reduce_sum(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield spread(b, op, b.cast(ct, type_of_tensor(op.x).element))


@transpose(linalg.ReduceMean)
def _reduce_mean(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    ct = b.cast(ct, type_of_tensor(op.x).element)
    yield spread(b, op, b.mul(ct, reciprocal_count(b, op.x, op.axes, op.keepdims)))


def reciprocal_count(b: TensorBuilder, x: Value, axes: Sequence[int], keepdims: bool = False) -> Any:
    """1 / the number of elements along some axes; a number, or a tensor where an extent is dynamic."""
    type = type_of_tensor(x)
    dynamic = [a for a in axes if isinstance(type.dims[a], str)]
    count = math.prod(type.shape[a] for a in axes if a not in dynamic)
    if not dynamic:
        return 1.0 / count if count else 0.0
    return b.div(1.0, b.reduce_sum(b.full_like(1.0, x), axes=axes, keepdims=keepdims))


@vjp(linalg.ReduceProduct)
def _reduce_product(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """The product of the others: the whole by the element, or where one is 0, the product of those that are not."""
    zero = b.equal(op.x, 0.0)
    element = type_of_tensor(op.x).element
    one, nothing = b.constant(1.0, element), b.constant(0.0, element)
    others = spread(b, op, b.reduce_product(b.where(zero, one, op.x), axes=op.axes, keepdims=op.keepdims))
    zeros = spread(b, op, b.reduce_sum(b.where(zero, one, nothing), axes=op.axes, keepdims=op.keepdims))
    partial = b.where(zero, others, b.div(spread(b, op, op.result), b.where(zero, one, op.x)))
    alone = b.logical_or(b.logical_not(zero), b.equal(zeros, 1.0))
    yield b.where(alone, b.mul(spread(b, op, ct), partial), nothing)


@vjp(linalg.ReduceMax, linalg.ReduceMin)
def _extreme(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """The elements that equal the extreme share its cotangent evenly."""
    element = type_of_tensor(op.x).element
    hit = b.equal_or_nan(op.x, spread(b, op, op.result))
    ones = b.where(hit, b.constant(1.0, element), b.constant(0.0, element))
    count = b.reduce_sum(ones, axes=op.axes, keepdims=op.keepdims)
    share = spread(b, op, b.div(ct, b.cast(count, element)))
    yield b.where(hit, share, b.constant(0.0, element))


@vjp(linalg.Softmax)
def _softmax(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """(ct - sum(ct y)) y, from the result alone."""
    element = type_of_tensor(op.x).element
    y, ct = (b.cast(v, accumulator(element)) for v in (op.result, ct))
    total = b.reduce_sum(b.mul(ct, y), axes=[op.axis], keepdims=True)
    yield b.cast(b.mul(b.sub(ct, total), y), element)


@vjp(linalg.LogSoftmax)
def _log_softmax(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """ct - sum(ct) exp(y), from the result alone."""
    element = type_of_tensor(op.x).element
    y, ct = (b.cast(v, accumulator(element)) for v in (op.result, ct))
    total = b.reduce_sum(ct, axes=[op.axis], keepdims=True)
    yield b.cast(b.sub(ct, b.mul(total, b.exp(y))), element)


@vjp(linalg.LayerNorm)
def _layer_norm(b: TensorBuilder, op: Any, ct: Value | None, ct_mean: Value | None, ct_rstd: Value | None) -> Rule:
    """With h = (x - mean) rstd, w = ct weight: dx = (w - mean(w) - h mean(w h)) rstd, d weight = sum(ct h), d bias =
    sum(ct), from the saved mean and rstd; beside it what the cotangents of those two contribute."""
    type = type_of_tensor(op.x)
    axis, wide = op.axis, accumulator(type.element)
    column = (type.dims[axis],) + (1,) * (type.rank - axis - 1)
    kept = tuple(1 if i == axis else d for i, d in enumerate(type.dims))
    others = [i for i in range(type.rank) if i != axis]

    def at_points(statistic: Value) -> Value:
        return b.reshape(statistic, kept, b.extents(kept, op.x))

    rstd = at_points(op.rstd)
    h = b.mul(b.sub(b.cast(op.x, wide), at_points(op.mean)), rstd)
    parts: list[Value] = []
    weighted: Value | None = None
    if ct is not None:
        w = ct = b.cast(ct, wide)
        if op.weight is not None:
            w = b.mul(ct, b.reshape(b.cast(op.weight, wide), column))
            weighted = b.mul(ct, h)
        centred = b.sub(w, b.reduce_mean(w, axes=[axis], keepdims=True))
        slope = b.reduce_mean(b.mul(w, h), axes=[axis], keepdims=True)
        parts.append(b.mul(b.sub(centred, b.mul(h, slope)), rstd))
    if ct_mean is not None:
        parts.append(b.broadcast_like(at_points(b.mul(ct_mean, reciprocal_count(b, op.x, [axis]))), op.x))
    if ct_rstd is not None:
        share = b.mul(ct_rstd, b.mul(op.rstd, op.rstd))
        parts.append(b.neg(b.mul(at_points(b.mul(share, reciprocal_count(b, op.x, [axis]))), h)))
    yield b.cast(functools.reduce(b.add, parts), type.element)
    for parameter, element_ct in ((op.weight, weighted), (op.bias, ct)):
        if parameter is not None:
            total = None if element_ct is None else b.reduce_sum(element_ct, axes=others) if others else element_ct
            yield None if total is None else b.cast(total, type.element)


@transpose(linalg.Matmul)
def _matmul(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """ct @ rhs^T and lhs^T @ ct, with 1-d operands as a row and a column, summed over batches that were broadcast."""
    lhs, rhs = type_of_tensor(op.lhs), type_of_tensor(op.rhs)
    full = type_of_tensor(ct)
    batch = full.dims[: full.rank - (lhs.rank > 1) - (rhs.rank > 1)]
    row = lhs.dims[-2] if lhs.rank > 1 else 1
    column = rhs.dims[-1] if rhs.rank > 1 else 1
    sources = (ct, op.lhs, op.rhs)

    def shaped(x: Value, dims: Any) -> Value:
        return b.reshape(x, dims, b.extents(dims, *sources))

    grad = shaped(ct, (*batch, row, column))
    left = shaped(b.cast(op.lhs, full.element), (*lhs.dims[:-2], row, lhs.dims[-1]))
    right = shaped(b.cast(op.rhs, full.element), (*rhs.dims[:-2], rhs.dims[0 if rhs.rank == 1 else -2], column))
    yield _like(b, b.matmul(grad, _swapped(b, right)), op.lhs, (*lhs.dims[:-2], row, lhs.dims[-1]))
    inner = rhs.dims[0 if rhs.rank == 1 else -2]
    yield _like(b, b.matmul(_swapped(b, left), grad), op.rhs, (*rhs.dims[:-2], inner, column))


def _swapped(b: TensorBuilder, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = type_of_tensor(x).rank
    return b.transpose(x, permutation=[*range(rank - 2), rank - 1, rank - 2])


def _like(b: TensorBuilder, value: Value, operand: Value, dims: Any) -> Value:
    """A cotangent summed to the batch extents in `dims`, in the operand's shape and element type."""
    type = type_of_tensor(value)
    missing = type.rank - len(dims)
    extra = [
        i for i, d in enumerate(type.dims) if i < missing or (dims[i - missing] == 1 and d != 1 and i < type.rank - 2)
    ]
    if extra:
        value = b.reduce_sum(value, axes=extra)
    own = type_of_tensor(operand)
    return b.cast(b.reshape(value, own.dims, b.extents(own.dims, operand)), own.element)


@transpose(linalg.Take)
def _take(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield b.scatter_add(b.full_like(0.0, op.x), op.indices, ct, axis=op.axis)
    yield None


@transpose(linalg.TakeAlongAxis)
def _take_along_axis(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield b.scatter_add_along_axis(b.full_like(0.0, op.x), op.indices, ct, axis=op.axis)
    yield None


@transpose(linalg.ScatterAdd)
def _scatter_add(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield ct
    yield None
    yield b.take(ct, op.indices, axis=op.axis, missing="zero")


@transpose(linalg.ScatterAddAlongAxis)
def _scatter_add_along_axis(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield ct
    yield None
    yield b.take_along_axis(ct, op.indices, axis=op.axis, missing="zero")

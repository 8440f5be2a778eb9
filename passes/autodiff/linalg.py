"""Derivatives of `linalg`: contractions and sums are linear; extremes share a cotangent among equal elements."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.attributes import scalar_attr
from ...ir.dialects import linalg
from ...ir.dialects.shapes import tensor_type
from ...ir.dialects.tensor_builder import Dims, TensorBuilder
from ...ir.dialects.tensor_op import accumulator, type_of_tensor
from ...ir.types import F32, I64
from ...ir.values import Value
from .masks import Cotangent, Factor, Mask, Masks
from .rules import constant, live, transpose, vjp

constant(linalg.Argmax, linalg.Argmin, linalg.OneHot)

Rule = Iterator[Value | None]
Live = Iterator[Mask]
MaskedRule = Iterator[Cotangent | None]


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


@live(linalg.ReduceSum, linalg.ReduceMean, linalg.ReduceProduct)
def _reduction_live(m: Masks, op: Any, mask: Mask) -> Live:
    yield spread_mask(m, op, mask)


def spread_mask(m: Masks, op: Any, mask: Mask) -> Mask:
    """The mask of a reduction's result at what it was made from."""
    return mask if op.keepdims else m.inserted(mask, type_of_tensor(op.result).rank, op.axes)


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
    """The product of the others, without a division: zeros, infinities and overflow are what they are, and so are all
    higher derivatives.  Axis by axis: the others along one, times the others of the products along it."""
    element = type_of_tensor(op.x).element
    x = b.cast(op.x, accumulator(element))
    partial: Value | None = None
    for axis in sorted(op.axes):
        others = _others(b, x, axis)
        partial = others if partial is None else b.mul(partial, others)
        x = b.reduce_product(x, axes=[axis], keepdims=True)
    ct = spread(b, op, b.cast(ct, accumulator(element)))
    yield b.cast(ct if partial is None else b.mul(ct, partial), element)


BLOCK = 32
"""The most elements for each of which the others are multiplied one by one."""


def _others(b: TensorBuilder, x: Value, axis: int) -> Value:
    """For each element the product of the others along an axis.  A long axis is one of blocks: the others of the block,
    times the product of the other blocks, so that n elements take about `BLOCK` n products."""
    type = type_of_tensor(x)
    extent = type.dims[axis]
    if isinstance(extent, str) or extent <= BLOCK:
        # Row i of the square has a 1 in place of element i.
        dims = (*type.dims[: axis + 1], *type.dims[axis:])
        places = [i for i in range(len(dims)) if i != axis]
        rows = b.broadcast(x, dims, places, b.extents(dims, x))
        own = [extent if i in (axis, axis + 1) else 1 for i in range(len(dims))]
        square = tensor_type(own, I64)
        extents = b.extents(own, x)
        diagonal = b.equal(b.iota(square, axis, extents), b.iota(square, axis + 1, extents))
        return b.reduce_product(b.where(diagonal, b.constant(1.0, type.element), rows), axes=[axis + 1])
    count = -(-extent // BLOCK)
    high = [count * BLOCK - extent if i == axis else 0 for i in range(type.rank)]
    padded = b.pad(x, low=[0] * type.rank, high=high, value=scalar_attr(1.0, type.element)) if any(high) else x
    blocks = b.reshape(padded, (*type.dims[:axis], count, BLOCK, *type.dims[axis + 1 :]))
    outer = _others(b, b.reduce_product(blocks, axes=[axis + 1], keepdims=True), axis)
    together = b.reshape(b.mul(_others(b, blocks, axis + 1), outer), type_of_tensor(padded).dims)
    return b.slice(together, stops=type.shape) if any(high) else together


@vjp(linalg.ReduceMax, linalg.ReduceMin)
def _extreme(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """The elements that equal the extreme share its cotangent evenly."""
    element = type_of_tensor(op.x).element
    hit = b.equal_or_nan(op.x, spread(b, op, op.result))
    ones = b.where(hit, b.constant(1.0, element), b.constant(0.0, element))
    count = b.reduce_sum(ones, axes=op.axes, keepdims=op.keepdims)
    share = spread(b, op, b.div(ct, b.cast(count, element)))
    yield b.where(hit, share, b.constant(0.0, element))


@live(linalg.ReduceMax, linalg.ReduceMin)
def _extreme_live(m: Masks, op: Any, mask: Mask) -> Live:
    """The elements that the extreme passed over are dead."""
    mask = spread_mask(m, op, mask)
    yield mask if m.tame(op.x) else (*mask, Factor(m.b.equal_or_nan(op.x, spread(m.b, op, op.result)), soft=True))


@live(linalg.Softmax, linalg.LogSoftmax)
def _softmax_live(m: Masks, op: Any, mask: Mask) -> Live:
    yield m.folded(mask, type_of_tensor(op.x).rank, [op.axis], op.x)


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


@vjp(linalg.LayerNorm, masked=True)
def _layer_norm(
    m: Masks, op: Any, y_ct: Cotangent | None, mean_ct: Cotangent | None, rstd_ct: Cotangent | None
) -> MaskedRule:
    """With h = (x - mean) rstd, w = ct weight: dx = (w - mean(w) - h mean(w h)) rstd, d weight = sum(ct h), d bias =
    sum(ct), from the saved mean and rstd; beside it what the cotangents of those two contribute."""
    b, type = m.b, type_of_tensor(op.x)
    ct, ct_mean, ct_rstd = (None if v is None else m.applied(v) for v in (y_ct, mean_ct, rstd_ct))
    axis, wide = op.axis, accumulator(type.element)
    column = (type.dims[axis],) + (1,) * (type.rank - axis - 1)
    kept = tuple(1 if i == axis else d for i, d in enumerate(type.dims))
    others = [i for i in range(type.rank) if i != axis]

    def at_points(statistic: Value) -> Value:
        return b.reshape(statistic, kept, b.extents(kept, op.x))

    mask = () if y_ct is None else y_ct.mask
    rows = m.folded(mask, type.rank, [axis], op.x)
    masks = [] if y_ct is None else [rows]
    masks += [m.inserted(v.mask, type.rank - 1, [axis]) for v in (mean_ct, rstd_ct) if v is not None]
    rstd = at_points(op.rstd)
    h = b.mul(b.sub(b.cast(op.x, wide), at_points(op.mean)), rstd)
    parts: list[Value] = []
    weighted: Value | None = None
    if ct is not None:
        w = ct = b.cast(ct, wide)
        if op.weight is not None:
            weight = b.reshape(b.cast(op.weight, wide), column)
            if any(m.varies(f, type.rank, [axis]) for f in mask):
                weight = m.select(m.folded(mask, type.rank, others, op.weight), weight)
            w = b.mul(ct, weight)
            weighted = b.mul(ct, m.select(rows, h))
        centred = b.sub(w, b.reduce_mean(w, axes=[axis], keepdims=True))
        slope = b.reduce_mean(b.mul(w, h), axes=[axis], keepdims=True)
        parts.append(b.mul(b.sub(centred, b.mul(h, slope)), rstd))
    if ct_mean is not None:
        parts.append(b.broadcast_like(at_points(b.mul(ct_mean, reciprocal_count(b, op.x, [axis]))), op.x))
    if ct_rstd is not None:
        share = b.mul(ct_rstd, b.mul(op.rstd, op.rstd))
        parts.append(b.neg(b.mul(at_points(b.mul(share, reciprocal_count(b, op.x, [axis]))), h)))
    yield Cotangent(b.cast(functools.reduce(b.add, parts), type.element), m.either(masks))
    for parameter, element_ct in ((op.weight, weighted), (op.bias, ct)):
        if parameter is None:
            continue
        if element_ct is None:
            yield None
            continue
        total = b.reduce_sum(element_ct, axes=others) if others else element_ct
        live_columns = m.dropped(m.folded(mask, type.rank, others, parameter), type.rank, others)
        yield Cotangent(b.cast(total, type.element), live_columns, zeroed=True)


@transpose(linalg.Matmul, masked=True)
def _matmul(m: Masks, op: Any, incoming: Cotangent) -> MaskedRule:
    """ct @ rhs^T and lhs^T @ ct, with 1-d operands as a row and a column, summed over batches that were broadcast.

    The rows of lhs and the columns of rhs to which only dead places of the product belong count as zeros."""
    b, ct = m.b, m.applied(incoming)
    lhs, rhs = type_of_tensor(op.lhs), type_of_tensor(op.rhs)
    full = type_of_tensor(ct)
    batch = full.dims[: full.rank - (lhs.rank > 1) - (rhs.rank > 1)]
    row = lhs.dims[-2] if lhs.rank > 1 else 1
    column = rhs.dims[-1] if rhs.rank > 1 else 1
    inner = lhs.dims[-1]
    left_dims = (*lhs.dims[:-2], row, inner)
    right_dims = (*rhs.dims[:-2], inner, column)
    rank = len(batch) + 2
    sources = (ct, op.lhs, op.rhs)

    def shaped(x: Value, dims: Any) -> Value:
        return b.reshape(x, dims, b.extents(dims, *sources))

    mask = m.inserted(incoming.mask, full.rank, [rank - 2] * (lhs.rank == 1) + [rank - 1] * (rhs.rank == 1))
    grad = shaped(ct, (*batch, row, column))
    left = shaped(b.cast(op.lhs, full.element), left_dims)
    right = shaped(b.cast(op.rhs, full.element), right_dims)

    def live_of(operand: Value, dims: Dims, axis: int) -> Mask:
        folded = m.folded(mask, rank, [*_extra(rank, (*batch, row, column), dims), axis], operand)
        return m.dropped(folded, rank, range(rank - len(dims)))

    rows, columns = live_of(op.lhs, left_dims, rank - 1), live_of(op.rhs, right_dims, rank - 2)
    if any(m.varies(f, rank, range(rank - 1)) for f in mask):
        left = m.select(rows, left)
    if any(m.varies(f, rank, [*range(rank - 2), rank - 1]) for f in mask):
        right = m.select(columns, right)
    lhs_live = m.dropped(rows, len(left_dims), [len(left_dims) - 2] * (lhs.rank == 1))
    rhs_live = m.dropped(columns, len(right_dims), [len(right_dims) - 1] * (rhs.rank == 1))
    yield Cotangent(_like(b, b.matmul(grad, _swapped(b, right)), op.lhs, left_dims), lhs_live)
    yield Cotangent(_like(b, b.matmul(_swapped(b, left), grad), op.rhs, right_dims), rhs_live)


def _swapped(b: TensorBuilder, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = type_of_tensor(x).rank
    return b.transpose(x, permutation=[*range(rank - 2), rank - 1, rank - 2])


def _extra(rank: int, full: Dims, dims: Dims) -> list[int]:
    """The batch axes of a product along which an operand was repeated."""
    missing = rank - len(dims)
    return [i for i, d in enumerate(full[:-2]) if i < missing or (dims[i - missing] == 1 and d != 1)]


def _like(b: TensorBuilder, value: Value, operand: Value, dims: Dims) -> Value:
    """A cotangent summed to the batch extents in `dims`, in the operand's shape and element type."""
    type = type_of_tensor(value)
    extra = _extra(type.rank, type.dims, dims)
    if extra:
        value = b.reduce_sum(value, axes=extra)
    own = type_of_tensor(operand)
    return b.cast(b.reshape(value, own.dims, b.extents(own.dims, operand)), own.element)


@transpose(linalg.Take)
def _take(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield b.scatter_add(b.full_like(0.0, op.x), op.indices, ct, axis=op.axis)
    yield None


@live(linalg.Take)
def _take_live(m: Masks, op: Any, mask: Mask) -> Live:
    """Live where a place that took the slice is; a slice that nothing took is dead."""
    source, rank, axis = type_of_tensor(op.x), type_of_tensor(op.result).rank, op.axis
    chosen = range(axis, axis + type_of_tensor(op.indices).rank)
    moving, staying = m.parted(mask, rank, chosen)
    staying = m.inserted(m.dropped(staying, rank, chosen), rank - len(chosen), [axis])
    if moving or not m.tame(op.x):
        counts = m.counts(moving, op.result, chosen)
        dims = list(type_of_tensor(counts).dims)
        dims[chosen.start : chosen.stop] = [source.dims[axis]]
        zeros = m.b.full(0.0, tensor_type(dims, F32), m.b.extents(dims, op.x))
        taken = m.b.greater(m.b.scatter_add(zeros, op.indices, counts, axis=axis), 0.0)
        staying = (*staying, Factor(taken))
    yield staying
    yield ()


@transpose(linalg.TakeAlongAxis)
def _take_along_axis(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield b.scatter_add_along_axis(b.full_like(0.0, op.x), op.indices, ct, axis=op.axis)
    yield None


@live(linalg.TakeAlongAxis)
def _take_along_axis_live(m: Masks, op: Any, mask: Mask) -> Live:
    """Live where a place that took the element is; an element that nothing took is dead."""
    rank = type_of_tensor(op.x).rank
    moving, staying = m.parted(mask, rank, [op.axis])
    if moving or not m.tame(op.x):
        counts = m.counts(moving, op.result, range(rank))
        zeros = m.b.full_like(0.0, op.x, F32)
        taken = m.b.greater(m.b.scatter_add_along_axis(zeros, op.indices, counts, axis=op.axis), 0.0)
        staying = (*staying, Factor(taken))
    yield staying
    yield ()


@transpose(linalg.ScatterAdd)
def _scatter_add(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield ct
    yield None
    yield b.take(ct, op.indices, axis=op.axis, missing="zero")


@live(linalg.ScatterAdd)
def _scatter_add_live(m: Masks, op: Any, mask: Mask) -> Live:
    rank, axis, count = type_of_tensor(op.x).rank, op.axis, type_of_tensor(op.indices).rank
    moving, staying = m.parted(mask, rank, [axis])
    yield mask
    yield ()
    taken = (Factor(m.b.take(m.aligned(f.value, rank), op.indices, axis=axis), f.soft) for f in moving)
    yield (*taken, *m.inserted(m.dropped(staying, rank, [axis]), rank - 1, range(axis, axis + count)))


@transpose(linalg.ScatterAddAlongAxis)
def _scatter_add_along_axis(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield ct
    yield None
    yield b.take_along_axis(ct, op.indices, axis=op.axis, missing="zero")


@live(linalg.ScatterAddAlongAxis)
def _scatter_add_along_axis_live(m: Masks, op: Any, mask: Mask) -> Live:
    rank = type_of_tensor(op.x).rank
    moving, staying = m.parted(mask, rank, [op.axis])

    def taken(value: Value) -> Value:
        return m.b.take_along_axis(m.filled(value, op.result, range(rank)), op.indices, axis=op.axis)

    yield mask
    yield ()
    yield (*(Factor(taken(f.value), f.soft) for f in moving), *staying)

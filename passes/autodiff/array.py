"""Derivatives of `array`: views are linear, each with its transposed map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.attributes import scalar_attr
from ...ir.dialects import array, mixed
from ...ir.dialects.shapes import tensor_type
from ...ir.dialects.tensor_builder import Dims, TensorBuilder
from ...ir.dialects.tensor_op import type_of_tensor
from ...ir.types import I1
from ...ir.values import Value
from .masks import Factor, Mask, Masks
from .rules import constant, live, transpose

constant(array.Constant, array.Full, array.Iota, array.Dim)

Rule = Iterator[Value | None]
Live = Iterator[Mask]


@transpose(array.Transpose)
def _transpose(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    order = op.permutation
    yield b.transpose(ct, permutation=[order.index(i) for i in range(len(order))])


@live(array.Transpose)
def _transpose_live(m: Masks, op: Any, mask: Mask) -> Live:
    order = op.permutation
    back = [order.index(i) for i in range(len(order))]
    yield tuple(Factor(m.b.transpose(m.aligned(f.value, len(order)), permutation=back), f.soft) for f in mask)


@transpose(array.Reshape)
def _reshape(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    dims = type_of_tensor(op.x).dims
    yield b.reshape(ct, dims, b.extents(dims, op.x))
    yield from (None for _ in op.extents)


@live(array.Reshape)
def _reshape_live(m: Masks, op: Any, mask: Mask) -> Live:
    """Along the groups of axes that become groups of axes: a factor that does not vary along one stays so."""
    source, target = type_of_tensor(op.x).dims, type_of_tensor(op.result).dims
    groups = regrouped(source, target)

    def moved(value: Value) -> Value:
        own = type_of_tensor(value := m.aligned(value, len(target))).dims
        wanted: list[int | str] = []
        full: list[int] = []
        for before, after in groups:
            if all(own[i] == 1 for i in after):
                wanted += [1] * len(before)
            else:
                wanted += [source[i] for i in before]
                full += after
        return m.b.reshape(m.filled(value, op.result, full), wanted, m.b.extents(wanted, op.x))

    yield tuple(Factor(moved(f.value), f.soft) for f in mask)
    yield from (() for _ in op.extents)


def regrouped(source: Dims, target: Dims) -> list[tuple[range, range]]:
    """The axes of a shape and of its reshape in the smallest groups that hold the same elements."""
    groups: list[tuple[range, range]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        first, second = i, j
        left, right = _size(source[i : i + 1]), _size(target[j : j + 1])
        i, j = min(i + 1, len(source)), min(j + 1, len(target))
        while left != right:
            if i < len(source) and (j == len(target) or _less(left, right)):
                left, i = _size(source[first : i + 1]), i + 1
            elif j < len(target):
                right, j = _size(target[second : j + 1]), j + 1
            else:
                break
        groups.append((range(first, i), range(second, j)))
    return groups


def _size(dims: Dims) -> tuple[int, tuple[str, ...]]:
    """The number of elements: a number times symbols."""
    return math.prod(d for d in dims if isinstance(d, int)), tuple(sorted(d for d in dims if isinstance(d, str)))


def _less(left: tuple[int, tuple[str, ...]], right: tuple[int, tuple[str, ...]]) -> bool:
    """Whether the left side is the one to add an axis to."""
    return (len(left[1]), left[0]) < (len(right[1]), right[0])


@transpose(array.Broadcast)
def _broadcast(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    source, summed = type_of_tensor(op.x), repeated(op)
    total = b.reduce_sum(ct, axes=summed) if summed else ct
    yield b.reshape(total, source.dims, b.extents(source.dims, op.x))
    yield from (None for _ in op.extents)


def repeated(op: Any) -> list[int]:
    """The axes of a broadcast along which elements repeat."""
    source, target = type_of_tensor(op.x), type_of_tensor(op.result)
    stretched = [a for i, a in enumerate(op.axes) if source.dims[i] == 1 and target.dims[a] != 1]
    return sorted(stretched + [a for a in range(target.rank) if a not in op.axes])


@live(array.Broadcast)
def _broadcast_live(m: Masks, op: Any, mask: Mask) -> Live:
    rank = type_of_tensor(op.result).rank
    kept = m.folded(mask, rank, repeated(op), op.x)
    yield m.dropped(kept, rank, [a for a in range(rank) if a not in op.axes])
    yield from (() for _ in op.extents)


@transpose(array.Slice)
def _slice(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield _put_back(b, ct, op, range(type_of_tensor(ct).rank))
    yield from (None for _ in (*op.offsets, *op.extents))


def _put_back(b: TensorBuilder, ct: Value, op: Any, axes: Sequence[int]) -> Value:
    """Each element back to its place along axes, zeros between: padding with gaps, of the reversed cotangent where
    steps are negative."""
    source, given = type_of_tensor(op.x), type_of_tensor(ct)
    flipped = [i in axes and s < 0 for i, s in enumerate(op.steps)]
    if any(flipped):
        first = [_last(b, ct, i) if f else 0 for i, f in enumerate(flipped)]
        ct = b.slice(ct, first, steps=[-1 if f else 1 for f in flipped], dims=given.dims)
    low: list[int | Value] = [0] * given.rank
    interior = [0] * given.rank
    starts = mixed.merge(op.starts, op.offsets)
    for i in axes:
        start, step = starts[i], op.steps[i]
        interior[i] = abs(step) - 1
        if given.dims[i] == 0:
            continue
        low[i] = start
        if step < 0:
            last = _last(b, ct, i)
            if isinstance(start, int) and isinstance(last, int):
                low[i] = start + last * step
            else:
                low[i] = b.scalars().add(start, b.scalars().mul(last, step) if isinstance(last, Value) else last * step)
    zero = scalar_attr(0, given.element)
    dims = [source.dims[i] if i in axes else d for i, d in enumerate(given.dims)]
    return b.pad(ct, low, None, interior if any(interior) else None, zero, dims, (op.x,))


def _last(b: TensorBuilder, x: Value, axis: int) -> int | Value:
    """The last subscript along an axis."""
    extent = type_of_tensor(x).dims[axis]
    return max(extent - 1, 0) if isinstance(extent, int) else b.scalars().sub(b.dim(x, axis), 1)


@live(array.Slice)
def _slice_live(m: Masks, op: Any, mask: Mask) -> Live:
    """What lies outside of the slice is dead."""
    source, result = type_of_tensor(op.x), type_of_tensor(op.result)
    cut = [i for i in range(source.rank) if source.dims[i] != result.dims[i]]

    def moved(value: Value) -> Value:
        value = m.aligned(value, source.rank)
        own = type_of_tensor(value).dims
        return _put_back(m.b, value, op, [i for i, d in enumerate(result.dims) if d == own[i]])

    moved_mask = tuple(Factor(moved(f.value), f.soft) for f in mask)
    if cut and not m.tame(op.x):
        dims = [d if i in cut else 1 for i, d in enumerate(result.dims)]
        everywhere = m.b.full(True, tensor_type(dims, I1), m.b.extents(dims, op.result))
        moved_mask = (*moved_mask, Factor(_put_back(m.b, everywhere, op, cut)))
    yield moved_mask
    yield from (() for _ in (*op.offsets, *op.extents))


@transpose(array.Pad)
def _pad(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    yield _inside(b, ct, op, range(type_of_tensor(ct).rank))
    yield from (None for _ in (*op.offsets, *op.extents))


def _inside(b: TensorBuilder, ct: Value, op: Any, axes: Sequence[int]) -> Value:
    """The elements of a padded array that were there before, along axes."""
    source, given = type_of_tensor(op.x), type_of_tensor(ct)
    low, gaps = mixed.merge(op.low, op.offsets), op.gaps()
    starts = [low[i] if i in axes else 0 for i in range(given.rank)]
    steps = [gaps[i] + 1 if i in axes else 1 for i in range(given.rank)]
    dims = [source.dims[i] if i in axes else d for i, d in enumerate(given.dims)]
    return b.slice(ct, starts, steps=steps, dims=dims, sources=(op.x,))


@live(array.Pad)
def _pad_live(m: Masks, op: Any, mask: Mask) -> Live:
    def moved(value: Value) -> Value:
        value = m.aligned(value, type_of_tensor(op.x).rank)
        return _inside(m.b, value, op, [i for i, d in enumerate(type_of_tensor(value).dims) if d != 1])

    yield tuple(Factor(moved(f.value), f.soft) for f in mask)
    yield from (() for _ in (*op.offsets, *op.extents))


@transpose(array.Concat)
def _concat(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    for start, operand in _parts(b, op):
        yield _part(b, ct, op.axis, start, operand)
    yield from (None for _ in op.extents)


def _parts(b: TensorBuilder, op: Any) -> Iterator[tuple[int | Value, Value]]:
    """Where the operands of a concatenation begin along its axis, and the operands."""
    start: int | Value = 0
    axis = int(op.axis)
    for operand in op.inputs:
        yield start, operand
        extent = type_of_tensor(operand).dims[axis]
        size = extent if isinstance(extent, int) else b.dim(operand, axis)
        start = start + size if isinstance(start, int) and isinstance(size, int) else b.scalars().add(start, size)


def _part(b: TensorBuilder, ct: Value, axis: int, start: int | Value, operand: Value) -> Value:
    dims = list(type_of_tensor(ct).dims)
    starts = [start if i == axis else 0 for i in range(len(dims))]
    dims[axis] = type_of_tensor(operand).dims[axis]
    return b.slice(ct, starts, dims=dims, sources=(operand,))


@live(array.Concat)
def _concat_live(m: Masks, op: Any, mask: Mask) -> Live:
    rank = type_of_tensor(op.result).rank
    for start, operand in _parts(m.b, op):
        yield tuple(
            Factor(_part(m.b, m.aligned(f.value, rank), op.axis, start, operand), f.soft)
            if m.varies(f, rank, [op.axis])
            else f
            for f in mask
        )
    yield from (() for _ in op.extents)

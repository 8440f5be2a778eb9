"""Derivatives of `array`: views are linear, each with its transposed map."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir.attributes import scalar_attr
from ...ir.dialects import array
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.dialects.tensor_op import type_of_tensor
from ...ir.values import Value
from .rules import constant, transpose

constant(array.Constant, array.Full, array.Iota, array.Dim)

Rule = Iterator[Value | None]


@transpose(array.Transpose, moves=True)
def _transpose(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    order = op.permutation
    yield b.transpose(ct, permutation=[order.index(i) for i in range(len(order))])


@transpose(array.Reshape, moves=True)
def _reshape(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    dims = type_of_tensor(op.x).dims
    yield b.reshape(ct, dims, b.extents(dims, op.x))
    yield from (None for _ in op.extents)


@transpose(array.Broadcast)
def _broadcast(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    source, target = type_of_tensor(op.x), type_of_tensor(ct)
    stretched = [a for i, a in enumerate(op.axes) if source.dims[i] == 1 and target.dims[a] != 1]
    new = [a for a in range(target.rank) if a not in op.axes]
    total = b.reduce_sum(ct, axes=sorted(stretched + new)) if stretched or new else ct
    yield b.reshape(total, source.dims, b.extents(source.dims, op.x))
    yield from (None for _ in op.extents)


@transpose(array.Slice, moves=True)
def _slice(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    """Each element back to its place, zeros between: padding with gaps, of the reversed cotangent where steps are
    negative."""
    shape, given = type_of_tensor(op.x).shape, type_of_tensor(ct)
    flipped = [s < 0 for s in op.steps]
    if any(flipped):
        ct = b.slice(
            ct,
            [n - 1 if f else 0 for n, f in zip(given.shape, flipped, strict=True)],
            [-1 if f else n for n, f in zip(given.shape, flipped, strict=True)],
            [-1 if f else 1 for f in flipped],
        )
    low: list[int] = []
    high: list[int] = []
    interior: list[int] = []
    for extent, count, start, step in zip(shape, given.shape, op.starts, op.steps, strict=True):
        gap = abs(step)
        first = start if step > 0 else start + (count - 1) * step
        covered = (count - 1) * gap + 1 if count else 0
        low.append(first if count else 0)
        interior.append(gap - 1)
        high.append(extent - (first if count else 0) - covered)
    zero = scalar_attr(0, given.element)
    yield b.pad(ct, low=low, high=high, interior=interior if any(interior) else None, value=zero)


@transpose(array.Pad, moves=True)
def _pad(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    gaps = op.gaps()
    shape = type_of_tensor(op.x).shape
    steps = [g + 1 for g in gaps]
    stops = [low + (n - 1) * s + 1 if n else low for low, n, s in zip(op.low, shape, steps, strict=True)]
    yield b.slice(ct, op.low, stops, steps)


@transpose(array.Concat, moves=True)
def _concat(b: TensorBuilder, op: Any, ct: Value) -> Rule:
    start = 0
    shape = type_of_tensor(ct).shape
    axis: int = op.axis
    for operand in op.inputs:
        extent: int = type_of_tensor(operand).shape[axis]
        starts = [start if i == axis else 0 for i in range(len(shape))]
        stops = [start + extent if i == axis else n for i, n in enumerate(shape)]
        yield b.slice(ct, starts, stops)
        start += extent

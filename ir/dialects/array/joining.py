"""Tensor ops that join tensors along an axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...cotangents import Factor
from ...definition import INDEX_, PURE, TENSOR, FoldResult, integer, result, variadic_operand
from ...interfaces import BoundsErrors, Evaluates, IsLinear, MovesMasks, PointForm, Tame
from ...support.error_bounds import Bounded
from ...support.shapes import shape_text
from ...support.tensor_op import ResultTyped, type_of_tensor
from ...types import DYNAMIC
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


class Concat(ResultTyped, PointForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """The operands one after another along `axis`; their other extents and element types are equal.

    `extents`: an index value, where the result's extent along `axis` is dynamic.
    """

    name = "array.concat"
    traits = frozenset({PURE})
    inputs = variadic_operand(TENSOR)
    extents = variadic_operand(INDEX_)
    axis = integer()
    result = result(TENSOR)
    assembly = "$inputs (`(` $extents^ `)`)? attr-dict `:` type($inputs) `->` type($result)"

    def is_given(self, axis: int) -> bool:
        return axis == self.axis

    def result_extent(self, axis: int, result: int = 0) -> int | Value | tuple[Value, int]:
        return super().result_extent(axis, result) if axis == self.axis else (self.inputs[0], axis)

    def verify_(self) -> None:
        if not self.inputs:
            raise self.shape_error("needs at least one operand")
        first, *others = [self.tensor(f"operand {i}", v) for i, v in enumerate(self.inputs)]
        axis = self.checked_axis(self.axis, first.rank)
        for t in others:
            if t.element is not first.element:
                raise self.dtype_error(f"element types differ ({first.element}, {t.element}); cast explicitly")
            if t.rank != first.rank or any(a != b for i, (a, b) in enumerate(zip(first.dims, t.dims)) if i != axis):
                raise self.shape_error(
                    f"shapes {shape_text(first.dims)} and {shape_text(t.dims)} differ off axis {axis}"
                )
        made = type_of_tensor(self.result)
        dims = [first.dims[i] if i != axis else d for i, d in enumerate(made.dims)]
        if made.rank != first.rank or made.element is not first.element or list(made.dims) != dims:
            raise self.dtype_error(f"operands like {first} cannot become {made}")
        total = sum(t.shape[axis] for t in (first, *others))
        known = DYNAMIC not in [made.shape[axis], *[t.shape[axis] for t in (first, *others)]]
        if known and made.dims[axis] != total:
            raise self.shape_error(f"axis {axis} of the result has {total} elements, not {made.dims[axis]}")
        super().verify_()

    def point(self, k: PointBuilder) -> Value:
        """A chain of selects over guarded loads: the last operand whose start lies at or before the point."""
        axis = self.axis
        value: Value | None = None
        start: AffineSubscript | int = 0
        for number, operand in enumerate(self.inputs):
            if type_of_tensor(operand).shape[axis] == 0:
                continue
            places = [a - start if i == axis else a for i, a in enumerate(k.axes)]
            element = k.load(number, places, fill=0)
            if value is None:
                value = element
            else:
                here = k.cmp("sge", k.value(k.axes[axis]), k.index_value(start))
                value = k.select(here, element, value)
            start = start + k.extent_of(operand, axis)
        return k.load(0, list(k.axes)) if value is None else value

    def evaluate(self, *operands: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.concatenate(operands[: len(self.inputs)], axis=self.axis)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.inputs[0] if len(self.inputs) == 1 else self.fold_constants(constants)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        for start, operand in self.parts(b):
            yield _part(b, ct, self.axis, start, operand)
        yield from (None for _ in self.extents)

    def parts(self, b: TensorBuilder) -> Iterator[tuple[int | Value, Value]]:
        """Where the operands of a concatenation begin along its axis, and the operands."""
        start: int | Value = 0
        axis = int(self.axis)
        for operand in self.inputs:
            yield start, operand
            extent = type_of_tensor(operand).dims[axis]
            size = extent if isinstance(extent, int) else b.dim(operand, axis)
            start = start + size if isinstance(start, int) and isinstance(size, int) else b.scalars().add(start, size)

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        rank = type_of_tensor(self.result).rank
        for start, operand in self.parts(m.b):
            yield tuple(
                Factor(_part(m.b, m.aligned(f.value, rank), self.axis, start, operand), f.soft)
                if m.varies(f, rank, [self.axis])
                else f
                for f in mask
            )
        yield from (() for _ in self.extents)

    def bound(self, unit: float, *operands: Bounded) -> Bounded:
        return Bounded(self.evaluate(*[v for v, _ in operands]), self.evaluate(*[e for _, e in operands]))


def _part(b: TensorBuilder, ct: Value, axis: int, start: int | Value, operand: Value) -> Value:
    dims = list(type_of_tensor(ct).dims)
    starts = [start if i == axis else 0 for i in range(len(dims))]
    dims[axis] = type_of_tensor(operand).dims[axis]
    return b.slice(ct, starts, dims=dims, sources=(operand,))

"""Views: the same elements under other subscripts.  They move nothing; their users load through them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...cotangents import Factor
from ...definition import INDEX_, PURE, TENSOR, FoldResult, integers, operand, result, variadic_operand
from ...interfaces import BoundsErrors, Evaluates, IsLinear, MovesMasks, Tame, ViewForm
from ...support.error_bounds import Bounded, moved
from ...support.shapes import Dims, Group, reassociation, shape_text, tensor_type
from ...support.tensor_op import ResultTyped, TensorOp, type_of_tensor
from ...types import DYNAMIC, Type
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


class Transpose(TensorOp, ViewForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """Axes in another order: axis i of the result is axis `permutation[i]` of x."""

    name = "array.transpose"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    permutation = integers()
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x")
        if sorted(self.permutation) != list(range(type.rank)):
            raise self.shape_error(
                f"{list(self.permutation)} is not a permutation of the axes of {shape_text(type.dims)}"
            )
        return [tensor_type([type.dims[p] for p in self.permutation], type.element)]

    def view(self, k: PointBuilder, subscripts: Sequence[AffineSubscript | int]) -> list[AffineSubscript | int]:
        """Subscripts of the result -> subscripts of x."""
        return [subscripts[self.permutation.index(axis)] for axis in range(len(subscripts))]

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return x.transpose(self.permutation)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if list(self.permutation) == list(range(len(self.permutation))):
            return self.x
        inner = self.x.defining_op
        if isinstance(inner, Transpose) and all(inner.permutation[p] == i for i, p in enumerate(self.permutation)):
            return inner.x
        return self.fold_constants(constants)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        order = self.permutation
        yield b.transpose(ct, permutation=[order.index(i) for i in range(len(order))])

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        order = self.permutation
        back = [order.index(i) for i in range(len(order))]
        yield tuple(Factor(m.b.transpose(m.aligned(f.value, len(order)), permutation=back), f.soft) for f in mask)

    def bound(self, unit: float, x: Bounded, *rest: Bounded) -> Bounded:
        return moved(self.evaluate, x, *rest)


class Reshape(ResultTyped, ViewForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """The elements in row-major order under another shape of the same size.

    `extents`: one index value for each dynamic extent of the result; that the sizes fit is the program's promise.
    """

    name = "array.reshape"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    extents = variadic_operand(INDEX_)
    result = result(TENSOR)
    assembly = "$x (`(` $extents^ `)`)? attr-dict `:` type($x) `->` type($result)"

    def verify_(self) -> None:
        super().verify_()
        self.groups()

    def groups(self) -> list[Group]:
        """Which axes of x become which axes of the result; ShapeError when the shapes do not fit."""
        old, new = self.tensor("x"), type_of_tensor(self.result)
        if old.element is not new.element:
            raise self.dtype_error(f"cannot turn {old} into {new}")
        groups = reassociation(old.dims, new.dims)
        if groups is None:
            raise self.shape_error(f"shapes {shape_text(old.dims)} and {shape_text(new.dims)} differ in size")
        return groups

    def view(self, k: PointBuilder, subscripts: Sequence[AffineSubscript | int]) -> list[AffineSubscript | int]:
        """Subscripts of the result -> subscripts of x."""
        old = type_of_tensor(self.x)
        out: list[AffineSubscript | int] = [0] * old.rank
        for mine, theirs in self.groups():
            position: AffineSubscript | int = 0
            for axis in theirs:
                here = subscripts[axis]
                position = k.linear(position, self._extent(k, axis), here) if axis != theirs[0] else here
            stride = 1
            for axis in reversed(mine):
                quotient = position // stride if stride != 1 else position
                if axis == mine[0]:
                    out[axis] = quotient
                elif old.shape[axis] != DYNAMIC:
                    out[axis] = quotient % old.shape[axis]
                    stride *= old.shape[axis]
                else:
                    position, out[axis] = k.divided(quotient, k.extent_of(self.x, axis))
                    stride = 1
        return out

    def _extent(self, k: PointBuilder, axis: int) -> AffineSubscript | int:
        """An extent of the result."""
        found = self.result_extent(axis)
        assert not isinstance(found, tuple)
        return k.outside(found)

    def evaluate(self, x: Array, *extents: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return x.reshape(self.run_shape(extents))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.x.type is self.result.type:
            return self.x
        inner = self.x.defining_op
        if isinstance(inner, Reshape) and inner.x.type is self.result.type:
            return inner.x
        return self.fold_constants(constants)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        dims = type_of_tensor(self.x).dims
        yield b.reshape(ct, dims, b.extents(dims, self.x))
        yield from (None for _ in self.extents)

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        """Along the groups of axes that become groups of axes: a factor that does not vary along one stays so."""
        source, target = type_of_tensor(self.x).dims, type_of_tensor(self.result).dims
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
            return m.b.reshape(m.filled(value, self.result, full), wanted, m.b.extents(wanted, self.x))

        yield tuple(Factor(moved(f.value), f.soft) for f in mask)
        yield from (() for _ in self.extents)

    def bound(self, unit: float, x: Bounded, *rest: Bounded) -> Bounded:
        return moved(self.evaluate, x, *rest)


class Broadcast(ResultTyped, ViewForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """x repeated to a larger shape: axis i of x is axis `axes[i]` of the result, stretched where its extent is 1;
    along the other axes of the result x is repeated.  `extents`: one index value for each dynamic extent."""

    name = "array.broadcast"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    extents = variadic_operand(INDEX_)
    axes = integers()
    result = result(TENSOR)
    assembly = "$x (`(` $extents^ `)`)? attr-dict `:` type($x) `->` type($result)"

    def verify_(self) -> None:
        super().verify_()
        old, new = self.tensor("x"), type_of_tensor(self.result)
        axes = self.checked_axes(self.axes, new.rank)
        if old.element is not new.element:
            raise self.dtype_error(f"cannot turn {old} into {new}")
        if len(axes) != old.rank or list(axes) != sorted(axes):
            raise self.shape_error(f"axes {list(axes)} must be {old.rank} ascending axes of the result")
        for extent, axis in zip(old.dims, axes, strict=True):
            if extent != 1 and extent != new.dims[axis]:
                raise self.shape_error(f"shape {shape_text(old.dims)} does not broadcast to {shape_text(new.dims)}")

    def view(self, k: PointBuilder, subscripts: Sequence[AffineSubscript | int]) -> list[AffineSubscript | int]:
        """Subscripts of the result -> subscripts of x."""
        old, new = type_of_tensor(self.x), type_of_tensor(self.result)
        return [
            0 if extent == 1 and new.dims[axis] != 1 else subscripts[axis]
            for extent, axis in zip(old.dims, self.axes, strict=True)
        ]

    def evaluate(self, x: Array, *extents: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        shape = [1] * type_of_tensor(self.result).rank
        for extent, axis in zip(x.shape, self.axes, strict=True):
            shape[axis] = extent
        return np.broadcast_to(x.reshape(shape), self.run_shape(extents))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.x if self.x.type is self.result.type else self.fold_constants(constants)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        source, summed = type_of_tensor(self.x), self.repeated()
        total = b.reduce_sum(ct, axes=summed) if summed else ct
        yield b.reshape(total, source.dims, b.extents(source.dims, self.x))
        yield from (None for _ in self.extents)

    def repeated(self) -> list[int]:
        """The axes of a broadcast along which elements repeat."""
        source, target = type_of_tensor(self.x), type_of_tensor(self.result)
        stretched = [a for i, a in enumerate(self.axes) if source.dims[i] == 1 and target.dims[a] != 1]
        return sorted(stretched + [a for a in range(target.rank) if a not in self.axes])

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        rank = type_of_tensor(self.result).rank
        kept = m.folded(mask, rank, self.repeated(), self.x)
        yield m.dropped(kept, rank, [a for a in range(rank) if a not in self.axes])
        yield from (() for _ in self.extents)

    def bound(self, unit: float, x: Bounded, *rest: Bounded) -> Bounded:
        return moved(self.evaluate, x, *rest)


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

"""Views: the same elements under other subscripts.  They move nothing; their users load through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute
from ...definition import INDEX_, PURE, TENSOR, FoldResult, integers, operand, result, variadic_operand
from ...interfaces import Evaluates, Tame, ViewForm
from ...types import DYNAMIC, Type
from ..shapes import Group, reassociation, shape_text, tensor_type
from ..tensor_op import ResultTyped, TensorOp, type_of_tensor

if TYPE_CHECKING:
    from ..point import Index, Point


class Transpose(TensorOp, ViewForm, Evaluates, Tame):
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
            raise self.shape_error(f"{list(self.permutation)} is no permutation of the axes of {shape_text(type.dims)}")
        return [tensor_type([type.dims[p] for p in self.permutation], type.element)]

    def view(self, k: Point, subscripts: Sequence[Index | int]) -> list[Index | int]:
        """Subscripts of the result -> subscripts of x."""
        return [subscripts[self.permutation.index(axis)] for axis in range(len(subscripts))]

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        return x.transpose(self.permutation)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if list(self.permutation) == list(range(len(self.permutation))):
            return self.x
        inner = self.x.defining_op
        if isinstance(inner, Transpose) and all(inner.permutation[p] == i for i, p in enumerate(self.permutation)):
            return inner.x
        return self.fold_constants(constants)


class Reshape(ResultTyped, ViewForm, Evaluates, Tame):
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

    def view(self, k: Point, subscripts: Sequence[Index | int]) -> list[Index | int]:
        """Subscripts of the result -> subscripts of x."""
        old = type_of_tensor(self.x)
        out: list[Index | int] = [0] * old.rank
        for mine, theirs in self.groups():
            position: Index | int = 0
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

    def _extent(self, k: Point, axis: int) -> Index | int:
        """An extent of the result."""
        found = self.result_extent(axis)
        assert not isinstance(found, tuple)
        return k.outside(found)

    def evaluate(self, x: Any, *extents: Any) -> Any:
        """NumPy meaning."""
        return x.reshape(self.run_shape(extents))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.x.type is self.result.type:
            return self.x
        inner = self.x.defining_op
        if isinstance(inner, Reshape) and inner.x.type is self.result.type:
            return inner.x
        return self.fold_constants(constants)


class Broadcast(ResultTyped, ViewForm, Evaluates, Tame):
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

    def view(self, k: Point, subscripts: Sequence[Index | int]) -> list[Index | int]:
        """Subscripts of the result -> subscripts of x."""
        old, new = type_of_tensor(self.x), type_of_tensor(self.result)
        return [
            0 if extent == 1 and new.dims[axis] != 1 else subscripts[axis]
            for extent, axis in zip(old.dims, self.axes, strict=True)
        ]

    def evaluate(self, x: Any, *extents: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        shape = [1] * type_of_tensor(self.result).rank
        for extent, axis in zip(x.shape, self.axes, strict=True):
            shape[axis] = extent
        return np.broadcast_to(x.reshape(shape), self.run_shape(extents))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.x if self.x.type is self.result.type else self.fold_constants(constants)

"""Elements chosen by computed subscripts, and their transposes.

A negative index counts from the end.  An index outside [-n, n) is clamped to the nearest element, on every device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...definition import PURE, TENSOR, integer, operand, result
from ...numeric import dtype
from ...types import I1, I64, INDEX, IntegerType, TensorType, Type
from ...values import Value
from ..reference import narrow, where, wide
from ..scalar_builder import is_unsigned
from ..shapes import shape_text, tensor_type
from ..tensor_op import INTEGERS, NUMBER, TensorOp, type_of_tensor

if TYPE_CHECKING:
    from ..point import Index, Point


def clamped(k: Point, index: Value, element: Type, extent: int | Value) -> Index:
    """A loaded index as a subscript inside [0, extent)."""
    assert isinstance(element, IntegerType)
    wide_index = k.index_cast(k.cast(index, element, I64), INDEX)
    size = k.constant(extent, INDEX) if isinstance(extent, int) else extent
    zero, last = k.constant(0, INDEX), k.sub(size, k.constant(1, INDEX))
    below = k.cmp("slt", wide_index, zero)
    if element.width == 64 and is_unsigned(element):
        # Read as signed, the upper half looks negative; it lies beyond every extent.
        place = k.select(below, last, wide_index)
    else:
        place = k.select(below, k.add(wide_index, size), wide_index)
        place = k.select(k.cmp("slt", place, zero), zero, place)
    return k.index(k.select(k.cmp("sgt", place, last), last, place))


def places(indices: Any, extent: int) -> Any:
    """The same on arrays."""
    import numpy as np

    if indices.dtype == np.uint64:
        return np.minimum(indices, np.uint64(extent - 1)).astype(np.int64)
    signed = indices.astype(np.int64)
    return np.clip(where(signed < 0, signed + extent, signed), 0, extent - 1)


class Indexing(TensorOp):
    """Base: checks that the indices are integers and that there is something to choose from."""

    traits = frozenset({PURE})
    axis = integer()

    def check_along(self, x: TensorType, indices: TensorType) -> None:
        """Refuse shapes that differ off the axis."""
        axis = self.checked_axis(self.axis, x.rank)
        if x.rank != indices.rank or any(a != b for i, (a, b) in enumerate(zip(x.dims, indices.dims)) if i != axis):
            raise self.shape_error(f"shapes {shape_text(x.dims)} and {shape_text(indices.dims)} differ off axis {axis}")

    def check_choice(self, chosen: TensorType, indices: TensorType) -> None:
        """Refuse to choose from an empty axis."""
        axis = self.checked_axis(self.axis, chosen.rank)
        if chosen.dims[axis] == 0 and 0 not in indices.dims:
            raise self.shape_error(f"nothing to choose from on axis {axis} of shape {shape_text(chosen.dims)}")


class Take(Indexing):
    """The slices of x along `axis` that `indices` (any rank) name: `numpy.take` with clamped indices.

    The result has the axes of `indices` in place of `axis`.
    """

    name = "linalg.take"
    x = operand(TENSOR)
    indices = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$x `,` $indices attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        x, indices = self.tensor("x"), self.tensor("indices", elements=INTEGERS)
        self.check_choice(x, indices)
        return [tensor_type((*x.dims[: self.axis], *indices.dims, *x.dims[self.axis + 1 :]), x.element)]

    def point(self, k: Point) -> Value:
        """A load at a loaded subscript."""
        indices, axis = type_of_tensor(self.indices), self.axis
        stop = axis + indices.rank
        index = k.load(1, k.axes[axis:stop])
        chosen = clamped(k, index, indices.element, k.extent(0, axis))
        return k.load(0, [*k.axes[:axis], chosen, *k.axes[stop:]])

    def evaluate(self, x: Any, indices: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        return np.take(x, places(indices, x.shape[self.axis]), axis=self.axis)


class TakeAlongAxis(Indexing):
    """`result[.., i, ..] = x[.., indices[.., i, ..], ..]` along `axis`: `numpy.take_along_axis` with clamped indices.

    The extents off `axis` are equal.
    """

    name = "linalg.take_along_axis"
    x = operand(TENSOR)
    indices = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$x `,` $indices attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        x, indices = self.tensor("x"), self.tensor("indices", elements=INTEGERS)
        self.check_along(x, indices)
        self.check_choice(x, indices)
        return [tensor_type(indices.dims, x.element)]

    def point(self, k: Point) -> Value:
        """A load at a loaded subscript."""
        chosen = clamped(k, k.load(1, k.axes), type_of_tensor(self.indices).element, k.extent(0, self.axis))
        return k.load(0, [chosen if i == self.axis else a for i, a in enumerate(k.axes)])

    def evaluate(self, x: Any, indices: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        return np.take_along_axis(x, places(indices, x.shape[self.axis]), axis=self.axis)


class ScatterAdd(Indexing):
    """x with every slice of `updates` added to the slice along `axis` that `indices` names: the transpose of `take`.

    Where several updates meet, all are added.
    """

    name = "linalg.scatter_add"
    x = operand(TENSOR)
    indices = operand(TENSOR)
    updates = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$x `,` $indices `,` $updates attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        x, indices = self.tensor("x", elements=NUMBER), self.tensor("indices", elements=INTEGERS)
        updates = self.tensor("updates")
        self.same_elements("x", "updates")
        self.check_choice(x, indices)
        expected = (*x.dims[: self.axis], *indices.dims, *x.dims[self.axis + 1 :])
        if updates.dims != expected:
            got = shape_text(updates.dims)
            raise self.shape_error(f"updates must have the shape {shape_text(expected)}, got {got}")
        return [x]

    def scatter(self, k: Point) -> tuple[Value, list[Index | int]]:
        """At a point of `updates`: the value and the subscripts of the result to which it is added."""
        indices, axis = type_of_tensor(self.indices), self.axis
        stop = axis + indices.rank
        chosen = clamped(k, k.load(1, k.axes[axis:stop]), indices.element, k.extent(0, axis))
        return k.load(2, k.axes), [*k.axes[:axis], chosen, *k.axes[stop:]]

    def evaluate(self, x: Any, indices: Any, updates: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        out = np.moveaxis(np.array(wide(x)), self.axis, 0)
        chosen = places(indices, x.shape[self.axis])
        parts = np.moveaxis(wide(updates), range(self.axis, self.axis + indices.ndim), range(indices.ndim))
        np.add.at(out, chosen, parts)
        return narrow(np.moveaxis(out, 0, self.axis), dtype(type_of_tensor(self.x).element))


class ScatterAddAlongAxis(Indexing):
    """x with every element of `updates` added at the place along `axis` that `indices`, of the same shape, names: the
    transpose of `take_along_axis`."""

    name = "linalg.scatter_add_along_axis"
    x = operand(TENSOR)
    indices = operand(TENSOR)
    updates = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$x `,` $indices `,` $updates attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        x, indices = self.tensor("x", elements=NUMBER), self.tensor("indices", elements=INTEGERS)
        updates = self.tensor("updates")
        self.same_elements("x", "updates")
        self.check_along(x, indices)
        self.check_choice(x, indices)
        if updates.dims != indices.dims:
            shapes = f"updates {shape_text(updates.dims)} and indices {shape_text(indices.dims)}"
            raise self.shape_error(f"{shapes} differ in shape")
        return [x]

    def scatter(self, k: Point) -> tuple[Value, list[Index | int]]:
        """At a point of `updates`: the value and the subscripts of the result to which it is added."""
        chosen = clamped(k, k.load(1, k.axes), type_of_tensor(self.indices).element, k.extent(0, self.axis))
        return k.load(2, k.axes), [chosen if i == self.axis else a for i, a in enumerate(k.axes)]

    def evaluate(self, x: Any, indices: Any, updates: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        out = np.array(wide(x))
        at: list[Any] = list(np.ix_(*map(range, indices.shape)))
        at[self.axis] = places(indices, x.shape[self.axis])
        np.add.at(out, tuple(at), wide(updates))
        return narrow(out, dtype(type_of_tensor(self.x).element))


class OneHot(TensorOp):
    """Which class each row has: i1 in the shape of `like`, true where the subscript along the last axis is the one that
    `indices`, in the shape of `like` without its last axis, names; clamped as in `take`.

    Only the shape of `like` counts.
    """

    name = "linalg.one_hot"
    traits = frozenset({PURE})
    indices = operand(TENSOR)
    like = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$indices `,` $like attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        indices, like = self.tensor("indices", elements=INTEGERS), self.tensor("like")
        if like.rank == 0 or indices.dims != like.dims[:-1]:
            shapes = f"indices {shape_text(indices.dims)} and like {shape_text(like.dims)}"
            raise self.shape_error(f"{shapes}: indices must have the shape of like without its last axis")
        if like.dims[-1] == 0 and 0 not in indices.dims:
            raise self.shape_error(f"nothing to choose from on the last axis of shape {shape_text(like.dims)}")
        return [tensor_type(like.dims, I1)]

    def point(self, k: Point) -> Value:
        """A comparison of the subscript with the loaded one."""
        indices = type_of_tensor(self.indices)
        chosen = clamped(k, k.load(0, k.axes[:-1]), indices.element, k.extent(1, indices.rank))
        return k.cmp("eq", k.value(k.axes[-1]), k.value(chosen))

    def evaluate(self, indices: Any, like: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        classes: int = like.shape[-1]
        return np.equal(places(indices, classes)[..., None], np.arange(classes))

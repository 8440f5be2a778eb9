"""Elements chosen by computed subscripts, and their transposes.

A negative index counts from the end.  What an index outside [-n, n) names is not there, on every device: it reads as
NaN (of integers and bools as 0), what is added to it is dropped, and no derivative passes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...cotangents import Factor
from ...definition import PURE, TENSOR, enumeration, integer, operand, result
from ...interfaces import BoundsErrors, Evaluates, IsLinear, MovesMasks, NoDerivative, PointForm, ScatterForm, Tame
from ...numeric import dtype
from ...support.error_bounds import Bounded, exact, moved, rounded
from ...support.reference import narrow, where, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import INTEGERS, NUMBER, TensorOp, accumulator, type_of_tensor
from ...types import F32, F64, I1, I64, INDEX, FloatType, IntegerType, TensorType, Type, is_unsigned
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


def wrapped(k: PointBuilder, index: Value, element: Type, extent: int | Value) -> Value:
    """A loaded index as an index value, negative ones counted from the end; it may lie outside [0, extent)."""
    assert isinstance(element, IntegerType)
    place = k.index_cast(k.cast(index, element, I64), INDEX)
    if is_unsigned(element):
        return place  # the upper half of ui64 reads as negative, and lies outside as it should
    size = k.index_of(extent)
    return k.select(k.cmp("slt", place, k.constant(0, INDEX)), k.add(place, size), place)


def places(indices: Array, extent: int) -> tuple[Array, Array]:
    """The same on arrays: subscripts, 0 where they lie outside, and which lie inside."""
    import numpy as np

    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(extent))
    signed = indices.astype(np.int64)
    found = where(signed < 0, signed + extent, signed)
    inside = (found >= 0) & (found < extent)
    return where(inside, found, 0), inside


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


class Reading(Indexing):
    """Base: `missing` says what is read where an index lies outside, NaN (of integers and bools 0) or 0."""

    missing = enumeration("nan", "zero", default="nan")

    def fill(self) -> float:
        """What is read where an index lies outside."""
        is_float = isinstance(type_of_tensor(self.operands[0]).element, FloatType)
        return math.nan if is_float and self.missing == "nan" else 0

    def read(
        self, k: PointBuilder, index: Value, before: Sequence[AffineSubscript], after: Sequence[AffineSubscript]
    ) -> Value:
        """The element of x that a loaded index names, between subscripts along the axes before and after."""
        extent, element = k.extent(0, self.axis), type_of_tensor(self.operands[1]).element
        place = wrapped(k, index, element, extent)
        if not isinstance(extent, int):  # which may be 0: then there is no element to load instead
            return k.load(0, [*before, k.index(place), *after], self.fill())
        inside = k.cmp("ult", place, k.constant(extent, INDEX))
        found = k.load(0, [*before, k.index(k.select(inside, place, 0)), *after])
        return k.select(inside, found, self.fill())


class Take(Reading, PointForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """The slices of x along `axis` that `indices` (any rank) name: `numpy.take`.

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

    def point(self, k: PointBuilder) -> Value:
        """A load at a loaded subscript."""
        indices, axis = type_of_tensor(self.indices), self.axis
        stop = axis + indices.rank
        return self.read(k, k.load(1, k.axes[axis:stop]), k.axes[:axis], k.axes[stop:])

    def evaluate(self, x: Array, indices: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        at, inside = places(indices, x.shape[self.axis])
        found = np.take(x, at, axis=self.axis)
        known = inside.reshape((*inside.shape, *(1,) * (x.ndim - self.axis - 1)))
        return where(known, found, np.asarray(self.fill()).astype(x.dtype))

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield b.index_add(b.full_like(0.0, self.x), self.indices, ct, axis=self.axis)
        yield None

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        """Live where a place that took the slice is; a slice that nothing took is dead."""
        source, rank, axis = type_of_tensor(self.x), type_of_tensor(self.result).rank, self.axis
        chosen = range(axis, axis + type_of_tensor(self.indices).rank)
        moving, staying = m.parted(mask, rank, chosen)
        staying = m.inserted(m.dropped(staying, rank, chosen), rank - len(chosen), [axis])
        if moving or not m.tame(self.x):
            counts = m.counts(moving, self.result, chosen)
            dims = list(type_of_tensor(counts).dims)
            dims[chosen.start : chosen.stop] = [source.dims[axis]]
            zeros = m.b.full(0.0, tensor_type(dims, F32), m.b.extents(dims, self.x))
            taken = m.b.greater(m.b.index_add(zeros, self.indices, counts, axis=axis), 0.0)
            staying = (*staying, Factor(taken))
        yield staying
        yield ()

    def bound(self, unit: float, x: Bounded, indices: Bounded) -> Bounded:
        import numpy as np

        value, error = moved(self.evaluate, x, indices)
        return Bounded(value, np.nan_to_num(error, posinf=np.inf))


class TakeAlongAxis(Reading, PointForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """`result[.., i, ..] = x[.., indices[.., i, ..], ..]` along `axis`: `numpy.take_along_axis`.

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

    def point(self, k: PointBuilder) -> Value:
        """A load at a loaded subscript."""
        return self.read(k, k.load(1, k.axes), k.axes[: self.axis], k.axes[self.axis + 1 :])

    def evaluate(self, x: Array, indices: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        at, inside = places(indices, x.shape[self.axis])
        return where(inside, np.take_along_axis(x, at, axis=self.axis), np.asarray(self.fill()).astype(x.dtype))

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield b.scatter_add(b.full_like(0.0, self.x), self.indices, ct, axis=self.axis)
        yield None

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        """Live where a place that took the element is; an element that nothing took is dead."""
        rank = type_of_tensor(self.x).rank
        moving, staying = m.parted(mask, rank, [self.axis])
        if moving or not m.tame(self.x):
            counts = m.counts(moving, self.result, range(rank))
            zeros = m.b.full_like(0.0, self.x, F32)
            taken = m.b.greater(m.b.scatter_add(zeros, self.indices, counts, axis=self.axis), 0.0)
            staying = (*staying, Factor(taken))
        yield staying
        yield ()

    def bound(self, unit: float, x: Bounded, indices: Bounded) -> Bounded:
        import numpy as np

        value, error = moved(self.evaluate, x, indices)
        return Bounded(value, np.nan_to_num(error, posinf=np.inf))


MANY = 64
"""How many updates an element may get, on the average, before sums of f32 are kept in f64: the sum of so many in one
chain is as exact as a chain of chains."""


class Adding(Indexing, Evaluates, BoundsErrors):
    """Base: where an index lies outside, what changes nothing is added to an element that is there.

    Sums of f16 and bf16 are kept in f32, those of f32 where an element gets many updates in f64, and rounded once.
    """

    def sum_type(self, has_f64: bool) -> Type:
        """The type that the sums are kept in; extents that are not known count as few updates."""
        x, updates = type_of_tensor(self.operands[0]), type_of_tensor(self.operands[2])
        if x.element is not F32 or not has_f64 or not (x.is_static and updates.is_static):
            return accumulator(x.element)
        return F64 if updates.num_elements > MANY * x.num_elements else F32

    def widened(self, b: TensorBuilder, to: Type, starts_at_zero: bool) -> Value:
        """The op on elements of another type, rounded at the end."""
        x, indices, updates = self.operands
        start = b.full_like(0.0, x, to) if starts_at_zero else b.cast(x, to)
        total = b.apply(type(self), start, indices, b.cast(updates, to), axis=self.axis)
        return b.cast(total, type_of_tensor(x).element)

    @abstractmethod
    def sums(self, x: Array, indices: Array, updates: Array) -> Array:
        """The result in the dtype of the arrays."""

    def evaluate(self, x: Array, indices: Array, updates: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return narrow(self.sums(wide(x), indices, wide(updates)), dtype(type_of_tensor(self.operands[0]).element))

    def bound(self, unit: float, x: Bounded, indices: Bounded, updates: Bounded) -> Bounded:
        at = indices.value
        magnitude = self.sums(abs(x.value) + x.error, at, abs(updates.value) + updates.error)
        error = self.sums(x.error, at, updates.error) + (updates.value.size + 1) * unit * magnitude
        return rounded(self.sums(x.value, at, updates.value), error, unit)

    def target(self, k: PointBuilder, at: Sequence[AffineSubscript | int]) -> tuple[Value, AffineSubscript]:
        """At a point of `updates`: the value to add, and the subscript along the axis at which it is added."""
        x = type_of_tensor(self.operands[0])
        extent = k.extent(0, self.axis)
        size = k.index_of(extent)
        place = wrapped(k, k.load(1, at), type_of_tensor(self.operands[1]).element, extent)
        inside = k.cmp("ult", place, size)
        neutral = -0.0 if isinstance(x.element, FloatType) else 0
        return k.select(inside, k.load(2, k.axes), neutral), k.index(k.select(inside, place, 0))


class IndexAdd(Adding, ScatterForm, Tame, IsLinear, MovesMasks):
    """x with every slice of `updates` added to the slice along `axis` that `indices` names: the transpose of `take`.

    Where several updates meet, all are added.
    """

    name = "linalg.index_add"
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

    def scatter(self, k: PointBuilder) -> tuple[Value, list[AffineSubscript | int]]:
        """At a point of `updates`: the value and the subscripts of the result to which it is added."""
        axis = self.axis
        stop = axis + type_of_tensor(self.indices).rank
        value, chosen = self.target(k, k.axes[axis:stop])
        return value, [*k.axes[:axis], chosen, *k.axes[stop:]]

    def sums(self, x: Array, indices: Array, updates: Array) -> Array:
        import numpy as np

        out = np.moveaxis(np.array(x), self.axis, 0)
        chosen, inside = places(indices, x.shape[self.axis])
        parts = np.moveaxis(updates, range(self.axis, self.axis + indices.ndim), range(indices.ndim))
        np.add.at(out, chosen[inside], parts[inside])
        return np.moveaxis(out, 0, self.axis)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield ct
        yield None
        yield b.take(ct, self.indices, axis=self.axis, missing="zero")

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        rank, axis, count = type_of_tensor(self.x).rank, self.axis, type_of_tensor(self.indices).rank
        moving, staying = m.parted(mask, rank, [axis])
        yield mask
        yield ()
        taken = (Factor(m.b.take(m.aligned(f.value, rank), self.indices, axis=axis), f.soft) for f in moving)
        yield (*taken, *m.inserted(m.dropped(staying, rank, [axis]), rank - 1, range(axis, axis + count)))


class ScatterAdd(Adding, ScatterForm, Tame, IsLinear, MovesMasks):
    """x with every element of `updates` added at the place along `axis` that `indices`, of the same shape, names: the
    transpose of `take_along_axis`."""

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
        self.check_along(x, indices)
        self.check_choice(x, indices)
        if updates.dims != indices.dims:
            shapes = f"updates {shape_text(updates.dims)} and indices {shape_text(indices.dims)}"
            raise self.shape_error(f"{shapes} differ in shape")
        return [x]

    def scatter(self, k: PointBuilder) -> tuple[Value, list[AffineSubscript | int]]:
        """At a point of `updates`: the value and the subscripts of the result to which it is added."""
        value, chosen = self.target(k, k.axes)
        return value, [chosen if i == self.axis else a for i, a in enumerate(k.axes)]

    def sums(self, x: Array, indices: Array, updates: Array) -> Array:
        import numpy as np

        out = np.array(x)
        at: list[Any] = [*np.indices(indices.shape)]
        at[self.axis], inside = places(indices, x.shape[self.axis])
        np.add.at(out, tuple([p[inside] for p in at]), updates[inside])
        return out

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield ct
        yield None
        yield b.take_along_axis(ct, self.indices, axis=self.axis, missing="zero")

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        rank = type_of_tensor(self.x).rank
        moving, staying = m.parted(mask, rank, [self.axis])

        def taken(value: Value) -> Value:
            return m.b.take_along_axis(m.filled(value, self.result, range(rank)), self.indices, axis=self.axis)

        yield mask
        yield ()
        yield (*(Factor(taken(f.value), f.soft) for f in moving), *staying)


class OneHot(TensorOp, PointForm, Evaluates, Tame, NoDerivative, BoundsErrors):
    """Which class each row has: i1 in the shape of `like`, true where the subscript along the last axis is the one that
    `indices`, in the shape of `like` without its last axis, names; false where that is negative or too large.

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
        return [tensor_type(like.dims, I1)]

    def point(self, k: PointBuilder) -> Value:
        """A comparison of the subscript with the loaded one."""
        # In 64 bits the upper half of ui64 reads as negative, which no subscript is.
        chosen = k.cast(k.load(0, k.axes[:-1]), type_of_tensor(self.indices).element, I64)
        return k.cmp("eq", k.index_value(k.axes[-1]), k.index_cast(chosen, INDEX))

    def evaluate(self, indices: Array, like: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        classes: int = like.shape[-1]
        return np.equal(indices[..., None], np.arange(classes))

    def bound(self, unit: float, indices: Bounded, like: Bounded) -> Bounded:
        return exact(self.evaluate(indices.value, like.value))

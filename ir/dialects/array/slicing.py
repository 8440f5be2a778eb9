"""Parts of tensors, and tensors with a margin.

Where extents, starts or margins are known only at run time, index operands give them: in the list of a property
`DYNAMIC` stands for the next of them.  An axis that is taken whole, or gets no margin, keeps its extent and needs none.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, FloatAttr, IntegerAttr, scalar_attr
from ...cotangents import Factor
from ...definition import INDEX_, PURE, TENSOR, FoldResult, attr, integers, operand, result, variadic_operand
from ...interfaces import BoundsErrors, Evaluates, IsLinear, MovesMasks, PointForm, Tame, ViewForm
from ...numeric import constant as constant_scalar
from ...support import mixed
from ...support.error_bounds import Bounded, moved
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import ResultTyped, type_of_tensor
from ...types import DYNAMIC, I1, TensorType
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


class Cut(ResultTyped):
    """What slices and paddings share: axes that stay as they are, and operands for what is not known."""

    @abstractmethod
    def stays(self, axis: int) -> bool:
        """Whether an axis of the result is that of x."""

    def is_given(self, axis: int) -> bool:
        return not self.stays(axis)

    def result_extent(self, axis: int, result: int = 0) -> int | Value | tuple[Value, int]:
        x: Value = getattr(self, "x")  # noqa: B009
        return (x, axis) if self.stays(axis) else super().result_extent(axis, result)

    def checked_types(self) -> tuple[TensorType, TensorType]:
        """The types of x and of the result, of one rank and element."""
        old, new = self.tensor("x"), type_of_tensor(self.results[0])
        if old.element is not new.element or old.rank != new.rank:
            raise self.dtype_error(f"cannot turn {old} into {new}")
        return old, new

    def run_extents(self, x: Any, given: Sequence[Any]) -> list[int]:
        """The result's shape at run time."""
        rest = iter(given)
        dims = type_of_tensor(self.results[0]).dims
        return [
            d if isinstance(d, int) else x.shape[i] if self.stays(i) else int(next(rest)) for i, d in enumerate(dims)
        ]


class Slice(Cut, ViewForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """On each axis the elements at range(start, stop, step); a negative step reverses (its stop may be -1).

    All must lie inside x.  `offsets`: an index value for each start that is `DYNAMIC`.  `extents`: one for each
    dynamic extent of the result, unless the axis is taken whole (start 0, stop `DYNAMIC`, step 1, the same symbol).
    The stop is `DYNAMIC` where the result's extent says it.
    """

    name = "array.slice"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    offsets = variadic_operand(INDEX_)
    extents = variadic_operand(INDEX_)
    starts = integers()
    stops = integers()
    steps = integers()
    first = mixed.Entries("starts", "offsets", "starts")
    """The place of the first element on each axis."""
    result = result(TENSOR)
    assembly = "$x (`[` $offsets^ `]`)? (`(` $extents^ `)`)? attr-dict `:` type($x) `->` type($result)"

    def stays(self, axis: int) -> bool:
        old, new = type_of_tensor(self.x), type_of_tensor(self.result)
        limits = self.starts[axis], self.stops[axis], self.steps[axis]
        return limits == (0, DYNAMIC, 1) and old.dims[axis] == new.dims[axis]

    def verify_(self) -> None:
        old, new = self.checked_types()
        if not len(self.starts) == len(self.stops) == len(self.steps) == old.rank:
            raise self.shape_error(f"needs a start, a stop and a step for each axis of {shape_text(old.dims)}")
        super().verify_()
        Slice.first.check(self)
        for axis, (start, stop, step) in enumerate(zip(self.starts, self.stops, self.steps, strict=True)):
            if step == 0:
                raise self.shape_error(f"the step of axis {axis} is 0")
            limits = [n for n in (start, stop) if n != DYNAMIC]
            if any(n < -1 for n in limits) or (-1 in limits and step > 0):
                raise self.shape_error(f"negative limits on axis {axis}: {[start, stop, step]}")
            extent, count = old.dims[axis], new.dims[axis]
            if start == DYNAMIC or self.stays(axis):
                continue
            taken = range(start, stop, step) if stop != DYNAMIC else None
            if taken is None and isinstance(count, int):
                taken = range(start, start + count * step, step)
            if taken is None:
                continue
            if len(taken) != count:
                raise self.shape_error(f"{taken} has {len(taken)} elements, axis {axis} of the result {count}")
            if isinstance(extent, int) and len(taken) and not (0 <= taken[0] < extent and 0 <= taken[-1] < extent):
                raise self.shape_error(f"{taken} leaves axis {axis} of shape {shape_text(old.dims)}")

    def view(self, k: PointBuilder, subscripts: Sequence[AffineSubscript | int]) -> list[AffineSubscript | int]:
        """Subscripts of the result -> subscripts of x."""
        starts = [k.outside(s) for s in self.first]
        return [s * step + start for s, start, step in zip(subscripts, starts, self.steps, strict=True)]

    def evaluate(self, x: Array, *given: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        offsets, extents = given[: len(self.offsets)], given[len(self.offsets) :]
        counts = self.run_extents(x, extents)
        starts = Slice.first.filled(self, offsets)
        picks: list[slice] = []
        for axis, (start, count, step, n) in enumerate(zip(starts, counts, self.steps, x.shape, strict=True)):
            taken = range(start, start + count * step, step)
            if len(taken) and not (0 <= taken[0] < n and 0 <= taken[-1] < n):
                raise IndexError(f"{taken} leaves axis {axis}, which has {n} elements")
            # As a Python slice -1 would be the last element, not the place before the first.
            picks.append(slice(start, taken.stop if taken.stop >= 0 else None, step) if count else slice(0, 0))
        return x[tuple(picks)]

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        whole = self.x.type is self.result.type and all(map(self._is_whole, range(len(self.starts))))
        return self.x if whole else self.fold_constants(constants)

    def _is_whole(self, axis: int) -> bool:
        return self.stays(axis) or (type_of_tensor(self.x).shape[axis] != DYNAMIC and self.steps[axis] == 1)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield self.put_back(b, ct, range(type_of_tensor(ct).rank))
        yield from (None for _ in (*self.offsets, *self.extents))

    def put_back(self, b: TensorBuilder, ct: Value, axes: Sequence[int]) -> Value:
        """Each element back to its place along axes, zeros between: padding with gaps, of the reversed cotangent where
        steps are negative."""
        source, given = type_of_tensor(self.x), type_of_tensor(ct)
        flipped = [i in axes and s < 0 for i, s in enumerate(self.steps)]
        if any(flipped):
            first = [_last(b, ct, i) if f else 0 for i, f in enumerate(flipped)]
            ct = b.slice(ct, first, steps=[-1 if f else 1 for f in flipped], dims=given.dims)
        low: list[int | Value] = [0] * given.rank
        interior = [0] * given.rank
        starts = self.first
        for i in axes:
            start, step = starts[i], self.steps[i]
            interior[i] = abs(step) - 1
            if given.dims[i] == 0:
                continue
            low[i] = start
            if step < 0:
                last = _last(b, ct, i)
                if isinstance(start, int) and isinstance(last, int):
                    low[i] = start + last * step
                else:
                    back = b.scalars().mul(last, step) if isinstance(last, Value) else last * step
                    low[i] = b.scalars().add(start, back)
        zero = scalar_attr(0, given.element)
        dims = [source.dims[i] if i in axes else d for i, d in enumerate(given.dims)]
        return b.pad(ct, low, None, interior if any(interior) else None, zero, dims, (self.x,))

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        """What lies outside of the slice is dead."""
        source, result = type_of_tensor(self.x), type_of_tensor(self.result)
        cut = [i for i in range(source.rank) if source.dims[i] != result.dims[i]]

        def moved(value: Value) -> Value:
            value = m.aligned(value, source.rank)
            own = type_of_tensor(value).dims
            return self.put_back(m.b, value, [i for i, d in enumerate(result.dims) if d == own[i]])

        moved_mask = tuple(Factor(moved(f.value), f.soft) for f in mask)
        if cut and not m.tame(self.x):
            dims = [d if i in cut else 1 for i, d in enumerate(result.dims)]
            everywhere = m.b.full(True, tensor_type(dims, I1), m.b.extents(dims, self.result))
            moved_mask = (*moved_mask, Factor(self.put_back(m.b, everywhere, cut)))
        yield moved_mask
        yield from (() for _ in (*self.offsets, *self.extents))

    def bound(self, unit: float, x: Bounded, *rest: Bounded) -> Bounded:
        return moved(self.evaluate, x, *rest)


class Pad(Cut, PointForm, Evaluates, Tame, IsLinear, MovesMasks, BoundsErrors):
    """x with `low` elements of `value` before, `high` after and `interior` between neighbours, on each axis.

    The transpose of a strided slice.  `offsets`: an index value for each `low` that is `DYNAMIC`.  `extents`: one for
    each dynamic extent of the result, unless the axis gets no padding.  `high` is `DYNAMIC` where the result's extent
    says it.
    """

    name = "array.pad"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    offsets = variadic_operand(INDEX_)
    extents = variadic_operand(INDEX_)
    low = integers()
    before = mixed.Entries("low", "offsets", "margins")
    """How many values stand before x on each axis."""
    high = integers()
    interior = integers(optional=True)
    value = attr(Attribute)
    result = result(TENSOR)
    assembly = "$x (`[` $offsets^ `]`)? (`(` $extents^ `)`)? attr-dict `:` type($x) `->` type($result)"

    def gaps(self) -> tuple[int, ...]:
        """The interior padding of each axis."""
        given = self.interior
        return (0,) * len(self.low) if given is None else given

    def stays(self, axis: int) -> bool:
        old, new = type_of_tensor(self.x), type_of_tensor(self.result)
        none = not (self.low[axis] or self.high[axis] or self.gaps()[axis])
        return none and old.dims[axis] == new.dims[axis]

    def verify_(self) -> None:
        old, new = self.checked_types()
        if not len(self.low) == len(self.high) == len(self.gaps()) == old.rank:
            raise self.shape_error(f"needs low, high and interior padding for each axis of {shape_text(old.dims)}")
        super().verify_()
        Pad.before.check(self)
        if not isinstance(self.value, FloatAttr | IntegerAttr) or self.value.type is not old.element:
            raise self.dtype_error(f"pads {old} with {self.value}, which is not of type {old.element}")
        for axis, (low, high, gap) in enumerate(zip(self.low, self.high, self.gaps(), strict=True)):
            if any(n < 0 and n != DYNAMIC for n in (low, high)) or gap < 0:
                raise self.shape_error(f"negative padding {[low, high, gap]}")
            extent, count = old.dims[axis], new.dims[axis]
            if DYNAMIC in (low, high) or isinstance(extent, str) or isinstance(count, str):
                continue
            wanted = extent + low + high + max(extent - 1, 0) * gap
            if count != wanted:
                raise self.shape_error(f"axis {axis} of the result has {wanted} elements, not {count}")

    def point(self, k: PointBuilder) -> Value:
        """A guarded load; between neighbours the value."""
        low = [k.outside(n) for n in self.before]
        places = [axis - n for axis, n in zip(k.axes, low, strict=True)]
        strides = [gap + 1 for gap in self.gaps()]
        value = k.load(
            0, [p if s == 1 else p // s for p, s in zip(places, strides, strict=True)], fill=self.value.value
        )
        for place, stride in zip(places, strides, strict=True):
            if stride != 1:
                rest = k.value(place % stride)
                hit = k.cmp("eq", rest, k.constant(0, rest.type))
                value = k.select(hit, value, k.constant(self.value.value, value.type))
        return value

    def evaluate(self, x: Array, *given: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        offsets, extents = given[: len(self.offsets)], given[len(self.offsets) :]
        low = Pad.before.filled(self, offsets)
        spans = [n + max(n - 1, 0) * gap for n, gap in zip(x.shape, self.gaps(), strict=True)]
        shape = self.run_extents(x, extents)
        if any(n < 0 or n + span > total for n, span, total in zip(low, spans, shape, strict=True)):
            raise IndexError(f"shape {x.shape} with {low} before leaves the result's {tuple(shape)}")
        inside = [slice(n, n + span, gap + 1) for n, span, gap in zip(low, spans, self.gaps(), strict=True)]
        out = np.full(shape, constant_scalar(self.value))
        out[tuple(inside)] = x
        return out

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        whole = self.x.type is self.result.type and all(
            self.stays(axis) or n != DYNAMIC for axis, n in enumerate(type_of_tensor(self.x).shape)
        )
        return self.x if whole else self.fold_constants(constants)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield self.inside(b, ct, range(type_of_tensor(ct).rank))
        yield from (None for _ in (*self.offsets, *self.extents))

    def inside(self, b: TensorBuilder, ct: Value, axes: Sequence[int]) -> Value:
        """The elements of a padded array that were there before, along axes."""
        source, given = type_of_tensor(self.x), type_of_tensor(ct)
        low, gaps = self.before, self.gaps()
        starts = [low[i] if i in axes else 0 for i in range(given.rank)]
        steps = [gaps[i] + 1 if i in axes else 1 for i in range(given.rank)]
        dims = [source.dims[i] if i in axes else d for i, d in enumerate(given.dims)]
        return b.slice(ct, starts, steps=steps, dims=dims, sources=(self.x,))

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        def moved(value: Value) -> Value:
            value = m.aligned(value, type_of_tensor(self.x).rank)
            return self.inside(m.b, value, [i for i, d in enumerate(type_of_tensor(value).dims) if d != 1])

        yield tuple(Factor(moved(f.value), f.soft) for f in mask)
        yield from (() for _ in (*self.offsets, *self.extents))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        """Laid out in float64: the op's own meaning rounds to its type."""
        import numpy as np

        margins = list(zip(x.value.shape, self.low, self.high, self.gaps(), strict=True))
        lengths = [n + max(n - 1, 0) * gap for n, _, _, gap in margins]
        inside = tuple([slice(m[1], m[1] + n, m[3] + 1) for m, n in zip(margins, lengths, strict=True)])
        shape = [low + n + high for (_, low, high, _), n in zip(margins, lengths, strict=True)]
        value, error = np.full(shape, self.value.value, x.value.dtype), np.zeros(shape)
        value[inside], error[inside] = x
        return Bounded(value, error)


def _last(b: TensorBuilder, x: Value, axis: int) -> int | Value:
    """The last subscript along an axis."""
    extent = type_of_tensor(x).dims[axis]
    return max(extent - 1, 0) if isinstance(extent, int) else b.scalars().sub(b.dim(x, axis), 1)

"""Parts of tensors, and tensors with a margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, FloatAttr, IntegerAttr
from ...definition import PURE, TENSOR, FoldResult, attr, integers, operand, result
from ...numeric import constant as constant_scalar
from ...types import DYNAMIC, Type
from ...values import Value
from ..shapes import shape_text, tensor_type
from ..tensor_op import TensorOp

if TYPE_CHECKING:
    from ..point import Index, Point


class Slice(TensorOp):
    """On each axis the elements at range(start, stop, step); a negative step reverses (its stop may be -1).

    All must lie inside x.  A dynamic axis can only be taken whole: start 0, stop `DYNAMIC`, step 1.
    """

    name = "array.slice"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    starts = integers()
    stops = integers()
    steps = integers()
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x")
        if not len(self.starts) == len(self.stops) == len(self.steps) == type.rank:
            raise self.shape_error(f"needs a start, a stop and a step for each axis of {shape_text(type.dims)}")
        dims: list[int | str] = []
        for axis, (extent, *limits) in enumerate(zip(type.dims, self.starts, self.stops, self.steps, strict=True)):
            if isinstance(extent, str):
                if limits != [0, DYNAMIC, 1]:
                    raise self.shape_error(
                        f"axis {axis} of {shape_text(type.dims)} is dynamic: only the whole can be taken"
                    )
                dims.append(extent)
                continue
            if min(limits[:2]) < -1 or (-1 in limits[:2] and limits[2] > 0):
                raise self.shape_error(f"negative limits on axis {axis}: {limits}")
            if limits[2] == 0:
                raise self.shape_error(f"the step of axis {axis} is 0")
            taken = range(*limits)
            if len(taken) and not (0 <= taken[0] < extent and 0 <= taken[-1] < extent):
                raise self.shape_error(f"{taken} leaves axis {axis} of shape {shape_text(type.dims)}")
            dims.append(len(taken))
        return [tensor_type(dims, type.element)]

    def view(self, subscripts: Sequence[Index | int]) -> list[Index | int]:
        """Subscripts of the result -> subscripts of x."""
        return [s * step + start for s, start, step in zip(subscripts, self.starts, self.steps, strict=True)]

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        # As a Python slice -1 would be the last element, not the place before the first.
        stops = [None if s == DYNAMIC or (s == -1 and step < 0) else s for s, step in zip(self.stops, self.steps)]
        return x[tuple(map(slice, self.starts, stops, self.steps))]

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        whole = self.x.type is self.result.type and all(step == 1 for step in self.steps)
        return self.x if whole else self.fold_constants(constants)


class Pad(TensorOp):
    """x with `low` elements of `value` before, `high` after and `interior` between neighbours, on each axis.

    The transpose of a strided slice.  A dynamic axis cannot be padded.
    """

    name = "array.pad"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    low = integers()
    high = integers()
    interior = integers(optional=True)
    value = attr(Attribute)
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"

    def gaps(self) -> tuple[int, ...]:
        """The interior padding of each axis."""
        given = self.interior
        return (0,) * len(self.low) if given is None else given

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x")
        if not len(self.low) == len(self.high) == len(self.gaps()) == type.rank:
            raise self.shape_error(f"needs low, high and interior padding for each axis of {shape_text(type.dims)}")
        if not isinstance(self.value, FloatAttr | IntegerAttr) or self.value.type is not type.element:
            raise self.dtype_error(f"pads {type} with {self.value}, which is no {type.element}")
        dims: list[int | str] = []
        for extent, *margins in zip(type.dims, self.low, self.high, self.gaps(), strict=True):
            if min(margins) < 0:
                raise self.shape_error(f"negative padding {margins}")
            if isinstance(extent, str):
                if any(margins):
                    raise self.shape_error(f"cannot pad the dynamic extent {extent} of {shape_text(type.dims)}")
                dims.append(extent)
            else:
                dims.append(extent + margins[0] + margins[1] + max(extent - 1, 0) * margins[2])
        return [tensor_type(dims, type.element)]

    def point(self, k: Point) -> Value:
        """A guarded load; between neighbours the value."""
        places = [axis - low for axis, low in zip(k.axes, self.low, strict=True)]
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

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        spans = [n + max(n - 1, 0) * gap for n, gap in zip(x.shape, self.gaps(), strict=True)]
        shape = [low + span + high for low, span, high in zip(self.low, spans, self.high, strict=True)]
        inside = [slice(low, low + n, gap + 1) for low, n, gap in zip(self.low, spans, self.gaps(), strict=True)]
        out = np.full(shape, constant_scalar(self.value))
        out[tuple(inside)] = x
        return out

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.x if self.x.type is self.result.type else self.fold_constants(constants)

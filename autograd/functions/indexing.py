"""Subscripts: x[key], and x as it is after x[key] = value."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from operator import index as to_index
from typing import Any

import numpy as np

from ...ir.attributes import scalar_attr
from ...ir.builders.sizes import Size, largest, minus, plus, quotient, smallest, times
from ...ir.diagnostics import DTypeError, Error, ShapeError, SubscriptError, shown
from ...ir.location import called_function, caller_location
from ...ir.support.shapes import Dims, shape_text
from ..conversion import asarray
from ..dtypes import DType, bool_
from ..numbers import TracedNumber, of_number
from ..sizes import SymbolicSize, is_size, plain, require, sign
from ..tensor import Tensor, copied, view
from ..trace import emit, ops
from .array import broadcast_to, flip, moveaxis, ones, reshape
from .linalg import take
from .promotion import as_tensor, stored


@dataclass
class _Subscripts:
    """A key for a shape: on each axis the start, step and length of a range; `dims` is the shape once integers have
    dropped their axes and None has added some; an array of integers chooses along axis `place` of that."""

    starts: list[Size] = field(default_factory=list[Size])
    steps: list[int] = field(default_factory=list[int])
    counts: list[Size] = field(default_factory=list[Size])
    dims: list[Size] = field(default_factory=list[Size])
    place: int = 0
    array: Any = None
    apart: bool = False
    """Whether slices stand between the array and an integer."""

    def add(self, start: Size, step: int, count: Size) -> None:
        """The range of the next axis."""
        self.starts.append(start)
        self.steps.append(step)
        self.counts.append(count)


def _parse(key: object, shape: Dims) -> _Subscripts:
    keys = _completed(list(key) if isinstance(key, tuple) else [key], len(shape))
    if sum(k is not None for k in keys) > len(shape):
        message = f"{called_function()}: too many subscripts for shape {shape_text(shape)}"
        raise SubscriptError(message, caller_location())
    made = _Subscripts()
    for k in keys:
        if k is None:
            made.dims.append(1)
            continue
        axis = len(made.starts)
        extent = shape[axis]
        if isinstance(k, slice):
            made.add(*_range(k, extent))
        elif type(k) is not TracedNumber and _is_integer(k):
            symbolic = is_size(k) or is_size(extent)
            made.add(_symbolic_place(k, axis, shape) if symbolic else _checked(k, axis, shape), 1, 1)
            continue
        else:
            if made.array is not None:
                message = f"{called_function()}: only one subscript may be an array of integers"
                raise Error(message, caller_location())
            made.place = len(made.dims)
            made.array = k
            if type(k) is TracedNumber:
                is_index = of_number(k) is not bool_
                made.array = as_tensor(k.map(partial(_checked, axis=axis, shape=shape)) if is_index else k)
            made.add(*_range(slice(None), extent))
        made.dims.append(made.counts[-1])
    pointed = [i for i, k in enumerate(keys) if k is not None and not isinstance(k, slice)]
    made.apart = bool(pointed) and pointed[-1] - pointed[0] >= len(pointed)
    return made


def _checked(key: Any, axis: int, shape: Dims) -> int:
    """An integer key counted from the front; SubscriptError out of range."""
    extent = shape[axis]
    if not _is_integer(key) or not isinstance(extent, int) or not -extent <= to_index(key) < extent:
        place = f"axis {axis} of shape {shape_text(shape)}"
        message = f"{called_function()}: index {shown(key)} is out of range for {place}"
        raise SubscriptError(message, caller_location())
    return to_index(key) % extent


def _symbolic_place(key: Any, axis: int, shape: Dims) -> Size:
    """An integer key where it or the extent is a symbol; what is not known now is checked at each call."""
    given, extent = plain(key) if is_size(key) else to_index(key), shape[axis]
    message = f"{called_function()}: index {given} is out of range for axis {axis} of shape {shape_text(shape)}"
    place = plus(given, extent) if sign(given) == -1 else given
    require(place, SubscriptError, message)
    require(minus(minus(extent, 1), place), SubscriptError, message)
    return place


def getitem(x: Tensor, key: object) -> Tensor:
    """x[key]: integers, slices of any step, None, an ellipsis, and at most one Tensor (or list) of integers, which
    chooses along its axis as `take` does.  All but the last kind, and other than a single element, are views.
    IndexError for an integer out of range."""
    given, base = _parse(key, x._aval.shape), x
    if given.counts != list(x._aval.shape) or any(step != 1 for step in given.steps):
        x = emit("slice", x, starts=tuple(given.starts), steps=tuple(given.steps), dims=tuple(given.counts))
    if tuple(given.dims) != x._aval.shape:
        x = emit("reshape", x, dims=tuple(given.dims))
    if given.array is None:
        found = copied(x) if x is base else x
        # NumPy's rule: one element is a copy.
        return view(found, base) if found.ndim or not base.ndim else found
    indices, place = _indices(given.array), given.place
    x = take(x, indices, axis=place)
    if given.apart:  # NumPy's rule: the axes of the array come first
        x = moveaxis(x, tuple(range(place, place + indices.ndim)), tuple(range(indices.ndim)))
    return x


def with_item(x: Tensor, key: object, value: object) -> Tensor:
    """x after x[key] = value, for integers, slices, None and an ellipsis; the value is broadcast, and has x's dtype."""
    given = _parse(key, x._aval.shape)
    if given.array is not None:
        message = "setitem: only integers and slices can be assigned to: use ag.where or ag.index_add"
        raise Error(message, caller_location())
    counts = given.counts
    if 0 in counts:
        return x
    new = stored(value, x.dtype, x.device)
    new = reshape(broadcast_to(new, given.dims), counts)
    turned = tuple([i for i, step in enumerate(given.steps) if step < 0])
    new = flip(new, axis=turned) if turned else new
    low = tuple(
        [
            start if step > 0 else plus(start, times(minus(count, 1), step))
            for start, step, count in zip(given.starts, given.steps, counts, strict=True)
        ]
    )
    gaps = tuple([abs(step) - 1 if c != 1 else 0 for step, c in zip(given.steps, counts, strict=True)])

    def spread(values: Tensor, dtype: DType) -> Tensor:
        zero = scalar_attr(0, dtype.element)
        return emit("pad", values, low=low, interior=gaps, value=zero, dims=x._aval.shape)

    return ops.where(spread(ones(counts, dtype=bool_, device=x.device), bool_), spread(new, x.dtype), x)


def _completed(keys: list[Any], rank: int) -> list[Any]:
    """The ellipsis (at the end where there is none) as whole slices."""
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(places) > 1:
        raise SubscriptError(f"{called_function()}: more than one ellipsis in a subscript", caller_location())
    at = places[0] if places else len(keys)
    missing = rank - sum(k is not None and k is not Ellipsis for k in keys)
    return [*keys[:at], *[slice(None)] * max(missing, 0), *keys[at + len(places) :]]


def _is_integer(key: Any) -> bool:
    if isinstance(key, bool | Tensor | list | np.ndarray):
        return False
    if type(key) is SymbolicSize:
        return True
    try:
        to_index(key)
    except TypeError:
        raise DTypeError(f"{called_function()}: {shown(key)} is not a subscript", caller_location()) from None
    return True


def _range(key: slice, extent: Size) -> tuple[Size, int, Size]:
    """Start, step and count of a slice."""
    try:
        if isinstance(extent, str) or any(map(is_size, (key.start, key.stop, key.step))):
            return _symbolic_range(key, extent)
        taken = range(*key.indices(extent))
    except Error:
        raise
    except (TypeError, ValueError):
        raise DTypeError(f"{called_function()}: {shown(key)} is not a subscript", caller_location()) from None
    return (taken.start, taken.step, len(taken)) if taken else (0, 1, 0)


def _symbolic_range(key: slice, extent: Size) -> tuple[Size, int, Size]:
    """`_range` where a limit or the extent is a symbol, by Python's rule for limits outside."""
    if is_size(key.step) or (key.step is not None and to_index(key.step) == 0):
        message = f"{called_function()}: the step of a slice must be a number other than 0, got {key.step}"
        raise ShapeError(message, caller_location())
    step = 1 if key.step is None else to_index(key.step)
    lowest, highest = (0, extent) if step > 0 else (-1, minus(extent, 1))

    def limit(given: Any, default: Size) -> Size:
        if given is None:
            return default
        place = plain(given) if is_size(given) else to_index(given)
        if sign(place) == -1:
            above = plus(place, extent)
            return above if sign(minus(above, lowest)) == 1 else plus(largest(minus(above, lowest), 0), lowest)
        message = f"{called_function()}: the limit {place} of a slice of an axis of extent {extent} is negative"
        require(place, SubscriptError, message)
        return place if sign(minus(highest, place)) == 1 else smallest(place, highest)

    start = limit(key.start, 0 if step > 0 else highest)
    stop = limit(key.stop, extent if step > 0 else -1)
    length = minus(stop, start) if step > 0 else minus(start, stop)
    if sign(length) == -1:
        return 0, 1, 0
    length = length if sign(length) == 1 else largest(length, 0)
    return start, step, quotient(plus(length, abs(step) - 1), abs(step))


def _indices(key: object) -> Tensor:
    indices = asarray(key) if isinstance(key, list) else as_tensor(key)
    if indices.dtype is bool_:
        message = f"{called_function()}: a mask chooses a number of elements that is not known: use ag.where"
        raise DTypeError(message, caller_location())
    return indices

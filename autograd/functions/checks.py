"""Arguments of functions that are no arrays: integers, numbers, axes, shapes and sequences, checked in one place.

Each error names the function that the user called, the argument, what was given and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index as to_index
from typing import Any

import numpy as np

from ...ir.builders.sizes import Size
from ...ir.diagnostics import DTypeError, Error, ShapeError, SubscriptError, shown
from ...ir.dialects.array import Constant
from ...ir.location import called_function, caller_location
from ...ir.support.shapes import Dims, shape_text
from ...ir.support.tensor_op import splat_value
from ..context import CONTEXT
from ..graph import Lazy
from ..numbers import TracedNumber
from ..sizes import is_size, plain, require
from ..tensor import Tensor
from ..trace import Traced


def integer(what: str, value: Any) -> int:
    """An argument that must be an integer (no bool); DTypeError for anything else."""
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        try:
            return to_index(value)
        except Error:
            raise
        except TypeError:
            pass  # an ndarray of other than one integer
    raise DTypeError(f"{called_function()}: {what} must be an integer, got {shown(value)}", caller_location())


def integers(what: str, value: object) -> tuple[int, ...]:
    """An argument that must be an integer or a sequence of them."""
    if hasattr(value, "__index__") and not (isinstance(value, Tensor | np.ndarray) and value.ndim):
        return (integer(what, value),)
    return tuple([integer(what, v) for v in sequence(what, value, "an integer or a sequence of integers")])


def real(what: str, value: object) -> float:
    """An argument that must be a number, as a float; DTypeError for anything else."""
    if isinstance(value, int | float | np.number | Tensor | TracedNumber):
        try:
            return float(value)
        except OverflowError:
            pass
    raise DTypeError(f"{called_function()}: {what} must be a number, got {shown(value)}", caller_location())


def flag(what: str, value: object) -> bool:
    """An argument that must be True or False; DTypeError for anything else."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise DTypeError(f"{called_function()}: {what} must be True or False, got {shown(value)}", caller_location())


def one_of(what: str, value: object, *known: str) -> str:
    """An argument that must be one of some words; Error for anything else."""
    if isinstance(value, str) and value in known:
        return value
    words = " or ".join(map(repr, known))
    raise Error(f"{called_function()}: {what} must be {words}, got {shown(value)}", caller_location())


def sequence(what: str, value: object, wanted: str = "a sequence") -> list[Any]:
    """An argument that must be a sequence; DTypeError, which says what is wanted, for anything else."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | dict):
        if not isinstance(value, Tensor | np.ndarray) or value.ndim:
            return list(value)
    raise DTypeError(f"{called_function()}: {what} must be {wanted}, got {shown(value)}", caller_location())


def size(what: str, value: object) -> Size:
    """An argument that must be an integer or a symbolic size."""
    if isinstance(value, str) and CONTEXT.trace is None:
        message = f"{called_function()}: {what} must be an integer, got {value!r} outside of a trace"
        raise ShapeError(message, caller_location())
    return plain(value) if is_size(value) else integer(what, value)


def extents(shape: object) -> Dims:
    """The extents of a shape, an integer or a sequence of integers that are not negative, or symbolic sizes."""
    given = [shape] if hasattr(shape, "__index__") else sequence("the shape", shape)
    found = tuple([size("an extent of the shape", d) for d in given])
    for extent in found:
        require(extent, ShapeError, f"{called_function()}: negative extent in shape {shape_text(found)}")
    return found


def normal_axis(axis: object, rank: int) -> int:
    """An axis counted from the front; DTypeError for what is not an integer, ShapeError out of range."""
    place = integer("axis", axis)
    if not -rank <= place < rank:
        raise ShapeError(f"{called_function()}: axis {place} is out of range for {rank} dimensions", caller_location())
    return place % rank


def normal_axes(axis: object, rank: int) -> tuple[int, ...]:
    """Axes counted from the front; all for None; ShapeError for one that is named twice."""
    if axis is None:
        return tuple(range(rank))
    found = tuple([normal_axis(a, rank) for a in integers("axis", axis)])
    if len(set(found)) != len(found):
        raise ShapeError(f"{called_function()}: axes {shown(axis)} repeat", caller_location())
    return found


def _known(tensor: Tensor) -> Any:
    """The elements, as far as they need not be computed: an ndarray, or None."""
    state, constant = tensor._state, None
    if isinstance(state, Lazy) and state.node is not None and state.node.method == "constant":
        constant = splat_value(dict(state.node.properties)["value"])
    elif isinstance(state, Traced) and isinstance(state.value.defining_op, Constant):
        constant = splat_value(state.value.defining_op.value)
    return tensor._value if constant is None else np.asarray(constant)


def check_indices(what: str, indices: Tensor, x: Tensor, axis: int, but: int | None = None) -> None:
    """SubscriptError for an index into an axis of x that lies outside, as far as the values are known; `but`: one that
    may."""
    if not indices.dtype.is_integer:
        raise DTypeError(f"{called_function()}: {what} must be integers, got {indices.dtype}", caller_location())
    values, extent = _known(indices), x._aval.shape[axis]
    if values is None or not values.size or not isinstance(extent, int):
        return
    if but is not None:
        values = np.where(values == but, 0, values)
    for found in (int(values.min()), int(values.max())):
        if not -extent <= found < extent:
            message = f"{what} hold {found}, which is out of range for axis {axis} of shape {shape_text(x._aval.shape)}"
            raise SubscriptError(f"{called_function()}: {message}", caller_location())

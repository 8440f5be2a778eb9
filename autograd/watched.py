"""Stand-ins for ndarrays while a function is traced: they tell an array that is an operand of our functions from one
whose elements are read by NumPy or Python.

The first is an input of the compiled function.  The elements of the second have gone into the trace, so it is compared
with a copy at each call.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.location import Location, caller_location
from .operators import Operators

LARGE = 1 << 20
"""Bytes of the largest ndarray whose elements are compared at each call."""
_KIND = frozenset({"shape", "dtype", "ndim", "size", "itemsize", "nbytes"})


class Watched:
    """An ndarray to everybody who asks; `read_at` is where its elements were read first."""

    __slots__ = ("_array", "_before", "_read_at")

    _array: Any
    _before: list[Any] | None
    _read_at: Location | None

    def __init__(self, array: object) -> None:
        object.__setattr__(self, "_array", array)
        object.__setattr__(self, "_before", None)
        object.__setattr__(self, "_read_at", None)

    @property
    def __class__(self) -> object:
        return np.ndarray

    def __getattr__(self, name: str) -> object:
        array = _array(self)
        return getattr(array, name) if name in _KIND else getattr(_noted(self), name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_noted(self), name, value)

    def __len__(self) -> int:
        return len(_array(self))

    def __reduce_ex__(self, protocol: object) -> Any:
        return _noted(self).__reduce_ex__(protocol)


def _array(watched: Watched) -> Any:
    return object.__getattribute__(watched, "_array")


def _noted(watched: Watched) -> Any:
    """The array, whose elements are about to be read."""
    if read_at(watched) is None:
        object.__setattr__(watched, "_read_at", caller_location())
        array = _array(watched)
        if array.nbytes <= LARGE and not array.dtype.hasobject:
            object.__setattr__(watched, "_before", elements(array))
    return _array(watched)


def read_at(watched: Watched) -> Location | None:
    """Where the elements were read first, None if they were not."""
    return object.__getattribute__(watched, "_read_at")


def before(watched: Watched) -> list[Any] | None:
    """The elements when they were first read, before the function may have written some; None of large arrays."""
    return object.__getattribute__(watched, "_before")


def elements(array: object) -> list[Any]:
    """All that can be read of an ndarray, to be compared."""
    if not isinstance(array, np.ndarray):
        return [array]
    found: list[Any] = [array.shape, array.dtype, array.strides, array.flags.num, np.asarray(array).tobytes()]
    if type(array) is not np.ndarray and hasattr(array, "__dict__"):  # masks, and what users keep in arrays of theirs
        found += [np.asarray(v).tobytes() if isinstance(v, np.ndarray) else v for v in vars(array).values()]
    return found


def plain(value: object) -> Any:
    """The array that something stands for, and all else as it is."""
    return _array(value) if type(value) is Watched else value


def noted(value: object) -> object:
    """`plain` for what leaves the trace as it is."""
    return _noted(value) if type(value) is Watched else value


def _forward(name: str) -> object:
    def method(self: Watched, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Operators):
            return NotImplemented  # it is a Tensor, which takes the array as an operand
        return getattr(_noted(self), name)(*[noted(a) for a in args], **kwargs)

    method.__name__ = name
    return method


_BINARY = "add sub mul truediv floordiv mod divmod pow matmul and or xor lshift rshift"
_OTHERS = """lt le eq ne gt ge neg pos abs invert float int bool complex index getitem setitem iter contains repr str
    format copy deepcopy array buffer dlpack dlpack_device array_namespace"""
for _name in (
    *[f"__{prefix}{n}__" for n in _BINARY.split() for prefix in ("", "r", "i")],
    *[f"__{n}__" for n in _OTHERS.split()],
):
    if hasattr(np.ndarray, _name):
        setattr(Watched, _name, _forward(_name))
Watched.__name__ = Watched.__qualname__ = "ndarray"
Watched.__hash__ = None  # pyright: ignore[reportAttributeAccessIssue] - as that of ndarray

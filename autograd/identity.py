"""What tells values apart that are part of the key of a specialisation, or guarded."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from types import MethodType
from typing import Any
from weakref import ref

import numpy as np

from .libraries import imported, is_library_class

_MOMENTS = {"datetime": ("date", "time")}
_TOLD_BY_TEXT = {
    "datetime": ("timedelta", "timezone"),
    "decimal": ("Decimal",),
    "fractions": ("Fraction",),
    "pathlib": ("PurePath",),
    "uuid": ("UUID",),
}
"""Classes of values whose `repr` says all."""


class _Same:
    """An object that is compared by identity whatever its class says, and not kept alive where that can be."""

    __slots__ = ("_hash", "get")

    def __init__(self, value: object) -> None:
        self._hash = id(value)
        try:
            self.get: Callable[[], Any] = ref(value)
        except TypeError:
            self.get = lambda: value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        value = self.get()
        return isinstance(other, _Same) and value is not None and other.get() is value

    def __hash__(self) -> int:
        return self._hash


def identity(value: object) -> tuple[object, ...]:
    """What tells a value from all others that compute something else: unlike `==` it tells True, 1 and 1.0 apart, and
    0.0 from -0.0, also within tuples, sets and frozen dataclasses; NaN is the same as NaN.

    Objects of other classes are the same only as themselves, whatever their `__eq__` and `__repr__` say; so are those
    of classes that users derive from str, float and the like. TypeError for what cannot be part of a key: lists, dicts,
    sets and what holds them.
    """
    kind = type(value)
    return kind, *_parts(kind)(value)


def told_by_themselves(value: object) -> list[Any]:
    """The objects that the identity of a value is that of: itself, what a method is bound to, or none."""
    return [part.get() for part in identity(value)[1:] if type(part) is _Same]


@lru_cache(maxsize=1024)
def _parts(kind: Any) -> Callable[[Any], tuple[Any, ...]]:
    """How the values of a type are told apart."""
    if issubclass(kind, tuple):
        return _items if kind is tuple or not kind.__dictoffset__ else _items_or_itself
    if issubclass(kind, MethodType):
        return lambda value: (_Same(value.__self__), _Same(value.__func__))
    if issubclass(kind, slice | range):
        return lambda value: tuple(map(identity, (value.start, value.stop, value.step)))
    if issubclass(kind, type | Enum):
        return lambda value: (_Same(value),)
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen and parameters.eq and not hides_state(kind, 0):
        return _fields
    if not is_library_class(kind):
        return _itself
    if issubclass(kind, np.void):  # its text is rounded
        return lambda value: (value.dtype, value.tobytes())
    if issubclass(kind, frozenset):
        return lambda value: (frozenset(map(identity, value)),)
    if issubclass(kind, int | str | bytes | type(None) | np.dtype):
        return lambda value: (value,)
    if issubclass(kind, imported(_MOMENTS)):
        return _moment
    if issubclass(kind, (float, complex, np.generic, *imported(_TOLD_BY_TEXT))):
        return lambda value: (repr(value),)
    return _itself


def _itself(value: object) -> tuple[object, ...]:
    if type(value).__hash__ is None:
        raise TypeError(f"unhashable: {type(value).__qualname__}")
    return (_Same(value),)


def _items(value: Any) -> tuple[Any, ...]:
    return tuple(map(identity, tuple.__iter__(value)))


def _items_or_itself(value: object) -> tuple[object, ...]:
    """Of a tuple that may have attributes beside its items."""
    return (_Same(value),) if object.__getattribute__(value, "__dict__") else _items(value)


def _fields(value: object) -> tuple[object, ...]:
    return tuple([(n, identity(v)) for n, v in vars(value).items()])


def _moment(value: Any) -> tuple[Any, ...]:
    """Of a date or a time; the text of its zone may be the user's."""
    zone = getattr(value, "tzinfo", None)
    return repr(value if zone is None else value.replace(tzinfo=None)), identity(zone)


def hides_state(cls: Any, slots: int) -> bool:
    """Whether objects of a class are larger than what Python can see of them: it was made in C."""
    pointers = slots + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return cls.__basicsize__ > object.__basicsize__ + 8 * pointers

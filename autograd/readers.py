"""Readers of what objects hold, as guards call them, and questions to objects of C."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from .places import namespace


def getter(table: Any, names: list[str]) -> Callable[[], Sequence[Any]]:
    """What these names stand for in a namespace."""
    if not names:
        return tuple
    if len(names) == 1:
        name = names[0]
        return lambda: (table[name],)
    get = itemgetter(*names)
    return lambda: get(table)


def absence(table: dict[str, Any], names: tuple[str, ...]) -> Callable[[], Sequence[Any]]:
    """Whether none of these names is in a namespace."""
    keys = table.keys()
    return lambda: (keys.isdisjoint(names),)


def class_reads(cls: type, table: Any, names: list[str]) -> Callable[[], Sequence[Any]]:
    """The bases and names of a class, and what some names stand for."""
    get = getter(table, names)
    return lambda: [*cls.__bases__, *table, *get()]


def instance_reads(value: Any, names: list[str]) -> Callable[[], Sequence[Any]]:
    """The class and names of an object, and what some names stand for."""
    read = namespace
    if not names:
        return lambda: [value.__class__, *read(value)]
    if len(names) == 1:
        name = names[0]
        return lambda: [value.__class__, *(table := read(value)), table[name]]
    get = itemgetter(*names)
    return lambda: [value.__class__, *(table := read(value)), *get(table)]


def underlying(proxy: Any) -> Any:
    """The dict that a mapping proxy shows."""
    return next((r for r in gc.get_referents(proxy) if isinstance(r, dict)), dict(proxy))


def hides_state(cls: Any, slots: int) -> bool:
    """Whether objects of a class are larger than what Python can see of them: it was made in C."""
    pointers = slots + (cls.__dictoffset__ > 0) + (cls.__weakrefoffset__ > 0)
    return cls.__basicsize__ > object.__basicsize__ + 8 * pointers


def is_memory(value: Any) -> bool:
    """Whether something of C has memory that can be compared."""
    if type(value).__module__ == "mmap":
        return True
    c: Any = sys.modules.get("_ctypes")
    return c is not None and isinstance(value, c._SimpleCData | c.Array | c.Structure | c.Union)

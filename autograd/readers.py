"""Readers of what objects hold, as guards call them, and questions to objects of C."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from itertools import compress
from operator import itemgetter
from typing import Any

import numpy as np

from .guards import Term
from .places import Holder, namespace


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


def class_terms(cls: type, table: object, names: list[str]) -> list[Term]:
    """`class_reads` as expressions: what is read is what it is now."""
    return [("{0}.__bases__ is {1}", (cls, cls.__bases__)), *_held(table, names)]


def _held(table: Any, names: Sequence[str]) -> list[Term]:
    """A namespace has the names that it has now, and some of them stand for what they stand for."""
    return [("[*{0}] == {1}", (table, [*table])), *[("{0}[{1}] is {2}", (table, n, table[n])) for n in names]]


def instance_terms(holder: Holder, names: list[str]) -> list[Term]:
    """`instance_reads` as expressions."""
    value, (text, objects) = holder.get(), holder.term
    table = namespace(value)
    return [
        (f"{text}.__class__ is {{1}}", (*objects, value.__class__)),
        (f"[*(table := own({text}, '__dict__'))] == {{1}}", (*objects, [*table])),
        *[("table[{0}] is {1}", (n, table[n])) for n in names],
    ]


def list_terms(items: list[Any], is_read: Sequence[bool]) -> list[Term]:
    """A list is as long as it is now, and holds what it holds where it is read."""
    found = [("{0}[{1}] is {2}", (items, i, v)) for i, (v, r) in enumerate(zip(items, is_read, strict=True)) if r]
    return [("len({0}) == {1}", (items, len(items))), *found]


def dict_terms(table: dict[str, Any], is_read: Sequence[bool]) -> list[Term]:
    """A dict has the keys that it has, and holds what it holds where it is read."""
    terms = _held(table, list(compress(table, is_read)))
    # A key of another type may equal one of these.
    return [*terms, ("{0}.issuperset(map(type, {1}))", ({str}, table))]


def instance_reads(holder: Holder, names: list[str]) -> Callable[[], Sequence[Any]]:
    """The class and names of an object, and what some names stand for."""
    read, hold = namespace, holder.get
    if not names:
        return lambda: [(value := hold()).__class__, *read(value)]
    if len(names) == 1:
        name = names[0]
        return lambda: [(value := hold()).__class__, *(table := read(value)), table[name]]
    get = itemgetter(*names)
    return lambda: [(value := hold()).__class__, *(table := read(value)), *get(table)]


def underlying(proxy: object) -> object:
    """What a mapping proxy shows."""
    return gc.get_referents(proxy)[0]


def is_memory(value: object) -> bool:
    """Whether something of C has memory that can be compared."""
    if isinstance(value, np.void):
        return not value.dtype.hasobject
    if type(value).__module__ == "mmap":
        return True
    c: Any = sys.modules.get("_ctypes")
    return c is not None and isinstance(value, c._SimpleCData | c.Array | c.Structure | c.Union)

"""What a function reads from outside of its arguments: cells, globals, defaults and its own attributes, also those of
Python functions that it calls.

A compiled function is used again only while its *guards* hold:

    numbers, strings, None and tuples of them    by value
    functions                                    by identity, and what they read in turn
    Tensors and ndarrays                         not at all: they are inputs, read anew from the cell or global
    lists and dicts                              by what they hold, at any depth
    other objects                                by identity

Not seen, and so not guarded: attributes of objects other than functions (`self.scale`), names that are looked up by
text, and what code outside of Python functions reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .pytree import Tree, flatten, identity
from .tensor import Tensor

_SCALARS = (int, float, complex, str, bytes, type(None), np.generic)
_PACKAGE = __name__.partition(".")[0] + "."


class Place:
    """Where a value is read."""

    __slots__ = ()

    def read(self) -> Any:
        """What stands there now; `MISSING` when nothing does."""
        raise NotImplementedError


class CellPlace(Place):
    """A cell of a closure."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def read(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING


class GlobalPlace(Place):
    """A name in a namespace."""

    __slots__ = ("name", "namespace")

    def __init__(self, namespace: dict[str, Any], name: str) -> None:
        self.namespace = namespace
        self.name = name

    def read(self) -> Any:
        return self.namespace.get(self.name, MISSING)


class DefaultPlace(Place):
    """The default of a positional parameter."""

    __slots__ = ("function", "number")

    def __init__(self, function: FunctionType, number: int) -> None:
        self.function = function
        self.number = number

    def read(self) -> Any:
        defaults = self.function.__defaults__ or ()
        return defaults[self.number] if self.number < len(defaults) else MISSING


class GradientPlace(Place):
    """`.grad` of a handle."""

    __slots__ = ("handle",)

    def __init__(self, handle: Tensor) -> None:
        self.handle = handle

    def read(self) -> Any:
        return self.handle._grad


MISSING = object()


def _same(now: Any, then: Any) -> bool:
    return now is then or (
        type(now) is type(then) and isinstance(now, (*_SCALARS, tuple)) and identity(now) == identity(then)
    )


class Guard:
    """A place and what stood there."""

    __slots__ = ("leaves", "place", "tree", "value")

    def __init__(self, place: Place, value: Any) -> None:
        self.place = place
        self.value = value
        self.tree: Tree | None = None
        self.leaves: list[Any] = []
        if isinstance(value, list | dict):
            self.leaves, self.tree = flatten(value)

    def holds(self) -> bool:
        """Whether the same still stands there."""
        now = self.place.read()
        if self.tree is None:
            return now is self.value or _same(now, self.value)
        if type(now) is not type(self.value):
            return False
        leaves, tree = flatten(now)
        return tree == self.tree and all(map(_same, leaves, self.leaves))


class Closure:
    """The guards of a function, and the places of the Tensors and ndarrays that it reads, by their id."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.guards: list[Guard] = []
        self.sources: dict[int, Place] = {}
        self._arrays: dict[int, Any] = {}
        self._seen: set[int] = set()
        pending: list[Any] = [function]
        while pending:
            current = _function(pending.pop())
            if current is None or id(current) in self._seen or _is_own(current):
                continue
            self._seen.add(id(current))
            for place in _places(current):
                value = place.read()
                if value is MISSING or isinstance(value, ModuleType | type | BuiltinFunctionType):
                    continue
                if isinstance(value, Tensor | np.ndarray):
                    self._add_source(value, place)
                    continue
                if _function(value) is not None:
                    if _is_own(_function(value)):
                        continue
                    pending.append(value)
                self.guards.append(Guard(place, value))

    def _add_source(self, value: Any, place: Place) -> None:
        """A Tensor that is read at two places is guarded at both: they may part."""
        known = self.sources.get(id(value))
        if known is None and id(value) not in self._arrays:
            self.sources[id(value)] = place
        else:
            if known is not None:
                del self.sources[id(value)]
                self.guards.append(Guard(known, value))
            self.guards.append(Guard(place, value))
        self._arrays[id(value)] = value

    def add_gradients(self, gradients: Iterable[tuple[Tensor, Tensor | None]]) -> None:
        """Handles whose `.grad` the function read: it is an input, or must still be None."""
        for handle, gradient in gradients:
            place = GradientPlace(handle)
            if gradient is None:
                self.guards.append(Guard(place, None))
            else:
                self.sources[id(gradient)] = place

    def hold(self) -> bool:
        """Whether all guards hold."""
        for guard in self.guards:  # noqa: SIM110 - a third of the time of `all`, at every call
            if not guard.holds():
                return False
        return True


def _function(value: Any) -> FunctionType | None:
    """The Python function in a callable, or None."""
    if isinstance(value, FunctionType):
        return value
    if isinstance(value, MethodType):
        return _function(value.__func__)
    if isinstance(value, partial):
        return _function(value.func)
    inner = getattr(type(value), "__wrapped_function__", None)
    return None if inner is None else _function(value.function)


def _is_own(function: FunctionType | None) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module.startswith((f"{_PACKAGE}autograd.", f"{_PACKAGE}ir.", f"{_PACKAGE}passes.", f"{_PACKAGE}runtime."))


def _places(function: FunctionType) -> Iterator[Place]:
    """Every cell, default and attribute of a function, and every global that its code names."""
    wrapped = getattr(function, "__wrapped__", None)
    for cell in function.__closure__ or ():
        yield CellPlace(cell)
    for number in range(len(function.__defaults__ or ())):
        yield DefaultPlace(function, number)
    for namespace in (function.__kwdefaults__ or {}, vars(function)):
        yield from (GlobalPlace(namespace, name) for name in namespace if name != "__wrapped__")
    for name in dict.fromkeys(_names(function.__code__)):
        if name in function.__globals__:
            yield GlobalPlace(function.__globals__, name)
    if isinstance(wrapped, FunctionType):
        yield from _places(wrapped)


def _names(code: CodeType) -> Iterator[str]:
    pending = [code]
    while pending:
        current = pending.pop()
        yield from current.co_names
        pending += [c for c in current.co_consts if isinstance(c, CodeType)]

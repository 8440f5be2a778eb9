"""Where a function finds what it reads from outside: cells, names, items, attributes, slots, `.grad` of handles."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any
from weakref import ref

from .guards import Term
from .tensor import Tensor

MISSING = object()


class Place:
    """Where a value is read. `label`: how the user would write it."""

    __slots__ = ("label",)

    label: str

    def read(self) -> object:
        """What stands there now; `MISSING` when nothing does."""
        raise NotImplementedError

    @property
    def term(self) -> Term:
        """`read` as an expression, which may raise (guards.READING) where nothing stands there."""
        return "{0}()", (self.read,)

    def write(self, value: object) -> bool:
        """Put something else there; False where that cannot be."""
        return False


class CellPlace(Place):
    """A cell of a closure."""

    __slots__ = ("cell",)

    def __init__(self, cell: CellType, label: str) -> None:
        self.cell = cell
        self.label = label

    def read(self) -> object:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    @property
    def term(self) -> Term:
        return "{0}.cell_contents", (self.cell,)

    def write(self, value: object) -> bool:
        self.cell.cell_contents = value
        return True


class KeyPlace(Place):
    """An entry of a dict or a namespace, read past what its class may say."""

    __slots__ = ("key", "table")

    def __init__(self, table: dict[Any, Any], key: object, label: str) -> None:
        self.table = table
        self.key = key
        self.label = label

    def read(self) -> object:
        return dict.get(self.table, self.key, MISSING)

    @property
    def term(self) -> Term:
        return "{0}({1}, {2})", (dict.__getitem__, self.table, self.key)

    def write(self, value: object) -> bool:
        dict.__setitem__(self.table, self.key, value)
        return True


class IndexPlace(Place):
    """An item of a list, a deque or a tuple."""

    __slots__ = ("index", "kind", "sequence")

    def __init__(self, sequence: object, index: int, label: str) -> None:
        self.sequence = sequence
        self.index = index
        self.label = label
        self.kind: Any = next(k for k in (list, deque, tuple) if isinstance(sequence, k))

    def read(self) -> object:
        if self.index >= self.kind.__len__(self.sequence):
            return MISSING
        return self.kind.__getitem__(self.sequence, self.index)

    def write(self, value: object) -> bool:
        if self.kind is tuple:
            return False
        self.kind.__setitem__(self.sequence, self.index, value)
        return True


class Holder:
    """An object whose attributes are read; `weakly`: as long as others keep it, None afterwards.

    `term`: the object as an expression."""

    __slots__ = ("get", "term")

    def __init__(self, value: object, weakly: bool = False) -> None:
        self.get: Callable[[], Any] = lambda: value
        self.term: Term = "{0}", (value,)
        if weakly:
            found = ref(value)
            self.get, self.term = found, ("{0}()", (found,))


class AttributePlace(Place):
    """An attribute in an object's own namespace, whichever that is when it is read."""

    __slots__ = ("holder", "name")

    def __init__(self, holder: Holder, name: str, label: str) -> None:
        self.holder = holder
        self.name = name
        self.label = label

    def read(self) -> object:
        return namespace(self.holder.get()).get(self.name, MISSING)

    @property
    def term(self) -> Term:
        text, objects = self.holder.term
        return f"own({text}, '__dict__')[{{1}}]", (*objects, self.name)

    def write(self, value: object) -> bool:
        namespace(self.holder.get())[self.name] = value
        return True


class SlotPlace(Place):
    """A slot of an object."""

    __slots__ = ("descriptor", "holder")

    def __init__(self, holder: Holder, descriptor: MemberDescriptorType, label: str) -> None:
        self.holder = holder
        self.descriptor = descriptor
        self.label = label

    def read(self) -> object:
        try:
            return self.descriptor.__get__(self.holder.get())
        except AttributeError:
            return MISSING

    def write(self, value: object) -> bool:
        self.descriptor.__set__(self.holder.get(), value)
        return True


class ClassPlace(Place):
    """An attribute of a class."""

    __slots__ = ("cls", "name")

    def __init__(self, cls: type, name: str, label: str) -> None:
        self.cls = cls
        self.name = name
        self.label = label

    def read(self) -> object:
        return vars(self.cls).get(self.name, MISSING)

    def write(self, value: object) -> bool:
        type.__setattr__(self.cls, self.name, value)
        return True


class DefaultPlace(Place):
    """The default of a positional parameter."""

    __slots__ = ("function", "number")

    def __init__(self, function: FunctionType, number: int, label: str) -> None:
        self.function = function
        self.number = number
        self.label = label

    def read(self) -> object:
        defaults = self.function.__defaults__ or ()
        return defaults[self.number] if self.number < len(defaults) else MISSING


class FixedPlace(Place):
    """What cannot change, such as the object that a method is bound to."""

    __slots__ = ("value",)

    def __init__(self, value: object, label: str) -> None:
        self.value = value
        self.label = label

    def read(self) -> object:
        return self.value


class GradientPlace(Place):
    """`.grad` of the handle at a place."""

    __slots__ = ("handle",)

    def __init__(self, handle: Place) -> None:
        self.handle = handle
        self.label = f"{handle.label}.grad"

    def read(self) -> object:
        handle = self.handle.read()
        return handle._grad if isinstance(handle, Tensor) else MISSING


def namespace(instance: object) -> dict[str, Any]:
    """The own attributes of an object, past what its class may say."""
    return object.__getattribute__(instance, "__dict__")

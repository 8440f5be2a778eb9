"""Lists whose entries are integers or `index` values: `[0, %n, 4]`.

An op keeps such a list as a property of integers, in which `DYNAMIC` marks the places of the values, and a variadic
operand with the values in order.  `Entries` reads them as one:

    size_values = variadic_operand(INDEX_)
    static_sizes = integers()
    sizes = mixed.Entries("static_sizes", "size_values", "sizes")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ..attributes import IntegerAttr
from ..definition import CONSTANT, INDEX_, Op
from ..types import DYNAMIC, INDEX
from ..values import Value

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

T = TypeVar("T")

Extent = int | Value
"""A size, offset or stride: a number, or an index value that holds it."""


class Entries:
    """A list of an op class: `op.sizes` is the list, `Class.sizes` its declaration."""

    __slots__ = ("dynamic", "static", "what")

    def __init__(self, static: str, dynamic: str, what: str) -> None:
        self.static = static
        """The name of the property."""
        self.dynamic = dynamic
        """The name of the operand."""
        self.what = what
        """What the entries are, in messages."""

    @overload
    def __get__(self, op: None, owner: object = None) -> Entries: ...
    @overload
    def __get__(self, op: Op, owner: object = None) -> list[Extent]: ...
    def __get__(self, op: Op | None, owner: object = None) -> Entries | list[Extent]:
        return self if op is None else merge(self.fixed(op), getattr(op, self.dynamic))

    def fixed(self, op: Op) -> Sequence[int]:
        """The property: the list with `DYNAMIC` for values."""
        found: Sequence[int] = getattr(op, self.static)
        return found

    def filled(self, op: Op, values: Sequence[Any]) -> list[int]:
        """The list with numbers in place of the values."""
        return [int(n) for n in merge(self.fixed(op), values)]

    def check(self, op: Op) -> None:
        """VerifyError when the marks and the values do not fit, or a value is not an index."""
        values: Sequence[Value] = getattr(op, self.dynamic)
        marks = sum(s == DYNAMIC for s in self.fixed(op))
        if marks != len(values):
            raise op.error(f"has {marks} dynamic {self.what} in its property but {len(values)} operands for them")
        for value in values:
            if value.type not in INDEX_:
                raise op.error(f"{self.what} must be of type index, got {value.type}")


def merge(static: Sequence[int], dynamic: Sequence[T]) -> list[int | T]:
    """The list that a property and an operand stand for."""
    rest = iter(dynamic)
    return [next(rest) if s == DYNAMIC else s for s in static]


def split(entries: Sequence[Extent]) -> tuple[list[int], list[Value]]:
    """`(property, operand)` for a list."""
    static = [e if isinstance(e, int) else DYNAMIC for e in entries]
    return static, [e for e in entries if not isinstance(e, int)]


def fixed(entries: Sequence[Extent]) -> list[int]:
    """The entries with `DYNAMIC` for values: the property's form."""
    return split(entries)[0]


def known(value: Value) -> int | None:
    """The integer that a value is known to be, when a constant defines it."""
    op = value.defining_op
    if op is not None and CONSTANT in op.traits:
        attribute = op.properties.get("value")
        if isinstance(attribute, IntegerAttr):
            return attribute.value
    return None


def parse(p: Parser, opening: str = "[", closing: str = "]") -> list[Extent]:
    """`[0, %n]`."""

    def entry() -> Extent:
        return p.operand(INDEX) if p.at_value() else p.integer()

    return p.list(opening, entry, closing)


def write(w: Printer, entries: Sequence[Extent], opening: str = "[", closing: str = "]") -> None:
    """`[0, %n]`."""
    w.write(opening)
    for i, e in enumerate(entries):
        if i:
            w.write(", ")
        if isinstance(e, int):
            w.write(str(e))
        else:
            w.value(e)
    w.write(closing)

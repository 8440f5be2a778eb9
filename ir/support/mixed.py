"""Lists whose entries are integers or `index` values: `[0, %n, 4]`.

An op keeps such a list as a property of integers, in which `DYNAMIC` marks the places of the values, and a variadic
operand with the values in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import IntegerAttr
from ..definition import CONSTANT, INDEX_, Op
from ..types import DYNAMIC, INDEX
from ..values import Value

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

Extent = int | Value
"""A size, offset or stride: a number, or an index value that holds it."""


def merge(static: Sequence[int], dynamic: Sequence[Value]) -> list[Extent]:
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


def check(op: Op, what: str, static: Sequence[int], dynamic: Sequence[Value]) -> None:
    """Raise when the marks and the values do not fit, or a value is not an index."""
    marks = sum(s == DYNAMIC for s in static)
    if marks != len(dynamic):
        raise op.error(f"has {marks} dynamic {what} in its property but {len(dynamic)} operands for them")
    for value in dynamic:
        if value.type not in INDEX_:
            raise op.error(f"{what} must be of type index, got {value.type}")


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

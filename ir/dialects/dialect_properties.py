"""Properties that upstream dialects keep in attributes of their own, read here as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..attributes import ArrayAttr, Attribute, DialectAttr, IntegerAttr
from ..definition import Property
from ..types import I64, IntegerType


class DialectEnumeration(Property[str]):
    """One of `names`, stored as `#dialect.<pattern with the name>` and read as the name.

    `pattern` has `{}` for the name: `"kind<{}>"` gives `#vector.kind<add>`, `"<dim {}>"` gives `#gpu<dim x>`.
    """

    __slots__ = ("names",)

    def __init__(self, dialect: str, pattern: str, names: Sequence[str], default: str | None = None) -> None:
        self.names = tuple(names)
        before, _, after = pattern.partition("{}")

        def encode(value: Any) -> Attribute:
            if value not in self.names:
                raise ValueError(f"{value!r} is none of {', '.join(self.names)}")
            return DialectAttr(dialect, f"{before}{value}{after}")

        def decode(attribute: Any) -> str:
            return attribute.body[len(before) : len(attribute.body) - len(after)]

        description = f"#{dialect}{'' if pattern[0] == '<' else '.'}{pattern.format('|'.join(self.names))}"
        super().__init__(DialectAttr, encode, decode, description, default)


def integer_list(element: IntegerType = I64, optional: bool = False) -> Property[tuple[int, ...]]:
    """`[1, 2]`: an array of integer attributes, read as a tuple of ints."""
    return Property(
        ArrayAttr,
        lambda values: ArrayAttr([IntegerAttr(v, element) for v in values]),
        lambda attribute: tuple(e.value for e in attribute.elements),
        f"an array of {element} integers",
        optional=optional,
    )


def integer_lists(element: IntegerType = I64) -> Property[tuple[tuple[int, ...], ...]]:
    """`[[0, 1], [2]]`, read as a tuple of tuples of ints."""
    return Property(
        ArrayAttr,
        lambda groups: ArrayAttr([ArrayAttr([IntegerAttr(v, element) for v in group]) for group in groups]),
        lambda attribute: tuple(tuple(e.value for e in group.elements) for group in attribute.elements),
        f"an array of arrays of {element} integers",
    )


def fast_math() -> Property[frozenset[str]]:
    """`#arith.fastmath<reassoc,contract>`, read as a set of flags; `none` and `fast` stand alone."""

    def encode(flags: Any) -> Attribute:
        given = [flags] if isinstance(flags, str) else list(flags)
        order = [f for f in FAST_MATH_FLAGS if f in given]
        if len(order) != len(set(given)):
            raise ValueError(f"{given} are not all of {', '.join(FAST_MATH_FLAGS)}")
        return DialectAttr("arith", f"fastmath<{','.join(order) or 'none'}>")

    def decode(attribute: Any) -> frozenset[str]:
        flags = frozenset(attribute.body[len("fastmath<") : -1].split(","))
        return frozenset(FAST_MATH_FLAGS[:-1]) if "fast" in flags else flags - {"none"}

    return Property(DialectAttr, encode, decode, "#arith.fastmath<..>", frozenset[str]())


FAST_MATH_FLAGS = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")

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


class FlagSet(Property[frozenset[str]]):
    """`#arith.<word><a, b>`, read as a set of flags; custom form writes `<a, b>` behind the word."""

    __slots__ = ("flags", "word")

    def __init__(self, word: str, flags: Sequence[str], separator: str) -> None:
        self.word = word
        self.flags = tuple(flags)

        def encode(value: Any) -> Attribute:
            given = {value} if isinstance(value, str) else set(value)
            unknown = sorted(given - {*self.flags, "none"})
            if unknown:
                raise ValueError(f"{', '.join(unknown)}: not among {', '.join(self.flags)}")
            text = separator.join(f for f in self.flags if f in given)
            return DialectAttr("arith", f"{word}<{text or 'none'}>")

        def decode(attribute: Any) -> frozenset[str]:
            given = frozenset(f.strip() for f in attribute.body[len(word) + 1 : -1].split(","))
            return frozenset(self.flags[:-1]) if "fast" in given else given - {"none"}

        super().__init__(DialectAttr, encode, decode, f"#arith.{word}<..>", frozenset[str]())

    def short(self, attribute: DialectAttr) -> str:
        """The attribute without dialect and word: `<a, b>`."""
        return attribute.body[len(self.word) :]

    def parse_short(self, text: str) -> Attribute:
        """The attribute of what stands in the angle brackets."""
        return self.encode([f.strip() for f in text.split(",")])


def fast_math() -> FlagSet:
    """`#arith.fastmath<reassoc,contract>`, read as a set of flags; `fast` stands for all."""
    return FlagSet("fastmath", FAST_MATH_FLAGS, ",")


def overflow_flags() -> FlagSet:
    """`#arith.overflow<nsw, nuw>`: overflow, as signed or as unsigned, does not happen."""
    return FlagSet("overflow", ("nsw", "nuw"), ", ")


FAST_MATH_FLAGS = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "fast")

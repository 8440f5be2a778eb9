"""The overflow flags of integer ops."""

from __future__ import annotations

from typing import Any

from ...attributes import Attribute, DialectAttr
from ...definition import Property

OVERFLOW_FLAGS = ("nsw", "nuw")


def overflow_flags() -> Property[frozenset[str]]:
    """`#arith.overflow<nsw, nuw>`, read as a set of flags."""

    def encode(flags: Any) -> Attribute:
        given = {flags} if isinstance(flags, str) else set(flags)
        if not given <= set(OVERFLOW_FLAGS):
            raise ValueError(f"{sorted(given)} are not all of {', '.join(OVERFLOW_FLAGS)}")
        return DialectAttr("arith", f"overflow<{', '.join(f for f in OVERFLOW_FLAGS if f in given) or 'none'}>")

    def decode(attribute: Any) -> frozenset[str]:
        flags = attribute.body[len("overflow<") : -1].split(",")
        return frozenset(f.strip() for f in flags) - {"none"}

    return Property(DialectAttr, encode, decode, "#arith.overflow<..>", frozenset[str]())

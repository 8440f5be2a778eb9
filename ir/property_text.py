"""Properties in their short spelling, as custom forms and their attribute dictionaries write them.

`axis = 1` for an integer whose type is fixed, `axes = [1, 2]` for `array<i64: 1, 2>`, a bare word for an enumeration;
the full text of the attribute is accepted as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .attributes import (
    UNIT,
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DialectAttr,
    FloatAttr,
    IntegerAttr,
    key_text,
)
from .definition import Enumeration, Op, Property
from .lexer import DIGITS
from .types import FloatType, IntegerType

if TYPE_CHECKING:
    from .operations import Operation
    from .parser import Parser


def parse_property(p: Parser, declared: Property[Any]) -> Attribute:
    """A property's value: the short spelling of its kind, or the whole attribute."""
    token = p.tokens[p.i]
    kind = declared.kind
    start = p.i
    if isinstance(declared, Enumeration) and p.at_identifier():
        return p.checked(declared.encode, p.identifier(), at=start)
    if token == "<" and (short := getattr(declared, "parse_short", None)) is not None:
        return p.checked(short, p.balanced()[1:-1], at=start)
    type = declared.type
    if kind is DenseArrayAttr and token == "[" and isinstance(type, IntegerType | FloatType):
        return DenseArrayAttr.from_bits(p.list("[", lambda: p.element_bits(type), "]"), type)
    if type is not None and kind is not DenseArrayAttr and (token[:1] in DIGITS or token == "-"):
        found: Attribute = p.number_attr(type)
        if p.accept(":"):
            at = p.i
            if p.type() is not type:
                p.error(f"expected {declared.description}", at)
        return found
    found = p.attribute()
    if not isinstance(found, kind):
        if isinstance(found, ArrayAttr) and kind is DenseArrayAttr:
            p.error(f"expected {declared.description}", start)
        p.error(f"'{declared.name}' must be {declared.description}, got {found}", start)
    return found


def property_text(declared: Property[Any], attribute: Attribute) -> str:
    """The short spelling of a property's value."""
    if isinstance(declared, Enumeration) and isinstance(attribute, IntegerAttr):
        if 0 <= attribute.value < len(declared.names) and declared.encode(declared.names[attribute.value]) is attribute:
            return declared.names[attribute.value]
    if isinstance(attribute, DialectAttr) and (short := getattr(declared, "short", None)) is not None:
        return short(attribute)
    if isinstance(attribute, DenseArrayAttr) and attribute.element is declared.type:
        return f"[{str(attribute).partition(': ')[2][:-1]}]"
    if declared.type is not None and isinstance(attribute, IntegerAttr | FloatAttr) and attribute.type is declared.type:
        return str(attribute).partition(" : ")[0]
    return str(attribute)


def attr_dict_text(op: Operation, elided: frozenset[str] = frozenset()) -> str:
    """` {..}`, "" when empty: properties that are not elided, in short spelling and declared order, then the
    discardable attributes by name."""
    parts: list[str] = []
    if isinstance(op, Op):
        given = op.properties
        for key, declared in op.definition.properties.items():
            value = given.get(key)
            if value is not None and key not in elided:
                parts.append(key_text(key) if value is UNIT else f"{key_text(key)} = {property_text(declared, value)}")
    parts += [key_text(k) if v is UNIT else f"{key_text(k)} = {v}" for k, v in sorted(op.attributes.items())]
    return f" {{{', '.join(parts)}}}" if parts else ""

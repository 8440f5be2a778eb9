"""The bodies of `dense<..>`: nested lists, a splat, or the bytes as one hexadecimal string.

The type stands behind the body, so a body is first read as tokens and becomes an attribute once its type is known.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from .attributes import Attribute, DenseAttr, element_code
from .float_bits import BITS_CODE, decimal_to_bits
from .lexer import DIGITS
from .types import I1, FloatType, IndexType, IntegerType, ShapedType, Type

if TYPE_CHECKING:
    from .attribute_parser import AttributeParser

Body = Callable[["AttributeParser", ShapedType, int], Attribute]
"""`body(parser, type, start)`: the attribute, errors at the token `start`."""


def parse_dense(p: AttributeParser) -> Body:
    """Read what stands between the angle brackets."""
    token = p.tokens[p.i]
    if token == ">":
        return _empty
    if token[:1] == '"':
        start = p.i
        text = p.string()
        return lambda p, type, _: _from_hex(p, type, text, start)
    literals, shape = _elements(p)
    return lambda p, type, start: _from_literals(p, type, literals, shape, start)


def _empty(p: AttributeParser, type: ShapedType, start: int) -> Attribute:
    if type.num_elements:
        p.error(f"an empty body for {type}, which has {type.num_elements} elements", start)
    return DenseAttr(type, b"")


def _from_hex(p: AttributeParser, type: ShapedType, text: str, start: int) -> Attribute:
    try:
        if not text.startswith("0x"):
            raise ValueError
        data = bytes.fromhex(text[2:])
    except ValueError:
        p.error("expected bytes in hexadecimal, '0x..'", start)
    size = struct.calcsize(p.checked(element_code, type.element, at=start))
    if type.element is I1:
        p.error("elements of type i1 are written as a list", start)
    if len(data) not in (size, size * type.num_elements):
        p.error(f"{len(data)} bytes for {type}, which takes {size * type.num_elements}", start)
    return p.checked(DenseAttr, type, data, at=start)


def _elements(p: AttributeParser) -> tuple[list[tuple[str, bool, int]], tuple[int, ...] | None]:
    """The literals `(token, negative, place)` of nested lists and the lists' shape (None: one bare literal)."""
    literals: list[tuple[str, bool, int]] = []
    if not p.at("["):
        _literal(p, literals)
        return literals, None
    extents: list[int] = []  # of the finished lists at each depth, -1 while unknown
    counts: list[int] = []  # elements so far of each open list
    leaf = -1
    while True:
        if p.accept("["):
            counts.append(0)
            if len(counts) > 64:
                p.error("dense lists nested more than 64 deep")
            if len(extents) < len(counts):
                extents.append(-1)
            if p.tokens[p.i] != "]":
                continue
        else:
            if leaf not in (-1, len(counts)):
                p.error("dense lists of different depths")
            leaf = len(counts)
            _literal(p, literals)
            counts[-1] += 1
        # An element is complete: a comma leads to the next, a bracket ends the list, which is an element itself.
        while True:
            if p.accept(","):
                break
            depth = len(counts)
            p.expect("]")
            if extents[depth - 1] not in (-1, counts[-1]):
                p.error("dense lists of different lengths", p.i - 1)
            extents[depth - 1] = counts.pop()
            if not counts:
                if leaf not in (-1, len(extents)):
                    p.error("dense lists of different depths", p.i - 1)
                return literals, tuple(extents)
            counts[-1] += 1


def _literal(p: AttributeParser, literals: list[tuple[str, bool, int]]) -> None:
    start = p.i
    negative = p.accept("-")
    token = p.tokens[p.i]
    if not (token[:1] in DIGITS and token) and token not in ("true", "false"):
        p.unexpected("a number")
    p.i += 1
    literals.append((token, negative, start))


def _from_literals(
    p: AttributeParser,
    type: ShapedType,
    literals: list[tuple[str, bool, int]],
    shape: tuple[int, ...] | None,
    start: int,
) -> Attribute:
    if shape is not None and shape != type.shape:
        p.error(f"a list of shape {list(shape)} for {type}", start)
    element = type.element
    code = p.checked(element_code, element, at=start)
    if isinstance(element, FloatType):
        code = BITS_CODE[element.width]
    known: dict[tuple[str, bool], int] = {}
    values: list[int] = []
    for token, negative, place in literals:
        found = known.get((token, negative))
        if found is None:
            found = known[token, negative] = _value(p, element, token, negative, place)
        values.append(found)
    if shape is None and not type.num_elements:
        return DenseAttr(type, b"")
    return p.checked(DenseAttr, type, struct.pack(f"<{len(values)}{code}", *values), at=start)


def _value(p: AttributeParser, element: Type, token: str, negative: bool, place: int) -> int:
    if token in ("true", "false"):
        if not isinstance(element, IntegerType) or element.width != 1 or negative:
            p.error(f"a bool for an element of type {element}", place)
        return int(token == "true")
    if isinstance(element, FloatType):
        if "." in token:  # straight to the bits: a list may be long
            return decimal_to_bits("-" + token if negative else token, element)
        return p.number_value(token, negative, element, place).bits  # pyright: ignore
    if not isinstance(element, IntegerType | IndexType):
        p.error(f"no literals for elements of type {element}", place)
    value = p.number_value(token, negative, element, place).value
    assert isinstance(value, int)
    return value

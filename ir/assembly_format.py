"""`assembly` strings read into elements: literals, variables, types, optional groups."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .definition import Field, Op


class Literal(NamedTuple):
    """Text that stands as it is."""

    text: str


class Variable(NamedTuple):
    """`$name`: an operand, property, region or successor."""

    field: Any


class TypeOf(NamedTuple):
    """`type($name)`."""

    field: Field


class Types(NamedTuple):
    """`signature`, `functional-type(..)`, `type(operands)` or `type(results)`."""

    kind: str


class AttrDict(NamedTuple):
    """`attr-dict`."""


class Group(NamedTuple):
    """`( elements )?`, there when the anchor is."""

    elements: tuple[Any, ...]
    anchor: Any


_FORMAT = re.compile(
    r"\s*(?:`(?P<literal>[^`]*)`|(?P<anchor>type\(\s*\$\w+\s*\)\^|\$\w+\^)|\$(?P<name>\w+)|type\(\s*\$(?P<type>\w+)\s*\)"
    r"|(?P<types>functional-type\(\s*operands\s*,\s*results\s*\)|type\(\s*operands\s*\)|type\(\s*results\s*\)|signature)"
    r"|(?P<dict>attr-dict)|(?P<open>\()|(?P<close>\)\?))"
)


def parse_format(cls: type[Op]) -> list[Any]:
    """The elements of a class's assembly string; TypeError where the string is wrong."""
    text = cls.assembly or ""
    definition = cls.definition
    fields: dict[str, Any] = {f.name: f for kind in definition.lists() for f in kind} | definition.properties
    position = 0
    stack: list[list[Any]] = [[]]
    anchors: list[Any] = []

    def field(name: str) -> Any:
        if name not in fields:
            raise TypeError(f"{cls.name}: assembly names '{name}', which the op does not have")
        return fields[name]

    while position < len(text.rstrip()):
        match = _FORMAT.match(text, position)
        if match is None:
            raise TypeError(f"{cls.name}: assembly is wrong at {text[position:]!r}")
        position = match.end()
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        top = stack[-1]
        if kind == "literal":
            top.append(Literal(value))
        elif kind == "name":
            top.append(Variable(field(value)))
        elif kind == "type":
            top.append(TypeOf(field(value)))
        elif kind == "types":
            top.append(Types(value.replace(" ", "")))
        elif kind == "dict":
            top.append(AttrDict())
        elif kind == "anchor":
            found = field(value.strip("type()$^ ") if value.startswith("type") else value[1:-1])
            top.append(TypeOf(found) if value.startswith("type") else Variable(found))
            anchors.append(found)
        elif kind == "open":
            stack.append([])
        else:
            if len(stack) < 2 or not anchors:
                raise TypeError(f"{cls.name}: an optional group of assembly needs one anchor")
            elements = tuple(stack.pop())
            stack[-1].append(Group(elements, anchors.pop()))
    if len(stack) != 1:
        raise TypeError(f"{cls.name}: assembly has an open group")
    return stack[0]


def flat(elements: list[Any] | tuple[Any, ...]) -> list[Any]:
    """All elements, those of groups in place of the groups."""
    out: list[Any] = []
    for element in elements:
        out += flat(element.elements) if isinstance(element, Group) else [element]
    return out

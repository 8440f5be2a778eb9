"""Custom forms from `assembly` strings: one string gives both the parser and the printer of an op.

The string follows MLIR's declarative format:

    "$lhs `,` $rhs attr-dict `:` type($result)"

`$name` stands for an operand, property, region or successor, backquotes for literal text, `type(..)` for types,
`( .. $anchor^ .. )?` for a part that is there when its anchor is, `functional-type(operands, results)` for `(T) -> T`,
and `signature` for `T` when all types are one, else `T, T -> T`.

This file reads the string; `ir.assembly_parser` and `ir.assembly_printer` each compile it, when the op is first met,
into a Python function.  Types that the text does not give follow from the operand's constraint, from the trait
SAME_TYPE, from the only type that is given, or from `infer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .definition import ISOLATED, Field, Op
from .interfaces import CustomForm

if TYPE_CHECKING:
    from .operations import Operation
    from .parser import Parser


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


_PRINTERS: dict[type[Operation], Callable[[Any, Any], None] | None] = {}


def custom_parser(cls: type[Op]) -> Callable[[Parser], Operation] | None:
    """The function that parses a class's custom form; None when it has none."""
    if issubclass(cls, CustomForm):
        return cls.parse
    if cls.assembly is None:
        return None
    from .assembly_parser import ParserSource

    return ParserSource(cls).compile()


def custom_printer(cls: type[Operation]) -> Callable[[Any, Any], None] | None:
    """The function `(op, printer)` that prints a class's custom form behind its name; None when it has none."""
    if cls in _PRINTERS:
        return _PRINTERS[cls]
    found: Callable[[Any, Any], None] | None = None
    if issubclass(cls, CustomForm):
        found = cls.print
    elif issubclass(cls, Op) and cls.assembly is not None:
        from .assembly_printer import PrinterSource

        found = PrinterSource(cls).compile()
    _PRINTERS[cls] = found
    return found


ISOLATED_FOR_MLIR = frozenset(("builtin.module", "func.func", "gpu.module", "gpu.func"))
"""Isolated ops that may reuse outer names in generic form too: those that mlir-opt knows to be isolated."""


def is_isolated(cls: type[Op]) -> bool:
    """Whether the regions of a class have names of their own in generic form."""
    return ISOLATED in cls.traits and cls.name in ISOLATED_FOR_MLIR

"""Custom forms from `assembly` strings: one string gives both the parser and the printer of an op.

The string follows MLIR's declarative format:

    "$lhs `,` $rhs attr-dict `:` type($result)"

`$name` stands for an operand, property, region or successor, backquotes for literal text, `type(..)` for types,
`( .. $anchor^ .. )?` for a part that is there when its anchor is, `functional-type(operands, results)` for `(T) -> T`,
and `signature` for `T` when all types are one, else `T, T -> T`.

`ir.assembly_format` reads the string; `ir.assembly_parser` and `ir.assembly_printer` each compile it into a Python
function when the op is first met.  Types that the text does not give follow from the operand's constraint, from the
trait SAME_TYPE, from the only type that is given, or from `infer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .assembly_parser import ParserSource
from .assembly_printer import PrinterSource
from .definition import ISOLATED, Op
from .interfaces import CustomForm

if TYPE_CHECKING:
    from .operations import Operation
    from .parser import Parser


_PRINTERS: dict[type[Operation], Callable[[Any, Any], None] | None] = {}


def custom_parser(cls: type[Op]) -> Callable[[Parser], Operation] | None:
    """The function that parses a class's custom form; None when it has none."""
    if issubclass(cls, CustomForm):
        return cls.parse
    if cls.assembly is None:
        return None
    return ParserSource(cls).compile()


def custom_printer(cls: type[Operation]) -> Callable[[Any, Any], None] | None:
    """The function `(op, printer)` that prints a class's custom form behind its name; None when it has none."""
    if cls in _PRINTERS:
        return _PRINTERS[cls]
    found: Callable[[Any, Any], None] | None = None
    if issubclass(cls, CustomForm):
        found = cls.print
    elif issubclass(cls, Op) and cls.assembly is not None:
        found = PrinterSource(cls).compile()
    _PRINTERS[cls] = found
    return found


ISOLATED_FOR_MLIR = frozenset(("builtin.module", "func.func", "gpu.module", "gpu.func"))
"""Isolated ops that may reuse outer names in generic form too: those that mlir-opt knows to be isolated."""


def is_isolated(cls: type[Op]) -> bool:
    """Whether the regions of a class have names of their own in generic form."""
    return ISOLATED in cls.traits and cls.name in ISOLATED_FOR_MLIR

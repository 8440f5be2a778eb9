"""Functions whose bodies a builder writes, run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from nablair.ir.builder import Builder
from nablair.ir.dialects import func
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.operations import Operation
from nablair.ir.parser import parse_module
from nablair.ir.types import Type
from nablair.ir.values import Value
from nablair.ir.verifier import verify

B = TypeVar("B", bound=Builder)


def built(kind: Callable[..., B], types: Sequence[Type], write: Callable[..., Sequence[Value]]) -> Operation:
    """A module with a function `main` of arguments of these types; `write(builder, *arguments)` gives its results."""
    text = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    module = parse_module(f"func.func @main({text}) {{\n  return\n}}")
    function = module.block.first
    assert isinstance(function, func.Func)
    results = write(kind(function.entry, function.returns), *function.arguments)
    function.returns.set_operands(results)
    function.update_type()
    verify(module)
    return module


def computed(
    kind: Callable[..., B], types: Sequence[Type], write: Callable[..., Sequence[Value]], *arguments: Any
) -> list[Any]:
    """What that function gives for some arguments."""
    return Interpreter(built(kind, types, write)).call("main", list(arguments))

"""Ops of a module by their class, as ops of that class."""

from typing import TypeVar

from nablair.ir.operations import Operation

Found = TypeVar("Found", bound=Operation)


def every(module: Operation, cls: type[Found]) -> list[Found]:
    """All ops of a class, in textual order."""
    return [op for op in module.walk() if isinstance(op, cls)]


def first(module: Operation, cls: type[Found]) -> Found:
    """The first op of a class."""
    return every(module, cls)[0]

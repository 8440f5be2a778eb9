"""What the emissions of all targets share: how tables of emitters are filled, and how `memref.dim` reads an extent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..ir.diagnostics import LoweringError

Function = TypeVar("Function")
Emitter = Callable[[Function, Any], None]
"""Emits an op into a function under construction."""


def registration(
    table: dict[str, Emitter[Function]],
) -> Callable[..., Callable[[Emitter[Function]], Emitter[Function]]]:
    """The decorator that enters an emitter in a table under the names of its ops."""

    def emits(*names: str) -> Callable[[Emitter[Function]], Emitter[Function]]:
        def register(emit: Emitter[Function]) -> Emitter[Function]:
            for name in names:
                table[name] = emit
            return emit

        return register

    return emits


def chosen_extent(op: Any, sizes: Sequence[int | str], axis: int | str) -> str:
    """The extent that `memref.dim` reads, as an operand; LoweringError when the axis is not a constant in range."""
    if not isinstance(axis, int) or not 0 <= axis < len(sizes):
        raise LoweringError(f"memref.dim needs a constant axis of {op.source.type}", op.location)
    return str(sizes[axis])

"""What the emissions of all targets share: how tables of emitters are filled and used, strides, and how `memref.dim`
reads an extent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from ..ir.diagnostics import LoweringError
from ..ir.operations import Block, Operation
from ..ir.support.mixed import known
from ..ir.values import BlockArgument, Value

Function = TypeVar("Function")
Held = TypeVar("Held")
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


class Bindings(dict[Value, Held]):
    """What values are in the text; LoweringError for one without a place there: a buffer that is chosen at run time."""

    def __missing__(self, value: Value) -> Held:
        block = value.block
        op = block.parent_op if isinstance(value, BlockArgument) and block is not None else value.defining_op
        what = f"'{op.name}' op " if op is not None else ""
        message = f"{what}gives a {value.type} that is chosen at run time, which the target cannot follow"
        raise LoweringError(message, None if op is None else op.location)


class Emission:
    """A function under construction, of any target: it walks blocks and hands each op to its emitter."""

    target: ClassVar[str]
    """The target's name, for messages."""
    emitters: ClassVar[dict[str, Emitter[Any]]]
    """How each op is emitted, by name."""

    def multiply(self, a: int | str, b: int | str) -> int | str:
        """a * b, folded where both are numbers."""
        raise NotImplementedError

    def row_major(self, sizes: Sequence[int | str]) -> tuple[int | str, ...]:
        """The strides of a contiguous row-major buffer."""
        strides: list[int | str] = []
        stride: int | str = 1
        for size in reversed(sizes):
            strides.append(stride)
            stride = self.multiply(stride, size)
        return tuple(reversed(strides))

    def block(self, block: Block) -> Operation:
        """Emit the ops of a block but its terminator, which is returned."""
        last = block.terminator
        for op in block:
            if op is last:
                break
            self.op(op)
        return last

    def op(self, op: Operation) -> None:
        """Emit one op."""
        emit = self.emitters.get(op.name)
        if emit is None:
            raise LoweringError(f"the {self.target} target has no emission for '{op.name}'", op.location)
        emit(self, op)


def check_step(op: Any) -> None:
    """Refuse a loop whose step is known not to be positive: it would never end."""
    step = known(op.step)
    if step is not None and step <= 0:
        raise LoweringError(f"'{op.name}' op needs a positive step, got {step}", op.location)


def chosen_extent(op: Any, sizes: Sequence[int | str], axis: int | str) -> str:
    """The extent that `memref.dim` reads, as an operand; LoweringError when the axis is not a constant in range."""
    if not isinstance(axis, int) or not 0 <= axis < len(sizes):
        raise LoweringError(f"memref.dim needs a constant axis of {op.source.type}", op.location)
    return str(sizes[axis])

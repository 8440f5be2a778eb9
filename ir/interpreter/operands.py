"""The arrays that a launch reads and writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, SupportsInt

from ..dialects.kernel import Access
from ..numeric import is_bool
from .machine import InterpreterError

if TYPE_CHECKING:
    from ..arrays import Array, DType


class Memory:
    """An array that a launch reads: an in."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array


class Out:
    """An array that a launch writes; `counts` the stores to each element, None where any number may be."""

    __slots__ = ("array", "counts")

    def __init__(self, array: Array, counts: Array | None) -> None:
        self.array = array
        self.counts = counts


def as_dtype(value: Any, wanted: DType) -> Any:
    """A value between memory and the scalars of the program: integers keep their bits, a bool in a byte its truth."""
    if value.dtype == wanted:
        return value
    return value.astype(wanted) if is_bool(value) or is_bool(wanted) else value.view(wanted)


def out_of_bounds(op: Access, place: Sequence[SupportsInt], shape: Sequence[SupportsInt]) -> InterpreterError:
    """The error for an access outside an array."""
    verb = "reads" if op.name == "kernel.load" else "writes"
    at = ", ".join(str(int(i)) for i in place)
    text = "x".join(str(int(n)) for n in shape) or "()"
    return InterpreterError(f"'{op.name}' op {verb} element [{at}] of an array of shape {text}", op.location)

"""The ops that reductions and atomic updates name by a word, as functions of two NumPy values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from ..interfaces import Evaluates
from ..registry import lookup
from ..types import FloatType, Type

if TYPE_CHECKING:
    from ..arrays import Array

# By the kind's word: the arith op for floats (None: there is none) and the one for integers.
_OPS: dict[str, tuple[str | None, str | None]] = {
    "add": ("addf", "addi"),
    "mul": ("mulf", "muli"),
    "maximum": ("maximumf", None),
    "minimum": ("minimumf", None),
    "maxnum": ("maxnumf", None),
    "minnum": ("minnumf", None),
    "maxs": (None, "maxsi"),
    "maxu": (None, "maxui"),
    "mins": (None, "minsi"),
    "minu": (None, "minui"),
    "and": (None, "andi"),
    "or": (None, "ori"),
    "xor": (None, "xori"),
}


@cache
def combiner(kind: str, element: Type) -> Callable[[Array, Array], Array]:
    """The meaning of a kind (`add`, `addf`, `maximumf`, `maxsi`, `andi`, ..) on values of an element type.

    ValueError when the kind combines no such elements.
    """
    if kind == "assign":
        return lambda old, new: new
    word = next((w for w in (kind, kind[:-1]) if w in _OPS), "")
    name = _OPS.get(word, (None, None))[not isinstance(element, FloatType)]
    cls = lookup(f"arith.{name}")
    if name is None or cls is None:
        raise ValueError(f"'{kind}' does not combine elements of type {element}")
    op = cls()
    assert isinstance(op, Evaluates)
    return op.evaluate

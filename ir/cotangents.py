"""What derivative rules speak of: partials, and cotangents with masks (`ir.builders.masks` says what masks are for)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from .values import Value

Linear = Callable[[Value], Value]
"""How a change of an operand changes the result."""


def _identity(t: Value) -> Value:
    return t


ONE: Final[Linear] = _identity
"""The partial of an operand that is passed through."""


@dataclass(frozen=True, slots=True)
class Masked:
    """A partial that is `linear` where `condition` (a tensor of i1) holds and exactly 0 elsewhere.

    `soft`: the condition compares the operand itself with what was taken in its place (relu, maximum, clip), so that
    an operand that is NaN is never dropped."""

    condition: Value
    linear: Linear = ONE
    soft: bool = False


Partial = Linear | Masked | None
"""None: there is none, as of an integer."""


@dataclass(frozen=True, slots=True)
class Factor:
    """A condition of a mask: a tensor of i1 that broadcasts to the cotangent; `soft` as in `Masked`."""

    value: Value
    soft: bool = False


Mask = tuple[Factor, ...]
"""Live where all hold; of nothing: everywhere."""


@dataclass(frozen=True, slots=True)
class Cotangent:
    """A cotangent that counts only where `mask` holds; `zeroed`: the value is 0 elsewhere already."""

    value: Value
    mask: Mask = ()
    zeroed: bool = False

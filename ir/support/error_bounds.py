"""Running error analysis: how far a computation in finite precision may lie from the exact result.

What an op does with values and errors says its class, by `bound` (`ir.interfaces.BoundsErrors`); this is what those
have in common.  The bounds hold whatever order a target sums in, whether it contracts products and sums, and as long as
its functions stay within `FUNCTION_ULP` (Wilkinson's running error analysis; Higham, "Accuracy and Stability of
Numerical Algorithms", 2nd ed., section 3.3).  A bound is infinite where the analysis can say nothing: a division by
what may be 0, a comparison of inexact values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..arrays import Array

FUNCTION_ULP = 4.0
"""Errors of functions that a target may make, in units of the last place: f32 promises 2, f64 promises 4."""

SUM_UNIT = 2.0**-24
"""The unit roundoff that sums are made with at worst: that of f32."""


class Bounded(NamedTuple):
    """Values in float64 (integers and bools as they are), and how far from the exact ones each may be."""

    value: Array
    error: Array


def rounded(value: Array, error: Array, unit: float, ulps: float = 1.0) -> Bounded:
    """A result that is rounded to its type, of the unit roundoff `unit`, once more."""
    return Bounded(value, error + ulps * unit * (abs(value) + error) * (1 + 2.0**-40) + (2.0**-149 if unit else 0.0))


def of_function(value: Array, error: Array, unit: float) -> Bounded:
    """The result of a function that a target has its own way to compute."""
    return rounded(value, error, unit, 2 * FUNCTION_ULP)


def exact(value: Array) -> Bounded:
    """A result without an error."""
    import numpy as np

    return Bounded(value, np.zeros(np.shape(value)))


def certain(value: Array, known: Array | bool) -> Bounded:
    """A result that is right where `known` holds and anything elsewhere."""
    import numpy as np

    return Bounded(value, np.where(known, 0.0, np.inf))


def moved(evaluate: Callable[..., Array], x: Bounded, *rest: Bounded) -> Bounded:
    """Errors that move with the values."""
    given = [r.value for r in rest]
    return Bounded(evaluate(x.value, *given), evaluate(x.error, *given))


def wide(array: Array) -> Array:
    """An array of floats as float64, one of integers or bools as it is."""
    import numpy as np

    return array if array.dtype.kind in "iub" else array.astype(np.float64)


def is_exact_kind(array: Array) -> bool:
    """Whether the elements are integers or bools."""
    return array.dtype.kind in "iub"

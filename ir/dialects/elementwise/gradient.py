"""Ops that say something to differentiation only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...definition import Sample
from ...interfaces import NoDerivative, Tame
from ...support.tensor_op import ELEMENTS
from ...values import Value
from .family import Unary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder


class StopGradient(Unary, Tame, NoDerivative):
    """x itself, with the derivative 0.  It is not folded, since the result may still be differentiated."""

    name = "elementwise.stop_gradient"
    samples = (Sample("x"),)
    accepts = ELEMENTS

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return x

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return operands[0]

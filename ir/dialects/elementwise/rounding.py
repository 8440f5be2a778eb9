"""Rounding of floats to whole numbers, as floats; signs of zeros are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...definition import Api, Sample
from ...interfaces import NoDerivative, Tame
from ...support.error_bounds import Bounded, certain
from ...values import Value
from .family import UnaryFloat

if TYPE_CHECKING:
    from ...builders.scalar import ScalarBuilder


class Rounding(UnaryFloat, Tame, NoDerivative):
    """Base of the ops that round a float to an integral value."""

    def bound(self, unit: float, x: Bounded) -> Bounded:
        """Exact where no admissible error crosses to another whole number."""
        value, error = self.formula(x.value), x.error
        same = (self.formula(x.value - error) == value) & (self.formula(x.value + error) == value)
        return certain(value, same | (error == 0))


class Floor(Rounding):
    """Rounded toward minus infinity."""

    name = "elementwise.floor"
    api = Api("floor", "stay")
    samples = (Sample("numpy:floor"),)
    function = "floor"


class Ceil(Rounding):
    """Rounded toward plus infinity."""

    name = "elementwise.ceil"
    api = Api("ceil", "stay")
    samples = (Sample("numpy:ceil"),)
    function = "ceil"


class Trunc(Rounding):
    """Rounded toward zero."""

    name = "elementwise.trunc"
    api = Api("trunc", "stay")
    samples = (Sample("numpy:trunc"),)
    function = "trunc"


class Round(Rounding):
    """Rounded to nearest, halves to even."""

    name = "elementwise.round"
    api = Api("round", "stay")
    samples = (Sample("numpy:round"),)
    function = "round"

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.roundeven(*operands)

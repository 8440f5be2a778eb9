"""Rounding of floats to whole numbers, as floats; signs of zeros are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...definition import Api, Sample
from ...interfaces import NoDerivative, Tame
from ...values import Value
from .family import UnaryFloat

if TYPE_CHECKING:
    from ...builders.scalar import ScalarBuilder


class Floor(UnaryFloat, Tame, NoDerivative):
    """Rounded toward minus infinity."""

    name = "elementwise.floor"
    api = Api("floor", "stay")
    samples = (Sample("numpy:floor"),)
    function = "floor"


class Ceil(UnaryFloat, Tame, NoDerivative):
    """Rounded toward plus infinity."""

    name = "elementwise.ceil"
    api = Api("ceil", "stay")
    samples = (Sample("numpy:ceil"),)
    function = "ceil"


class Trunc(UnaryFloat, Tame, NoDerivative):
    """Rounded toward zero."""

    name = "elementwise.trunc"
    api = Api("trunc", "stay")
    samples = (Sample("numpy:trunc"),)
    function = "trunc"


class Round(UnaryFloat, Tame, NoDerivative):
    """Rounded to nearest, halves to even."""

    name = "elementwise.round"
    api = Api("round", "stay")
    samples = (Sample("numpy:round"),)
    function = "round"

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.roundeven(*operands)

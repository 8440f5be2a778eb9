"""Circular and hyperbolic functions, on floats."""

from __future__ import annotations

from ...interfaces import Tame
from .family import UnaryFloat


class Sin(UnaryFloat, Tame):
    """The sine of x radians; NaN at infinities."""

    name = "elementwise.sin"
    function = "sin"


class Cos(UnaryFloat, Tame):
    """The cosine of x radians; NaN at infinities."""

    name = "elementwise.cos"
    function = "cos"


class Tanh(UnaryFloat, Tame):
    """The hyperbolic tangent."""

    name = "elementwise.tanh"
    function = "tanh"

"""Circular and hyperbolic functions, on floats."""

from __future__ import annotations

from .family import UnaryFloat


class Sin(UnaryFloat):
    """The sine of x radians; NaN at infinities."""

    name = "elementwise.sin"
    function = "sin"


class Cos(UnaryFloat):
    """The cosine of x radians; NaN at infinities."""

    name = "elementwise.cos"
    function = "cos"


class Tanh(UnaryFloat):
    """The hyperbolic tangent."""

    name = "elementwise.tanh"
    function = "tanh"

"""Circular and hyperbolic functions, on floats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...definition import Api, Sample
from ...interfaces import HasPartials, Tame
from .family import UnaryFloat

if TYPE_CHECKING:
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Sin(UnaryFloat, Tame, HasPartials):
    """The sine of x radians; NaN at infinities."""

    name = "elementwise.sin"
    api = Api("sin", "float")
    samples = (Sample("numpy:sin"),)
    slope = 1.0
    function = "sin"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, b.cos(self.x))


class Cos(UnaryFloat, Tame, HasPartials):
    """The cosine of x radians; NaN at infinities."""

    name = "elementwise.cos"
    api = Api("cos", "float")
    samples = (Sample("numpy:cos"),)
    slope = 1.0
    function = "cos"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.neg(b.mul(t, b.sin(self.x)))


class Tanh(UnaryFloat, Tame, HasPartials):
    """The hyperbolic tangent."""

    name = "elementwise.tanh"
    api = Api("tanh", "float")
    samples = (Sample("numpy:tanh"),)
    slope = 1.0
    function = "tanh"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """1 - y*y, from the result alone and as exact as it: far out, where y is 1 but for its rounding, it is right to
        the spacing of numbers at 1 and no further.  A form without cancellation takes another exp and a division, which
        double the time of a chain with a tanh."""
        yield lambda t: b.mul(t, b.sub(1.0, b.mul(self.result, self.result)))

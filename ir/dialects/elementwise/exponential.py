"""Exponentials, logarithms, roots and the error function, on floats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...definition import Api, Sample
from ...interfaces import HasPartials, Tame
from .family import UnaryFloat

if TYPE_CHECKING:
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Exp(UnaryFloat, HasPartials):
    """e ** x."""

    name = "elementwise.exp"
    api = Api("exp", "float")
    samples = (Sample("numpy:exp"),)
    function = "exp"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, self.result)


class Expm1(UnaryFloat, HasPartials):
    """e ** x - 1, precise near 0."""

    name = "elementwise.expm1"
    api = Api("expm1", "float")
    samples = (Sample("numpy:expm1"),)
    function = "expm1"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """exp(x), and not the result + 1, which is 0 far below 0."""
        yield lambda t: b.mul(t, b.exp(self.x))


class Log(UnaryFloat, HasPartials):
    """The natural logarithm: -inf at 0, NaN below."""

    name = "elementwise.log"
    api = Api("log", "float")
    samples = (Sample("numpy:log", low=0.1),)
    function = "log"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(t, self.x)


class Log1p(UnaryFloat, HasPartials):
    """log(1 + x), precise near 0."""

    name = "elementwise.log1p"
    api = Api("log1p", "float")
    samples = (Sample("numpy:log1p", low=-0.9),)
    function = "log1p"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(t, b.add(self.x, 1.0))


class Sqrt(UnaryFloat, HasPartials):
    """The square root: NaN below 0, -0.0 at -0.0; its derivative at 0 is inf, so that of sqrt(x * x) there is NaN."""

    name = "elementwise.sqrt"
    api = Api("sqrt", "float")
    samples = (Sample("numpy:sqrt", low=0.1),)
    function = "sqrt"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(b.mul(t, 0.5), self.result)


class Rsqrt(UnaryFloat, HasPartials):
    """1 / sqrt(x): an infinity at zeros."""

    name = "elementwise.rsqrt"
    api = Api("rsqrt", "float")
    samples = (Sample("1 / np.sqrt(x)", low=0.1),)
    function = "rsqrt"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(b.mul(t, -0.5), b.div(self.result, self.x))


class Erf(UnaryFloat, Tame, HasPartials):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    name = "elementwise.erf"
    api = Api("erf", "float")
    samples = (Sample("scipy.special:erf"),)
    function = "erf"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(b.mul(t, 2.0 / math.sqrt(math.pi)), b.exp(b.neg(b.mul(self.x, self.x))))

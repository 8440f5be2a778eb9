"""Exponentials, logarithms, roots and the error function, on floats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...definition import Api, Sample
from ...interfaces import HasPartials, Tame
from ...support.error_bounds import Bounded, of_function, rounded
from .family import UnaryFloat

if TYPE_CHECKING:
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial
    from ...support.error_bounds import Array


class Exp(UnaryFloat, HasPartials):
    """e ** x."""

    name = "elementwise.exp"
    api = Api("exp", "float")
    samples = (Sample("numpy:exp"),)
    function = "exp"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, self.result)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        return of_function(np.exp(x.value), np.exp(x.value) * np.expm1(x.error), unit)


class Expm1(UnaryFloat, HasPartials):
    """e ** x - 1, precise near 0."""

    name = "elementwise.expm1"
    api = Api("expm1", "float")
    samples = (Sample("numpy:expm1"),)
    function = "expm1"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """exp(x), and not the result + 1, which is 0 far below 0."""
        yield lambda t: b.mul(t, b.exp(self.x))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        return of_function(np.expm1(x.value), np.exp(x.value) * np.expm1(x.error), unit)


class Log(UnaryFloat, HasPartials):
    """The natural logarithm: -inf at 0, NaN below."""

    name = "elementwise.log"
    api = Api("log", "float")
    samples = (Sample("numpy:log", low=0.1),)
    function = "log"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(t, self.x)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return bound_of_logarithm(x.value, x.error, unit)


class Log1p(UnaryFloat, HasPartials):
    """log(1 + x), precise near 0."""

    name = "elementwise.log1p"
    api = Api("log1p", "float")
    samples = (Sample("numpy:log1p", low=-0.9),)
    function = "log1p"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(t, b.add(self.x, 1.0))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return bound_of_logarithm(x.value + 1.0, x.error, unit)


class Sqrt(UnaryFloat, HasPartials):
    """The square root: NaN below 0, -0.0 at -0.0; its derivative at 0 is inf, so that of sqrt(x * x) there is NaN."""

    name = "elementwise.sqrt"
    api = Api("sqrt", "float")
    samples = (Sample("numpy:sqrt", low=0.1),)
    function = "sqrt"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(b.mul(t, 0.5), self.result)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        room, root = x.value - x.error, np.sqrt(x.value)
        apart = np.sqrt(np.maximum(room, 0.0))
        spread = np.where((room >= 0) & (root > 0), x.error / (root + apart), np.sqrt(x.error))
        return rounded(root, np.where((room >= 0) | (x.error == 0), spread, np.inf), unit)


class Rsqrt(UnaryFloat, HasPartials):
    """1 / sqrt(x): an infinity at zeros."""

    name = "elementwise.rsqrt"
    api = Api("rsqrt", "float")
    samples = (Sample("1 / np.sqrt(x)", low=0.1),)
    function = "rsqrt"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(b.mul(t, -0.5), b.div(self.result, self.x))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        room = x.value - x.error
        error = np.where(room > 0, 0.5 * x.error / (room * np.sqrt(room)), np.inf)
        return of_function(1.0 / np.sqrt(x.value), error, unit)


class Erf(UnaryFloat, Tame, HasPartials):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    name = "elementwise.erf"
    api = Api("erf", "float")
    samples = (Sample("scipy.special:erf"),)
    slope = 1.1284
    function = "erf"

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(b.mul(t, 2.0 / math.sqrt(math.pi)), b.exp(b.neg(b.mul(self.x, self.x))))


def bound_of_logarithm(base: Array, error: Array, unit: float) -> Bounded:
    """The logarithm of a number that is so far from the exact one."""
    import numpy as np

    room = base - error
    return of_function(np.log(base), np.where(room > 0, error / room, np.inf), unit)

"""Exponentials, logarithms, roots and the error function, on floats."""

from __future__ import annotations

from ...interfaces import Tame
from .family import UnaryFloat


class Exp(UnaryFloat):
    """e ** x."""

    name = "elementwise.exp"
    function = "exp"


class Expm1(UnaryFloat):
    """e ** x - 1, precise near 0."""

    name = "elementwise.expm1"
    function = "expm1"


class Log(UnaryFloat):
    """The natural logarithm: -inf at 0, NaN below."""

    name = "elementwise.log"
    function = "log"


class Log1p(UnaryFloat):
    """log(1 + x), precise near 0."""

    name = "elementwise.log1p"
    function = "log1p"


class Sqrt(UnaryFloat):
    """The square root: NaN below 0, -0.0 at -0.0."""

    name = "elementwise.sqrt"
    function = "sqrt"


class Rsqrt(UnaryFloat):
    """1 / sqrt(x): an infinity at zeros."""

    name = "elementwise.rsqrt"
    function = "rsqrt"


class Erf(UnaryFloat, Tame):
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    name = "elementwise.erf"
    function = "erf"

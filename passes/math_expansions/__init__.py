"""Every transcendental function, and the remainder of floats, once, for all targets: programs over the primitives of
`arith`, fma, roundeven, sqrt and bit casts.

`EXPANSIONS` is the table of them: what `expand-math` replaces, and the largest error of each in units in the last place
over the whole domain, denormal arguments and results, infinities, NaN and -0.0 included. The tests hold every function
to its row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import (
    error_function,
    exponential,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    roots,
    trigonometric,
)

Program = Callable[..., Any]
"""An expansion, `f(b, x, ..) -> y` over a `MathBuilder` b and its values."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """A row: the program, its number of arguments and its error bounds."""

    program: Program
    arity: int
    ulp_f32: float
    ulp_f64: float


def _unary(program: Program, ulp_f32: float, ulp_f64: float) -> Expansion:
    return Expansion(program, 1, ulp_f32, ulp_f64)


EXPANSIONS: dict[str, Expansion] = {
    # op                 program                       ULP: f32  f64
    "arith.remf": Expansion(remainder.remf, 2, 0.0, 0.0),
    "math.acos": _unary(inverse_trigonometric.acos, 1.3, 1.3),
    "math.acosh": _unary(hyperbolic.acosh, 0.6, 2.3),
    "math.asin": _unary(inverse_trigonometric.asin, 1.8, 1.8),
    "math.asinh": _unary(hyperbolic.asinh, 0.6, 2.0),
    "math.atan": _unary(inverse_trigonometric.atan, 1.4, 1.5),
    "math.atan2": Expansion(inverse_trigonometric.atan2, 2, 1.8, 1.8),
    "math.atanh": _unary(hyperbolic.atanh, 0.6, 2.2),
    "math.cos": _unary(trigonometric.cos, 1.6, 1.0),
    "math.cosh": _unary(hyperbolic.cosh, 1.5, 1.5),
    "math.erf": _unary(error_function.erf, 1.3, 1.5),
    "math.exp": _unary(exponential.exp, 1.0, 1.0),
    "math.exp2": _unary(exponential.exp2, 1.0, 1.0),
    "math.expm1": _unary(exponential.expm1, 1.6, 2.0),
    "math.log": _unary(logarithm.log, 1.0, 1.0),
    "math.log10": _unary(logarithm.log10, 1.2, 1.2),
    "math.log1p": _unary(logarithm.log1p, 1.6, 1.3),
    "math.log2": _unary(logarithm.log2, 1.2, 1.2),
    "math.powf": Expansion(power.pow, 2, 0.6, 1.2),
    "math.rsqrt": _unary(roots.rsqrt, 1.5, 1.5),
    "math.sin": _unary(trigonometric.sin, 1.6, 1.0),
    "math.sinh": _unary(hyperbolic.sinh, 1.8, 1.6),
    "math.tan": _unary(trigonometric.tan, 0.6, 2.5),
    "math.tanh": _unary(hyperbolic.tanh, 1.6, 1.6),
}

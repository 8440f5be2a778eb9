"""Activation functions, on floats."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...cotangents import Masked
from ...definition import Api, Sample, enumeration
from ...interfaces import BoundsErrors, HasPartials, Tame
from ...support.error_bounds import Bounded, of_function
from ...support.reference import where
from ...types import is_unsigned
from ...values import Value
from . import normal, tails
from .family import ComposedFloat, Unary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Relu(Unary, Tame, HasPartials, BoundsErrors):
    """x where it is positive, +0.0 where it is negative; NaN and -0.0 stay."""

    name = "elementwise.relu"
    api = Api("relu", "none")
    samples = (Sample("np.where(x < 0, 0, x)"),)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.where(x < 0, np.zeros((), x.dtype), x)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        if is_unsigned(self.element):
            return x
        zero = b.constant(0, x.type)
        return b.select(b.cmp("ogt" if self.is_float else "sgt", zero, x), zero, x)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """0 at 0; a NaN keeps its cotangent.  The result, which the next op needs anyway, is positive or NaN where x
        is."""
        yield Masked(b.greater_or_nan(self.result, 0.0), soft=True)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        return Bounded(np.maximum(0.0, x.value), x.error)


class Sigmoid(ComposedFloat, Tame, HasPartials):
    """1 / (1 + exp(-x)), without overflow: 1 / (1 + exp(|x|)) below 0, 1 less that above."""

    name = "elementwise.sigmoid"
    api = Api("sigmoid", "float")
    samples = (Sample("scipy.special:expit"),)
    slope = 0.25

    def formula(self, x: Array) -> Array:
        import numpy as np

        small = np.exp(-np.abs(x))
        return np.where(x < 0, small, 1.0) / (1.0 + small)

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        size = tails.bounded_size(b, x, 120.0, 800.0)
        low = tails.over_one_plus(b, b.constant(1.0, x.type), tails.exponential(b, size, rises=True))
        return b.select(b.cmp("ogt", x, 0.0), b.fma(low.value, -low.factor, 1.0), b.mul(low.value, low.factor))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """sigmoid(x) sigmoid(-x), where 1 - y would cancel."""
        yield lambda t: b.mul(t, b.mul(self.result, b.sigmoid(b.neg(self.x))))


class Softplus(ComposedFloat, Tame, HasPartials):
    """log(1 + exp(x)), without overflow: max(x, 0) + log1p(exp(-|x|))."""

    name = "elementwise.softplus"
    api = Api("softplus", "float")
    samples = (Sample("np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))"),)
    slope = 1.0

    def formula(self, x: Array) -> Array:
        import numpy as np

        return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        return b.add(b.maximum(x, 0.0), b.log1p(b.exp(b.neg(b.abs(x)))))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, b.sigmoid(self.x))


class Silu(ComposedFloat, Tame, HasPartials):
    """x sigmoid(x): -0.0 at -inf (Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units", 2018)."""

    name = "elementwise.silu"
    api = Api("silu", "float")
    samples = (Sample("np.where(np.isneginf(x), -0.0, x * special.expit(x))"),)
    slope = 1.1

    def formula(self, x: Array) -> Array:
        return by_sigmoid_of_arrays(x, x)

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        size = tails.bounded_size(b, x, 120.0, 800.0)
        lower = tails.over_one_plus(b, size, tails.exponential(b, size, rises=True))
        return tails.rectified_less(b, x, lower)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """sigmoid(x) (1 + x sigmoid(-x)), whose product is bounded so that -inf gives 0."""
        factor = b.add(b.mul(b.clip(self.x, -1000.0, 1000.0), b.sigmoid(b.neg(self.x))), 1.0)
        yield lambda t: b.mul(t, b.mul(b.sigmoid(self.x), factor))


def by_sigmoid_of_arrays(x: Array, u: Array) -> Array:
    """x sigmoid(u) of float64 arrays, u with the sign of x; -0.0 at -inf."""
    import numpy as np

    small = np.exp(-np.abs(u))
    return where(x < 0, np.maximum(x, -800.0) * small, x) / (1.0 + small)


TANH_FORM = {
    32: ((1.5957691669464111, -4.534068054340423e-08), (0.07135481387376785, 2.3988324659995897e-09)),
    64: ((1.5957691216057308, -9.96930880911092e-17), (0.07135481627260025, -6.175149918155315e-19)),
}
"""2 u / x = 2 sqrt(2 / pi) (1 + 0.044715 x**2): its two coefficients, as sums of two floats."""


class Gelu(ComposedFloat, Tame, HasPartials):
    """x times the normal distribution function; with `approximate = tanh` 0.5 x (1 + tanh(u)), which is x sigmoid(2 u),
    u = sqrt(2 / pi) (x + 0.044715 x**3) (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016).  -0.0 at -inf."""

    name = "elementwise.gelu"
    samples = (
        Sample(  # of the smallest numbers half is not one, but what x exceeds it by
            "np.where(np.abs(x) < 40, np.where(x > 0, x - x * special.ndtr(-x), x * special.ndtr(x)),"
            " np.maximum(x, -0.0))"
        ),
        Sample(
            "np.where(np.isneginf(x), -0.0, x * special.expit(2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))",
            properties={"approximate": "tanh"},
            note="tanh",
        ),
    )
    slope = 1.13
    approximate = enumeration("none", "tanh", default="none")

    def formula(self, x: Array) -> Array:
        import numpy as np

        if self.approximate == "none":
            size = np.abs(x)
            lower = normal.lower_tail_of_array(size, np.minimum(size, normal.TAIL_IS_ZERO[64]))
            return where(x > 0, x - lower, np.copysign(lower, x))
        (slope, _), (cube, _) = TANH_FORM[64]
        with np.errstate(over="ignore"):
            return by_sigmoid_of_arrays(x, x * (slope + cube * (x * x)))

    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        if self.approximate == "none":
            return tails.rectified_less(b, x, normal.times_lower_tail(b, normal.bounded_size(b, x)))
        size = tails.bounded_size(b, x, 11.0, 22.0)
        return tails.rectified_less(b, x, tails.over_one_plus(b, size, exp_of_cubic(b, size)))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """d/dx x p(x) = p(x) + x p'(x), p the normal distribution function or its tanh form (Hendrycks and Gimpel,
        "Gaussian Error Linear Units", 2016), which is sigmoid(2 u).  The products that vanish are formed so that a
        large |x| gives 0 and not 0 * inf."""
        x = self.x
        if self.approximate == "tanh":
            c, d = math.sqrt(2.0 / math.pi), 0.044715
            bounded = b.clip(x, -24.0, 24.0)
            squared = b.mul(bounded, bounded)
            twice = b.mul(b.mul(bounded, 2.0 * c), b.add(b.mul(squared, d), 1.0))
            below, above = b.sigmoid(twice), b.sigmoid(b.neg(twice))
            slope = b.mul(b.add(b.mul(squared, 3.0 * d), 1.0), 2.0 * c)
            yield lambda t: b.mul(t, b.mul(below, b.add(b.mul(b.mul(bounded, above), slope), 1.0)))
            return
        yield lambda t: b.mul(t, b.add(b.normal_cdf(x), b.mul(normal.bounded(b, x), b.normal_pdf(x))))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        """Both forms have slopes below 1.13.  The reference of the tanh form rounds the argument of an exponential,
        which is below 2 |x|**3 + 4 where that matters."""
        import numpy as np

        value, error = of_function(self.formula(x.value), self.slope * x.error, unit)
        cubic = 2.0 * np.minimum(abs(x.value), 32.0) ** 3 + 4.0 if self.approximate == "tanh" else 0.0
        return Bounded(value, error + 4.0 * 2.0**-53 * cubic * abs(value))


def exp_of_cubic(b: ScalarBuilder, z: Value) -> tails.Exponential:
    """exp(2 u(z)), u that of `Gelu`, for 0 <= z, the exponent as a sum of two floats."""
    (slope, slope_low), (cube, cube_low) = TANH_FORM[32 if tails.is_single(z) else 64]
    square, square_low = tails.product(b, z, z)
    term, term_low = tails.product(b, square, b.constant(cube, z.type))
    term_low = b.add(term_low, b.fma(square, cube_low, b.mul(square_low, cube)))
    # The sum of the two terms, either of which may be the larger (Knuth).
    total = b.add(term, slope)
    part = b.sub(total, term)
    low = b.add(b.sub(term, b.sub(total, part)), b.sub(slope, part))
    low = b.add(low, b.add(term_low, slope_low))
    high, error = tails.product(b, z, total)
    return tails.exponential(b, high, b.fma(z, low, error), rises=True)

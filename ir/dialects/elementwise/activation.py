"""Activation functions, on floats."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ...definition import enumeration
from ...values import Value
from ..reference import function
from ..scalar_builder import is_unsigned
from .family import Unary, UnaryFloat

if TYPE_CHECKING:
    from ..scalar_builder import ScalarBuilder


class Relu(Unary):
    """x where it is positive, +0.0 where it is negative; NaN and -0.0 stay."""

    name = "elementwise.relu"

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        return np.where(x < 0, np.zeros((), x.dtype), x)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        if is_unsigned(self.element):
            return x
        zero = b.constant(0, x.type)
        return b.select(b.cmp("ogt" if self.is_float else "sgt", zero, x), zero, x)


class Sigmoid(UnaryFloat):
    """1 / (1 + exp(-x)), without overflow: the exponential is taken of -|x| only."""

    name = "elementwise.sigmoid"

    def formula(self, x: Any) -> Any:
        import numpy as np

        small = np.exp(-np.abs(x))
        return np.where(x < 0, small, 1.0) / (1.0 + small)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        one = b.constant(1.0, x.type)
        small = b.exp(b.neg(b.abs(x)))
        negative = b.cmp("olt", x, b.constant(0.0, x.type))
        return b.div(b.select(negative, small, one), b.add(one, small))


class Softplus(UnaryFloat):
    """log(1 + exp(x)), without overflow: max(x, 0) + log1p(exp(-|x|))."""

    name = "elementwise.softplus"

    def formula(self, x: Any) -> Any:
        import numpy as np

        return np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        return b.add(b.maximum(x, b.constant(0.0, x.type)), b.log1p(b.exp(b.neg(b.abs(x)))))


class Gelu(UnaryFloat):
    """x times the normal distribution function, 0.5 x (1 + erf(x / sqrt 2)); with `approximate = tanh`
    0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3))) (Hendrycks and Gimpel, 2016).  At -inf the value is NaN."""

    name = "elementwise.gelu"
    approximate = enumeration("none", "tanh", default="none")

    def formula(self, x: Any) -> Any:
        import numpy as np

        if self.approximate == "none":
            return 0.5 * x * (1.0 + function("erf")(x * math.sqrt(0.5)))
        return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x)))

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands

        def constant(value: float) -> Value:
            return b.constant(value, x.type)

        if self.approximate == "none":
            bent = b.erf(b.mul(x, constant(math.sqrt(0.5))))
        else:
            cube = b.mul(b.mul(x, x), x)
            inner = b.add(x, b.mul(constant(0.044715), cube))
            bent = b.tanh(b.mul(constant(math.sqrt(2.0 / math.pi)), inner))
        return b.mul(b.mul(constant(0.5), x), b.add(constant(1.0), bent))

"""Loss functions for regression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...definition import Api, number
from ...support.reference import where
from ...types import F64, Type
from ...values import Value
from .family import PairLoss, reductions

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.tensor import TensorBuilder


class Mse(PairLoss):
    """The squared difference; the shapes must be equal."""

    name = "loss.mse"
    api = Api("mse_loss", "float", options=("reduction",), operands=("prediction", "target"))
    samples = reductions("(prediction - target) ** 2")

    def element(self, b: TensorBuilder, x: Value, t: Value) -> Value:
        d = b.sub(x, t)
        return b.mul(d, d)

    def formula(self, x: Array, t: Array) -> Array:
        return (x - t) ** 2


HUBER = "special.huber(beta, prediction - target) / beta"


class SmoothL1(PairLoss):
    """0.5 d*d / beta where |d| < beta, else |d| - 0.5 beta, with d the difference (Girshick, 2015); |d| for beta 0."""

    name = "loss.smooth_l1"
    api = Api("smooth_l1_loss", "float", options=("beta", "reduction"), operands=("prediction", "target"))
    samples = (
        *reductions(HUBER),
        *reductions(HUBER, beta=0.5),
        *reductions("np.abs(prediction - target)", beta=0.0),
    )
    beta = number(F64, default=1.0)

    def infer(self) -> Sequence[Type]:
        if not self.beta >= 0:
            raise self.shape_error(f"beta must not be negative, got {self.beta}")
        return super().infer()

    def element(self, b: TensorBuilder, x: Value, t: Value) -> Value:
        return smooth_l1(b, b.sub(x, t), self.beta)

    def formula(self, x: Array, t: Array) -> Array:
        return smooth_l1_array(x - t, self.beta)


def smooth_l1(b: TensorBuilder, d: Value, beta: float) -> Value:
    """The smooth absolute value of d."""
    size = b.abs(d)
    if beta == 0:
        return size
    near = b.mul(b.mul(d, d), 0.5 / beta)
    return b.where(b.less(size, beta), near, b.sub(size, 0.5 * beta))


def smooth_l1_array(d: Array, beta: float) -> Array:
    """The same on float64 arrays."""
    import numpy as np

    size = np.abs(d)
    return size if beta == 0 else where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)

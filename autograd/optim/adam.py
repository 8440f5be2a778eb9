"""Adam."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ...ir.diagnostics import Error
from ...ir.location import called_function, caller_location
from ..functions import astype, expm1, negative, sqrt
from ..functions.checks import sequence
from ..tensor import Tensor
from .optimizer import Optimizer, Setting, at_least


class Adam(Optimizer):
    """p -= lr * m' / (sqrt(v') + eps), where m and v are the running means of the gradient and of its square, and
    m' = m / (1 - beta1**t), v' = v / (1 - beta2**t) (Kingma and Ba, 2015); weight_decay * p is added to the gradient.

    The corrections are computed in float64, as -expm1(t * log(beta)), which keeps all their digits.
    """

    lr = Setting()

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        super().__init__(params)
        self.lr = lr
        name = type(self).__name__
        pair = [at_least(name, "a beta", b, 0.0, 1.0) for b in sequence("betas", betas)]
        if len(pair) != 2:
            raise Error(f"{called_function()}: betas must be two numbers, got {len(pair)}", caller_location())
        self.betas = pair[0], pair[1]
        self.eps = at_least(name, "eps", eps, 0.0)
        self.weight_decay = at_least(name, "weight_decay", weight_decay, 0.0)
        self.means = self.zeros()
        self.squares = self.zeros()
        self.counts = self.steps()

    def updates(self, given: Sequence[tuple[int, Tensor, Any]]) -> list[tuple[Tensor, Tensor]]:
        beta1, beta2 = self.betas
        pairs: list[tuple[Tensor, Tensor]] = []
        for number, param, gradient in given:
            gradient = self.decayed(param, gradient)
            step, mean, square = self.counts[number] + 1, self.means[number], self.squares[number]
            mean_now = beta1 * mean + (1 - beta1) * gradient
            square_now = beta2 * square + (1 - beta2) * gradient * gradient
            size = self.setting("lr", param) / negative(expm1(step * math.log(beta1)))
            scale = sqrt(negative(expm1(step * math.log(beta2))))
            size, scale = astype(size, param.dtype), astype(scale, param.dtype)
            change = size * (mean_now / (sqrt(square_now) / scale + self.eps))
            pairs += [
                (self.counts[number], step),
                (mean, mean_now),
                (square, square_now),
                (param, self.shrunk(param) - change),
            ]
        return pairs

    def decayed(self, param: Tensor, gradient: Tensor) -> Tensor:
        """The gradient with the decay of weights in it."""
        return gradient + self.weight_decay * param if self.weight_decay else gradient

    def shrunk(self, param: Tensor) -> Tensor:
        """The parameter that the change is taken from."""
        return param


class AdamW(Adam):
    """Adam whose decay shrinks the weights apart from the gradient: p *= 1 - lr * weight_decay first (Loshchilov and
    Hutter, 2019)."""

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

    def decayed(self, param: Tensor, gradient: Tensor) -> Tensor:
        return gradient

    def shrunk(self, param: Tensor) -> Tensor:
        return param - param * astype(self.setting("lr", param) * self.weight_decay, param.dtype)

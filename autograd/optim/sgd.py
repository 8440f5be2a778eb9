"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ir.diagnostics import Error
from ...ir.location import caller_location
from ..functions import astype, equal, where
from ..functions.checks import real
from ..tensor import Tensor
from .optimizer import Optimizer, Setting, at_least


class SGD(Optimizer):
    """p -= lr * v, where g is the gradient plus weight_decay * p, and v is g, or with momentum

        v = momentum * v + (1 - dampening) * g        (at the first step v = g)

    and with nesterov g + momentum * v (Sutskever et al., 2013, in PyTorch's form).
    """

    lr = Setting()

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(params)
        name = type(self).__name__
        momentum, dampening = at_least(name, "momentum", momentum, 0.0), real("dampening", dampening)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise Error("nesterov needs a momentum and no dampening", caller_location())
        self.lr = lr
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = at_least(name, "weight_decay", weight_decay, 0.0)
        self.nesterov = nesterov
        self.velocities = self.zeros() if momentum else []
        self.counts = self.steps() if momentum and dampening else []

    def updates(self, given: Sequence[tuple[int, Tensor, Any]]) -> list[tuple[Tensor, Tensor]]:
        pairs: list[tuple[Tensor, Tensor]] = []
        for number, param, gradient in given:
            if self.weight_decay:
                gradient = gradient + self.weight_decay * param
            if self.momentum:
                velocity = self.velocities[number]
                moved = self.momentum * velocity + (1 - self.dampening) * gradient
                if self.dampening:
                    step = self.counts[number]
                    moved = where(equal(step, 0), gradient, moved)
                    pairs.append((step, step + 1))
                pairs.append((velocity, moved))
                gradient = gradient + self.momentum * moved if self.nesterov else moved
            pairs.append((param, param - astype(self.setting("lr", param), param.dtype) * gradient))
        return pairs

"""What optimizers share: parameters, numbers that may change, and how new values are bound.

All state is in Tensors that are there from the start, so a step can be part of a jitted function: parameters,
gradients and state are then inputs and results of it.  Numbers such as `lr` are float64 Tensors of no axes inside, one
for each device of the parameters: setting one changes what the next step does, compiled or not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...ir.diagnostics import DTypeError, Error, shown
from ...ir.location import caller_location
from ..context import CONTEXT, no_grad
from ..conversion import asarray
from ..dtypes import float64
from ..functions.array import zeros
from ..functions.checks import real, sequence
from ..graph import Lazy
from ..lazy import evaluate
from ..numbers import TracedNumber
from ..tensor import Tensor


def at_least(name: str, what: str, value: object, low: float, below: float = math.inf) -> float:
    """A number among the settings of an optimizer; Error for one outside of [low, below)."""
    number = real(what, value)
    if not low <= number < below:
        limits = f"at least {low:g}" if below == math.inf else f"in [{low:g}, {below:g})"
        raise Error(f"{name}: {what} must be {limits}, got {shown(value)}", caller_location())
    return number


class Setting:
    """A number of an optimizer, kept in 0-d Tensors so that compiled steps see it change."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> float:
        return instance.setting(self.name, instance.params[0]).item()

    def __set__(self, instance: Any, value: float) -> None:
        if not isinstance(value, Tensor | TracedNumber | np.ndarray):
            value = at_least(type(instance).__name__, self.name, value, 0.0)
        for device in dict.fromkeys(p.device for p in instance.params):
            new = asarray(value, dtype=float64, device=device)
            if new.ndim:
                message = f"{type(instance).__name__}: {self.name} must be a number, got {shown(value)}"
                raise DTypeError(message, caller_location())
            known = instance.settings.setdefault((self.name, device), new)
            if known is not new:
                known._rebind(new)


class Optimizer:
    """Base of the optimizers; `params`: Tensors with `requires_grad` that no op computed, each once."""

    def __init__(self, params: Iterable[Tensor]) -> None:
        name = type(self).__name__
        if isinstance(params, Tensor):
            raise DTypeError(f"{name}: the parameters must be a sequence, got one Tensor", caller_location())
        if isinstance(params, dict):
            message = f"{name}: the parameters must be a sequence, got a dict; give its values()"
            raise DTypeError(message, caller_location())
        self.params = sequence("the parameters", params)
        self.settings: dict[tuple[str, str], Tensor] = {}
        if not self.params:
            raise Error(f"{name}: needs at least one parameter", caller_location())
        places: dict[int, int] = {}
        for number, param in enumerate(self.params):
            if not isinstance(param, Tensor) or not param.requires_grad:
                raise Error(f"{name}: parameter {number} must be a Tensor with requires_grad", caller_location())
            if not param._is_leaf():
                message = f"parameter {number} is the result of an op, and gets no gradient; give what it came from"
                raise Error(f"{name}: {message}", caller_location())
            first = places.setdefault(id(param), number)
            if first != number:
                raise Error(f"{name}: parameter {number} is parameter {first} again", caller_location())

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for param in self.params:
            param.grad = None

    def setting(self, name: str, param: Tensor) -> Tensor:
        """A number such as `lr` in float64, where a parameter lies."""
        return self.settings[name, param.device]

    def steps(self) -> list[Tensor]:
        """The number of steps that each parameter has taken, none so far, in float64."""
        return [asarray(0.0, dtype=float64, device=p.device) for p in self.params]

    def zeros(self) -> list[Tensor]:
        """A Tensor of zeros like each parameter."""
        made = [zeros(p.shape, dtype=p.dtype, device=p.device) for p in self.params]
        if CONTEXT.trace is None:  # the first step is then compiled as the others are
            for state in made:
                state._array()
        return made

    def step(self) -> None:
        """Change each parameter that has a gradient."""
        with no_grad():
            bind(self.updates([(i, p, p.grad) for i, p in enumerate(self.params) if p.grad is not None]))

    def updates(self, given: Sequence[tuple[int, Tensor, Any]]) -> list[tuple[Tensor, Tensor]]:
        """Pairs of a handle (parameter or state) and its new value, from (number, parameter, gradient)."""
        raise NotImplementedError


def bind(pairs: Sequence[tuple[Tensor, Tensor]]) -> None:
    """Bind handles to new values, which are computed together."""
    if CONTEXT.trace is None:
        waiting = [new._state for _, new in pairs if new._value is None and isinstance(new._state, Lazy)]
        for device in dict.fromkeys(v.aval.device for v in waiting):
            evaluate([v for v in waiting if v.aval.device == device])
    for handle, new in pairs:
        handle._update(new)

"""Running error analysis of a function at tensor level.

It is evaluated in float64 together with a bound for each element: what a target computes differs from the exact result
by no more (`support.error_bounds`).

    values, errors = Bounds(module).call("main", arrays)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..dialects.builtin import Module
from ..dialects.func import Func, Return
from ..interfaces import BoundsErrors
from ..operations import Operation
from ..support.error_bounds import Bounded, exact, wide
from ..types import FloatType, TensorType, element_type
from ..values import Value

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..arrays import Array


class Bounds:
    """Evaluation of a module's functions with bounds.  Ops with an expansion must have been decomposed."""

    def __init__(self, module: Module) -> None:
        self.module = module

    def call(self, name: str, arrays: Sequence[ArrayLike]) -> tuple[list[Array], list[Array]]:
        """Results in float64 (integers and bools as they are) and the bounds of their errors."""
        import numpy as np

        function = self.module.symbol(name)
        assert isinstance(function, Func)
        env: dict[Value, Bounded] = {}
        for argument, array in zip(function.arguments, arrays, strict=True):
            env[argument] = exact(wide(np.asarray(array)))
        with np.errstate(all="ignore"):
            for op in function.entry:
                if isinstance(op, Return):
                    found = [env[v] for v in op.operands]
                    return [v for v, _ in found], [e for _, e in found]
                self.op(op, env)
        raise AssertionError("a function without a return")

    def op(self, op: Operation, env: dict[Value, Bounded]) -> None:
        """Evaluate an op and bound the errors of its result."""
        import numpy as np

        if not isinstance(op, BoundsErrors):
            raise NotImplementedError(f"{op.name} does not bound its errors")
        (result,) = op.results
        element = element_type(result.type)
        unit = 2.0 ** -(element.mantissa_bits + 1) if isinstance(element, FloatType) else 0.0
        value, error = op.bound(unit, *[env[v] for v in op.operands])
        if isinstance(element, FloatType) and isinstance(result.type, TensorType):
            # Below the smallest normal number a rounding errs by a fixed amount.
            error = np.where(error > 0, error + element.smallest, error)
            error = np.where(np.isfinite(value) & (abs(value) + error < element.largest), error, np.inf)
            error = np.where(np.isnan(error), np.inf, error)
        env[result] = Bounded(value, error)

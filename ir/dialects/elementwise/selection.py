"""Choice between values at each point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...cotangents import Masked
from ...definition import TENSOR, Api, Argument, FoldResult, Sample, operand
from ...interfaces import BoundsErrors, HasPartials, Tame
from ...support.error_bounds import Bounded
from ...support.reference import where
from ...support.tensor_op import BOOLS, ELEMENTS, splat_value, type_of_tensor
from ...types import I1, Type, is_unsigned
from ...values import Value
from .family import Elementwise

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Where(Elementwise, Tame, HasPartials, BoundsErrors):
    """x where `condition` (i1) holds, else y; the one that was not taken never reaches a gradient."""

    name = "elementwise.where"
    api = Api("where", "values")
    samples = (
        Sample("numpy:where", (Argument((4, 1), element=I1), Argument((4, 5)), Argument((5,))), elements=ELEMENTS),
    )
    accepts = BOOLS  # where all three have one type
    first_value = 1
    condition = operand(TENSOR)
    x = operand(TENSOR)
    y = operand(TENSOR)
    assembly = "$condition `,` $x `,` $y attr-dict `:` signature"

    def check_elements(self) -> None:
        self.tensor("condition", elements=BOOLS)
        self.tensor("x", elements=ELEMENTS)
        self.tensor("y", elements=ELEMENTS)
        self.same_elements("x", "y")

    def result_element(self) -> Type:
        return type_of_tensor(self.x).element

    def evaluate(self, condition: Array, x: Array, y: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return where(condition, x, y)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.select(*operands)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        condition = splat_value(constants[0])
        chosen = self.x if condition else self.y
        if (condition is not None or self.x is self.y) and chosen.type is self.result.type:
            return chosen
        return self.fold_constants(constants)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield None
        yield Masked(self.condition)
        yield Masked(b.logical_not(self.condition))

    def bound(self, unit: float, condition: Bounded, x: Bounded, y: Bounded) -> Bounded:
        import numpy as np

        error = np.where(condition.value, x.error, y.error) + np.where(condition.error > 0, np.inf, 0.0)
        return Bounded(np.where(condition.value, x.value, y.value), error)


class Clip(Elementwise, Tame, HasPartials, BoundsErrors):
    """x limited to [min, max]: minimum(maximum(x, min), max).  NaN in any operand gives NaN."""

    name = "elementwise.clip"
    samples = (
        Sample("np.minimum(np.maximum(x, min), max)", (Argument((4, 5)), Argument((), -2, -1), Argument((5,), 1, 2))),
    )
    x = operand(TENSOR)
    min = operand(TENSOR)
    max = operand(TENSOR)
    assembly = "$x `,` $min `,` $max attr-dict `:` signature"

    def evaluate(self, x: Array, min: Array, max: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        low = where((x > min) | (x != x), x, min)
        return where((low < max) | (low != low), low, max)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        x, low, high = operands
        unsigned = is_unsigned(self.element)
        return b.minimum(b.maximum(x, low, unsigned), high, unsigned)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """Inside the limits, which count as inside, x has all; outside the limit that holds x."""
        x, low, high = self.operands
        inside = b.logical_and(b.logical_not(b.less(x, low)), b.logical_not(b.greater(x, high)))
        below, above = b.less(x, low), b.greater(x, high)
        yield Masked(inside, soft=True)
        yield Masked(b.logical_and(below, b.logical_not(b.greater(low, high))), soft=True)
        yield Masked(b.logical_or(b.logical_and(above, b.logical_not(below)), b.greater(low, high)), soft=True)

    def bound(self, unit: float, x: Bounded, min: Bounded, max: Bounded) -> Bounded:
        import numpy as np

        value = np.minimum(np.maximum(x.value, min.value), max.value)
        return Bounded(value, np.maximum(np.maximum(x.error, min.error), max.error))

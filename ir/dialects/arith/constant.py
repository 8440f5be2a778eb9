"""`arith.constant`: scalars, vectors and tensors that are known when the program is compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from ...definition import CONSTANT, PURE, FoldResult, Op, attr, result
from ...interfaces import Evaluates
from ...numeric import constant
from ...types import IntegerType, Type

if TYPE_CHECKING:
    from ...arrays import Array


class Constant(Op, Evaluates):
    """`0.5 : f32`, `false`, `dense<0> : vector<4xi32>`; integers are signless."""

    name = "arith.constant"
    traits = frozenset({PURE, CONSTANT})
    cost = 0
    value = attr()
    result = result()
    assembly = "attr-dict $value"

    def infer(self) -> Sequence[Type]:
        value = self.value
        if not isinstance(value, FloatAttr | IntegerAttr | DenseAttr):
            raise self.error(f"needs a number or dense elements, got {value}")
        return [value.type]

    def verify_(self) -> None:
        element = getattr(self.result.type, "element", self.result.type)
        if isinstance(element, IntegerType) and element.signedness:
            raise self.error(f"has a value of type {self.result.type}; integers must be signless here")

    def evaluate(self) -> Array:
        """A NumPy scalar or array."""
        return constant(self.value)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.value

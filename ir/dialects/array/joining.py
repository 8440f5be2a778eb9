"""Tensors put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute
from ...definition import PURE, TENSOR, FoldResult, integer, result, variadic_operand
from ...types import INDEX, Type
from ...values import Value
from ..shapes import shape_text, tensor_type
from ..tensor_op import TensorOp, type_of_tensor

if TYPE_CHECKING:
    from ..point import Point


class Concat(TensorOp):
    """The operands one after another along `axis`; their other extents and element types are equal."""

    name = "array.concat"
    traits = frozenset({PURE})
    inputs = variadic_operand(TENSOR)
    axis = integer()
    result = result(TENSOR)
    assembly = "$inputs attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        if not self.inputs:
            raise self.shape_error("needs at least one operand")
        types = [self.tensor(f"operand {i}", v) for i, v in enumerate(self.inputs)]
        first, *others = types
        axis = self.checked_axis(self.axis, first.rank)
        total = 0
        for t in types:
            extent = t.dims[axis] if t.rank == first.rank else 0
            if isinstance(extent, str):
                raise self.shape_error(f"cannot concatenate along the dynamic extent {extent} of {shape_text(t.dims)}")
            total += extent
        for t in others:
            if t.element is not first.element:
                raise self.dtype_error(f"element types differ ({first.element}, {t.element}); cast explicitly")
            if t.rank != first.rank or any(a != b for i, (a, b) in enumerate(zip(first.dims, t.dims)) if i != axis):
                raise self.shape_error(
                    f"shapes {shape_text(first.dims)} and {shape_text(t.dims)} differ off axis {axis}"
                )
        return [tensor_type([*first.dims[:axis], total, *first.dims[axis + 1 :]], first.element)]

    def point(self, k: Point) -> Value:
        """A chain of selects over guarded loads: the last operand whose start lies at or before the point."""
        axis = self.axis
        value: Value | None = None
        start = 0
        for number, operand in enumerate(self.inputs):
            type = type_of_tensor(operand)
            if type.shape[axis] == 0:
                continue
            places = [a - start if i == axis else a for i, a in enumerate(k.axes)]
            element = k.load(number, places, fill=0)
            if value is None:
                value = element
            else:
                here = k.cmp("sge", k.value(k.axes[axis]), k.constant(start, INDEX))
                value = k.select(here, element, value)
            start += type.shape[axis]
        return k.load(0, list(k.axes)) if value is None else value

    def evaluate(self, *inputs: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        return np.concatenate(inputs, axis=self.axis)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.inputs[0] if len(self.inputs) == 1 else self.fold_constants(constants)

"""What the losses share: equal shapes of prediction and target, and the reduction of the elements' losses.

f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...definition import PURE, TENSOR, Argument, Sample, enumeration, operand, result
from ...interfaces import Evaluates, Expands
from ...support.reference import narrow, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import FLOATS, TensorOp, accumulator, type_of_tensor
from ...types import Type
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array, DType
    from ...builders.tensor import TensorBuilder


class Loss(TensorOp):
    """Base: `reduction` is "mean", "sum" or "none" (a loss for each element)."""

    traits = frozenset({PURE})
    reduction = enumeration("mean", "sum", "none", default="mean")

    def same_shapes(self, first: str, *others: str) -> None:
        """Refuse float operands that differ in shape or element type."""
        expected = self.tensor(first, elements=FLOATS)
        for name in others:
            type = self.tensor(name, elements=FLOATS)
            if type.dims != expected.dims:
                shapes = f"{first} {shape_text(expected.dims)} and {name} {shape_text(type.dims)}"
                raise self.shape_error(f"{shapes} differ in shape")
        self.same_elements(first, *others)

    def reduced_type(self, dims: Sequence[int | str], element: Type) -> Type:
        """The type of the loss of elements of this shape."""
        return tensor_type(dims if self.reduction == "none" else (), element)

    def reduce(self, b: TensorBuilder, losses: Value, element: Type) -> Value:
        """The elements' losses, reduced and in the type of the result."""
        axes = range(type_of_tensor(losses).rank)
        type = type_of_tensor(losses)
        if self.reduction == "mean" and type.is_static and type.num_elements:
            # Each element's share first: the sum is then all that is left, which may ride beside other results.
            losses = b.reduce_sum(b.mul(losses, 1.0 / type.num_elements), axes=axes)
        elif self.reduction == "mean":
            losses = b.reduce_mean(losses, axes=axes)
        elif self.reduction == "sum":
            losses = b.reduce_sum(losses, axes=axes)
        return b.cast(losses, element)

    def reduce_array(self, losses: Array, target: DType) -> Array:
        """The same on float64 arrays, rounded to the dtype `target`."""
        if self.reduction == "mean":
            losses = losses.sum() / max(losses.size, 1) if losses.size else losses.sum() / float("nan")
        elif self.reduction == "sum":
            losses = losses.sum()
        return narrow(losses, target)


def reductions(loss: str, **properties: Any) -> tuple[Sample, ...]:
    """Samples of a loss of pairs: an expression for each element, reduced in all ways."""
    return tuple(
        [
            Sample(
                f"{function}({loss})",
                (Argument((3, 4)), Argument((3, 4), 0, 1)),
                properties={"reduction": reduction, **properties},
                note="-".join([reduction, *[f"{k}-{v}" for k, v in properties.items()]]),
            )
            for reduction, function in (("mean", "np.mean"), ("sum", "np.sum"), ("none", ""))
        ]
    )


class PairLoss(Loss, Expands, Evaluates):
    """A loss of each element of `prediction` against that of `target`."""

    prediction = operand(TENSOR)
    target = operand(TENSOR)
    result = result(TENSOR)
    assembly = "$prediction `,` $target attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        self.same_shapes("prediction", "target")
        type = type_of_tensor(self.prediction)
        return [self.reduced_type(type.dims, type.element)]

    @abstractmethod
    def element(self, b: TensorBuilder, x: Value, t: Value) -> Value:
        """The loss of each element."""

    @abstractmethod
    def formula(self, x: Array, t: Array) -> Array:
        """The same on float64 arrays."""

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Elementwise ops and a reduction."""
        element = type_of_tensor(self.prediction).element
        x, t = (b.cast(v, accumulator(element)) for v in self.operands)
        return [self.reduce(b, self.element(b, x, t), element)]

    def evaluate(self, prediction: Array, target: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return self.reduce_array(self.formula(wide(prediction), wide(target)), prediction.dtype)

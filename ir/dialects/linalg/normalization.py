"""Softmax and layer normalisation.  Each is an op with an expansion, so that passes may know it by name.

f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...definition import PURE, TENSOR, integer, number, operand, optional_operand, result
from ...interfaces import Evaluates, Expands, Tame
from ...types import F64, Type
from ...values import Value
from ..reference import narrow, wide
from ..shapes import shape_text, tensor_type
from ..tensor_op import FLOATS, TensorOp, accumulator, type_of_tensor

if TYPE_CHECKING:
    from ..tensor_builder import TensorBuilder


class Softmax(TensorOp, Expands, Evaluates, Tame):
    """exp(x - max) over its sum, along `axis`."""

    name = "linalg.softmax"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    axis = integer()
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x", elements=FLOATS)
        self.checked_axis(self.axis, type.rank)
        if type.dims[self.axis] == 0:
            raise self.shape_error(f"axis {self.axis} of shape {shape_text(type.dims)} is empty")
        return [type]

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Two reductions and two elementwise passes."""
        element = type_of_tensor(self.x).element
        x = b.cast(self.x, accumulator(element))
        shifted = b.sub(x, b.reduce_max(x, axes=[self.axis], keepdims=True))
        e = b.exp(shifted)
        y = b.div(e, b.reduce_sum(e, axes=[self.axis], keepdims=True))
        return [b.cast(y, element)]

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        e = np.exp(wide(x) - wide(x).max(axis=self.axis, keepdims=True))
        return narrow(e / e.sum(axis=self.axis, keepdims=True), x.dtype)


class LogSoftmax(Softmax):
    """x - max - log(sum of exp(x - max)), along `axis`."""

    name = "linalg.log_softmax"

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Two reductions and two elementwise passes."""
        element = type_of_tensor(self.x).element
        x = b.cast(self.x, accumulator(element))
        shifted = b.sub(x, b.reduce_max(x, axes=[self.axis], keepdims=True))
        total = b.reduce_sum(b.exp(shifted), axes=[self.axis], keepdims=True)
        return [b.cast(b.sub(shifted, b.log(total)), element)]

    def evaluate(self, x: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        shifted = wide(x) - wide(x).max(axis=self.axis, keepdims=True)
        return narrow(shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True)), x.dtype)


class LayerNorm(TensorOp, Expands, Evaluates, Tame):
    """y = (x - mean) * rstd * weight + bias along `axis`, with rstd = 1 / sqrt(variance + eps), the variance being the
    mean of the squared deviations (Ba, Kiros and Hinton, 2016).

    `weight` and `bias`, of the shape (extent of `axis`,), may be absent.  Results: y like x; mean and rstd without
    `axis`, in f32 for f16 and bf16.
    """

    name = "linalg.layer_norm"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    weight = optional_operand(TENSOR)
    bias = optional_operand(TENSOR)
    axis = integer()
    eps = number(F64, default=1e-5)
    y = result(TENSOR)
    mean = result(TENSOR)
    rstd = result(TENSOR)
    assembly = "$x (`weight` $weight^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x", elements=FLOATS)
        axis = self.checked_axis(self.axis, type.rank)
        for name in ("weight", "bias"):
            value = getattr(self, name)
            if value is not None:
                given = self.tensor(name, value, FLOATS)
                if given.element is not type.element:
                    both = f"x {type.element}, {name} {given.element}"
                    raise self.dtype_error(f"element types differ ({both}); cast explicitly")
                if given.dims != (type.dims[axis],):
                    expected, got = shape_text((type.dims[axis],)), shape_text(given.dims)
                    raise self.shape_error(f"{name} must have the shape {expected}, got {got}")
        statistic = tensor_type(type.dims[:axis] + type.dims[axis + 1 :], accumulator(type.element))
        return [type, statistic, statistic]

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """The mean, the mean of the squared deviations, and one elementwise pass."""
        type, axis = type_of_tensor(self.x), self.axis
        x = b.cast(self.x, accumulator(type.element))
        mean = b.reduce_mean(x, axes=[axis], keepdims=True)
        centred = b.sub(x, mean)
        variance = b.reduce_mean(b.mul(centred, centred), axes=[axis], keepdims=True)
        rstd = b.rsqrt(b.add(variance, self.eps))
        y = b.mul(centred, rstd)
        column = (type.dims[axis],) + (1,) * (type.rank - axis - 1)
        if self.weight is not None:
            y = b.mul(y, b.reshape(b.cast(self.weight, accumulator(type.element)), column))
        if self.bias is not None:
            y = b.add(y, b.reshape(b.cast(self.bias, accumulator(type.element)), column))
        dims = type_of_tensor(self.mean).dims
        return [b.cast(y, type.element), b.reshape(mean, dims), b.reshape(rstd, dims)]

    def evaluate(self, x: Any, *parameters: Any) -> Any:
        """NumPy meaning."""
        import numpy as np

        from ...numeric import dtype

        axis, source = self.axis, wide(x)
        mean = source.mean(axis=axis, keepdims=True)
        rstd = 1.0 / np.sqrt(np.square(source - mean).mean(axis=axis, keepdims=True) + self.eps)
        y = (source - mean) * rstd
        rest = [wide(p).reshape(-1, *[1] * (x.ndim - axis - 1)) for p in parameters]
        if self.weight is not None:
            y = y * rest.pop(0)
        if self.bias is not None:
            y = y + rest.pop(0)
        statistic = dtype(accumulator(type_of_tensor(self.x).element))
        return narrow(y, x.dtype), narrow(mean.squeeze(axis), statistic), narrow(rstd.squeeze(axis), statistic)

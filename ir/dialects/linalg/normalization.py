"""Softmax and layer normalisation.  Each is an op with an expansion, so that passes may know it by name.

f16 and bf16 are computed in f32 and rounded once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...cotangents import Cotangent
from ...definition import PURE, TENSOR, Api, Argument, Sample, integer, number, operand, optional_operand, result
from ...interfaces import Evaluates, Expands, HasMaskedVjp, HasVjp, MovesMasks, Tame
from ...numeric import dtype
from ...support.reference import narrow, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import FLOATS, TensorOp, accumulator, type_of_tensor
from ...types import F64, Type
from ...values import Value
from .reduction import reciprocal_count

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


def along_axes(function: str) -> tuple[Sample, ...]:
    """Samples along each axis of a matrix."""
    shape = Argument((4, 6))
    return tuple([Sample(f"{function}(x, axis=axis)", (shape,), properties={"axis": a}, note=f"{a}") for a in (0, 1)])


class SoftmaxFamily(TensorOp, Expands, Evaluates, Tame, MovesMasks, HasVjp):
    """Base: floats in, as many out, each computed from all along `axis`."""

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

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        yield m.folded(mask, type_of_tensor(self.x).rank, [self.axis], self.x)


class Softmax(SoftmaxFamily):
    """exp(x - max) over its sum, along `axis`."""

    name = "linalg.softmax"
    api = Api("softmax", "float", options=("axis",), default_axis=-1)
    samples = along_axes("special.softmax")

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Two reductions and two elementwise passes."""
        element = type_of_tensor(self.x).element
        x = b.cast(self.x, accumulator(element))
        shifted = b.sub(x, b.reduce_max(x, axes=[self.axis], keepdims=True))
        e = b.exp(shifted)
        y = b.div(e, b.reduce_sum(e, axes=[self.axis], keepdims=True))
        return [b.cast(y, element)]

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        e = np.exp(wide(x) - wide(x).max(axis=self.axis, keepdims=True))
        return narrow(e / e.sum(axis=self.axis, keepdims=True), x.dtype)

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """(ct - sum(ct y)) y, from the result alone."""
        element = type_of_tensor(self.x).element
        y, ct = (b.cast(v, accumulator(element)) for v in (self.result, ct))
        total = b.reduce_sum(b.mul(ct, y), axes=[self.axis], keepdims=True)
        yield b.cast(b.mul(b.sub(ct, total), y), element)


class LogSoftmax(SoftmaxFamily):
    """The logarithm of softmax along `axis`: x - max - log(sum of exp(x - max))."""

    name = "linalg.log_softmax"
    api = Api("log_softmax", "float", options=("axis",), default_axis=-1)
    samples = along_axes("special.log_softmax")

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Two reductions and two elementwise passes."""
        element = type_of_tensor(self.x).element
        x = b.cast(self.x, accumulator(element))
        shifted = b.sub(x, b.reduce_max(x, axes=[self.axis], keepdims=True))
        total = b.reduce_sum(b.exp(shifted), axes=[self.axis], keepdims=True)
        return [b.cast(b.sub(shifted, b.log(total)), element)]

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        shifted = wide(x) - wide(x).max(axis=self.axis, keepdims=True)
        return narrow(shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True)), x.dtype)

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """ct - sum(ct) exp(y), from the result alone."""
        element = type_of_tensor(self.x).element
        y, ct = (b.cast(v, accumulator(element)) for v in (self.result, ct))
        total = b.reduce_sum(ct, axes=[self.axis], keepdims=True)
        yield b.cast(b.sub(ct, b.mul(total, b.exp(y))), element)


class LayerNorm(TensorOp, Expands, Evaluates, Tame, HasMaskedVjp):
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

    def evaluate(self, x: Array, *parameters: Array) -> tuple[Array, Array, Array]:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

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

    def masked_vjp(
        self, m: Masks, y_ct: Cotangent | None, mean_ct: Cotangent | None, rstd_ct: Cotangent | None
    ) -> Iterator[Cotangent | None]:
        """With h = (x - mean) rstd, w = ct weight: dx = (w - mean(w) - h mean(w h)) rstd, d weight = sum(ct h),
        d bias = sum(ct), from the saved mean and rstd; beside it what the cotangents of those two contribute."""
        b, type = m.b, type_of_tensor(self.x)
        ct, ct_mean, ct_rstd = (None if v is None else m.applied(v) for v in (y_ct, mean_ct, rstd_ct))
        axis, wide = self.axis, accumulator(type.element)
        column = (type.dims[axis],) + (1,) * (type.rank - axis - 1)
        kept = tuple(1 if i == axis else d for i, d in enumerate(type.dims))
        others = [i for i in range(type.rank) if i != axis]

        def at_points(statistic: Value) -> Value:
            return b.reshape(statistic, kept, b.extents(kept, self.x))

        mask = () if y_ct is None else y_ct.mask
        rows = m.folded(mask, type.rank, [axis], self.x)
        masks = [] if y_ct is None else [rows]
        masks += [m.inserted(v.mask, type.rank - 1, [axis]) for v in (mean_ct, rstd_ct) if v is not None]
        rstd = at_points(self.rstd)
        h = b.mul(b.sub(b.cast(self.x, wide), at_points(self.mean)), rstd)
        parts: list[Value] = []
        weighted: Value | None = None
        if ct is not None:
            w = ct = b.cast(ct, wide)
            if self.weight is not None:
                weight = b.reshape(b.cast(self.weight, wide), column)
                if any(m.varies(f, type.rank, [axis]) for f in mask):
                    weight = m.select(m.folded(mask, type.rank, others, self.weight), weight)
                w = b.mul(ct, weight)
                weighted = b.mul(ct, m.select(rows, h))
            centred = b.sub(w, b.reduce_mean(w, axes=[axis], keepdims=True))
            slope = b.reduce_mean(b.mul(w, h), axes=[axis], keepdims=True)
            parts.append(b.mul(b.sub(centred, b.mul(h, slope)), rstd))
        if ct_mean is not None:
            parts.append(b.broadcast_like(at_points(b.mul(ct_mean, reciprocal_count(b, self.x, [axis]))), self.x))
        if ct_rstd is not None:
            share = b.mul(ct_rstd, b.mul(self.rstd, self.rstd))
            parts.append(b.neg(b.mul(at_points(b.mul(share, reciprocal_count(b, self.x, [axis]))), h)))
        yield Cotangent(b.cast(functools.reduce(b.add, parts), type.element), m.either(masks))
        for parameter, element_ct in ((self.weight, weighted), (self.bias, ct)):
            if parameter is None:
                continue
            if element_ct is None:
                yield None
                continue
            total = b.reduce_sum(element_ct, axes=others) if others else element_ct
            live_columns = m.dropped(m.folded(mask, type.rank, others, parameter), type.rank, others)
            yield Cotangent(b.cast(total, type.element), live_columns, zeroed=True)

"""Loss functions for classification."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...definition import TENSOR, Api, operand, result
from ...interfaces import Evaluates, Expands, HasVjp, MovesMasks
from ...numeric import dtype
from ...support.reference import narrow, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import FLOATS, INTEGERS, accumulator, type_of_tensor
from ...types import I64, Type, is_unsigned
from ...values import Value
from ..linalg.indexing import places
from ..linalg.reduction import reciprocal_count
from .family import Loss, PairLoss, reductions

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


class BceWithLogits(PairLoss, HasVjp, MovesMasks):
    """The binary cross entropy of sigmoid(prediction) against target: max(x, 0) - x t + log1p(exp(-|x|))."""

    name = "loss.bce_with_logits"
    api = Api("bce_with_logits", "float", options=("reduction",), operands=("logits", "target"))
    samples = reductions("np.logaddexp(0, prediction) - prediction * target")

    def element(self, b: TensorBuilder, x: Value, t: Value) -> Value:
        tail = b.log1p(b.exp(b.neg(b.abs(x))))
        return b.add(b.sub(b.maximum(x, 0.0), b.mul(x, t)), tail)

    def formula(self, x: Array, t: Array) -> Array:
        import numpy as np

        return np.maximum(x, 0.0) - x * t + np.log1p(np.exp(-np.abs(x)))

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """(1 - t) sigmoid(x) - t sigmoid(-x), which is sigmoid(x) - t without its cancellation, and -x."""
        element = type_of_tensor(self.prediction).element
        x, t, share = (b.cast(v, accumulator(element)) for v in (*self.operands, ct))
        if self.reduction == "mean":
            share = b.mul(share, reciprocal_count(b, self.prediction, range(type_of_tensor(self.prediction).rank)))
        slope = b.sub(b.mul(b.sub(1.0, t), b.sigmoid(x)), b.mul(t, b.sigmoid(b.neg(x))))
        yield b.cast(b.mul(slope, share), element)
        yield b.cast(b.neg(b.mul(x, share)), element)

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        yield from (mask for _ in self.operands)


class CrossEntropy(Loss, Expands, Evaluates, HasVjp, MovesMasks):
    """The negative log-probability, by the softmax of `logits` (.., c) over its last axis, of `classes` (..).

    Results: the loss, and lse (..), the logarithm of the sum of exponentials of each row, which the derivative uses (in
    f32 for f16 and bf16).  A negative class counts from the end; one out of range makes its row's loss NaN, and
    hands no derivative to its row.
    """

    name = "loss.cross_entropy"
    logits = operand(TENSOR)
    classes = operand(TENSOR)
    loss = result(TENSOR)
    lse = result(TENSOR)
    assembly = "$logits `,` $classes attr-dict `:` functional-type(operands, results)"

    def infer(self) -> Sequence[Type]:
        logits, classes = self.tensor("logits", elements=FLOATS), self.tensor("classes", elements=INTEGERS)
        if logits.rank == 0 or logits.dims[:-1] != classes.dims:
            shapes = f"logits {shape_text(logits.dims)} and classes {shape_text(classes.dims)}"
            raise self.shape_error(f"{shapes}: classes must have the shape of logits without its last axis")
        if logits.dims[-1] == 0:
            raise self.shape_error("there are no classes")
        return [
            self.reduced_type(classes.dims, logits.element),
            tensor_type(classes.dims, accumulator(logits.element)),
        ]

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """Log-sum-exp of each row, less the logit of its class."""
        type = type_of_tensor(self.logits)
        axis, rows = type.rank - 1, type.dims[:-1]
        x = b.cast(self.logits, accumulator(type.element))
        top = b.reduce_max(x, axes=[axis], keepdims=True)
        total = b.reduce_sum(b.exp(b.sub(x, top)), axes=[axis])
        lse = b.add(b.log(total), b.reshape(top, rows))
        chosen = b.take_along_axis(x, b.reshape(self.classes, (*rows, 1)), axis=axis)
        losses = b.sub(lse, b.reshape(chosen, rows))
        return [self.reduce(b, losses, type.element), lse]

    def evaluate(self, logits: Array, classes: Array) -> tuple[Array, Array]:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        x = wide(logits)
        top = x.max(axis=-1)
        lse = np.log(np.exp(x - top[..., None]).sum(axis=-1)) + top
        at, inside = places(classes, x.shape[-1])
        losses = np.where(inside, lse - np.take_along_axis(x, at[..., None], axis=-1)[..., 0], np.nan)
        return self.reduce_array(losses, logits.dtype), narrow(lse, dtype(type_of_tensor(self.lse).element))

    def vjp(self, b: TensorBuilder, ct: Value | None, ct_lse: Value | None) -> Iterator[Value | None]:
        """(softmax - one-hot) times each row's share of the loss, the softmax from the saved lse; a row whose class
        is not there has no share."""
        type = type_of_tensor(self.logits)
        wide, rows = accumulator(type.element), type.dims[:-1]

        def at_points(value: Value) -> Value:
            return b.reshape(value, (*rows, 1), b.extents(rows, self.logits))

        p = b.exp(b.sub(b.cast(self.logits, wide), at_points(self.lse)))
        parts: list[Value] = []
        if ct is not None:
            share = b.cast(ct, wide)
            if self.reduction == "mean":
                share = b.mul(share, reciprocal_count(b, self.lse, range(len(rows))))
            if self.reduction == "none":
                share = at_points(share)
            # Ones that nobody stores, read at the class: 1 where it is there.
            ones, at = b.full_like(1.0, self.logits, wide), at_points(self.classes)
            share = b.mul(share, b.take_along_axis(ones, at, axis=len(rows), missing="zero"))
            hit = b.cast(b.one_hot(self.counted_from_front(b), self.logits), wide)
            parts.append(b.mul(b.sub(p, hit), share))
        if ct_lse is not None:
            parts.append(b.mul(p, at_points(ct_lse)))
        yield b.cast(functools.reduce(b.add, parts), type.element)
        yield None

    def counted_from_front(self, b: TensorBuilder) -> Value:
        """The classes, negative ones replaced by those that they name."""
        type = type_of_tensor(self.logits)
        if is_unsigned(type_of_tensor(self.classes).element):
            return self.classes
        count, classes = type.dims[-1], b.cast(self.classes, I64)
        if isinstance(count, str):
            size = b.reduce_sum(b.full_like(1, self.logits, I64), axes=[type.rank - 1])
        else:
            size = b.constant(count, I64)
        return b.where(b.less(classes, b.constant(0, I64)), b.add(classes, size), classes)

    def live(self, m: Masks, mask: Mask | None, lse_mask: Mask | None) -> Iterator[Mask]:
        """A row is live where its loss or its lse is."""
        rank = type_of_tensor(self.lse).rank
        yield m.inserted(m.either([v for v in (mask, lse_mask) if v is not None]), rank, [rank])
        yield ()

"""The weighted loss of heat maps and boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...definition import PURE, TENSOR, Api, number, operand, result
from ...interfaces import Evaluates, Expands, HasVjp, MovesMasks
from ...numeric import dtype
from ...support.reference import narrow, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import FLOATS, TensorOp, accumulator, type_of_tensor
from ...types import F64, Type
from ...values import Value
from .regression import smooth_l1, smooth_l1_array

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask

EDGE = 1e-7
"""How far probabilities are kept from 0 and 1."""


class Detection(TensorOp, Expands, Evaluates, HasVjp, MovesMasks):
    """The sum over all elements of

        heat_scale * heat_weight * BCE(p, target) + reg_scale * reg_weight * smoothL1(prediction - target)

    with p = clip(prediction, 1e-7, 1 - 1e-7), BCE(p, t) = -(t log p + (1 - t) log(1 - p)) and smoothL1 as in
    `loss.smooth_l1`.  The derivative passes the clip straight through, with p clipped in the formula; all four
    operands, of one shape and element type, are differentiable.
    """

    name = "loss.detection"
    api = Api(
        "fused_weighted_bce_smooth_l1_loss",
        "none",
        options=("heat_scale", "reg_scale", "beta"),
        operands=("pred", "target", "heat_weight", "reg_weight"),
        doc="""A loss for detection: weighted cross entropies and smooth absolute differences, summed over all elements.

        heat_scale * heat_weight * BCE(p, target) + reg_scale * reg_weight * smoothL1(pred - target)

    with p = clip(pred, 1e-7, 1 - 1e-7).  Shapes and dtypes of the four arrays must be equal; all are differentiable.
    """,
    )
    traits = frozenset({PURE})
    prediction = operand(TENSOR)
    target = operand(TENSOR)
    heat_weight = operand(TENSOR)
    reg_weight = operand(TENSOR)
    heat_scale = number(F64, default=1.0)
    reg_scale = number(F64, default=1.0)
    beta = number(F64, default=0.05)
    result = result(TENSOR)
    assembly = "$prediction `,` $target `,` $heat_weight `,` $reg_weight attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        types = {name: self.tensor(name, value, FLOATS) for name, value in self.named_operands()}
        if len({t.dims for t in types.values()}) > 1:
            shapes = ", ".join(f"{n} {shape_text(t.dims)}" for n, t in types.items())
            raise self.shape_error(f"the shapes must be equal, got {shapes}")
        self.same_elements(*types)
        if not self.beta >= 0:
            raise self.shape_error(f"beta must not be negative, got {self.beta}")
        return [tensor_type((), types["prediction"].element)]

    def expand(self, b: TensorBuilder) -> Sequence[Value]:
        """One elementwise pass and a sum."""
        type = type_of_tensor(self.prediction)
        x, t, heat, reg = (b.cast(v, accumulator(type.element)) for v in self.operands)
        p = b.clip(x, EDGE, 1.0 - EDGE)
        hit, miss = b.mul(t, b.log(p)), b.mul(b.sub(1.0, t), b.log(b.sub(1.0, p)))
        classified = b.mul(b.mul(heat, -self.heat_scale), b.add(hit, miss))
        placed = b.mul(b.mul(reg, self.reg_scale), smooth_l1(b, b.sub(x, t), self.beta))
        total = b.reduce_sum(b.add(classified, placed), axes=range(type.rank))
        return [b.cast(total, type.element)]

    def evaluate(self, prediction: Array, target: Array, heat_weight: Array, reg_weight: Array) -> Array:
        """The reference result on arrays; the edges of the clip are numbers of the element type (f32 for 16 bits)."""
        import numpy as np

        x, t, heat, reg = map(wide, (prediction, target, heat_weight, reg_weight))
        kept = dtype(accumulator(type_of_tensor(self.prediction).element)).type
        p = np.clip(x, float(kept(EDGE)), float(kept(1.0 - EDGE)))
        bce = -(t * np.log(p) + (1.0 - t) * np.log(1.0 - p))
        total = (self.heat_scale * heat * bce + self.reg_scale * reg * smooth_l1_array(x - t, self.beta)).sum()
        return narrow(total, prediction.dtype)

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """The cotangent passes the clip straight through, with the clipped value in the formula."""
        element = type_of_tensor(self.prediction).element
        wide = accumulator(element)
        x, t, heat, reg = (b.cast(v, wide) for v in self.operands)
        ct = b.cast(ct, wide)
        p = b.clip(x, EDGE, 1.0 - EDGE)
        q = b.sub(1.0, p)
        difference = b.sub(x, t)
        size = b.abs(difference)
        inside = b.less(size, self.beta)
        if self.beta:
            slope = b.where(inside, b.div(difference, self.beta), b.sign(difference))
            square = b.mul(difference, difference)
            smooth = b.where(inside, b.mul(square, 0.5 / self.beta), b.sub(size, 0.5 * self.beta))
        else:
            slope, smooth = b.sign(difference), size
        hit, miss = b.log(p), b.log(q)
        heated, placed = b.mul(b.mul(heat, self.heat_scale), ct), b.mul(b.mul(reg, self.reg_scale), ct)
        bce = b.sub(b.div(b.sub(1.0, t), q), b.div(t, p))
        yield b.cast(b.add(b.mul(heated, bce), b.mul(placed, slope)), element)
        yield b.cast(b.sub(b.mul(heated, b.sub(miss, hit)), b.mul(placed, slope)), element)
        entropy = b.neg(b.add(b.mul(t, hit), b.mul(b.sub(1.0, t), miss)))
        yield b.cast(b.mul(b.mul(entropy, self.heat_scale), ct), element)
        yield b.cast(b.mul(b.mul(smooth, self.reg_scale), ct), element)

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        yield from (mask for _ in self.operands)

"""Derivatives of `loss`: those that their expansions do not give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...ir.dialects import loss
from ...ir.dialects.loss.detection import EDGE
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.dialects.tensor_op import accumulator, type_of_tensor
from ...ir.values import Value
from .rules import vjp


@vjp(loss.Detection)
def _detection(b: TensorBuilder, op: Any, ct: Value) -> Iterator[Value | None]:
    """The cotangent passes the clip straight through, with the clipped value in the formula."""
    element = type_of_tensor(op.prediction).element
    wide = accumulator(element)
    x, t, heat, reg = (b.cast(v, wide) for v in op.operands)
    ct = b.cast(ct, wide)
    p = b.clip(x, EDGE, 1.0 - EDGE)
    q = b.sub(1.0, p)
    difference = b.sub(x, t)
    size = b.abs(difference)
    inside = b.less(size, op.beta)
    if op.beta:
        slope = b.where(inside, b.div(difference, op.beta), b.sign(difference))
        smooth = b.where(
            inside, b.mul(b.mul(difference, difference), 0.5 / op.beta), b.sub(size, 0.5 * op.beta)
        )
    else:
        slope, smooth = b.sign(difference), size
    hit, miss = b.log(p), b.log(q)
    heated, placed = b.mul(b.mul(heat, op.heat_scale), ct), b.mul(b.mul(reg, op.reg_scale), ct)
    bce = b.sub(b.div(b.sub(1.0, t), q), b.div(t, p))
    yield b.cast(b.add(b.mul(heated, bce), b.mul(placed, slope)), element)
    yield b.cast(b.sub(b.mul(heated, b.sub(miss, hit)), b.mul(placed, slope)), element)
    entropy = b.neg(b.add(b.mul(t, hit), b.mul(b.sub(1.0, t), miss)))
    yield b.cast(b.mul(b.mul(entropy, op.heat_scale), ct), element)
    yield b.cast(b.mul(b.mul(smooth, op.reg_scale), ct), element)

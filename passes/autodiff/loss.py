"""Derivatives of `loss`: those that their expansions do not give."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from ...ir.dialects import loss
from ...ir.dialects.loss.detection import EDGE
from ...ir.dialects.tensor_builder import TensorBuilder
from ...ir.dialects.tensor_op import accumulator, type_of_tensor
from ...ir.values import Value
from .linalg import reciprocal_count
from .masks import Mask, Masks
from .rules import live, vjp


@vjp(loss.BceWithLogits)
def _bce_with_logits(b: TensorBuilder, op: Any, ct: Value) -> Iterator[Value | None]:
    """(1 - t) sigmoid(x) - t sigmoid(-x), which is sigmoid(x) - t without its cancellation, and -x."""
    element = type_of_tensor(op.prediction).element
    x, t, share = (b.cast(v, accumulator(element)) for v in (*op.operands, ct))
    if op.reduction == "mean":
        share = b.mul(share, reciprocal_count(b, op.prediction, range(type_of_tensor(op.prediction).rank)))
    slope = b.sub(b.mul(b.sub(1.0, t), b.sigmoid(x)), b.mul(t, b.sigmoid(b.neg(x))))
    yield b.cast(b.mul(slope, share), element)
    yield b.cast(b.neg(b.mul(x, share)), element)


@vjp(loss.CrossEntropy)
def _cross_entropy(b: TensorBuilder, op: Any, ct: Value | None, ct_lse: Value | None) -> Iterator[Value | None]:
    """(softmax - one-hot) times each row's share of the loss, the softmax from the saved lse; a row whose class
    is not there has no share."""
    type = type_of_tensor(op.logits)
    wide, rows = accumulator(type.element), type.dims[:-1]

    def at_points(value: Value) -> Value:
        return b.reshape(value, (*rows, 1), b.extents(rows, op.logits))

    p = b.exp(b.sub(b.cast(op.logits, wide), at_points(op.lse)))
    parts: list[Value] = []
    if ct is not None:
        share = b.cast(ct, wide)
        if op.reduction == "mean":
            share = b.mul(share, reciprocal_count(b, op.lse, range(len(rows))))
        if op.reduction == "none":
            share = at_points(share)
        # Ones that nobody stores, read at the class: 1 where it is there.
        ones, at = b.full_like(1.0, op.logits, wide), at_points(op.classes)
        share = b.mul(share, b.take_along_axis(ones, at, axis=len(rows), missing="zero"))
        hit = b.where(b.one_hot(op.classes, op.logits), b.constant(1.0, wide), b.constant(0.0, wide))
        parts.append(b.mul(b.sub(p, hit), share))
    if ct_lse is not None:
        parts.append(b.mul(p, at_points(ct_lse)))
    yield b.cast(functools.reduce(b.add, parts), type.element)
    yield None


@live(loss.CrossEntropy)
def _cross_entropy_live(m: Masks, op: Any, mask: Mask | None, lse_mask: Mask | None) -> Iterator[Mask]:
    """A row is live where its loss or its lse is."""
    rank = type_of_tensor(op.lse).rank
    yield m.inserted(m.either([v for v in (mask, lse_mask) if v is not None]), rank, [rank])
    yield ()


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
        smooth = b.where(inside, b.mul(b.mul(difference, difference), 0.5 / op.beta), b.sub(size, 0.5 * op.beta))
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


@live(loss.BceWithLogits, loss.Detection)
def _elements_live(m: Masks, op: Any, mask: Mask) -> Iterator[Mask]:
    yield from (mask for _ in op.operands)

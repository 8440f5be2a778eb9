"""Loss functions.  `reduction` is "mean", "sum" or "none" (a loss for each element)."""

from __future__ import annotations

from typing import Any

from ..dtypes import int64
from ..tensor import Tensor
from ..trace import emit
from .checks import check_indices, integer, one_of, real
from .elementwise import divide, not_equal, where
from .linalg import sum
from .promotion import as_tensor, as_tensors, cast, operands


def _checked(reduction: str) -> str:
    return one_of("reduction", reduction, "mean", "sum", "none")


def mse_loss(prediction: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The squared difference; the shapes must be equal."""
    return emit("mse", *operands(prediction, target, floats=True), reduction=_checked(reduction))


def smooth_l1_loss(prediction: Any, target: Any, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """0.5 d*d / beta where the difference d is smaller than beta, else |d| - 0.5 beta."""
    pair = operands(prediction, target, floats=True)
    return emit("smooth_l1", *pair, beta=real("beta", beta), reduction=_checked(reduction))


def bce_with_logits(logits: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The binary cross entropy of sigmoid(logits) against target."""
    return emit("bce_with_logits", *operands(logits, target, floats=True), reduction=_checked(reduction))


def cross_entropy(logits: Any, classes: Any, reduction: str = "mean", *, ignore_index: int | None = None) -> Tensor:
    """The negative log-probability by softmax over the last axis of logits (.., c) of integer classes (..).

    Rows whose class is `ignore_index` have the loss 0, pass no gradient, and do not count in the mean.  A negative
    class counts from the end.  IndexError for a class out of range; where it is computed in the same run, as in a
    jitted function, its row's loss is NaN, and the row passes no gradient.
    """
    (scores,) = operands(logits, floats=True)
    at, how = as_tensor(classes, scores.device), _checked(reduction)
    ignored = None if ignore_index is None else integer("ignore_index", ignore_index)
    if scores.ndim:
        check_indices("the classes", at, scores, scores.ndim - 1, ignored)
    if ignored is None:
        return emit("cross_entropy", scores, at, reduction=how)[0]
    counted = not_equal(cast(at, int64), ignored)
    losses = emit("cross_entropy", scores, where(counted, at, 0), reduction="none")[0]
    losses = where(counted, losses, 0)
    if how == "none":
        return losses
    total = sum(losses)
    return total if how == "sum" else divide(total, cast(sum(counted), losses.dtype))


def fused_weighted_bce_smooth_l1_loss(
    pred: Any,
    target: Any,
    heat_weight: Any,
    reg_weight: Any,
    heat_scale: float = 1.0,
    reg_scale: float = 1.0,
    beta: float = 0.05,
) -> Tensor:
    """A loss for detection: weighted cross entropies and smooth absolute differences, summed over all elements.

        heat_scale * heat_weight * BCE(p, target) + reg_scale * reg_weight * smoothL1(pred - target)

    with p = clip(pred, 1e-7, 1 - 1e-7).  Shapes and dtypes of the four arrays must be equal; all are differentiable.
    """
    given = as_tensors(pred, target, heat_weight, reg_weight)
    heat, reg = real("heat_scale", heat_scale), real("reg_scale", reg_scale)
    return emit("detection", *given, heat_scale=heat, reg_scale=reg, beta=real("beta", beta))

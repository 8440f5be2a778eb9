"""Loss functions.  `reduction` is "mean", "sum" or "none" (a loss for each element)."""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import Error
from ...ir.location import caller_location
from ..tensor import Tensor
from ..trace import emit
from .promotion import as_tensor, as_tensors, operands


def _checked(reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise Error(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}", caller_location())
    return reduction


def mse_loss(prediction: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The squared difference; the shapes must be equal."""
    return emit("mse", *operands(prediction, target, floats=True), reduction=_checked(reduction))


def smooth_l1_loss(prediction: Any, target: Any, beta: float = 1.0, reduction: str = "mean") -> Tensor:
    """0.5 d*d / beta where the difference d is smaller than beta, else |d| - 0.5 beta."""
    pair = operands(prediction, target, floats=True)
    return emit("smooth_l1", *pair, beta=float(beta), reduction=_checked(reduction))


def bce_with_logits(logits: Any, target: Any, reduction: str = "mean") -> Tensor:
    """The binary cross entropy of sigmoid(logits) against target."""
    return emit("bce_with_logits", *operands(logits, target, floats=True), reduction=_checked(reduction))


def cross_entropy(logits: Any, classes: Any, reduction: str = "mean") -> Tensor:
    """The negative log-probability by softmax over the last axis of logits (.., c) of integer classes (..)."""
    (scores,) = operands(logits, floats=True)
    return emit("cross_entropy", scores, as_tensor(classes), reduction=_checked(reduction))[0]


def fused_weighted_bce_smooth_l1_loss(
    pred: Any,
    target: Any,
    heat_weight: Any,
    reg_weight: Any,
    heat_scale: float = 1.0,
    reg_scale: float = 1.0,
    beta: float = 0.05,
) -> Tensor:
    """The detection loss, a sum over all elements of

        heat_scale * heat_weight * BCE(p, target) + reg_scale * reg_weight * smoothL1(pred - target)

    with p = clip(pred, 1e-7, 1 - 1e-7).  Shapes and dtypes of the four arrays must be equal; all are differentiable.
    """
    given = as_tensors(pred, target, heat_weight, reg_weight)
    return emit("detection", *given, heat_scale=float(heat_scale), reg_scale=float(reg_scale), beta=float(beta))

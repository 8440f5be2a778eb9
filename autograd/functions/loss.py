"""Loss functions.  `reduction` is "mean", "sum" or "none" (a loss for each element)."""

from __future__ import annotations

from ..array_like import ArrayLike
from ..dtypes import int64
from ..tensor import Tensor
from ..trace import ops
from .checks import check_indices, integer, one_of
from .declared import divide, not_equal, sum, where
from .promotion import as_tensor, cast, operands
from .public import public


def _checked(reduction: str) -> str:
    return one_of("reduction", reduction, "mean", "sum", "none")


@public
def cross_entropy(
    logits: ArrayLike, classes: ArrayLike, reduction: str = "mean", *, ignore_index: int | None = None
) -> Tensor:
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
        return ops.cross_entropy(scores, at, reduction=how)[0]
    counted = not_equal(cast(at, int64), ignored)
    losses = ops.cross_entropy(scores, where(counted, at, 0), reduction="none")[0]
    losses = where(counted, losses, 0)
    if how == "none":
        return losses
    total = sum(losses)
    return total if how == "sum" else divide(total, cast(sum(counted), losses.dtype))

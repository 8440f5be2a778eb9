"""Arrays without elements: values and gradients of everything that folds, multiplies or normalises them."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag


def classes(x: Any) -> Any:
    """No integers, where x lies."""
    return ag.astype(ag.stop_gradient(x)[:, 0], ag.int64)


FUNCTIONS: dict[str, Any] = {
    "a product with a vector": lambda x, v: x @ v,
    "a product with a column": lambda x, v: x @ ag.reshape(v, (2, 1)),
    "a product of no inner elements": lambda x, v: (ag.permute_dims(x, (1, 0)) @ x) * v,
    "a sum": lambda x, v: ag.sum(x * v, axis=0),
    "rows": lambda x, v: ag.sum(x * v, axis=1),
    "softmax": lambda x, v: ag.softmax(x * v),
    "log_softmax": lambda x, v: ag.log_softmax(x) * v,
    "layer_norm": lambda x, v: ag.layer_norm(x, v, v),
    "cross_entropy": lambda x, v: ag.cross_entropy(x * v, classes(x), reduction="sum"),
    "bce_with_logits": lambda x, v: ag.bce_with_logits(x * v, x, reduction="sum"),
    "mse_loss": lambda x, v: ag.mse_loss(x * v, x, reduction="none"),
    "products of rows": lambda x, v: ag.prod(x * v, axis=1),
    "products of columns": lambda x, v: ag.prod(x * v, axis=0) * v,
    "logsumexp": lambda x, v: ag.logsumexp(x * v, axis=1),
    "max": lambda x, v: ag.max(x * v, axis=1),
    "var": lambda x, v: ag.var(x * v, axis=1),
    "a choice": lambda x, v: ag.where(x > 0, ag.sqrt(x * v), 0.0),
    "relu": lambda x, v: ag.relu(x @ ag.reshape(v, (2, 1)) + v),
    "take": lambda x, v: ag.take(x * v, classes(x), axis=1),
    "scatter": lambda x, v: ag.index_add(v, classes(x), ag.sum(x, axis=1)),
}
PLACES = [(name, device, mode) for name in FUNCTIONS for device in ag.devices() for mode in ("grad", "jit", "backward")]
DRAWN = random.Random(3).sample(PLACES, min(cases(24), len(PLACES)))


@pytest.mark.parametrize(("name", "device", "mode"), DRAWN)
def test_gradients_of_an_empty_batch(name: str, device: str, mode: str) -> None:
    """Zeros of the parameters, or what does not depend on the batch; nothing of the batch itself."""

    def loss(x: Any, v: Any) -> Any:
        return ag.sum(FUNCTIONS[name](x, v)) + ag.sum(v)

    x, v = np.zeros((0, 2), np.float32), np.array([2.0, 3.0], np.float32)
    given = [ag.asarray(a, device=device) for a in (x, v)]
    if mode == "backward":
        for tensor in given:
            tensor.requires_grad = True
        loss(*given).backward()
        dx, dv = given[0].grad, given[1].grad
    else:
        gradient = ag.grad(loss, argnums=(0, 1))
        dx, dv = (ag.jit(gradient) if mode == "jit" else gradient)(*given)
    assert dx is not None and dx.shape == (0, 2)
    # Of the functions that add v to something, or multiply the 1 of an empty product by it, beside its own sum.
    own = {"products of columns": 2.0, "scatter": 2.0, "a product of no inner elements": 1.0}.get(name, 1.0)
    np.testing.assert_array_equal(np.asarray(dv), [own, own])


SHAPES = [(0,), (0, 3), (3, 0), (0, 500), (500, 0), (2, 0, 3), (0, 2, 3), (40, 3, 0)]
FOLDS: list[tuple[Any, Any]] = [
    (ag.sum, np.sum),
    (ag.prod, np.prod),
    (lambda x, axis: ag.any(x > 0, axis=axis), lambda x, axis: np.any(x > 0, axis=axis)),
    (lambda x, axis: ag.sum(ag.exp(x), axis=axis), lambda x, axis: np.sum(np.exp(x), axis=axis)),
    (lambda x, axis: ag.sum(ag.astype(x, ag.int8), axis=axis), lambda x, axis: np.sum(x.astype(np.int8), axis=axis)),
]


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("device", ag.devices())
def test_folds_of_nothing(device: str, jitted: bool) -> None:
    """Over any axes, some of which are empty, NumPy's result; `jit` knows the sizes, eager code does not."""
    chosen = random.Random(f"{device} {jitted}")
    shapes, drawn = (1, 1) if device.startswith("opencl") else (3, 3)  # OpenCL's compiler takes its time
    for shape in chosen.sample(SHAPES, min(cases(shapes), len(SHAPES))):
        axes = [c for n in range(len(shape)) for c in combinations(range(len(shape)), n + 1)]
        pairs = chosen.sample([(fold, c) for fold in FOLDS for c in axes], min(cases(drawn), 5 * len(axes)))
        pairs.append((FOLDS[0], axes[-1]))

        def folds(x: Any, pairs: Any = pairs) -> Any:
            return [fold(x, axis=c) for (fold, _), c in pairs]

        x = np.zeros(shape, np.float32)
        made = (ag.jit(folds) if jitted else folds)(ag.asarray(x, device=device))
        for got, ((_, right), c) in zip(made, pairs, strict=True):
            np.testing.assert_array_equal(np.asarray(got), right(x, axis=c))

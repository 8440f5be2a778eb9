"""NumPy's functions of Tensors, and what leaves a Tensor: no history is dropped silently, nothing writes to a value."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag

A = np.array([[0.5, 1.5, 2.5], [3.5, 0.25, 1.25]], np.float32)
B = np.array([1.0, 2.0, 4.0], np.float32)

OURS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda x, name=name: getattr(np, name)(x)
        for name in (
            "exp", "expm1", "log", "log1p", "sqrt", "sin", "cos", "tanh", "negative", "positive", "square",
            "reciprocal", "absolute", "sign", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite", "sum",
            "prod", "mean", "max", "min", "amax", "amin", "var", "std", "argmax", "argmin", "transpose", "flip", "tril",
            "triu", "zeros_like", "ones_like",
        )
    },
    **{
        f"{name} {side}": lambda x, name=name, side=side: getattr(np, name)(*((B, x) if side == "of" else (x, B)))
        for name in (
            "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "maximum", "minimum",
            "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
        )
        for side in ("of", "with")
    },
    "ndarray + x": lambda x: B + x,
    "ndarray - x": lambda x: B - x,
    "ndarray / x": lambda x: B / x,
    "ndarray ** x": lambda x: B**x,
    "ndarray @ x": lambda x: A @ np.transpose(x),
    "ndarray < x": lambda x: x > B,
    "scalar * x": lambda x: np.float32(3) * x,
    "scalar == x": lambda x: np.float32(0.5) == x,
    "sum of rows": lambda x: np.sum(x, 1, keepdims=True),
    "mean of columns": lambda x: np.mean(x, axis=0),
    "var with ddof": lambda x: np.var(x, axis=1, ddof=1),
    "any": lambda x: np.any(x > 3),
    "all": lambda x: np.all(x > 3, axis=0),
    "reshape": lambda x: np.reshape(x, (3, 2)),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "broadcast": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "expand": lambda x: np.expand_dims(x, 1),
    "squeeze": lambda x: np.squeeze(x[:1], axis=0),
    "roll": lambda x: np.roll(x, 1, axis=1),
    "concatenate": lambda x: np.concatenate([A, x], axis=1),
    "stack": lambda x: np.stack([x, A, x]),
    "where": lambda x: np.where(x > 1, x, 0.0),
    "clip": lambda x: np.clip(x, 1.0, 2.0),
    "take": lambda x: np.take(x, np.array([1, 0]), axis=1),
    "tensordot": lambda x: np.tensordot(x, A, axes=2),
    "outer": lambda x: np.outer(x[0], B),
    "vecdot": lambda x: np.vecdot(x, A) if hasattr(np, "vecdot") else np.sum(x * A, axis=-1),
}  # fmt: skip
OTHERS: dict[str, Callable[[Any], Any]] = {
    "arctan2": lambda x: np.arctan2(x, B),
    "cbrt": lambda x: np.cbrt(x),
    "add.reduce": lambda x: np.add.reduce(x),
    "add with out": lambda x: np.add(x, B, out=np.empty((2, 3), np.float32)),
    "sum with initial": lambda x: np.sum(x, initial=1.0),
    "median": lambda x: np.median(x),
    "allclose": lambda x: np.allclose(x, A),
    "norm": lambda x: np.linalg.norm(x),
    "einsum": lambda x: np.einsum("ij,j->i", x, B),
    "percentile": lambda x: np.percentile(x, 50),
    "nested": lambda x: np.block([[x, x]]),
}
READERS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "array": np.array,
    "from_dlpack": np.from_dlpack,
    "nested lists": lambda x: np.array([[x]]),
}


def value(result: Any) -> Any:
    return result.detach().numpy() if isinstance(result, ag.Tensor) else result


def drawn(count: int) -> list[str]:
    """Some of the names."""
    return random.Random(1).sample(sorted(OURS), min(cases(count), len(OURS)))


@pytest.mark.parametrize("name", OURS)
def test_functions_of_numpy_become_ours(name: str) -> None:
    function = OURS[name]
    expected = function(A)
    calls = [function, lambda x: function(ag.Tensor(x, requires_grad=True))]
    calls += [ag.jit(function)] if name in drawn(8) else []
    for made in [call(ag.asarray(A)) for call in calls]:
        assert isinstance(made, ag.Tensor)
        np.testing.assert_allclose(value(made), expected, rtol=2e-6)
        assert made.shape == np.shape(expected)


@pytest.mark.parametrize("name", drawn(8))
def test_histories_stay(name: str) -> None:
    w = ag.Tensor(A, requires_grad=True)
    made = OURS[name](w)
    if made.dtype.is_float and name not in ("zeros_like", "ones_like"):
        assert made.requires_grad
        ag.sum(made).backward()
        gradient = ag.grad(lambda x: ag.sum(OURS[name](x)))(ag.asarray(A))
        assert w.grad is not None
        np.testing.assert_allclose(w.grad, gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [*OTHERS, *READERS])
def test_what_would_end_a_history_is_refused(name: str) -> None:
    function = (OTHERS | READERS)[name]
    w = ag.Tensor(A, requires_grad=True)
    for given in (w, w * 2):
        with pytest.raises(nablair.DTypeError, match=r"would lose its history; give x\.detach\(\)"):
            function(given)
    with pytest.raises(ag.TraceError):
        ag.jit(function)(ag.asarray(A))
    expected = function(A)
    for plain in (ag.asarray(A), w.detach()):
        np.testing.assert_allclose(value(function(plain)), expected, rtol=2e-6)
    with ag.no_grad():
        np.testing.assert_allclose(value(function(w)), expected, rtol=2e-6)


def test_in_place_of_an_ndarray() -> None:
    array = A.copy()
    array += ag.asarray(B)
    np.testing.assert_array_equal(array, A + B)
    with pytest.raises(nablair.DTypeError, match=r"np\.add\(\.\., out\)"):
        array += ag.Tensor(B, requires_grad=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "bfloat16"])
def test_exports_cannot_be_written_to_or_are_copies(dtype: str) -> None:
    x = ag.asarray(np.array([1, 0, 1]), dtype=dtype)
    kept = x.tolist()
    exports: list[Callable[[], Any]] = [
        x.numpy, lambda: np.asarray(x), lambda: np.array(x), lambda: np.asarray(x, copy=True), lambda: x.__array__(),
        lambda: np.from_dlpack(x), lambda: np.from_dlpack(x, copy=True), lambda: pickle.loads(pickle.dumps(x)).numpy(),
    ]  # fmt: skip
    for export in exports:
        try:
            array = export()
        except nablair.Error as error:
            assert dtype == "bfloat16"
            assert "cannot be exported" in error.message
            continue
        assert array.tolist() == kept
        if array.flags.writeable:
            array[...] = 0
        assert x.tolist() == kept


def test_what_dlpack_cannot_say_is_refused() -> None:
    x = ag.ones(3)
    assert x.__dlpack_device__() == (1, 0)
    for options in ({"copy": False}, {"copy": False, "max_version": (0, 8)}, {"stream": 1}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError) as error:
            x.__dlpack__(**options)  # type: ignore[arg-type]
        assert isinstance(error.value, nablair.Error)
    with pytest.raises(ValueError, match="needs a copy"):
        np.asarray(x, np.float64, copy=False)


@pytest.mark.parametrize("jitted", [False, True])
def test_lists_of_tensors_keep_their_histories(jitted: bool) -> None:
    def function(x: Any) -> Any:
        return ag.sum(ag.asarray([[x[0], 2.0], [x[1] * x[1], x[0]]]) * ag.asarray([[1.0, 2.0], [3.0, 4.0]]))

    w = ag.Tensor([2.0, 3.0], requires_grad=True)
    (ag.jit(function) if jitted else function)(w).backward()
    assert w.grad is not None
    assert w.grad.tolist() == [5.0, 18.0]

"""Copies that copy, views that are not written through, and indices out of range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag

DEVICES = ["cpu", "opencl:0", "ptx-sim"]

COPIES: dict[str, Callable[[Any], Any]] = {
    "astype": lambda w: ag.astype(w, w.dtype),
    "astype method": lambda w: w.astype(w.dtype),
    "positive": lambda w: +w,
    "clip without limits": ag.clip,
    "roll by nothing": lambda w: ag.roll(w, 0),
    "roll by the extent": lambda w: ag.roll(w, 3, axis=1),
    "reshape": lambda w: ag.reshape(w, (2, 3), copy=True),
    "asarray": ag.asarray,
    "asarray copy": lambda w: ag.asarray(w, copy=True),
    "to_device": lambda w: ag.to_device(w, "cpu"),
    "stop_gradient": ag.stop_gradient,
    "concat of one": lambda w: ag.concat([w]),
    "take": lambda w: ag.take(w, [0, 1], axis=0),
    "Tensor": ag.Tensor,
    **{n: getattr(ag, n) for n in ("floor", "ceil", "trunc", "round")},
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: ag.reshape(x, (3, 2)),
    "same shape": lambda x: ag.reshape(x, (2, 3)),
    "flat": lambda x: x.reshape(-1),
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "permute_dims": lambda x: ag.permute_dims(x, (0, 1)),
    "moveaxis": lambda x: ag.moveaxis(x, 0, 1),
    "broadcast_to": lambda x: ag.broadcast_to(x, (2, 2, 3)),
    "expand_dims": lambda x: ag.expand_dims(x, axis=0),
    "squeeze": lambda x: ag.squeeze(x[:1], 0),
    "flip": ag.flip,
    "row": lambda x: x[0],
    "slice": lambda x: x[:, 1:],
    "whole": lambda x: x[...],
    "new axis": lambda x: x[None],
    "unstack": lambda x: ag.unstack(x)[1],
    "iteration": lambda x: next(iter(x)),
    "detach": lambda x: x.detach(),
    "view of a view": lambda x: x.T[1:].reshape(-1),
}


def add_one(x: Any) -> None:
    x += 1


def set_first(x: Any) -> None:
    x[0] = 1


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("pending", [False, True])
def test_copies_stay_what_they_are(dtype: str, jitted: bool, pending: bool) -> None:
    def function(w: Any) -> Any:
        made = [f(w) for f in COPIES.values()]
        w += 1
        for copy in made[::2]:
            copy *= 2
        return made, w

    array = np.arange(6).reshape(2, 3).astype(dtype)
    given = ag.asarray(array - 1) + 1 if pending else ag.asarray(array)
    made, w = (ag.jit(function) if jitted else function)(given)
    np.testing.assert_array_equal(w, array + 1)
    for number, copy in enumerate(made):
        np.testing.assert_array_equal(copy, array * (1 if number % 2 else 2))


def test_copies_pass_gradients() -> None:
    for name, function in COPIES.items():
        w = ag.Tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        y = function(w)
        if name in ("stop_gradient", "Tensor"):
            assert not y.requires_grad
        elif name not in ("floor", "ceil", "trunc", "round"):
            ag.sum(y * y).backward()
            np.testing.assert_array_equal(w.grad, w.detach() * 2)


@pytest.mark.parametrize("name", VIEWS)
def test_views_are_not_written_through(name: str) -> None:
    write = set_first if len(name) % 2 else add_one

    def attempt(x: Any) -> Any:
        view = VIEWS[name](x)
        write(view)
        return view

    x = ag.asarray(np.arange(6.0).reshape(2, 3))
    for call in (attempt, ag.jit(attempt)):
        with pytest.raises(nablair.Error, match="a view of another Tensor"):
            call(x)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    copy = ag.asarray(VIEWS[name](x))
    write(copy)
    view = VIEWS[name](x * 1)  # what it shows is gone
    write(view)
    np.testing.assert_array_equal(view, copy)
    before = VIEWS[name](x).tolist()
    view = VIEWS[name](x)
    x += 1
    assert view.tolist() == before


def test_one_element_is_a_copy() -> None:
    x = ag.asarray([1.0, 2.0])
    total = x[0]
    total += x[1]
    assert (total.item(), x.tolist()) == (3.0, [1.0, 2.0])


INDEXED: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, i: ag.take(x, i, axis=0),
    "subscript": lambda x, i: x[i],
    "take_along_axis": lambda x, i: ag.take_along_axis(x, i, axis=0),
    "index_add": lambda x, i: ag.index_add(x, i, ag.ones((len(i), 2), dtype=x.dtype, device=x.device), axis=0),
    "scatter_add": lambda x, i: ag.scatter_add(x, i, ag.ones((len(i), 1), dtype=x.dtype, device=x.device), axis=0),
}


def expected(name: str, x: Any, indices: Any) -> Any:
    """By loops."""
    if name in ("take", "subscript", "take_along_axis"):
        missing = np.nan if x.dtype.kind == "f" else 0
        rows = [x[i] if -len(x) <= i < len(x) else np.full(2, missing, x.dtype) for i in indices]
        return np.array(rows)[:, :1] if name == "take_along_axis" else np.array(rows)
    out = x.copy()
    for i in indices:
        if -len(x) <= i < len(x):
            out[i, : 1 if name == "scatter_add" else 2] += 1
    return out


@pytest.mark.parametrize("seed", range(cases(2)))
@pytest.mark.parametrize("device", DEVICES)
def test_indices_out_of_range(seed: int, device: str) -> None:
    rng = np.random.default_rng([seed, len(device)])
    for name in rng.permutation(sorted(INDEXED))[:2]:
        x = rng.integers(0, 9, (3, 2)).astype(rng.choice(["float32", "int32", "float64"]))
        indices = rng.integers(-6, 6, 5).astype(rng.choice(["int8", "int64", "int32"]))
        indices[0] = rng.choice([3, -4])
        if name == "take_along_axis":
            x = x[:, :1]
            wanted = expected(name, np.repeat(x, 2, axis=1), indices)
        else:
            wanted = expected(name, x, indices)
        function = INDEXED[name]
        indices = indices[:, None] if name in ("take_along_axis", "scatter_add") else indices
        tensor, at = ag.asarray(x, device=device), ag.asarray(indices, device=device)
        with pytest.raises(nablair.SubscriptError, match="out of range for axis 0"):
            function(tensor, at)
        with pytest.raises(IndexError):
            function(tensor, ag.asarray(indices.tolist(), device=device))
        np.testing.assert_array_equal(ag.jit(function)(tensor, at), wanted)
        np.testing.assert_array_equal(function(tensor, at + 0), wanted)


@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_pass_what_is_there(jitted: bool) -> None:
    def function(x: Any, i: Any) -> Any:
        rows = ag.take(x, i + 0, axis=0)
        return ag.sum(ag.where(ag.isnan(rows), 0.0, rows * rows))

    gradient = ag.grad(function)
    found = (ag.jit(gradient) if jitted else gradient)(ag.asarray([1.0, 2.0, 3.0]), ag.asarray([0, 5, -1, -9, 0]))
    assert found.tolist() == [4.0, 0.0, 6.0]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("jitted", [False, True])
def test_ignored_classes(reduction: str, jitted: bool) -> None:
    def loss(x: Any, c: Any) -> Any:
        return ag.cross_entropy(x, c, reduction, ignore_index=-100)

    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    classes, kept = np.array([2, -100, 0, -100]), [0, 2]
    call = ag.jit(loss) if jitted else loss
    found = call(ag.asarray(x), ag.asarray(classes))
    some = ag.cross_entropy(x[kept], classes[kept], reduction)
    np.testing.assert_allclose(ag.asarray(found)[np.array(kept)] if reduction == "none" else found, some, rtol=1e-6)
    gradient = ag.grad(lambda x: ag.sum(call(x, ag.asarray(classes))))(ag.asarray(x)).numpy()
    inner = ag.grad(lambda x: ag.sum(ag.cross_entropy(x, classes[kept], reduction)))(ag.asarray(x[kept]))
    np.testing.assert_allclose(gradient[kept], inner, rtol=1e-6)
    assert not gradient[[1, 3]].any()


def test_classes_out_of_range() -> None:
    x = ag.asarray(np.ones((2, 3), np.float32))
    for classes in ([0, 7], [-100, 0], ag.asarray([3, 0]), np.array([0, 200], np.uint8)):
        with pytest.raises(nablair.SubscriptError, match="cross_entropy: the classes hold"):
            ag.cross_entropy(x, classes)
    value, gradient = ag.jit(ag.value_and_grad(ag.cross_entropy))(x, ag.asarray([0, 7]))
    assert np.isnan(value.numpy())
    assert np.isfinite(gradient.numpy()).all()
    assert not gradient.numpy()[1].any()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint64", "int64"])
@pytest.mark.parametrize("count", [0, 1, 3, 300, 70000])
def test_one_hot_of_narrow_indices(dtype: str, count: int) -> None:
    indices = np.array([0, 2, 100, 127]).astype(dtype)
    found = ag.one_hot(ag.asarray(indices), count).numpy()
    np.testing.assert_array_equal(found, indices.astype(np.int64)[:, None] == np.arange(count))


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_narrow_indices_of_long_axes(device: str, jitted: bool) -> None:
    """The axis is longer than the indices' type counts; negative ones count from its end."""
    rng = np.random.default_rng([len(device), jitted])
    for dtype in rng.permutation(["int8", "uint8", "int16", "int64"])[: cases(1)]:
        low, high = (0, 256) if dtype == "uint8" else (-128, 128)
        at, count = rng.integers(low, high, 5).astype(dtype), int(rng.integers(300, 400))
        x, weight = rng.integers(-9, 9, count).astype(np.float32), rng.integers(1, 9, 5).astype(np.float32)

        def folded(x: Any, at: Any, weight: Any) -> Any:
            return ag.sum(ag.take(x, at, axis=0) * weight)

        def function(x: Any, at: Any, weight: Any, *, count: int = count) -> Any:
            added = ag.scatter_add(x, at, weight, axis=0)
            return x[at], added, ag.one_hot(at, count), ag.grad(folded)(x, at, weight)

        given = [ag.asarray(a, device=device) for a in (x, at, weight)]
        taken, added, hot, gradient = (ag.jit(function) if jitted else function)(*given)
        wide, scattered = at.astype(np.int64), np.zeros(count, np.float32)
        np.add.at(scattered, wide, weight)
        np.testing.assert_array_equal(taken, x[wide])
        np.testing.assert_array_equal(added, x + scattered)
        np.testing.assert_array_equal(hot, wide[:, None] == np.arange(count))
        np.testing.assert_array_equal(gradient, scattered)


@pytest.mark.parametrize("seed", range(cases(6)))
def test_tensordot_of_any_axes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(0, 5, rng.choice([1, 2, 3], rng.integers(1, 4))).astype(np.float32) for _ in "ab")
    count = int(rng.integers(0, 3))
    axes: Any = count if seed % 2 else (
        rng.integers(-a.ndim, a.ndim, count).tolist(), rng.integers(-b.ndim, b.ndim, count).tolist()
    )  # fmt: skip
    try:
        wanted = np.tensordot(a, b, axes=axes)
    except (ValueError, IndexError):
        with pytest.raises(nablair.Error, match="tensordot"):
            ag.tensordot(a, b, axes=axes)
    else:
        np.testing.assert_allclose(ag.tensordot(a, b, axes=axes), wanted)


@pytest.mark.parametrize("keepdims", [False, True])
def test_of_nothing(keepdims: bool) -> None:
    x = np.zeros((0, 3), np.float32)
    for axis, shape in ((0, (3,)), (None, ()), ((0, 1), ())):
        kept = {(3,): (1, 3), (): (1, 1)}[shape] if keepdims else shape
        np.testing.assert_array_equal(ag.logsumexp(x, axis=axis, keepdims=keepdims), np.full(kept, -np.inf))
        for function, value in ((ag.sum, 0), (ag.prod, 1), (ag.any, False), (ag.all, True), (ag.mean, np.nan)):
            np.testing.assert_array_equal(function(x, axis=axis, keepdims=keepdims), np.full(kept, value))
        for function in (ag.max, ag.min):
            with pytest.raises(nablair.ShapeError, match=function.__name__):
                function(x, axis=axis, keepdims=keepdims)
    for function in (ag.softmax, ag.log_softmax):
        with pytest.raises(nablair.ShapeError, match="axis 0 of shape"):
            function(x, axis=0)
        assert function(x, axis=1).shape == (0, 3)
    assert ag.grad(lambda x: ag.sum(ag.logsumexp(x, axis=0)))(ag.asarray(x)).shape == (0, 3)


def test_logsumexp_near_zero() -> None:
    x = np.array([[0.0, -20.0], [-18.0, 0.0], [-0.7, -0.7], [-np.inf, -np.inf], [np.inf, 0], [1e30, 1], [0, 0]])
    x = x.astype(np.float32)
    wide = x.astype(np.float64)
    with np.errstate(all="ignore"):
        top = wide.max(axis=1)
        wanted = np.where(np.isfinite(top), top + np.log1p(np.exp(wide - top[:, None]).sum(axis=1) - 1), top)
    np.testing.assert_allclose(ag.logsumexp(x, axis=1), wanted, rtol=1e-6)

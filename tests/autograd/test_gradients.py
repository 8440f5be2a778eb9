"""Tensor.backward: PyTorch's meaning, eagerly and in a compiled step."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

F32 = np.float32


def leaf(*values: float) -> ag.Tensor:
    return ag.Tensor([float(v) for v in values], requires_grad=True)


def gradient(x: ag.Tensor) -> ag.Tensor:
    assert x.grad is not None
    return x.grad


def test_gradients_add_up():
    w = leaf(1, 2)
    for times in (1, 2, 3):
        ag.sum(w * w).backward()
        np.testing.assert_array_equal(w.grad, np.array([2, 4]) * times)
    w.grad = None
    ag.sum(w).backward()
    np.testing.assert_array_equal(w.grad, [1, 1])


def test_only_what_asks_for_gradients_gets_them():
    w, x = leaf(1, 2), ag.asarray([3.0, 4.0])
    y = w * x
    z = ag.sum(y)
    assert y.requires_grad and z.requires_grad and not (x * 2).requires_grad and not (w > 0).requires_grad
    z.backward()
    np.testing.assert_array_equal(w.grad, [3, 4])
    assert x.grad is None and y.grad is None


def test_values_known_before_are_used():
    w = leaf(1, 2)
    y = w * w
    y.numpy()
    z = ag.exp(y)
    loss = ag.sum(z * y)
    assert float(loss) == pytest.approx(np.e + 4 * np.exp(4))
    loss.backward()
    np.testing.assert_allclose(gradient(w), [4 * np.e, 20 * np.exp(4)], rtol=1e-5)


def test_one_run_gives_loss_and_gradients():
    w = leaf(1, 2)
    loss = ag.sum(w * w)
    before = ag.eager_stats().runs
    loss.backward()
    assert float(loss) == 5 and gradient(w).tolist() == [2, 4] and ag.eager_stats().runs == before + 1


def test_no_grad_and_detach():
    w = leaf(2, 3)
    with ag.no_grad():
        y = w * 5
    assert not y.requires_grad
    (ag.sum(w * y) + ag.sum(w.detach() * w * 2)).backward()
    np.testing.assert_array_equal(w.grad, np.array([10, 15]) + np.array([4, 6]))

    @ag.no_grad()
    def f(x):
        return x * 2

    assert not f(w).requires_grad and (w * 2).requires_grad
    with pytest.raises(nablair.Error, match="requires_grad"):
        ag.sum(f(w)).backward()


def test_a_gradient_to_start_from():
    w = leaf(1, 2)
    y = w * w
    with pytest.raises(nablair.ShapeError, match=r"\(2,\)"):
        y.backward()
    y.backward(ag.asarray([10.0, 1.0]))
    np.testing.assert_array_equal(w.grad, [20, 4])
    with pytest.raises(nablair.ShapeError):
        (w * w).backward(ag.ones(3))
    w.grad = None
    w.backward(ag.asarray([5.0, 6.0]))
    np.testing.assert_array_equal(w.grad, [5, 6])


def test_leaves_are_not_bound_by_accident():
    w = leaf(1, 2)
    with pytest.raises(nablair.Error, match="no_grad"):
        w -= 1
    with ag.no_grad():
        w -= 1
    assert w.requires_grad and w.tolist() == [0, 1]
    ag.sum(w * w).backward()
    np.testing.assert_array_equal(w.grad, [0, 2])
    with pytest.raises(nablair.DTypeError):
        ag.Tensor([1, 2], requires_grad=True)
    with pytest.raises(nablair.ShapeError):
        w.grad = ag.ones(3)


def test_through_compiled_calls():
    f = ag.jit(lambda x, k: (ag.sum(x * x * k), x * 3))
    w = leaf(1, 2)
    for times in (1, 2, 3):
        loss, y = f(w, 2.0)
        (loss + ag.sum(y)).backward()
        np.testing.assert_array_equal(w.grad, np.array([7, 11]) * times)
    with ag.no_grad():
        loss, _ = f(w, 2.0)
    assert not loss.requires_grad and float(loss) == 10


def test_through_captured_parameters_of_compiled_calls():
    w = leaf(1, 2)
    f = ag.jit(lambda x: x * w)
    for _ in range(3):
        w.grad = None
        ag.sum(f(ag.asarray([3.0, 4.0]))).backward()
        np.testing.assert_array_equal(w.grad, [3, 4])


def test_through_grad():
    w = leaf(1, 2)
    ag.sum(ag.grad(lambda x: ag.sum(x * x * x))(w)).backward()
    np.testing.assert_array_equal(w.grad, [6, 12])


def test_a_compiled_step():
    w, x = leaf(1, 2), ag.asarray([3.0, 4.0])

    @ag.jit
    def step(x):
        w.grad = None
        loss = ag.sum(w * x)
        loss.backward()
        with ag.no_grad():
            w.__isub__(gradient(w) * 0.5)
        return loss

    expected = np.array([1.0, 2.0])
    for _ in range(4):
        assert float(step(x)) == expected @ [3, 4]
        expected = expected - np.array([1.5, 2.0])
        np.testing.assert_array_equal(w.detach(), expected)
        np.testing.assert_array_equal(w.grad, [3, 4])
    assert step.stats().compiles == 1 and w.requires_grad


def test_a_compiled_step_that_adds_up():
    w, x = leaf(1, 2), ag.asarray([3.0, 4.0])
    step = ag.jit(lambda x: ag.sum(w * x).backward())
    for times in (1, 2, 3, 4):
        assert step(x) is None
        np.testing.assert_array_equal(w.grad, np.array([3, 4]) * times)


def test_an_argument_gets_its_gradient():
    w = leaf(1, 2)
    step = ag.jit(lambda w, x: ag.sum(w * x).backward())
    for times in (1, 2):
        step(w, ag.asarray([3.0, 4.0]))
        np.testing.assert_array_equal(w.grad, np.array([3, 4]) * times)


CHAINS = {
    "normalised": lambda x, w, b: ag.sum(ag.exp(x) / ag.sum(ag.exp(x), axis=-1, keepdims=True) * x),
    "columns": lambda x, w, b: ag.sum((x / ag.sum(x * x, axis=0, keepdims=True)) ** 2),
    "centred": lambda x, w, b: ag.mean((x - ag.mean(x, axis=1, keepdims=True)) ** 2),
    "maxima": lambda x, w, b: ag.sum(x - ag.max(x, axis=1, keepdims=True)),
    "mlp": lambda x, w, b: ag.mse_loss(ag.tanh(x @ w + b), x @ w),
    "classes": lambda x, w, b: ag.cross_entropy(x @ w + b, np.zeros(len(x), np.int64)),
    "logits": lambda x, w, b: ag.bce_with_logits(x @ w + b, x @ w),
    "softmax": lambda x, w, b: ag.sum(ag.softmax(x @ w + b) * ag.log_softmax(x @ w)),
    "attention": lambda x, w, b: ag.sum(ag.softmax((x @ w) @ (x @ w).mT * 0.3) @ x),
    "layer_norm": lambda x, w, b: ag.sum(ag.layer_norm(x @ w, b, b) * (x @ w)),
}


@pytest.mark.parametrize("name", CHAINS)
def test_new_sizes_compile_nothing(name):
    loss, counts = CHAINS[name], []
    for rows, columns, width in ((5, 7, 6), (9, 3, 4), (40, 33, 18)):
        rng = np.random.default_rng(rows)
        arrays = [rng.normal(size=s).astype(F32) for s in ((rows, columns), (columns, width), (width,))]
        leaves = [ag.Tensor(a, requires_grad=True) for a in arrays]
        loss(*leaves).backward()
        counts.append(ag.eager_stats().compiles)
        fixed = ag.jit(ag.grad(loss, argnums=(0, 1, 2)))(*arrays)
        for given, expected in zip(leaves, fixed, strict=True):
            if given.grad is None:
                np.testing.assert_array_equal(expected, np.zeros(given.numpy().shape))
            else:
                np.testing.assert_allclose(given.grad, expected, rtol=2e-4, atol=2e-5)
    assert counts[0] == counts[1] == counts[2]


def test_history_is_freed():
    x = ag.asarray(np.ones(8, F32))
    w = leaf(*[1.0] * 8)
    y = ag.exp(x * w)
    y.numpy()
    z = ag.sum(y)
    z.numpy()
    reference = weakref.ref(y._lazy())
    del y, z
    gc.collect()
    assert reference() is None


COUNT = 20_000


def test_deep_graphs():
    w, x = leaf(1, 2), ag.asarray([1.0, 2.0])
    y = w
    for _ in range(COUNT // 5):
        y = y + w
    ag.sum(y).backward()
    np.testing.assert_array_equal(w.grad, [COUNT // 5 + 1] * 2)

    def f(x):
        y = x
        for _ in range(COUNT):
            y = y + x
        return ag.sum(y)

    np.testing.assert_array_equal(ag.jit(ag.grad(f))(x), [COUNT + 1] * 2)


@pytest.mark.parametrize("wrong", [3, 1.0, np.ones(2, F32), [1.0, 2.0], "a"])
def test_a_gradient_that_is_no_tensor(wrong):
    p = ag.Tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(nablair.DTypeError, match="a gradient must be a Tensor or None"):
        p.grad = wrong
    assert p.grad is None

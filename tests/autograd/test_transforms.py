"""grad, value_and_grad and vjp: signatures, structures, composition with each other, with jit and with backward."""

from __future__ import annotations

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

F32 = np.float32
X = np.linspace(-1, 1, 5).astype(F32)


def test_argnums_and_structures():
    def f(p, x, k):
        return ag.sum(p["w"] * x + p["b"][0]) * k

    p = {"w": ag.asarray(X), "b": [ag.asarray(2.0)]}
    value, (dp, dk) = ag.value_and_grad(f, argnums=(0, 2))(p, X, 3.0)
    assert float(value) == pytest.approx(3 * (X * X + 2).sum())
    np.testing.assert_allclose(dp["w"], 3 * X)
    assert float(dp["b"][0]) == 15 and float(dk) == pytest.approx((X * X + 2).sum())
    np.testing.assert_allclose(ag.grad(f, argnums=-2)(p, X, 3.0), 3 * X)
    np.testing.assert_allclose(ag.grad(lambda x, k=1.0: ag.sum(x * k))(X, k=2.0), np.full(5, 2.0))


def test_auxiliary_data():
    def f(x):
        y = x * x
        return ag.sum(y), {"y": y, "name": "squares", "count": 5}

    for mode in (lambda f: f, ag.jit):
        gradient, aux = mode(ag.grad(f, has_aux=True))(ag.asarray(X))
        np.testing.assert_allclose(gradient, 2 * X)
        np.testing.assert_allclose(aux["y"], X * X)
        assert aux["name"] == "squares" and aux["count"] == 5
    (value, aux), gradient = ag.value_and_grad(f, has_aux=True)(ag.asarray(X))
    assert float(value) == pytest.approx((X * X).sum()) and set(aux) == {"y", "name", "count"}


def test_derivatives_of_derivatives():
    f = lambda x: ag.tanh(x) * x  # noqa: E731
    x = 0.7
    t = np.tanh(x)
    s = 1 - t * t
    expected = [t + x * s, 2 * s - 2 * x * t * s, -6 * t * s - 2 * x * (s * s - 2 * t * t * s)]
    for times, value in enumerate(expected, 1):
        g = f
        for _ in range(times):
            g = ag.grad(g)
        assert float(g(x)) == pytest.approx(value, rel=1e-5)
        assert float(ag.jit(g)(x)) == pytest.approx(value, rel=1e-5)
    inner = ag.jit(ag.grad(f))
    assert float(ag.jit(ag.grad(lambda x: inner(x) * 2))(x)) == pytest.approx(2 * expected[1], rel=1e-5)


def test_closed_over_values_of_an_outer_trace():
    def outer(x):
        return ag.sum(ag.grad(lambda y: ag.sum(y * y * x))(x))  # the sum of 2 x x

    np.testing.assert_allclose(ag.grad(outer)(ag.asarray(X)), 4 * X, rtol=1e-6)
    np.testing.assert_allclose(ag.jit(ag.grad(outer))(ag.asarray(X)), 4 * X, rtol=1e-6)


@pytest.mark.parametrize("stop", [ag.stop_gradient, lambda v: v.detach()])
def test_stopped_gradients(stop):
    x = ag.asarray(X)
    twice = ag.grad(lambda x: ag.sum(ag.grad(lambda y: ag.sum(y * y * stop(y)))(x)))
    for mode in (lambda f: f, ag.jit):
        np.testing.assert_allclose(mode(ag.grad(lambda x: ag.sum(x * stop(x * 2))))(x), 2 * X)
        np.testing.assert_allclose(mode(twice)(x), 2 * X, rtol=1e-6)


def test_vjp():
    def f(a, b):
        return {"p": a * b, "n": ag.argmax(a)}, ag.sin(a)

    a, b = ag.asarray(X), ag.asarray(X + 2)
    for mode in (lambda f: f, ag.jit):

        def run(a, b):
            (out, s), pull = ag.vjp(f, a, b)
            da, db = pull(({"p": b, "n": out["n"]}, s))
            return out["p"], da, db, pull(({"p": a, "n": out["n"]}, s * 0))[1]

        p, da, db, again = mode(run)(a, b)
        np.testing.assert_allclose(p, X * (X + 2), rtol=1e-6)
        np.testing.assert_allclose(da, (X + 2) ** 2 + np.sin(X) * np.cos(X), rtol=1e-5)
        np.testing.assert_allclose(db, (X + 2) * X, rtol=1e-5)
        np.testing.assert_allclose(again, X * X, rtol=1e-5)
    _, pull, aux = ag.vjp(lambda x: (x * x, "aux"), a, has_aux=True)
    assert aux == "aux"
    np.testing.assert_allclose(pull(ag.ones(5))[0], 2 * X)
    with pytest.raises(nablair.ShapeError, match="cotangent"):
        pull(ag.ones(4))
    with pytest.raises(nablair.Error, match="structure"):
        pull((ag.ones(5), 1))


def test_binding_inside_of_a_differentiated_function():
    total = ag.asarray(0.0)

    def f(x):
        total.__iadd__(ag.sum(x))
        return ag.sum(x * x) + total * 0

    np.testing.assert_allclose(ag.grad(f)(ag.asarray(X + 1)), 2 * (X + 1))
    assert float(total) == pytest.approx(5)
    g = ag.jit(ag.grad(f))
    for _ in range(3):
        g(ag.asarray(X + 1))
    assert float(total) == pytest.approx(20)


def test_python_control_flow_on_values_outside_of_jit():
    scale = ag.asarray(3.0)
    np.testing.assert_allclose(ag.grad(lambda x: ag.sum(x * (2 if scale > 1 else 1)))(ag.asarray(X)), np.full(5, 2))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ag.grad(lambda x: x)(ag.asarray(X)), nablair.ShapeError, "0-d"),
        (lambda: ag.grad(lambda x: (ag.sum(x), 1))(ag.asarray(X)), nablair.Error, "one number"),
        (lambda: ag.grad(lambda x: ag.argmax(x))(ag.asarray(X)), nablair.DTypeError, "int64"),
        (lambda: ag.grad(ag.sum)(ag.asarray([1, 2])), nablair.DTypeError, "floats"),
        (lambda: ag.grad(ag.sum, argnums=1)(ag.asarray(X)), nablair.Error, "argnums"),
        (lambda: ag.grad(ag.sum, has_aux=True)(ag.asarray(X)), nablair.Error, "has_aux"),
        (lambda: ag.grad(ag.sum)("text"), nablair.DTypeError, "text"),
    ],
)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_the_detection_loss():
    rng = np.random.default_rng(0)
    p, t, h, r = (rng.uniform(0.1, 0.9, (4, 5)) for _ in range(4))

    def reference(p, t, h, r):
        q = np.clip(p, 1e-7, 1 - 1e-7)
        d = np.abs(p - t)
        smooth = np.where(d < 0.05, 0.5 * d * d / 0.05, d - 0.025)
        return (2 * h * -(t * np.log(q) + (1 - t) * np.log(1 - q)) + 3 * r * smooth).sum()

    def loss(*arrays):
        return ag.fused_weighted_bce_smooth_l1_loss(*arrays, heat_scale=2, reg_scale=3)

    assert float(loss(p, t, h, r)) == pytest.approx(reference(p, t, h, r))
    gradients = ag.jit(ag.grad(loss, argnums=(0, 1, 2, 3)))(p, t, h, r)
    for number, gradient in enumerate(gradients):
        arrays = [p, t, h, r]
        moved = [a.copy() for a in arrays]
        moved[number][1, 2] += 1e-6
        slope = (reference(*moved) - reference(*arrays)) / 1e-6
        assert float(gradient[1, 2]) == pytest.approx(slope, rel=1e-4)
    with pytest.raises(nablair.ShapeError, match="heat_weight"):
        loss(p, t, h[:2], r)

"""The front-end on every device that is here."""

from __future__ import annotations

import numpy as np
import pytest

from nablair import autograd as ag

F32 = np.float32
DEVICES = ag.devices()


@pytest.mark.parametrize("device", DEVICES)
def test_eager_jit_and_gradients(device):
    x = np.linspace(-1, 1, 12, dtype=F32).reshape(3, 4)
    t = ag.asarray(x, device=device)
    made = ag.relu(t * 0.3 - 0.1) + t
    assert made.device == device
    np.testing.assert_allclose(made, np.maximum(x * 0.3 - 0.1, 0) + x, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(ag.sum(t, axis=0), x.sum(0), rtol=1e-5, atol=1e-6)
    f = ag.jit(ag.grad(lambda x, k: ag.sum(ag.tanh(x) * x) * k), device=device)
    expected = (np.tanh(x) + x * (1 - np.tanh(x) ** 2)) * 2
    for given in (t, x):
        gradient = f(given, 2.0)
        assert gradient.device == device
        np.testing.assert_allclose(gradient, expected, rtol=1e-5, atol=1e-6)
    w = ag.Tensor(x, device=device, requires_grad=True)
    ag.sum(w * w).backward()
    assert w.grad is not None and w.grad.device == device
    np.testing.assert_allclose(w.grad, 2 * x)


@pytest.mark.parametrize("device", DEVICES)
def test_the_default_device(device):
    with ag.default_device(device):
        x = ag.arange(5, dtype=ag.float32) + ag.ones(5)
        assert x.device == device and ag.asarray([1.0]).device == device
        assert ag.jit(lambda: ag.zeros(2) + 1)().device == device
    np.testing.assert_array_equal(x, np.arange(5) + 1)
    assert ag.zeros(1).device == "cpu"

"""An op of a plugin, its class alone: what follows from it without an entry in any table of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nablair.autograd as ag
from nablair.autograd.trace import emit
from nablair.ir.definition import OPS
from nablair.ir.parser import parse_module
from nablair.passes.manager import PassManager
from nablair.testing import check
from nablair.tools.ir_opt import load_plugin

PLUGIN = Path(__file__).resolve().parents[2] / "docs/programs/plugin.py"
X = np.linspace(-2.0, 2.0, 33, dtype=np.float32)


@pytest.fixture(autouse=True, scope="module")
def _plugin() -> None:
    load_plugin(str(PLUGIN))


def softsign(x: ag.Tensor) -> ag.Tensor:
    return emit("softsign", x)


def total(x: ag.Tensor) -> ag.Tensor:
    return ag.sum(softsign(x))


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "value": (softsign, lambda x: x / (1 + abs(x))),
    "gradient": (ag.grad(total), lambda x: 1 / (1 + abs(x)) ** 2),
    "second": (ag.grad(lambda x: ag.sum(ag.grad(total)(x))), lambda x: -2 * np.sign(x) / (1 + abs(x)) ** 3),
}


@pytest.mark.parametrize("device", ag.devices())
@pytest.mark.parametrize("which", FUNCTIONS)
@pytest.mark.parametrize("jit", [False, True], ids=["eager", "jit"])
def test_it_is_computed_and_differentiated_on_every_device(device: str, which: str, jit: bool) -> None:
    function, reference = FUNCTIONS[which]
    x = ag.asarray(X, device=device)
    found: Any = ag.jit(function)(x) if jit else function(x)
    assert found.device == device
    np.testing.assert_allclose(np.asarray(found), reference(X), rtol=1e-6, atol=1e-7)


def test_it_is_checked_as_a_whole() -> None:
    check(OPS["demo.softsign"])


def test_it_is_differentiated_backward() -> None:
    x = ag.Tensor(X, requires_grad=True)
    total(x).backward()
    np.testing.assert_allclose(np.asarray(x.grad), FUNCTIONS["gradient"][1](X), rtol=1e-6)


def test_it_is_fused_with_its_neighbours_and_vectorized() -> None:
    module = parse_module("""func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
      %0 = elementwise.exp %x : tensor<256xf32>
      %1 = demo.softsign %0 : tensor<256xf32>
      %2 = elementwise.mul %1, %x : tensor<256xf32>
      return %2 : tensor<256xf32>
    }""")
    PassManager.parse("kernel").run(module)
    assert str(module).count("kernel.launch") == 1
    PassManager.parse("loop-cpu").run(module)
    assert "arith.divf" in str(module) and "vector<" in str(module)

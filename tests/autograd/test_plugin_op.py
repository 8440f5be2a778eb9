"""An op of a plugin, its class alone: what follows from it without an entry in any table of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nablair.autograd as ag
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.definition import OPS
from nablair.ir.dialects import func
from nablair.ir.interpreter.bounds import Bounds
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import F64, TensorType
from nablair.passes.manager import PassManager
from nablair.testing import check
from nablair.tools.catalogue import op_row
from nablair.tools.ir_opt import load_plugin
from nablair.tools.stubs import method

PLUGIN = Path(__file__).resolve().parents[2] / "docs/programs/plugin.py"
X = np.linspace(-2.0, 2.0, 33, dtype=np.float32)


@pytest.fixture(autouse=True, scope="module")
def _plugin() -> None:
    load_plugin(str(PLUGIN))


def softsign(x: ag.Tensor) -> ag.Tensor:
    return getattr(ag, "softsign")(x)  # noqa: B009 (a stub of ours knows nothing of plugins)


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


def lowered(pipeline: str) -> str:
    module = parse_module("""func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
      %0 = demo.softsign %x : tensor<256xf32>
      return %0 : tensor<256xf32>
    }""")
    PassManager.parse(pipeline).run(module)
    return str(module)


def follows() -> dict[str, Callable[[], bool]]:
    """What follows from the class of an op, each with a way to see it."""
    cls, (x, value) = OPS["demo.softsign"], (X.astype(np.float64), FUNCTIONS["value"][1](X.astype(np.float64)))
    text = f"""func.func @main(%x: tensor<{len(X)}xf64>) -> tensor<{len(X)}xf64> {{
      %0 = demo.softsign %x : tensor<{len(X)}xf64>
      return %0 : tensor<{len(X)}xf64>
    }}"""

    def built() -> bool:
        function = func.Func.of("f", [TensorType((2,), F64)], [])
        return isinstance(getattr(TensorBuilder(function.entry), "softsign")(function.arguments[0]).defining_op, cls)  # noqa: B009

    def computed(device: str) -> bool:
        return np.allclose(np.asarray(softsign(ag.asarray(X, device=device))), value, rtol=1e-6)

    def derived(which: str) -> bool:
        function, reference = FUNCTIONS[which]
        return np.allclose(np.asarray(function(ag.asarray(x))), reference(x), rtol=1e-12)

    return {
        "builder method": built,
        "function": lambda: ag.function(cls) is getattr(ag, "softsign") and "softsign" in ag.__all__,  # noqa: B009
        "docstring": lambda: (inspect.getdoc(ag.function(cls)) or "").startswith("x / (1 + |x|)."),
        "row of the documents": lambda: "| `demo.softsign` | `x` | `result` |" in op_row(cls),
        "stub": lambda: "def softsign(self, x: V) -> V" in method(cls, "V"),
        "text": lambda: str(parse_module(str(parse_module(text)))) == str(parse_module(text)),
        "meaning": lambda: np.allclose(Interpreter(parse_module(text)).call("main", [x])[0], value),
        "error bound": lambda: bool(np.isfinite(Bounds(parse_module(text)).call("main", [x])[1][0]).all()),
        "first derivative": lambda: derived("gradient"),
        "second derivative": lambda: derived("second"),
        **{device: partial(computed, device) for device in ag.devices()},
        "vectors": lambda: "vector<" in lowered("kernel,loop-cpu"),
    }


def test_what_follows_from_the_class_alone() -> None:
    """Nothing of ours was told of the op but its class."""
    known = follows()
    assert [name for name, holds in known.items() if not holds()] == []
    assert len(known) >= 13 and {"cpu", "ptx-sim"} <= set(known)

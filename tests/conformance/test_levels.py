"""The kernel programs: text that is a fixpoint, one meaning in the interpreter and on every device, and fusion that
finds them from their tensor-level sources."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from kernel_cases import CASES, normal, text_of
from kernel_skeleton import skeleton
from level_sources import SOURCES, function, parsed, source

from nablair.ir.dialects import kernel
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.values import BlockArgument
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager
from nablair.runtime.compile import compile_function
from nablair.runtime.devices import device_names

NO_ROWS = {"m"}
"""Programs whose folds carry rows: they are for the interpreter; no lowering takes a row as a number."""


def assert_close(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_text_is_a_fixpoint_in_both_forms(name: str) -> None:
    module = parse_module(text_of(name), f"{name}.mlir")
    verify(module)
    custom, generic = print_op(module), print_op(module, generic=True)
    for text in (custom, generic):
        again = parse_module(text)
        verify(again)
        assert print_op(again, generic=True, keep_names=False) == print_op(module, generic=True, keep_names=False)
    assert print_op(parse_module(custom)) == custom
    assert print_op(parse_module(generic), generic=True) == generic


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_numpy(name: str) -> None:
    arrays, expected = CASES[name]()
    assert_close(Interpreter(parse_module(text_of(name))).call(name, arrays), expected)


@pytest.mark.parametrize("device", ["cpu", "opencl:0", "ptx-sim"])
@pytest.mark.parametrize("name", [n for n in CASES if n not in NO_ROWS])
def test_devices_run_the_kernel_text(device: str, name: str) -> None:
    if device not in device_names():
        pytest.skip(f"there is no {device} here")
    arrays, expected = CASES[name]()
    module = parse_module(text_of(name))
    assert isinstance(module, Module)
    assert_close(compile_function(module, name, device).run(arrays), expected)


def arguments(module: Module, name: str) -> list[BlockArgument]:
    """The arguments of a function."""
    function = module.symbol(name)
    assert isinstance(function, Func)
    return function.arguments


def launches(module: Module) -> list[kernel.Launch]:
    return [op for op in module.walk() if isinstance(op, kernel.Launch)]


def fused(module: Module) -> list[str]:
    """The skeletons of the kernels that a tensor-level module becomes."""
    PassManager.parse("kernel").run(module)
    verify(module)
    return [skeleton(launch) for launch in launches(module)]


def written(name: str) -> str:
    """The skeleton of the one kernel of a kernel-level text."""
    (launch,) = launches(parsed(text_of(name)))
    return skeleton(launch)


FIRST_AXIS = {"32": "64", "64": "32", "[0.0, 1.0]": "[1.0, 0.0]", "32x64": "32x64"}
"""What a softmax over the first axis has where one over the last has the other: a point is a column."""


def over_the_first_axis(text: str) -> str:
    """The skeleton (d) with rows and columns exchanged."""
    return re.sub(r"32x64|(?<!f)32|64|\[0\.0, 1\.0\]", lambda found: FIRST_AXIS[found[0]], text)


@pytest.mark.parametrize("name", SOURCES)
def test_fusion_finds_the_kernel(name: str) -> None:
    expected = written(name)
    if name == "d1":
        # The text recomputes exp, one of two good forms; fusion keeps it, as in (d).
        expected = over_the_first_axis(written("d"))
    if name == "g":
        # Tensor level has no scalars: the learning rate is a tensor without axes.
        expected = expected.replace("\n  store", "\n  load tensor<f32>[]\n  store", 1)
    assert fused(source(name)) == [expected]


@pytest.mark.parametrize("name", SOURCES)
def test_sources_mean_what_the_kernels_mean(name: str) -> None:
    """At tensor level and fused; arguments are matched by name, since a gradient takes its residuals as they come."""
    arrays, expected = CASES[name]()
    names = [a.name for a in arguments(parsed(text_of(name)), name)]
    given = dict(zip(names, arrays, strict=True))
    module = source(name)
    for pipeline in ("", "kernel"):
        if pipeline:
            PassManager.parse(pipeline).run(module)
        taken = [given[a.name] if a.name == "n" else np.asarray(given[a.name]) for a in arguments(module, "main")]
        assert_close(Interpreter(module).call("main", taken), expected)


def test_the_skeleton_tells_kernels_apart() -> None:
    """What a wrong fusion would change shows."""
    softmax = written("d")
    assert softmax == (
        "launch (32)\n"
        "  reduce (64) x1\n"
        "    load tensor<32x64xf32>[0.0, 1.0]\n"
        "  local (64) x1\n"
        "    load tensor<32x64xf32>[0.0, 1.0]\n"
        "  reduce (64) x1\n"
        "    load local tensor<64xf32>[1.0]\n"
        "  sweep (64)\n"
        "    load local tensor<64xf32>[1.0]\n"
        "    store tensor<32x64xf32>[0.0, 1.0]"
    )
    assert "accumulate tensor<64xf32>[0.1]" in written("c")
    assert "reduce (64) x2" in written("e1")
    assert written("o").startswith("launch (4, 8) from ['tensor<8x8xf32>']\n  store tensor<8x8xf32>[*, 0.1]")
    assert len({written(name) for name in CASES}) == len(CASES)


@pytest.mark.parametrize("device", ["cpu", "opencl:0", "ptx-sim"])
def test_devices_run_the_sources(device: str) -> None:
    """Attention and a norm's gradient, all the way from tensor level."""
    if device not in device_names():
        pytest.skip(f"there is no {device} here")
    arrays, expected = CASES["m1"]()
    assert_close(compile_function(source("m1"), "main", device).run(arrays), expected)


def test_a_second_gradient_of_a_norm_is_few_kernels() -> None:
    """The rules of norms and softmax are written with their own results, so they may be applied to what they give."""
    type = "tensor<32x64xf32>"
    module = parsed(function({"x": type}, {"y": type}, f"  %y = linalg.softmax %x {{axis = 1}} : {type}"))
    PassManager.parse("autodiff{function=main wrt=0},autodiff{function=main_vjp wrt=0,1}").run(module)
    for name in ("main", "main_vjp"):
        op = module.symbol(name)
        assert op is not None
        op.erase()
    x, ct, u, v = (normal(32, 64, seed=i) for i in range(4))
    before = Interpreter(module).call("main_vjp_vjp", [x, ct, u, v])
    assert len(fused(module)) <= 2
    assert_close(Interpreter(module).call("main_vjp_vjp", [x, ct, u, v]), before)

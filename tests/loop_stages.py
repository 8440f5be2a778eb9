"""Kernels taken down level by level, and run by the interpreter after every pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from nablair.ir.attribute_names import TARGET
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.kernel import Launch
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.target import Target
from nablair.passes.manager import PassManager
from nablair.passes.pipelines import PIPELINES
from nablair.passes.schedules.schedule import Schedule

TO_LOOPS = "plan,split-reduce,bufferize,lower-to-loops"
LOOP_PASSES = [*PIPELINES["apply-schedule"].split(","), "canonicalize", "cse", "promote", "parallel{least-work=2}"]
SMALL = Target(vector_bits=128)
"""Vectors of four floats: loops of a few points reach every case."""


def parsed(text: str, target: Target = SMALL) -> Module:
    """A module for a target."""
    module = parse_module(text)
    assert isinstance(module, Module)
    module.attributes[TARGET] = target.attribute()
    return module


def lowered(module: Module, pipeline: str) -> Module:
    """A copy after a pipeline; the verifier runs after each pass."""
    copy = module.clone()
    assert isinstance(copy, Module)
    PassManager.parse(pipeline).run(copy)
    return copy


def on_buffers(module: Module, arrays: Sequence[Any], shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray[Any, Any]]:
    """What a function on buffers writes to f32 outputs of the given shapes."""
    outs = [np.full(s, np.nan, np.float32) for s in shapes]
    Interpreter(module).call("main", [*arrays, *outs])
    return outs


def check_exact(module: Module, arrays: Sequence[Any], schedule: Schedule | None = None) -> Module:
    """Each loop pass leaves every bit of the results as it is; the module after the last pass.

    With `schedule` the kernels get it instead of the one that plan would choose.
    """
    reference = Interpreter(module).call("main", arrays)
    shapes = [r.shape for r in reference]
    now = lowered(module, "kernel")
    if schedule is not None:
        for op in now.walk():
            if isinstance(op, Launch):
                op.properties["schedule"] = schedule.attribute()
    now = lowered(now, TO_LOOPS)
    before = on_buffers(now, arrays, shapes)
    for got, expected in zip(before, reference, strict=True):
        np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5)
    for name in LOOP_PASSES:
        now = lowered(now, name)
        after = on_buffers(now, arrays, shapes)
        for got, expected in zip(after, before, strict=True):
            assert got.tobytes() == expected.tobytes(), f"{name} changed a result"
    return now


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Normal f32 numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)

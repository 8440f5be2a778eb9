"""Compiled functions follow the context of each call: `no_grad` and the default device."""

from __future__ import annotations

from contextlib import nullcontext
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag

from ..fuzzing import cases

F32 = np.float32


def drawn(random: Random) -> tuple[Any, Any, Any]:
    """A function, the arguments of a call, and the parameter that its result may be differentiated to."""
    w = ag.asarray(np.array([2.0, 3.0], F32))
    w.requires_grad = True
    make: Any = random.choice([ag.asarray, np.asarray])
    x = make(np.array([1.0, -1.0], F32))
    held, table = SimpleNamespace(w=w), {"a": [w]}
    return random.choice(
        [
            (lambda x, w: x * w, (x, w), w),
            (lambda x: x * w, (x,), w),
            (lambda x: (x * held.w, x), (x,), w),
            (lambda x: {"a": ag.asarray(x) * table["a"][0]}, (x,), w),
            (lambda: w * w, (), w),
            (lambda x: ag.asarray(x) * 2.0, (x,), None),
            (lambda: ag.ones((2,)), (), None),
        ]
    )


def first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result["a"] if isinstance(result, dict) else result


@pytest.mark.parametrize("seed", range(cases(20)))
def test_compiled_calls_record_where_eager_ones_do(seed: int) -> None:
    random = Random(seed)
    function, arguments, parameter = drawn(random)
    compiled: Any = ag.jit(function)
    for _ in range(3):
        records = random.random() < 0.5
        for _ in range(4):
            with nullcontext() if records else ag.no_grad():
                expected, found = first(function(*arguments)), first(compiled(*arguments))
            assert found.requires_grad == expected.requires_grad
            assert found.tolist() == expected.tolist()
            if found.requires_grad:
                gradients: list[Any] = []
                for result in [found, expected]:
                    parameter.grad = None
                    ag.sum(result).backward()
                    gradients.append(parameter.grad)
                assert gradients[0].tolist() == gradients[1].tolist()


@pytest.mark.parametrize("function", [lambda x: ag.asarray(x) * 2.0, lambda x: ag.ones(x.shape)])
def test_compiled_calls_of_arrays_run_on_the_default_device(function: Any) -> None:
    x = np.ones(2, F32)
    compiled: Any = ag.jit(function)
    for device in ["cpu", "ptx-sim", "cpu"]:
        with ag.default_device(device):
            for _ in range(4):
                assert compiled(x).device == device
    assert compiled.stats().compiles == 2


def test_arrays_that_become_tensors_are_inputs() -> None:
    large = np.ones((600, 600), F32)
    compiled: Any = ag.jit(lambda x: x * ag.sum(ag.asarray(large, dtype=ag.float64)))
    for value in [1.0, 2.0, 3.0]:
        large[0] = value
        assert compiled(ag.asarray([1.0])).tolist() == [600 * 599 + 600 * value]
    assert compiled.stats().compiles == 1

"""Threads that call the same new function at the same time: right values, and one compilation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag
from nablair.autograd.lazy import eager_stats
from nablair.runtime.compile import cache_statistics

THREADS = 8


def together(work: Callable[[], Any]) -> list[Any]:
    """What each of several threads gets that start at the same time."""
    barrier, found = threading.Barrier(THREADS), []

    def run() -> None:
        barrier.wait()
        try:
            found.append(work())
        except Exception as error:
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def program(seed: int) -> Callable[[Any], Any]:
    """A function that no test computed before: its constants are the seed's."""
    random = Random(f"threads {seed}")
    factor = random.random()
    known: list[Callable[[Any], Any]] = [ag.tanh, ag.exp, ag.square, lambda v: v + factor]
    steps = random.choices(known, k=4)

    def f(x: Any) -> Any:
        for step in steps:
            x = step(x * factor)
        return ag.sum(x)

    return f


def compiles() -> int:
    return cache_statistics().compiles


@pytest.mark.parametrize("device", ["cpu", "opencl:0", "ptx-sim"])
@pytest.mark.parametrize("seed", range(cases(2)))
def test_one_compiles_what_all_call(seed: int, device: str) -> None:
    x = ag.asarray(np.linspace(-1, 1, 7, dtype=np.float32), device=device)
    f = program(2 * seed)
    jitted, derivative = ag.jit(f), ag.jit(ag.grad(f))
    for work in (lambda: jitted(x).numpy(), lambda: derivative(x).numpy()):
        before = compiles()
        found = together(work)
        assert compiles() == before + 1
        assert all(np.array_equal(v, found[0]) for v in found), found
    assert jitted.stats().compiles == derivative.stats().compiles == 1

    f = program(2 * seed + 1)

    def eagerly() -> Any:
        v = ag.asarray(x, copy=True)
        v.requires_grad = True
        f(v).backward()
        return np.asarray(v.grad)

    before, plans = compiles(), eager_stats().compiles
    found = together(eagerly)
    assert compiles() - before <= eager_stats().compiles - plans <= 2  # the copy, and the function with its gradient
    assert all(np.array_equal(v, found[0]) for v in found), found

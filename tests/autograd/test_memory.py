"""What compiled functions keep alive: nothing of the arguments of a call, nor arrays that were replaced outside."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag

F32 = np.float32


def tensor(*shape: int) -> ag.Tensor:
    return ag.asarray(np.ones(shape or (4,), F32))


NESTED = ag.jit(lambda t: t["a"][0] + t["b"])
TRIPLED = ag.jit(lambda x: x * 3)


def with_backward(x: ag.Tensor) -> Any:
    w = ag.Tensor(np.ones(4, F32), requires_grad=True)
    loss = ag.jit(lambda w, x: ag.sum(w * x))(w, x)
    loss.backward()
    return w.grad


@pytest.mark.parametrize(
    "call",
    [
        ag.jit(lambda x: x * 2),
        ag.jit(lambda x: (x, x + 1)),
        ag.jit(lambda x: x),
        ag.jit(ag.grad(lambda x: ag.sum(x * x))),
        ag.jit(ag.value_and_grad(lambda x: ag.sum(x * x))),
        ag.jit(lambda x: ag.vjp(ag.exp, x)[1](x)[0]),
        ag.jit(lambda x: x * x, dynamic=True),
        lambda x: NESTED({"a": [x], "b": x}),
        lambda x: TRIPLED.lower(x).compile()(x),
        with_backward,
    ],
)
@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_arguments_are_not_kept_alive(call: Callable[[Any], Any], kind: str) -> None:
    # Whatever runs once and is kept is so for other arguments before.
    for _ in range(2):
        x = tensor()
        argument = x if kind == "tensor" else np.ones(4, F32)
        gone = [weakref.ref(argument)]
        if kind == "tensor":
            gone.append(weakref.ref(x._array()))
        call(argument)
        del x, argument
        gc.collect()
        assert [r() for r in gone] == [None] * len(gone)


def test_many_shapes_do_not_fill_the_memory() -> None:
    f = ag.jit(lambda x: ag.sum(x * 2))
    f(np.ones(10, F32))
    tracemalloc.start()
    try:
        for extra in range(8):
            f(np.ones(2_000_000 + extra, F32))
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 8_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [tensor, lambda: np.ones(4, F32)])
def test_replaced_captures_are_not_kept_alive(make: Callable[[], Any]) -> None:
    state = {"w": make()}
    f = ag.jit(lambda x: x * state["w"])
    x = tensor()
    for _ in range(3):
        f(x)
    gone = weakref.ref(state["w"])
    state["w"] = make()
    gc.collect()
    assert gone() is None
    assert f(x).tolist() == [1.0] * 4 and f.stats().compiles == 1

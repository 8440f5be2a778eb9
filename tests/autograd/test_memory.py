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


class Model:
    def __init__(self, value: float) -> None:
        self.w = ag.asarray(np.full(4, value, F32))
        self.layers = [tensor(), {"scale": value}]
        self.part = Part(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model)

    def __hash__(self) -> int:
        return 1


class Part:
    __slots__ = ("__weakref__", "rate")

    def __init__(self, value: float) -> None:
        self.rate = value


def apply_model(m: Model, x: Any) -> Any:
    return x * m.w + m.layers[0] * m.layers[1]["scale"] + m.part.rate


def apply_part(m: Part, x: Any) -> Any:
    return x * m.rate


@pytest.mark.parametrize(
    ("kind", "function", "wanted"),
    [(Model, apply_model, lambda v: 3 * v), (Part, apply_part, lambda v: v)],
)
@pytest.mark.parametrize(
    "wrap", [ag.jit, lambda f: ag.jit(f, static_argnames=["m"]), lambda f: ag.jit(lambda m, x: f(m, x))]
)
def test_objects_among_the_arguments_are_not_kept_alive(kind: Any, function: Any, wanted: Any, wrap: Any) -> None:
    f, x = wrap(function), tensor()
    for round in range(3):
        given = [kind(float(round * 3 + i)) for i in range(3)]
        for _ in range(12):  # past the calls after which native entries are made
            for i, m in enumerate(given):
                assert f(m, x).tolist() == [wanted(round * 3 + i)] * 4
        assert f.stats().compiles == 3 * (round + 1)
        assert len(f._specialisations) == 3  # those of objects that are gone went with them
        gone = [weakref.ref(m) for m in given]
        del given, m
        gc.collect()
        assert [r() for r in gone] == [None] * 3

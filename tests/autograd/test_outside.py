"""A compiled function is never stale: what it reads from outside may change between calls in any way."""

from __future__ import annotations

import random
import sys
import time
from abc import ABCMeta
from dataclasses import dataclass, field, make_dataclass
from enum import Enum
from functools import cache, cached_property
from types import ModuleType, new_class
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

from ..fuzzing import cases
from .outside_programs import Program

F32 = np.float32


def outcome(function: Any, x: Any) -> Any:
    """The result, or the error of the function itself."""
    try:
        return function(x)
    except nablair.Error as error:
        return error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        return type(error)


def check(seed: int, refusals: list[str]) -> None:
    program = Program(seed)
    f = program.module.f
    loss = lambda x: ag.sum(f(x))  # noqa: E731
    pairs = [(f, ag.jit(f)), (ag.grad(loss), ag.jit(ag.grad(loss)))]
    x = ag.asarray(np.array([1.25, -2.0], F32))
    for statement in ["", "", *program.changes, ""]:
        program.change(statement)
        for plain, compiled in pairs:
            for _ in range(2):
                expected: Any = outcome(plain, x)
                found: Any = outcome(compiled, x)
                about = f"seed {seed}, after {statement!r}:\n{program.source}"
                failures = [isinstance(v, type | nablair.Error) for v in (expected, found)]
                if any(failures):
                    # What fails by itself fails compiled; what does not may be refused, by an error of ours.
                    assert isinstance(found, nablair.Error) or all(failures), about
                    if not failures[0]:
                        refusals.append(f"{about}: {found}")
                    continue
                assert found.dtype is expected.dtype and found.shape == expected.shape, about
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, err_msg=about)
                zeros = found.numpy() == 0
                np.testing.assert_array_equal(
                    np.signbit(found.numpy()[zeros]), np.signbit(expected.numpy()[zeros]), err_msg=about
                )


@pytest.mark.parametrize("start", range(4))
def test_drawn_functions_are_never_stale(start: int) -> None:
    count = cases(6)
    refusals: list[str] = []
    for seed in range(start * count, (start + 1) * count):
        check(seed, refusals)
    assert len(refusals) <= count, refusals


class Layer:
    scale = 2.0

    def __init__(self) -> None:
        self.w = ag.asarray([1.0, 2.0])

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.scale


def test_attributes_of_arguments_are_read_anew() -> None:
    layer, x = Layer(), ag.asarray([1.0, 10.0])
    f = ag.jit(lambda m, x: m(x))
    assert f(layer, x).tolist() == [2.0, 40.0]
    layer.w = ag.asarray([3.0, 4.0])
    assert f(layer, x).tolist() == [6.0, 80.0] and f.stats().compiles == 1
    layer.scale = 1.0
    assert f(layer, x).tolist() == [3.0, 40.0]
    del layer.scale
    Layer.scale = 3.0
    try:
        assert f(layer, x).tolist() == [9.0, 120.0]
    finally:
        Layer.scale = 2.0


def test_updates_bind_the_handle_that_stands_there_now() -> None:
    layer = Layer()

    @ag.jit
    def step(x: Any) -> Any:
        layer.w -= x
        return layer.w * 1

    x = ag.asarray([1.0, 1.0])
    first = layer.w
    for n in range(1, 4):
        assert step(x).tolist() == layer.w.tolist() == [1.0 - n, 2.0 - n]
    layer.w = ag.asarray([10.0, 10.0])
    assert step(x).tolist() == layer.w.tolist() == [9.0, 9.0]
    assert first.tolist() == [-2.0, -1.0] and step.stats().compiles == 1


def test_functions_among_the_arguments() -> None:
    k = 2.0
    f = ag.jit(lambda x, g: x * g(), static_argnames="g")
    h = ag.jit(lambda x, g: x * g())
    g, x = lambda: k, ag.asarray([1.0])
    assert f(x, g).tolist() == h(x, g).tolist() == [2.0]
    k = 5.0
    assert f(x, g).tolist() == h(x, g).tolist() == [5.0]


@dataclass(frozen=True)
class Config:
    rate: float
    note: Any = field(default=None, compare=False)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (frozenset([1]), frozenset([1.0])),
        ((frozenset([True]),), (frozenset([1]),)),
        (Config(1), Config(1.0)),
        (Config(2, 3), Config(2, 4)),
        (range(0, 3, 5), range(0, 1, 1)),
    ],
)
def test_equal_static_arguments_of_other_types_differ(one: Any, other: Any) -> None:

    def f(x: Any, k: Any) -> Any:
        held = next(iter(k)) if isinstance(k, tuple) else k
        if isinstance(held, range):
            return x * held.step
        if isinstance(held, Config):
            return x * held.rate * (held.note or 1)
        return x * next(iter(held))

    compiled = ag.jit(f, static_argnames="k")
    x = ag.asarray([1, 2])
    for k in (one, other, one, other):
        expected, found = f(x, k), compiled(x, k)
        assert found.dtype is expected.dtype and found.tolist() == expected.tolist()
    assert compiled.stats().misses == 2


def test_equal_keys_of_other_types_differ() -> None:
    f = ag.jit(lambda x, d: x * next(iter(d)))
    x = ag.asarray([1, 2])
    assert f(x, {1: x}).dtype is ag.int64 and f(x, {1.0: x}).dtype is ag.float32


RNG = np.random.default_rng(0)
ITERATOR = iter(range(100))
LARGE = np.ones((1024, 1024), F32)
COUNT = 0


def counted(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return x * COUNT


@cache
def made_once() -> Any:
    return ag.asarray([2.0])


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x * time.time(), r"time\.time"),
        (lambda x: x * np.random.rand(), "random numbers"),
        (lambda x: x * random.random(), "random numbers"),
        (lambda x: x * float(RNG.normal()), "random numbers from RNG"),
        (lambda x: x * next(ITERATOR), "ITERATOR is an iterator"),
        (lambda x: x * LARGE[0, 0], "LARGE"),
        (lambda x: x * eval("COUNT"), "eval"),
        (lambda x: x * globals()["COUNT"], "globals"),
        (counted, "changes what the function reads: COUNT"),
        (lambda x: x * made_once(), "where its changes cannot be seen"),
    ],
)
def test_what_cannot_be_watched_is_refused_with_the_line(function: Any, reason: str) -> None:
    made_once()
    with pytest.raises(nablair.Error, match=reason) as caught:
        compiled: Any = ag.jit(function)
        compiled(ag.asarray([1.0]))
    assert caught.value.location is not None and __file__ in str(caught.value)


def test_what_is_filled_at_the_first_call_is_no_change() -> None:
    class Lazily:
        k = 3.0

        @cached_property
        def factor(self) -> float:
            return self.k * 2

    held = Lazily()
    f = ag.jit(lambda x: x * held.factor)
    for _ in range(3):
        assert f(ag.asarray([1.0])).tolist() == [6.0]
    assert f.stats().compiles == 1
    held.factor = 7.0
    assert f(ag.asarray([1.0])).tolist() == [7.0]


def test_a_compiled_form_is_refused_once_it_is_stale() -> None:
    k = 2.0
    compiled = ag.jit(lambda x: x * k).lower(ag.asarray([1.0])).compile()
    assert compiled(ag.asarray([1.0])).tolist() == [2.0]
    k = 3.0
    with pytest.raises(nablair.Error, match="lower it again"):
        compiled(ag.asarray([1.0]))


def test_stand_ins_leave_no_trace() -> None:
    array = np.array([1.0, 2.0], F32)
    table = {"a": array}

    @ag.jit
    def f(x: Any) -> Any:
        if x.shape == (3,):
            raise KeyError("no")
        return x * array + float(table["a"].max())

    assert f(ag.asarray([1.0, 1.0])).tolist() == [3.0, 4.0]
    with pytest.raises(KeyError):
        f(ag.asarray([1.0, 1.0, 1.0]))
    assert type(array) is np.ndarray and table["a"] is array


IMPORTS = """
def whole(x):
    import outside_package.part
    return x * outside_package.part.rate

def renamed(x):
    import outside_package.part as p
    return x * p.rate

def module(x):
    from outside_package import part
    return (lambda: x * part.rate)()

def name(x):
    from outside_package.part import rate
    return x * rate

def relative(x):
    from . import part
    return x * part.rate

def relative_name(x):
    from .part import rate
    return x * rate
"""


def test_imports_inside_of_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    package, part = ModuleType("outside_package"), ModuleType("outside_package.part")
    package.__dict__.update(__path__=[], part=part)
    monkeypatch.setitem(sys.modules, "outside_package", package)
    monkeypatch.setitem(sys.modules, "outside_package.part", part)
    user: dict[str, Any] = {"__name__": "outside_package.user", "__package__": "outside_package"}
    exec(IMPORTS, user)
    functions = [f for f in user.values() if callable(f)]
    compiled: list[Any] = [ag.jit(f) for f in functions]
    x = ag.asarray([1.0])
    for rate in (2.0, 3.0):
        part.__dict__["rate"] = rate
        assert [f(x).tolist() for f in compiled] == [[rate]] * 6


@dataclass
class Held:
    x: Any
    n: int = 0


def stored(c: Any, x: Any) -> Any:
    c.n += 1
    return x


@pytest.mark.parametrize(
    ("function", "container"),
    [
        (lambda c, x: c.append(x) or x, []),
        (lambda c, x: c["a"].pop() * x, {"a": [1.0, 2.0]}),
        (lambda c, x: c.setdefault("b", x), {"a": 1.0}),
        (lambda c, x: c.clear() or x, {"a": 1.0}),
        (stored, Held(1.0)),
    ],
)
def test_functions_that_change_containers_among_their_arguments_are_refused(function: Any, container: Any) -> None:
    compiled: Any = ag.jit(function)
    calls = [lambda: compiled(container, ag.asarray([1.0])), lambda: compiled(x=np.ones(1, F32), c=container)]
    for call in calls:
        with pytest.raises(nablair.Error, match="changes a container among its arguments"):
            call()


def test_writes_to_arrays_from_outside() -> None:
    array = np.zeros(2, F32)

    def count(x: Any) -> Any:
        array[0] = array[0] + 1
        return x * 2

    def fill(x: Any) -> Any:
        array[:] = 3
        return x * 2

    with pytest.raises(nablair.Error, match="each call changes what the function reads: array"):
        ag.jit(count)(ag.asarray([1.0]))
    filled = ag.jit(fill)
    for _ in range(3):
        array[:] = 0
        filled(ag.asarray([1.0]))
        assert array.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("seed", range(cases(6)))
def test_writes_to_arrays_among_the_arguments(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def set_one(x: Any, y: Any) -> Any:
        y[0] = 5.0
        return x + y

    def add(x: Any, y: Any) -> Any:
        y += 1
        return x * y

    def view(x: Any, y: Any) -> Any:
        x *= 2
        y -= x
        return x + y, x

    for function in (set_one, add, view):
        compiled = ag.jit(function)
        given = [rng.integers(0, 9, 3).astype(F32) for _ in range(2)]
        expected = [a.copy() for a in given]
        for _ in range(3):
            function(*expected)
            compiled(*given)
            assert [a.tolist() for a in given] == [a.tolist() for a in expected]
    fixed = np.ones(3, F32)
    fixed.flags.writeable = False
    with pytest.raises(nablair.Error, match="read-only"):
        ag.jit(add)(fixed, fixed)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_dataclass("Made", [("kept", float, 1.0)]),
        lambda: ABCMeta("Made", (), {}),
        lambda: new_class("Made", ()),
        lambda: Enum("Made", "A B"),
    ],
)
def test_classes_that_the_library_makes_for_the_user_are_his(make: Any) -> None:
    cls = make()
    held = [cls.A if hasattr(cls, "A") else cls()]
    f, x = ag.jit(lambda x: x * held[0].rate), ag.asarray([1.0])
    for rate in (2.0, 3.0, property(lambda _: 5.0)):
        cls.rate = rate
        assert [f(x).tolist() for _ in range(9)] == [[5.0 if isinstance(rate, property) else rate]] * 9

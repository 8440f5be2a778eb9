"""Values that are part of the key of a specialisation: one is told from another by all that a function may read."""

from __future__ import annotations

import dataclasses
import gc
from collections import namedtuple
from collections.abc import Callable
from datetime import datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePosixPath
from random import Random
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag

from ..fuzzing import cases

Pair = namedtuple("Pair", "first second")


class Zone(tzinfo):
    def __init__(self, hours: int) -> None:
        self.hours = hours

    def utcoffset(self, dt: Any) -> timedelta:
        return timedelta(hours=self.hours)

    def __repr__(self) -> str:
        return "Zone"


@dataclasses.dataclass(frozen=True)
class Config:
    rate: Any


class Slotted:
    __slots__ = ("hidden",)


@dataclasses.dataclass(frozen=True)
class Partly(Slotted):
    rate: int


def partly(hidden: int) -> Partly:
    made = Partly(1)
    object.__setattr__(made, "hidden", hidden)
    return made


# A type that classes are derived from (None: taken as it is), a value for a number, and the number of a value.
KINDS: list[tuple[Any, Callable[[Any, int], Any], Callable[[Any], float]]] = [
    (float, lambda kind, n: kind(n), float),
    (int, lambda kind, n: kind(n), int),
    (str, lambda kind, n: kind("a" * n), len),
    (bytes, lambda kind, n: kind(b"a" * n), len),
    (complex, lambda kind, n: kind(n, 1), lambda v: v.real),
    (tuple, lambda kind, n: kind((n, 1)), lambda v: v[0]),
    (Pair, lambda kind, n: kind((n, Config(n)), 1), lambda v: v.first[1].rate),
    (frozenset, lambda kind, n: kind((n,)), lambda v: next(iter(frozenset.__iter__(v)))),
    (Decimal, lambda kind, n: kind(n), float),
    (Fraction, lambda kind, n: kind(n, 3), float),
    (PurePosixPath, lambda kind, n: kind("a" * n), lambda v: len(str(v))),
    (timedelta, lambda kind, n: kind(n), lambda v: v.days),
    (object, lambda kind, n: kind(), lambda _: 1),
    (Enum, lambda kind, n: list(kind)[n % 2], lambda v: v.value),
    (type, lambda kind, n: kind("Made", (), {"number": n}), lambda v: v.number),
    (None, lambda _, n: datetime(2020, 1, 1, tzinfo=Zone(n)), lambda v: v.utcoffset().seconds // 3600),
    (None, lambda _, n: datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=n))), lambda v: v.utcoffset().seconds),
    (None, lambda _, n: Config(n), lambda v: v.rate),
    (None, lambda _, n: Config((n, Config(float(n)))), lambda v: v.rate[1].rate),
    (None, lambda _, n: partly(n), lambda v: v.hidden),
]  # fmt: skip


def drawn_class(r: Random, base: Any) -> Any:
    """A class derived from a type, with an equality, a text, attributes or items of its own."""
    body: dict[str, Any] = {"__module__": __name__}
    if r.random() < 0.5:
        body |= {"__eq__": lambda a, b: True, "__hash__": lambda a: 1}
    if r.random() < 0.5:
        body["__repr__"] = lambda a: "same"
    if r.random() < 0.3 and base in (tuple, frozenset):
        body["__iter__"] = lambda a: iter(())
    if base is Enum:
        return Enum("Drawn", {"A": 1, "B": 2}, type=type("Mixed", (), body))
    if r.random() < 0.3 and base is not Pair:
        body["__slots__"] = ()
    return type("Drawn", (base,), body)


@pytest.mark.parametrize("start", range(4))
def test_values_that_differ_in_anything_are_told_apart(start: int) -> None:
    for seed in range(start * cases(10), (start + 1) * cases(10)):
        r = Random(seed)
        base, make, number = r.choice(KINDS)
        kind = r.choice([base, drawn_class(r, base)]) if base not in (None, object, Enum) else base
        kind = drawn_class(r, base) if base in (object, Enum) else kind

        def value(r: Random = r, kind: Any = kind, make: Any = make) -> Any:
            found = make(kind, r.randint(1, 3))
            if r.random() < 0.5 and hasattr(found, "__dict__") and not isinstance(found, Config | Partly | Enum):
                found.note = r.randint(1, 3)
            return found

        def f(x: Any, k: Any, number: Any = number) -> Any:
            return x * number(k) + getattr(k, "note", 0)

        compiled = ag.jit(f, static_argnames="k") if r.random() < 0.5 else ag.jit(f)
        if r.random() < 0.3:
            compiled = ag.jit(lambda x, ks, f=f: f(x, ks[0]), static_argnames="ks")
        takes_tuple = compiled.function is not f
        x, known = ag.asarray(np.array([1.0, 2.0], np.float32)), [value(), value()]
        taken_apart = (Config, Partly, Pair) if hasattr(type(known[0]), "_fields") else (Config, Partly)
        if isinstance(known[0], taken_apart) or kind in (int, float):
            compiled, takes_tuple = ag.jit(f, static_argnames="k"), False
        for _ in range(25):
            if r.random() < 0.4:
                known[r.randrange(2)] = value()  # the other one goes, and its place in memory may be taken
                gc.collect(0)
            k = r.choice(known)
            found = compiled(x, (k,) if takes_tuple else k)
            assert found.tolist() == f(x, k).tolist(), f"seed {seed}: {kind}, {k!r}"


def test_equal_values_share_a_specialisation_when_the_first_is_gone() -> None:
    f = ag.jit(lambda x, c: x * c.rate, static_argnames="c")
    for n in range(20):
        assert f(ag.asarray([1.0]), Config(2.0 + n % 2)).tolist() == [2.0 + n % 2]
    assert f.stats().compiles == 2


def test_what_a_method_is_bound_to_is_not_kept_alive() -> None:
    class Model:
        def __init__(self, rate: float) -> None:
            self.rate = rate

        def apply(self, x: Any) -> Any:
            return x * self.rate

    f, x = ag.jit(lambda x, g: g(x)), ag.asarray([1.0])
    for n in range(12):
        model = Model(float(n))
        assert [f(x, model.apply).tolist() for _ in range(10)] == [[float(n)]] * 10
    gc.collect()
    f(x, model.apply)
    assert f.stats().compiles == 12 and len(f._specialisations) == 1

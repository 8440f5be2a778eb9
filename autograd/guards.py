"""Guards: what was read, and whether the same still stands there.

A guard compares by identity first, in C; only what is another object is looked at further: numbers and strings of the
same type and value are the same, also within tuples and frozensets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from .identity import identity

_SCALARS = (int, float, complex, str, bytes, type(None), tuple, frozenset, slice, range)


def same(now: object, then: object) -> bool:
    """Whether two values are one to everybody who reads them."""
    if now is then:
        return True
    if type(now) is not type(then) or not _is_scalar(now):
        return False
    try:
        return identity(now) == identity(then)
    except TypeError:
        return False  # a tuple that holds arrays or lists


def _is_scalar(value: object) -> bool:
    return isinstance(value, _SCALARS) or (type(value).__module__ == "numpy" and hasattr(value, "dtype"))


Term = tuple[str, Sequence[object]]
"""The text of an expression, and the objects that its {0}, {1} .. stand for."""


class Guard:
    """`read` gives a flat sequence of what there is now, `label` tells what it is part of.

    Where it can be written so, for the shortest way of a call: `owners`, each thing that is read as an object, the text
    of a look-up in it, and a name; or `terms`, which all are true while the same stands there.
    """

    __slots__ = ("label", "owners", "read", "terms", "then")

    def __init__(
        self,
        label: str,
        read: Callable[[], Sequence[object]],
        owners: Sequence[tuple[object, str, str]] | None = None,
        terms: Sequence[Term] = (),
    ) -> None:
        self.label = label
        self.read = read
        self.then = read()
        self.owners = owners
        self.terms = terms

    def holds(self) -> bool:
        """Whether the same still stands there."""
        try:
            now = self.read()
        except READING:
            return False
        then = self.then
        if len(now) != len(then):
            return False
        if all(map(is_, now, then)):
            return True
        if not all(map(same, now, then)):
            return False
        self.then = now  # the same in value: the next look finds it by identity
        return True

    def change(self) -> str:
        """The name of what is another thing than it was."""
        try:
            now = self.read()
        except READING:
            return self.label
        for (_, _, name), new, old in zip(self.owners or (), now, self.then, strict=False):
            if not same(new, old):
                return name
        return self.label


class Source:
    """The text of a function that is made for one purpose, and the objects that it names."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"own": object.__getattribute__}

    def name(self, value: object) -> str:
        """A name for an object."""
        name = f"o{len(self.names)}"
        self.names[name] = value
        return name

    def text(self, term: Term) -> str:
        """An expression with names for its objects."""
        return term[0].format(*[self.name(v) for v in term[1]])

    def check(self, guards: Sequence[Guard]) -> str:
        """An expression that is true where all guards hold; it raises READING where something cannot be read."""
        each = f"{self.name(_each_holds)}({self.name(guards)})"
        terms = [self.text(t) for g in guards for t in _terms(g)]
        return f"({' and '.join(terms)} or {each})" if 0 < len(terms) <= MOST else each

    def function(self, text: str) -> Callable[..., Any]:
        """The function `made` of a text, which has no part of the user's but names in quotes."""
        exec(text, self.names)
        return self.names["made"]


READING = (AttributeError, IndexError, KeyError, ValueError, RuntimeError)
"""What is raised where something cannot be read any more."""
MOST = 200
"""How many comparisons are written as one expression."""


def _terms(guard: Guard) -> Sequence[Term]:
    if guard.owners is not None:
        return [
            ("{0}" + look_up.replace("{", "{{").replace("}", "}}") + " is {1}", (owner, value))
            for (owner, look_up, _), value in zip(guard.owners, guard.then, strict=True)
        ]
    return guard.terms or [("{0}()", (guard.holds,))]


def all_hold(guards: Sequence[Guard]) -> Callable[[], bool]:
    """A function that tells whether all guards hold: one expression of comparisons, as this is asked at every call."""
    source = Source()
    each, reading = f"{source.name(_each_holds)}({source.name(guards)})", source.name(READING)
    return source.function(
        f"""
def made():
    try:
        return {source.check(guards)}
    except {reading}:
        return {each}
"""
    )


def _each_holds(guards: Sequence[Guard]) -> bool:
    for guard in guards:  # noqa: SIM110 - a third of the time of `all`, at every call
        if not guard.holds():
            return False
    return True

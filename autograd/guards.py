"""Guards: what was read, and whether the same still stands there.

A guard compares by identity first, in C; only what is another object is looked at further: numbers and strings of the
same type and value are the same, also within tuples and frozensets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

from .pytree import identity

_SCALARS = (int, float, complex, str, bytes, type(None), tuple, frozenset, slice, range)


def same(now: Any, then: Any) -> bool:
    """Whether two values are one to everybody who reads them."""
    if now is then:
        return True
    if type(now) is not type(then) or not _is_scalar(now):
        return False
    try:
        return identity(now) == identity(then)
    except TypeError:
        return False  # a tuple that holds arrays or lists


def _is_scalar(value: Any) -> bool:
    return isinstance(value, _SCALARS) or (type(value).__module__ == "numpy" and hasattr(value, "dtype"))


class Guard:
    """`read` gives a flat sequence of what there is now, `label` tells what it is part of."""

    __slots__ = ("label", "owners", "read", "then")

    def __init__(
        self, label: str, read: Callable[[], Sequence[Any]], owners: Sequence[tuple[Any, str, str]] | None = None
    ) -> None:
        self.label = label
        self.read = read
        self.then = read()
        self.owners = owners
        # Each thing that is read as an object, the text of a look-up in it, and a name, where it can be written so.

    def holds(self) -> bool:
        """Whether the same still stands there."""
        try:
            now = self.read()
        except (AttributeError, IndexError, KeyError, ValueError, RuntimeError):
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
        except (AttributeError, IndexError, KeyError, ValueError, RuntimeError):
            return self.label
        for (_, _, name), new, old in zip(self.owners or (), now, self.then, strict=False):
            if not same(new, old):
                return name
        return self.label


def all_hold(guards: Sequence[Guard]) -> Callable[[], bool]:
    """A function that tells whether all guards hold: one expression of comparisons, as this is asked at every call."""
    names: dict[str, Any] = {"guards": guards}
    terms: list[str] = []
    for guard in guards:
        if guard.owners is None:
            names[f"g{len(names)}"] = guard.holds
            terms.append(f"g{len(names) - 1}()")
            continue
        for (owner, look_up, _), value in zip(guard.owners, guard.then, strict=True):
            names[f"o{len(names)}"] = owner
            names[f"v{len(names)}"] = value
            terms.append(f"o{len(names) - 2}{look_up} is v{len(names) - 1}")
    if not terms or len(terms) > MOST:
        return lambda: _each_holds(guards)
    names["each_holds"] = _each_holds
    source = f"""
def hold():
    try:
        if {" and ".join(terms)}:
            return True
    except (AttributeError, KeyError, ValueError):
        pass
    return each_holds(guards)
"""
    exec(source, names)  # the text has no part of the user's but names in quotes
    return names["hold"]


MOST = 200
"""How many comparisons are written as one expression."""


def _each_holds(guards: Sequence[Guard]) -> bool:
    for guard in guards:  # noqa: SIM110 - a third of the time of `all`, at every call
        if not guard.holds():
            return False
    return True

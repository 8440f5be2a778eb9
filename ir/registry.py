"""The lookup of op classes by name.

Dialect modules (`ir.dialect`) are imported when an op of theirs is first looked up, so that a tool pays only for what a
file uses.
"""

from __future__ import annotations

from .definition import OPS, Op
from .dialect import DIALECTS


def load_dialect(name: str) -> bool:
    """Import a dialect's definitions; whether the dialect is known."""
    found = DIALECTS.get(name)
    if found is None:
        return False
    found.load()
    return True


def suggestion(name: str) -> str:
    """`; did you mean 'linalg.reduce_sum'?` for the name of no op, "" when nothing is near."""
    from difflib import get_close_matches

    dialect, _, rest = name.partition(".")
    near = [dialect] if dialect in DIALECTS else get_close_matches(dialect, DIALECTS, 1)
    if near:
        load_dialect(near[0])
    found = get_close_matches(f"{near[0]}.{rest}" if near else name, OPS, 1, 0.7)
    return f"; did you mean '{found[0]}'?" if found else ""


def lookup(name: str) -> type[Op] | None:
    """The class of the op `name`, or None when no dialect defines it."""
    found = OPS.get(name)
    if found is None and load_dialect(name.partition(".")[0]):
        found = OPS.get(name)
    return found

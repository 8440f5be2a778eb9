"""The functions that ops declare, by their names; each is made when it is first asked for.

`declared.pyi`, which `tools/stubs.py` writes, says what there is.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.dialect import BUILT_IN
from .from_ops import function, op_of


def __getattr__(name: str) -> Callable[..., object]:
    cls = None if name.startswith("_") else op_of(name)
    if cls is None:
        raise AttributeError(f"no op declares a function '{name}'")
    made = function(cls)
    if cls.name.partition(".")[0] in BUILT_IN:  # an op of a plugin may be defined anew
        globals()[name] = made
    return made

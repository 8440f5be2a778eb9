"""The functions that ops declare, by their names; each is made when it is first used.

`declared.pyi`, which `tools/stubs.py` writes, says what there is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .from_ops import declaring, function


def __getattr__(name: str) -> Callable[..., Any]:
    cls = None if name.startswith("_") else declaring().get(name)
    if cls is None:
        raise AttributeError(f"no op declares a function '{name}'")
    made = globals()[name] = function(cls)
    return made

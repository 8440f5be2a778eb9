"""The garbage collector, paused where many objects are made that all stay alive: a run in between finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable
from threading import get_ident
from typing import Any, TypeVar

from .forking import in_child

_T = TypeVar("_T")

_paused_by: set[int] = set()
"""The threads that paused it and will turn it on again."""


def without_collector(function: Callable[..., _T], *arguments: Any) -> _T:
    """Call a function with the collector paused."""
    if not gc.isenabled():
        return function(*arguments)
    me = get_ident()
    _paused_by.add(me)
    gc.disable()
    try:
        return function(*arguments)
    finally:
        gc.enable()
        _paused_by.discard(me)


def _resume() -> None:
    """In the child of a fork: turn it on where the thread that would have done so is gone."""
    if _paused_by and get_ident() not in _paused_by:
        gc.enable()
    _paused_by.intersection_update({get_ident()})


in_child(_resume)

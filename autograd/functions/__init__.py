"""Functions on Tensors: those that ops declare (`declared`), and those of several ops, in modules named as the dialects
whose ops they apply."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...ir.dialect import at_level
from . import declared
from .from_ops import declaring, function
from .indexing import getitem, with_item
from .promotion import cast
from .public import PUBLIC

__all__ = ["cast", "find", "function", "getitem", "is_ours", "names", "with_item"]


def _load() -> None:
    for dialect in at_level("tensor"):
        if dialect.functions:
            import_module(dialect.functions)


def names() -> list[str]:
    """The functions of the front-end, those of plugins too."""
    _load()
    return sorted({*PUBLIC, *declaring()})


def find(name: str) -> Callable[..., Any] | None:
    """The function of a name, if there is one."""
    _load()
    return PUBLIC.get(name) or getattr(declared, name, None)


def is_ours(name: str) -> bool:
    """Whether a function that was found is one of this library, which stays what it is."""
    return name in PUBLIC or name in vars(declared)


def __getattr__(name: str) -> Callable[..., object]:
    found = None if name.startswith("_") else find(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found

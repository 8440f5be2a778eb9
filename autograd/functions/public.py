"""The functions of the front-end that are written by hand, since no op declares them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

PUBLIC: dict[str, Callable[..., Any]] = {}
"""The functions by name."""


def public(function: F) -> F:
    """Add a function to those of the front-end."""
    PUBLIC[function.__name__] = function
    return function

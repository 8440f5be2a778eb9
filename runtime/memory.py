"""The memory that outputs come from: one pool for the process, made when first needed."""

from __future__ import annotations

from functools import cache
from typing import Any

from .native_pool import make_pool


@cache
def shared_memory() -> Any:
    """The process's pool of aligned arrays."""
    return make_pool()

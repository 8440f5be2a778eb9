"""Room for deep recursion: code that follows the nesting of regions recurses as deep as the text nests.

Calls from Python to Python take no C stack in CPython 3.11 and later, so only the interpreter's own limit stands in the
way; it is raised while at least one such computation runs and put back after the last.
"""

from __future__ import annotations

import sys
from threading import get_ident
from types import TracebackType

from .forking import in_child, shared_lock

MAX_REGION_DEPTH = 5000
"""Regions nested deeper than this are refused with a diagnostic."""

_FRAMES_PER_REGION = 12


class _DeepRecursion:
    """A context manager that may be entered many times, from any thread."""

    def __init__(self) -> None:
        self._lock = shared_lock()
        self._active: dict[int, int] = {}
        """How deep each thread is in such computations."""
        self._saved = 0
        in_child(self._forget_other_threads)

    def __enter__(self) -> None:
        with self._lock:
            if not self._active:
                self._saved = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._saved, MAX_REGION_DEPTH * _FRAMES_PER_REGION + 2000))
            me = get_ident()
            self._active[me] = self._active.get(me, 0) + 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            me = get_ident()
            self._active[me] -= 1
            if not self._active[me]:
                del self._active[me]
            self._put_back()

    def _put_back(self) -> None:
        """Restore the old limit where no computation is left."""
        if not self._active:
            try:
                sys.setrecursionlimit(self._saved)
            except RecursionError:  # entered from a stack that is itself deeper than the old limit
                return

    def _forget_other_threads(self) -> None:
        if self._active:
            self._active = {me: depth for me, depth in self._active.items() if me == get_ident()}
            self._put_back()


deep_recursion = _DeepRecursion()

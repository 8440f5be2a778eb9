"""Room for deep recursion: code that follows the nesting of regions recurses as deep as the text nests.

Calls from Python to Python take no C stack in CPython 3.11 and later, so only the interpreter's own limit stands in the
way; it is raised while at least one such computation runs and put back after the last.
"""

from __future__ import annotations

import sys
import threading
from types import TracebackType

MAX_REGION_DEPTH = 5000
"""Regions nested deeper than this are refused with a diagnostic."""

_FRAMES_PER_REGION = 12


class _DeepRecursion:
    """A context manager that may be entered many times, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._saved = 0

    def __enter__(self) -> None:
        with self._lock:
            if self._active == 0:
                self._saved = sys.getrecursionlimit()
                sys.setrecursionlimit(max(self._saved, MAX_REGION_DEPTH * _FRAMES_PER_REGION + 2000))
            self._active += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._active -= 1
            if self._active == 0:
                try:
                    sys.setrecursionlimit(self._saved)
                except RecursionError:  # entered from a stack that is itself deeper than the old limit
                    return


deep_recursion = _DeepRecursion()

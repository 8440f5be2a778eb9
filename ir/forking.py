"""Forks while other threads work: the one place that says what a child process finds.

A child has the forking thread alone.  A lock that another thread held stays taken in it for ever, and what that thread
had begun stays half done.  So a fork waits until it holds all locks of the process itself (no compilation is then in
flight, LLVM rests, no module of this package is half imported), and both sides give them back.  Locks are taken in the
order of their ranks: a lock may be held while one of a later rank is asked for, never the other way round.

What else must be put right in the child (worker threads, counts of threads that are gone) is given to `in_child`.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Protocol, TypeVar
from weakref import ref

TRACER, PLANNER, COMPILER, LLVM, LEAF = range(5)
"""Ranks: the lock around what a trace puts in place, those around programs of eager ops that are being made, those
around compilations, that of LLVM, and locks under which no other is taken."""


class Lock(Protocol):
    """A reentrant lock, of `threading` or one that works like it."""

    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> None: ...

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


_L = TypeVar("_L", bound=Lock)

_PACKAGES = frozenset({__name__.partition(".")[0], "numpy", "ml_dtypes", "llvmlite", "pyopencl"})

_locks: dict[int, tuple[int, Callable[[], Lock | None]]] = {}
_repairs: list[Callable[[], None]] = []


class _Held(threading.local):
    """The locks that this thread took for its fork."""

    def __init__(self) -> None:
        self.locks: list[Lock] = []


_held = _Held()


def shared_lock(rank: int = LEAF) -> Lock:
    """A reentrant lock that a fork leaves free in the child."""
    return held_across_forks(threading.RLock(), rank)


def held_across_forks(lock: _L, rank: int = LEAF) -> _L:
    """Let forks take a reentrant lock that exists; it lives no longer for that."""
    key = id(lock)
    _locks[key] = rank, ref(lock, lambda _: _locks.pop(key, None))
    return lock


def in_child(repair: Callable[[], None]) -> None:
    """Call a function in the child of every fork, when the locks are free again."""
    _repairs.append(repair)


def _before() -> None:
    _wait_for_imports()
    _take_locks()
    while _wait_for_imports():
        # One that needs a lock must get it.
        _after()
        _take_locks()


def _wait_for_imports() -> bool:
    """Wait until no other thread is importing what this package imports late; whether one was.

    Imports have locks of their own, one for each module, which a child inherits as they are.
    """
    waited = False
    while names := _being_imported():
        waited = True
        for name in names:
            with suppress(ImportError):
                import_module(name)  # waits for the thread that is at it
    return waited


def _being_imported() -> list[str]:
    """The modules of these packages that other threads are importing.  CPython's own table of locks says it: a module
    is locked before `sys.modules` has it."""
    table: dict[str, Callable[[], object]] = getattr(getattr(importlib, "_bootstrap", None), "_module_locks", {})
    me = threading.get_ident()
    return [
        name
        for name, find in tuple(table.items())
        if name.partition(".")[0] in _PACKAGES and getattr(find(), "owner", None) not in (None, me)
    ]


def _take_locks() -> None:
    taken, last = _held.locks, TRACER
    while True:
        known = sorted(tuple(_locks.values()), key=lambda entry: entry[0])
        found = [(rank, lock) for rank, find in known if (lock := find()) is not None]
        missing = [(rank, lock) for rank, lock in found if all(lock is not t for t in taken)]
        if not missing:
            return
        if missing[0][0] < last:
            # New since, and perhaps held by a thread that waits for one of those taken: again, in order.
            _after()
            last = TRACER
            continue
        for _, lock in missing:
            lock.acquire()
            taken.append(lock)
        last = missing[-1][0]


def _after() -> None:
    for lock in reversed(_held.locks):
        lock.release()
    _held.locks.clear()


def _after_in_child() -> None:
    _after()
    for repair in _repairs:
        repair()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)

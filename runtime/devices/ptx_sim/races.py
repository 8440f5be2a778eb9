"""Who touched which location: the race detectors of shared and of global memory.

A location is a unit of the smallest access that the kernel makes in that space. Threads are numbered from 1 over the
whole launch. Two accesses to a location conflict when at least one stores, they are by different threads, not both are
atomic, and nothing orders them: threads of a CTA are ordered by a barrier between the accesses, lanes of a warp also by
`bar.warp.sync`, and CTAs by nothing but the end of the launch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MANY = -1


class AccessSet:
    """For each location the thread that accessed it, or that several did.

    A code is 0 for nobody, t for thread t, -(c + 2) for several threads of CTA c, and -1 for threads of several CTAs.
    `stamps` holds the time of the last access, where the kernel has barriers: number of the barrier above, of the
    warp's own synchronisations below.
    """

    def __init__(self, locations: int, cta_size: int, ordered: bool) -> None:
        self.codes = np.zeros(locations, np.int32)
        self.stamps = np.zeros(locations, np.int64) if ordered else None
        self.cta_size = cta_size

    def _cta(self, codes: np.ndarray) -> np.ndarray:
        return np.where(codes > 0, (codes - 1) // self.cta_size, -codes - 2)

    def conflict(self, at: np.ndarray, threads: np.ndarray, now: Any) -> int:
        """Position of an access that conflicts with what this set remembers, or -1."""
        codes = self.codes.take(at)
        other = (codes != 0) & (codes != threads)
        if not other.any():
            return -1
        where = np.flatnonzero(other)
        codes, threads, at = codes[where], threads[where], at[where]
        if self.stamps is None:
            return int(where[0])
        before = self.stamps.take(at)
        now = now[where] if np.ndim(now) else now
        same_warp = (codes > 0) & ((codes - 1) // 32 == (threads - 1) // 32)
        unordered = np.where(same_warp, before == now, (before >> 32) == (now >> 32))
        unordered |= self._cta(codes) != self._cta(threads)
        return int(where[int(unordered.argmax())]) if unordered.any() else -1

    def add(self, at: np.ndarray, threads: np.ndarray, now: Any) -> int:
        """Remember accesses. Returns the position of one that meets another thread's in the same instruction, or -1."""
        before = self.codes.take(at)
        codes = threads
        other = (before != 0) & (before != threads)
        if other.any():
            codes = np.where(other, self._merge(before, threads, at, now), threads)
        self.codes[at] = codes
        if self.stamps is not None:
            self.stamps[at] = now
        collided = self.codes.take(at) != codes
        if not collided.any():
            return -1
        where = np.flatnonzero(collided)
        cta = (threads - 1) // self.cta_size
        self.codes[at[where]] = -(cta[where] + 2)
        mixed = self._cta(self.codes.take(at)) != cta
        mixed |= codes == _MANY
        self.codes[at[mixed]] = _MANY
        return int(where[0])

    def _merge(self, before: np.ndarray, threads: np.ndarray, at: np.ndarray, now: Any) -> np.ndarray:
        cta = (threads - 1) // self.cta_size
        merged = -(cta + 2)
        if self.stamps is not None:
            merged = np.where(self.stamps.take(at) >> 32 == now >> 32, merged, threads)
        return np.where(self._cta(before) == cta, merged, _MANY).astype(np.int32)


class RaceDetector:
    """Readers, writers and atomic users of the locations of one space.

    Reads cost most, and most are never followed by a store. So they are kept in a log and entered only when a store or
    atomic comes that they might conflict with.
    """

    LOG_LIMIT = 1 << 22

    def __init__(self, locations: int, cta_size: int, ordered: bool) -> None:
        self._new = lambda: AccessSet(locations, cta_size, ordered)
        self._sets: dict[str, AccessSet] = {}
        self._log: list[tuple[np.ndarray, np.ndarray, Any]] = []
        self._logged = 0

    def access(self, kind: str, at: np.ndarray, threads: np.ndarray, now: Any) -> tuple[int, str]:
        """Check and remember accesses; gives the position of a conflict and what it conflicts with, or -1.

        `kind` is "read", "write", or anything else for what is atomic: such accesses do not conflict with each other.
        """
        kind = kind if kind in ("read", "write") else "atomic"
        for other in ("write", "atomic") if kind == "read" else ("write", "read", "atomic"):
            if kind == other == "atomic":
                continue
            if other == "read":
                self._enter_log()
            known = self._sets.get(other)
            if known is not None:
                conflict = known.conflict(at, threads, now)
                if conflict >= 0:
                    return conflict, other
        if kind == "read":
            self._log.append((at, threads, now))
            self._logged += at.size
            if self._logged > self.LOG_LIMIT:
                self._enter_log()
            return -1, ""
        collision = self._add(kind, at, threads, now)
        return (collision, "write") if kind == "write" else (-1, "")

    def _add(self, kind: str, at: np.ndarray, threads: np.ndarray, now: Any) -> int:
        if kind not in self._sets:
            self._sets[kind] = self._new()
        return self._sets[kind].add(at, threads, now)

    def _enter_log(self) -> None:
        for at, threads, now in self._log:
            self._add("read", at, threads, now)
        self._log.clear()
        self._logged = 0

    def forget(self) -> None:
        """A barrier that orders everything so far: shared memory, where no other CTA can look."""
        self._sets.clear()
        self._log.clear()
        self._logged = 0

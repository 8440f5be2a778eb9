"""Asynchronous copies from global to shared memory: `cp.async`, its groups and its waits.

The bytes are taken from global memory when the copy starts and arrive in shared memory when its thread waits for it; in
between the destination is in flight, and any access to it is a fault. Groups are counted for each thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .machine import Machine

_IN_FLIGHT, _ARRIVED = np.uint32(0x02020202), np.uint32(0x01010101)


@dataclass
class _Copy:
    """Words on their way: `offsets` into shared memory for these lanes."""

    lanes: np.ndarray
    offsets: np.ndarray
    words: np.ndarray
    where: int

    def split(self, chosen: np.ndarray) -> tuple[_Copy, _Copy]:
        inside = chosen[self.lanes]
        return self._only(inside), self._only(~inside)

    def _only(self, keep: np.ndarray) -> _Copy:
        if keep.all():
            return self
        return _Copy(self.lanes[keep], self.offsets[keep], self.words[keep], self.where)


@dataclass
class _Group:
    members: np.ndarray
    copies: list[_Copy]


class AsyncCopies:
    """The copies of one batch of CTAs."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.pending: list[_Copy] = []
        self.groups: list[_Group] = []

    @property
    def busy(self) -> bool:
        return bool(self.pending or self.groups)

    def start(self, destination: Any, source: Any, size: int, kept: Any, m: Any, where: int) -> None:
        """Begin a copy of `size` bytes per lane, of which only the first `kept` are read; the rest are zero."""
        machine = self.machine
        offsets = machine.locate_shared(destination, size, m, where)
        machine.check_shared("write", offsets, size, m, where)
        active = machine.active(m)
        amount = machine.spread(np.uint32(size) if kept is None else kept)
        source = machine.spread(source)
        data = np.zeros((machine.count, size), np.uint8)
        for length in np.unique(amount[active]).tolist():
            if length > size:
                machine.fault("out-of-bounds", f"source size {length} of {size} bytes", where, int(active.argmax()))
            if not length:
                continue
            lanes = active & (amount == length)
            begin = machine.read_bytes(source, size, length, lanes, where)
            data[lanes, :length] = machine.memory.arena[begin[:, None] + np.arange(length)]
        lanes = np.flatnonzero(active)
        words = np.ascontiguousarray(data[lanes]).view(np.uint32)
        copy = _Copy(lanes, offsets[lanes], words, where)
        self._mark(copy, _IN_FLIGHT)
        self.pending.append(copy)

    def commit(self, m: Any) -> None:
        """Close the group of each active lane."""
        members = self.machine.active(m).copy()
        split = [copy.split(members) for copy in self.pending]
        self.pending = [rest for _, rest in split if rest.lanes.size]
        self.groups.append(_Group(members, [chosen for chosen, _ in split if chosen.lanes.size]))

    def wait(self, allowed: int, m: Any) -> None:
        """Complete all groups of the active lanes but the newest `allowed`."""
        active = self.machine.active(m)
        newer = np.zeros(self.machine.count, np.int64)
        finished: list[_Copy] = []
        for group in reversed(self.groups):
            done = group.members & active & (newer >= allowed)
            newer += group.members
            if done.any():
                split = [copy.split(done) for copy in group.copies]
                finished = [chosen for chosen, _ in split if chosen.lanes.size] + finished
                group.copies = [rest for _, rest in split if rest.lanes.size]
                group.members = group.members & ~done
        self.groups = [group for group in self.groups if group.members.any()]
        for copy in finished:
            self._land(copy)

    def wait_all(self, m: Any) -> None:
        self.commit(m)
        self.wait(0, m)

    def _land(self, copy: _Copy) -> None:
        machine = self.machine
        self._mark(copy, _ARRIVED)
        view = machine.shared.view(np.uint32)
        for k in range(copy.words.shape[1]):
            view[(copy.offsets >> 2) + k] = copy.words[:, k]
        active = np.zeros(machine.count, bool)
        active[copy.lanes] = True
        offsets = np.zeros(machine.count, np.int64)
        offsets[copy.lanes] = copy.offsets
        size = 4 * copy.words.shape[1]
        machine.check_shared("write", offsets, size, None if active.all() else active, copy.where, landing=True)

    def _mark(self, copy: _Copy, value: np.uint32) -> None:
        view = self.machine.shared_state.view(np.uint32)
        for k in range(copy.words.shape[1]):
            view[(copy.offsets >> 2) + k] = value

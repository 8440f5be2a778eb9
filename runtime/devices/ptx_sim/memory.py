"""Global memory: an address space of separate allocations, with a red zone after each.

One NumPy arena holds all bytes, so that lanes that touch different buffers are still one gather. The initialised bytes
are remembered: a load of a byte that nobody wrote is a fault.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....ir.diagnostics import AllocationError, DeviceError
from .emitter import GLOBAL_BASE

_ALIGNMENT = 256


@dataclass(slots=True, eq=False)
class Allocation:
    """`start` is an offset into the arena; `written` says that every byte holds a value."""

    start: int
    size: int
    written: bool = False

    @property
    def end(self) -> int:
        return self.start + self.size

    @property
    def address(self) -> int:
        return GLOBAL_BASE + self.start


@dataclass(frozen=True, slots=True)
class DeviceArray:
    """An array in device memory. As a kernel argument it stands for its address."""

    memory: Memory
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """Download a copy."""
        return np.frombuffer(self.memory.read(self.address, self.nbytes), self.dtype).reshape(self.shape).copy()

    def free(self) -> None:
        self.memory.free(self.address)


class Memory:
    """Allocations of one device, at most `limit` bytes in all (AllocationError beyond)."""

    def __init__(self, limit: int = 1 << 32) -> None:
        self.limit = limit
        self.arena = np.zeros(1 << 16, np.uint8)
        self.state = np.zeros(1 << 16, np.uint8)
        self._top = _ALIGNMENT
        self._starts: list[int] = []
        self._live: list[Allocation] = []
        self._free: dict[int, list[int]] = {}

    @property
    def allocations(self) -> list[Allocation]:
        """Live allocations by address."""
        return list(self._live)

    def alloc(self, nbytes: int) -> int:
        """Address of `nbytes` new bytes, aligned to 256, uninitialised; of zero bytes, an address none may touch."""
        if nbytes < 0:
            raise DeviceError(f"cannot allocate {nbytes} bytes")
        span = -(-nbytes // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        reusable = self._free.get(span)
        if reusable:
            start = reusable.pop()
        else:
            start = self._top
            if start + span > self.limit:
                raise AllocationError(
                    f"out of device memory: {nbytes} bytes asked, {self.limit - start} of {self.limit} free"
                )
            try:
                self._grow(self._top + span)
            except MemoryError as error:
                raise AllocationError(f"no memory for {nbytes} bytes of the simulated device: {error}") from None
            self._top += span
        # Bytes that a kernel forgets to write must not look like a result.
        self.arena[start : start + span] = 0xCD
        self.state[start : start + span] = 0
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._live.insert(at, Allocation(start, nbytes))
        return GLOBAL_BASE + start

    def free(self, address: int) -> None:
        """Give an allocation back. Later accesses to it are faults until its bytes are allocated again."""
        at = bisect_right(self._starts, address - GLOBAL_BASE) - 1
        if at < 0 or self._live[at].address != address:
            raise DeviceError(f"0x{address:x} is not the start of an allocation")
        allocation = self._live.pop(at)
        self._starts.pop(at)
        span = -(-allocation.size // _ALIGNMENT) * _ALIGNMENT + _ALIGNMENT
        self._free.setdefault(span, []).append(allocation.start)

    def write(self, address: int, data: Any) -> None:
        """Copy bytes or an array (C order) to an address."""
        raw = (
            np.frombuffer(data, np.uint8)
            if isinstance(data, bytes)
            else np.ascontiguousarray(data).reshape(-1).view(np.uint8)
        )
        allocation = self._span(address, raw.size)
        start = address - GLOBAL_BASE
        self.arena[start : start + raw.size] = raw
        self.state[start : start + raw.size] = 1
        if raw.size == allocation.size:
            allocation.written = True

    def read(self, address: int, nbytes: int) -> bytes:
        """Bytes at an address."""
        self._span(address, nbytes)
        start = address - GLOBAL_BASE
        return self.arena[start : start + nbytes].tobytes()

    def fill(self, address: int, pattern: bytes, count: int) -> None:
        """Write a pattern `count` times."""
        self.write(address, pattern * count)

    def upload(self, array: Any) -> DeviceArray:
        """A device copy of an array."""
        array = np.asarray(array)
        device = self.empty(array.shape, array.dtype)
        self.write(device.address, array)
        return device

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        """An uninitialised device array."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        kind = np.dtype(dtype)
        return DeviceArray(self, self.alloc(int(np.prod(shape, dtype=np.int64)) * kind.itemsize), shape, kind)

    def find(self, address: int) -> Allocation | None:
        """The allocation that starts at or below an address, whether or not it reaches it."""
        at = bisect_right(self._starts, address - GLOBAL_BASE) - 1
        return self._live[at] if at >= 0 else None

    def contains(self, offsets: np.ndarray, nbytes: int) -> np.ndarray:
        """Which accesses of `nbytes` at these arena offsets lie inside an allocation."""
        if not self._live:
            return np.zeros(offsets.shape, bool)
        at = np.searchsorted(np.array(self._starts), offsets, "right") - 1
        ends = np.array([one.end for one in self._live])
        return (at >= 0) & (offsets + nbytes <= ends[np.maximum(at, 0)])

    def describe(self, address: int) -> str:
        """Where an address lies, in words."""
        allocation = self.find(address)
        if allocation is None:
            return "below every allocation"
        past = address - GLOBAL_BASE - allocation.end
        where = f"the {allocation.size}-byte allocation at 0x{allocation.address:x}"
        return f"{past} bytes past the end of {where}" if past >= 0 else f"{-past} bytes before the end of {where}"

    def _span(self, address: int, nbytes: int) -> Allocation:
        allocation = self.find(address)
        if allocation is None or address - GLOBAL_BASE + nbytes > allocation.end:
            raise DeviceError(f"{nbytes} bytes at 0x{address:x} are outside of an allocation: {self.describe(address)}")
        return allocation

    def _grow(self, needed: int) -> None:
        if needed <= self.arena.size:
            return
        size = max(needed, 2 * self.arena.size)
        size = -(-size // _ALIGNMENT) * _ALIGNMENT
        arena, state = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        arena[: self.arena.size], state[: self.state.size] = self.arena, self.state
        self.arena, self.state = arena, state

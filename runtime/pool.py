"""Memory for results: 64-byte aligned NumPy arrays over recycled blocks.

A fresh array of 16 MiB costs 14 ms, nearly all of it page faults; a recycled one costs under a microsecond, and is
often still in the cache.  So a block goes back to the pool when the array over it and all its views are dead:

    array -> base: lease (a ctypes array at the block's address) -> its finalizer puts the address on the free list

Free lists are last in, first out, one for each size class (four classes to a power of two: at most a fifth of a block
is waste).  `list.append` and `list.pop` are atomic: threads share the lists without a lock, and a finalizer may run at
any point of any thread, inside the pool too, without a deadlock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..ir.diagnostics import AllocationError, DTypeError, ShapeError
from ..ir.target import ALIGNMENT

_ndarray = np.ndarray

DEFAULT_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class PoolStatistics:
    """`cached_*`: free blocks kept for reuse; `live_*`: blocks under arrays; `created`: blocks ever made."""

    cached_blocks: int
    cached_bytes: int
    live_blocks: int
    live_bytes: int
    created: int

    @staticmethod
    def of_classes(counts: Sequence[tuple[int, ...]]) -> PoolStatistics:
        """The sums over size classes, each given as size, free blocks, blocks, blocks ever made."""
        return PoolStatistics(
            cached_blocks=sum(free for _, free, _, _ in counts),
            cached_bytes=sum(size * free for size, free, _, _ in counts),
            live_blocks=sum(blocks - free for _, free, blocks, _ in counts),
            live_bytes=sum(size * (blocks - free) for size, free, blocks, _ in counts),
            created=sum(created for _, _, _, created in counts),
        )


def checked_size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    """The bytes of an array; DTypeError, ShapeError or AllocationError where there can be none in a pool."""
    if dtype.hasobject:
        raise DTypeError(f"pooled memory cannot hold Python objects (dtype {dtype})")
    if any(size < 0 for size in shape):
        raise ShapeError(f"negative size in shape {shape}")
    size = prod(shape) * dtype.itemsize
    if size >= 1 << 62:
        raise AllocationError(f"cannot allocate {size} bytes for shape {shape}, dtype {dtype}")
    return size


def size_class(size: int) -> tuple[int, int]:
    """The key of the class for `size` bytes, and the size of its blocks.

    Sizes round up to a cache line, and to a quarter of the power of two below.
    """
    last = size - 1
    shift = max(last.bit_length() - 3, 6)
    return shift << 3 | last >> shift, max((last >> shift) + 1 << shift, ALIGNMENT)


class BufferPool:
    """A pool of memory that keeps at most `limit` bytes of free blocks. All methods may be called by any thread."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._classes: dict[int, _SizeClass] = {}
        # An estimate (updates by two threads may get lost); `_shrink` counts anew before it gives anything back.
        self._cached = 0

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
        """An uninitialised C-contiguous array, aligned to 64 bytes. Fastest with a tuple and a `numpy.dtype`.

        DTypeError for dtypes that hold Python objects, ShapeError for negative sizes, AllocationError when there is
        no memory.
        """
        try:
            # `size_class`, without the call.
            last = prod(shape) * dtype.itemsize - 1
            shift = last.bit_length() - 3
            if shift < 6:
                shift = 6
            return _ndarray(shape, dtype, self._classes[shift << 3 | last >> shift].lease())
        except (AttributeError, TypeError, KeyError):
            # The first array of its size class; or a dtype given as a type or by name, a shape given as one number.
            return self.allocator(shape if isinstance(shape, Sequence) else (shape,), dtype)()

    def allocator(self, shape: Sequence[int], dtype: Any) -> Callable[[], np.ndarray[Any, Any]]:
        """`empty` for one shape and dtype, with all that depends on them done in advance."""
        sizes, dtype = tuple(int(size) for size in shape), np.dtype(dtype)
        lease = self._class_of(checked_size(sizes, dtype)).lease

        def allocate() -> np.ndarray[Any, Any]:
            return _ndarray(sizes, dtype, lease())

        return allocate

    def trim(self) -> None:
        """Give all free blocks back to the system."""
        for size_class in tuple(self._classes.values()):
            while size_class.drop_one():
                pass

    def statistics(self) -> PoolStatistics:
        """Counts at this moment (of a moment, where other threads allocate meanwhile)."""
        return PoolStatistics.of_classes(
            [(c.size, len(c.free), len(c.blocks), c.created) for c in tuple(self._classes.values())]
        )

    def _class_of(self, size: int) -> _SizeClass:
        key, block_size = size_class(size)
        if key not in self._classes:
            self._classes.setdefault(key, _SizeClass(self, block_size))
        return self._classes[key]

    def _shrink(self) -> None:
        """Count anew, and give blocks back, of the class that has most free bytes, until the limit holds."""
        classes = tuple(self._classes.values())
        self._cached = sum(c.size * len(c.free) for c in classes)
        while self._cached > self._limit and max(classes, key=lambda c: c.size * len(c.free)).drop_one():
            pass


class _SizeClass:
    """Blocks of one size: `blocks` owns them by address, `free` lists the addresses that no array uses."""

    def __init__(self, pool: BufferPool, size: int) -> None:
        self.size = size
        self.free: list[int] = []
        self.blocks: dict[int, np.ndarray[Any, Any]] = {}
        self.created = 0
        self._pool = pool
        self.lease = self._leases()

    def drop_one(self) -> bool:
        """Give the free block that was idle longest back to the system; False when there is none."""
        try:
            del self.blocks[self.free.pop(0)]
        except IndexError:
            return False
        self._pool._cached -= self.size
        return True

    def _leases(self) -> Callable[[], Any]:
        """A function that gives the exclusive use of a block, as a buffer, until the buffer dies."""
        free, size, pool = self.free, self.size, self._pool
        addressof, create = ctypes.addressof, self._create

        class Lease(ctypes.c_char * size):
            __slots__ = ()

            def __del__(self) -> None:
                free.append(addressof(self))
                pool._cached += size
                if pool._cached > pool._limit:
                    pool._shrink()

        at = Lease.from_address

        def lease() -> Any:
            try:
                address = free.pop()
            except IndexError:
                return at(create())
            pool._cached -= size
            return at(address)

        return lease

    def _create(self) -> int:
        try:
            block = np.empty(self.size + ALIGNMENT, np.uint8)
        except MemoryError:
            raise AllocationError(f"cannot allocate a block of {self.size} B") from None
        address = -(-block.ctypes.data // ALIGNMENT) * ALIGNMENT
        self.blocks[address] = block
        self.created += 1
        return address

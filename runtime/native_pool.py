"""The pool of result memory in native code: an array for 16 elements costs some 100 ns where `BufferPool` needs 600.

The same idea as in pool.py, with blocks in lists that compiled code keeps:

    array -> base: capsule -> block [ header of 64 bytes: size class, next free block | data ]

An allocator is a built-in function without arguments for one shape and dtype.  It takes the first free block of its
size class (or a new one), makes the array through NumPy's C interface, and hangs a capsule below it, whose destructor
puts the block back.  All of this runs under the GIL, which is its lock; on builds without one, use `BufferPool`.

Arrays outlive everything, so the code, the size classes and the dtypes stay for the life of the process.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..ir.diagnostics import AllocationError
from ..ir.forking import shared_lock
from .entry import MethodDefinition, find_layout, new_function
from .native import QUICK_CODEGEN_LEVEL, Compiler, compile_object, load_object
from .pool import DEFAULT_LIMIT, BufferPool, PoolStatistics, checked_size, size_class

# Offsets in bytes. The pool: first class, bytes cached, limit. A class: first free block, number of free blocks, size
# of a block, number of blocks, number ever made, next class. An allocator: class, dtype, rank, sizes.
_FIRST, _CACHED, _LIMIT = 0, 8, 16
_FREE, _FREE_COUNT, _BLOCK_SIZE, _BLOCK_COUNT, _CREATED, _NEXT, _CLASS_BYTES = 0, 8, 16, 24, 32, 40, 64
_POOL_BYTES = 64
_MOST_CLASSES = (1 << 14) // _CLASS_BYTES - 1

# NumPy's C interface as a table: indices are part of its ABI.
_NEW_FROM_DESCRIPTOR, _SET_BASE_OBJECT = 94, 282
_CARRAY = 0x501  # C-contiguous, aligned, writeable
_METH_NOARGS = 0x4
_HUGE, _HUGE_PAGE, _MADV_HUGEPAGE = 4 << 20, 2 << 20, 14

_TEXT = f"""
@pool = external global i8
@ndarray = external global i8
declare ptr @new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @set_base(ptr, ptr)
declare ptr @PyBytes_AsString(ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @PyErr_Format(ptr, ptr, ...)
@allocation_error = external global i8
@message = private constant [34 x i8] c"cannot allocate a block of %lld B\\00"
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @aligned_alloc(i64, i64)
declare void @free(ptr)
declare i32 @madvise(ptr, i64, i32)

define internal void @add(ptr %base, i64 %offset, i64 %by) nounwind {{
  %p = getelementptr i8, ptr %base, i64 %offset
  %old = load i64, ptr %p
  %new = add i64 %old, %by
  store i64 %new, ptr %p
  ret void
}}

; The first free block of a class, taken off its list; the list is not empty.
define internal ptr @pop(ptr %class) nounwind {{
  %block = load ptr, ptr %class
  %nextp = getelementptr i8, ptr %block, i64 8
  %next = load ptr, ptr %nextp
  store ptr %next, ptr %class
  %sizep = getelementptr i8, ptr %class, i64 {_BLOCK_SIZE}
  %size = load i64, ptr %sizep
  %less = sub i64 0, %size
  call void @add(ptr %class, i64 {_FREE_COUNT}, i64 -1)
  call void @add(ptr @pool, i64 {_CACHED}, i64 %less)
  ret ptr %block
}}

define internal ptr @create(ptr %class) nounwind {{
start:
  %sizep = getelementptr i8, ptr %class, i64 {_BLOCK_SIZE}
  %size = load i64, ptr %sizep
  %bytes = add i64 %size, 64
  %huge = icmp uge i64 %bytes, {_HUGE}
  %alignment = select i1 %huge, i64 {_HUGE_PAGE}, i64 64
  %block = call ptr @aligned_alloc(i64 %alignment, i64 %bytes)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %own
own:
  store ptr %class, ptr %block
  call void @add(ptr %class, i64 {_BLOCK_COUNT}, i64 1)
  call void @add(ptr %class, i64 {_CREATED}, i64 1)
  br i1 %huge, label %advise, label %done
advise:
  %r = call i32 @madvise(ptr %block, i64 %bytes, i32 {_MADV_HUGEPAGE})
  br label %done
done:
  ret ptr %block
}}

define internal void @push(ptr %block) nounwind {{
  %class = load ptr, ptr %block
  %head = load ptr, ptr %class
  %nextp = getelementptr i8, ptr %block, i64 8
  store ptr %head, ptr %nextp
  store ptr %block, ptr %class
  %sizep = getelementptr i8, ptr %class, i64 {_BLOCK_SIZE}
  %size = load i64, ptr %sizep
  call void @add(ptr %class, i64 {_FREE_COUNT}, i64 1)
  call void @add(ptr @pool, i64 {_CACHED}, i64 %size)
  call void @shrink()
  ret void
}}

; Free blocks, always of the class that has most free bytes, until the limit holds.
define void @shrink() nounwind {{
start:
  br label %check
check:
  %cachedp = getelementptr i8, ptr @pool, i64 {_CACHED}
  %cached = load i64, ptr %cachedp
  %limitp = getelementptr i8, ptr @pool, i64 {_LIMIT}
  %limit = load i64, ptr %limitp
  %over = icmp sgt i64 %cached, %limit
  br i1 %over, label %search, label %done
search:
  %first = load ptr, ptr @pool
  br label %look
look:
  %class = phi ptr [ %first, %search ], [ %next, %weigh ]
  %best = phi ptr [ null, %search ], [ %better, %weigh ]
  %most = phi i64 [ 0, %search ], [ %more, %weigh ]
  %end = icmp eq ptr %class, null
  br i1 %end, label %found, label %weigh
weigh:
  %countp = getelementptr i8, ptr %class, i64 {_FREE_COUNT}
  %count = load i64, ptr %countp
  %sizep = getelementptr i8, ptr %class, i64 {_BLOCK_SIZE}
  %size = load i64, ptr %sizep
  %bytes = mul i64 %count, %size
  %wins = icmp sgt i64 %bytes, %most
  %better = select i1 %wins, ptr %class, ptr %best
  %more = select i1 %wins, i64 %bytes, i64 %most
  %nextp = getelementptr i8, ptr %class, i64 {_NEXT}
  %next = load ptr, ptr %nextp
  br label %look
found:
  %none = icmp eq ptr %best, null
  br i1 %none, label %done, label %drop
drop:
  %block = call ptr @pop(ptr %best)
  call void @add(ptr %best, i64 {_BLOCK_COUNT}, i64 -1)
  call void @free(ptr %block)
  br label %check
done:
  ret void
}}

define void @release(ptr %capsule) nounwind {{
  %block = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  call void @push(ptr %block)
  ret void
}}

define ptr @allocate(ptr %self, ptr %unused) nounwind {{
start:
  %spec = call ptr @PyBytes_AsString(ptr %self)
  %class = load ptr, ptr %spec
  %dtypep = getelementptr i8, ptr %spec, i64 8
  %dtype = load ptr, ptr %dtypep
  %rankp = getelementptr i8, ptr %spec, i64 16
  %rank = load i32, ptr %rankp
  %sizes = getelementptr i8, ptr %spec, i64 24
  %head = load ptr, ptr %class
  %empty = icmp eq ptr %head, null
  br i1 %empty, label %fresh, label %recycled
recycled:
  %old = call ptr @pop(ptr %class)
  br label %make
fresh:
  %new = call ptr @create(ptr %class)
  %none = icmp eq ptr %new, null
  br i1 %none, label %full, label %make
full:
  %sizep = getelementptr i8, ptr %class, i64 {_BLOCK_SIZE}
  %size = load i64, ptr %sizep
  %e = call ptr (ptr, ptr, ...) @PyErr_Format(ptr @allocation_error, ptr @message, i64 %size)
  ret ptr null
make:
  %block = phi ptr [ %old, %recycled ], [ %new, %fresh ]
  %data = getelementptr i8, ptr %block, i64 64
  %capsule = call ptr @PyCapsule_New(ptr %block, ptr null, ptr @release)
  %failed = icmp eq ptr %capsule, null
  br i1 %failed, label %give, label %array
give:
  call void @push(ptr %block)
  ret ptr null
array:
  call void @Py_IncRef(ptr %dtype)
  %made = call ptr @new_array(ptr @ndarray, ptr %dtype, i32 %rank, ptr %sizes, ptr null, ptr %data, i32 {_CARRAY},
                              ptr null)
  %unmade = icmp eq ptr %made, null
  br i1 %unmade, label %drop, label %base
drop:
  call void @Py_DecRef(ptr %capsule)
  ret ptr null
base:
  %status = call i32 @set_base(ptr %made, ptr %capsule)
  %bad = icmp slt i32 %status, 0
  br i1 %bad, label %unbased, label %done
unbased:
  call void @Py_DecRef(ptr %made)
  ret ptr null
done:
  ret ptr %made
}}
"""


# A shared mapping would let the two sides of a fork write each other's lists.
_PRIVATE = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS


class NativePool:
    """`BufferPool` in native code: the same methods, the same meaning. Under the GIL only; see `is_available`.

    `compiler` makes the object: `compile_object`, or a cache in front of it, which spares a warm start llvmlite.
    """

    def __init__(self, limit: int = DEFAULT_LIMIT, compiler: Compiler = compile_object) -> None:
        self._limit = limit
        self._memory = mmap.mmap(-1, _POOL_BYTES + _CLASS_BYTES * _MOST_CLASSES, flags=_PRIVATE)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._set(self._address + _LIMIT, limit)
        self._classes: dict[int, int] = {}
        self._growing = shared_lock()
        self._allocators: dict[tuple[tuple[int, ...], np.dtype[Any]], Callable[[], np.ndarray[Any, Any]]] = {}
        symbols = {"pool": self._address, "ndarray": id(np.ndarray), "allocation_error": id(AllocationError)}
        symbols |= _numpy_functions()
        self._module = load_object(
            compiler(_TEXT, name="pool", codegen_level=QUICK_CODEGEN_LEVEL), name="pool", symbols=symbols
        )
        self._shrink = ctypes.PYFUNCTYPE(None)(self._module.address("shrink"))
        self._definition = MethodDefinition(b"allocate", self._module.address("allocate"), _METH_NOARGS, None)
        _keep_for_ever(self._memory, self._module, self._definition)

    @staticmethod
    def is_available() -> bool:
        """Whether this is CPython with its GIL and the C library has what the code calls."""
        return sys.platform == "linux" and find_layout() is not None

    def empty(self, shape: Sequence[int], dtype: Any) -> np.ndarray[Any, Any]:
        """As `BufferPool.empty`."""
        try:
            return self._allocators[shape, dtype]()  # pyright: ignore[reportArgumentType]
        except (KeyError, TypeError):
            return self.allocator(shape if isinstance(shape, Sequence) else (shape,), dtype)()

    def allocator(self, shape: Sequence[int], dtype: Any) -> Callable[[], np.ndarray[Any, Any]]:
        """As `BufferPool.allocator`: a built-in function."""
        sizes, dtype = tuple(int(size) for size in shape), np.dtype(dtype)
        size = checked_size(sizes, dtype)
        if (sizes, dtype) not in self._allocators:
            if len(self._allocators) >= _MOST_ALLOCATORS:
                self._allocators.clear()
            spec = struct.pack(f"<QQq{len(sizes)}q", self._class_of(size), id(_kept_dtype(dtype)), len(sizes), *sizes)
            self._allocators[sizes, dtype] = new_function()(ctypes.addressof(self._definition), spec, None)
        return self._allocators[sizes, dtype]

    def trim(self) -> None:
        """As `BufferPool.trim`."""
        self._set(self._address + _LIMIT, -1)
        self._shrink()
        self._set(self._address + _LIMIT, self._limit)

    def statistics(self) -> PoolStatistics:
        """As `BufferPool.statistics`."""
        fields = (_BLOCK_SIZE, _FREE_COUNT, _BLOCK_COUNT, _CREATED)
        counts = [tuple(self._get(at + field) for field in fields) for at in tuple(self._classes.values())]
        return PoolStatistics.of_classes(counts)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # Else it never came to be; and where the process ends, the modules that this needs may be gone.
        if hasattr(self, "_shrink") and not is_finalizing():
            self._limit = -1
            self.trim()

    def _class_of(self, size: int) -> int:
        """The address of the size class for arrays of `size` bytes."""
        _, block_size = size_class(size)
        with self._growing:
            if block_size not in self._classes:
                at = self._address + _POOL_BYTES + _CLASS_BYTES * len(self._classes)
                self._set(at + _BLOCK_SIZE, block_size)
                self._set(at + _NEXT, self._get(self._address + _FIRST))
                self._set(self._address + _FIRST, at)
                self._classes[block_size] = at
            return self._classes[block_size]

    @staticmethod
    def _get(address: int) -> int:
        return ctypes.c_int64.from_address(address).value

    @staticmethod
    def _set(address: int, value: int) -> None:
        ctypes.c_int64.from_address(address).value = value


_MOST_ALLOCATORS = 1024


def make_pool(limit: int = DEFAULT_LIMIT, compiler: Compiler = compile_object) -> NativePool | BufferPool:
    """The fastest pool there is here."""
    return NativePool(limit, compiler) if NativePool.is_available() else BufferPool(limit)


@cache
def _kept_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Allocators hold dtypes by address."""
    _keep_for_ever(dtype)
    return dtype


@cache
def _numpy_functions() -> dict[str, int]:
    """Addresses of the functions of NumPy's C interface that the text calls."""
    core: Any = getattr(np, "_core", None) or np.core
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table = ctypes.cast(get_pointer(core.multiarray._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return {"new_array": table[_NEW_FROM_DESCRIPTOR] or 0, "set_base": table[_SET_BASE_OBJECT] or 0}


def _keep_for_ever(*things: Any) -> None:
    """Take references that nobody gives back, not even the end of the interpreter, when arrays still die."""
    increment = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
    for thing in things:
        increment(thing)

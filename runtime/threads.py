"""Worker threads for compiled code: `nablair.parallel` runs the tasks of a launch on several processors.

Compiled code declares

    declare void @"nablair.parallel"(ptr %body, ptr %context, i64 %tasks)

and calls it with a function `void @body(ptr %context, i64 %task)`; it returns when `body` has run once for each task in
[0, tasks).  How work is cut into tasks is the caller's affair and never depends on the number of threads; which thread
runs a task is not determined.

Caller and workers take tasks from one word, the ticket: generation in the high half, tasks left in the low half.  A
compare-and-swap takes one: if it succeeds, the generation is still the one whose body, context and count were read
before it, since these change only when no task of theirs is left or running.  So a worker that wakes late finds
nothing to take and delays nobody.  Workers spin for some 50 us after their last task, then sleep on the generation (a
futex); the caller spins until the last task is done.

A launch while another is running (a second Python thread, a launch inside a task) runs its tasks in its own thread.
A worker that must be woken is first kept off the caller's processor, where the kernel otherwise likes to put it.
Workers are native threads that know no Python; they block all signals.  After a fork the child starts its own.

Sleeping and waking: Drepper, "Futexes are tricky", 2011.
"""

from __future__ import annotations

import atexit
import ctypes
import math
import mmap
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..ir.diagnostics import Error
from ..ir.forking import in_child
from .native import QUICK_CODEGEN_LEVEL, Compiler, NativeModule, compile_object, load_object

PARALLEL = "nablair.parallel"

_SPINS = 2000
_MOST_PROCESSORS = 1024

# Fields of the control block, in bytes. What different threads write stands on different cache lines.
_TICKET, _GENERATION, _SLEEPERS, _PENDING, _BUSY = 0, 4, 64, 128, 192
_BODY, _CONTEXT, _TASKS, _SPIN_LIMIT, _STOP, _WORKERS, _CALLER_CPU = 256, 264, 272, 280, 288, 292, 296
_ALLOWED, _MASK, _THREAD_IDS = 320, 320 + _MOST_PROCESSORS // 8, 320 + _MOST_PROCESSORS // 4
_SIZE = _THREAD_IDS + 4 * _MOST_PROCESSORS

_SERIAL = """
define internal void @serial(ptr %body, ptr %context, i64 %tasks) nounwind {
start:
  br label %test
test:
  %task = phi i64 [ 0, %start ], [ %next, %run ]
  %more = icmp slt i64 %task, %tasks
  br i1 %more, label %run, label %done
run:
  call void %body(ptr %context, i64 %task)
  %next = add i64 %task, 1
  br label %test
done:
  ret void
}
"""

# Where there is no futex: every launch runs in its caller's thread.
_PLAIN = f"""{_SERIAL}
define void @"{PARALLEL}"(ptr %body, ptr %context, i64 %tasks) nounwind {{
  call void @serial(ptr %body, ptr %context, i64 %tasks)
  ret void
}}
"""


def _at(offset: int) -> str:
    return f"getelementptr (i8, ptr @control, i64 {offset})"


# Linux, x86-64. System calls: 186 gettid, 202 futex (128 wait, 129 wake, both private), 203 sched_setaffinity.
_THREADED = f"""{_SERIAL}
@control = external global i8
declare void @llvm.x86.sse2.pause()
declare i64 @syscall(i64, ...)
declare i32 @sched_yield()
declare i32 @sched_getcpu()

define internal void @drain() nounwind {{
start:
  br label %look
look:
  %ticket = load atomic i64, ptr {_at(_TICKET)} acquire, align 8
  %left = and i64 %ticket, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %take, label %done
take:
  %body = load atomic ptr, ptr {_at(_BODY)} monotonic, align 8
  %context = load atomic ptr, ptr {_at(_CONTEXT)} monotonic, align 8
  %tasks = load atomic i64, ptr {_at(_TASKS)} monotonic, align 8
  %rest = sub i64 %ticket, 1
  %swap = cmpxchg ptr {_at(_TICKET)}, i64 %ticket, i64 %rest acq_rel acquire, align 8
  %taken = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %taken, label %run, label %look
run:
  %task = sub i64 %tasks, %left
  call void %body(ptr %context, i64 %task)
  %before = atomicrmw sub ptr {_at(_PENDING)}, i32 1 release
  br label %look
done:
  ret void
}}

define ptr @worker(ptr %index) nounwind {{
start:
  %slot = ptrtoint ptr %index to i64
  %id = call i64 (i64, ...) @syscall(i64 186)
  %id32 = trunc i64 %id to i32
  %place = getelementptr i32, ptr {_at(_THREAD_IDS)}, i64 %slot
  store atomic i32 %id32, ptr %place release, align 4
  %limit = load i64, ptr {_at(_SPIN_LIMIT)}
  br label %wait
wait:
  %seen = phi i32 [ -1, %start ], [ %generation, %work ]
  br label %spin
spin:
  %spins = phi i64 [ 0, %wait ], [ %more, %pause ], [ 0, %sleep ]
  %generation = load atomic i32, ptr {_at(_GENERATION)} acquire, align 4
  %new = icmp ne i32 %generation, %seen
  br i1 %new, label %check, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %more = add i64 %spins, 1
  %patient = icmp slt i64 %more, %limit
  br i1 %patient, label %spin, label %sleep
sleep:
  %s0 = atomicrmw add ptr {_at(_SLEEPERS)}, i32 1 seq_cst
  %r = call i64 (i64, ...) @syscall(i64 202, ptr {_at(_GENERATION)}, i64 128, i32 %seen, ptr null, ptr null, i64 0)
  %s1 = atomicrmw sub ptr {_at(_SLEEPERS)}, i32 1 seq_cst
  br label %spin
check:
  %stop = load atomic i32, ptr {_at(_STOP)} acquire, align 4
  %leave = icmp ne i32 %stop, 0
  br i1 %leave, label %done, label %work
work:
  call void @drain()
  br label %wait
done:
  ret ptr null
}}

define internal void @wake() nounwind {{
start:
  %cpu = call i32 @sched_getcpu()
  %known = load i32, ptr {_at(_CALLER_CPU)}
  %same = icmp eq i32 %cpu, %known
  %none = icmp slt i32 %cpu, 0
  %far = icmp sge i32 %cpu, {_MOST_PROCESSORS}
  %odd = or i1 %none, %far
  %stay = or i1 %same, %odd
  br i1 %stay, label %call, label %mask
mask:
  store i32 %cpu, ptr {_at(_CALLER_CPU)}
  call void @llvm.memcpy.p0.p0.i64(ptr {_at(_MASK)}, ptr {_at(_ALLOWED)}, i64 {_MOST_PROCESSORS // 8}, i1 false)
  %wide = zext i32 %cpu to i64
  %word = lshr i64 %wide, 6
  %bit = and i64 %wide, 63
  %place = getelementptr i64, ptr {_at(_MASK)}, i64 %word
  %old = load i64, ptr %place
  %one = shl i64 1, %bit
  %keep = xor i64 %one, -1
  %masked = and i64 %old, %keep
  store i64 %masked, ptr %place
  %workers = load i32, ptr {_at(_WORKERS)}
  %count = zext i32 %workers to i64
  br label %steer
steer:
  %w = phi i64 [ 0, %mask ], [ %next, %move ]
  %more = icmp slt i64 %w, %count
  br i1 %more, label %move, label %call
move:
  %ids = getelementptr i32, ptr {_at(_THREAD_IDS)}, i64 %w
  %id = load atomic i32, ptr %ids acquire, align 4
  %id64 = sext i32 %id to i64
  %a = call i64 (i64, ...) @syscall(i64 203, i64 %id64, i64 {_MOST_PROCESSORS // 8}, ptr {_at(_MASK)})
  %next = add i64 %w, 1
  br label %steer
call:
  %r = call i64 (i64, ...) @syscall(i64 202, ptr {_at(_GENERATION)}, i64 129, i64 2147483647, ptr null, ptr null, i64 0)
  ret void
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @publish(i64 %tasks) nounwind {{
start:
  %old = load atomic i64, ptr {_at(_TICKET)} monotonic, align 8
  %high = and i64 %old, -4294967296
  %generation = add i64 %high, 4294967296
  %ticket = or i64 %generation, %tasks
  %was = atomicrmw xchg ptr {_at(_TICKET)}, i64 %ticket seq_cst
  %sleepers = load atomic i32, ptr {_at(_SLEEPERS)} seq_cst, align 4
  %some = icmp ne i32 %sleepers, 0
  br i1 %some, label %rouse, label %done
rouse:
  call void @wake()
  br label %done
done:
  ret void
}}

define void @stop() nounwind {{
start:
  br label %acquire
acquire:
  %swap = cmpxchg ptr {_at(_BUSY)}, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %mine, label %end, label %yield
yield:
  %y = call i32 @sched_yield()
  br label %acquire
end:
  store atomic i32 0, ptr {_at(_WORKERS)} monotonic, align 4
  store atomic i32 1, ptr {_at(_STOP)} monotonic, align 4
  call void @publish(i64 0)
  store atomic i32 0, ptr {_at(_BUSY)} release, align 4
  ret void
}}

define void @"{PARALLEL}"(ptr %body, ptr %context, i64 %tasks) nounwind {{
start:
  %workers = load atomic i32, ptr {_at(_WORKERS)} acquire, align 4
  %alone = icmp eq i32 %workers, 0
  %few = icmp slt i64 %tasks, 2
  %many = icmp sgt i64 %tasks, 2147483647
  %unfit = or i1 %few, %many
  %lone = or i1 %alone, %unfit
  br i1 %lone, label %serial, label %acquire
acquire:
  %swap = cmpxchg ptr {_at(_BUSY)}, i32 0, i32 1 acquire monotonic, align 4
  %mine = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %mine, label %launch, label %serial
serial:
  call void @serial(ptr %body, ptr %context, i64 %tasks)
  ret void
launch:
  store atomic ptr %body, ptr {_at(_BODY)} monotonic, align 8
  store atomic ptr %context, ptr {_at(_CONTEXT)} monotonic, align 8
  store atomic i64 %tasks, ptr {_at(_TASKS)} monotonic, align 8
  %count = trunc i64 %tasks to i32
  store atomic i32 %count, ptr {_at(_PENDING)} monotonic, align 4
  call void @publish(i64 %tasks)
  call void @drain()
  br label %wait
wait:
  %spins = phi i64 [ 0, %launch ], [ %more, %pause ], [ 0, %yield ]
  %pending = load atomic i32, ptr {_at(_PENDING)} acquire, align 4
  %ready = icmp eq i32 %pending, 0
  br i1 %ready, label %done, label %pause
pause:
  call void @llvm.x86.sse2.pause()
  %more = add i64 %spins, 1
  %patient = icmp slt i64 %more, {10 * _SPINS}
  br i1 %patient, label %wait, label %yield
yield:
  %y = call i32 @sched_yield()
  br label %wait
done:
  store atomic i32 0, ptr {_at(_BUSY)} release, align 4
  ret void
}}
"""


def thread_count() -> int:
    """How many threads compiled code uses: NABLAIR_NUM_THREADS, else the processors this process may use.

    A processor quota of the control group (containers) limits the default. Error for a setting that is not a positive
    number.
    """
    setting = os.environ.get("NABLAIR_NUM_THREADS", "").strip()
    if setting:
        if not setting.isdecimal() or int(setting) < 1:
            raise Error(f"NABLAIR_NUM_THREADS is '{setting}'; it must be a positive number")
        return min(int(setting), _MOST_PROCESSORS)
    return max(1, min(len(_processors()), _group_quota(), _MOST_PROCESSORS))


def _processors() -> list[int]:
    if sys.platform == "linux":
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _group_quota(file: Path = Path("/sys/fs/cgroup/cpu.max")) -> int:
    """Processors that the control group grants, rounded up; without a limit, as many as there can be."""
    try:
        quota, period = file.read_text().split()
        return _MOST_PROCESSORS if quota == "max" else max(1, math.ceil(int(quota) / int(period)))
    except (OSError, ValueError):
        return _MOST_PROCESSORS


class ThreadPool:
    """Threads that share the launches of compiled code: the caller and `threads - 1` workers.

    `symbols` is what compiled code is linked with. `close()` ends the workers; launches then run in their callers'
    threads, and the code stays where it is as long as the pool object lives. `compiler` makes the object:
    `compile_object`, or a cache in front of it.
    """

    def __init__(self, threads: int | None = None, compiler: Compiler = compile_object) -> None:
        wanted = thread_count() if threads is None else threads
        if not 1 <= wanted <= _MOST_PROCESSORS:
            raise Error(f"a thread pool of {wanted} threads: the number must be from 1 to {_MOST_PROCESSORS}")
        self.threads = wanted if sys.platform == "linux" and platform.machine() == "x86_64" else 1
        self._workers: list[int] = []
        self._control: mmap.mmap | None = None
        if self.threads == 1:
            self._module: NativeModule = load_object(
                compiler(_PLAIN, name="threads", codegen_level=QUICK_CODEGEN_LEVEL), name="threads"
            )
        else:
            self._control = mmap.mmap(-1, _SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._control))
            data = compiler(_THREADED, name="threads", codegen_level=QUICK_CODEGEN_LEVEL)
            self._module = load_object(data, name="threads", symbols={"control": self._address})
            self._stop = ctypes.CFUNCTYPE(None)(self._module.address("stop"))
            self._start()
            _pools.add(self)
        self.symbols: Mapping[str, int] = {PARALLEL: self._module.address(PARALLEL)}

    def close(self) -> None:
        """End the workers, after the launch that runs. Later launches run in their callers' threads."""
        if not self._workers:
            return
        self._stop()
        join = _pthread("pthread_join", ctypes.c_void_p, ctypes.c_void_p)
        for worker in self._workers:
            join(worker, None)
        self._workers.clear()
        _pools.discard(self)

    def _start(self) -> None:
        assert self._control is not None
        self._control[:] = bytes(_SIZE)
        mask = sum(1 << cpu for cpu in _processors() if cpu < _MOST_PROCESSORS)
        self._control[_ALLOWED:_MASK] = mask.to_bytes(_MOST_PROCESSORS // 8, "little")
        self._control[_SPIN_LIMIT : _SPIN_LIMIT + 8] = struct.pack("<q", _SPINS)
        self._set(_CALLER_CPU, -1)
        create = _pthread("pthread_create", *[ctypes.c_void_p] * 4)
        blocked = signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
        try:
            for index in range(self.threads - 1):
                worker = ctypes.c_void_p()
                if create(ctypes.addressof(worker), None, self._module.address("worker"), index):
                    break  # the system gives no more threads: fewer will do
                self._workers.append(worker.value or 0)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        self._set(_WORKERS, len(self._workers))

    def _set(self, field: int, value: int) -> None:
        ctypes.c_int32.from_address(self._address + field).value = value

    def _restart_in_child(self) -> None:
        """After a fork: only the forking thread lives in the child, whatever the control block says."""
        had_workers = bool(self._workers)
        self._workers.clear()
        if had_workers:
            self._start()


# All pools with workers: their code must stay, and a fork must find them.
_pools: set[ThreadPool] = set()


def _close_all() -> None:
    for pool in tuple(_pools):
        pool.close()


def _restart_all() -> None:
    for pool in tuple(_pools):
        pool._restart_in_child()


# Code is unmapped when the interpreter goes: no worker may still run in it.
atexit.register(_close_all)
in_child(_restart_all)


@cache
def shared_pool() -> ThreadPool:
    """The pool that all compiled code of this process shares, started when first asked for."""
    return ThreadPool()


class _SharedSymbols(Mapping[str, int]):
    """The symbols of the shared pool; looking one up starts the pool, linking code that needs none does not."""

    def __getitem__(self, symbol: str) -> int:
        if symbol != PARALLEL:
            raise KeyError(symbol)
        return shared_pool().symbols[symbol]

    def __iter__(self) -> Iterator[str]:
        yield PARALLEL

    def __len__(self) -> int:
        return 1


SHARED_SYMBOLS: Mapping[str, int] = _SharedSymbols()


def _pthread(name: str, *types: type) -> Any:
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes = types
    function.restype = ctypes.c_int
    return function

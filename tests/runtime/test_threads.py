"""The thread pool: every task once, many callers, nesting, sleep, fork, shutdown, settings."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from nablair import Error
from nablair.runtime import threads
from nablair.runtime.native import compile_ir
from nablair.runtime.threads import SHARED_SYMBOLS, ThreadPool, thread_count

LAUNCHES = """
declare void @"nablair.parallel"(ptr, ptr, i64)
define void @count(ptr %cells, i64 %task) nounwind {
  %cell = getelementptr i64, ptr %cells, i64 %task
  %old = load i64, ptr %cell
  %more = add i64 %task, 1
  %new = add i64 %old, %more
  store i64 %new, ptr %cell
  ret void
}
define void @launch(ptr %cells, i64 %tasks) nounwind {
  call void @"nablair.parallel"(ptr @count, ptr %cells, i64 %tasks)
  ret void
}
define void @row(ptr %cells, i64 %task) nounwind {
  %offset = mul i64 %task, 50
  %row = getelementptr i64, ptr %cells, i64 %offset
  call void @"nablair.parallel"(ptr @count, ptr %row, i64 50)
  ret void
}
define void @nest(ptr %cells, i64 %rows) nounwind {
  call void @"nablair.parallel"(ptr @row, ptr %cells, i64 %rows)
  ret void
}
define void @thread(ptr %cells, i64 %task) nounwind {
  %cell = getelementptr i64, ptr %cells, i64 %task
  %id = call i64 (i64, ...) @syscall(i64 186)
  store i64 %id, ptr %cell
  br label %spin
spin:
  %i = phi i64 [ 0, %0 ], [ %next, %spin ]
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, 2000000
  br i1 %more, label %spin, label %done
done:
  ret void
}
declare i64 @syscall(i64, ...)
define void @which(ptr %cells, i64 %tasks) nounwind {
  call void @"nablair.parallel"(ptr @thread, ptr %cells, i64 %tasks)
  ret void
}
"""


class Launcher:
    def __init__(self, pool):
        self.module = compile_ir(LAUNCHES, name="launches", symbols=pool.symbols)

    def __call__(self, symbol, cells, tasks):
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
        kind(self.module.address(symbol))(cells.ctypes.data, tasks)


@pytest.fixture(scope="module", params=[1, 2, 4])
def launch(request):
    pool = ThreadPool(request.param)
    yield Launcher(pool)
    pool.close()


def expected(tasks, rounds=1):
    return rounds * (np.arange(tasks) + 1)


@pytest.mark.parametrize("tasks", [0, 1, 2, 3, 100, 5000])
def test_every_task_runs_once(launch, tasks):
    cells = np.zeros(tasks + 1, np.int64)
    for _ in range(200):
        launch("launch", cells, tasks)
    assert (cells[:tasks] == expected(tasks, 200)).all() and cells[tasks] == 0


def test_workers_that_slept(launch):
    cells = np.zeros(64, np.int64)
    for _ in range(30):
        time.sleep(0.002)
        launch("launch", cells, 64)
    assert (cells == expected(64, 30)).all()


def test_a_launch_in_a_task(launch):
    cells = np.zeros((40, 50), np.int64)
    for _ in range(20):
        launch("nest", cells, 40)
    assert (cells == expected(50, 20)).all()


def test_many_callers(launch):
    faults = []

    def work(seed):
        cells = np.zeros(100 + seed, np.int64)
        for _ in range(300):
            launch("launch", cells, cells.size)
        if not (cells == expected(cells.size, 300)).all():
            faults.append(seed)

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not faults


@pytest.mark.skipif(thread_count() < 2, reason="one processor")
def test_work_is_shared():
    pool = ThreadPool(2)
    cells = np.zeros(64, np.int64)
    Launcher(pool)("which", cells, 64)
    pool.close()
    assert len(set(cells)) == 2 and threading.get_native_id() in cells


def test_launches_go_on_after_close():
    pool = ThreadPool(3)
    launch, cells = Launcher(pool), np.zeros(100, np.int64)
    launch("launch", cells, 100)
    count = len(os.listdir("/proc/self/task"))
    pool.close()
    assert len(os.listdir("/proc/self/task")) == count - 2
    pool.close()
    launch("launch", cells, 100)
    assert (cells == expected(100, 2)).all()


def test_the_child_of_a_fork_has_workers_of_its_own():
    script = f"""
import ctypes, os, sys
import numpy as np
from nablair.runtime.native import compile_ir
from nablair.runtime.threads import ThreadPool
pool = ThreadPool(2)
module = compile_ir('''{LAUNCHES}''', name="launches", symbols=pool.symbols)
launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(module.address("launch"))
def check():
    cells = np.zeros(1000, np.int64)
    for _ in range(100):
        launch(cells.ctypes.data, 1000)
    assert (cells == 100 * (np.arange(1000) + 1)).all()
    assert len(os.listdir("/proc/self/task")) >= 2
check()
for _ in range(3):
    child = os.fork()
    check()
    if not child:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_exit_with_workers_and_a_running_launch():
    script = f"""
import ctypes, threading, time
import numpy as np
from nablair.runtime.native import compile_ir
from nablair.runtime.threads import ThreadPool
pool = ThreadPool(4)
module = compile_ir('''{LAUNCHES}''', name="launches", symbols=pool.symbols)
launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(module.address("launch"))
cells = np.zeros(1000, np.int64)
def work():
    while True:
        launch(cells.ctypes.data, 1000)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.05)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("NABLAIR_NUM_THREADS", " 3 ")
    assert thread_count() == 3
    monkeypatch.delenv("NABLAIR_NUM_THREADS")
    monkeypatch.setattr(threads, "_group_quota", lambda: 1)
    assert thread_count() == 1
    monkeypatch.setattr(threads, "_group_quota", lambda: 1024)
    assert thread_count() == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("setting", ["0", "-1", "two", "1.5"])
def test_a_wrong_number_of_threads(monkeypatch, setting):
    monkeypatch.setenv("NABLAIR_NUM_THREADS", setting)
    with pytest.raises(Error, match=f"NABLAIR_NUM_THREADS is '{setting}'"):
        thread_count()


@pytest.mark.parametrize(
    ("text", "processors"), [("max 100000", 1024), ("150000 100000", 2), ("20000 100000", 1), ("?", 1024)]
)
def test_quota_of_the_control_group(tmp_path, text, processors):
    (tmp_path / "cpu.max").write_text(text)
    assert threads._group_quota(tmp_path / "cpu.max") == processors
    assert threads._group_quota(tmp_path / "missing") == 1024


def test_shared_symbols_start_the_shared_pool():
    assert set(SHARED_SYMBOLS) == {"nablair.parallel"} and "nablair.nothing" not in SHARED_SYMBOLS
    assert SHARED_SYMBOLS["nablair.parallel"] == threads.shared_pool().symbols["nablair.parallel"]
    assert threads.shared_pool().threads == thread_count()

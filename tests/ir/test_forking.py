"""Children of a fork, whatever other threads were doing: none hangs, all compute, nothing half done is left in them."""

import os
import subprocess
import sys
import threading

import pytest

from nablair.ir import forking
from nablair.ir.recursion import deep_recursion

CHILDREN = """
import os, random, sys, threading, time
import numpy as np
from nablair import autograd as ag

def compile_for_ever():
    number = 0
    while True:
        number += 1
        ag.jit(lambda x: ag.sum(ag.exp(x * (number + 0.5))))(np.ones((3, 5), np.float32))

def compute_for_ever():
    product, a = ag.jit(lambda x: x @ x), np.ones((200, 200), np.float32)
    while True:
        product(a)

def read_text_for_ever():
    from nablair.ir.parser import parse_module
    from nablair.passes.manager import PassManager
    while True:
        module = parse_module("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\\n  return %x : tensor<4xf32>\\n}")
        PassManager.parse("kernel").run(module)

threading.Thread(target=globals()[sys.argv[1]], daemon=True).start()
time.sleep(float(sys.argv[3]))
generator, waiting, children = random.Random(1), ag.asarray(np.ones(7, np.float32)), []
for number in range(int(sys.argv[2])):
    time.sleep(0.02 * generator.random())
    pending = waiting * float(number)
    child = os.fork()
    if not child:
        import gc
        assert gc.isenabled() and sys.getrecursionlimit() == 1000
        compiled = ag.jit(lambda x: ag.sum(x * (number + 0.25)))(np.ones(7, np.float32))
        right = float(compiled) == 7 * (number + 0.25) and float(ag.sum(pending)) == 7 * number
        os._exit(0 if right else 1)
    children.append(child)
deadline = time.monotonic() + 60
for child in children:
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            for other in children:
                os.kill(other, 9)
            sys.exit("a child hangs")
        time.sleep(0.01)
    assert ended[1] == 0
os._exit(0)
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def run(script: str, *words: object) -> None:
    command = [sys.executable, "-W", "ignore", "-c", script, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("work", "children", "head_start"),
    [
        ("compile_for_ever", 30, 0),  # the first of them while modules are being imported
        ("compute_for_ever", 5, 0.5),
        ("read_text_for_ever", 5, 0.2),
    ],
)
def test_children_compile_and_compute(work, children, head_start):
    run(CHILDREN, work, children, head_start)


def test_a_pool_of_processes():
    run("""
import multiprocessing
import numpy as np
from nablair import autograd as ag

double = ag.jit(lambda x: ag.sum(x * 2.0))

def work(n):
    return float(double(np.ones(n, np.float32)))

assert work(3) == 6.0
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(work, range(1, 9)) == [2.0 * n for n in range(1, 9)]
""")


def test_a_fork_inside_of_a_compilation_leaves_its_locks_to_it():
    lock = forking.shared_lock(forking.COMPILER)
    with lock:
        child = os.fork()
        if not child:
            free: list[bool] = []
            thread = threading.Thread(target=lambda: free.append(lock.acquire(False)))
            thread.start()
            thread.join()
            os._exit(1 if free[0] else 0)
    assert os.waitpid(child, 0)[1] == 0
    assert lock.acquire(False)
    lock.release()


def test_counts_of_threads_that_are_gone():
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with deep_recursion:
            entered.set()
            leave.wait()

    before = sys.getrecursionlimit()
    thread = threading.Thread(target=stay)
    thread.start()
    entered.wait()
    child = os.fork()
    if not child:
        os._exit(0 if sys.getrecursionlimit() == before else 1)
    leave.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert sys.getrecursionlimit() == before


def test_a_fork_while_a_thread_looks_outside_of_a_function():
    run("""
import os, signal, threading, time
import numpy as np
from nablair import autograd as ag
from nablair.autograd import closure

held = threading.Event()
def look():
    with closure._substituting:
        held.set()
        time.sleep(0.3)
thread = threading.Thread(target=look)
thread.start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(20)
    x = ag.asarray(np.ones(4, np.float32))
    os._exit(0 if np.asarray(ag.jit(lambda x: x * 2.0)(x)).tolist() == [2.0] * 4 else 1)
thread.join()
assert os.waitpid(child, 0)[1] == 0
""")


def test_opencl_after_a_fork_is_refused():
    pytest.importorskip("pyopencl")
    run("""
import os
import numpy as np
from nablair import DeviceError
from nablair import autograd as ag

double = ag.jit(lambda x: x * 2.0, device="opencl:0")
x = np.ones(4, np.float32)
assert np.asarray(double(x)).tolist() == [2.0] * 4
child = os.fork()
if not child:
    for call in (lambda: double(x), lambda: ag.jit(lambda x: x * 3.0, device="opencl:0")(x)):
        try:
            call()
            os._exit(1)
        except DeviceError as error:
            if "cannot be used after fork" not in str(error):
                os._exit(2)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
""")

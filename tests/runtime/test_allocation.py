"""Memory that is not there, for results and temporaries, everywhere: a MemoryError, and the next call computes."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest

from nablair import AllocationError, LoweringError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.lowering.llvm.emit import emit_module
from nablair.runtime.native import compile_ir

SCRIPT = """
import resource, sys
import numpy as np
import nablair
from nablair import autograd as ag

device, size = sys.argv[1], int(sys.argv[2])

def temporary(x):
    y = ag.exp(ag.reshape(x, (x.shape[0], 1)) * ag.reshape(x, (1, x.shape[0])))
    return ag.sum(y @ ag.softmax(y, axis=1))

def result(x):
    return ag.reshape(x, (x.shape[0], 1)) * ag.reshape(x, (1, x.shape[0]))

def call(variant, n):
    return np.asarray(variant(ag.to_device(ag.asarray(np.linspace(-1, 1, n, dtype=np.float32)), device)))

def limit(mebibytes):
    pages = int(open("/proc/self/statm").read().split()[0])
    soft = pages * resource.getpagesize() + (mebibytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (soft if mebibytes else -1, -1))

for function in (temporary, result):
    gradient = ag.jit(ag.grad(lambda x: ag.sum(function(x))))
    for variant in (function, ag.jit(function), gradient):
        if device != "cpu" and variant is not function:
            continue
        wanted = call(variant, 8)
        for _ in range(2):
            limit(32 if not device.startswith("opencl") else 0)
            try:
                call(variant, size)
                # The gradient of a sum of products needs no matrix of them.
                assert function is result and variant is gradient, "there is memory"
            except MemoryError as error:
                assert isinstance(error, nablair.Error), error
            limit(0)
        assert (call(variant, 8) == wanted).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize(("device", "size"), [("cpu", 4096), ("opencl:0", 1 << 23), ("ptx-sim", 4096)])
def test_memory_that_is_not_there(device, size):
    if device.startswith("opencl"):
        pytest.importorskip("pyopencl")
    command = [sys.executable, "-c", SCRIPT, device, str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


ALLOCATIONS = """
func.func private @inner(%n: index) -> f32 {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0 : index
  %m = memref.alloc(%n, %n) : memref<?x?xf32>
  memref.store %one, %m[%zero, %zero] : memref<?x?xf32>
  memref.dealloc %m : memref<?x?xf32>
  return %one : f32
}
func.func @main(%x: memref<?xf32>, %n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %first = memref.alloc(%two) : memref<?xf32>
  scf.for %i = %zero to %two step %one {
    %second = memref.alloc(%two) : memref<?xf32>
    %y = func.call @inner(%n) : (index) -> f32
    memref.store %y, %x[%i] : memref<?xf32>
    memref.dealloc %second : memref<?xf32>
  }
  memref.dealloc %first : memref<?xf32>
  return
}
"""


@pytest.mark.parametrize("size", [1 << 31, 1 << 32, 1 << 40, 1 << 62, -1, -(1 << 62), (1 << 63) - 1])
def test_sizes_whose_bytes_overflow(size):
    """A failing function frees what it had, and its callers hand the status on."""
    module = compile_ir(emit_module(parse_module(ALLOCATIONS)), name="sizes")
    main = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(module.address("main"))
    x = np.zeros(2, np.float32)
    assert main(x.ctypes.data, 2, 3) == 0 and x.tolist() == [1, 1]
    x[:] = 0
    assert main(x.ctypes.data, 2, size) == 1 and x.tolist() == [0, 0]
    text = emit_module(parse_module(ALLOCATIONS))
    blocks = text.partition('@"main"')[2].split("failed")
    assert [block.count("call void @free") for block in blocks[-3:]] == [0, 1, 2]


def test_the_interpreter_has_none_either():
    with pytest.raises(AllocationError, match="cannot allocate"):
        Interpreter(parse_module(ALLOCATIONS)).call("main", [np.zeros(2, np.float32), 1 << 40])


def test_stack_variables_are_small():
    text = "func.func @main() {\n  %0 = memref.alloca() : memref<4194305xi8>\n  return\n}"
    with pytest.raises(LoweringError, match=r"4194304 bytes of stack; use memref\.alloc"):
        emit_module(parse_module(text))

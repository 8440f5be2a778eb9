"""map-gpu: kernels, launches and grids; what runs stays what the interpreter says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_rows import cases
from find import every

from nablair.ir.attributes import DenseArrayAttr
from nablair.ir.dialects import func, gpu, memref, scf
from nablair.ir.dialects.builtin import Module
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import F32, I64, MemRefType, Type
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager

BEFORE = "kernel,bufferize,lower-to-loops"


def mapped(text: str, pipeline: str = f"{BEFORE},map-gpu,canonicalize,cse") -> Module:
    """A text after the pass."""
    module = parse_module(text)
    PassManager.parse(pipeline).run(module)
    verify(module)
    return module


def kernels(module: Module) -> list[gpu.Func]:
    return every(module, gpu.Func)


def launches(module: Module) -> list[gpu.LaunchFunc]:
    return every(module, gpu.LaunchFunc)


def known(value: Any) -> int:
    return value.defining_op.properties["value"].value


def run(module: Module, arrays: list[Any], shapes: list[Any]) -> list[Any]:
    outputs = [np.zeros(s, np.float32) for s in shapes]
    Interpreter(module).call("main", [*arrays, *outputs])
    return outputs


ADD = """
func.func @main(%x: tensor<30x50xf32>) -> tensor<30x50xf32> {
  %y = elementwise.add %x, %x : tensor<30x50xf32>
  return %y : tensor<30x50xf32>
}
"""


def test_a_thread_for_each_point():
    module = mapped(ADD)
    (kernel,), (launch,) = kernels(module), launches(module)
    assert kernel.known_block_size == (256, 1, 1)
    assert [known(v) for v in launch.grid] == [6, 1, 1]
    assert [known(v) for v in launch.block] == [256, 1, 1]
    assert not any(isinstance(op, func.Call | scf.Forall) for op in module.walk())
    assert "gpu.container_module" in module.attributes
    x = np.arange(1500, dtype=np.float32).reshape(30, 50)
    np.testing.assert_array_equal(run(module, [x], [x.shape])[0], 2 * x)


def test_whole_blocks_need_no_guard():
    text = ADD.replace("30x50", "32x48")
    assert not any(isinstance(op, scf.If) for op in mapped(text).walk())
    assert any(isinstance(op, scf.If) for op in mapped(ADD).walk())


def test_the_number_of_threads_is_an_option():
    module = mapped(ADD, f"{BEFORE},map-gpu{{threads=64}}")
    assert kernels(module)[0].known_block_size == (64, 1, 1)


def test_the_host_computes_grids_of_symbolic_sizes():
    module = mapped(ADD.replace("30x50xf32", '?x50xf32, ["n"]'))
    for n in (0, 1, 11):
        x = np.arange(n * 50, dtype=np.float32).reshape(n, 50)
        np.testing.assert_array_equal(run(module, [x], [x.shape])[0], 2 * x)


COLUMN_SUMS = """
func.func private @k(%x: memref<20x6xf32>, %y: memref<6xf32>) attributes {nablair.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.forall (%j) in (6) {
    memref.store %zero, %y[%j] : memref<6xf32>
  }
  scf.for %i = %c0 to %c20 step %c1 {
    scf.forall (%j) in (6) {
      %0 = memref.load %x[%i, %j] : memref<20x6xf32>
      %1 = memref.load %y[%j] : memref<6xf32>
      %2 = arith.addf %1, %0 : f32
      memref.store %2, %y[%j] : memref<6xf32>
    } {axis = 1 : i64}
  } {axis = 0 : i64}
  return
}
func.func @main(%x: memref<20x6xf32>, %y: memref<6xf32>) {
  func.call @k(%x, %y) : (memref<20x6xf32>, memref<6xf32>) -> ()
  return
}
"""


def test_each_nest_is_a_launch_and_ordered_axes_move_inside():
    module = mapped(COLUMN_SUMS, "map-gpu,canonicalize,cse")
    fill, sums = kernels(module)
    assert [launch.kernel.nested[0] for launch in launches(module)] == ["k_0", "k_1"]
    assert len(fill.parameters) == 1
    (loop,) = [op for op in sums.walk() if isinstance(op, scf.For)]
    assert loop.trips == 20
    x = np.arange(120, dtype=np.float32).reshape(20, 6)
    np.testing.assert_array_equal(run(module, [x], [(6,)])[0], x.sum(0))


def test_ops_that_share_a_value_stay_together():
    text = """
    func.func private @k(%x: memref<9xf32>, %y: memref<9xf32>) attributes {nablair.kernel} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c9 = arith.constant 9 : index
      %zero = arith.constant 0.0 : f32
      %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %zero) -> (f32) {
        %0 = memref.load %x[%i] : memref<9xf32>
        %1 = arith.addf %a, %0 : f32
        scf.yield %1 : f32
      } {axis = 0 : i64}
      scf.forall (%i) in (9) {
        %0 = memref.load %x[%i] : memref<9xf32>
        %1 = arith.divf %0, %s : f32
        memref.store %1, %y[%i] : memref<9xf32>
      } {axis = 1 : i64}
      return
    }
    func.func @main(%x: memref<9xf32>, %y: memref<9xf32>) {
      func.call @k(%x, %y) : (memref<9xf32>, memref<9xf32>) -> ()
      return
    }
    """
    module = mapped(text, "map-gpu,canonicalize,cse")
    assert len(kernels(module)) == 1
    x = np.arange(1, 10, dtype=np.float32)
    np.testing.assert_array_equal(run(module, [x], [(9,)])[0], x / x.sum())


def test_a_kernel_called_twice_is_made_once():
    call = "  func.call @k(%x, %y) : (memref<20x6xf32>, memref<6xf32>) -> ()\n"
    module = mapped(COLUMN_SUMS.replace(call, 2 * call), "map-gpu")
    assert (len(kernels(module)), len(launches(module))) == (2, 4)


def big(type: Type) -> bool:
    return isinstance(type, MemRefType) and type.num_elements > 512


def test_large_locals_are_buffers_of_the_host():
    text = """
    func.func @main(%x: tensor<3x1500xf32>) -> tensor<3x1500xf32> {
      %y = linalg.softmax %x {axis = 1} : tensor<3x1500xf32>
      return %y : tensor<3x1500xf32>
    }
    """
    module = mapped(text)
    assert not any(big(op.result.type) for op in every(module, memref.Alloca))
    host = module.symbol("main")
    assert host is not None and len(every(host, memref.Alloc)) == len(every(host, memref.Dealloc))


def test_read_only_arguments_stay_marked():
    (kernel,) = kernels(mapped(ADD))
    readonly = kernel.attributes["nablair.readonly"]
    assert isinstance(readonly, DenseArrayAttr) and list(readonly.values) == [0]
    assert "nablair.noalias" in kernel.attributes


@pytest.mark.parametrize("case", cases([F32, I64], lambda i: i % 12 == 0), ids=lambda c: c.id)
def test_the_interpreter_agrees_before_and_after(case):
    before, after = case.module.clone(), case.module.clone()
    PassManager.parse(BEFORE).run(before)
    PassManager.parse(f"{BEFORE},map-gpu,canonicalize,cse").run(after)
    found = []
    for module in (before, after):
        arrays = [a.view(np.int8) if a.dtype == bool else a for a in case.arrays]
        wanted = Interpreter(case.module).call("main", case.arrays)
        kinds = [np.asarray(w).dtype for w in wanted]
        outputs = [np.zeros(np.shape(w), np.int8 if k.kind == "b" else k) for w, k in zip(wanted, kinds, strict=True)]
        Interpreter(module).call("main", [*arrays, *outputs])
        found.append(outputs)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)

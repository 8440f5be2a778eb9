"""map-gpu: kernels, launches and grids; what runs stays what the interpreter says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_rows import cases
from find import every

from nablair.ir.attributes import DenseArrayAttr
from nablair.ir.builders.scalar import ScalarBuilder
from nablair.ir.dialects import func, gpu, memref, scf
from nablair.ir.dialects.builtin import Module
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.target import Target
from nablair.ir.types import F32, I64, INDEX, MemRefType, Type
from nablair.ir.values import Value
from nablair.ir.verifier import verify
from nablair.passes.analysis.launch import depends, origins
from nablair.passes.loops.gpu_kernel import computed, roots
from nablair.passes.loops.map_tiles import results_of
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
        # Buffers hold bits: bools are bytes there, unsigned integers have no sign.
        arrays = [a.view(f"i{a.itemsize}") if a.dtype.kind in "bu" else a for a in case.arrays]
        wanted = Interpreter(case.module).call("main", case.arrays)
        kinds = [np.asarray(w).dtype for w in wanted]
        stored = [f"i{k.itemsize}" if k.kind in "bu" else k for k in kinds]
        outputs = [np.zeros(np.shape(w), k) for w, k in zip(wanted, stored, strict=True)]
        Interpreter(module).call("main", [*arrays, *outputs])
        found.append(outputs)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


# Blocks and tiles.


def on_gpu(text: str, threads: int = 0, **numbers: int) -> Module:
    """A text after the whole pipeline of a CUDA device, up to the mapping."""
    given = " ".join(["kind=cuda", *(f"{name.replace('_', '-')}={n}" for name, n in numbers.items())])
    before = f"set-target{{{given}}},kernel,plan,split-reduce,bufferize,lower-to-loops"
    return mapped(text, f"{before},map-gpu{{threads={threads}}},canonicalize,cse")


SOFTMAX = """
func.func @main(%x: tensor<65x70xf32>) -> tensor<65x70xf32> {
  %y = linalg.softmax %x {axis = 1} : tensor<65x70xf32>
  return %y : tensor<65x70xf32>
}
"""


def test_a_block_folds_rows_in_workgroup_memory():
    module = on_gpu(SOFTMAX)
    (kernel,) = kernels(module)
    # 32 lanes read neighbours; 4 rows share a block of 128 threads.
    assert kernel.known_block_size == (32, 4, 1)
    assert len(kernel.workgroup) == 3
    assert any(isinstance(op, gpu.Barrier) for op in kernel.walk())
    x = np.random.default_rng(0).normal(size=(65, 70)).astype(np.float32)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(run(module, [x], [x.shape])[0], e / e.sum(1, keepdims=True), rtol=1e-6)


def test_no_barrier_stands_in_a_branch():
    for text in (SOFTMAX, MATMUL):
        for op in on_gpu(text).walk():
            if isinstance(op, gpu.Barrier):
                assert not any(isinstance(outer, scf.If) for outer in op.ancestors())


def test_columns_are_side_by_side_in_a_block():
    text = """
    func.func @main(%x: tensor<100x40xf32>) -> tensor<40xf32> {
      %y = linalg.reduce_sum %x {axes = [0]} : tensor<100x40xf32> -> tensor<40xf32>
      return %y : tensor<40xf32>
    }
    """
    module = on_gpu(text)
    (kernel,) = kernels(module)
    assert kernel.known_block_size == (32, 8, 1)
    x = np.random.default_rng(0).integers(-4, 5, (100, 40)).astype(np.float32)
    np.testing.assert_array_equal(run(module, [x], [(40,)])[0], x.sum(0))


MATMUL = """
func.func @main(%x: tensor<40x36xf32>, %w: tensor<36x33xf32>, %b: tensor<33xf32>) -> tensor<40x33xf32> {
  %p = linalg.matmul %x, %w : tensor<40x36xf32>, tensor<36x33xf32> -> tensor<40x33xf32>
  %y = elementwise.add %p, %b : tensor<40x33xf32>, tensor<33xf32> -> tensor<40x33xf32>
  return %y : tensor<40x33xf32>
}
"""


def test_tiles_fold_in_the_order_of_the_naive_nest():
    random = np.random.default_rng(0)
    arrays = [random.normal(size=s).astype(np.float32) for s in ((40, 36), (36, 33), (33,))]
    threads = on_gpu(MATMUL, threads=32)
    assert not kernels(threads)[0].workgroup
    (expected,) = run(threads, arrays, [(40, 33)])
    # A block is the largest square of a power of two that the device has threads for.
    for most, side, banks in ((256, 16, 32), (64, 8, 32), (200, 8, 16), (1024, 16, 64)):
        tiles = on_gpu(MATMUL, threads=most, banks=banks)
        (kernel,) = kernels(tiles)
        assert kernel.known_block_size == (side, side, 1)
        tile = kernel.workgroup[0].type
        assert isinstance(tile, MemRefType)
        assert (tile.shape[0], tile.shape[1] % side) == (side, banks // side)
        np.testing.assert_array_equal(run(tiles, arrays, [(40, 33)])[0], expected)


def test_results_of_a_thread_fit_its_registers():
    for registers, results in ((24, 4), (63, 4), (79, 4), (80, 8), (255, 8), (288, 16)):
        assert results_of(Target(thread_registers=registers)) == results
        assert results**2 + 2 * results <= registers
    # With fewer, no operands are shared.
    assert kernels(on_gpu(MATMUL, thread_registers=24))[0].workgroup
    assert not kernels(on_gpu(MATMUL, thread_registers=23))[0].workgroup


def test_tiles_of_symbolic_sizes():
    a, b, c = (f'tensor<?x?xf32, ["{i}", "{j}"]>' for i, j in ("mk", "kn", "mn"))
    text = f"""
    func.func @main(%x: {a}, %w: {b}) -> {c} {{
      %y = linalg.matmul %x, %w : {a}, {b} -> {c}
      return %y : {c}
    }}
    """
    module = on_gpu(text)
    random = np.random.default_rng(0)
    for m, k, n in ((3, 5, 4), (1, 0, 1), (65, 17, 70)):
        x, w = (random.integers(-3, 4, s).astype(np.float32) for s in ((m, k), (k, n)))
        np.testing.assert_array_equal(run(module, [x, w], [(m, n)])[0], x @ w)


def test_accumulates_get_partial_results():
    text = """
    func.func @main(%x: tensor<700x60xf32>, %c: tensor<60xf32>) -> (tensor<700x60xf32>, tensor<60xf32>) {
      %y = elementwise.mul %x, %c : tensor<700x60xf32>, tensor<60xf32> -> tensor<700x60xf32>
      %s = linalg.reduce_sum %y {axes = [0]} : tensor<700x60xf32> -> tensor<60xf32>
      return %y, %s : tensor<700x60xf32>, tensor<60xf32>
    }
    """
    module = on_gpu(text)
    assert len(launches(module)) > 1
    random = np.random.default_rng(0)
    x, c = (random.integers(-3, 4, s).astype(np.float32) for s in ((700, 60), (60,)))
    y, s = run(module, [x, c], [(700, 60), (60,)])
    np.testing.assert_array_equal(y, x * c)
    np.testing.assert_array_equal(s, (x * c).sum(0))


def test_the_last_lanes_are_shuffled_on_cuda_devices_only():
    module = on_gpu(SOFTMAX)
    shuffles = [op for op in module.walk() if isinstance(op, gpu.Shuffle)]
    assert len(shuffles) == 2 * 5  # two folds of 32 lanes
    opencl = mapped(SOFTMAX, "loop-opencl")
    assert not any(isinstance(op, gpu.Shuffle) for op in opencl.walk())
    barriers = [sum(isinstance(op, gpu.Barrier) for op in m.walk()) for m in (module, opencl)]
    assert barriers[0] < barriers[1]


def test_a_full_sum_has_blocks():
    text = """
    func.func @main(%x: tensor<4096xf32>) -> tensor<f32> {
      %y = linalg.reduce_sum %x {axes = [0]} : tensor<4096xf32> -> tensor<f32>
      return %y : tensor<f32>
    }
    """
    module = on_gpu(text)
    first, last = launches(module)
    assert known(first.grid[0]) > 1
    assert known(last.grid[0]) == 1
    x = np.random.default_rng(0).integers(-4, 5, 4096).astype(np.float32)
    assert run(module, [x], [()])[0] == x.sum()


def test_nothing_is_planned_for_no_points():
    text = """
    func.func @main(%x: tensor<0x4096xf32>) -> (tensor<0xf32>, tensor<4096xf32>) {
      %y = linalg.reduce_sum %x {axes = [1]} : tensor<0x4096xf32> -> tensor<0xf32>
      %z = linalg.reduce_sum %x {axes = [0]} : tensor<0x4096xf32> -> tensor<4096xf32>
      return %y, %z : tensor<0xf32>, tensor<4096xf32>
    }
    """
    y, z = run(on_gpu(text), [np.zeros((0, 4096), np.float32)], [(0,), (4096,)])
    assert y.shape == (0,) and not z.any()


def test_the_axes_of_contiguous_nests_become_one():
    kernel = kernels(on_gpu(ADD))[0]
    assert not any(op.name in ("arith.remui", "arith.divui") for op in kernel.walk())


@pytest.mark.parametrize("count", [5, 500, 5000])
def test_values_used_twice_are_followed_and_computed_once(count: int) -> None:
    """A chain of v + v has 2^count paths to its start, and may be deeper than Python recurses."""
    block, other = Block([INDEX, INDEX]), Block([INDEX])
    start, unused = block.arguments
    b = ScalarBuilder(block)
    value: Value = start
    for _ in range(count):
        value = b.add(value, value)
    assert len(list(origins(value))) == count + 1
    assert roots(value) == [start]
    assert depends(value, start) and not depends(value, unused)
    computed(ScalarBuilder(other), value, {start: other.arguments[0]})
    assert len(other) == count

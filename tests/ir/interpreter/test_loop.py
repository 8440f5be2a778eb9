"""What the loop level means: control flow, buffers, vectors in memory, GPU kernels; and what the checks find."""

import math
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from mlir_opt import parse

from nablair.ir.diagnostics import Error
from nablair.ir.interpreter.machine import Interpreter

LOOPS = Path(__file__).parents[2] / "filecheck" / "loops"


def run(text, arguments, name="f", **options):
    return Interpreter(parse(text), **options).call(name, arguments)


def function(body, signature="%m: memref<4x6xf32>, %n: index"):
    return f"func.func @f({signature}) {{\n{body}\nreturn\n}}"


def program(name, **options):
    return Interpreter(parse((LOOPS / f"{name}.mlir").read_text()), **options)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def small_integers(*shape, seed=0):
    """Products and short sums of them are exact in f32, in any order."""
    return np.random.default_rng(seed).integers(-4, 4, shape).astype(np.float32)


def scaled_relu(x):
    y = x * np.float32(0.5)
    return np.where(y < 0, np.float32(0), y) + np.float32(1)


OPTIONS = [{}, {"check": True}, {"seed": 7}, {"check": True, "seed": 8}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["relu_naive", "relu_mapped"])
def test_relu(name, options):
    x, y = normal(64, 64), np.empty((64, 64), np.float32)
    program(name, **options).call("a", [x, y])
    assert (y == scaled_relu(x)).all()


@pytest.mark.parametrize("n", [0, 1, 5, 16, 123])
def test_relu_in_vectors_with_a_ragged_end(n):
    x, y = normal(n), np.empty(n, np.float32)
    program("relu_vector", check=True).call("a", [x, y, n])
    assert (y == scaled_relu(x)).all()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_relu_as_a_kernel(options):
    x, y = normal(4096), np.empty(4096, np.float32)
    program("relu_kernel", **options).call("a", [x, y])
    assert (y == scaled_relu(x)).all()


@pytest.mark.parametrize("name", ["softmax_naive", "softmax_vector"])
def test_softmax(name):
    x, y = normal(32, 60), np.empty((32, 60), np.float32)
    program(name, check=True).call("d", [x, y])
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("name", ["gelu_naive", "gelu_vector"])
def test_gelu_of_a_product(name):
    a, b = normal(28, 8).astype(ml_dtypes.bfloat16), normal(8, 60, seed=1).astype(ml_dtypes.bfloat16)
    bias, y = normal(60, seed=2), np.empty((28, 60), np.float32)
    program(name).call("f", [a, b, bias, y])
    h = a.astype(np.float64) @ b.astype(np.float64) + bias
    np.testing.assert_allclose(y, h / 2 * (1 + np.vectorize(math.erf)(h * math.sqrt(0.5))), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["gemm_naive", "gemm_blocked", "gemm_packed", "gemm_vector"])
def test_gemm(name):
    a, b, bias = small_integers(28, 8), small_integers(8, 64, seed=1), small_integers(64, seed=2)
    c = np.empty((28, 64), np.float32)
    program(name, check=True).call("gemm", [a, b, bias, c])
    assert (c == np.maximum(a @ b + bias, 0)).all()


@pytest.mark.parametrize("name", ["gemm_mapped", "gemm_kernel"])
def test_gemm_on_a_gpu(name):
    a, b = small_integers(32, 24), small_integers(24, 48, seed=1)
    c = np.empty((32, 48), np.float32)
    program(name).call("gemm", [a, b, c])
    assert (c == a @ b).all()


def test_row_sums():
    x, y = small_integers(32, 1024), np.empty(32, np.float32)
    program("row_sum_mapped").call("rowsum", [x, y])
    assert (y == x.sum(1)).all()


def test_for_carries_values():
    text = """func.func @f(%n: index) -> (index, index) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %c0, %b = %c1) -> (index, index) {
        %s = arith.addi %a, %b : index
        scf.yield %b, %s : index, index
      }
      return %r#0, %r#1 : index, index
    }"""
    assert run(text, [10]) == [55, 89]
    assert run(text, [0]) == [0, 1]


def test_while_leaves_with_the_values_of_its_condition():
    text = """func.func @f(%n: i64) -> i64 {
      %c1 = arith.constant 1 : i64
      %c2 = arith.constant 2 : i64
      %r = scf.while (%a = %n) : (i64) -> i64 {
        %go = arith.cmpi sgt, %a, %c1 : i64
        scf.condition(%go) %a : i64
      } do {
      ^bb0(%a: i64):
        %h = arith.divsi %a, %c2 : i64
        scf.yield %h : i64
      }
      return %r : i64
    }"""
    assert run(text, [40]) == [1]
    assert run(text, [-3]) == [-3]


def test_forall_runs_points_in_row_major_order_or_in_another():
    text = function(
        """%c0 = arith.constant 0 : index
        scf.forall (%i, %j) = (1, 0) to (4, %n) step (2, 3) {
          %k = memref.load %m[%c0] : memref<100xindex>
          %c1 = arith.constant 1 : index
          %next = arith.addi %k, %c1 : index
          %at = arith.muli %i, %n : index
          %place = arith.addi %at, %j : index
          memref.store %next, %m[%c0] : memref<100xindex>
          memref.store %next, %m[%place] : memref<100xindex>
        }""",
        "%m: memref<100xindex>, %n: index",
    )
    m = np.zeros(100, np.int64)
    run(text, [m, 6])
    assert [(int(i), int(m[i])) for i in np.flatnonzero(m)] == [(0, 4), (6, 1), (9, 2), (18, 3), (21, 4)]
    orders = set()
    for seed in range(8):
        m = np.zeros(100, np.int64)
        run(text, [m, 6], seed=seed)
        assert sorted(m[[6, 9, 18, 21]]) == [1, 2, 3, 4]
        orders.add(tuple(m[[6, 9, 18, 21]]))
    assert len(orders) > 1


def test_views_share_memory():
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    text = """func.func @f(%m: memref<4x6xf32>, %n: index) -> (memref<2x2xf32, strided<[12, 3], offset: ?>>,
        memref<6xf32, strided<[1], offset: ?>>, memref<24xf32>, memref<4x2x3xf32>,
        memref<3x2xf32, strided<[2, 1], offset: 5>>) {
      %a = memref.subview %m[%n, 1] [2, 2] [2, 3] : memref<4x6xf32> to memref<2x2xf32, strided<[12, 3], offset: ?>>
      %b = memref.subview %m[%n, 0] [1, 6] [1, 1] : memref<4x6xf32> to memref<6xf32, strided<[1], offset: ?>>
      %c = memref.collapse_shape %m [[0, 1]] : memref<4x6xf32> into memref<24xf32>
      %d = memref.expand_shape %m [[0], [1, 2]] output_shape [4, 2, 3] : memref<4x6xf32> into memref<4x2x3xf32>
      %e = memref.reinterpret_cast %m to offset: [5], sizes: [3, 2], strides: [2, 1]
        : memref<4x6xf32> to memref<3x2xf32, strided<[2, 1], offset: 5>>
      return %a, %b, %c, %d, %e : memref<2x2xf32, strided<[12, 3], offset: ?>>, memref<6xf32, strided<[1], offset: ?>>,
        memref<24xf32>, memref<4x2x3xf32>, memref<3x2xf32, strided<[2, 1], offset: 5>>
    }"""
    a, b, c, d, e = run(text, [m, 1])
    assert a.tolist() == m[1::2, 1::3].tolist()
    assert b.tolist() == m[1].tolist()
    assert c.tolist() == m.reshape(-1).tolist()
    assert d.tolist() == m.reshape(4, 2, 3).tolist()
    assert e.tolist() == m.reshape(-1)[5:11].reshape(3, 2).tolist()
    m[:] = 0
    assert not any(v.any() for v in (a, b, c, d, e))


def test_reinterpreting_a_view_counts_from_the_base_of_its_buffer():
    text = """func.func @f(%m: memref<12xf32>) -> memref<2xf32, strided<[1]>> {
      %a = memref.subview %m[4] [8] [1] : memref<12xf32> to memref<8xf32, strided<[1], offset: 4>>
      %b = memref.reinterpret_cast %a to offset: [0], sizes: [2], strides: [1]
        : memref<8xf32, strided<[1], offset: 4>> to memref<2xf32, strided<[1]>>
      return %b : memref<2xf32, strided<[1]>>
    }"""
    whole = np.arange(20, dtype=np.float32)
    assert run(text, [whole[3:15]])[0].tolist() == [3, 4]


def test_dim_copy_atomics_and_globals():
    text = """
      memref.global "private" constant @weights : memref<3xf32> = dense<[1.0, 2.0, 4.0]>
      func.func @f(%m: memref<?xf32>) -> (index, f32) {
        %c0 = arith.constant 0 : index
        %n = memref.dim %m, %c0 : memref<?xf32>
        %w = memref.get_global @weights : memref<3xf32>
        %t = memref.cast %m : memref<?xf32> to memref<3xf32>
        memref.copy %w, %t : memref<3xf32> to memref<3xf32>
        %x = arith.constant 8.0 : f32
        %old = memref.atomic_rmw addf %x, %m[%c0] : (f32, memref<?xf32>) -> f32
        memref.prefetch %m[%c0], read, locality<3>, data : memref<?xf32>
        return %n, %old : index, f32
      }"""
    m = np.zeros(3, np.float32)
    assert run(text, [m]) == [3, 1]
    assert m.tolist() == [9, 2, 4]


def test_masked_lanes_are_not_touched():
    text = """func.func @f(%m: memref<10xf32>, %n: index, %i: index) -> vector<8xf32> {
      %k = vector.create_mask %n : vector<8xi1>
      %p = arith.constant dense<-1.0> : vector<8xf32>
      %v = vector.maskedload %m[%i], %k, %p : memref<10xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
      vector.maskedstore %m[%i], %k, %p : memref<10xf32>, vector<8xi1>, vector<8xf32>
      return %v : vector<8xf32>
    }"""
    m = np.arange(10, dtype=np.float32)
    (v,) = run(text, [m, 3, 7])
    assert v.tolist() == [7, 8, 9, -1, -1, -1, -1, -1]
    assert m.tolist() == [0, 1, 2, 3, 4, 5, 6, -1, -1, -1]
    with pytest.raises(Error, match=r"'vector\.maskedload' op is out of bounds: element 10 of 10"):
        run(text, [m, 4, 7])


def test_gather_and_scatter():
    text = """func.func @f(%m: memref<4x6xf32>, %at: vector<4xi32>, %k: vector<4xi1>) -> vector<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %p = arith.constant dense<-1.0> : vector<4xf32>
      %v = vector.gather %m[%c1, %c0] [%at], %k, %p
        : memref<4x6xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
      vector.scatter %m[%c0, %c1] [%at], %k, %v : memref<4x6xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>
      return %v : vector<4xf32>
    }"""
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    (v,) = run(text, [m, np.array([3, 0, 99, 7], np.int32), np.array([True, True, False, True])])
    assert v.tolist() == [9, 6, -1, 13]
    assert m.reshape(-1)[[1, 4, 8]].tolist() == [6, 9, 13]


def test_vectors_of_rows():
    text = """func.func @f(%m: memref<4x6xf32>, %i: index) -> vector<2x3xf32> {
      %v = vector.load %m[%i, %i] : memref<4x6xf32>, vector<2x3xf32>
      return %v : vector<2x3xf32>
    }"""
    m = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert run(text, [m, 1])[0].tolist() == m[1:3, 1:4].tolist()


BOUNDS = {
    "load": ("%a = memref.load %m[%n, %n] : memref<4x6xf32>", 4, "subscript 4 along axis 0, which has 4 elements"),
    "negative": ("%a = memref.load %m[%n, %n] : memref<4x6xf32>", -1, "subscript -1 along axis 0"),
    "store": (
        "%x = arith.constant 1.0 : f32\nmemref.store %x, %m[%n, %n] : memref<4x6xf32>",
        5,
        "'memref.store' op is out of bounds",
    ),
    "vector": ("%a = vector.load %m[%n, %n] : memref<4x6xf32>, vector<4xf32>", 3, "elements 3 to 6 along axis 1"),
    "subview": (
        "%a = memref.subview %m[%n, 0] [2, 6] [1, 1] : memref<4x6xf32> to memref<2x6xf32, strided<[6, 1], offset: ?>>",
        3,
        "2 elements from 3 on by 1 along axis 0, which has 4 elements",
    ),
    "reinterpret": (
        "%a = memref.reinterpret_cast %m to offset: [%n], sizes: [2], strides: [1] : memref<4x6xf32> "
        "to memref<2xf32, strided<[1], offset: ?>>",
        23,
        "elements 23 to 24 of a buffer of 24",
    ),
    "cast": (
        "%d = memref.cast %m : memref<4x6xf32> to memref<4x?xf32>\n"
        "%a = memref.expand_shape %d [[0], [1, 2]] output_shape [4, %n, 4] : memref<4x?xf32> into memref<4x?x4xf32>",
        2,
        "cannot see a buffer of shape [4, 6] as [4, 2, 4]",
    ),
    "dim": ("%a = memref.dim %m, %n : memref<4x6xf32>", 2, "asks for axis 2 of a buffer of rank 2"),
    "step": ("scf.for %i = %n to %n step %n { }", 0, "needs a positive step, got 0"),
    "size": ("%a = memref.alloc(%n) : memref<?xf32>", -1, "allocates a buffer of shape [-1]"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_out_of_bounds(name):
    body, n, message = BOUNDS[name]
    with pytest.raises(Error) as caught:
        run(function(body), [np.zeros((4, 6), np.float32), n])
    assert message in str(caught.value) and "-:" in str(caught.value)


def test_memory_starts_undefined():
    text = """func.func @f(%n: index) -> (f32, i32) {
      %a = memref.alloca() : memref<4xf32>
      %b = memref.alloc(%n) : memref<?xi32>
      %i = arith.constant 1 : index
      %x = memref.load %a[%i] : memref<4xf32>
      %y = memref.load %b[%i] : memref<?xi32>
      return %x, %y : f32, i32
    }"""
    x, y = run(text, [4])
    assert np.isnan(x) and y.view(np.uint32) == 0xA5A5A5A5
    with pytest.raises(Error, match=r"'memref\.load' op reads an element of a buffer .* that nothing has written"):
        run(text, [4], check=True)


def test_reads_through_views_of_what_was_written_through_others():
    text = """func.func @f(%i: index, %j: index) -> vector<2xf32> {
      %x = arith.constant dense<1.0> : vector<2xf32>
      %a = memref.alloc() : memref<4x4xf32>
      %row = memref.subview %a[1, 0] [1, 4] [1, 1] : memref<4x4xf32> to memref<4xf32, strided<[1], offset: 4>>
      vector.store %x, %row[%i] : memref<4xf32, strided<[1], offset: 4>>, vector<2xf32>
      %flat = memref.collapse_shape %a [[0, 1]] : memref<4x4xf32> into memref<16xf32>
      %v = vector.load %flat[%j] : memref<16xf32>, vector<2xf32>
      memref.dealloc %a : memref<4x4xf32>
      return %v : vector<2xf32>
    }"""
    assert run(text, [2, 6], check=True)[0].tolist() == [1, 1]
    with pytest.raises(Error, match="nothing has written"):
        run(text, [2, 7], check=True)


def test_reads_of_freed_memory():
    text = """func.func @f(%i: index) -> f32 {
      %x = arith.constant 1.0 : f32
      %a = memref.alloc() : memref<4xf32>
      memref.store %x, %a[%i] : memref<4xf32>
      memref.dealloc %a : memref<4xf32>
      %y = memref.load %a[%i] : memref<4xf32>
      return %y : f32
    }"""
    with pytest.raises(Error, match="nothing has written"):
        run(text, [1], check=True)


# Kernels.


def kernel(body, threads=8, shared="memref<8xf32, #gpu.address_space<workgroup>>", blocks=1):
    return f"""module attributes {{gpu.container_module}} {{
      gpu.module @k {{
        gpu.func @f(%m: memref<64xf32>, %n: index) workgroup(%s : {shared}) kernel {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %one = arith.constant 1.0 : f32
          %t = gpu.thread_id x
          {body}
          gpu.return
        }}
      }}
      func.func @f(%m: memref<64xf32>, %n: index) {{
        %c1 = arith.constant 1 : index
        %threads = arith.constant {threads} : index
        %blocks = arith.constant {blocks} : index
        gpu.launch_func @k::@f blocks in (%blocks, %c1, %c1) threads in (%threads, %c1, %c1)
          args(%m : memref<64xf32>, %n : index)
        return
      }}
    }}"""


def launch(body, n=0, options=None, **keywords):
    m = np.arange(64, dtype=np.float32)
    run(kernel(body, **keywords), [m, n], **(options or {}))
    return m


CHECKED = pytest.mark.parametrize("options", [{}, {"check": True}], ids=str)

REVERSE = """
  %x = memref.load %m[%t] : memref<64xf32>
  memref.store %x, %s[%t] : memref<8xf32, #gpu.address_space<workgroup>>
  {barrier}
  %c7 = arith.constant 7 : index
  %r = arith.subi %c7, %t : index
  %y = memref.load %s[%r] : memref<8xf32, #gpu.address_space<workgroup>>
  memref.store %y, %m[%t] : memref<64xf32>
"""


@CHECKED
def test_threads_exchange_values_over_a_barrier(options):
    assert launch(REVERSE.format(barrier="gpu.barrier"), options=options)[:9].tolist() == [7, 6, 5, 4, 3, 2, 1, 0, 8]


def test_a_missing_barrier_is_a_race():
    with pytest.raises(Error, match=r"races: thread \d reads an element written by thread \d since the last barrier"):
        launch(REVERSE.format(barrier=""), options={"check": True})


def test_two_writers_are_a_race():
    body = "memref.store %one, %m[%c0] : memref<64xf32>"
    launch(body)
    with pytest.raises(Error, match="races: thread 1 writes an element written by thread 0"):
        launch(body, options={"check": True})


@CHECKED
def test_atomics_do_not_race(options):
    body = "%old = memref.atomic_rmw addf %one, %m[%c0] : (f32, memref<64xf32>) -> f32"
    assert launch(body, options=options, blocks=2)[0] == 16


@CHECKED
def test_branches_that_threads_take_apart(options):
    body = """
      %c = arith.cmpi ult, %t, %n : index
      %v = scf.if %c -> (f32) {
        %x = memref.load %m[%t] : memref<64xf32>
        %d = arith.addf %x, %x : f32
        scf.yield %d : f32
      } else {
        scf.yield %one : f32
      }
      memref.store %v, %m[%t] : memref<64xf32>"""
    assert launch(body, 3, options)[:9].tolist() == [0, 2, 4, 1, 1, 1, 1, 1, 8]


@CHECKED
def test_loops_of_different_length(options):
    body = """
      %zero = arith.constant 0.0 : f32
      %r = scf.for %i = %c0 to %t step %c1 iter_args(%a = %zero) -> (f32) {
        %x = memref.load %m[%i] : memref<64xf32>
        %b = arith.addf %a, %x : f32
        scf.yield %b : f32
      }
      %c8 = arith.constant 8 : index
      %o = arith.addi %t, %c8 : index
      memref.store %r, %m[%o] : memref<64xf32>"""
    assert launch(body, options=options)[8:16].tolist() == [0, 0, 1, 3, 6, 10, 15, 21]


@CHECKED
def test_while_loops_that_end_at_different_times(options):
    body = """
      %r:2 = scf.while (%a = %t, %k = %c0) : (index, index) -> (index, index) {
        %go = arith.cmpi ugt, %a, %c1 : index
        scf.condition(%go) %a, %k : index, index
      } do {
      ^bb0(%a: index, %k: index):
        %h = arith.shrui %a, %c1 : index
        %l = arith.addi %k, %c1 : index
        scf.yield %h, %l : index, index
      }
      %i = arith.index_cast %r#1 : index to i64
      %f = arith.sitofp %i : i64 to f32
      memref.store %f, %m[%t] : memref<64xf32>"""
    assert launch(body, options=options)[:8].tolist() == [0, 0, 1, 1, 2, 2, 2, 2]


def test_a_barrier_in_divergent_control_flow():
    body = "%c = arith.cmpi ult, %t, %n : index\nscf.if %c { gpu.barrier }"
    launch(body, 8)
    launch(body, 0)
    with pytest.raises(Error, match=r"'gpu\.barrier' op is reached by 3 of the 8 threads"):
        launch(body, 3)


@pytest.mark.parametrize(
    ("mode", "offset", "expected"),
    [
        ("xor", 1, [1, 0, 3, 2, 5, 4, 7, 6]),
        ("up", 1, [0, 0, 1, 2, 4, 4, 5, 6]),
        ("down", 2, [2, 3, 2, 3, 6, 7, 6, 7]),
        ("idx", 3, [3, 3, 3, 3, 7, 7, 7, 7]),
    ],
)
def test_shuffle(mode, offset, expected):
    body = f"""
      %x = memref.load %m[%t] : memref<64xf32>
      %o = arith.constant {offset} : i32
      %w = arith.constant 4 : i32
      %y, %ok = gpu.shuffle {mode} %x, %o, %w : f32
      memref.store %y, %m[%t] : memref<64xf32>"""
    assert launch(body)[:8].tolist() == expected


def test_vectors_and_views_of_each_thread():
    body = """
      %c4 = arith.constant 4 : index
      %i = arith.muli %t, %c4 : index
      %own = memref.subview %m[%i] [4] [1] : memref<64xf32> to memref<4xf32, strided<[1], offset: ?>>
      %v = vector.load %own[%c0] : memref<4xf32, strided<[1], offset: ?>>, vector<4xf32>
      %two = arith.constant dense<2.0> : vector<4xf32>
      %w = arith.mulf %v, %two : vector<4xf32>
      %x = vector.extract %w[3] : f32 from vector<4xf32>
      %u = vector.insert %x, %w[0] : f32 into vector<4xf32>
      vector.store %u, %own[%c0] : memref<4xf32, strided<[1], offset: ?>>, vector<4xf32>"""
    found = launch(body, options={"check": True})[:32].reshape(8, 4)
    expected = 2 * np.arange(32, dtype=np.float32).reshape(8, 4)
    expected[:, 0] = expected[:, 3]
    assert (found == expected).all()


def test_threads_and_blocks_are_numbered_x_first():
    text = """module attributes {gpu.container_module} {
      gpu.module @k {
        gpu.func @f(%m: memref<2x3x2x4xindex>) kernel attributes {known_block_size = array<i32: 4, 2, 1>} {
          %x = gpu.thread_id x
          %y = gpu.thread_id y
          %bx = gpu.block_id x
          %by = gpu.block_id y
          %w = gpu.block_dim x
          %g = gpu.grid_dim x
          %a = arith.muli %y, %w : index
          %b = arith.addi %a, %x : index
          %c = arith.muli %by, %g : index
          %d = arith.addi %c, %bx : index
          %c100 = arith.constant 100 : index
          %e = arith.muli %d, %c100 : index
          %f = arith.addi %e, %b : index
          memref.store %f, %m[%by, %bx, %y, %x] : memref<2x3x2x4xindex>
          gpu.return
        }
      }
      func.func @f(%m: memref<2x3x2x4xindex>, %width: index) {
        %c1 = arith.constant 1 : index
        %c2 = arith.constant 2 : index
        %c3 = arith.constant 3 : index
        gpu.launch_func @k::@f blocks in (%c3, %c2, %c1) threads in (%width, %c2, %c1) args(%m : memref<2x3x2x4xindex>)
        return
      }
    }"""
    m = np.zeros((2, 3, 2, 4), np.int64)
    run(text, [m, 4], seed=5)
    assert m.reshape(6, 8).tolist() == [[100 * b + t for t in range(8)] for b in range(6)]
    with pytest.raises(Error, match=r"launches a block of \[3, 2, 1\], but @f declares \[4, 2, 1\]"):
        run(text, [m, 3])


def test_faults_in_kernels_name_the_thread():
    with pytest.raises(Error, match=r"subscript 64 along axis 0(.|\n)*in thread 4 of the block"):
        launch("%i = arith.addi %t, %n : index\n%x = memref.load %m[%i] : memref<64xf32>", 60)


def test_workgroup_memory_starts_undefined_in_each_block():
    body = """
      %b = gpu.block_id x
      %first = arith.cmpi eq, %b, %c0 : index
      scf.if %first { memref.store %one, %s[%t] : memref<8xf32, #gpu.address_space<workgroup>> }
      %x = memref.load %s[%t] : memref<8xf32, #gpu.address_space<workgroup>>"""
    launch(body, options={"check": True})
    with pytest.raises(Error, match="nothing has written"):
        launch(body, options={"check": True}, blocks=2)

"""Warp-wide ops: copies that arrive when waited for, matrix loads, matrix products."""

import numpy as np
import pytest
from mlir_opt import parse

from nablair.ir.diagnostics import Error
from nablair.ir.interpreter.machine import Interpreter

SPACE = "#gpu.address_space<workgroup>"


def launch(signature, arguments, body, workgroup="", threads=32, **options):
    types = ", ".join(f"{name} : {type}" for name, type in signature.items())
    text = f"""module attributes {{gpu.container_module}} {{
      gpu.module @k {{
        gpu.func @f({types}) {workgroup} kernel {{
          %c0 = arith.constant 0 : index
          %t = gpu.thread_id x
          {body}
          gpu.return
        }}
      }}
      func.func @f({types}) {{
        %c1 = arith.constant 1 : index
        %threads = arith.constant {threads} : index
        gpu.launch_func @k::@f blocks in (%c1, %c1, %c1) threads in (%threads, %c1, %c1) args({types})
        return
      }}
    }}"""
    Interpreter(parse(text), **options).call("f", arguments)


MMA = """
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %group = arith.divui %t, %c4 : index
  %place = arith.remui %t, %c4 : index
  %c2 = arith.constant 2 : index
  %at = arith.muli %place, %c2 : index
  %low = arith.addi %group, %c8 : index
  %right = arith.addi %at, %c8 : index
  %a0 = vector.load %a[%group, %at] : memref<16x16xf16>, vector<2xf16>
  %a1 = vector.load %a[%low, %at] : memref<16x16xf16>, vector<2xf16>
  %a2 = vector.load %a[%group, %right] : memref<16x16xf16>, vector<2xf16>
  %a3 = vector.load %a[%low, %right] : memref<16x16xf16>, vector<2xf16>
  %za = arith.constant dense<0.0> : vector<4x2xf16>
  %va0 = vector.insert %a0, %za[0] : vector<2xf16> into vector<4x2xf16>
  %va1 = vector.insert %a1, %va0[1] : vector<2xf16> into vector<4x2xf16>
  %va2 = vector.insert %a2, %va1[2] : vector<2xf16> into vector<4x2xf16>
  %va = vector.insert %a3, %va2[3] : vector<2xf16> into vector<4x2xf16>
  %b0 = vector.load %b[%group, %at] : memref<8x16xf16>, vector<2xf16>
  %b1 = vector.load %b[%group, %right] : memref<8x16xf16>, vector<2xf16>
  %zb = arith.constant dense<0.0> : vector<2x2xf16>
  %vb0 = vector.insert %b0, %zb[0] : vector<2xf16> into vector<2x2xf16>
  %vb = vector.insert %b1, %vb0[1] : vector<2xf16> into vector<2x2xf16>
  %ones = arith.constant dense<1.0> : vector<2x2xf32>
  %d = nvgpu.mma.sync (%va, %vb, %ones) {mmaShape = [16, 8, 16]}
    : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
  %d0 = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
  %d1 = vector.extract %d[1] : vector<2xf32> from vector<2x2xf32>
  vector.store %d0, %c[%group, %at] : memref<16x8xf32>, vector<2xf32>
  vector.store %d1, %c[%low, %at] : memref<16x8xf32>, vector<2xf32>
"""


def test_product_of_a_warp():
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 8, shape).astype(np.float16) for shape in ((16, 16), (8, 16)))
    c = np.zeros((16, 8), np.float32)
    signature = {"%a": "memref<16x16xf16>", "%b": "memref<8x16xf16>", "%c": "memref<16x8xf32>"}
    launch(signature, [a, b, c], MMA)
    assert (c == 1 + a.astype(np.float32) @ b.astype(np.float32).T).all()


def test_products_need_whole_warps():
    body = """
      %va = arith.constant dense<0.0> : vector<4x1xf32>
      %vb = arith.constant dense<0.0> : vector<2x1xf32>
      %vc = arith.constant dense<0.0> : vector<2x2xf32>
      %c5 = arith.constant 5 : index
      %few = arith.cmpi ult, %t, %c5 : index
      scf.if %few {
        %d = nvgpu.mma.sync (%va, %vb, %vc) {mmaShape = [16, 8, 8], tf32Enabled}
          : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      }"""
    with pytest.raises(Error, match=r"'nvgpu\.mma\.sync' op is reached by 5 threads of a warp"):
        launch({}, [], body)
    with pytest.raises(Error, match="needs whole warps of 32 threads, the block has 8"):
        launch({}, [], body, threads=8)


@pytest.mark.parametrize("transpose", [False, True])
def test_ldmatrix(transpose):
    x = np.arange(16 * 8, dtype=np.float16).reshape(16, 8)
    y = np.zeros((32, 2, 2), np.float16)
    body = f"""
      %c16 = arith.constant 16 : index
      %row = arith.remui %t, %c16 : index
      %v = vector.load %x[%row, %c0] : memref<16x8xf16>, vector<8xf16>
      vector.store %v, %s[%row, %c0] : memref<16x8xf16, {SPACE}>, vector<8xf16>
      gpu.barrier
      %l = nvgpu.ldmatrix %s[%row, %c0] {{numTiles = 2 : i32, transpose = {str(transpose).lower()}}}
        : memref<16x8xf16, {SPACE}> -> vector<2x2xf16>
      vector.store %l, %y[%t, %c0, %c0] : memref<32x2x2xf16>, vector<2x2xf16>"""
    launch(
        {"%x": "memref<16x8xf16>", "%y": "memref<32x2x2xf16>"},
        [x, y],
        body,
        f"workgroup(%s : memref<16x8xf16, {SPACE}>)",
    )
    for lane in range(32):
        for tile in range(2):
            part = x[8 * tile : 8 * tile + 8]
            share = (part.T if transpose else part)[lane // 4, 2 * (lane % 4) : 2 * (lane % 4) + 2]
            assert (y[lane, tile] == share).all()


COPY = """
  %c4 = arith.constant 4 : index
  %i = arith.muli %t, %c4 : index
  %token = nvgpu.device_async_copy %x[%i], %s[%i], 4{valid}
    : memref<128xf32> to memref<128xf32, #gpu.address_space<workgroup>>
  %group = nvgpu.device_async_create_group %token
  {wait}
  %v = vector.load %s[%i] : memref<128xf32, #gpu.address_space<workgroup>>, vector<4xf32>
  vector.store %v, %y[%i] : memref<128xf32>, vector<4xf32>
"""


def copied(wait, valid="", **options):
    x, y = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    signature = {"%x": "memref<128xf32>", "%y": "memref<128xf32>", "%n": "index"}
    body = COPY.replace("{wait}", wait).replace("{valid}", valid)
    launch(signature, [x, y, 3], body, f"workgroup(%s : memref<128xf32, {SPACE}>)", **options)
    return x, y


def test_copies_arrive_when_they_are_waited_for():
    x, y = copied("nvgpu.device_async_wait %group", check=True)
    assert (x == y).all()
    x, y = copied("nvgpu.device_async_wait %group {numGroups = 0 : i32}")
    assert (x == y).all()


@pytest.mark.parametrize("wait", ["", "nvgpu.device_async_wait %group {numGroups = 1 : i32}"])
def test_copies_that_nothing_waits_for(wait):
    _, y = copied(wait)
    assert np.isnan(y).all()
    with pytest.raises(Error, match="nothing has written"):
        copied(wait, check=True)


def test_copies_fill_with_zeros():
    x, y = copied("nvgpu.device_async_wait %group", ", %n")
    assert (y.reshape(-1, 4)[:, :3] == x.reshape(-1, 4)[:, :3]).all() and not y[3::4].any()

"""nvgpu and llvm.call_intrinsic: both forms as mlir-opt takes them, verifier messages."""

import re

import pytest
from mlir_opt import check_forms

from nablair.ir.diagnostics import Error
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify

SHARED = "memref<64x40xf16, #gpu.address_space<workgroup>>"
HEAD = (
    f"func.func @f(%s: {SHARED}, %g: memref<64x64xf16>, %i: index, %a: vector<4x2xf16>, %b: vector<2x2xf16>, "
    "%c: vector<2x2xf32>, %x: vector<16xf32>, %y: vector<32xbf16>) {\n"
)
TAIL = "\n  return\n}"

FORMS = {
    "copies": f"""
      %t = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8 : memref<64x64xf16> to {SHARED}
      %u = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 8, %i {{bypassL1}} : memref<64x64xf16> to {SHARED}
      %v = nvgpu.device_async_create_group %t, %u
      nvgpu.device_async_wait %v {{numGroups = 1 : i32}}
      nvgpu.device_async_wait %v""",
    "ldmatrix": f"""
      %l = nvgpu.ldmatrix %s[%i, %i] {{numTiles = 4 : i32, transpose = true}} : {SHARED} -> vector<4x2xf16>""",
    "mma": """
      %d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]}
        : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>""",
    "intrinsic": """
      %d = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%x, %y, %y)
        : (vector<16xf32>, vector<32xbf16>, vector<32xbf16>) -> vector<16xf32>
      llvm.call_intrinsic "llvm.x86.sse2.pause"() : () -> () {flag}""",
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    check_forms(HEAD + FORMS[name] + TAIL)


ERRORS = {
    "space": (
        "%t = nvgpu.device_async_copy %g[%i, %i], %g[%i, %i], 8 : memref<64x64xf16> to memref<64x64xf16>",
        "copies to workgroup memory, not to memref<64x64xf16>",
    ),
    "size": (
        f"%t = nvgpu.device_async_copy %g[%i, %i], %s[%i, %i], 3 : memref<64x64xf16> to {SHARED}",
        "copies 4, 8 or 16 bytes, not 3 elements of f16",
    ),
    "subscripts": (
        f"%t = nvgpu.device_async_copy %g[%i], %s[%i, %i], 8 : memref<64x64xf16> to {SHARED}",
        "needs 2 subscripts for memref<64x64xf16>, got 1",
    ),
    "tiles": (
        f"%l = nvgpu.ldmatrix %s[%i, %i] {{numTiles = 3 : i32, transpose = false}} : {SHARED} -> vector<3x2xf16>",
        "loads 1, 2 or 4 tiles, not 3",
    ),
    "share": (
        f"%l = nvgpu.ldmatrix %s[%i, %i] {{numTiles = 2 : i32, transpose = false}} : {SHARED} -> vector<4x2xf16>",
        "gives a vector<2x2xf16>, not a vector<4x2xf16>",
    ),
    "registers": (
        "%d = nvgpu.mma.sync (%a, %a, %c) {mmaShape = [16, 8, 16]} "
        ": (vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>",
        "needs 4 elements in two axes as 'b', got vector<4x2xf16>",
    ),
    "shape": (
        "%d = nvgpu.mma.sync (%a, %b, %c) {mmaShape = [8, 8, 16]} "
        ": (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>",
        "needs a shape of 16, 8 and the length of the sum, got [8, 8, 16]",
    ),
    "intrinsic": ('llvm.call_intrinsic "pause"() : () -> ()', "starts with 'llvm.', got 'pause'"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    text, message = ERRORS[name]
    with pytest.raises(Error, match=re.escape(message)):
        verify(parse_module(HEAD + text + TAIL))

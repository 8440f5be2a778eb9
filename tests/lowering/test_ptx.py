"""PTX text: operands, predicates and roundings; what the assembler says of it; registers and memory that it takes."""

from __future__ import annotations

import re

import pytest
from device_rows import cases, other_elements

from nablair.ir.attributes import constant_attr
from nablair.ir.diagnostics import LoweringError
from nablair.ir.parser import parse_module
from nablair.ir.types import BF16, F16, F32, F64, I8, I32, INDEX
from nablair.lowering.ptx.emit import emit_module, emit_modules
from nablair.lowering.ptx.registers import immediate
from nablair.passes.manager import PassManager
from nablair.runtime.ptxas import assemble, find_ptxas

needs_ptxas = pytest.mark.skipif(find_ptxas() is None, reason="no ptxas")


def text_of(source: str) -> str:
    """The PTX of a tensor-level function."""
    module = parse_module(source)
    PassManager.parse("loop-cuda").run(module)
    return emit_module(module)


def kernel(body: str, arguments: str = "%x : memref<64xf32>, %y : memref<64xf32>") -> str:
    """The PTX of a kernel in which %i is a thread."""
    module = parse_module(
        f"gpu.module @m {{ gpu.func @f({arguments}) kernel {{ %i = gpu.thread_id x {body} gpu.return }} }}"
    )
    return emit_module(module)


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (1.0, F32, "0f3F800000"),
        (-0.0, F32, "0f80000000"),
        (float("inf"), F32, "0f7F800000"),
        (1.0, F64, "0d3FF0000000000000"),
        (1.0, F16, "0x3C00"),
        (1.0, BF16, "0x3F80"),
        (-1, I32, "-1"),
        (-1, I8, "255"),
        (-1, INDEX, "-1"),
    ],
    ids=str,
)
def test_immediates_are_exact(value, type, text):
    assert immediate(constant_attr(value, type)) == text


@pytest.mark.parametrize(
    ("predicate", "relation"),
    [("oeq", "eq"), ("one", "ne"), ("une", "neu"), ("ugt", "gtu"), ("ord", "num"), ("uno", "nan"), ("ole", "le")],
)
def test_float_comparisons_know_nan(predicate, relation):
    text = kernel(f"""
      %0 = memref.load %x[%i] : memref<64xf32>
      %c = arith.cmpf {predicate}, %0, %0 : f32
      %1 = arith.select %c, %0, %0 : f32
      memref.store %1, %y[%i] : memref<64xf32>
    """)
    assert f"setp.{relation}.f32" in text


@pytest.mark.parametrize(
    ("op", "instruction"),
    [
        ("arith.addf %0, %0", "add.rn.f32"),
        ("arith.divf %0, %0", "div.rn.f32"),
        ("arith.maximumf %0, %0", "max.NaN.f32"),
        ("arith.minnumf %0, %0", "min.f32"),
        ("math.sqrt %0", "sqrt.rn.f32"),
        ("math.fma %0, %0, %0", "fma.rn.f32"),
        ("math.roundeven %0", "cvt.rni.f32.f32"),
    ],
)
def test_roundings_are_spelled_out(op, instruction):
    text = kernel(f"""
      %0 = memref.load %x[%i] : memref<64xf32>
      %1 = {op} : f32
      memref.store %1, %y[%i] : memref<64xf32>
    """)
    assert f"{instruction} " in text


def test_small_buffers_are_addressed_in_32_bits():
    body = "%0 = memref.load %x[%i] : TYPE memref.store %0, %y[%i] : TYPE"
    arguments = "%x : TYPE, %y : TYPE"
    small = kernel(body.replace("TYPE", "memref<64xf32>"))
    assert "mad.wide.s32" in small
    large = "memref<2147483648xf32>"
    text = kernel(body.replace("TYPE", large), arguments.replace("TYPE", large))
    assert "mad.wide" not in text and "mad.lo.s64" in text


def test_constant_subscripts_are_part_of_the_address():
    text = kernel("""
      %c1 = arith.constant 1 : index
      %0 = memref.load %x[%i, %c1] : memref<8x4xf32>
      memref.store %0, %y[%i] : memref<64xf32>
    """, "%x : memref<8x4xf32>, %y : memref<64xf32>")  # fmt: skip
    assert re.search(r"ld\.global\.f32 %f\d+, \[%rd\d+\+4\]", text)


def test_only_buffers_that_nobody_writes_are_read_past_the_caches():
    text = text_of("""
    func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
      %y = elementwise.add %x, %x : tensor<64xf32>
      return %y : tensor<64xf32>
    }""")
    assert "ld.global.nc.f32" in text
    assert ".nc" not in kernel("%0 = memref.load %x[%i] : memref<64xf32> memref.store %0, %y[%i] : memref<64xf32>")


def test_an_op_without_emission_is_named():
    with pytest.raises(LoweringError, match=r"ptx target has no emission for 'vector\.load'"):
        kernel("%v = vector.load %x[%i] : memref<64xf32>, vector<4xf32>")


# The assembler.


@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_every_row_assembles(arch):
    chosen = [*cases([F32]), *cases([F64], lambda i: i % 2 == 0), *cases(other_elements(), lambda i: i % 5 == 0)]
    modules = []
    for number, case in enumerate(chosen):
        PassManager.parse("loop-cuda", verify_each=False, restore=False).run(case.module)
        modules.append((case.module, f"k{number}_"))
    found = assemble(emit_modules(modules), arch)
    assert len(found.kernels) >= len(chosen) - 20  # copies have no kernel
    assert not [name for name, used in found.kernels.items() if used.spills]


@needs_ptxas
@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("%y = elementwise.exp %x : tensor<1000x1000xf32>", "tensor<1000x1000xf32>"),
        ("%t = elementwise.tanh %x : tensor<1000x1000xf32> %y = elementwise.mul %t, %x : tensor<1000x1000xf32>", None),
        ("%y = linalg.reduce_sum %x {axes = [1]} : tensor<1000x1000xf32> -> tensor<1000xf32>", "tensor<1000xf32>"),
        ("%y = linalg.reduce_sum %x {axes = [0]} : tensor<1000x1000xf32> -> tensor<1000xf32>", "tensor<1000xf32>"),
        ("%y = linalg.matmul %x, %x : tensor<1000x1000xf32>, tensor<1000x1000xf32> -> tensor<1000x1000xf32>", None),
    ],
    ids=["exp", "tanh", "rows", "columns", "matmul"],
)
def test_kernels_stay_in_registers(body, result):
    result = result or "tensor<1000x1000xf32>"
    text = text_of(f"func.func @main(%x: tensor<1000x1000xf32>) -> {result} {{ {body} return %y : {result} }}")
    for used in assemble(text).kernels.values():
        assert not used.spills and not used.local_bytes
        assert used.registers <= 128

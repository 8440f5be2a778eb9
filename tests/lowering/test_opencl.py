"""OpenCL C text: exact literals, stable names, nothing that is not used; and what checkers say of running it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from device_rows import cases

from nablair.ir.attributes import FloatAttr, constant_attr
from nablair.ir.diagnostics import LoweringError
from nablair.ir.parser import parse_module
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I32, I64, INDEX
from nablair.lowering.opencl.emit import emit_module, emit_modules
from nablair.lowering.opencl.types import literal
from nablair.passes.manager import PassManager

OCLGRIND = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")


def text_of(source: str) -> str:
    """The program of a tensor-level function."""
    module = parse_module(source)
    PassManager.parse("loop-opencl").run(module)
    return emit_module(module)


def function(body: str, type: str = "tensor<8xf32>", result: str | None = None) -> str:
    return f"func.func @main(%x: {type}) -> {result or type} {{ {body} return %y : {result or type} }}"


@pytest.mark.parametrize(
    ("value", "type", "text"),
    [
        (0.0, F32, "0.0f"),
        (-0.0, F32, "(-0.0f)"),
        (3.0, F32, "3.0f"),
        (0.5, F32, "0x1p-1f"),
        (0.1, F32, "0x1.99999ap-4f"),
        (0.1, F64, "0x1.999999999999ap-4"),
        (2.0**-149, F32, "0x1p-149f"),
        (float("inf"), F32, "INFINITY"),
        (float("-inf"), F64, "(-(double)INFINITY)"),
        (float("nan"), F32, "NAN"),
        (1.5, F16, "0x1.8p+0f"),
        (1.5, BF16, "0x1.8p+0f"),
        (-1, I32, "4294967295u"),
        (-1, I64, "18446744073709551615ul"),
        (-1, I8, "(uchar)255"),
        (-1, INDEX, "(-1)"),
        (1 << 40, INDEX, "1099511627776L"),
        (1, I1, "true"),
    ],
    ids=str,
)
def test_literals_are_exact(value, type, text):
    assert literal(constant_attr(value, type)) == text


def test_a_nan_keeps_its_bits():
    assert literal(FloatAttr.from_bits(0x7FC00001, F32)) == "as_float(0x7fc00001u)"
    assert literal(FloatAttr.from_bits(0x7FF8000000000001, F64)) == "as_double(0x7ff8000000000001ul)"


def test_equal_modules_give_equal_text():
    source = function("%y = elementwise.exp %x : tensor<8xf32>")
    assert text_of(source) == text_of(source)


def test_a_program_has_nothing_that_it_does_not_use():
    copy = text_of(function("%y = array.transpose %x {permutation = [1, 0]} : tensor<3x3xi32>", "tensor<3x3xi32>"))
    assert copy.startswith("__kernel")
    single = text_of(function("%y = elementwise.add %x, %x : tensor<8xf32>"))
    assert single.startswith("#pragma OPENCL FP_CONTRACT OFF\n\n__kernel")
    double = text_of(function("%y = elementwise.add %x, %x : tensor<8xf64>", "tensor<8xf64>"))
    assert double.startswith("#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n")
    half = text_of(function("%y = elementwise.add %x, %x : tensor<8xf16>", "tensor<8xf16>"))
    assert "cl_khr_fp16" not in half and "vload_half" in half and "cl_khr_fp64" not in half


def test_arguments_say_what_is_read_and_that_they_do_not_overlap():
    text = text_of(function("%y = elementwise.add %x, %x : tensor<8xf32>"))
    assert "__global const float* restrict p1, __global float* restrict p2" in text
    assert "__attribute__((reqd_work_group_size(32, 1, 1)))" in text


def test_several_modules_make_one_program():
    module = parse_module(function("%y = elementwise.neg %x : tensor<8xf32>"))
    PassManager.parse("loop-opencl").run(module)
    text = emit_modules([(module, "a_"), (module, "b_")])
    assert text.count("__kernel") == 2 and "void a_main_k0(" in text and "void b_main_k0(" in text


def test_an_op_without_emission_is_named():
    module = parse_module("""
    gpu.module @m { gpu.func @f(%x : memref<4xf32>) kernel {
      %c0 = arith.constant 0 : index
      %v = vector.load %x[%c0] : memref<4xf32>, vector<4xf32>
      gpu.return } }
    """)
    with pytest.raises(LoweringError, match=r"opencl target has no emission for 'vector\.load'"):
        emit_module(module)


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="no clang-19")
def test_clang_accepts_the_programs_without_a_warning(tmp_path):
    modules = []
    for number, case in enumerate(cases([F32, F16, I8], lambda i: i % 6 == 0)):
        PassManager.parse("loop-opencl").run(case.module)
        modules.append((case.module, f"f{number}_"))
    source = tmp_path / "k.cl"
    source.write_text(emit_modules(modules))
    flags = "-x cl -cl-std=CL1.2 -target spir64 -Xclang -finclude-default-header -Wall -Wdouble-promotion -Werror"
    run = subprocess.run(["clang-19", *flags.split(), "-fsyntax-only", source], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


CHECKED = """
import sys
sys.path.insert(0, "tests")
from device_rows import cases
from nablair.ir.types import F32, I32
from nablair.runtime.devices.opencl import OpenCLDevice

device = OpenCLDevice()
device.options = ["-cl-opt-disable"]  # oclgrind does not know an instruction of optimized code
wanted = ("elementwise.add", "linalg.matmul", "linalg.softmax", "linalg.reduce_sum", "linalg.index_add", "array.pad")
chosen = [c for c in cases([F32, I32]) if c.row.name in wanted][::4]
for case, executable in zip(chosen, device.build_all([c.lowered(device) for c in chosen])):
    complaint = case.complaint(executable.run(case.arrays))
    assert complaint is None, complaint
print(device.handle.name, len(chosen))
"""


@pytest.mark.skipif(not OCLGRIND.exists(), reason="no oclgrind")
def test_oclgrind_finds_nothing(tmp_path):
    log = tmp_path / "log"
    environment = {
        **os.environ,
        "OCL_ICD_VENDORS": str(OCLGRIND),
        "OCLGRIND_DATA_RACES": "1",
        "OCLGRIND_UNINITIALIZED": "1",
        "OCLGRIND_LOG": str(log),
    }
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-c", CHECKED], capture_output=True, text=True, env=environment, cwd=root, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Oclgrind")
    assert not log.exists() or log.read_text() == ""

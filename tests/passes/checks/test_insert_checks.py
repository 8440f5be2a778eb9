"""Texts of unknown origin: none writes outside of its buffers, ends the process or reaches a library."""

import subprocess
import sys
from pathlib import Path

import hostile_programs
import numpy as np
import pytest
from fuzzing import cases

from nablair import CheckError, Error, LoweringError, VerifyError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify
from nablair.lowering.llvm.emit import emit_module
from nablair.passes.manager import PassManager
from nablair.runtime.compile import compile_function

PROGRAMS = 200


@pytest.mark.fuzz
def test_hostile_programs_do_as_the_interpreter_has_it():
    """Results equal bit for bit, or both stop; what lies around the buffers is what it was."""
    command = [sys.executable, hostile_programs.__file__, "0", str(cases(PROGRAMS))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"program {done.stderr.split()[-1]} ended the process"
    assert "seed" not in done.stdout, done.stdout
    *_, counts = done.stdout.splitlines()
    found: dict[str, int] = eval(counts)
    assert found["equal"] > PROGRAMS // 4 and found["stopped"] > PROGRAMS // 4
    assert found.get("refused", 0) + found.get("invalid", 0) < cases(PROGRAMS) // 10


SCATTER = """func.func @main(%x: tensor<4xi32>, %y: tensor<4xf32>) -> tensor<6xf32> {
  %0 = kernel.launch (%i) in (4) ins(%x : tensor<4xi32>, %y : tensor<4xf32>) outs(%0 : tensor<6xf32>) {
    %1 = kernel.load %x[%i]
    %2 = arith.index_cast %1 : i32 to index
    %3 = kernel.load %y[%i]
    kernel.accumulate %3, %0[%2] by arith.addf
  }
  return %0 : tensor<6xf32>
}
"""


@pytest.mark.parametrize("device", ["cpu", "ptx-sim"])
@pytest.mark.parametrize("subscript", [6, 500_000_000, -1, -(1 << 31)])
def test_subscripts_from_data_in_a_kernel(device, subscript):
    executable = compile_function(parse_module(SCATTER), device=device, checked=True)
    y = np.arange(4, dtype=np.float32)
    assert executable.run([np.array([0, 5, 5, 1], np.int32), y])[0].tolist() == [0, 3, 0, 0, 0, 3]
    with pytest.raises(Error, match=r"out.of.bounds"):
        executable.run([np.array([0, subscript, 5, 1], np.int32), y])


def test_a_check_names_the_op_and_its_place():
    executable = compile_function(parse_module(SCATTER, "text.mlir"), checked=True)
    with pytest.raises(CheckError, match=r"memref<6xf32>") as caught:
        executable.run([np.full(4, 9, np.int32), np.zeros(4, np.float32)])
    assert caught.value.location is not None
    place = caught.value.location.file_position()
    assert place is not None and (place.file, place.line) == ("text.mlir", 6)


def test_opencl_refuses_what_is_not_proven():
    pytest.importorskip("pyopencl")
    with pytest.raises(LoweringError, match=r"cannot be shown to stay in bounds .* --unsafe"):
        compile_function(parse_module(SCATTER), device="opencl:0", checked=True)
    text = "func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {\n %0 = elementwise.exp %x : tensor<4x6xf32>\n"
    module = parse_module(text + " return %0 : tensor<4x6xf32>\n}")
    assert (compile_function(module, device="opencl:0", checked=True).run([np.zeros((4, 6), np.float32)])[0] == 1).all()


def function(body: str, before: str = "") -> str:
    return f"{before}\nfunc.func @main(%x: memref<4xf32>, %n: index) {{\n{body}\n  return\n}}"


REFUSED = {
    "a library's function": (
        function(
            "  %c = arith.constant 3 : i32\n  func.call @exit(%c) : (i32) -> ()",
            "func.func private @exit(i32)",
        ),
        "'@exit', which this module does not define",
    ),
    "an intrinsic": (
        function('  %p = arith.constant 0 : i64\n  llvm.call_intrinsic "llvm.trap"() : () -> ()'),
        "calls 'llvm.trap'",
    ),
    "recursion": (function("  func.call @main(%x, %n) : (memref<4xf32>, index) -> ()"), "running already"),
    "recursion through another": (
        function(
            "  func.call @f(%x, %n) : (memref<4xf32>, index) -> ()",
            "func.func private @f(%x: memref<4xf32>, %n: index) {\n"
            "  func.call @main(%x, %n) : (memref<4xf32>, index) -> ()\n  return\n}",
        ),
        "running already",
    ),
    "more stack than there is": (
        function(
            "  %0 = memref.alloca() : memref<900000xf32>\n"
            "  memref.copy %0, %0 : memref<900000xf32> to memref<900000xf32>"
        ),
        "bytes of stack",
    ),
    "a buffer that is freed twice": (
        function("  %0 = memref.alloc() : memref<4xf32>" + 2 * "\n  memref.dealloc %0 : memref<4xf32>"),
        "does not free, once,",
    ),
    "a buffer of the caller's": (function("  memref.dealloc %x : memref<4xf32>"), "does not free, once,"),
    "a buffer that is gone": (
        function(
            "  %0 = memref.alloc() : memref<4xf32>\n  memref.dealloc %0 : memref<4xf32>\n"
            "  memref.copy %0, %x : memref<4xf32> to memref<4xf32>"
        ),
        "freed before",
    ),
    "a constant that is written": (
        function(
            "  %0 = memref.get_global @g : memref<4xf32>\n  memref.copy %x, %0 : memref<4xf32> to memref<4xf32>",
            'memref.global "private" constant @g : memref<4xf32> = dense<0.0>',
        ),
        "'@g' is constant",
    ),
    "odd elements": (
        function("  %0 = memref.alloc() : memref<4xi24>\n  memref.copy %0, %0 : memref<4xi24> to memref<4xi24>"),
        "elements of type i24",
    ),
    "a buffer that a loop carries": (
        function(
            "  %zero = arith.constant 0 : index\n  %one = arith.constant 1.0 : f32\n"
            "  scf.while (%a = %x) : (memref<4xf32>) -> () {\n    memref.store %one, %a[%n] : memref<4xf32>\n"
            "    %c = arith.cmpi eq, %n, %zero : index\n    scf.condition(%c)\n"
            "  } do {\n    scf.yield %x : memref<4xf32>\n  }"
        ),
        "'scf.while' op gives a memref<4xf32> that is chosen at run time",
    ),
    "an element beyond the buffer": (
        function(
            "  %0 = memref.reinterpret_cast %x to offset: [4], sizes: [], strides: [] "
            ": memref<4xf32> to memref<f32, strided<[], offset: 4>>\n"
            "  %1 = memref.load %0[] : memref<f32, strided<[], offset: 4>>\n  memref.store %1, %x[%n] : memref<4xf32>"
        ),
        "reaches elements 4 to 4",
    ),
    "a constant of a text without end": (
        function(
            "  %0 = memref.get_global @g : memref<1000000000xf32>\n"
            "  %1 = memref.load %0[%n] : memref<1000000000xf32>\n  memref.store %1, %x[%n] : memref<4xf32>",
            'memref.global "private" constant @g : memref<1000000000xf32> = dense<1.0>',
        ),
        "a constant of 1000000000 elements",
    ),
    "integers without end": (
        function(
            "  %0 = memref.load %x[%n] : memref<4xf32>\n  %1 = arith.fptosi %0 : f32 to i1000\n"
            "  %2 = arith.sitofp %1 : i1000 to f32\n  memref.store %2, %x[%n] : memref<4xf32>"
        ),
        "at most 128 bits, not i1000",
    ),
    "vectors without end": (
        function(
            "  %0 = arith.constant dense<1.0> : vector<65536xf32>\n"
            "  %1 = vector.reduction <add>, %0 : vector<65536xf32> into f32\n"
            "  memref.store %1, %x[%n] : memref<4xf32>"
        ),
        "vectors have at most 4096 bytes",
    ),
    "strides that are claimed": (
        function(
            "  %0 = memref.cast %x : memref<4xf32> to memref<4xf32, strided<[?]>>\n"
            "  %1 = memref.load %0[%n] : memref<4xf32, strided<[?]>>\n  memref.store %1, %x[%n] : memref<4xf32>"
        ),
        "claims strides",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_has_no_check_is_refused(kind):
    text, message = REFUSED[kind]
    module = parse_module(text)
    verify(module)
    with pytest.raises(LoweringError, match=message):
        compile_function(module, checked=True)


GPU = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = elementwise.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
gpu.module @kernels {
  gpu.func @k(%x: memref<4xf32>) kernel {
    gpu.return
  }
}
"""


@pytest.mark.parametrize("device", ["cpu", "opencl:0"])
def test_kernels_of_a_gpu_in_a_text_are_refused(device):
    if device != "cpu":
        pytest.importorskip("pyopencl")
    with pytest.raises(LoweringError, match="whose accesses are not checked"):
        compile_function(parse_module(GPU), device=device, checked=True)


CHOSEN = {
    "select": ("  %a = arith.select %c, %x, %b : memref<4xf32>", "%a"),
    "if": (
        "  %a = scf.if %c -> (memref<4xf32>) {\n    scf.yield %x : memref<4xf32>\n  } else {\n"
        "    scf.yield %b : memref<4xf32>\n  }",
        "%a",
    ),
    "while": (
        "  %no = arith.constant false\n  %a = scf.while (%q = %x) : (memref<4xf32>) -> (memref<4xf32>) {\n"
        "    scf.condition(%no) %q : memref<4xf32>\n  } do {\n  ^bb0(%r: memref<4xf32>):\n"
        "    scf.yield %r : memref<4xf32>\n  }",
        "%a",
    ),
}


@pytest.mark.parametrize("kind", CHOSEN)
def test_buffers_chosen_at_run_time(kind):
    """The interpreter writes to the very buffer; the target refuses, checked or not."""
    choice, name = CHOSEN[kind]
    text = function(
        "  %zero = arith.constant 0 : index\n  %c = arith.cmpi sgt, %n, %zero : index\n"
        f"  %one = arith.constant 1.0 : f32\n  %b = memref.alloc() : memref<4xf32>\n{choice}\n"
        f"  memref.store %one, {name}[%n] : memref<4xf32>"
    )
    module = parse_module(text)
    verify(module)
    x = np.zeros(4, np.float32)
    Interpreter(module).call("main", [x, 2])
    assert x.tolist() == [0, 0, 1, 0]
    for checked in (True, False):
        with pytest.raises(LoweringError, match=r"chosen at run time|cannot be followed"):
            compile_function(module, checked=checked)


def test_constants_beyond_memory():
    zeros = function(
        "  %0 = memref.get_global @g : memref<100000000000000xf32>\n"
        "  %1 = memref.load %0[%n] : memref<100000000000000xf32>\n  memref.store %1, %x[%n] : memref<4xf32>",
        'memref.global "private" @g : memref<100000000000000xf32> = dense<0.0>',
    )
    with pytest.raises(MemoryError, match=r"no memory for the .* bytes of 'main'"):
        compile_function(parse_module(zeros), checked=True)


def test_what_is_checked_is_verified_first():
    """A view that claims more than its source has."""
    text = function(
        "  %0 = memref.subview %x[0] [%n] [1] : memref<4xf32> to memref<100xf32, strided<[1]>>\n"
        "  %1 = memref.load %0[%n] : memref<100xf32, strided<[1]>>\n  memref.store %1, %x[%n] : memref<4xf32>"
    )
    with pytest.raises(VerifyError, match="expects the result type"):
        compile_function(parse_module(text), checked=True)


def test_a_call_of_what_is_not_defined_reaches_no_library_unchecked_either():
    with pytest.raises(LoweringError, match="'@exit', which this module does not define"):
        compile_function(parse_module(REFUSED["a library's function"][0]))


def test_lies_about_loops_are_dropped():
    """Attributes by which passes tell each other what they know, in a text that claims them for itself."""
    text = """
    func.func private @k(%x: memref<4xf32>, %n: index) attributes {nablair.kernel, nablair.noalias, nablair.readonly = array<i64: 0>, schedule = {vector = [[0, 8]]}} {
      %one = arith.constant 1.0 : f32
      scf.forall (%i) in (%n) {
        memref.store %one, %x[%i] {nontemporal = true} : memref<4xf32>
      } {axis = 0 : i64, nablair.worker}
      return
    }
    func.func @main(%x: memref<4xf32>, %n: index) {
      func.call @k(%x, %n) : (memref<4xf32>, index) -> ()
      return
    }
    """  # noqa: E501
    executable = compile_function(parse_module(text), checked=True)
    x = np.zeros(16, np.float32)
    executable.run([x[:4], np.asarray(4)])
    with pytest.raises(CheckError):
        executable.run([x[:4], np.asarray(9)])
    assert x.tolist() == [1] * 4 + [0] * 12


def test_proven_loops_stay_as_they_are():
    """Programs from the tensor level, of known sizes, are compiled as without checks."""
    root = Path(__file__).parents[3]
    for name in ("chain", "matmul"):
        text = (root / "docs" / "programs" / f"{name}.mlir").read_text()
        plain, checked = (compile_function(parse_module(text), checked=c) for c in (False, True))
        assert getattr(plain, "text", "") == getattr(checked, "text", None)


def test_buffers_are_changed_in_place():
    text = function("  %one = arith.constant 1.0 : f32\n  memref.store %one, %x[%n] : memref<4xf32>")
    executable = compile_function(parse_module(text), checked=True)
    x = np.zeros(4, np.float32)
    assert executable.run([x, np.asarray(2)]) == [] and x.tolist() == [0, 0, 1, 0]
    for wrong in (np.zeros(8, np.float32)[::2], np.broadcast_to(np.float32(0), 4)):
        with pytest.raises(Error, match="changed in place"):
            executable.run([wrong, np.asarray(2)])


def test_assertions_in_text():
    text = 'func.func @main(%x: memref<4xf32>, %c: i1) {\n  cf.assert %c, "a \\"reason\\""\n  return\n}'
    module = parse_module(text)
    PassManager.parse("canonicalize,cse").run(module)
    assert "call void @free" not in emit_module(module)
    executable = compile_function(module)
    x = np.zeros(4, np.float32)
    executable.run([x, np.asarray(True)])
    with pytest.raises(CheckError, match='a "reason"'):
        executable.run([x, np.asarray(False)])

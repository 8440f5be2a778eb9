"""Devices beside the CPU: every row of the op table on OpenCL and on the PTX emulator, and the host programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_rows import Case, cases, larger_cases, other_elements, special_cases
from program_checks import assert_bounded, useful_programs

from nablair.ir.diagnostics import DeviceError, LoweringError, ShapeError
from nablair.ir.parser import parse_module
from nablair.ir.types import BF16, F16, F32, F64
from nablair.passes.schedules import gpu as schedules
from nablair.runtime.compile import compile_function, lower
from nablair.runtime.devices import cuda, device_names, get_device, opencl
from nablair.runtime.devices.cuda import CudaDevice
from nablair.runtime.devices.cuda_driver import CudaDriver
from nablair.runtime.devices.pocl import prelude
from nablair.runtime.devices.ptx_sim import SimulatedLibrary
from nablair.runtime.devices.simulated import SimulatedCommands, SimulatedDevice
from nablair.runtime.host_program import HostExecutable

needs_opencl = pytest.mark.skipif(not opencl.count(), reason="no OpenCL device")
GROUP = 24
"""Functions in one OpenCL program: a program is dear to build, and in a large one each kernel is."""


def on_opencl(chosen: list[Case], optimize: bool = False) -> list[str]:
    """What OpenCL gets wrong."""
    device = opencl.OpenCLDevice()
    if not optimize:
        # Half of the time goes into optimizations that the results must not depend on.
        device.options = [*device.options, "-cl-opt-disable"]
    wrong: list[str | None] = []
    for start in range(0, len(chosen), GROUP):
        group = chosen[start : start + GROUP]
        for case, executable in zip(group, device.build_all([c.lowered(device) for c in group]), strict=True):
            wrong.append(case.complaint(executable.run(case.arrays)))
    return [w for w in wrong if w]


def on_simulator(chosen: list[Case]) -> list[str]:
    """What the emulator gets wrong."""
    device = SimulatedDevice()
    results = [(c, device.build(*c.lowered(device)).run(c.arrays)) for c in chosen]
    return [w for c, found in results if (w := c.complaint(found))]


@needs_opencl
@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_every_row_on_opencl(element):
    assert on_opencl(cases([element])) == []


@needs_opencl
def test_other_element_types_on_opencl():
    assert on_opencl(cases(other_elements(), lambda i: i % 8 == 0)) == []


@needs_opencl
def test_optimized_programs_agree():
    assert on_opencl(cases([F32], lambda i: i % 8 == 0), optimize=True) == []


@needs_opencl
@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_special_values_on_opencl(element):
    assert on_opencl(special_cases(element)) == []


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_every_row_on_the_simulator(element):
    assert on_simulator(cases([element])) == []


def test_other_element_types_on_the_simulator():
    assert on_simulator(cases(other_elements(), lambda i: i % 3 == 0)) == []


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_special_values_on_the_simulator(element):
    assert on_simulator(special_cases(element)) == []


@needs_opencl
@pytest.mark.parametrize("element", [F32, F16], ids=str)
def test_blocks_and_tiles_on_opencl(element):
    assert on_opencl(larger_cases(element)[:: 1 if element is F32 else 3]) == []


@pytest.mark.parametrize("element", [F32, F64, F16, BF16], ids=str)
def test_blocks_and_tiles_on_the_simulator(element):
    assert on_simulator(larger_cases(element)) == []


# Host programs.

SYMBOLIC = """
func.func @main(%x: tensor<?x5xf32, ["n"]>, %b: tensor<5xf32>) -> (tensor<?x5xf32, ["n"]>, tensor<5xf32>) {
  %s = elementwise.add %x, %b : tensor<?x5xf32, ["n"]>, tensor<5xf32> -> tensor<?x5xf32, ["n"]>
  %r = linalg.reduce_sum %s {axes = [0]} : tensor<?x5xf32, ["n"]> -> tensor<5xf32>
  return %s, %r : tensor<?x5xf32, ["n"]>, tensor<5xf32>
}
"""
TWO_STEPS = """
func.func @main(%x: tensor<40x30xf32>, %w: tensor<30x20xf32>, %v: tensor<20x10xf32>) -> tensor<40x10xf32> {
  %h = linalg.matmul %x, %w : tensor<40x30xf32>, tensor<30x20xf32> -> tensor<40x20xf32>
  %m = linalg.reduce_max %h {axes = [0]} : tensor<40x20xf32> -> tensor<20xf32>
  %s = elementwise.sub %h, %m : tensor<40x20xf32>, tensor<20xf32> -> tensor<40x20xf32>
  %y = linalg.matmul %s, %v : tensor<40x20xf32>, tensor<20x10xf32> -> tensor<40x10xf32>
  return %y : tensor<40x10xf32>
}
"""
COPIES = """
func.func @main(%x: tensor<3x2xi32>) -> (tensor<3x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>) {
  %c = array.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>
  return %x, %c, %c : tensor<3x2xi32>, tensor<2x2xi32>, tensor<2x2xi32>
}
"""
DEVICES = [pytest.param("opencl", marks=needs_opencl), "ptx-sim"]


def run(text: str, device: str, *arrays: np.ndarray) -> list[np.ndarray]:
    """Compile and run a text."""
    return compile_function(parse_module(text), device=device).run(arrays)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 7, 300])
def test_one_executable_serves_all_sizes(device, n):
    x = np.arange(n * 5, dtype=np.float32).reshape(n, 5)
    b = np.ones(5, np.float32)
    s, r = run(SYMBOLIC, device, x, b)
    np.testing.assert_array_equal(s, x + b)
    np.testing.assert_array_equal(r, (x + b).sum(0))


@pytest.mark.parametrize("device", DEVICES)
def test_a_symbol_has_one_size(device):
    text = 'func.func @main(%x: tensor<?xf32, ["n"]>, %y: tensor<?xf32, ["n"]>) -> tensor<?xf32, ["n"]> {'
    text += '%z = elementwise.add %x, %y : tensor<?xf32, ["n"]> return %z : tensor<?xf32, ["n"]> }'
    with pytest.raises(ShapeError, match="n"):
        run(text, device, np.zeros(3, np.float32), np.zeros(4, np.float32))


@pytest.mark.parametrize("device", DEVICES)
def test_temporaries_pass_between_kernels(device):
    random = np.random.default_rng(0)
    x, w, v = (random.integers(-3, 4, s).astype(np.float32) for s in ((40, 30), (30, 20), (20, 10)))
    (y,) = run(TWO_STEPS, device, x, w, v)
    np.testing.assert_array_equal(y, (x @ w - (x @ w).max(0)) @ v)


@pytest.mark.parametrize("device", DEVICES)
def test_arguments_and_constants_are_copied(device):
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    executable = compile_function(parse_module(COPIES), device=device)
    for _ in range(2):
        copied, first, second = executable.run([x])
        np.testing.assert_array_equal(copied, x)
        np.testing.assert_array_equal(first, [[1, 2], [3, 4]])
        np.testing.assert_array_equal(second, first)


def test_the_simulator_frees_what_it_allocates():
    executable = compile_function(parse_module(TWO_STEPS), device="ptx-sim")
    assert isinstance(executable, HostExecutable) and isinstance(executable.commands, SimulatedCommands)
    executable.run([np.zeros(shape, np.float32) for shape in ((40, 30), (30, 20), (20, 10))])
    assert executable.commands.memory.allocations == []


def test_a_large_local_is_a_buffer_of_the_host():
    text = """
    func.func @main(%x: tensor<3x1500xf32>) -> tensor<3x1500xf32> {
      %y = linalg.softmax %x {axis = 1} : tensor<3x1500xf32>
      return %y : tensor<3x1500xf32>
    }
    """
    x = np.random.default_rng(1).normal(size=(3, 1500)).astype(np.float32)
    (y,) = run(text, "ptx-sim", x)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)


# Memory traffic.


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("%y = elementwise.exp %x : tensor<96x100xf32>", 4),
        ("%y = elementwise.add %x, %x : tensor<96x100xf32>", 4),
        ("%t = elementwise.relu %x : tensor<96x100xf32> %y = elementwise.mul %t, %x : tensor<96x100xf32>", 4),
    ],
)
def test_elementwise_kernels_move_the_fewest_sectors(text, nbytes):
    module = parse_module(
        f"func.func @main(%x: tensor<96x100xf32>) -> tensor<96x100xf32> {{ {text} return %y : tensor<96x100xf32> }}"
    )
    device = SimulatedDevice(profile=True)
    executable = device.build(*Case.of(module, device))
    executable.run([np.ones((96, 100), np.float32)])
    assert isinstance(executable.commands, SimulatedCommands)
    ((_, counters),) = executable.commands.counters
    assert counters.global_load_sectors == 96 * 100 * nbytes // 32
    assert counters.global_store_sectors == 96 * 100 * nbytes // 32


# The CUDA driver, on the emulator's stand-in.


def test_the_cuda_device_runs_over_a_driver():
    device = CudaDevice(driver=CudaDriver(SimulatedLibrary()))
    assert device.target.features == ("sm_80",)
    for case in cases([F32], lambda i: i % 10 == 0):
        assert case.complaint(device.build(*case.lowered(device)).run(case.arrays)) is None


def test_the_cuda_device_copies_on_the_device():
    device = CudaDevice(driver=CudaDriver(SimulatedLibrary()))
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    found = device.build(*Case.of(parse_module(COPIES), device)).run([x])
    np.testing.assert_array_equal(found[0], x)


@pytest.mark.skipif(bool(cuda.count()), reason="there is a CUDA device")
def test_without_a_driver_cuda_says_what_to_do():
    assert not any(name.startswith("cuda") for name in device_names())
    with pytest.raises(DeviceError, match=r"no CUDA driver: cannot load libcuda.so.1 .*use device="):
        get_device("cuda:0")


# OpenCL drivers.


@needs_opencl
def test_without_a_linker_pocl_is_not_used(monkeypatch):
    monkeypatch.setattr(opencl.shutil, "which", lambda name: None)
    with pytest.raises(DeviceError, match="linker `ld`"):
        opencl.OpenCLDevice()


@needs_opencl
def test_a_refused_program_names_the_line():
    with pytest.raises(LoweringError, match=r"line 3: .*undeclared.*`p\[0\] = nothing;`"):
        opencl.OpenCLDevice().program("__kernel\nvoid f(__global float* p) {\n  p[0] = nothing;\n}\n")


@needs_opencl
def test_devices_that_are_not_there():
    with pytest.raises(DeviceError, match="OpenCL device 99 of"):
        opencl.OpenCLDevice(99)


# Text.


def test_the_text_of_each_target():
    module = parse_module(SYMBOLIC)
    assert ".entry main_k0" in str(lower(module, "cpu", "ptx"))
    if opencl.count():
        assert "__kernel" in str(lower(module, "cpu", "opencl"))


def test_pocl_gets_only_the_functions_that_a_program_calls():
    assert prelude("y = x + 1.0f;") == ""
    text = prelude("y = fma(x, x, x);")
    assert "builtin_fma(float a, float b, float c)" in text and "double" not in text and "sqrt" not in text
    assert text.endswith("#line 1\n")
    assert "double builtin_sqrt(double a)" in prelude("const double y = sqrt(x);")


# Generated programs.


@pytest.mark.parametrize("small", [False, True], ids=["as planned", "blocks for short folds"])
def test_generated_programs_on_the_simulator(small, monkeypatch):
    device = SimulatedDevice()
    if small:
        monkeypatch.setattr(schedules, "STEPS", 1)
        device.target = replace(device.target, warp=2, resident_threads=1 << 20)
    for number, program in enumerate(useful_programs(range(100, 125))):
        found = device.build(*Case.of(program.module, device)).run(program.arrays)
        assert_bounded(found, program, f"program {number}")


@needs_opencl
def test_generated_programs_on_opencl():
    device = opencl.OpenCLDevice()
    device.options = [*device.options, "-cl-opt-disable"]
    programs = useful_programs(range(200, 210))
    executables = device.build_all([Case.of(p.module, device) for p in programs])
    for number, (program, executable) in enumerate(zip(programs, executables, strict=True)):
        assert_bounded(executable.run(program.arrays), program, f"program {number}")

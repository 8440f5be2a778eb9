"""Generated programs give the same on every device: what the interpreter computes and what each device computes lie
within the error bounds of the exact results; integers and bools are equal.

The OpenCL programs are built as one, since a driver takes far longer to start than to compile.
"""

from __future__ import annotations

import random as stdlib_random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from program_checks import assert_bounded, run, tries, useful_programs
from programs import Program, grow, programs, symbolic

from nablair.ir.types import BF16, F16, F64
from nablair.runtime.compile import compile_function, lowered_module, signature
from nablair.runtime.devices import get_device
from nablair.runtime.devices.opencl import count as opencl_count

pytestmark = pytest.mark.fuzz

EXAMPLES = {
    "interpreter": 100,
    "cpu": 200,
    "ptx-sim": 150,
    "opencl": 50,
    "element types": 25,
    "symbolic": 75,
}
"""How many programs each device is tried on."""


def inputs(program: Program) -> list[Any]:
    """The inputs as contiguous arrays (0-d ones stay so)."""
    return [np.array(a, order="C") for a in program.arrays]


def check_device(program: Program, device: str) -> None:
    """A device computes what the program means."""
    assert_bounded(compile_function(program.module, "main", device).run(inputs(program)), program, device)


@tries(EXAMPLES["interpreter"])
@given(programs())
def test_interpreter(program: Program) -> None:
    assume(program.is_useful)
    assert_bounded(run(program.module, program), program, "interpreter")


@tries(EXAMPLES["cpu"])
@given(programs())
def test_cpu(program: Program) -> None:
    assume(program.is_useful)
    check_device(program, "cpu")


@tries(EXAMPLES["ptx-sim"])
@given(programs())
def test_simulated_gpu(program: Program) -> None:
    assume(program.is_useful)
    check_device(program, "ptx-sim")


@pytest.mark.parametrize("device", ["cpu", "ptx-sim"])
@pytest.mark.parametrize("element", [F64, F16, BF16], ids=str)
def test_element_types(element: Any, device: str) -> None:
    """Programs whose floats are all, or start as, of one type."""
    for program in useful_programs(range(EXAMPLES["element types"]), lambda random: grow(random, element=element)):
        check_device(program, device)


@pytest.mark.skipif(opencl_count() == 0, reason="no OpenCL device")
def test_opencl() -> None:
    device: Any = get_device("opencl")
    found = useful_programs(range(1000, 1000 + EXAMPLES["opencl"]))
    functions = [
        (lowered_module(p.module, device.target, device.pipeline), "main", *signature(p.module, "main")) for p in found
    ]
    for executable, program in zip(device.build_all(functions), found, strict=True):
        assert_bounded(executable.run(inputs(program)), program, "opencl")


def test_results_do_not_depend_on_the_seed_of_the_interpreter() -> None:
    """The points of a kernel may run in any order."""
    for program in useful_programs(range(20), lambda random: grow(random, small=True)):
        lowered = lowered_module(program.module, get_device("cpu").target, "kernel,bufferize,lower-to-loops")
        expected = run(lowered, program)
        for a, b in zip(run(lowered, program, seed=stdlib_random.Random(1).randrange(100)), expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("device", ["cpu", "ptx-sim"])
def test_sizes_known_at_run_time_only(device: str) -> None:
    """The same programs with a symbol for one of their extents."""
    tried = 0
    for seed in range(EXAMPLES["symbolic"]):
        program = grow(stdlib_random.Random(seed), small=True)
        extents = sorted({d for a in program.arrays for d in a.shape if d > 1})
        found = symbolic(program, extents[seed % len(extents)]) if extents and program.is_useful else None
        if found is not None:
            results = compile_function(found.module, "main", device).run(inputs(found))
            assert_bounded(results, program, device)
            tried += 1
    assert tried >= EXAMPLES["symbolic"] // 3

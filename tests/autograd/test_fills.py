"""Filled arrays: loops over memory, whatever their size, and numbers where a kernel uses them; sizes are checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag
from nablair.ir.parser import parse_module
from nablair.runtime.compile import compile_function, lower

DEVICES = ["cpu", "opencl:0", "ptx-sim"]
DTYPES = ["bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float32", "float64"]


def drawn(seed: int) -> tuple[str, tuple[int, ...], Any]:
    """A dtype, a shape and a number of the dtype."""
    draw = np.random.default_rng(seed)
    dtype = str(draw.choice(DTYPES))
    shape = tuple(int(n) for n in draw.choice([0, 1, 2, 7, 33, 100], draw.integers(0, 4)))
    value: Any = bool(draw.integers(2)) if dtype == "bool" else int(draw.choice([0, 1, 3, 100]))
    return dtype, shape, value


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("seed", range(cases(4)))
def test_fills_of_any_shape_and_dtype(seed: int, device: str) -> None:
    dtype, shape, value = drawn(seed)
    one = ag.asarray(np.ones(1, np.float32), device=device)

    def fill(x: ag.Tensor) -> Any:
        whole = ag.full(shape, value, dtype=dtype, device=device)
        padded = ag.pad(whole, 1, constant_values=1)
        return whole, padded, ag.where(x > 0, whole, whole)

    wanted = np.full(shape, value, ag.full((), value, dtype=dtype).dtype.numpy)
    for whole, padded, chosen in (fill(one), ag.jit(fill)(one)):
        assert whole.dtype.name == dtype and whole.shape == shape
        np.testing.assert_array_equal(whole.numpy(), wanted)
        np.testing.assert_array_equal(padded.numpy(), np.pad(wanted, 1, constant_values=1))
        np.testing.assert_array_equal(chosen.numpy(), np.broadcast_to(wanted, chosen.shape))


@pytest.mark.parametrize("stage", ["kernel", "loop", "llvm", "opencl", "ptx"])
def test_the_program_of_a_fill_does_not_grow_with_its_size(stage: str) -> None:
    def text(n: int) -> str:
        def f(x: ag.Tensor) -> Any:
            filled = ag.index_add(ag.ones((n, 2)), ag.asarray([0, 1]), ag.ones((2, 2)))
            return ag.full(n, 2.5), filled, ag.pad(ag.ones(n), 1), ag.concat([ag.zeros(n), x])

        return ag.jit(f).lower(ag.asarray(np.ones(3, np.float32))).as_text(stage)

    assert abs(len(text(10_000_000)) - len(text(10_000))) < 2000


def test_a_filled_constant_in_text_is_a_loop() -> None:
    fill = "%0 = array.constant dense<1.5> : tensor<100000xf32>\n return %0 : tensor<100000xf32>"
    module = parse_module(f"func.func @main() -> tensor<100000xf32> {{\n{fill}\n}}")
    assert "memref.global" not in str(lower(module, "cpu", "loop"))
    (found,) = compile_function(module).run([])
    np.testing.assert_array_equal(found, np.full(100000, 1.5, np.float32))


HUGE: dict[str, Callable[[], Any]] = {
    "zeros": lambda: ag.zeros(2**80),
    "ones": lambda: ag.ones((2**40, 2**40)),
    "full": lambda: ag.full((2**21, 2**21, 2**21), 1.0),
    "empty": lambda: ag.zeros(2**60),
    "arange": lambda: ag.arange(2**70),
    "linspace": lambda: ag.linspace(0.0, 1.0, 2**62),
    "eye": lambda: ag.eye(2**40),
    "broadcast_to": lambda: ag.broadcast_to(ag.ones(1), (2**40, 2**40)),
    "add": lambda: ag.zeros((2**40, 1)) + ag.zeros((1, 2**40)),
    "concat": lambda: ag.concat([ag.zeros(2**59), ag.zeros(2**59), ag.zeros(2**59)]),
    "pad": lambda: ag.pad(ag.zeros(3), 2**61),
}


@pytest.mark.parametrize("name", sorted(HUGE))
def test_sizes_that_no_array_has_are_refused_at_once(name: str) -> None:
    word = "zeros" if name == "empty" else name
    for call in (HUGE[name], lambda: ag.jit(lambda x: (HUGE[name](), x)[0])(ag.ones(1))):
        with pytest.raises(nablair.ShapeError, match=rf"{word}: .*(2\*\*62|64 bits)") as error:
            call()
        assert error.value.location is not None


@pytest.mark.parametrize("device", DEVICES)
def test_sizes_beyond_memory_are_memory_errors(device: str) -> None:
    with pytest.raises(MemoryError, match="cannot allocate"):
        ag.zeros(2**45, device=device).numpy()
    with pytest.raises(MemoryError, match="cannot allocate"):
        ag.jit(lambda x: ag.ones(2**45) + x)(ag.asarray([1.0], device=device))

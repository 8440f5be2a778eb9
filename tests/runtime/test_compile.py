"""The compiler driver: its cache, its stages, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from nablair.ir.diagnostics import Error, PassError
from nablair.ir.parser import parse_module
from nablair.runtime import compile as driver
from nablair.runtime.compile import cache_statistics, clear_cache, compile_function, lower

ADD = """
func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>) -> tensor<5xf32> {
  %z = elementwise.add %x, %y : tensor<5xf32>
  return %z : tensor<5xf32>
}
"""


@pytest.fixture(autouse=True)
def empty_cache():
    clear_cache()


def since(before: driver.Statistics) -> tuple[int, int, int]:
    """Hits, misses and compiles since then."""
    now = cache_statistics()
    return now.hits - before.hits, now.misses - before.misses, now.compiles - before.compiles


def test_names_and_locations_are_not_in_the_key():
    before = cache_statistics()
    first = compile_function(parse_module(ADD, "a.mlir"))
    again = compile_function(parse_module(ADD.replace("%z", "%sum").replace("%x", "%left"), "b.mlir"))
    assert first is again and since(before) == (1, 1, 1)
    compile_function(parse_module(ADD.replace("5", "6")))
    compile_function(parse_module(ADD.replace("add", "sub")))
    assert since(before) == (1, 3, 3)


def test_another_device_compiles_again():
    before = cache_statistics()
    x = np.arange(5, dtype=np.float32)
    made = [compile_function(parse_module(ADD), device=device) for device in ("cpu", "ptx-sim")]
    assert since(before) == (0, 2, 2)
    for executable in made:
        np.testing.assert_array_equal(executable.run([x, x])[0], 2 * x)


def test_the_cache_forgets_what_was_not_used_for_longest(monkeypatch):
    monkeypatch.setattr(driver, "CACHE_SIZE", 2)
    a, b, c = (parse_module(ADD.replace("5", size)) for size in ("2", "3", "4"))
    for module in (a, b, a, c):
        compile_function(module)
    before = cache_statistics()
    compile_function(a)
    assert since(before) == (1, 0, 0)
    compile_function(b)
    assert since(before) == (1, 1, 1)


def test_the_module_stays_as_it_is():
    module = parse_module(ADD)
    text = str(module)
    compile_function(module)
    for stage in ("tensor", "kernel", "loop", "llvm"):
        lower(module, "cpu", stage)
    assert str(module) == text


def test_stages():
    module = parse_module(ADD)
    assert "elementwise.add" in str(lower(module, "cpu", "tensor"))
    assert "kernel.launch" in str(lower(module, "cpu", "kernel"))
    loop = str(lower(module, "cpu", "loop"))
    assert "memref" in loop and "kernel.launch" not in loop
    assert "fadd" in str(lower(module, "cpu", "llvm"))
    assert "add" in str(lower(module, "cpu", "asm"))
    with pytest.raises(Error, match="unknown stage 'hlo'; there are: trace, tensor, kernel, loop, llvm"):
        lower(module, "cpu", "hlo")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @f() { return }", "the module has no function '@main'"),
        (
            "func.func @main(%x: memref<2xf32, strided<[2]>>) { return }",
            "'@main' takes a memref<2xf32, strided<[2]>>; tensors and scalars pass from host to device",
        ),
        (
            "func.func @main(%x: f32) -> f32 { return %x : f32 }",
            "'@main' gives a f32; only tensors pass from device to host",
        ),
    ],
)
def test_what_cannot_be_called_is_refused(text, message):
    with pytest.raises(PassError) as caught:
        compile_function(parse_module(text))
    assert message in str(caught.value)

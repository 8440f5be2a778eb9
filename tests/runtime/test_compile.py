"""The compiler driver: its cache, its stages, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from fuzzing import cases

from nablair.ir.bounded_cache import BoundedCache
from nablair.ir.builders import sizes
from nablair.ir.diagnostics import Error, PassError, ShapeError
from nablair.ir.interpreter.machine import Interpreter
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


def since(before: driver.CompileStatistics) -> tuple[int, int, int]:
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
    monkeypatch.setattr(driver, "_cache", BoundedCache(2))
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


def drawn_size(rng: np.random.Generator, depth: int = 2) -> sizes.Size:
    """An extent that is computed from n and m."""
    if depth == 0 or rng.random() < 0.2:
        return ("n", "m", int(rng.integers(1, 4)))[rng.integers(3)]
    a, b = drawn_size(rng, depth - 1), drawn_size(rng, depth - 1)
    return (
        sizes.plus(a, b),
        sizes.minus(a, b),
        sizes.times(a, b),
        sizes.largest(a, b),
        sizes.quotient(a, int(rng.integers(2, 4))),
    )[rng.integers(5)]


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(cases(8)))
def test_computed_extents_of_arguments_are_what_their_symbols_give(seed: int):
    rng = np.random.default_rng(seed)
    known = {name: int(rng.integers(1, 7)) for name in "nm"}
    extent = sizes.plus(drawn_size(rng), "n" if seed % 2 else "m", 1)
    while isinstance(extent, int) or sizes.is_symbol(extent) or sizes.evaluate(extent, known) < 1:
        extent = sizes.plus(drawn_size(rng), "n", 1)
    n, m, y = (f'tensor<?xf32, ["{size}"]>' for size in ("n", "m", extent))
    order = rng.permutation(3)
    arguments = ", ".join((f"%n: {n}", f"%m: {m}", f"%y: {y}")[i] for i in order)
    text = f"func.func @main({arguments}) -> {y} {{\n  %0 = elementwise.add %y, %y : {y}\n  return %0 : {y}\n}}"
    module = parse_module(text)
    runs = [lambda given: Interpreter(module).call("main", given)]
    runs += [compile_function(module, device=device).run for device in ("cpu", "ptx-sim", "opencl:0")]
    runs += [compile_function(module, checked=True).run]
    right = [known["n"], known["m"], sizes.evaluate(extent, known)]
    for run in runs:
        (result,) = run([np.ones(right[i], np.float32) for i in order])
        np.testing.assert_array_equal(result, np.full(right[2], 2.0))
        wrong = [*right[:2], right[2] + int(rng.choice([-1, 1, 5]))]
        with pytest.raises(ShapeError, match=f"is {wrong[2]}, but .* is "):
            run([np.ones(wrong[i], np.float32) for i in order])


def test_sizes_that_arguments_name_twice_or_not_at_all_are_refused():
    x = np.ones(3, np.float32)
    named = compile_function(
        parse_module(
            'func.func @main(%x: tensor<?xf32, ["n"]>, %n: index) -> tensor<?xf32, ["n"]> {\n'
            '  return %x : tensor<?xf32, ["n"]>\n}'
        )
    )
    assert named.run([x, np.array(3)])[0].tolist() == [1, 1, 1]
    with pytest.raises(ShapeError, match="'n' is a size of 3, and argument 1 is 4"):
        named.run([x, np.array(4)])
    unknown = compile_function(
        parse_module(
            'func.func @main(%x: tensor<?xf32, ["n + 1"]>) -> tensor<?xf32, ["n"]> {\n'
            '  %0 = array.dim %x {axis = 0} : tensor<?xf32, ["n + 1"]>\n'
            "  %1 = arith.constant 1 : index\n"
            "  %2 = arith.subi %0, %1 : index\n"
            "  %3 = array.slice %x(%2) {starts = [0], stops = [-9223372036854775808], steps = [1]}"
            ' : tensor<?xf32, ["n + 1"]> -> tensor<?xf32, ["n"]>\n'
            '  return %3 : tensor<?xf32, ["n"]>\n}'
        )
    )
    with pytest.raises(ShapeError, match="no argument tells the size 'n'"):
        unknown.run([x])

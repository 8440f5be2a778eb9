"""bufferize: destinations, copies, temporaries and their lives."""

from __future__ import annotations

from typing import Any

import kernel_programs as programs
import numpy as np
import pytest
from loop_stages import lowered, on_buffers, parsed, random

from nablair.ir.diagnostics import PassError
from nablair.ir.dialects import kernel, memref
from nablair.ir.dialects.func import Func
from nablair.ir.parser import parse_module
from nablair.passes.manager import PassManager

HEAD = "func.func @main(%x: tensor<4xf32>) -> "
NEG = """ = kernel.launch (%i) in (4) ins(%SRC : tensor<4xf32>) outs(%DST : tensor<4xf32>) {
    %0 = kernel.load %SRC[%i]
    %1 = arith.negf %0 : f32
    kernel.store %1, %DST[%i]
  }
"""


def neg(source: str, target: str) -> str:
    """%target = -%source."""
    return f"  %{target}" + NEG.replace("SRC", source).replace("DST", target)


def bufferized(text: str) -> Any:
    module = parse_module(text)
    PassManager.parse("bufferize").run(module)
    return module


def ops(module: Any, cls: type) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, cls)]


def test_a_result_is_written_where_it_goes() -> None:
    module = bufferized(HEAD + "tensor<4xf32> {\n" + neg("x", "y") + "  return %y : tensor<4xf32>\n}")
    (function,) = ops(module, Func)
    assert [str(a.type) for a in function.arguments] == ["memref<4xf32>"] * 2
    assert not ops(module, memref.Alloc) and not ops(module, memref.Copy)


@pytest.mark.parametrize("returned", ["%x", "%y, %y"])
def test_what_is_returned_twice_or_came_in_is_copied(returned: str) -> None:
    count = returned.count("%")
    types = ", ".join(["tensor<4xf32>"] * count)
    body = neg("x", "y") if "y" in returned else ""
    module = bufferized(f"{HEAD}({types}) {{\n{body}  return {returned} : {types}\n}}")
    assert len(ops(module, memref.Copy)) == 1
    x = random(4)
    for found in on_buffers(module, [x], [(4,)] * count):
        assert found.tolist() == (-x if "y" in returned else x).tolist()


def test_constants_live_with_the_module() -> None:
    text = (
        HEAD
        + """tensor<4xf32> {
  %c = array.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %y = elementwise.add %x, %c : tensor<4xf32>
  return %y : tensor<4xf32>
}"""
    )
    module = lowered(parsed(text), "kernel,bufferize")
    assert len(ops(module, memref.Global)) == 1
    (y,) = on_buffers(module, [np.ones(4, np.float32)], [(4,)])
    assert y.tolist() == [2, 3, 4, 5]


def test_dynamic_temporaries_have_the_extents_of_their_launch() -> None:
    text = programs.squares("m", "n")
    module = lowered(parsed(text), "kernel,bufferize")
    x, y = random(3, 5), random(3, 5, seed=1)
    d, a, c, r = on_buffers(module, [x, y], [(3, 5), (), (5,), (3,)])
    np.testing.assert_allclose(d, x - y)
    for found, axes in ((a, (0, 1)), (c, 0), (r, 1)):
        np.testing.assert_allclose(found, np.square(x - y).sum(axes), rtol=1e-5)


def test_ops_that_are_no_kernels_are_an_error() -> None:
    with pytest.raises(PassError, match=r"elementwise\.neg' is not a kernel; lower-to-kernels and inline run first"):
        bufferized(HEAD + "tensor<4xf32> {\n  %y = elementwise.neg %x : tensor<4xf32>\n  return %y : tensor<4xf32>\n}")


def test_a_temporary_with_symbolic_extents_takes_those_of_inner_loops_from_outside() -> None:
    """The columns of the first softmax are a sweep, whose extent is an argument of the launch."""
    text = """func.func @main(%x: tensor<?x?xf32, ["n", "m"]>) -> tensor<?x?xf32, ["n", "m"]> {
      %y = linalg.softmax %x {axis = 0} : tensor<?x?xf32, ["n", "m"]>
      %z = linalg.softmax %y {axis = 1} : tensor<?x?xf32, ["n", "m"]>
      return %z : tensor<?x?xf32, ["n", "m"]>
    }"""
    module = parse_module(text)
    PassManager.parse("kernel,bufferize").run(module)
    (temporary,) = ops(module, memref.Alloc)
    main = module.symbol("main")
    assert isinstance(main, Func)
    assert all(size.block is main.entry for size in temporary.sizes)


LARGE = "tensor<8192xf32>"
SHIFT = """  %z = kernel.launch (%i) in (4) ins(%y : tensor<4xf32>) outs(%z : tensor<4xf32>) {
    %0 = kernel.load %y[-%i + 3]
    kernel.store %0, %z[%i]
  }
"""


def test_a_dying_temporary_takes_what_is_stored_where_it_is_read() -> None:
    text = HEAD + "tensor<4xf32> {\n" + neg("x", "t") + neg("t", "u") + neg("u", "y") + "  return %y : tensor<4xf32>\n}"
    module = bufferized(text)
    assert len(ops(module, memref.Alloc) + ops(module, memref.Alloca)) == 1
    x = random(4)
    assert on_buffers(module, [x], [(4,)])[0].tolist() == (-x).tolist()


def test_what_is_read_elsewhere_is_not_overwritten() -> None:
    text = HEAD + "tensor<4xf32> {\n" + neg("x", "y") + SHIFT + neg("z", "w") + "  return %w : tensor<4xf32>\n}"
    module = bufferized(text)
    x = random(4)
    assert on_buffers(module, [x], [(4,)])[0].tolist() == x[::-1].tolist()
    assert len(ops(module, memref.Alloc) + ops(module, memref.Alloca)) == 2


def test_large_temporaries_come_from_the_heap_and_go_back() -> None:
    text = (HEAD + "tensor<4xf32> {\n" + neg("x", "t") + neg("t", "y") + "  return %y : tensor<4xf32>\n}").replace(
        "tensor<4xf32>", LARGE
    )
    text = text.replace("in (4)", "in (8192)")
    module = bufferized(text)
    (made,) = ops(module, memref.Alloc)
    (freed,) = ops(module, memref.Dealloc)
    assert freed.memref is made.result
    assert isinstance(freed.prev, kernel.Launch)


def test_what_is_read_after_a_store_is_not_overwritten() -> None:
    both = """  %u, %v = kernel.launch (%i) in (4) ins(%x : tensor<4xf32>, %t : tensor<4xf32>)
      outs(%u : tensor<4xf32>, %v : tensor<4xf32>) {
    %0 = kernel.load %x[%i]
    kernel.store %0, %u[%i]
    %1 = kernel.load %t[%i]
    kernel.store %1, %v[%i]
  }
"""
    text = HEAD + "(tensor<4xf32>, tensor<4xf32>) {\n" + neg("x", "t") + both + neg("u", "w")
    module = bufferized(text + "  return %w, %v : tensor<4xf32>, tensor<4xf32>\n}")
    x = random(4)
    for found in on_buffers(module, [x], [(4,)] * 2):
        assert found.tolist() == (-x).tolist()

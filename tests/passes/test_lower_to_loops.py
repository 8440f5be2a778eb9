"""lower-to-loops: the naive nest, its annotations, and that it means what the launch means."""

from __future__ import annotations

from typing import Any

import kernel_programs as programs
import numpy as np
import pytest
from loop_stages import lowered, on_buffers, parsed, random

from nablair.ir.diagnostics import PassError
from nablair.ir.dialects import math, memref, scf, vector
from nablair.ir.dialects.func import Call, Func
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.passes.loops import nest
from nablair.runtime.compile import compile_function

LOOPS = "kernel,bufferize,lower-to-loops"


def naive(text: str, option: str = "") -> Any:
    """A program in naive loops."""
    return lowered(parsed(text), LOOPS + option)


def kernels(module: Any) -> list[Func]:
    return list(nest.kernels(module))


def test_points_are_foralls_and_folds_are_fors() -> None:
    (function,) = kernels(naive(programs.matmul(3, 4, 5, epilogue=True)))
    loops = [op for op in function.walk() if isinstance(op, scf.Forall | scf.For)]
    assert [type(op) for op in loops] == [scf.Forall, scf.Forall, scf.For]
    assert [nest.axis_of(op) for op in loops] == [0, 1, 2]
    assert len(loops[2].results) == 1


def test_a_kernel_says_what_it_reads_only() -> None:
    module = naive(programs.chain(3, 4))
    (function,) = kernels(module)
    assert "nablair.noalias" in function.attributes
    assert str(function.attributes["nablair.readonly"]) == "array<i64: 0, 1, 2>"
    assert [op.callee for op in module.walk() if isinstance(op, Call)] == [function.sym_name]


@pytest.mark.parametrize(("option", "fused"), [("", 1), ("{contract=false}", 0)])
def test_products_of_a_sum_contract(option: str, fused: int) -> None:
    module = naive(programs.matmul(3, 4, 5), option)
    assert sum(isinstance(op, math.Fma) for op in module.walk()) == fused


def test_a_product_that_is_used_elsewhere_is_kept() -> None:
    x, y = random(3, 4), random(3, 4, seed=1)
    module = naive(programs.squares(3, 4))
    found = on_buffers(module, [x, y], [(3, 4), (), (4,), (3,)])
    np.testing.assert_allclose(found[1], np.square(x - y).sum(), rtol=1e-5)


def test_axes_over_which_accumulates_meet_are_in_order() -> None:
    (function,) = kernels(naive(programs.squares(3, 4)))
    orders = {nest.axis_of(op): type(op) for op in function.walk() if isinstance(op, scf.Forall | scf.For)}
    assert orders[0] is scf.For
    assert orders[1] is scf.For


def test_locals_are_made_once_for_all_points() -> None:
    (function,) = kernels(naive(programs.softmax(8, 5)))
    (made,) = [op for op in function.walk() if isinstance(op, memref.Alloca)]
    assert made.parent is function.entry


def test_a_tree_is_one_reduction_where_an_op_can_say_it() -> None:
    split = "kernel,plan,split-reduce,bufferize,lower-to-loops"
    module = lowered(parsed(programs.reduced("reduce_sum", 3, 40, 1)), split)
    (fold,) = [op for op in module.walk() if isinstance(op, vector.Reduction)]
    assert "reassoc" in fold.fastmath
    module = lowered(parsed(programs.reduced("argmax", 3, 40, 1)), split)
    assert not any(isinstance(op, vector.Reduction) for op in module.walk())


@pytest.mark.parametrize("rows", [0, 1, 3])
@pytest.mark.parametrize(
    "program", [programs.chain, programs.transposed, programs.softmax, programs.layer_norm, programs.squares]
)
def test_loops_mean_what_the_program_means(program: Any, rows: int) -> None:
    module = parsed(program(rows, 5))
    function = module.symbol("main")
    assert isinstance(function, Func)
    arrays = [random(*t.shape, seed=i) for i, t in enumerate(function.type.inputs)]  # pyright: ignore[reportAttributeAccessIssue]
    expected = Interpreter(module).call("main", arrays)
    found = on_buffers(lowered(module, LOOPS), arrays, [np.shape(e) for e in expected])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_two_locals_that_want_an_out_get_one_each() -> None:
    """Both rows of exponentials are dear; sharing the memory of one out would mix them."""
    tensor = 'tensor<?x?xf32, ["n", "m"]>'
    text = f"""func.func @main(%x: {tensor}) -> ({tensor}, {tensor}) {{
      %y = linalg.softmax %x {{axis = 0}} : {tensor}
      %z = linalg.softmax %y {{axis = 0}} : {tensor}
      return %z, %y : {tensor}, {tensor}
    }}"""
    module = parse_module(text)
    x = np.random.default_rng(5).standard_normal((5, 7)).astype(np.float32)
    expected = Interpreter(module).call("main", [x])
    for got, wanted in zip(compile_function(module).run([x]), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_launches_of_tensors_are_refused() -> None:
    with pytest.raises(PassError, match="run bufferize first"):
        lowered(parsed(programs.chain(3, 4)), "kernel,lower-to-loops")

"""split-reduce: partial folds and trees mean the same fold, and later levels keep its bits."""

from __future__ import annotations

from typing import Any

import kernel_programs as programs
import numpy as np
import pytest
from loop_stages import SMALL, lowered, on_buffers, parsed, random

from nablair.ir.diagnostics import PassError
from nablair.ir.dialects import kernel
from nablair.ir.interpreter.machine import Interpreter
from nablair.passes.schedules.schedule import Schedule


def with_schedule(text: str, schedule: Schedule) -> Any:
    """A program at kernel level whose first launch has a schedule."""
    module = lowered(parsed(text, SMALL), "kernel")
    launch = next(op for op in module.walk() if isinstance(op, kernel.Launch))
    launch.properties["schedule"] = schedule.attribute()
    return module


@pytest.mark.parametrize("columns", [1, 3, 4, 5, 8, 17])
@pytest.mark.parametrize("op", ["reduce_sum", "reduce_max", "argmax"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_lanes(columns: int, op: str, symbolic: bool) -> None:
    text = programs.reduced(op, *(("m", "n") if symbolic else (3, columns)), 1)
    module = with_schedule(text, Schedule(split=((1, 4),)))
    x = random(3, columns)
    (expected,) = Interpreter(module).call("main", [x])
    split = lowered(module, "split-reduce")
    # A fold that is not one whole step stays.
    assert any(isinstance(o, kernel.Reduce) and o.tree for o in split.walk()) == (symbolic or columns >= 4)
    (found,) = Interpreter(split).call("main", [x])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    if op != "argmax":
        (bits,) = on_buffers(lowered(split, "bufferize,lower-to-loops"), [x], [(3,)])
        assert bits.tobytes() == found.tobytes()


def test_argmax_takes_the_first_of_equals_and_nan() -> None:
    module = with_schedule(programs.reduced("argmax", 3, 10, 1), Schedule(split=((1, 4),)))
    x = np.zeros((3, 10), np.float32)
    x[1, 7] = x[1, 3] = 2
    x[2, 5] = x[2, 9] = np.nan
    (found,) = Interpreter(lowered(module, "split-reduce")).call("main", [x])
    assert found.tolist() == [0, 3, 5]


SQUARES = """func.func @main(%x: TX, %y: TX) -> (TX, tensor<f32>, TC) {
  DIMS
  %d, %a, %c = kernel.launch (%i, %j) in (EXTENTS) ins(%x : TX, %y : TX) outs(%d : TX, %a : tensor<f32>, %c : TC)
      schedule {split = [[1, 4]], vector = [[1, 4]]} {
    %0 = kernel.load %x[%i, %j]
    %1 = kernel.load %y[%i, %j]
    %2 = arith.subf %0, %1 : f32
    kernel.store %2, %d[%i, %j]
    %3 = arith.mulf %2, %2 : f32
    kernel.accumulate %3, %a[] by arith.addf
    kernel.accumulate %3, %c[%j] by arith.addf
  }
  return %d, %a, %c : TX, tensor<f32>, TC
}"""


def squares(rows: int, columns: int, symbolic: bool) -> str:
    """x - y with the sum of its squares and that of each column."""
    dims: tuple[int | str, ...] = ("m", "n") if symbolic else (rows, columns)
    sizes = [f"%{d} = array.dim %x {{axis = {i}}} : TX" for i, d in enumerate(dims)] if symbolic else []
    extents = ", ".join(f"%{d}" if symbolic else str(d) for d in dims)
    text = SQUARES.replace("DIMS", "\n  ".join(sizes)).replace("EXTENTS", extents)
    return text.replace("TX", programs.tensor(*dims)).replace("TC", programs.tensor(dims[1]))


@pytest.mark.parametrize("columns", [0, 1, 3, 4, 5, 8, 17])
@pytest.mark.parametrize("symbolic", [False, True])
def test_lanes_of_accumulates(columns: int, symbolic: bool) -> None:
    module = parsed(squares(3, columns, symbolic), SMALL)
    arrays = [random(3, columns), random(3, columns, seed=1)]
    expected = Interpreter(module).call("main", arrays)
    split = lowered(module, "split-reduce")
    assert sum(isinstance(o, kernel.Launch) for o in split.walk()) == 2
    found = Interpreter(split).call("main", arrays)
    for one, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-5)
    loops = lowered(split, "bufferize,lower-to-loops{contract=false},apply-schedule")
    for one, bits in zip(on_buffers(loops, arrays, [f.shape for f in found]), found, strict=True):
        assert one.tobytes() == bits.tobytes()


def test_blocks_of_a_fold_are_points() -> None:
    schedule = Schedule(loops=((0, 4),), map=("worker",))
    module = with_schedule(programs.reduced("reduce_sum", 16, 5, 0, 1), schedule)
    split = lowered(module, "split-reduce")
    first, second = [o for o in split.walk() if isinstance(o, kernel.Launch)]
    assert list(first.extents) == [4]
    assert list(second.extents) == []
    x = random(16, 5)
    np.testing.assert_allclose(Interpreter(split).call("main", [x])[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_blocks_of_accumulates_are_points() -> None:
    module = with_schedule(programs.squares(16, 5), Schedule(chain=((0, 4),)))
    arrays = [random(16, 5), random(16, 5, seed=1)]
    expected = Interpreter(module).call("main", arrays)
    split = lowered(module, "split-reduce")
    assert list(next(o for o in split.walk() if isinstance(o, kernel.Launch)).extents) == [4]
    for found, wanted in zip(Interpreter(split).call("main", arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_the_last_of_blocks_that_do_not_divide_is_shorter() -> None:
    module = with_schedule(programs.reduced("reduce_sum", 15, 5, 0, 1), Schedule(loops=((0, 4),), map=("worker",)))
    split = lowered(module, "split-reduce")
    first, _ = [o for o in split.walk() if isinstance(o, kernel.Launch)]
    assert list(first.extents) == [4]
    x = random(15, 5)
    np.testing.assert_allclose(Interpreter(split).call("main", [x])[0], x.sum(dtype=np.float64), rtol=1e-5)


def test_launches_on_buffers_are_refused() -> None:
    with pytest.raises(PassError, match="before bufferize"):
        lowered(parsed(programs.reduced("reduce_sum", 3, 40, 1), SMALL), "kernel,plan,bufferize,split-reduce")

"""Error bounds: what an op computes in its own type lies within what its class promises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_table import ROWS, Row

from nablair.ir.interfaces import BoundsErrors
from nablair.ir.interpreter.bounds import Bounds
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.support.tensor_op import TensorOp
from nablair.ir.types import BF16, F32, I1, I32


def bounded(row: Row, element: Any) -> bool:
    """Whether all ops of a row bound their errors."""
    ops = [op for op in row.function(element).walk() if isinstance(op, TensorOp)]
    return all(isinstance(op, BoundsErrors) for op in ops)


CASES = [(r, e) for r in ROWS for e in (F32, BF16, I32, I1) if e in r.elements and bounded(r, e)]


@pytest.mark.parametrize(("row", "element"), CASES, ids=[f"{r.id}-{e}" for r, e in CASES])
def test_results_lie_within_their_bounds(row: Row, element: Any) -> None:
    module, arrays = row.module(element), row.arrays(element)
    values, errors = Bounds(module).call("main", arrays)
    for found, value, error in zip(Interpreter(module).call("main", arrays), values, errors, strict=True):
        found = np.asarray(found, np.float64)
        value, error = np.asarray(value, np.float64), np.asarray(error)
        assert found.shape == value.shape == error.shape
        missing = np.isnan(value)
        assert np.array_equal(np.isnan(found), missing) and np.isfinite(error[~missing]).all()
        assert (abs(found - value) <= error)[~missing].all()


def test_most_ops_bound_their_errors() -> None:
    assert len({row.name for row, _ in CASES}) > 55


def test_errors_grow_on_the_way() -> None:
    """A comparison of what may be on either side is uncertain."""
    module = parse_module("""func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xi1>) {
      %s = elementwise.add %x, %y : tensor<2xf32>
      %d = elementwise.sub %s, %y : tensor<2xf32>
      %p = elementwise.greater %d, %x : tensor<2xf32>, tensor<2xf32> -> tensor<2xi1>
      return %d, %p : tensor<2xf32>, tensor<2xi1>
    }""")
    _, (error, uncertain) = Bounds(module).call("main", [np.ones(2, np.float32), np.array([3e7, 0.0], np.float32)])
    assert 1 < error[0] < 100 and 0 < error[1] < 1e-5
    assert uncertain.tolist() == [np.inf, np.inf]

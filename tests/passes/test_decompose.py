"""decompose: every expansion means what its op means; nothing expandable is left."""

from __future__ import annotations

import numpy as np
import pytest
from op_table import ELEMENTWISE, LOSS, Row
from tensor_programs import EPSILON

from nablair.ir.diagnostics import PassError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import F32
from nablair.ir.verifier import verify
from nablair.passes.decompose import Decompose
from nablair.passes.manager import PassManager

SOFTMAX = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = linalg.softmax %x {axis = 1} : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}"""


def test_softmax_means_the_same():
    module = parse_module(SOFTMAX)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    (expected,) = Interpreter(module).call("main", [x])
    PassManager([Decompose()]).run(module)
    (given,) = Interpreter(module).call("main", [x])
    assert "linalg.softmax" not in str(module)
    np.testing.assert_allclose(given, expected, rtol=8 * EPSILON["float32"])


@pytest.mark.parametrize("row", LOSS, ids=lambda row: row.id)
def test_losses_expand(row: Row):
    module = row.module(F32)
    Decompose().run(module)
    verify(module)
    assert not any(hasattr(type(op), "expand") and not hasattr(type(op), "point") for op in module.walk())


@pytest.mark.parametrize("row", ELEMENTWISE[:3], ids=lambda row: row.id)
def test_other_ops_stay(row: Row):
    module = row.module(F32)
    before = str(module)
    Decompose().run(module)
    assert str(module) == before


def test_names_choose():
    module = parse_module(SOFTMAX)
    before = str(module)
    Decompose(("linalg.layer_norm",)).run(module)
    assert str(module) == before
    Decompose(("linalg.softmax",)).run(module)
    assert str(module) != before


def test_an_unknown_name_is_refused():
    with pytest.raises(PassError, match=r"no op 'arith.addf' has an expansion; some that have: "):
        Decompose(("arith.addf",)).run(parse_module(SOFTMAX))


def test_locations_are_kept():
    module = parse_module(SOFTMAX, "model.mlir")
    Decompose().run(module)
    for op in list(module.walk())[2:-1]:
        assert op.location.file_position().line == 2

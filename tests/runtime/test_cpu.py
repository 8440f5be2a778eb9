"""The CPU on every row of the op table, in every element type, on special values, and on sizes that fill vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_rows import Case, cases, larger_cases, other_elements, special_cases

from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import BF16, F16, F32, F64
from nablair.lowering.llvm.entry import Argument, Signature
from nablair.runtime.compile import compile_function
from nablair.runtime.entry import python_entry


def on_cpu(chosen: list[Case]) -> list[str]:
    """What the CPU gets wrong."""
    results = [(c, compile_function(c.module).run(c.arrays)) for c in chosen]
    return [w for c, found in results if (w := c.complaint(found))]


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_every_row(element):
    assert on_cpu(cases([element])) == []


def test_other_element_types():
    assert on_cpu(cases(other_elements(), lambda i: i % 2 == 0)) == []


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_special_values(element):
    assert on_cpu(special_cases(element)) == []


@pytest.mark.parametrize("element", [F32, F64, F16, BF16], ids=str)
def test_vectors_blocks_and_tiles(element):
    assert on_cpu(larger_cases(element)) == []


def test_numbers_in_native_entries():
    """An index argument is given as an int64 array without axes; others are refused."""
    program: Any = compile_function(
        parse_module("""func.func @main(%x: tensor<?xf32, ["n"]>, %i: index) -> tensor<1xf32> {
          %y = array.slice %x [%i] {starts = [-9223372036854775808], stops = [-9223372036854775808], steps = [1]}
            : tensor<?xf32, ["n"]> -> tensor<1xf32>
          return %y : tensor<1xf32>
        }""")
    )
    x, out = np.arange(5, dtype=np.float32), np.zeros(1, np.float32)
    inputs = Argument("array", "f32", ("n",)), Argument("number", "index", ())
    signature = Signature("main", inputs, (Argument("array", "f32", (1,)),))
    entries: list[Any] = [program.native_entry(None, ["array", "array"], [None, None])]
    entries.append(python_entry(signature, program.native.address("main"), None, (), program))
    for entry in entries:
        for i in range(5):
            assert entry(x, np.array(i), out) is None
            assert out.item() == i
        assert entry(x, np.array(1, np.int32), out) is NotImplemented
        assert entry(x, np.array([1]), out) is NotImplemented
    assert program.run([x, 3])[0].tolist() == [3.0]


FLAGS = """func.func @main(%x: memref<40xi1>, %n: index) {{
  %0 = arith.constant 0 : index
  %at = arith.constant 20 : index
  %m = vector.create_mask %n : vector<{n}xi1>
  %o = vector.step : vector<{n}xindex>
  %p = vector.load %x[%0] : memref<40xi1>, vector<{n}xi1>
  %q = vector.maskedload %x[%n], %m, %p : memref<40xi1>, vector<{n}xi1>, vector<{n}xi1> into vector<{n}xi1>
  %f = arith.xori %p, %q : vector<{n}xi1>
  vector.maskedstore %x[%at], %m, %f : memref<40xi1>, vector<{n}xi1>, vector<{n}xi1>
  %g = vector.gather %x[%n] [%o], %m, %f : memref<40xi1>, vector<{n}xindex>, vector<{n}xi1>, vector<{n}xi1> into vector<{n}xi1>
  vector.scatter %x[%0] [%o], %m, %g : memref<40xi1>, vector<{n}xindex>, vector<{n}xi1>, vector<{n}xi1>
  %r = arith.xori %g, %q : vector<{n}xi1>
  vector.store %r, %x[%n] : memref<40xi1>, vector<{n}xi1>
  return
}}
"""  # noqa: E501


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 17])
@pytest.mark.parametrize("count", [0, 1, 3, 8])
def test_flags_lie_in_a_byte_each(lanes, count):
    """Vectors of i1 move as memory holds them, not packed."""
    module = parse_module(FLAGS.format(n=lanes))
    x = np.random.default_rng(lanes).random(40) < 0.5
    wanted = x.copy()
    Interpreter(module).call("main", [wanted, count])
    compile_function(module, checked=True).run([x, np.asarray(count)])
    assert x.tobytes() == wanted.tobytes()

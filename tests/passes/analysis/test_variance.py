"""What is said to be the same for all points of a loop is the same; private memory moves with no point."""

import random

import numpy as np
import pytest
from fuzzing import cases
from index_nests import drawn

from nablair.ir.dialects import scf
from nablair.ir.parser import parse_module
from nablair.passes.analysis.legality import IllegalError
from nablair.passes.analysis.variance import check, private_buffers, varying_values


def test_a_value_that_does_not_vary_is_the_same_at_every_point() -> None:
    still = moving = 0
    for seed in range(cases(120)):
        nest = drawn(random.Random(seed))
        loop = nest.loops[0]
        assert isinstance(loop, scf.Forall)
        varying = varying_values(loop)
        for value, numbers in nest.numbers.items():
            if value in varying:
                moving += 1
            else:
                still += 1
                np.testing.assert_array_equal(numbers, np.broadcast_to(numbers[:1], numbers.shape))
    assert still > cases(120)
    assert moving > cases(120) * 3


PROGRAM = """
func.func @f(%x: memref<8xf32>, %y: memref<8xf32>, %one: memref<1xf32>) {{
  %p = memref.alloca() : memref<2xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.forall (%i) in (8) {{
    {body}
  }}
  return
}}
"""


def loop_of(body: str) -> scf.Forall:
    module = parse_module(PROGRAM.format(body=body))
    (loop,) = [op for op in module.walk() if isinstance(op, scf.Forall)]
    return loop


LEGAL = {
    "a copy": "%v = memref.load %x[%i] : memref<8xf32>\nmemref.store %v, %y[%i] : memref<8xf32>",
    "private memory": """
        %v = memref.load %x[%i] : memref<8xf32>
        memref.store %v, %p[%c1] : memref<2xf32>
        %w = memref.load %p[%c1] : memref<2xf32>
        memref.store %w, %y[%i] : memref<8xf32>""",
    "a loop of fixed bounds": """
        scf.for %k = %c0 to %c8 step %c1 {
          %v = memref.load %x[%k] : memref<8xf32>
          memref.store %v, %y[%i] : memref<8xf32>
        }""",
}
ILLEGAL = {
    "all lanes store to one place": """
        %v = memref.load %x[%i] : memref<8xf32>
        memref.store %v, %one[%c0] : memref<1xf32>""",
    "the bounds of an inner loop differ": """
        scf.for %k = %c0 to %i step %c1 {
          %v = memref.load %x[%k] : memref<8xf32>
          memref.store %v, %y[%i] : memref<8xf32>
        }""",
    "memory is allocated inside": """
        %q = memref.alloca() : memref<1xf32>
        %v = memref.load %q[%c0] : memref<1xf32>
        memref.store %v, %y[%i] : memref<8xf32>""",
    "the body holds vectors already": """
        %v = vector.broadcast %i : index to vector<4xindex>
        %s = arith.addi %v, %v : vector<4xindex>""",
}


@pytest.mark.parametrize("body", LEGAL.values(), ids=LEGAL)
def test_what_lanes_can_do_side_by_side_is_legal(body: str) -> None:
    loop = loop_of(body)
    private = private_buffers(loop)
    assert len(private) == ("%p[" in body)
    check(loop, varying_values(loop, private), private)


@pytest.mark.parametrize(("reason", "body"), ILLEGAL.items(), ids=ILLEGAL)
def test_what_they_cannot_is_refused_with_the_reason(reason: str, body: str) -> None:
    loop = loop_of(body)
    private = private_buffers(loop)
    with pytest.raises(IllegalError, match=reason):
        check(loop, varying_values(loop, private), private)

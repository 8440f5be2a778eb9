"""What ops do to memory, as passes see it."""

from __future__ import annotations

import pytest

from nablair.ir.effects import (
    ALLOCATION,
    ANYTHING,
    NOTHING,
    READS,
    WRITES,
    effect_of,
    is_pure,
    is_removable,
    only_reads,
)
from nablair.ir.parser import parse_module

TEXT = """
func.func private @g()
func.func @main(%m: memref<4xf32>, %x: f32, %i: index, %t: tensor<4xf32>, %c: i1) {
  %a = arith.addf %x, %x : f32
  %l = memref.load %m[%i] : memref<4xf32>
  memref.store %x, %m[%i] : memref<4xf32>
  %n = memref.alloc() : memref<4xf32>
  call @g() : () -> ()
  %q = kernel.launch (%j) in (4) ins(%t : tensor<4xf32>) outs(%q : tensor<4xf32>) {
    %v = kernel.load %t[%j]
    kernel.store %v, %q[%j]
  }
  kernel.launch (%j) in (4) ins(%m : memref<4xf32>) outs(%n : memref<4xf32>) {
    %v = kernel.load %m[%j]
    kernel.store %v, %n[%j]
  }
  scf.if %c {
    %r = memref.load %m[%i] : memref<4xf32>
  }
  scf.if %c {
    memref.store %x, %m[%i] : memref<4xf32>
  }
  return
}
"""


@pytest.fixture(scope="module")
def ops():
    return list(parse_module(TEXT).symbol("main").body.block)


def test_effects_of_single_ops(ops):
    assert [effect_of(op) for op in ops[:7]] == [NOTHING, READS, WRITES, ALLOCATION, ANYTHING, NOTHING, WRITES]


def test_questions(ops):
    assert [is_pure(op) for op in ops] == [True, False, False, False, False, True, False, False, False, True]
    assert [only_reads(op) for op in ops] == [True, True, False, True, False, True, False, True, False, True]
    # The terminator stays whatever it does.
    assert [is_removable(op) for op in ops] == [True, True, False, True, False, True, False, True, False, False]

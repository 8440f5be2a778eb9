"""Lists of integers and index values: the property and the operands stand for the list, whatever it holds."""

from __future__ import annotations

import random

import pytest
from fuzzing import cases

from nablair.ir.diagnostics import VerifyError
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.support import mixed
from nablair.ir.types import DYNAMIC, INDEX
from nablair.ir.verifier import verify


def test_split_and_merge_are_inverse() -> None:
    values = Block([INDEX] * 4).arguments
    for seed in range(cases(100)):
        rng = random.Random(seed)
        entries: list[mixed.Extent] = [rng.choice([*values, rng.randrange(-5, 6)]) for _ in range(rng.randrange(6))]
        static, dynamic = mixed.split(entries)
        assert len(static) == len(entries)
        assert mixed.merge(static, dynamic) == entries
        assert mixed.fixed(entries) == static
        assert static.count(DYNAMIC) == len(dynamic)


def test_a_constant_is_known_and_an_argument_is_not() -> None:
    module = parse_module("func.func @f(%n: index) -> index {\n%c = arith.constant 7 : index\nreturn %c : index\n}")
    function = module.block.first
    assert function is not None
    block = function.regions[0].block
    assert block.first is not None
    assert mixed.known(block.first.results[0]) == 7
    assert mixed.known(block.arguments[0]) is None


TEXT = """
"func.func"() <{function_type = (memref<?x8xf32>, index) -> (), sym_name = "f"}> ({
^bb0(%x: memref<?x8xf32>, %n: index):
  %v = "memref.subview"(%x, %n) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>, static_offsets = array<i64: 0, 0>,
    static_sizes = array<i64: STATIC, 8>, static_strides = array<i64: 1, 1>}>
    : (memref<?x8xf32>, index) -> memref<?x8xf32, strided<[8, 1]>>
  "func.return"() : () -> ()
}) : () -> ()
"""


def test_marks_and_values_must_fit() -> None:
    verify(parse_module(TEXT.replace("STATIC", str(DYNAMIC))))
    with pytest.raises(VerifyError, match="has 0 dynamic sizes in its property but 1 operands for them"):
        verify(parse_module(TEXT.replace("STATIC", "4")))

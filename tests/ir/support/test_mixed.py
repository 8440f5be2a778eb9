"""Lists of integers and index values: the property and the operands stand for the list, whatever it holds."""

from __future__ import annotations

import random

import pytest
from fuzzing import cases

from nablair.ir.builder import Builder
from nablair.ir.definition import MANY, OPS, Property
from nablair.ir.diagnostics import VerifyError
from nablair.ir.dialect import DIALECTS
from nablair.ir.dialects import scf
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


def test_declarations_name_a_property_and_an_operand_of_their_op() -> None:
    for dialect in DIALECTS.values():
        dialect.load()
    found = [
        (cls, entries)
        for cls in OPS.values()
        for base in cls.__mro__
        for entries in vars(base).values()
        if isinstance(entries, mixed.Entries)
    ]
    assert len(found) >= 15
    for cls, entries in found:
        assert isinstance(cls.definition.properties[entries.static], Property)
        assert any(f.name == entries.dynamic and f.arity == MANY for f in cls.definition.operands), cls.name


def test_a_declared_list_reads_as_it_was_given() -> None:
    for seed in range(cases(50)):
        rng = random.Random(seed)
        values = Block([INDEX] * 5).arguments
        rank = rng.randrange(1, 4)
        lower, upper, step = ([rng.choice([*values, rng.randrange(1, 6)]) for _ in range(rank)] for _ in range(3))
        loop = scf.Forall.build(Builder(Block()), upper, lower, step)
        assert (loop.lower, loop.upper, loop.step) == (lower, upper, step)
        numbers: dict[mixed.Extent, int] = {v: i for i, v in enumerate(values)}
        filled = scf.Forall.upper.filled(loop, [numbers[v] for v in loop.upper_values])
        assert filled == [e if isinstance(e, int) else numbers[e] for e in upper]

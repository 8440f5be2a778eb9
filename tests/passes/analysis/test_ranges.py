"""The range of an index value holds every number that the value takes."""

import random

from fuzzing import cases
from index_nests import drawn

from nablair.ir.parser import parse_module
from nablair.passes.analysis.ranges import ALL, Ranges


def test_a_range_holds_every_number_that_a_value_takes() -> None:
    said = exact = 0
    for seed in range(cases(120)):
        nest = drawn(random.Random(seed))
        ranges = Ranges()
        for value, numbers in nest.numbers.items():
            low, high = ranges.of(value)
            if value.type.__class__.__name__ == "IndexType":
                assert low <= numbers.min(), (seed, value)
                assert numbers.max() <= high, (seed, value)
                said += (low, high) != ALL
                exact += (low, high) == (numbers.min(), numbers.max())
    # An analysis that gave up everywhere would be right, too.
    assert exact > cases(120) * 4
    assert said > exact


def test_arithmetic_that_may_wrap_says_nothing_but_its_type() -> None:
    module = parse_module("""
        func.func @f(%a: i8, %b: index) -> index {
          %c = arith.constant 100 : i8
          %d = arith.addi %c, %c : i8
          %e = arith.extsi %d : i8 to i32
          %big = arith.constant 9223372036854775807 : index
          %sum = arith.addi %big, %big : index
          return %sum : index
        }
    """)
    ranges = Ranges()
    named = {v.name: v for op in module.walk() for v in op.results}
    assert ranges.of(named["d"]) == (-128, 127)
    assert ranges.of(named["e"]) == (-128, 127)
    assert ranges.of(named["sum"]) == ALL
    assert ranges.of(7) == (7, 7)

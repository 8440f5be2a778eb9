"""Every pass keeps what generated programs mean, leaves valid IR, and its result reads back from its own text.

A program's meaning is what the interpreter computes.  Passes that only rearrange keep every bit; passes that change the
order of sums, contract products or expand functions stay within the error bounds.  Every check starts from the
program's own seed (tests/programs.py), so that a failure can be run again:

    check_passes(grow(random.Random(seed)), random.Random(seed), TENSOR)
"""

from __future__ import annotations

import random as stdlib_random
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from program_checks import KERNEL, LOOPS, TENSOR, check_derivative, check_orders, check_passes, tries
from programs import Program, grow, programs

pytestmark = pytest.mark.fuzz

EXAMPLES = {
    "tensor": 150,
    "kernel": 120,
    "loops": 50,
    "orders": 60,
    "derivatives": 300,
    "proportions": 300,
}
"""How many programs each property is tried on."""

seeds = st.integers(0, 2**32 - 1)
randoms = seeds.map(stdlib_random.Random)


@tries(EXAMPLES["tensor"])
@given(programs(), randoms)
def test_tensor_passes_keep_the_meaning(program: Program, random: stdlib_random.Random) -> None:
    assume(program.is_useful)
    check_passes(program, random, TENSOR)


@tries(EXAMPLES["kernel"])
@given(programs(), randoms)
def test_kernel_passes_keep_the_meaning(program: Program, random: stdlib_random.Random) -> None:
    assume(program.is_useful)
    check_passes(program, random, KERNEL, "tensor")


@tries(EXAMPLES["loops"])
@given(programs(small=True), randoms)
def test_loop_passes_keep_the_meaning(program: Program, random: stdlib_random.Random) -> None:
    assume(program.is_useful)
    check_passes(program, random, LOOPS, "kernel,plan,split-reduce,bufferize")


@tries(EXAMPLES["orders"])
@given(programs(small=True), randoms)
@pytest.mark.parametrize("start", ["", "decompose,lower-to-kernels", "kernel", "kernel,bufferize"])
def test_clean_up_passes_commute(start: str, program: Program, random: stdlib_random.Random) -> None:
    check_orders(program, random, start)


def test_contraction_stays_within_the_bounds() -> None:
    """A product and a sum that become one fma round once, where the interpreter of the kernel rounds twice."""
    contracted = (("lower-to-loops", "bounded"),)
    for seed in range(25):
        program = grow(stdlib_random.Random(seed), small=True)
        if program.is_useful:
            check_passes(program, stdlib_random.Random(seed), contracted, "kernel,bufferize")


def test_gradients_agree_with_differences() -> None:
    smooth = [check_derivative(seed) for seed in range(EXAMPLES["derivatives"])]
    assert smooth.count(False) <= len(smooth) // 10


def test_programs_are_what_they_should_be() -> None:
    """At least three of ten have a reduction, a broadcast, a value with several users, a gradient; at most one of ten
    is turned away because its error bounds say too little.

    They are drawn by seeds: what Hypothesis draws depends on the modules that are loaded."""
    seen = [grow(stdlib_random.Random(seed)) for seed in range(EXAMPLES["proportions"])]
    useful = [p for p in seen if p.is_useful]
    assert len(seen) - len(useful) <= len(seen) // 10
    counts = Counter(trait for p in useful for trait in p.traits)
    for trait in ("reductions", "broadcasts", "multi-use", "gradients"):
        assert counts[trait] >= 0.3 * len(useful), counts
    lengths = [sum(1 for _ in p.main.entry) - 1 for p in useful if not p.gradient]
    assert max(lengths) >= 25 and max(lengths) <= 40

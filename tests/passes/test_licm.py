"""licm: random nests, loops of plugins, ops that may fail.  More forms are in tests/filecheck/licm."""

from __future__ import annotations

from itertools import pairwise

import pytest
from fuzzing import cases
from scalar_programs import module

from nablair.ir.builder import Builder
from nablair.ir.definition import LOOP, NO_TERMINATOR, PURE, RECURSIVE_EFFECTS, Op, operand, region, result
from nablair.ir.dialects import scf
from nablair.ir.interfaces import ConditionallySpeculatable
from nablair.ir.operations import Block, Region
from nablair.ir.types import F32
from nablair.passes.licm import hoist_invariants


class Node(Op):
    name = "test_licm.node"
    traits = frozenset({PURE})
    x = operand()
    result = result()


class MayFail(Op, ConditionallySpeculatable):
    name = "test_licm.may_fail"
    traits = frozenset({PURE})
    x = operand()
    y = operand()
    result = result()

    def is_speculatable(self):
        return self.x is self.y


class Again(Op):
    name = "test_licm.again"
    traits = frozenset({RECURSIVE_EFFECTS, LOOP, NO_TERMINATOR})
    closed_regions = ("apart",)
    body = region()
    apart = region()


class Once(Op):
    name = "test_licm.once"
    traits = frozenset({RECURSIVE_EFFECTS, NO_TERMINATOR})
    body = region()


@pytest.mark.parametrize("seed", range(cases(20)))
def test_only_what_needs_its_loop_is_left_in_random_nests(seed):
    op = module(seed, 60)
    hoist_invariants(op)
    for inner in op.walk():
        loop = inner.parent_op
        if isinstance(loop, scf.For) and inner.name.startswith("arith."):
            made = [v.defining_op for v in inner.operands]
            assert any(d is None or loop.is_ancestor_of(d) for d in made), str(inner)
    assert hoist_invariants(op) == 0


def test_random_nests_have_something_to_move():
    assert sum(hoist_invariants(module(seed, 60)) for seed in range(20)) > 50


def test_loops_of_plugins_take_part_and_their_closed_regions_do_not():
    outer, body, apart, once = Block([F32, F32]), Block(), Block([F32]), Block()
    x, y = outer.arguments
    first = Builder(body).create(Node, x, results=[F32])
    Builder(body).create(MayFail, x, y, results=[F32])
    Builder(body).create(MayFail, first.result, first.result, results=[F32])
    closed = Builder(apart).create(Node, apart.arguments[0], results=[F32])
    kept = Builder(once).create(Node, x, results=[F32])
    loop = Builder(outer).create(Again, regions=[Region([body]), Region([apart])])
    Builder(outer).create(Once, regions=[Region([once])])
    holder = Once(regions=[Region([outer])])
    assert hoist_invariants(holder) == 2
    assert [op.name for op in outer] == [Node.name, MayFail.name, Again.name, Once.name]
    assert [op.name for op in body] == [MayFail.name]
    assert closed.parent is apart and kept.parent is once and loop.parent is outer


def test_an_op_leaves_all_loops_that_do_not_concern_it():
    blocks = [Block([F32]), Block(), Block(), Block()]
    Builder(blocks[-1]).create(Node, blocks[0].arguments[0], results=[F32])
    for around, inner in pairwise(blocks):
        Builder(around).create(Again, regions=[Region([inner]), Region([Block()])])
    assert hoist_invariants(Once(regions=[Region([blocks[0]])])) == 3
    assert [op.name for op in blocks[0]] == [Node.name, Again.name]

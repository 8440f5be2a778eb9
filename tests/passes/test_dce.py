"""dce: cycles, effects, size.  More forms are in tests/filecheck/dce."""

from __future__ import annotations

import pytest

from nablair.ir.builder import Builder
from nablair.ir.definition import ALLOCATES, NO_TERMINATOR, PURE, Op, operand, region, result, variadic_operand
from nablair.ir.operations import Block, Region
from nablair.ir.parser import parse_module
from nablair.ir.types import F32
from nablair.ir.verifier import verify
from nablair.passes.dce import DeadCodeElimination, remove_dead


class Node(Op):
    name = "test_dce.node"
    traits = frozenset({PURE})
    x = operand()
    result = result()


class Alloc(Op):
    name = "test_dce.alloc"
    traits = frozenset({ALLOCATES})
    result = result()


class Use(Op):
    name = "test_dce.use"
    values = variadic_operand()


class Holder(Op):
    name = "test_dce.holder"
    traits = frozenset({NO_TERMINATOR})
    body = region()


def holder():
    block = Block([F32])
    return Holder(regions=[Region([block])]), Builder(block), block.arguments[0]


def test_ops_that_use_each_other_go():
    op, b, x = holder()
    first = b.create(Node, x, results=[F32])
    second = b.create(Node, first.result, results=[F32])
    first.set_operand(0, second.result)
    assert remove_dead(op) == 2
    assert op.body.block.first is None


def test_what_is_needed_stays():
    op, b, x = holder()
    kept = b.create(Node, x, results=[F32])
    b.create(Node, kept.result, results=[F32])
    b.create(Alloc, results=[F32])
    b.create(Use, [kept.result])
    pass_ = DeadCodeElimination()
    pass_.run(op)
    assert [inner.name for inner in op.body.block] == [Node.name, Use.name]
    assert pass_.statistics == {"num-dce'd": 2}
    assert len(x.uses) == 1


def test_a_long_chain_and_deep_nesting():
    op, b, x = holder()
    value = x
    for _ in range(20_000):
        value = b.create(Node, value, results=[F32]).result
    inner = b
    for _ in range(3000):
        block = Block([])
        inner.create(Holder, regions=[Region([block])])
        inner = Builder(block)
    inner.create(Node, value, results=[F32])
    assert remove_dead(op) == 20_001


@pytest.mark.parametrize("outside", range(8))
def test_what_stands_around_an_op_does_not_count_when_its_inside_is_cleaned(outside: int) -> None:
    """The ops that define the operands of a loop, however many, neither keep dead ops in it nor are removed."""
    chain = "\n".join(f"%o{i + 1} = arith.addi %o{i}, %o{i} : index" for i in range(outside))
    dead = "\n".join(f"%d{i} = arith.muli %i, %o{outside} : index" for i in range(6))
    module = parse_module(f"""
        func.func @f(%o0: index, %m: memref<8xindex>) {{
          %c0 = arith.constant 0 : index
          %c1 = arith.constant 1 : index
          %unused = arith.addi %o0, %o0 : index
          {chain}
          scf.for %i = %c0 to %o{outside} step %c1 {{
            {dead}
            memref.store %i, %m[%i] : memref<8xindex>
          }}
          return
        }}
    """)
    before = len(list(module.walk()))
    (loop,) = [op for op in module.walk() if op.name == "scf.for"]
    assert remove_dead(loop) == 6
    assert len(list(module.walk())) == before - 6
    verify(module)

"""cse: what makes ops equal, dominance over several blocks, locations.  More forms are in tests/filecheck/cse."""

from __future__ import annotations

from typing import Any

from nablair.ir.attributes import StringAttr
from nablair.ir.builder import Builder
from nablair.ir.definition import (
    ISOLATED,
    NO_TERMINATOR,
    PURE,
    TERMINATOR,
    Op,
    operand,
    region,
    result,
    variadic_operand,
)
from nablair.ir.location import FileLoc, FusedLoc
from nablair.ir.operations import Block, Region
from nablair.ir.types import F32, F64, INDEX, MemRefType, Type
from nablair.passes.cse import merge_repeated


class Node(Op):
    name = "test_cse.node"
    traits = frozenset({PURE})
    x = operand()
    result = result()


class Load(Op):
    name = "test_cse.load"
    reads = ("source",)
    source = operand()
    result = result()


class Store(Op):
    name = "test_cse.store"
    writes = ("dest",)
    dest = operand()


class Use(Op):
    name = "test_cse.use"
    values = variadic_operand()


class Branch(Op):
    name = "test_cse.branch"
    traits = frozenset({TERMINATOR, PURE})


class Function(Op):
    name = "test_cse.func"
    traits = frozenset({ISOLATED, NO_TERMINATOR})
    body = region(single_block=False)


def function(*types: Type) -> tuple[Any, Builder, list[Any]]:
    block = Block(types)
    return Function(regions=[Region([block])]), Builder(block), block.arguments


def node(b: Builder, x, type=F32, **attributes):
    op = b.create(Node, x, results=[type])
    op.attributes.update(attributes)
    return op.result


def test_types_and_attributes_tell_ops_apart():
    f, b, (x,) = function(F32)
    values = [node(b, x), node(b, x, F64), node(b, x, tag=StringAttr("a")), node(b, x, tag=StringAttr("b"))]
    assert merge_repeated(f) == 0
    repeated = [node(b, x, F64), node(b, x, tag=StringAttr("b"))]
    b.create(Use, repeated)
    assert merge_repeated(f) == 2
    assert f.body.block.last.operands == (values[1], values[3])


def test_locations_are_fused():
    f, b, (x,) = function(F32)
    b.location = FileLoc("f", 1, 1)
    first = node(b, x)
    b.location = FileLoc("f", 2, 1)
    b.create(Use, [first, node(b, x)])
    merge_repeated(f)
    assert first.owner.location == FusedLoc([FileLoc("f", 1, 1), FileLoc("f", 2, 1)])


def diamond():
    """Blocks entry -> left, right -> end; the builders of each and the buffer argument."""
    f, b, (x, m) = function(F32, MemRefType((4,), INDEX))
    blocks = [Block() for _ in range(3)]
    for block in blocks:
        f.body.append(block)
    left, right, end = blocks
    return f, x, m, b, *(Builder(block) for block in blocks), (left, right, end)


def finish(b: Builder, *successors: Block) -> None:
    b.create(Branch, successors=successors)


def test_only_dominating_blocks_count():
    f, x, _, entry, left, right, end, (left_block, right_block, end_block) = diamond()
    first = node(entry, x)
    finish(entry, left_block, right_block)
    for b in (left, right):
        b.create(Use, [node(b, x), node(b, first)])
        finish(b, end_block)
    end.create(Use, [node(end, x), node(end, first)])
    assert merge_repeated(f) == 3
    for block in (left_block, right_block, end_block):
        use: Any = next(op for op in block if op.name == Use.name)
        assert use.operands[0] is first and use.operands[1].owner.parent is block


def test_loads_do_not_cross_joins():
    f, _, m, entry, left, right, end, (left_block, right_block, end_block) = diamond()
    entry.create(Use, [entry.create(Load, m, results=[F32]).result, entry.create(Load, m, results=[F32]).result])
    finish(entry, left_block, right_block)
    left.create(Store, m)
    finish(left, end_block)
    finish(right, end_block)
    end.create(Use, [end.create(Load, m, results=[F32]).result])
    assert merge_repeated(f) == 1


def test_a_deep_chain_of_regions_is_no_recursion():
    f, b, (x,) = function(F32)
    first = node(b, x)
    for _ in range(3000):
        inner = Block()
        b.create(Wrapper, regions=[Region([inner])])
        b = Builder(inner)
        b.create(Use, [node(b, x)])
    assert merge_repeated(f) == 3000
    assert len(first.uses) == 3000


class Wrapper(Op):
    name = "test_cse.wrapper"
    traits = frozenset({NO_TERMINATOR})
    body = region()

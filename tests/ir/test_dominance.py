"""Dominance against its definition, on random control flow."""

from hypothesis import given
from hypothesis import strategies as st

from nablair.ir.dominance import Dominance
from nablair.ir.operations import Block, Operation, Region, UnregisteredOp
from nablair.ir.types import I32

GRAPHS = st.integers(1, 8).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=3), min_size=n, max_size=n)
)


def build(graph: list[list[int]]) -> tuple[Region, list[Block]]:
    """A region with a block for each node, each with a value and a branch."""
    blocks = [Block() for _ in graph]
    region = Region(blocks)
    UnregisteredOp("x.root", (), (), None, None, [region])
    for block, successors in zip(blocks, graph):
        block.append(UnregisteredOp("x.value", (), [I32]))
        block.append(UnregisteredOp("x.br", (), (), None, None, (), [blocks[s] for s in successors]))
    return region, blocks


def reachable(graph: list[list[int]], without: int | None = None) -> set[int]:
    """The nodes that paths from the entry reach without passing a node."""
    seen: set[int] = set()
    pending = [0]
    while pending:
        node = pending.pop()
        if node not in seen and node != without:
            seen.add(node)
            pending += graph[node]
    return seen


@given(GRAPHS)
def test_a_block_dominates_what_needs_it(graph: list[list[int]]) -> None:
    _, blocks = build(graph)
    dominance = Dominance()
    alive = reachable(graph)
    for first in range(len(graph)):
        rest = reachable(graph, without=first)
        for second in range(len(graph)):
            expected = first == second or second not in alive or second not in rest
            if second in alive and first not in alive and first != second:
                expected = False
            assert dominance.block_dominates(blocks[first], blocks[second]) == expected


@given(GRAPHS)
def test_values_dominate_as_their_blocks_do(graph: list[list[int]]) -> None:
    _, blocks = build(graph)
    dominance = Dominance()
    for first in blocks:
        value = first.terminator.prev
        assert value is not None
        for second in blocks:
            expected = dominance.block_dominates(first, second)
            assert dominance.dominates(value.results[0], second.terminator) == expected
        assert not dominance.dominates(value.results[0], value)


def test_values_reach_into_nested_regions_only() -> None:
    _, (block,) = build([[]])
    value = block.first
    assert value is not None
    inner = Block([I32])
    nested: Operation = UnregisteredOp("x.nested")
    inner.append(nested)
    block.insert_before(UnregisteredOp("x.region", (), (), None, None, [Region([inner])]), block.terminator)
    dominance = Dominance()
    assert dominance.dominates(value.results[0], nested)
    assert dominance.dominates(inner.arguments[0], nested)
    assert not dominance.dominates(inner.arguments[0], block.terminator)

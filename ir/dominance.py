"""Dominance between blocks of a region: a block dominates another if every path from the entry to it passes there.

Immediate dominators come from the algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001)
on a reverse postorder.  Regions of one block, which are nearly all, need none of it.
"""

from __future__ import annotations

from .operations import Block, Operation, Region
from .values import BlockArgument, OpResult, Value


class Dominance:
    """Answers questions about regions as they are when first asked about; make a new one after blocks change."""

    def __init__(self) -> None:
        self._parents: dict[Region, dict[Block, Block]] = {}

    def immediate(self, region: Region) -> dict[Block, Block]:
        """The immediate dominator of every reachable block; the entry has itself."""
        found = self._parents.get(region)
        if found is None:
            found = self._parents[region] = _immediate_dominators(region)
        return found

    def block_dominates(self, first: Block, second: Block) -> bool:
        """Whether `first` dominates `second`, both of one region; unreachable blocks are dominated by all."""
        if first is second:
            return True
        region = second.parent
        assert region is not None
        parents = self.immediate(region)
        if second not in parents:
            return True
        while True:
            above = parents[second]
            if above is first:
                return True
            if above is second:
                return False
            second = above

    def dominates(self, value: Value, user: Operation) -> bool:
        """Whether `value` is defined before every execution of `user`."""
        block = value.block
        if block is None:
            return False
        # The op around (or equal to) the user that stands in the region of the value.
        op: Operation | None = user
        while op is not None and op.parent_region is not block.parent:
            op = op.parent_op
        if op is None or op.parent is None:
            return False
        if op.parent is not block:
            return self.block_dominates(block, op.parent)
        if isinstance(value, BlockArgument):
            return True
        return isinstance(value, OpResult) and value.owner is not op and value.owner.is_before(op)


def _successors(block: Block) -> tuple[Block, ...]:
    return block.last.successors if block.last is not None else ()


def _immediate_dominators(region: Region) -> dict[Block, Block]:
    if not region.blocks:
        return {}
    entry = region.entry
    order: list[Block] = []
    seen = {entry}
    pending = [(entry, iter(_successors(entry)))]
    while pending:
        block, rest = pending[-1]
        for successor in rest:
            if successor not in seen:
                seen.add(successor)
                pending.append((successor, iter(_successors(successor))))
                break
        else:
            order.append(block)
            pending.pop()
    number = {block: i for i, block in enumerate(order)}
    predecessors: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for successor in _successors(block):
            predecessors[successor].append(block)
    parents = {entry: entry}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            best: Block | None = None
            for other in predecessors[block]:
                if other not in parents:
                    continue
                if best is None:
                    best = other
                    continue
                one, two = best, other
                while one is not two:
                    while number[one] < number[two]:
                        one = parents[one]
                    while number[two] < number[one]:
                        two = parents[two]
                best = one
            assert best is not None
            if parents.get(block) is not best:
                parents[block] = best
                changed = True
    return parents

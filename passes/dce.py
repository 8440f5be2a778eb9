"""dce: remove ops that nothing needs.

In: any op.  Out: the same op without those inside it that have no effect on memory or control and whose results nobody
uses, or only others of that kind.

    %0 = arith.addf %a, %b : f32
    %1 = arith.mulf %0, %0 : f32      // unused: both go
    func.return %a : f32

Mark and sweep, so that ops that use each other in a cycle go too.  What has effects is live; so are what defines the
operands of a live op, the ops around it, and the terminators in its regions.  Reads and allocations count as no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.definition import SYMBOL, TERMINATOR
from ..ir.effects import BY_OP, READS, RECURSIVE, effect_kind, effect_of
from ..ir.operations import Operation, Region
from .manager import Pass


@dataclass
class DeadCodeElimination(Pass):
    """Remove ops without effects whose results nobody needs."""

    name: ClassVar[str] = "dce"

    def run(self, op: Operation) -> None:
        self.count("num-dce'd", remove_dead(op))


def remove_dead(root: Operation | Region) -> int:
    """Remove the dead ops inside an op, or inside a region that belongs to none; how many there were."""
    if isinstance(root, Region):
        kept = [block.terminator for block in root.blocks]
        ops = [inner for block in root.blocks for op in block for inner in op.walk()]
    else:
        kept = [root]
        ops = list(root.walk())
    unneeded = _unneeded(kept, ops)
    if not unneeded:
        return 0
    dead = [op for op in ops if op in unneeded]
    for op in dead:
        op.set_operands(())
        op.successors = ()
    for op in dead:
        op.detach()
    return len(dead)


def _unneeded(kept: list[Operation], ops: list[Operation]) -> set[Operation]:
    """Those of the ops that neither the kept ones nor effects among them need; no others are looked at."""
    # Class -> whether its ops are needed whatever uses them; None: to be seen op by op.
    fixed: dict[type[Operation], bool | None] = {}
    # The effects inside an op that has none itself (a launch on tensors) count once that op is live.
    inner: dict[Operation, list[Operation]] = {}
    hidden: set[Operation] = set()
    rest = set(ops).difference(kept)
    work = list(kept)
    for op in ops:
        cls = type(op)
        state = fixed.get(cls)
        if state is None and cls not in fixed:
            kind = effect_kind(cls)
            state = fixed[cls] = None if kind == BY_OP else SYMBOL in cls.traits or (kind > READS and kind != RECURSIVE)
        if state is None and effect_of(op) <= READS:
            if op.regions:
                if op not in hidden:  # else all inside it is known already
                    hidden.update(op.walk())
                inner[op] = []
            continue
        if state is not False:
            if op in hidden:
                holder = next(around for around in op.ancestors() if around in inner)
                inner[holder].append(op)
            elif op in rest:
                rest.discard(op)
                work.append(op)
    while work:
        op = work.pop()
        for needed in inner.get(op, ()):
            rest.discard(needed)
            work.append(needed)
        for value in op.operands:
            owner = value.defining_op
            if owner in rest:
                rest.discard(owner)
                work.append(owner)
        around = op.parent_op
        if around in rest:
            rest.discard(around)
            work.append(around)
        for region in op.regions:
            for block in region.blocks:
                last = block.last
                if last in rest and TERMINATOR in last.traits:
                    rest.discard(last)
                    work.append(last)
    return rest

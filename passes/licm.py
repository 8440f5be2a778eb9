"""licm: compute once, before a loop, what is the same in each of its steps.

In: any op.  Out: the same op, where pure ops inside loops whose operands come from outside stand before the loop.

    scf.for %i = %c0 to %n step %c1 {
      %0 = arith.mulf %a, %b : f32
      %1 = arith.addf %0, %x : f32
      ..
        becomes
    %0 = arith.mulf %a, %b : f32
    %1 = arith.addf %0, %x : f32
    scf.for %i = %c0 to %n step %c1 {
      ..

Loops are the ops with the trait `LOOP`.  A loop may have no steps, so what moves then runs where it would not have: an
op that it may be an error to run (`ConditionallySpeculatable`) stays unless it says that it is none.  Inner loops come
first, so that an op moves as far out as it can; ops with regions move whole.  What reads or writes memory stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.captures import captured, defined_inside
from ..ir.definition import LOOP
from ..ir.effects import is_pure
from ..ir.interfaces import ConditionallySpeculatable
from ..ir.operations import Operation
from ..ir.rewriter import is_closed
from .manager import Pass


@dataclass
class LoopInvariantCodeMotion(Pass):
    """Move pure ops out of loops that they do not depend on."""

    name: ClassVar[str] = "licm"

    def run(self, op: Operation) -> None:
        self.count("num-hoisted", hoist_invariants(op))


def hoist_invariants(root: Operation) -> int:
    """Move what the loops inside `root` do not change before them; how many times an op left a loop."""
    moved = 0
    loops = [op for op in root.walk() if LOOP in op.traits and op is not root]
    for loop in reversed(loops):
        for region in loop.regions:
            if not is_closed(loop, region):
                for block in region.blocks:
                    for op in block:
                        if _is_invariant(op, loop):
                            op.move_before(loop)
                            moved += 1
    return moved


def _is_invariant(op: Operation, loop: Operation) -> bool:
    # The operands are asked first, since most ops need something of their loop.
    here = op.parent
    if not op.results or any(v.block is here or defined_inside(v, loop) for v in op.operands):
        return False
    if op.regions and any(defined_inside(v, loop) for v in captured(op)):
        return False
    return is_pure(op) and all(o.is_speculatable() for o in op.walk() if isinstance(o, ConditionallySpeculatable))

"""What is done to a launch after a join: duplicates merged, invariants hoisted, locals inlined or kept, reduces merged,
dead code and unused ins dropped.  Nothing here changes a bit of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from ...ir.attribute_names import RECOMPUTE
from ...ir.attributes import ArrayAttr
from ...ir.builders.subscripts import AffineSubscript
from ...ir.captures import captured
from ...ir.dialects import kernel
from ...ir.operations import Block, Operation, Region
from ...ir.support.mixed import Extent
from ...ir.values import BlockArgument, Value
from ..cse import merge_repeated
from ..dce import remove_dead
from ..licm import hoist_invariants
from . import build, structure
from .structure import LOOPS, body, extents, points, walk

CHEAP = 4
"""A local is recomputed rather than kept when one evaluation costs no more than this many additions: about those of the
store and the load that it spares, on any machine."""


def simplify_launch(launch: kernel.Launch) -> None:
    """Bring a launch into its simplest form."""
    block = body(launch)
    while True:
        hoist_invariants(launch)
        merge_repeated(launch)
        remove_dead_code(launch)
        if merge_reduces(block) or merge_sweeps(block):
            continue
        if not inline_locals(block):
            break
    drop_unused_ins(launch)


# Dead code.


def remove_dead_code(launch: kernel.Launch) -> None:
    """Remove what computes nothing that is stored or yielded, parts of reduces too."""
    remove_dead(launch)
    while True:
        partly = [
            op for op in walk(body(launch)) if isinstance(op, kernel.Reduce) and not all(r.users for r in op.results)
        ]
        if not any([_drop_unused_parts(op) for op in partly]):
            return
        remove_dead(launch)


def _drop_unused_parts(op: kernel.Reduce) -> bool:
    """Remove the unused results of a reduce whose parts are folded independently; whether they are."""
    if independent_parts(op) is None:
        return False
    keep = [i for i, r in enumerate(op.results) if r.users]
    combine = op.combine.block
    count = len(op.results)
    element, folded = op.body.block.terminator, combine.terminator
    element.set_operands([element.operands[i] for i in keep])
    folded.set_operands([folded.operands[i] for i in keep])
    remove_dead(op)
    for place in reversed([i for i in range(2 * count) if i % count not in keep]):
        combine.erase_argument(place)
    op.properties["identity"] = ArrayAttr(op.identity[i] for i in keep)
    op.results = tuple(op.results[i] for i in keep)
    for index, result in enumerate(op.results):
        result.index = index
    return True


def independent_parts(op: kernel.Reduce) -> list[set[Operation]] | None:
    """For a reduce of several results the ops of the combine region that each needs, when no part reads another's
    arguments; None when they are entangled (argmax)."""
    count = len(op.results)
    combine = op.combine.block
    parts: list[set[Operation]] = []
    for i, value in enumerate(combine.terminator.operands):
        needed: set[Operation] = set()
        pending = [value]
        while pending:
            v = pending.pop()
            if isinstance(v, BlockArgument) and v.owner is combine and v.index % count != i:
                return None
            definer = v.defining_op
            if definer is not None and definer.parent is combine and definer not in needed:
                needed.add(definer)
                pending += definer.operands
        parts.append(needed)
    return parts


def drop_unused_ins(launch: kernel.Launch) -> None:
    """Forget ins that nothing loads."""
    pairs = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    used = [(a, v) for a, v in pairs if a.users]
    if len(used) != len(pairs):
        domain = list(zip(structure.axes(launch), extents(launch), strict=True))
        structure.set_launch(launch, domain, used, structure.outs(launch))


# Merging of loops over equal extents.


def merge_reduces(block: Block) -> bool:
    """Let two reduces over equal extents of which neither needs the other be one; whether any were."""
    for inner in [b for op in walk(block) for r in op.regions for b in r.blocks] + [block]:
        reduces = [op for op in inner if isinstance(op, kernel.Reduce) and not op.tree and not structure.is_product(op)]
        for first, second in _independent(inner, reduces):
            bring_together(first, second)
            _merge_two_reduces(first, second)
            return True
    return False


Loop = TypeVar("Loop", kernel.Reduce, kernel.Sweep)


def _independent(block: Block, loops: Sequence[Loop]) -> Iterator[tuple[Loop, Loop]]:
    """The pairs of loops of a block over equal extents of which the second does not need the first.

    One pass finds what each op needs, so that long chains of loops cost no more than they are long."""
    bounds = [extents(op) for op in loops]
    if all(bound not in bounds[i + 1 :] for i, bound in enumerate(bounds)):
        return
    bits: dict[Operation, int] = {op: 1 << i for i, op in enumerate(loops)}
    needed: dict[Operation, int] = {}
    for op in block:
        found = 0
        for value in captured(op) if op.regions else op.operands:
            maker = value.defining_op
            if maker in needed:
                found |= needed[maker]
        needed[op] = found | bits.get(op, 0)
    for i, first in enumerate(loops):
        for j in range(i + 1, len(loops)):
            if bounds[i] == bounds[j] and not needed[loops[j]] >> i & 1:
                yield first, loops[j]


def bring_together(first: Operation, second: Operation) -> None:
    """Move `first`, and what depends on it in between, to just before (after) `second`, which does not need it."""
    between: list[Operation] = []
    moved: set[Operation] = {first}
    op = first.next
    while op is not second:
        assert op is not None
        if structure.depends_on(op, moved):
            moved.add(op)
            between.append(op)
        op = op.next
    first.move_before(second)
    place = second
    for op in between:
        op.move_after(place)
        place = op


def _merge_two_reduces(first: kernel.Reduce, second: kernel.Reduce) -> None:
    """Fold the body, combine region and results of `first` into `second`."""
    a, b = len(first.results), len(second.results)
    mine, theirs = second.body.block, first.body.block
    for old, new in zip(theirs.arguments, mine.arguments, strict=True):
        old.replace_by(new)
    elements = theirs.terminator.operands
    _move_ops(theirs, mine, at_front=True)
    mine.terminator.set_operands([*elements, *mine.terminator.operands])
    fold, other = second.combine.block, first.combine.block
    folded = other.terminator.operands
    _move_ops(other, fold, at_front=True)
    left, right = other.arguments[:a], other.arguments[a:]
    fold.arguments = [*left, *fold.arguments[:b], *right, *fold.arguments[b:]]
    for index, argument in enumerate(fold.arguments):
        argument.owner, argument.index = fold, index
    fold.terminator.set_operands([*folded, *fold.terminator.operands])
    second.properties["identity"] = ArrayAttr([*first.identity, *second.identity])
    second.results = (*first.results, *second.results)
    for index, result in enumerate(second.results):
        result.owner, result.index = second, index
    first.results = ()
    other.arguments = []
    first.erase()


def _move_ops(source: Block, target: Block, at_front: bool) -> None:
    """Move all ops but the terminator; the source keeps an op-less terminator that is dropped with it."""
    place = target.first if at_front else target.terminator
    assert place is not None
    for op in source:
        if isinstance(op, kernel.Yield):
            op.set_operands(())
        else:
            op.move_before(place)


def merge_sweeps(block: Block) -> bool:
    """Let two sweeps over equal extents be one; whether any were."""
    sweeps = [op for op in block if isinstance(op, kernel.Sweep)]
    for first, second in _independent(block, sweeps):
        bring_together(first, second)
        mine, theirs = second.body.block, first.body.block
        for old, new in zip(theirs.arguments, mine.arguments, strict=True):
            old.replace_by(new)
        _move_ops(theirs, mine, at_front=True)
        first.erase()
        return True
    return False


# Locals.


def inline_locals(block: Block) -> bool:
    """Recompute the locals that are cheap, or that are read at one place no more often than they have elements."""
    for op in list(walk(block)):
        if not isinstance(op, kernel.Local):
            continue
        reads = [u for u in op.result.users if isinstance(u, kernel.Load)]
        loop_free = not structure.has_loops(op.body.block)
        cheap = loop_free and structure.cost(op.body.block) <= CHEAP
        if reads and (
            cheap or (len(reads) == 1 and not _reads_more_often(op, reads[0])) or op.attributes.get(RECOMPUTE)
        ):
            inline_local(op)
            return True
    return False


def _reads_more_often(local: kernel.Local, load: Operation) -> bool:
    """Whether the loops around `load`, that are not around `local`, run more often than the local has elements."""
    home = local.parent
    around: list[Extent] = []
    block = load.parent
    while block is not None and block is not home:
        parent = block.parent_op
        if isinstance(parent, LOOPS):
            around += extents(parent)
        block = parent.parent if parent is not None else None
    own = extents(local)
    if around == own:
        return False
    inside, elements = points(around), points(own)
    return inside > elements or math.isinf(inside)


def inline_local(local: kernel.Local) -> None:
    """Replace every load of a local by the computation of the element."""
    for load in list(local.result.users):
        assert isinstance(load, kernel.Load)
        element = splice_body(local.body, build.indices_of(load), load)
        load.replace_by([element])
    local.erase()


def splice_body(source: Region, at: list[AffineSubscript], before: Operation) -> Value:
    """Copy a body before an op with its axes replaced by index expressions; the value that it yields."""
    block = source.block
    copies: dict[Value, Value] = {}
    placed: dict[Value, AffineSubscript] = dict(zip(block.arguments, at, strict=True))
    builder = build.scalars_before(before)
    for op in block:
        if isinstance(op, kernel.Yield):
            (value,) = op.operands
            if value in placed:
                return placed[value].value(builder)
            return copies.get(value, value)
        twin = op.clone(copies)
        builder.insert(twin)
        replace_axes(twin, placed)
    raise AssertionError("a body without a yield")


def replace_axes(op: Operation, placed: dict[Value, AffineSubscript]) -> None:
    """Let an op and all inside it use index expressions in place of axes: in subscripts by composing maps, elsewhere
    through an index value computed before it."""
    for inner in list(op.walk()):
        if not any(v in placed for v in inner.operands):
            continue
        if isinstance(inner, kernel.Load | kernel.Store | kernel.Accumulate):
            fixed = len(inner.operands) - len(inner.indices)
            build.set_indices(inner, [i.replaced(placed) for i in build.indices_of(inner)])
            rest = inner.operands[:fixed]
        else:
            fixed, rest = len(inner.operands), inner.operands
        builder = build.scalars_before(inner)
        inner.set_operands(
            [placed[v].value(builder) if v in placed else v for v in rest] + list(inner.operands[fixed:])
        )

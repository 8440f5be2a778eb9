"""Merging two launches that read a common in and do not depend on each other.

One is the host and keeps its domain.  The other, the guest, is fitted to it: its axes are paired with the host's
through the loads of the common in; a reduce of the guest whose result is only stored is *raised* to an accumulate when
the host has the reduced axis in its domain (so the sum over rows of a gradient rides beside the gradient), and axes
that the host runs as inner loops are demoted to a sweep.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.definition import COMMUTATIVE
from ...ir.dialects import kernel
from ...ir.operations import Region
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.values import BlockArgument, Value
from ..dce import remove_dead
from ..kernel import build, simplify, structure
from ..kernel.structure import axes, body, extents, in_arguments, points, subscripts


@dataclass
class Merge:
    """How the guest fits the host: for each axis of the host the guest's axis (of its domain, or of its lone fold)."""

    host: kernel.Launch
    guest: kernel.Launch
    pairs: dict[BlockArgument, BlockArgument]
    fold: kernel.Reduce | None
    """The guest's fold that is raised."""
    rest: list[tuple[BlockArgument, Extent]]
    """The guest's axes that become a sweep."""


def plan_merge(first: kernel.Launch, second: kernel.Launch, target: Target) -> Merge | None:
    """The way to merge two siblings, or None."""
    for host, guest in ((first, second), (second, first)):
        found = _plan(host, guest, target)
        if found is not None:
            return found
    return None


def _plan(host: kernel.Launch, guest: kernel.Launch, target: Target) -> Merge | None:
    domain = dict(zip(axes(host), extents(host), strict=True))
    theirs = dict(zip(axes(guest), extents(guest), strict=True))
    if not domain and theirs:
        return None
    fold = _lone_fold(guest)
    inner = dict(zip(fold.body.block.arguments, extents(fold), strict=True)) if fold is not None else {}
    sizes: dict[Value, Extent] = {**theirs, **inner}
    pairs = _pairs(host, guest, domain, sizes)
    if pairs is None:
        return None
    targets = set(pairs.values())
    raised = fold is not None and any(a in inner for a in targets)
    if raised and (structure.has_product(host) or structure.has_product(guest)):
        return None  # the rows of a product would go in order, or it would become sums of outer products
    rest = [(a, e) for a, e in theirs.items() if a not in targets]
    if rest:
        # Only where the host runs the same inner loop anyway; else the guest would lose its parallel axis.
        loops = [extents(op) for op in body(host) if isinstance(op, structure.LOOPS)]
        if [e for _, e in rest] not in loops or points(domain.values()) < target.grain:
            return None
    if raised and not rest and not all(a in targets for a in theirs):
        return None
    return Merge(host, guest, pairs, fold if raised else None, rest)


def _pairs(
    host: kernel.Launch, guest: kernel.Launch, domain: dict[BlockArgument, Extent], sizes: dict[Value, Extent]
) -> dict[BlockArgument, BlockArgument] | None:
    """Host axis -> guest axis, read off the loads of common ins; None when an axis of the host finds no partner."""
    mine = dict(zip(host.ins, in_arguments(host), strict=True))
    pairs: dict[BlockArgument, BlockArgument] = {}
    for value, argument in zip(guest.ins, in_arguments(guest), strict=True):
        if value not in mine:
            continue
        for a in mine[value].users:
            for b in argument.users:
                if not isinstance(a, kernel.Load) or not isinstance(b, kernel.Load):
                    continue
                if a.source is mine[value] and b.source is argument:  # a size may be a subscript of loads, too
                    trial = dict(pairs)
                    if _extend(trial, a, b, domain, sizes):
                        pairs = trial
                if len(pairs) == len(domain):
                    return pairs
    return pairs if len(pairs) == len(domain) and (pairs or _share_scalar(host, guest)) else None


def _share_scalar(host: kernel.Launch, guest: kernel.Launch) -> bool:
    return not axes(guest) and any(v in host.ins for v in guest.ins)


def _extend(
    pairs: dict[BlockArgument, BlockArgument],
    a: kernel.Load,
    b: kernel.Load,
    domain: dict[BlockArgument, Extent],
    sizes: dict[Value, Extent],
) -> bool:
    for x, y in zip(subscripts(a), subscripts(b), strict=True):
        if not isinstance(x, BlockArgument) or x not in domain:
            continue
        if not isinstance(y, BlockArgument) or y not in sizes or sizes[y] != domain[x]:
            return False
        if pairs.get(x, y) is not y or (x not in pairs and y in pairs.values()):
            return False
        pairs[x] = y
    return True


def _lone_fold(launch: kernel.Launch) -> kernel.Reduce | None:
    """The only loop of a launch: a reduce of independent commutative parts whose results are only stored."""
    loops = [op for op in body(launch) if isinstance(op, structure.LOOPS)]
    if len(loops) != 1 or not isinstance(loops[0], kernel.Reduce) or launch.inits:
        return None
    fold = loops[0]
    if fold.tree or simplify.independent_parts(fold) is None:
        return None
    if not all(COMMUTATIVE in op.traits for op in fold.combine.block if not isinstance(op, kernel.Yield)):
        return None
    for result in fold.results:
        if result.num_uses != 1 or not isinstance(next(iter(result.users)), kernel.Store):
            return None
    stores = [op for op in body(launch) if isinstance(op, kernel.Store | kernel.Accumulate)]
    return fold if len(stores) == len(fold.results) else None


def apply_merge(merge: Merge, later: kernel.Launch) -> None:
    """Merge host and guest into the op `later` (one of the two), in place; the other is gone."""
    host, guest = merge.host, merge.guest
    earlier = guest if later is host else host
    domain = list(zip(axes(host), extents(host), strict=True))
    block, source = body(host), body(guest)
    for axis, other in merge.pairs.items():
        other.replace_by(axis)
    if merge.fold is not None:
        reduce_to_accumulate(merge.fold, set(merge.pairs.values()))
    ins = list(zip(in_arguments(host), host.ins, strict=True))
    known = {v: a for a, v in ins}
    for argument, value in zip(in_arguments(guest), guest.ins, strict=True):
        if value in known:
            argument.replace_by(known[value])
        else:
            known[value] = argument
            ins.append((argument, value))
    outs = structure.outs(earlier) + structure.outs(later)
    end = block.terminator
    if merge.rest:
        sweep = build.new_sweep([a for a, _ in merge.rest], [e for _, e in merge.rest], guest.location)
        block.insert_before(sweep, end)
        end = sweep.body.block.terminator
    for op in source:
        if op is not source.terminator:
            op.move_before(end)
    source.terminator.drop_references()
    (region,) = host.regions
    for launch in (host, guest):
        launch.set_operands(())
        launch.regions = ()
        launch.results = ()
    region.parent = later
    later.regions = (region,)
    structure.set_launch(later, domain, ins, outs)
    earlier.erase()
    simplify.simplify_launch(later)


def reduce_to_accumulate(fold: kernel.Reduce, gone: set[BlockArgument]) -> None:
    """Let a fold whose axes in `gone` are axes of the domain now be an accumulate for each of its results.

    Axes that stay are folded first, in a smaller reduce."""
    block = fold.parent
    assert block is not None
    stores = [next(iter(r.users)) for r in fold.results]
    inner = fold.body.block
    pairs = list(zip(inner.arguments, extents(fold), strict=True))
    left = [(a, e) for a, e in pairs if a not in gone]
    combines = [_part(fold, i) for i in range(len(fold.results))]
    elements: list[Value]
    if left:
        yielded = inner.terminator.operands
        smaller = build.new_reduce(
            [a for a, _ in left],
            [e for _, e in left],
            fold.identity,
            [r.type for r in fold.results],
            fold.combine.clone(),
            fold.location,
        )
        block.insert_before(smaller, fold)
        end = smaller.body.block.terminator
        for op in inner:
            if op is not inner.terminator:
                op.move_before(end)
        end.set_operands(yielded)
        elements = list(smaller.results)
    else:
        elements = list(inner.terminator.operands)
        for op in list(inner):
            if not isinstance(op, kernel.Yield):
                op.move_before(fold)
    identities = fold.identity
    for i, (element, store) in enumerate(zip(elements, stores, strict=True)):
        assert isinstance(store, kernel.Store)
        build.accumulate(build.scalars_before(store), [element], [store], [identities[i]], combines[i])
        store.erase()
    fold.erase()


def _part(fold: kernel.Reduce, index: int) -> Region:
    """The combine region of one of several independent results."""
    count = len(fold.results)
    copy = fold.combine.clone()
    block = copy.block
    block.terminator.set_operands([block.terminator.operands[index]])
    remove_dead(copy)
    for place in reversed(range(2 * count)):
        if place % count != index:
            block.erase_argument(place)
    return copy

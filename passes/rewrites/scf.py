"""Rules for control flow: branches that are known, loops of one trip, values carried for nothing."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.attributes import IntegerAttr
from ...ir.captures import defined_inside
from ...ir.dialects.scf import For, If
from ...ir.operations import Region
from ...ir.rewrite_rules import rule
from ...ir.rewriter import Rewriter
from ...ir.values import Value


@rule(If, "a known condition leaves one branch")
def known_branch(op: If, rewriter: Rewriter) -> Sequence[Value] | None:
    """Inline the branch that is taken."""
    condition = rewriter.constant_of(op.condition)
    if not isinstance(condition, IntegerAttr):
        return None
    branch = op.then if condition.value else op.otherwise
    return rewriter.inline_block(branch.block, op, []) if branch.blocks else ()


@rule(If, "branches that do nothing go")
def empty_branches(op: If, rewriter: Rewriter) -> Sequence[Value] | None:
    """An if without results whose branches hold only terminators."""
    branches = [r.block for r in (op.then, op.otherwise) if r.blocks]
    return None if op.results or any(b.first is not b.last for b in branches) else ()


@rule(If, "results that nobody uses, or that are equal, are not yielded")
def needless_results(op: If, rewriter: Rewriter) -> Sequence[Value] | None:
    """Drop results without uses, and those that both branches take from one value outside."""
    if not op.results or not op.otherwise.blocks:
        return None
    ends = [region.block.terminator for region in (op.then, op.otherwise)]
    outside: list[Value | None] = [
        a if a is b and not defined_inside(a, op) else None for a, b in zip(ends[0].operands, ends[1].operands)
    ]
    kept = [r.index for r in op.results if r.users and outside[r.index] is None]
    if len(kept) == len(op.results):
        return None
    regions: list[Region] = []
    for region, end in zip((op.then, op.otherwise), ends):
        rewriter.set_operands(end, [end.operands[i] for i in kept])
        moved = Region()
        moved.take_body(region)
        regions.append(moved)
    types = [op.results[i].type for i in kept]
    slim = rewriter.create(If, op.condition, results=types, regions=regions, attributes=op.attributes)
    values = iter(slim.results)
    # A result without uses needs no replacement and stands for itself.
    return [next(values) if r.index in kept else outside[r.index] or r for r in op.results]


@rule(For, "a loop of one trip is its body")
def single_trip(op: For, rewriter: Rewriter) -> Sequence[Value] | None:
    """Inline the body with the lower bound as the counter."""
    if op.trips != 1:
        return None
    return rewriter.inline_block(op.body.block, op, [op.lower, *op.inits])


@rule(For, "values that never change are not carried")
def unchanged_values(op: For, rewriter: Rewriter) -> Sequence[Value] | None:
    """Drop carried values that each trip passes on as they are, or that neither the body nor anyone behind it uses."""
    block = op.body.block
    end = block.terminator
    constant: dict[int, Value] = {}
    for i, (init, argument, following, result) in enumerate(zip(op.inits, op.carried, end.operands, op.results)):
        if following is argument or following is init or not (argument.users or result.users):
            constant[i] = init
    if not constant:
        return None
    kept = [i for i in range(len(op.inits)) if i not in constant]
    for i, init in constant.items():
        op.carried[i].replace_by(init)
    rewriter.set_operands(end, [end.operands[i] for i in kept])
    for i in reversed(constant):
        block.erase_argument(1 + i)
    body = Region()
    inits = [op.inits[i] for i in kept]
    body.take_body(op.body)
    loop = rewriter.create(
        For, op.lower, op.upper, op.step, inits, regions=[body], attributes=op.attributes, location=op.location
    )
    values = iter(loop.results)
    return [constant[i] if i in constant else next(values) for i in range(len(op.results))]


RULES = (known_branch, empty_branches, needless_results, single_trip, unchanged_values)

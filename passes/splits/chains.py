"""Chains of chains: the part of split-reduce that bounds how many numbers a sum adds one after another.

    %s = kernel.reduce (%k) in (1000) by arith.addf {
      %0 = kernel.load %x[%k, %i]
      kernel.yield %0
    }
        becomes, for chain = [[1, 32]]
    %s = kernel.reduce (%p) in (40) by arith.addf {
      %m = kernel.reduce (%k) in (25) by arith.addf {
        %0 = kernel.load %x[%p * 25 + %k, %i]
        kernel.yield %0
      }
      kernel.yield %m
    }

The error of a sum then grows with the length of a chain, not with the number of elements (Higham, "The Accuracy of
Floating Point Summation", SIAM J. Sci. Comput. 14(4), 1993).  Where no divisor of the extent is near the length asked
for, and where the extent is known at run time only, the last chain of each level is shorter: its extent is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...ir.attributes import ArrayAttr
from ...ir.builders.scalar import ScalarBuilder
from ...ir.builders.subscripts import AffineSubscript
from ...ir.definition import make
from ...ir.dialects import arith, kernel
from ...ir.operations import Block, Region
from ...ir.support import mixed
from ...ir.support.mixed import Extent
from ...ir.values import BlockArgument, Value
from ..schedules.chains import CHAIN

Element = Callable[[ScalarBuilder, AffineSubscript, Sequence[BlockArgument]], Sequence[Value]]
"""What a fold combines at a place along its axis, and along the axes that it takes with it."""

DEPTH = 3
"""Chains of partial results, within each other, of a fold whose extent is known at run time only: enough for a million
elements in chains of `CHAIN`."""


def units(extent: Extent, steps: int, depth: int | None = None, most: int | None = None) -> list[int]:
    """The elements in a step of each of the nested folds, outermost first; the last is 1.

    `depth`: the folds inside each other (None: as many as it takes); `most`: no less than the extent, where that is
    known at run time only.
    """
    if isinstance(extent, Value) and most is None:
        return [*(steps * CHAIN**level for level in reversed(range(depth - 1 if depth else DEPTH))), 1]
    found, left = [1], extent if isinstance(extent, int) else most or 1
    while (left > steps if depth else left > 2 * steps) and len(found) != depth:
        even = [d for d in range(steps, 3 * steps // 4, -1) if left % d == 0] if isinstance(extent, int) else []
        found.append(found[-1] * (even[0] if even else steps))
        left = -(-left // (even[0] if even else steps))
        steps = CHAIN
    return found[::-1]


class Chained(NamedTuple):
    """A fold in chains: its values, the outermost and the innermost axis, and the elements in a step of the first."""

    values: list[Value]
    outer: BlockArgument
    inner: BlockArgument
    unit: int


def fold_in_chains(
    b: ScalarBuilder,
    like: kernel.Reduce,
    extent: Extent,
    steps: int,
    name: str | None,
    element: Element,
    inner: Sequence[tuple[str, Extent]] = (),
    depth: int | None = None,
) -> Chained:
    """A fold by the monoid of another, in chains of about `steps`.  The chains run over the axes `inner` (names and
    extents) too; `depth` folds stand in each other (None: as many as it takes)."""
    parts = units(extent, steps, depth, at_most(extent))
    axes: list[BlockArgument] = []

    def level(into: ScalarBuilder, number: int, at: AffineSubscript) -> list[Value]:
        unit = parts[number]
        if number == 0:
            count = divided_up(into, extent, unit)
        elif isinstance(extent, int) and extent % parts[number - 1] == 0:
            count = parts[number - 1] // unit
        else:
            left = into.sub(into.index_of(extent), at.value(into))
            whole = into.index_constant(parts[number - 1] // unit)
            count = into.value_of(arith.MinSI, whole, into.index_of(divided_up(into, left, unit)))

        def body(b: ScalarBuilder, own: Sequence[BlockArgument]) -> Sequence[Value]:
            axes.append(own[0])
            here = at + AffineSubscript.of(own[0]) * unit
            return element(b, here, own[1:]) if unit == 1 else level(b, number + 1, here)

        if unit > 1:
            return new_reduce(into, like, [count], ["p"], body)
        return new_reduce(into, like, [count, *(e for _, e in inner)], [name or "k", *(n for n, _ in inner)], body)

    values = level(b, 0, AffineSubscript.of(0))
    return Chained(values, axes[0], axes[-1], parts[0])


def divided_up(b: ScalarBuilder, extent: Extent, unit: int) -> Extent:
    """The number of units that hold an extent."""
    if isinstance(extent, int):
        return -(-extent // unit)
    return extent if unit == 1 else b.value_of(arith.CeilDivSI, extent, b.index_constant(unit))


def at_most(extent: Extent) -> int | None:
    """What an extent does not exceed, when it is the lesser of a number and something else."""
    maker = extent.defining_op if isinstance(extent, Value) else None
    return mixed.known(maker.lhs) if isinstance(maker, arith.MinSI) else None


def new_reduce(
    b: ScalarBuilder,
    like: kernel.Reduce,
    extents: Sequence[Extent],
    names: Sequence[str],
    body: Callable[[ScalarBuilder, Sequence[BlockArgument]], Sequence[Value]],
) -> list[Value]:
    """A reduce by the monoid of another, with a body that is built."""
    block = kernel.loop_body(extents, names)
    inner = ScalarBuilder(block, location=like.location)
    inner.create(kernel.Yield, list(body(inner, block.arguments)))
    return list(b.insert(like_reduce(like, extents, block)).results)


def like_reduce(op: kernel.Reduce | kernel.Accumulate, extents: Sequence[Extent], body: Block) -> kernel.Reduce:
    """A detached reduce by the monoid of another, or of an accumulate."""
    static, dynamic = mixed.split(extents)
    regions = [Region([body]), op.combine.clone()]
    return make(
        kernel.Reduce,
        (dynamic,),
        [v.type for v in (op.values if isinstance(op, kernel.Accumulate) else op.results)],
        regions,
        (),
        {"extents": static, "identity": ArrayAttr(op.identity)},
        location=op.location,
    )

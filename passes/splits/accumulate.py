"""Partial results of accumulates: the part of split-reduce that splits axes of the domain along which points meet.

    %l = kernel.launch (%i) in (100000) ins(%x : ..) outs(%y : .., %l : tensor<f32>) {
      .. kernel.store %e, %y[%i]
      kernel.accumulate %v, %l[] by arith.addf
    }
        becomes, in lanes of 64 and blocks of 2048 points
    %y, %p = kernel.launch (%b, %l) in (49, 64) ins(%x : ..) outs(%y : .., %p : tensor<49x64xf32>) {
      %r = min(2048, 100000 - %b * 2048)
      %n = (%r + 63 - %l) / 64
      kernel.sweep (%s) in (%n) {
        .. kernel.store %e, %y[%b * 2048 + %s * 64 + %l]
        kernel.accumulate %v, %p[%b, %l] by arith.addf
      }
    }
    %l = kernel.launch () in () ins(%p : tensor<49x64xf32>) outs(%l : tensor<f32>) {
      kernel.reduce (%b, %l) in (49, 64) by arith.addf {..}; store
    }

Every lane takes every 64th point of a block, in order, so that an element of an accumulate is added to by one lane of
one block only.  Without lanes a block takes its points in order; on a CPU it runs over the axes behind too, row after
row, as they lie.  Accumulates whose subscripts have the axis stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir.builder import Builder
from ...ir.builders.scalar import ScalarBuilder
from ...ir.builders.subscripts import AffineSubscript
from ...ir.dialects import arith, array, kernel
from ...ir.support.mixed import Extent
from ...ir.support.shapes import tensor_type
from ...ir.types import DYNAMIC, INDEX, TensorType
from ...ir.values import BlockArgument, OpResult, Value
from ..analysis.launch import accumulates_along
from ..kernel import build, simplify, structure
from ..licm import hoist_invariants
from .blocks import rest_of
from .chains import divided_up, like_reduce


class Parts(NamedTuple):
    """An axis in parts: the axis that stands in its place, the launches that fold the partial results, and whether
    there are blocks, not only lanes."""

    axis: BlockArgument
    folds: list[kernel.Launch]
    blocked: bool


def split_points(launch: kernel.Launch, axis: BlockArgument, size: int | None, lanes: int, rows: bool) -> Parts | None:
    """Make blocks of `size` points (None: one block) and lanes (1: none) of an axis of the domain; None where no
    accumulate needs it.  `rows`: blocks without lanes run over the axes behind."""
    accumulates = [o for o in launch.walk() if isinstance(o, kernel.Accumulate) and accumulates_along(o, axis)]
    outs = structure.outs(launch)
    starts = {argument: start for argument, _, start in outs}
    extent = launch.bounds[axis.index]
    if size is not None and isinstance(extent, int) and extent <= size:
        size = None
    if not accumulates or (size is None and lanes == 1):
        return None
    if any(starts[d] is not None for op in accumulates for d in op.dests):  # pyright: ignore[reportArgumentType]
        return None
    count = None if size is None else divided_up(ScalarBuilder(before=launch, location=launch.location), extent, size)
    if size == 1:
        number, lane = axis, None
        moved = axis
    else:
        moved, number, lane = _sweep_points(launch, axis, size, count, lanes, rows)
    results = {argument: result for argument, result, _ in structure.outs(launch)}
    whole: dict[Value, TensorType] = {}
    for dest in (d for op in accumulates for d in op.dests):
        type = dest.type
        assert isinstance(type, TensorType)
        whole[dest] = type
        front: list[int | str] = [] if count is None else [count if isinstance(count, int) else "?"]
        made = tensor_type([*front, *type.dims, *([] if lane is None else [lanes])], type.element)
        results[dest].type = dest.type = made  # pyright: ignore[reportArgumentType]
    folds: list[kernel.Launch] = []
    for op in accumulates:
        before = [] if count is None or number is None else [AffineSubscript.of(number)]
        build.set_indices(op, [*before, *build.indices_of(op), *([] if lane is None else [AffineSubscript.of(lane)])])
        partials = [results[d] for d in op.dests]  # pyright: ignore[reportArgumentType]
        types = [whole[d] for d in op.dests]
        folds.append(_fold(Builder.after_op(launch), op, partials, types, count, 1 if lane is None else lanes))
    return Parts(moved, folds, count is not None)


def _sweep_points(
    launch: kernel.Launch, axis: BlockArgument, size: int | None, count: Extent | None, lanes: int, rows: bool
) -> tuple[BlockArgument, BlockArgument | None, BlockArgument | None]:
    """Let the body run over the points of a block or lane in a sweep; the axis in the place of the old one, the
    numbers of block and lane."""
    block = structure.body(launch)
    outs = structure.outs(launch)
    domain = list(zip(structure.axes(launch), launch.bounds, strict=True))
    ins = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    place = axis.index
    number = BlockArgument(INDEX, block, 0, "b") if count is not None else None
    lane = BlockArgument(INDEX, block, 0, "l") if lanes > 1 else None
    inside = [op for op in block if op is not block.terminator]
    b = ScalarBuilder(before=block.terminator, location=launch.location)
    extent = structure.extent_inside(domain[place][1], block, ins)
    at = AffineSubscript.of(0)
    if number is not None:
        assert size is not None
        extent = rest_of(b, extent, number, size)
        at = AffineSubscript.of(number) * size
    if lane is not None:
        extent = _steps(b, extent, lane, lanes)
    step = BlockArgument(INDEX, block, 0, "s" if lane is not None else axis.name)
    swept: list[tuple[BlockArgument, Extent]] = [(step, extent)]
    behind: list[tuple[BlockArgument, Extent]] = []
    if lane is None and rows:
        behind = domain[place + 1 :]
        swept += [(a, structure.extent_inside(e, block, ins)) for a, e in behind]
    sweep = b.insert(build.new_sweep([a for a, _ in swept], [e for _, e in swept], launch.location))
    end = sweep.body.block.terminator
    for op in inside:
        op.move_before(end)
    at = at + AffineSubscript.of(step) * lanes
    if lane is not None:
        at = at + AffineSubscript.of(lane)
    for op in inside:
        simplify.replace_axes(op, {axis: at})
    parts: list[tuple[BlockArgument, Extent]] = [] if number is None or count is None else [(number, count)]
    parts += [] if lane is None else [(lane, lanes)]
    after = [d for d in domain[place + 1 :] if d not in behind]
    structure.set_launch(launch, [*domain[:place], *parts, *after], ins, outs)
    hoist_invariants(launch)
    return lane or step, number, lane


def _steps(b: ScalarBuilder, extent: Extent, lane: Value, lanes: int) -> Extent:
    """The points of a lane."""
    if isinstance(extent, int) and extent % lanes == 0:
        return extent // lanes
    rounded = b.index_constant(extent + lanes - 1) if isinstance(extent, int) else b.add(extent, lanes - 1)
    return b.value_of(arith.DivUI, b.sub(rounded, lane), b.index_constant(lanes))


def _fold(
    b: Builder,
    op: kernel.Accumulate,
    partials: Sequence[OpResult],
    types: Sequence[TensorType],
    count: Extent | None,
    lanes: int,
) -> kernel.Launch:
    """A launch that folds the blocks and lanes of one accumulate; lanes alone as a tree."""
    front = 0 if count is None else 1
    extents: list[Extent] = [
        size if size != DYNAMIC else b.value(array.Dim, partials[0], axis=axis + front)
        for axis, size in enumerate(types[0].shape)
    ]
    names = ["i", "j", "h", "v"]
    ins: list[Value] = [*partials, *([count] if isinstance(count, Value) else [])]
    new = kernel.Launch.build(b, extents, ins, types, names=names[: len(extents)], location=op.location)
    body = ScalarBuilder(new.body.block, location=op.location)
    blocks = new.in_arguments[-1] if isinstance(count, Value) else count
    over: list[tuple[str, Extent]] = [] if blocks is None else [("b", blocks)]
    over += [("l", lanes)] if lanes > 1 else []
    loop = kernel.loop_body([e for _, e in over], [n for n, _ in over])
    own = [AffineSubscript.of(a) for a in loop.arguments]
    inner = ScalarBuilder(loop, location=op.location)
    at = [*own[:front], *(AffineSubscript.of(a) for a in new.axes), *own[front:]]
    inner.create(kernel.Yield, [build.load(inner, a, at) for a in new.in_arguments[: len(partials)]])
    fold = like_reduce(op, [e for _, e in over], loop)
    if count is None:
        fold.properties["tree"] = kernel.Reduce.definition.properties["tree"].to_attribute(True)
    body.insert(fold)
    for value, dest in zip(fold.results, new.out_arguments, strict=True):
        build.store(body, value, dest, [AffineSubscript.of(a) for a in new.axes])
    body.create(kernel.Yield, [])
    own_sizes = {e.defining_op for e in extents if isinstance(e, Value)}
    for old, result in zip(partials, new.results, strict=True):
        result.name = old.name
        old.replace_by(result, lambda user: user is not new and user not in own_sizes)
        old.name = f"{old.name}_parts" if old.name else None
    return new

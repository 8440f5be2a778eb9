"""Lanes for accumulates: the half of split-reduce that turns an axis of the domain into lanes.

    %l = kernel.launch (%i) in (1000) ins(%x : ..) outs(%y : .., %l : tensor<f32>) {
      .. kernel.store %e, %y[%i]
      kernel.accumulate %v, %l[] by arith.addf
    }
        becomes
    %y, %p = kernel.launch (%l) in (16) ins(%x : ..) outs(%y : .., %p : tensor<16xf32>) {
      %n = (1015 - %l) / 16
      kernel.sweep (%s) in (%n) {
        .. kernel.store %e, %y[%s * 16 + %l]
        kernel.accumulate %v, %p[%l] by arith.addf
      }
    }
    %l = kernel.launch () in () ins(%p : tensor<16xf32>) outs(%l : tensor<f32>) {
      kernel.reduce (%l) in (16) tree by arith.addf {..}; store
    }

Every lane takes every 16th point, in order, so that an element of an accumulate is added to by one lane only.
Accumulates whose subscripts have the axis stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.attributes import ArrayAttr
from ..ir.builder import Builder
from ..ir.definition import make
from ..ir.dialects import arith, array, kernel, mixed
from ..ir.dialects.point import Index
from ..ir.dialects.scalar_builder import ScalarBuilder
from ..ir.dialects.shapes import tensor_type
from ..ir.operations import Block, Region
from ..ir.types import DYNAMIC, INDEX, TensorType
from ..ir.values import BlockArgument, OpResult, Value
from .fusion import build, structure, tidy
from .schedules.facts import depends
from .schedules.schedule import KEY, Schedule

Extent = int | Value


def split_domain(launch: kernel.Launch, axis: BlockArgument, lanes: int, vector: int) -> BlockArgument | None:
    """Make lanes of an axis of the domain; the lane axis, or None where no accumulate needs it."""
    accumulates = [
        op
        for op in launch.walk()
        if isinstance(op, kernel.Accumulate) and not any(depends(v, axis) for v in op.indices)
    ]
    outs = structure.outs(launch)
    starts = {argument: start for argument, _, start in outs}
    if not accumulates or any(starts[d] is not None for op in accumulates for d in op.dests):  # pyright: ignore[reportArgumentType]
        return None
    block = structure.body(launch)
    domain = list(zip(structure.axes(launch), launch.bounds, strict=True))
    ins = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    lane = BlockArgument(INDEX, block, axis.index, "l")
    inside = [op for op in block if op is not block.terminator]
    extent = domain[axis.index][1]
    if isinstance(extent, Value):
        known = next((a for a, v in ins if v is extent), None)
        if known is None:
            known = BlockArgument(extent.type, block, 0, extent.name)
            ins.append((known, extent))
        extent = known
    sweep = _sweep(block, lane, extent, lanes)
    end = sweep.body.block.terminator
    for op in inside:
        op.move_before(end)
    (step,) = sweep.axes
    for op in inside:
        tidy.replace_axes(op, {axis: Index.of(step) * lanes + Index.of(lane)})
    partial: dict[Value, OpResult] = {}
    whole: dict[Value, TensorType] = {}
    for op in accumulates:
        for dest in op.dests:
            result = next(r for a, r, _ in outs if a is dest)
            type = result.type
            assert isinstance(type, TensorType)
            whole[dest] = type
            result.type = dest.type = tensor_type([*type.dims, lanes], type.element)
            partial[dest] = result
    for op in accumulates:
        build.set_indices(op, [*build.indices_of(op), Index.of(lane)])
    domain[axis.index] = (lane, lanes)
    structure.set_launch(launch, domain, ins, outs)
    place = Builder.after_op(launch)
    for op in accumulates:
        _fold(place, op, [partial[d] for d in op.dests], [whole[d] for d in op.dests], lanes, vector)
    return lane


def _sweep(block: Block, lane: BlockArgument, extent: Extent, lanes: int) -> kernel.Sweep:
    """The steps of a lane, at the end of the body."""
    before = block.terminator
    b = ScalarBuilder(before=before, location=before.location)
    if isinstance(extent, int) and extent % lanes == 0:
        steps: Extent = extent // lanes
    else:
        if isinstance(extent, int):
            rounded = b.index_constant(extent + lanes - 1)
        else:
            rounded = b.value_of(arith.AddI, extent, b.index_constant(lanes - 1))
        steps = b.value_of(arith.DivUI, b.value_of(arith.SubI, rounded, lane), b.index_constant(lanes))
    sweep = build.new_sweep(None, [steps], before.location)
    sweep.axes[0].name = "s"
    return b.insert(sweep)


def _fold(
    b: Builder,
    op: kernel.Accumulate,
    partials: Sequence[OpResult],
    types: Sequence[TensorType],
    lanes: int,
    vector: int,
) -> None:
    """A launch that folds the lanes of one accumulate."""
    extents: list[Extent] = [
        size if size != DYNAMIC else b.value(array.Dim, partials[0], axis=axis)
        for axis, size in enumerate(types[0].shape)
    ]
    names = ["i", "j", "h", "v"]
    new = kernel.Launch.build(b, extents, partials, types, names=names[: len(extents)], location=op.location)
    body = ScalarBuilder(new.body.block, location=op.location)
    lane_block = kernel.loop_body([lanes], ["l"])
    inner = ScalarBuilder(lane_block, location=op.location)
    at = [*(Index.of(a) for a in new.axes), Index.of(lane_block.arguments[0])]
    inner.create(kernel.Yield, [build.load(inner, source, at) for source in new.in_arguments])
    static, dynamic = mixed.split([lanes])
    fold = make(
        kernel.Reduce,
        (dynamic,),
        [v.type for v in op.values],
        [Region([lane_block]), op.combine.clone()],
        (),
        {"extents": static, "identity": ArrayAttr(op.identity), "tree": True},
        location=op.location,
    )
    body.insert(fold)
    for value, dest in zip(fold.results, new.out_arguments, strict=True):
        build.store(body, value, dest, [Index.of(a) for a in new.axes])
    body.create(kernel.Yield, [])
    number = len(extents)
    copies = lanes // vector
    schedule = Schedule(vector=((number, vector),), unroll=((number, copies),) if copies > 1 else ())
    new.properties[KEY] = schedule.attribute()
    for old, result in zip(partials, new.results, strict=True):
        result.name = old.name
        old.replace_by(result, lambda user: user is not new and not isinstance(user, array.Dim))
        old.name = f"{old.name}_lanes" if old.name else None

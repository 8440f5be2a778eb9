"""Blocks of points for workers: the part of split-reduce that turns blocks of a fold into points of the domain.

    %y = kernel.launch () in () ins(%x : ..) outs(%y : tensor<f32>) {
      %s = kernel.reduce (%k) in (4096) by arith.addf {.. load %x[%k] ..}
      .. kernel.store %r, %y[]
    }
        becomes
    %p = kernel.launch (%b) in (32) ins(%x : ..) outs(%p : tensor<32xf32>) {
      %s = kernel.reduce (%k) in (128) by arith.addf {.. load %x[%b * 128 + %k] ..}
      kernel.store %s, %p[%b]
    }
    %y = kernel.launch () in () ins(%p : ..) outs(%y : tensor<f32>) {
      %s = kernel.reduce (%b) in (32) by arith.addf {.. load %p[%b] ..}
      .. kernel.store %r, %y[]
    }

In the same way an axis of the domain that accumulates lack becomes two, blocks and points of a block, and the
accumulates write an element for each block.  The number of blocks follows from the extent alone, so results do not
depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.attributes import ArrayAttr
from ..ir.builder import Builder
from ..ir.dialects import kernel
from ..ir.dialects.point import Index
from ..ir.dialects.scalar_builder import ScalarBuilder
from ..ir.operations import Region
from ..ir.types import INDEX, TensorType
from ..ir.values import BlockArgument, OpResult, Value
from .fusion import build, structure, tidy
from .schedules.facts import depends

Extent = int | Value


def block_fold(launch: kernel.Launch, axis: BlockArgument, size: int) -> kernel.Launch | None:
    """Make blocks of the first axis of a launch's only fold.

    The launch that folds each block is new and stands before the old one, which now folds the blocks.  None where the
    launch has another form.
    """
    op = axis.owner.parent_op
    block = structure.body(launch)
    if not isinstance(op, kernel.Reduce) or op.tree or axis.index or op.parent is not block:
        return None
    extent = op.bounds[0]
    domain = list(zip(structure.axes(launch), launch.bounds, strict=True))
    shape = [e for _, e in domain if isinstance(e, int)]
    others = any(isinstance(o, kernel.Axes | kernel.Accumulate) for o in block if o is not op)
    if not isinstance(extent, int) or not size or extent % size or len(shape) != len(domain) or others:
        return None
    if any(isinstance(r.type, TensorType) for r in op.results):
        return None
    count = extent // size
    types = [TensorType([count, *shape], r.type) for r in op.results]
    names = ["b", *(a.name or "i" for a in structure.axes(launch))]
    first = kernel.Launch.build(
        Builder.before_op(launch), [count, *shape], launch.ins, types, names=names, location=launch.location
    )
    table: dict[Any, Any] = dict(zip(structure.axes(launch), first.axes[1:], strict=True))
    table.update(zip(structure.in_arguments(launch), first.in_arguments, strict=True))
    body = ScalarBuilder(first.body.block, location=launch.location)
    for inner in block:
        if inner.is_before(op):
            body.insert(inner.clone(table))
    fold = body.insert(op.clone(table))
    assert isinstance(fold, kernel.Reduce)
    moved = fold.axes[0]
    for inner in fold.body.block:
        tidy.replace_axes(inner, {moved: Index.of(first.axes[0]) * size + Index.of(moved)})
    extents = [size if i == 0 else e for i, e in enumerate(fold.extents)]
    fold.properties["extents"] = fold.definition.properties["extents"].to_attribute(extents)
    for value, dest in zip(fold.results, first.out_arguments, strict=True):
        build.store(body, value, dest, [Index.of(a) for a in first.axes])
    body.create(kernel.Yield, [])
    _fold_blocks(launch, op, first.results, count)
    return first


def _fold_blocks(launch: kernel.Launch, op: kernel.Reduce, partials: Sequence[OpResult], count: int) -> None:
    """Let a launch fold partial results in place of what its fold was."""
    block = structure.body(launch)
    outs, domain = structure.outs(launch), list(zip(structure.axes(launch), launch.bounds, strict=True))
    ins = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    arguments = [BlockArgument(v.type, block, 0, "p") for v in partials]
    (axis,) = (inner := kernel.loop_body([count], ["b"])).arguments
    b = ScalarBuilder(inner, location=op.location)
    at = [Index.of(axis), *(Index.of(a) for a, _ in domain)]
    b.create(kernel.Yield, [build.load(b, argument, at) for argument in arguments])
    new = ScalarBuilder(before=op, location=op.location).create(
        kernel.Reduce,
        [],
        results=[r.type for r in op.results],
        regions=[Region([inner]), op.combine.clone()],
        extents=[count],
        identity=ArrayAttr(op.identity),
    )
    op.replace_by(new)
    ins = [(a, v) for a, v in ins if a.uses] + list(zip(arguments, partials, strict=True))
    structure.set_launch(launch, domain, ins, outs)


def block_domain(launch: kernel.Launch, axis: BlockArgument, size: int) -> BlockArgument | None:
    """Make blocks of an axis of the domain that accumulates lack: the axis of the points of a block, or None where
    nothing changed."""
    accumulates = [
        op
        for op in launch.walk()
        if isinstance(op, kernel.Accumulate) and not any(depends(v, axis) for v in op.indices)
    ]
    extent = launch.bounds[axis.index]
    outs = structure.outs(launch)
    starts = {argument: start for argument, _, start in outs}
    dests = [d for op in accumulates for d in op.dests]
    static = all(isinstance(d.type, TensorType) and d.type.is_static for d in dests)
    if not accumulates or not isinstance(extent, int) or extent % size or not static:
        return None
    if any(starts[d] is not None for d in dests):  # pyright: ignore[reportArgumentType]
        return None
    block = structure.body(launch)
    domain = list(zip(structure.axes(launch), launch.bounds, strict=True))
    ins = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    number = BlockArgument(INDEX, block, 0, "b")
    point = BlockArgument(INDEX, block, 0, axis.name)
    for op in list(block):
        tidy.replace_axes(op, {axis: Index.of(number) * size + Index.of(point)})
    count = extent // size
    results = {argument: result for argument, result, _ in outs}
    whole: dict[Value, TensorType] = {}
    for dest in dests:
        result = results[dest]  # pyright: ignore[reportArgumentType]
        type = result.type
        assert isinstance(type, TensorType)
        whole[dest] = type
        result.type = dest.type = TensorType([count, *type.shape], type.element)
    for op in accumulates:
        build.set_indices(op, [Index.of(number), *build.indices_of(op)])
    domain[axis.index : axis.index + 1] = [(point, size)]
    structure.set_launch(launch, [(number, count), *domain], ins, outs)
    for op in accumulates:
        partials = [results[d] for d in op.dests]  # pyright: ignore[reportArgumentType]
        _fold_accumulate(launch, op, partials, [whole[d] for d in op.dests], count)
    return point


def _fold_accumulate(
    launch: kernel.Launch,
    op: kernel.Accumulate,
    partials: Sequence[OpResult],
    types: Sequence[TensorType],
    count: int,
) -> None:
    """A launch that folds the blocks of one accumulate."""
    b = Builder.after_op(launch)
    shape = types[0].shape
    new = kernel.Launch.build(b, shape, partials, types, names=["i", "j", "h", "v"][: len(shape)], location=op.location)
    (axis,) = (inner := kernel.loop_body([count], ["b"])).arguments
    into = ScalarBuilder(inner, location=op.location)
    at = [Index.of(axis), *(Index.of(a) for a in new.axes)]
    into.create(kernel.Yield, [build.load(into, argument, at) for argument in new.in_arguments])
    body = ScalarBuilder(new.body.block, location=op.location)
    fold = body.create(
        kernel.Reduce,
        [],
        results=[v.type for v in op.values],
        regions=[Region([inner]), op.combine.clone()],
        extents=[count],
        identity=ArrayAttr(op.identity),
    )
    for value, dest in zip(fold.results, new.out_arguments, strict=True):
        build.store(body, value, dest, [Index.of(a) for a in new.axes])
    body.create(kernel.Yield, [])
    for old, result in zip(partials, new.results, strict=True):
        result.name = old.name
        old.replace_by(result, lambda user: user is not new)
        old.name = f"{old.name}_blocks" if old.name else None

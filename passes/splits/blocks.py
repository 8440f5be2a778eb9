"""Blocks of a fold: the part of split-reduce that turns blocks of a fold into points of the domain.

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

The last block is shorter where blocks do not divide the extent, or where that is known at run time only.  The number of
blocks follows from the extent alone, so results do not depend on the number of workers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.builder import Builder
from ...ir.builders.scalar import ScalarBuilder
from ...ir.builders.subscripts import AffineSubscript
from ...ir.dialects import arith, kernel
from ...ir.support import mixed
from ...ir.support.mixed import Extent
from ...ir.support.shapes import tensor_type
from ...ir.types import TensorType
from ...ir.values import BlockArgument, OpResult, Value
from ..kernel import build, simplify, structure
from .chains import divided_up, new_reduce


def block_fold(launch: kernel.Launch, axis: BlockArgument, size: int) -> kernel.Launch | None:
    """Make blocks of the first axis of a launch's only fold.

    The launch that folds each block is new and stands before the old one, which now folds the blocks.  None where the
    launch has another form.
    """
    op = axis.owner.parent_op
    block = structure.body(launch)
    if not isinstance(op, kernel.Reduce) or op.tree or axis.index or op.parent is not block:
        return None
    others = any(isinstance(o, kernel.Axes | kernel.Accumulate) for o in block if o is not op)
    if others or any(isinstance(r.type, TensorType) for r in op.results):
        return None
    inside = op.bounds[0]
    outside: dict[Value, Value] = dict(zip(structure.in_arguments(launch), launch.ins, strict=True))
    extent: Extent = outside.get(inside, inside) if isinstance(inside, Value) else inside
    if extent is inside and isinstance(inside, Value):
        return None  # it depends on the point
    domain = list(zip(structure.axes(launch), launch.bounds, strict=True))
    host = ScalarBuilder(before=launch, location=launch.location)
    count = divided_up(host, extent, size)
    shape: list[Extent] = [count, *(e for _, e in domain)]
    types = [tensor_type([e if isinstance(e, int) else "?" for e in shape], r.type) for r in op.results]
    names = ["b", *(a.name or "i" for a, _ in domain)]
    first = kernel.Launch.build(
        Builder.before_op(launch), shape, launch.ins, types, names=names, location=launch.location
    )
    table: dict[Value, Value] = dict(zip(structure.axes(launch), first.axes[1:], strict=True))
    table.update(zip(structure.in_arguments(launch), first.in_arguments, strict=True))
    body = ScalarBuilder(first.body.block, location=launch.location)
    left = rest_of(body, table.get(inside, inside) if isinstance(inside, Value) else inside, first.axes[0], size)
    for inner in block:
        if inner.is_before(op):
            body.insert(inner.clone(table))
    fold = body.insert(op.clone(table))
    assert isinstance(fold, kernel.Reduce)
    moved = fold.axes[0]
    for inner in fold.body.block:
        simplify.replace_axes(inner, {moved: AffineSubscript.of(first.axes[0]) * size + AffineSubscript.of(moved)})
    static, dynamic = mixed.split([left, *fold.bounds[1:]])
    fold.properties["extents"] = fold.definition.properties["extents"].to_attribute(static)
    fold.set_operands(dynamic)
    for value, dest in zip(fold.results, first.out_arguments, strict=True):
        build.store(body, value, dest, [AffineSubscript.of(a) for a in first.axes])
    body.create(kernel.Yield, [])
    _fold_blocks(launch, op, first.results, count)
    return first


def rest_of(b: ScalarBuilder, extent: Extent, block: Value, size: int) -> Extent:
    """The elements of a block: `size`, of the last one what is left."""
    if isinstance(extent, int) and extent % size == 0:
        return size
    whole = b.index_of(extent)
    return b.value_of(arith.MinSI, b.index_constant(size), b.sub(whole, b.mul(block, size)))


def _fold_blocks(launch: kernel.Launch, op: kernel.Reduce, partials: Sequence[OpResult], count: Extent) -> None:
    """Let a launch fold partial results in place of what its fold was."""
    block = structure.body(launch)
    outs, domain = structure.outs(launch), list(zip(structure.axes(launch), launch.bounds, strict=True))
    ins = list(zip(structure.in_arguments(launch), launch.ins, strict=True))
    arguments = [BlockArgument(v.type, block, 0, "p") for v in partials]
    blocks = structure.extent_inside(count, block, ins)

    def element(b: ScalarBuilder, own: Sequence[BlockArgument]) -> list[Value]:
        at = [AffineSubscript.of(own[0]), *(AffineSubscript.of(a) for a, _ in domain)]
        return [build.load(b, argument, at) for argument in arguments]

    op.replace_by(new_reduce(ScalarBuilder(before=op, location=op.location), op, [blocks], ["b"], element))
    ins = [(a, v) for a, v in ins if a.users] + list(zip(arguments, partials, strict=True))
    structure.set_launch(launch, domain, ins, outs)

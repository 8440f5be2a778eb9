"""Applying the plan of a join: two launches become one, in place.

The joined launch is the consumer C, with the body of the producer P and the ops of C behind it.  By the plan's mode

    recompute   P's computation is copied to each load of its results;
    accumulate  C's fold becomes an accumulate at the end of P's body;
    join        P's axes that C does not share become a `local`, C's axes that P does not share a `sweep`; so does a
                sweep of P that stores what C loads.  A fold that several stores of such a sweep need is kept in a
                local of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...ir.attribute_names import RECOMPUTE, SPACE
from ...ir.attributes import UNIT, StringAttr, constant_attr
from ...ir.builders.subscripts import AffineSubscript, inside
from ...ir.dialects import kernel
from ...ir.operations import Block, Operation, Region
from ...ir.support.mixed import Extent
from ...ir.types import TensorType
from ...ir.values import BlockArgument, OpResult, Value
from ..kernel import build, simplify, structure
from ..kernel.structure import axes, body, extents, in_arguments, out_arguments, subscripts

if TYPE_CHECKING:
    from .join import Fusion, Producer


def recompute(plan: Fusion) -> bool:
    producer, consumer = plan.producer, plan.consumer
    ins = {v: a for a, v in zip(in_arguments(consumer), consumer.ins, strict=True)}
    made = {v.result for v in plan.values}
    block = body(consumer)
    source = body(producer)
    arguments = dict(zip(in_arguments(producer), producer.ins, strict=True))
    for argument, value in arguments.items():
        if value not in ins:
            ins[value] = BlockArgument(argument.type, block, 0, argument.name)
    renamed = {a: ins[v] for a, v in arguments.items()}
    for value in plan.values:
        groups: dict[tuple[object, ...], list[kernel.Load]] = {}
        for load in value.loads:
            groups.setdefault((load.parent, load.map, load.indices, load.fill), []).append(load)
        for loads in groups.values():
            first = min(loads, key=lambda op: op.order)
            bounds = [] if first.fill is None else [_argument(e, ins, block) for e in _bounds(producer, value)]
            element = _inline(source, value.store, bounds, renamed, first)
            for load in loads:
                load.replace_by([element])
    domain = list(zip(axes(consumer), extents(consumer), strict=True))
    structure.set_launch(consumer, domain, [(a, v) for v, a in ins.items() if v not in made], structure.outs(consumer))
    if not any(r.users for r in producer.results):
        producer.erase()
        return True
    return False


def _argument(extent: Extent, ins: dict[Value, BlockArgument], block: Block) -> Extent:
    """An extent as the body of the consumer sees it: one that is known at run time only comes in as an argument."""
    if isinstance(extent, int):
        return extent
    if extent not in ins:
        ins[extent] = BlockArgument(extent.type, block, 0, extent.name)
    return ins[extent]


def _inline(
    source: Block,
    store: kernel.Store,
    bounds: Sequence[Extent],
    renamed: dict[BlockArgument, BlockArgument],
    load: kernel.Load,
) -> Value:
    """Copy what computes the stored value before a load, at its subscripts; guarded where the load has a fill."""
    placed: dict[Value, AffineSubscript] = {}
    for stored, index in zip(subscripts(store), build.indices_of(load), strict=True):
        if isinstance(stored, BlockArgument):
            placed[stored] = index
    needed: set[Operation] = set()
    pending = [store.value]
    while pending:
        definer = pending.pop().defining_op
        if definer is not None and definer not in needed:
            needed.add(definer)
            pending += definer.operands
    builder = build.scalars_before(load)
    copies: dict[Value, Value] = {**renamed}
    for op in source:
        if op in needed:
            twin = op.clone(copies)
            builder.insert(twin)
            simplify.replace_axes(twin, placed)
            if load.fill is not None and isinstance(twin, kernel.Load) and twin.fill is None:
                twin.properties["fill"] = constant_attr(0, twin.result.type)
    value = store.value
    if value in placed:
        element: Value = placed[value].value(builder)
    else:
        found = copies.get(value, value)
        assert isinstance(found, Value)
        element = found
    if load.fill is None:
        return element
    at = [index.value(builder) for index in build.indices_of(load)]
    return builder.select(inside(builder, at, bounds), element, builder.constant(load.fill))


def _bounds(producer: kernel.Launch, value: Producer) -> list[Extent]:
    """The extents of the stored tensor, of its unit axes 1."""
    sizes = dict(zip(axes(producer), extents(producer), strict=True))
    return [sizes[s] if isinstance(s, BlockArgument) else 1 for s in subscripts(value.store)]


def accumulate(plan: Fusion) -> None:
    """P's body, then C's fold as an accumulate into C's out."""
    producer, consumer, value = plan.producer, plan.consumer, plan.values[0]
    fold = next(op for op in body(consumer) if isinstance(op, kernel.Reduce))
    store = next(op for op in body(consumer) if isinstance(op, kernel.Store))
    load = value.loads[0]
    for stored, loaded in zip(subscripts(value.store), subscripts(load), strict=True):
        if isinstance(loaded, BlockArgument) and isinstance(stored, BlockArgument):
            loaded.replace_by(stored)
    load.replace_by([value.store.value])
    source = body(consumer)
    ins, outs = _arguments(plan)
    domain = list(zip(axes(producer), extents(producer), strict=True))
    element = fold.body.block.terminator
    elements = element.operands
    home = value.store.parent
    assert home is not None
    end = home.terminator
    for op in [*source, *fold.body.block]:
        if op not in (fold, store, element, source.terminator):
            op.move_before(end)
    to_accumulate(fold, elements, [store], end)
    _finish(plan, domain, ins, outs)


def to_accumulate(
    fold: kernel.Reduce, elements: Sequence[Value], stores: Sequence[kernel.Store], before: Operation
) -> None:
    """Put an accumulate of `elements`, by the fold's monoid, into where `stores` put its results; drop both."""
    combine = Region()
    combine.take_body(fold.combine)
    builder = build.scalars_before(before)
    build.accumulate(builder, elements, stores, fold.identity, combine)
    for store in stores:
        store.erase()
    fold.erase()


def _arguments(
    plan: Fusion,
) -> tuple[list[tuple[BlockArgument, Value]], list[tuple[BlockArgument, OpResult, Value | None]]]:
    """Ins and outs of the joined launch; a value that both load gets one argument."""
    producer, consumer = plan.producer, plan.consumer
    made = {v.result for v in plan.values}
    ins = list(zip(in_arguments(producer), producer.ins, strict=True))
    known = {v: a for a, v in ins}
    for argument, value in zip(in_arguments(consumer), consumer.ins, strict=True):
        if value in made:
            continue
        if value in known:
            argument.replace_by(known[value])
        else:
            known[value] = argument
            ins.append((argument, value))
    needed = {v.result for v in plan.values if v.needed}
    kept = [o for o in structure.outs(producer) if o[1] in needed or (o[1] not in made and o[1].users)]
    return ins, kept + structure.outs(consumer)


def _finish(
    plan: Fusion,
    domain: list[tuple[BlockArgument, Extent]],
    ins: list[tuple[BlockArgument, Value]],
    outs: list[tuple[BlockArgument, OpResult, Value | None]],
) -> None:
    """Give C the producer's region and the new arguments; drop P."""
    producer, consumer = plan.producer, plan.consumer
    kept = {a for a, _, _ in outs}
    for argument in out_arguments(producer):
        if argument not in kept:
            for op in list(argument.users):
                op.erase()
    (region,) = producer.regions
    for op in body(consumer):
        op.drop_references()
    consumer.regions[0].parent = None
    producer.regions = ()
    consumer.regions = (region,)
    region.parent = consumer
    producer.set_operands(())
    left = {r for _, r, _ in outs}
    producer.results = tuple(r for r in producer.results if r not in left)
    structure.set_launch(consumer, domain, ins, outs)
    producer.results = ()
    producer.erase()


def join(plan: Fusion) -> None:
    producer, consumer = plan.producer, plan.consumer
    block, source = body(producer), body(consumer)
    mine = dict(zip(axes(producer), extents(producer), strict=True))
    theirs = dict(zip(axes(consumer), extents(consumer), strict=True))
    unmatched = [a for a in mine if a not in plan.matched]
    rest = [(a, e) for a, e in theirs.items() if a not in plan.matched.values()]
    inverse = {c: a for a, c in plan.matched.items()}
    domain: list[tuple[BlockArgument, Extent]] = [
        (inverse[c], e)
        for c, e in theirs.items()
        if c in inverse  # pyright: ignore[reportAssignmentType]
    ]
    for axis, other in plan.matched.items():
        other.replace_by(axis)
    ins, outs = _arguments(plan)
    if unmatched:
        _all_to_local(plan, block, unmatched, [structure.extent_inside(mine[a], block, ins) for a in unmatched])
    else:
        for value in plan.values:
            if value.sweep is not None:
                _sweep_to_local(plan, value)
            else:
                for load in list(value.loads):
                    load.replace_by([value.store.value])
                if not value.needed:
                    value.store.erase()
    end = block.terminator
    if rest:
        inside = [structure.extent_inside(e, block, ins) for _, e in rest]
        sweep = build.new_sweep([a for a, _ in rest], inside, consumer.location)
        block.insert_before(sweep, end)
        end = sweep.body.block.terminator
    for op in source:
        if op is not source.terminator:
            op.move_before(end)
    _finish(plan, domain, ins, outs)


def _all_to_local(plan: Fusion, block: Block, unmatched: list[BlockArgument], own: list[Extent]) -> None:
    """P's body becomes a local over its unmatched axes."""
    (value,) = plan.values
    assert isinstance(value.result.type, TensorType)
    stored = value.store.value
    inside = [op for op in block if op is not value.store and op is not block.terminator]
    local = build.new_local(unmatched, own, value.result.type.element, plan.producer.location, value.result.name)
    end = local.body.block.terminator
    block.insert_before(local, value.store)
    for op in inside:
        op.move_before(end)
    end.set_operands([stored])
    _mark(plan, local)
    for load in list(value.loads):
        _replace_load(load, value, local, unmatched)
    if not value.needed:
        value.store.erase()
        return
    sweep = build.new_sweep(None, own, plan.producer.location)
    block.insert_before(sweep, value.store)
    value.store.move_before(sweep.body.block.terminator)
    fresh: dict[Value, Value] = dict(zip(unmatched, sweep.body.block.arguments, strict=True))
    value.store.set_operands([fresh.get(v, v) for v in value.store.operands])
    _store_from_local(value.store, local, sweep.body.block.arguments)


def _sweep_to_local(plan: Fusion, value: Producer) -> None:
    """A sweep of P that stores the value: a local before it."""
    sweep = value.sweep
    assert sweep is not None and isinstance(value.result.type, TensorType)
    keep_shared_folds(sweep, value.store)
    own = extents(sweep)
    local = build.new_local(None, own, value.result.type.element, plan.producer.location, value.result.name)
    inner = local.body.block
    end = inner.terminator
    copies: dict[Value, Value] = dict(zip(sweep.body.block.arguments, inner.arguments, strict=True))
    for op in sweep.body.block:
        if not isinstance(op, kernel.Yield | kernel.Store | kernel.Accumulate):
            inner.insert_before(op.clone(copies), end)
    stored = copies.get(value.store.value, value.store.value)
    assert isinstance(stored, Value)
    end.set_operands([stored])
    local_home = sweep.parent
    assert local_home is not None
    local_home.insert_before(local, sweep)
    _mark(plan, local)
    order = list(sweep.body.block.arguments)
    for load in list(value.loads):
        _replace_load(load, value, local, order)
    if value.needed:
        _store_from_local(value.store, local, order)
    else:
        value.store.erase()


def keep_shared_folds(sweep: kernel.Sweep, store: kernel.Store) -> None:
    """Put a fold of a sweep, that `store` needs beside other stores, in a local of its own, so that it is not folded
    again when the value of `store` becomes a local."""
    block = sweep.body.block
    ends = [op for op in block if isinstance(op, kernel.Store | kernel.Accumulate) and op is not store]
    mine = structure.slice_of([store], block)
    shared = structure.slice_of(ends, block) & mine
    for fold in list(block):
        if fold not in shared or not isinstance(fold, kernel.Reduce) or len(fold.results) != 1:
            continue
        (result,) = fold.results
        local = build.new_local(None, extents(sweep), result.type, fold.location, result.name)
        inner = local.body.block
        end = inner.terminator
        copies: dict[Value, Value] = dict(zip(block.arguments, inner.arguments, strict=True))
        needed = structure.slice_of([fold], block)
        for op in block:
            if op in needed:
                inner.insert_before(op.clone(copies), end)
        end.set_operands([copies[result]])
        home = sweep.parent
        assert home is not None
        home.insert_before(local, sweep)
        at = [AffineSubscript.of(v) for v in block.arguments]
        fold.replace_by([build.load(build.scalars_before(fold), local.result, at)])


def _store_from_local(store: kernel.Store, local: kernel.Local, at: Sequence[Value]) -> None:
    """Let a store take its value from a local."""
    again = build.load(build.scalars_before(store), local.result, [AffineSubscript.of(v) for v in at])
    store.set_operand(0, again)


def _replace_load(load: kernel.Load, value: Producer, local: kernel.Local, order: Sequence[Value]) -> None:
    """A load of the value becomes a load of the local, at the subscripts that stand where the store has its axes."""
    stored = subscripts(value.store)
    indices = build.indices_of(load)
    at = [indices[stored.index(axis)] for axis in order]
    builder = build.scalars_before(load)
    load.replace_by([build.load(builder, local.result, at)])


def _mark(plan: Fusion, local: kernel.Local) -> None:
    if plan.place_out:
        local.attributes[SPACE] = StringAttr("out")
    if plan.recompute_local:
        local.attributes[RECOMPUTE] = UNIT

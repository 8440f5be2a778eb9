"""Joining two launches: a producer P and a consumer C of some of its results.

`plan_join` reads both and decides, without touching them, how they may become one; `Plan.apply` does it, in place: the
joined launch is C with P's body and C's ops behind it, so that joining a long chain stays linear.

The ways to join (levels of the axes: the domain of points, then inner loops):

    recompute   P has no loops.  C keeps its domain, P's computation is copied to each load of its result.
    accumulate  C is one reduce of P's result whose value is only stored: its fold joins P's body as an accumulate,
                where the two share too few points or the fold runs across memory.
    join        The domain is the axes that P and C share.  P's other axes become a `local` array of the point, C's
                other axes a `sweep` after it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.affine import AffineConstant, AffineExpr, constant
from ...ir.attributes import UNIT, StringAttr, constant_attr
from ...ir.dialects import kernel
from ...ir.dialects.point import Index
from ...ir.operations import Block, Operation, Region
from ...ir.target import Target
from ...ir.types import TensorType
from ...ir.values import BlockArgument, OpResult, Value
from . import build, structure, tidy
from .structure import Extent, axes, body, extents, in_arguments, out_arguments, points, subscripts

# A broadcast row is recomputed at every point of the consumer up to this cost in additions.
RECOMPUTE_COST = 32


@dataclass
class Producer:
    """A producer's result that the consumer loads: where P stores it and where C loads it."""

    result: OpResult
    store: kernel.Store
    sweep: kernel.Sweep | None
    loads: list[kernel.Load]
    needed: bool
    """Whether somebody else uses the result too."""


@dataclass
class Plan:
    """How P and C become one launch."""

    producer: kernel.Launch
    consumer: kernel.Launch
    mode: str
    values: list[Producer]
    matched: dict[Value, Value] = field(default_factory=dict[Value, Value])
    """Axis of P -> axis of C."""
    place_out: bool = False
    """The local that arises is too large for the target and is placed in an out of C."""
    recompute_local: bool = False

    def is_straight(self) -> bool:
        """Whether every point of P serves just the same point of C, and P goes: then P's body needs no copy and nothing
        new is to be tidied."""
        made = {v.result for v in self.values}
        return (
            self.mode == "recompute"
            and all(not v.needed for v in self.values)
            and all(r in made or not r.uses for r in self.producer.results)
            and len(self.matched) == len(axes(self.producer)) == len(axes(self.consumer))
            and all(
                load.fill is None and subscripts(load) == [self.matched.get(s, s) for s in subscripts(v.store)]  # pyright: ignore[reportArgumentType, reportCallIssue]
                for v in self.values
                for load in v.loads
            )
        )

    def apply(self) -> bool:
        """Make the joined launch; True when P is gone."""
        if self.mode == "recompute":
            return _apply_recompute(self)
        if self.mode == "accumulate":
            _apply_accumulate(self)
        else:
            _apply_join(self)
        return True


def plan_join(producer: kernel.Launch, consumer: kernel.Launch, target: Target, loop_free: bool) -> Plan | None:
    """The way to join, or None when the two stay apart; `loop_free` says that P has no inner loops."""
    values = _values(producer, consumer)
    if values is None:
        return None
    plain = all(_is_plain(load) for v in values for load in v.loads)
    matched = _match(producer, consumer, values) if plain or loop_free else {}
    theirs = dict(zip(axes(consumer), extents(consumer), strict=True))
    rest = [e for a, e in theirs.items() if a not in matched.values()]
    if loop_free:
        if len(producer.results) > 1 and not all(_slice_is_simple(v) for v in values):
            return None
        if points(rest) == 1 or structure.cost(body(producer)) <= RECOMPUTE_COST:
            return Plan(producer, consumer, "recompute", values, matched)
        return None
    if not plain:
        return None
    shared = points(e for a, e in theirs.items() if a in matched.values())
    too_few = not matched or shared < target.grain
    if _is_lone_fold(producer, consumer, values) and (too_few or not _folds_innermost(producer, matched)):
        return Plan(producer, consumer, "accumulate", values)
    if too_few:
        return None
    mine: dict[Value, Extent] = dict(zip(axes(producer), extents(producer), strict=True))
    unmatched = {a: e for a, e in mine.items() if a not in matched}
    if unmatched and (len(producer.results) > 1 or values[0].sweep is not None):
        return None
    if _rereads(producer, consumer, values, matched, shared, target) > _savings(values):
        return None
    plan = Plan(producer, consumer, "join", values, matched)
    for value in values:
        own = list(unmatched.values()) if value.sweep is None else extents(value.sweep)
        if points(own) * structure.element_bytes(value.result.type) > target.local_bytes and own:
            source = body(producer) if value.sweep is None else value.sweep.body.block
            if value.needed or _fits_out(consumer, own, rest, value.result):
                plan.place_out = True
            elif not structure.has_loops(source):
                plan.recompute_local = True
            else:
                return None
    return plan


def _values(producer: kernel.Launch, consumer: kernel.Launch) -> list[Producer] | None:
    """The results of P that C loads, or None when one is not stored by one plain store or not only loaded."""
    found: list[Producer] = []
    outs = dict(zip(producer.results, structure.outs(producer), strict=True))
    for argument, value in zip(in_arguments(consumer), consumer.ins, strict=True):
        if not isinstance(value, OpResult) or value.owner is not producer:
            continue
        out, _, initial = outs[value]
        users = list(out.uses)
        if initial is not None or len(users) != 1 or not isinstance(users[0], kernel.Store):
            return None
        store = users[0]
        parent = store.parent_op
        if parent is not producer and not (isinstance(parent, kernel.Sweep) and parent.parent_op is producer):
            return None
        if any(isinstance(s, AffineExpr) and not isinstance(s, AffineConstant) for s in subscripts(store)):
            return None
        loads = [u for u in argument.uses if isinstance(u, kernel.Load)]
        others = sum(n for op, n in value.uses.items() if op is not consumer) + (consumer.operands.count(value) - 1)
        found.append(Producer(value, store, parent if parent is not producer else None, loads, others > 0))  # pyright: ignore[reportArgumentType]
    # An init of C that P makes would have to be read and written by one launch.
    if any(isinstance(v, OpResult) and v.owner is producer for v in consumer.outs_):
        return None
    return found


def _is_plain(load: kernel.Load) -> bool:
    """A load without fill whose subscripts are axes of loops or other index values, each alone, or constants."""
    return load.fill is None and all(isinstance(s, AffineConstant | Value) for s in subscripts(load))


def _slice_is_simple(value: Producer) -> bool:
    return value.sweep is None


def _match(producer: kernel.Launch, consumer: kernel.Launch, values: list[Producer]) -> dict[Value, Value]:
    """Axis a of P -> axis c of C where every load of every value has exactly c where the store has a."""
    theirs = dict(zip(axes(consumer), extents(consumer), strict=True))
    matched: dict[Value, Value] = {}
    for axis, extent in zip(axes(producer), extents(producer), strict=True):
        found: set[Value | AffineExpr] = set()
        for value in values:
            stored = subscripts(value.store)
            if axis not in stored:
                found.add(constant(-1))  # not stored along this axis: nothing to match
                continue
            place = stored.index(axis)
            found.update(subscripts(load)[place] for load in value.loads)
        if len(found) == 1:
            (other,) = found
            if isinstance(other, BlockArgument) and other in theirs and theirs[other] == extent:
                if other not in matched.values():
                    matched[axis] = other
    return matched


def _is_lone_fold(producer: kernel.Launch, consumer: kernel.Launch, values: list[Producer]) -> bool:
    """Whether C is one reduce of one value over axes of P's domain or sweep, its result only stored."""
    if len(values) != 1 or len(consumer.results) != 1:
        return False
    value = values[0]
    ops = [op for op in body(consumer) if not isinstance(op, kernel.Yield)]
    folds = [op for op in ops if isinstance(op, kernel.Reduce)]
    if len(folds) != 1 or len(folds[0].results) != 1 or folds[0].tree or len(value.loads) != 1:
        return False
    fold, load = folds[0], value.loads[0]
    (result,) = fold.results
    if list(result.uses) != [ops[-1]] or not isinstance(ops[-1], kernel.Store) or consumer.inits:
        return False
    if load.parent is not fold.body.block or any(isinstance(op, structure.LOOPS) for op in fold.body.block):
        return False
    # Every axis of the fold and of C's domain stands alone in the load, where P stores along one of its axes.
    stored, loaded = subscripts(value.store), subscripts(load)
    inner = dict(zip(fold.body.block.arguments, extents(fold), strict=True))
    outer = dict(zip(axes(consumer), extents(consumer), strict=True))
    mine: dict[Value, Extent] = dict(zip(axes(producer), extents(producer), strict=True))
    if value.sweep is not None:
        mine.update(zip(value.sweep.axes, value.sweep.bounds, strict=True))
    seen: set[Value] = set()
    for s, at in zip(stored, loaded, strict=True):
        if isinstance(s, AffineConstant) and isinstance(at, AffineConstant):
            continue
        if not isinstance(s, BlockArgument) or not isinstance(at, BlockArgument) or at in seen or s not in mine:
            return False
        extent = inner.get(at, outer.get(at))
        if extent is None or extent != mine[s]:
            return False
        seen.add(at)
    if seen != set(inner) | set(outer) or len(seen) != len(mine):
        return False
    others = [op for op in ops if op is not fold and op is not ops[-1]]
    return all(tidy.is_pure(op) and not isinstance(op, structure.LOOPS) for op in others)


def _folds_innermost(producer: kernel.Launch, matched: dict[Value, Value]) -> bool:
    """Whether the axes of P that are not matched come last: then a point of the joined launch runs along memory."""
    own = [a in matched for a in axes(producer)]
    return own == sorted(own, reverse=True)


def _rereads(
    producer: kernel.Launch,
    consumer: kernel.Launch,
    values: list[Producer],
    matched: dict[Value, Value],
    shared: float,
    target: Target,
) -> float:
    """Bytes of ins that have to be read again for each group of points that share a read."""
    made = {v.result for v in values}

    def free(launch: kernel.Launch, along: set[Value]) -> float:
        total = 0.0
        for argument, value in zip(in_arguments(launch), launch.ins, strict=True):
            loads = [u for u in argument.uses if isinstance(u, kernel.Load)]
            if value not in made and not any(along & set(load.indices) for load in loads):
                total += structure.tensor_bytes(value.type)
        return total

    extra = 0.0
    if len(matched) < len(axes(producer)):
        extra += free(producer, set(matched))
    if len(matched) < len(axes(consumer)):
        extra += free(consumer, set(matched.values()))
    return max(0.0, shared / target.rows - 1) * extra if extra else 0.0


def _savings(values: list[Producer]) -> float:
    return sum(structure.tensor_bytes(v.result.type) * (len(v.loads) + (not v.needed)) for v in values)


def _fits_out(consumer: kernel.Launch, own: Sequence[Extent], rest: Sequence[Extent], result: OpResult) -> bool:
    """Whether C stores an out of the local's extents and element type, which may hold the local until then."""
    if list(own) != list(rest):
        return False
    assert isinstance(result.type, TensorType)
    element = result.type.element
    return any(isinstance(r.type, TensorType) and r.type.element is element for r in consumer.results)


# Applying a plan.


def _apply_recompute(plan: Plan) -> bool:
    producer, consumer = plan.producer, plan.consumer
    ins = {v: a for a, v in zip(in_arguments(consumer), consumer.ins, strict=True)}
    made = {v.result for v in plan.values}
    if plan.is_straight():
        _apply_join(plan)
        return True
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
            first = min(loads, key=lambda op: op.order) if len(loads) > 1 and _ordered(loads) else loads[0]
            element = _inline(source, value.store, _bounds(producer, value), renamed, first)
            for load in loads:
                load.replace_by([element])
    domain = list(zip(axes(consumer), extents(consumer), strict=True))
    structure.set_launch(consumer, domain, [(a, v) for v, a in ins.items() if v not in made], structure.outs(consumer))
    if not any(r.uses for r in producer.results):
        producer.erase()
        return True
    return False


def _ordered(loads: list[kernel.Load]) -> bool:
    block = loads[0].parent
    assert block is not None
    if not block.ordered:
        block.renumber()
    return True


def _inline(
    source: Block,
    store: kernel.Store,
    bounds: Sequence[Extent],
    renamed: dict[BlockArgument, BlockArgument],
    load: kernel.Load,
) -> Value:
    """Copy what computes the stored value before a load, at its subscripts; guarded where the load has a fill."""
    placed: dict[Value, Index] = {}
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
    copies: dict[Any, Any] = dict(renamed)
    for op in source:
        if op in needed:
            twin = op.clone(copies)
            builder.insert(twin)
            tidy.replace_axes(twin, placed)
            if load.fill is not None and isinstance(twin, kernel.Load) and twin.fill is None:
                twin.properties["fill"] = constant_attr(0, twin.result.type)
    value = store.value
    if value in placed:
        element: Value = build.index_value(builder, placed[value])
    else:
        found = copies.get(value, value)
        assert isinstance(found, Value)
        element = found
    if load.fill is None:
        return element
    return builder.select(build.inside(builder, build.indices_of(load), bounds), element, builder.constant(load.fill))


def _bounds(producer: kernel.Launch, value: Producer) -> list[Extent]:
    """The extents of the stored tensor, of its unit axes 1."""
    sizes = dict(zip(axes(producer), extents(producer), strict=True))
    return [sizes[s] if isinstance(s, BlockArgument) else 1 for s in subscripts(value.store)]


def _apply_accumulate(plan: Plan) -> None:
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
    plan: Plan,
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
    kept = [o for o in structure.outs(producer) if o[1] in needed or (o[1] not in made and o[1].uses)]
    return ins, kept + structure.outs(consumer)


def _finish(
    plan: Plan,
    domain: list[tuple[BlockArgument, Extent]],
    ins: list[tuple[BlockArgument, Value]],
    outs: list[tuple[BlockArgument, OpResult, Value | None]],
) -> None:
    """Give C the producer's region and the new arguments; drop P."""
    producer, consumer = plan.producer, plan.consumer
    kept = {a for a, _, _ in outs}
    for argument in out_arguments(producer):
        if argument not in kept:
            for op in list(argument.uses):
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


def _apply_join(plan: Plan) -> None:
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
        _all_to_local(plan, block, unmatched, [_inside(mine[a], ins, block) for a in unmatched])
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
        sweep = build.new_sweep([a for a, _ in rest], [_inside(e, ins, block) for _, e in rest], consumer.location)
        block.insert_before(sweep, end)
        end = sweep.body.block.terminator
    for op in source:
        if op is not source.terminator:
            op.move_before(end)
    _finish(plan, domain, ins, outs)


def _inside(extent: Extent, ins: list[tuple[BlockArgument, Value]], block: Block) -> Extent:
    """An extent of the domain as an inner loop has it: one that is known at run time only comes in as an argument."""
    if isinstance(extent, int):
        return extent
    found = next((a for a, v in ins if v is extent), None)
    if found is None:
        found = BlockArgument(extent.type, block, 0, extent.name)
        ins.append((found, extent))
    return found


def _all_to_local(plan: Plan, block: Block, unmatched: list[BlockArgument], own: list[Extent]) -> None:
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


def _sweep_to_local(plan: Plan, value: Producer) -> None:
    """A sweep of P that stores the value: a local before it."""
    sweep = value.sweep
    assert sweep is not None and isinstance(value.result.type, TensorType)
    own = extents(sweep)
    local = build.new_local(None, own, value.result.type.element, plan.producer.location, value.result.name)
    inner = local.body.block
    end = inner.terminator
    copies: dict[Any, Any] = dict(zip(sweep.body.block.arguments, inner.arguments, strict=True))
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


def _store_from_local(store: kernel.Store, local: kernel.Local, at: Sequence[Value]) -> None:
    """Let a store take its value from a local."""
    again = build.load(build.scalars_before(store), local.result, [Index.of(v) for v in at])
    store.set_operand(0, again)


def _replace_load(load: kernel.Load, value: Producer, local: kernel.Local, order: Sequence[Value]) -> None:
    """A load of the value becomes a load of the local, at the subscripts that stand where the store has its axes."""
    stored = subscripts(value.store)
    indices = build.indices_of(load)
    at = [indices[stored.index(axis)] for axis in order]
    builder = build.scalars_before(load)
    load.replace_by([build.load(builder, local.result, at)])


def _mark(plan: Plan, local: kernel.Local) -> None:
    if plan.place_out:
        local.attributes["space"] = StringAttr("out")
    if plan.recompute_local:
        local.attributes["recompute"] = UNIT

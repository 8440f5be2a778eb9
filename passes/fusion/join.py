"""Joining two launches: a producer P and a consumer C of some of its results.

`plan_join` reads both and decides, without touching them, how they may become one; `Fusion.apply` does it, in place:
the joined launch is C with P's body and C's ops behind it, so that joining a long chain stays linear.

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

from ...ir.affine import AffineConstant, AffineExpr, constant
from ...ir.dialects import kernel
from ...ir.effects import is_pure
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.types import TensorType, element_bytes
from ...ir.values import BlockArgument, OpResult, Value
from ..kernel import structure
from ..kernel.structure import axes, body, extents, in_arguments, points, subscripts
from . import apply

RECOMPUTE_COST = 32
"""What is needed at several points, as a broadcast row is, or in several launches, is recomputed up to this cost in
additions; a value that the consumer alone needs, once, at any cost.  What is fused does not depend on the machine, so
that a program has the same kernels, and results, on all of them."""
FACTOR_COST = 2
"""The same of a factor of a product, which has many points for each of its elements."""


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
class Fusion:
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
            and all(r in made or not r.users for r in self.producer.results)
            and len(self.matched) == len(axes(self.producer)) == len(axes(self.consumer))
            and all(
                load.fill is None and subscripts(load) == [self.matched.get(s, s) for s in subscripts(v.store)]  # pyright: ignore[reportArgumentType, reportCallIssue]
                for v in self.values
                for load in v.loads
            )
        )

    def apply(self) -> bool:
        """Make the joined launch; True when P is gone."""
        if self.mode == "recompute" and not self.is_straight():
            return apply.recompute(self)
        if self.mode == "accumulate":
            apply.accumulate(self)
        else:
            apply.join(self)
        return True


def plan_join(producer: kernel.Launch, consumer: kernel.Launch, target: Target, loop_free: bool) -> Fusion | None:
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
        most = FACTOR_COST if _is_factor(values) else RECOMPUTE_COST
        once = points(rest) == 1 and not any(v.needed for v in values)
        if once or structure.cost(body(producer)) <= most:
            return Fusion(producer, consumer, "recompute", values, matched)
        return None
    if not plain:
        return None
    shared = points(e for a, e in theirs.items() if a in matched.values())
    too_few = not matched or shared < target.grain
    if _is_lone_fold(producer, consumer, values) and not values[0].needed and structure.has_product(producer):
        return None  # a product is fast by its tiles, and exact by its order, which the fold would take from it
    if _is_lone_fold(producer, consumer, values) and (too_few or not _folds_innermost(producer, matched)):
        return Fusion(producer, consumer, "accumulate", values)
    if too_few:
        return None
    mine: dict[Value, Extent] = dict(zip(axes(producer), extents(producer), strict=True))
    unmatched = {a: e for a, e in mine.items() if a not in matched}
    if unmatched and (len(producer.results) > 1 or values[0].sweep is not None):
        return None
    if _rereads(producer, consumer, values, matched, shared, target) > _savings(values):
        return None
    plan = Fusion(producer, consumer, "join", values, matched)
    for value in values:
        own = list(unmatched.values()) if value.sweep is None else extents(value.sweep)
        if points(own) * element_bytes(value.result.type) > target.local_bytes and own:
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
        users = list(out.users)
        if initial is not None or len(users) != 1 or not isinstance(users[0], kernel.Store):
            return None
        store = users[0]
        parent = store.parent_op
        if parent is not producer and not (isinstance(parent, kernel.Sweep) and parent.parent_op is producer):
            return None
        if any(isinstance(s, AffineExpr) and not isinstance(s, AffineConstant) for s in subscripts(store)):
            return None
        loads = [u for u in argument.users if isinstance(u, kernel.Load)]
        others = sum(n for op, n in value.uses.items() if op is not consumer) + (consumer.operands.count(value) - 1)
        found.append(Producer(value, store, parent if parent is not producer else None, loads, others > 0))  # pyright: ignore[reportArgumentType]
    # An init of C that P makes would have to be read and written by one launch.
    if any(isinstance(v, OpResult) and v.owner is producer for v in consumer.outs_):
        return None
    return found


def _is_plain(load: kernel.Load) -> bool:
    """A load without fill whose subscripts are axes of loops or other index values, each alone, or constants."""
    return load.fill is None and all(isinstance(s, AffineConstant | Value) for s in subscripts(load))


def _is_factor(values: list[Producer]) -> bool:
    """Whether C loads a value of P as a factor of a product."""
    return any((fold := load.parent_op) is not None and structure.is_product(fold) for v in values for load in v.loads)


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
    if list(result.users) != [ops[-1]] or not isinstance(ops[-1], kernel.Store) or consumer.inits:
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
    return all(is_pure(op) and not isinstance(op, structure.LOOPS) for op in others)


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
            loads = [u for u in argument.users if isinstance(u, kernel.Load)]
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

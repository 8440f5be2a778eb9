"""split-reduce: a fold becomes partial folds, side by side, and a tree over them.

In: launches whose schedule says `split = [[axis, lanes], ..]`.  Out: the reduce over such an axis as a reduce over
lanes, marked `tree`, of reduces over every lanes-th element.  This is where the order of a sum is decided: no later
pass changes it.

    %s = kernel.reduce (%k) in (100) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
        becomes
    %s = kernel.reduce (%l) in (16) tree by arith.addf {
      %m = kernel.reduce (%k) in (6) by arith.addf {
        %0 = kernel.load %x[%i, %k * 16 + %l]
        kernel.yield %0
      }
      %more = arith.cmpi slt, %l, 4
      %t = scf.if %more -> (f32) { load %x[%i, %l + 96] .. } else { the identity }
      %n = arith.addf %m, %t : f32
      kernel.yield %n
    }

An axis of the domain is split where accumulates lack it (`split_accumulate`).

Where the first block loop of a schedule runs on workers, its blocks become points of the domain first (`split_blocks`).

The lane axis takes the place of the old axis in the schedule; all axes are numbered anew.  Only the last axis of a
reduce is split; the others stay around the partial folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ..ir.attributes import ArrayAttr
from ..ir.builder import Builder
from ..ir.definition import make
from ..ir.diagnostics import PassError
from ..ir.dialects import arith, kernel, mixed, scf
from ..ir.dialects.point import Index
from ..ir.dialects.scalar_builder import ScalarBuilder
from ..ir.operations import Block, Operation, Region
from ..ir.target import Target
from ..ir.values import BlockArgument, Value
from .fusion import tidy
from .manager import Pass
from .plan import choose
from .schedules.facts import Facts
from .schedules.schedule import KEY, WORKER, Schedule
from .split_accumulate import split_domain
from .split_blocks import block_domain, block_fold

Extent = int | Value

CHAIN = 32
"""The most floats that a sum adds one after another."""


@dataclass
class SplitReduce(Pass):
    """Split the folds that the schedules name."""

    name: ClassVar[str] = "split-reduce"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: Operation) -> None:
        target = Target.of(op)
        for launch in [o for o in op.walk() if isinstance(o, kernel.Launch)]:
            if not launch.results:
                raise PassError("split-reduce: this launch writes to buffers; run before bufferize", launch.location)
            schedule = Schedule.of(launch)
            if schedule.map[:1] == (WORKER,) and schedule.loops:
                self.count("blocked")
                for made in _block_launch(launch, schedule, target):
                    self.split(made)
            else:
                self.split(launch)

    def split(self, launch: kernel.Launch) -> None:
        """Make the lanes that the schedule of a launch names."""
        schedule = Schedule.of(launch)
        if schedule.split:
            _split_launch(launch, schedule)
            self.count("split", len(schedule.split))


def _block_launch(launch: kernel.Launch, schedule: Schedule, target: Target) -> list[kernel.Launch]:
    """Make the blocks of the first block loop, which workers run, points of the domain; the launches that there are."""
    (number, size), *loops = schedule.loops
    before = axes_of(launch)
    axis = before[number]
    rest = replace(schedule, loops=tuple(loops), map=schedule.map[1:])
    following = launch.next
    if axis.owner.parent_op is launch:
        point = block_domain(launch, axis, size)
        if point is None:
            launch.properties[KEY] = rest.attribute()
            return [launch]
        after = {a: i for i, a in enumerate(axes_of(launch))}
        numbers = [after[point if a is axis else a] for a in before]
        launch.properties[KEY] = rest.renumbered(lambda n: numbers[n]).attribute()
        made = [launch]
        op = launch.next
        while op is not following:
            assert isinstance(op, kernel.Launch)
            _plan(op, target)
            made.append(op)
            op = op.next
        return made
    first = block_fold(launch, axis, size)
    if first is None:
        launch.properties[KEY] = rest.attribute()
        return [launch]
    first.properties[KEY] = rest.renumbered(lambda n: n + 1).attribute()
    launch.properties.pop(KEY)
    _plan(launch, target)
    return [first, launch]


def _plan(launch: kernel.Launch, target: Target) -> None:
    """A schedule for a launch that folds blocks."""
    found = choose(Facts.of(launch), target)
    if found is not None:
        launch.properties[KEY] = found.attribute()


def axes_of(launch: kernel.Launch) -> list[BlockArgument]:
    """The axes of a launch in the order in which a schedule counts them."""
    return [axis for op in launch.walk() if isinstance(op, kernel.Axes) for axis in op.axes]


def _split_launch(launch: kernel.Launch, schedule: Schedule) -> None:
    before = axes_of(launch)
    moved: dict[BlockArgument, BlockArgument] = {}
    for number, lanes in schedule.split:
        axis = before[number] if number < len(before) else None
        op = axis.owner.parent_op if axis is not None else None
        if axis is not None and op is launch:
            vector = min(dict(schedule.vector).get(number, lanes), lanes)
            moved[axis] = split_domain(launch, axis, lanes, vector) or axis
            continue
        if axis is None or not isinstance(op, kernel.Reduce) or axis.index != op.rank - 1 or op.tree:
            continue
        extent = op.bounds[-1]
        if isinstance(extent, int) and extent < lanes:
            continue  # not one whole step
        moved[axis] = split(op, lanes)
    after = {axis: i for i, axis in enumerate(axes_of(launch))}
    numbers = [after.get(moved.get(axis, axis), 0) for axis in before]
    launch.properties[KEY] = replace(schedule, split=()).renumbered(lambda n: numbers[n]).attribute()


def split(op: kernel.Reduce, lanes: int) -> BlockArgument:
    """Replace a reduce by its split form; the lane axis."""
    block = op.body.block
    *outer, old = op.axes
    *around, extent = op.bounds
    b = ScalarBuilder(before=op, location=op.location)
    lane_block = kernel.loop_body([lanes], ["l"])
    (lane,) = lane_block.arguments
    inner = ScalarBuilder(lane_block, location=op.location)
    if isinstance(extent, int):
        steps: Extent = extent // lanes
        tail = extent % lanes != 0
    else:
        steps = b.value_of(arith.DivUI, extent, b.index_constant(lanes))
        tail = True

    blocked = _is_long_sum(op, steps, Target.of(op))

    def partial(
        builder: ScalarBuilder, table: dict[Any, Any], axes: Sequence[Value], extents: Sequence[Extent]
    ) -> list[Value]:
        """The fold of every lanes-th element, `axes` taken into it."""
        if steps == 0:
            return [builder.constant(a) for a in op.identity]

        def element(into: ScalarBuilder, own: Sequence[Value], step: Index) -> list[Value]:
            inside = {**table, **dict(zip(axes, own, strict=False))}
            return _element(into, block, inside, old, step * lanes + Index.of(lane))

        names = [a.name or "k" for a in axes]
        if blocked:

            def chains(into: ScalarBuilder, own: Sequence[BlockArgument]) -> list[Value]:
                return _in_blocks(into, op, steps, lambda b, step: element(b, own, step))

            return _reduce(builder, op, extents, names, chains) if axes else chains(builder, ())

        def body(into: ScalarBuilder, own: Sequence[BlockArgument]) -> list[Value]:
            return element(into, own, Index.of(own[-1]))

        return _reduce(builder, op, [*extents, steps], [*names, old.name or "k"], body)

    if not tail:
        values = partial(inner, {}, outer, around)
    elif not outer:
        values = _with_tail(inner, op, partial(inner, {}, (), ()), {}, old, lane, steps, lanes, extent)
    else:

        def rows(into: ScalarBuilder, own: Sequence[BlockArgument]) -> list[Value]:
            table: dict[Any, Any] = dict(zip(outer, own, strict=True))
            return _with_tail(into, op, partial(into, table, (), ()), table, old, lane, steps, lanes, extent)

        values = _reduce(inner, op, around, [a.name or "k" for a in outer], rows)
    inner.create(kernel.Yield, values)
    new = _make(op, [lanes], lane_block)
    new.properties["tree"] = kernel.Reduce.definition.properties["tree"].to_attribute(True)
    b.insert(new)
    op.replace_by(new)
    return lane


def _is_long_sum(op: kernel.Reduce, steps: Extent, target: Target) -> bool:
    """Whether a lane would add so many floats in one chain that its rounding errors show.  The threads of a GPU share
    the elements among them, which keeps their chains short."""
    if target.kind != "cpu" or (isinstance(steps, int) and steps <= CHAIN):
        return False
    return arith.AddF in (op.operators or ())


def _in_blocks(
    b: ScalarBuilder, like: kernel.Reduce, steps: Extent, element: Callable[[ScalarBuilder, Index], list[Value]]
) -> list[Value]:
    """A fold in chains of at most `CHAIN` steps, chains of chains, and chains of those: the error of a sum grows with
    the length of a chain, not with the number of elements (Higham, "The Accuracy of Floating Point Summation", SIAM J.
    Sci. Comput. 14(4), 1993)."""
    squares, left = _divided(b, steps, CHAIN * CHAIN)
    rows, rest = _divided(b, left, CHAIN)
    folds: list[list[Value]] = []

    def chain(extents: Sequence[Extent], start: Index) -> None:
        """Nested folds over `extents`, the elements of the inner ones side by side."""
        if extents[0] == 0:
            return

        def fold(into: ScalarBuilder, depth: int, at: Index) -> list[Value]:
            if depth == len(extents):
                return element(into, at)
            unit = CHAIN ** (len(extents) - 1 - depth)

            def inner(b: ScalarBuilder, own: Sequence[BlockArgument]) -> list[Value]:
                return fold(b, depth + 1, at + Index.of(own[0]) * unit)

            return _reduce(into, like, extents[depth : depth + 1], ["k"], inner)

        folds.append(fold(b, 0, start))

    done = _times(b, squares, CHAIN * CHAIN)
    chain([squares, CHAIN, CHAIN], Index.of(0))
    chain([rows, CHAIN], Index.of(done))
    chain([rest], Index.of(_plus(b, done, _times(b, rows, CHAIN))))
    total = folds[0]
    for part in folds[1:]:
        total = _combine(b, like, total, part)
    return total


def _divided(b: ScalarBuilder, extent: Extent, by: int) -> tuple[Extent, Extent]:
    """Quotient and remainder of an extent."""
    if isinstance(extent, int):
        return divmod(extent, by)
    divisor = b.index_constant(by)
    return b.value_of(arith.DivUI, extent, divisor), b.value_of(arith.RemUI, extent, divisor)


def _times(b: ScalarBuilder, extent: Extent, factor: int) -> Extent:
    return extent * factor if isinstance(extent, int) else b.mul(extent, factor)


def _plus(b: ScalarBuilder, one: Extent, other: Extent) -> Extent:
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    return b.add(one, other)


def _make(op: kernel.Reduce, extents: Sequence[Extent], body: Block) -> kernel.Reduce:
    """A detached reduce by the monoid of another."""
    static, dynamic = mixed.split(extents)
    regions = [Region([body]), op.combine.clone()]
    return make(
        kernel.Reduce,
        (dynamic,),
        [r.type for r in op.results],
        regions,
        (),
        {"extents": static, "identity": ArrayAttr(op.identity)},
        location=op.location,
    )


def _reduce(
    b: ScalarBuilder,
    like: kernel.Reduce,
    extents: Sequence[Extent],
    names: Sequence[str],
    body: Callable[[ScalarBuilder, Sequence[BlockArgument]], Sequence[Value]],
) -> list[Value]:
    """A reduce with a body that is built."""
    block = kernel.loop_body(extents, names)
    inner = ScalarBuilder(block, location=like.location)
    inner.create(kernel.Yield, list(body(inner, block.arguments)))
    return list(b.insert(_make(like, extents, block)).results)


def _element(b: ScalarBuilder, body: Block, table: dict[Any, Any], axis: Value, at: Index) -> list[Value]:
    """The element of the fold at a place along its last axis, copied to where a builder stands."""
    own = dict(table)
    last = body.terminator
    copies: list[Operation] = []
    for op in body:
        if op is not last:
            copies.append(b.insert(op.clone(own)))
    for copy in copies:
        tidy.replace_axes(copy, {axis: at})
    values = [own.get(v, v) for v in last.operands]
    if axis in values:
        from .fusion import build

        values = [build.index_value(b, at) if v is axis else v for v in values]
    return values


def _combine(b: Builder, op: kernel.Reduce, old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """The combine region, inlined."""
    block = op.combine.block
    table: dict[Any, Any] = dict(zip(block.arguments, [*old, *new], strict=True))
    last = block.terminator
    for inner in block:
        if inner is not last:
            b.insert(inner.clone(table))
    return [table.get(v, v) for v in last.operands]


def _with_tail(
    b: ScalarBuilder,
    op: kernel.Reduce,
    main: Sequence[Value],
    table: dict[Any, Any],
    axis: Value,
    lane: Value,
    steps: Extent,
    lanes: int,
    extent: Extent,
) -> list[Value]:
    """The fold of whole steps combined with the elements that are left, one for each of the first lanes."""
    if isinstance(steps, int) and isinstance(extent, int):
        at = Index.of(lane) + steps * lanes
        more = b.cmp("slt", lane, extent - steps * lanes)
    else:
        assert isinstance(extent, Value)
        done = b.value_of(arith.MulI, steps, b.index_constant(lanes))
        at = Index.of(lane) + Index.of(done)
        more = b.cmp("slt", b.value_of(arith.AddI, lane, done), extent)
    choice = scf.If.build(b, more, [r.type for r in op.results])
    with b.at(choice.then.block):
        b.create(scf.Yield, _element(b, op.body.block, table, axis, at))
    with b.at(choice.otherwise.block):
        b.create(scf.Yield, [b.constant(a) for a in op.identity])
    if steps == 0:
        return list(choice.results)
    return _combine(b, op, main, list(choice.results))

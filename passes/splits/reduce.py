"""split-reduce: a fold becomes partial folds, side by side or one after another.

In: launches whose schedule says `split = [[axis, lanes], ..]` or `chain = [[axis, steps], ..]`.  Out: a reduce over a
split axis as a reduce over lanes, marked `tree`, of reduces over every lanes-th element; a reduce over a chained axis
as reduces of reduces, each of few steps (`splits.chains`).  This is where the order of a sum is decided: no later pass
changes it.

    %s = kernel.reduce (%k) in (100) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
        becomes, for split = [[1, 16]]
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

An axis of the domain is split and chained where accumulates lack it (`splits.accumulate`).  Where the first block loop
of a schedule runs on workers, blocks of the fold become points of the domain first (`splits.blocks`).  Launches that
arise, to fold what others left in parts, get schedules of their own.

The lane axis takes the place of a split axis in the schedule; in that of a chained one stands the outermost axis for
block loops, which count its steps, else the innermost; all axes are numbered anew.  Only the last axis of a reduce is
split; the others stay around the partial folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from ...ir.attribute_names import GIVEN, SCHEDULE
from ...ir.builders.scalar import ScalarBuilder
from ...ir.builders.subscripts import AffineSubscript
from ...ir.diagnostics import PassError
from ...ir.dialects import arith, kernel, scf
from ...ir.operations import Operation
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.values import BlockArgument, Value
from ..analysis.launch import LaunchAnalysis
from ..kernel import simplify, structure
from ..manager import Pass
from ..schedules.plan import choose
from ..schedules.remarks import entry, not_applied
from ..schedules.schedule import WORKER, Schedule
from .accumulate import split_points
from .blocks import block_fold
from .chains import fold_in_chains, like_reduce, new_reduce


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
            self.split(launch, target)

    def split(self, launch: kernel.Launch, target: Target) -> None:
        """Apply what a schedule says of folds, and of accumulates, to its launch and to those that arise from it."""
        made: list[kernel.Launch] = []
        schedule = Schedule.of(launch)
        if schedule.map[:1] == (WORKER,) and schedule.loops:
            launch = self.block(launch, schedule, made)
        self.points(launch, target, made)
        self.folds(launch)
        for other in made:
            _plan(other, target)
            self.split(other, target)

    def block(self, launch: kernel.Launch, schedule: Schedule, made: list[kernel.Launch]) -> kernel.Launch:
        """Make the blocks of the first block loop, which workers run, points of the domain; the launch with the
        points."""
        (number, size), *loops = schedule.loops
        packs = tuple(replace(pack, at=max(0, pack.at - 1)) for pack in schedule.pack)
        rest = replace(schedule, loops=tuple(loops), map=schedule.map[1:], pack=packs)
        first = block_fold(launch, axes_of(launch)[number], size)
        if first is None:
            reason = "the axis is not the first of the only fold of the kernel"
            not_applied(self, launch, f'{entry("loops", number, size)}, map = ["{WORKER}"]', reason)
            launch.properties[SCHEDULE] = rest.attribute()
            return launch
        first.attributes.update({k: v for k, v in launch.attributes.items() if k == GIVEN})
        self.count("blocked")
        first.properties[SCHEDULE] = rest.renumbered(lambda n: n + 1).attribute()
        launch.properties.pop(SCHEDULE)
        made.append(launch)
        return first

    def points(self, launch: kernel.Launch, target: Target, made: list[kernel.Launch]) -> None:
        """Let the axes of the domain that the schedule splits or chains be axes of partial results."""
        schedule = Schedule.of(launch)
        lanes, steps, vector = dict(schedule.split), dict(schedule.chain), dict(schedule.vector)
        before = axes_of(launch)
        domain = set(range(launch.rank))
        moved: dict[BlockArgument, BlockArgument] = {}
        for number in sorted(domain & {*lanes, *steps}, reverse=True):
            across = lanes.get(number, 1)
            found = split_points(launch, before[number], steps.get(number), across, target.kind == "cpu")
            if found is None:
                for key, sizes in (("split", lanes), ("chain", steps)):
                    if number in sizes:
                        reason = "no accumulate without an init lacks the axis, or the axis is one block"
                        not_applied(self, launch, entry(key, number, sizes[number]), reason)
                continue
            self.count("split")
            moved[before[number]] = found.axis
            for fold in found.folds:
                if not found.blocked and target.kind == "cpu":
                    copies = across // min(vector.get(number, across), across)
                    lane = fold.rank
                    own = Schedule(vector=((lane, across // copies),), unroll=((lane, copies),) if copies > 1 else ())
                    fold.properties[SCHEDULE] = own.attribute()
                made.append(fold)
        left = replace(
            schedule,
            split=tuple(p for p in schedule.split if p[0] not in domain),
            chain=tuple(p for p in schedule.chain if p[0] not in domain),
        )
        _renumber(launch, left, before, moved)

    def folds(self, launch: kernel.Launch) -> None:
        """Make the lanes and chains of the reduces that the schedule names."""
        schedule = Schedule.of(launch)
        if not schedule.split and not schedule.chain:
            return
        before = axes_of(launch)
        lanes = {before[n]: count for n, count in schedule.split}
        steps = {before[n]: count for n, count in schedule.chain}
        moved: dict[BlockArgument, BlockArgument] = {}
        blocks: dict[BlockArgument, tuple[BlockArgument, int]] = {}
        for key, pairs in (("split", schedule.split), ("chain", schedule.chain)):
            for number, size in pairs:
                reason = _why_not(before[number], size, key)
                if reason is not None:
                    not_applied(self, launch, entry(key, number, size), reason)
        for op in [o for o in launch.walk() if isinstance(o, kernel.Reduce) and not o.tree]:
            if op.axes[-1] in lanes or any(axis in steps for axis in op.axes):
                fold = _Fold(op, lanes.get(op.axes[-1], 1), steps, {before[n] for n, _ in schedule.loops})
                fold.rewrite()
                moved.update(fold.moved)
                blocks.update(fold.blocks)
                self.count("split")
        _renumber(launch, replace(schedule, split=(), chain=()), before, moved)
        after = {axis: i for i, axis in enumerate(axes_of(launch))}
        outer = {moved[axis]: found for axis, found in blocks.items()}
        own = Schedule.of(launch)
        axes = axes_of(launch)
        loops = tuple(
            (after[(found := outer.get(axes[n], (axes[n], 1)))[0]], max(1, size // found[1])) for n, size in own.loops
        )
        launch.properties[SCHEDULE] = replace(own, loops=loops).attribute()


def _why_not(axis: BlockArgument, size: int, key: str) -> str | None:
    """Why the axis of an inner loop cannot be split or chained, or None."""
    op = axis.owner.parent_op
    if not isinstance(op, kernel.Reduce):
        return "it is the axis of no reduce"
    if op.tree:
        return "the reduce is a tree already"
    if key == "split" and axis.index != op.rank - 1:
        return "it is not the last axis of its reduce"
    extent = op.bounds[axis.index]
    if key == "split" and isinstance(extent, int) and extent < size:
        return f"its {extent} elements are not one for each lane"
    return None


def _plan(launch: kernel.Launch, target: Target) -> None:
    """A schedule for a launch that folds partial results, which are few: no blocks."""
    if launch.schedule is not None:
        return
    found = choose(LaunchAnalysis.of(launch), target)
    if found is None:
        return
    if found.map[:1] == (WORKER,):
        found = replace(found, loops=found.loops[1:], map=found.map[1:])
    launch.properties[SCHEDULE] = found.attribute()


def axes_of(launch: kernel.Launch) -> list[BlockArgument]:
    """The axes of a launch in the order in which a schedule counts them."""
    return [axis for op in launch.walk() if isinstance(op, kernel.Axes) for axis in op.axes]


def _renumber(
    launch: kernel.Launch,
    schedule: Schedule,
    before: Sequence[BlockArgument],
    moved: dict[BlockArgument, BlockArgument],
) -> None:
    """Give a launch a schedule that counts the axes as they were; `moved` says what stands in the place of some."""
    if SCHEDULE not in launch.properties:
        return
    after = {axis: i for i, axis in enumerate(axes_of(launch))}
    numbers = [after.get(moved.get(axis, axis)) for axis in before]
    found = schedule.renumbered(lambda n: numbers[n])
    packs = tuple(replace(pack, at=min(pack.at, len(found.loops))) for pack in found.pack)
    launch.properties[SCHEDULE] = replace(found, pack=packs).attribute()


class _Fold:
    """The rewrite of one reduce."""

    def __init__(
        self, op: kernel.Reduce, lanes: int, steps: dict[BlockArgument, int], tiled: set[BlockArgument]
    ) -> None:
        self.op = op
        self.tiled = tiled
        """The axes with block loops."""
        self.block = op.body.block
        extent = op.bounds[-1]
        # Less than one whole step: no lanes.
        self.lanes = 1 if isinstance(extent, int) and extent < lanes else lanes
        self.steps = steps
        self.moved: dict[BlockArgument, BlockArgument] = {}
        """What stands in the place of an axis."""
        self.blocks: dict[BlockArgument, tuple[BlockArgument, int]] = {}
        """What stands in the place of a chained axis in block loops, and the elements in one step of that."""

    def rewrite(self) -> None:
        """Put the new form in the place of the old one."""
        op = self.op
        b = ScalarBuilder(before=op, location=op.location)
        if self.lanes == 1:
            op.replace_by(self.axis(b, 0, {}))
            return
        extent = op.bounds[-1]
        if isinstance(extent, int):
            self.count: Extent = extent // self.lanes
            self.tail = extent % self.lanes != 0
        else:
            self.count = b.value_of(arith.DivUI, extent, b.index_constant(self.lanes))
            self.tail = True
        block = kernel.loop_body([self.lanes], ["l"])
        (self.lane,) = block.arguments
        inner = ScalarBuilder(block, location=op.location)
        inner.create(kernel.Yield, self.axis(inner, 0, {}))
        new = like_reduce(op, [self.lanes], block)
        new.properties["tree"] = kernel.Reduce.definition.properties["tree"].to_attribute(True)
        b.insert(new)
        self.moved[op.axes[-1]] = self.lane
        op.replace_by(new)

    def axis(self, b: ScalarBuilder, depth: int, placed: dict[Value, AffineSubscript]) -> list[Value]:
        """The folds over the axes from one on; `placed` says where the ones before it stand."""
        op = self.op
        if depth == op.rank:
            return self.element(b, placed, last=True)
        axis, extent = op.axes[depth], op.bounds[depth]
        if self.lanes > 1 and depth == op.rank - 1:
            return self.lane_steps(b, placed)
        group, whole = self.together(depth + (axis in self.steps))
        bounds = [*op.bounds[op.axes.index(group[0]) :]] if group else []
        if whole:
            bounds[-1] = self.count
        end = depth + (axis in self.steps) + len(group)

        def inside(into: ScalarBuilder, own: Sequence[BlockArgument], at: dict[Value, AffineSubscript]) -> list[Value]:
            at = {**placed, **at, **{a: AffineSubscript.of(new) for a, new in zip(group, own, strict=True)}}
            for a, new in zip(group, own, strict=True):
                self.moved.setdefault(a, new)
            if whole:
                at[group[-1]] = at[group[-1]] * self.lanes + AffineSubscript.of(self.lane)
            return self.axis(into, end, at)

        if axis not in self.steps:
            names = [a.name or "k" for a in group]
            return new_reduce(b, op, bounds[: len(group)], names, lambda into, own: inside(into, own, {}))
        with_it = list(zip([a.name or "k" for a in group], bounds, strict=False))
        # The tiles of a product hold one level of partial results.
        levels = 2 if axis in self.tiled and structure.is_product(op) else None

        def element(into: ScalarBuilder, at: AffineSubscript, own: Sequence[BlockArgument]) -> list[Value]:
            return inside(into, own, {axis: at})

        found = fold_in_chains(b, op, extent, self.steps[axis], axis.name, element, with_it, levels)
        self.moved[axis] = found.inner
        self.blocks[axis] = found.outer, found.unit
        return found.values

    def together(self, depth: int) -> tuple[list[BlockArgument], bool]:
        """The axes from one on that are folded as they are, and so together, and whether the last of them runs over
        the steps of a lane."""
        op = self.op
        end = depth
        while end < op.rank and op.axes[end] not in self.steps and not (self.lanes > 1 and end == op.rank - 1):
            end += 1
        whole = self.lanes > 1 and end == op.rank - 1 and op.axes[end] not in self.steps and not self.tail
        return op.axes[depth : end + whole], whole

    def lane_steps(self, b: ScalarBuilder, placed: dict[Value, AffineSubscript]) -> list[Value]:
        """The elements of a lane: whole steps, then the one that only the first lanes have."""
        op, lanes, count = self.op, self.lanes, self.count
        axis, extent = op.axes[-1], op.bounds[-1]

        def step(into: ScalarBuilder, at: AffineSubscript, _: Sequence[BlockArgument] = ()) -> list[Value]:
            return self.element(into, {**placed, axis: at * lanes + AffineSubscript.of(self.lane)}, last=not self.tail)

        if count == 0:
            main: list[Value] | None = None
        elif axis in self.steps:
            main = fold_in_chains(b, op, count, self.steps[axis], axis.name, step).values
        else:
            main = new_reduce(
                b, op, [count], [axis.name or "k"], lambda into, own: step(into, AffineSubscript.of(own[0]))
            )
        if not self.tail:
            assert main is not None
            return main
        if isinstance(count, int) and isinstance(extent, int):
            at = AffineSubscript.of(self.lane) + count * lanes
            more = b.cmp("slt", self.lane, extent - count * lanes)
        else:
            assert isinstance(extent, Value)
            done = b.mul(count, lanes)
            at = AffineSubscript.of(self.lane) + AffineSubscript.of(done)
            more = b.cmp("slt", b.add(self.lane, done), extent)
        choice = scf.If.build(b, more, [r.type for r in op.results])
        with b.at(choice.then.block):
            b.create(scf.Yield, self.element(b, {**placed, axis: at}, last=True))
        with b.at(choice.otherwise.block):
            b.create(scf.Yield, [b.constant(a) for a in op.identity])
        return list(choice.results) if main is None else _combine(b, op, main, list(choice.results))

    def element(self, b: ScalarBuilder, placed: dict[Value, AffineSubscript], *, last: bool) -> list[Value]:
        """The element of the fold at a place, where a builder stands: the ops themselves, where they are needed no
        more, so that the axes inside them stay known, else copies."""
        end = self.block.terminator
        inside = [op for op in self.block if op is not end]
        table: dict[Value, Value] = {}
        for op in inside:
            if last:
                op.detach()
            placed_op = b.insert(op if last else op.clone(table))
            simplify.replace_axes(placed_op, placed)
        values = [table.get(v, v) for v in end.operands]
        return [placed[v].value(b) if v in placed else v for v in values]


def _combine(b: ScalarBuilder, op: kernel.Reduce, old: Sequence[Value], new: Sequence[Value]) -> list[Value]:
    """The combine region, inlined."""
    block = op.combine.block
    table: dict[Value, Value] = dict(zip(block.arguments, [*old, *new], strict=True))
    last = block.terminator
    for inner in block:
        if inner is not last:
            b.insert(inner.clone(table))
    return [table.get(v, v) for v in last.operands]

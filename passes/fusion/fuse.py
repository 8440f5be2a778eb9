"""fuse: kernel launches become few.

In: a function of `kernel.launch` ops, mostly of one op each, as lower-to-kernels makes them.  Out: the same function
with as few launches as the target's numbers allow; values that were tensors between launches are scalars, or
`kernel.local` arrays of a point, inside them.

    %1 = kernel.launch (%i) in (64) ins(%x ..) outs(..) { load x; mulf 0.5; store }
    %2 = kernel.launch (%i) in (64) ins(%1 ..) outs(..) { load %1; relu; store }
        becomes
    %2 = kernel.launch (%i) in (64) ins(%x ..) outs(..) { load x; mulf 0.5; relu; store }

Each consumer, in program order, takes each of its producers, nearest first, by one of the ways of `fusion.join`, unless
a path from the producer runs to it through a third op.  Then siblings that read a common tensor are merged
(`fusion.siblings`), and it starts again until nothing changes.  The pass reads axes, subscripts, loops, the costs that
op classes declare and the target's numbers (points per thread, rows that share a read, bytes of a local); never names.
Joining works in place on the consumer, so a chain of n ops takes time proportional to n.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ...ir.captures import captured
from ...ir.dialects import kernel
from ...ir.operations import Block, Operation
from ...ir.target import Target
from ...ir.values import OpResult
from ..kernel import simplify, structure
from ..manager import Pass
from . import siblings
from .join import plan_join

SIBLING_WINDOW = 16
"""A launch looks for a sibling among this many earlier launches that read the same tensor: a bound of compile time."""


@dataclass
class Fuse(Pass):
    """Merge kernel launches."""

    name: ClassVar[str] = "fuse"
    anchor: ClassVar[str] = "func.func"

    max_ops: int = 256
    """Scalar ops a launch may hold."""
    max_loops: int = 24
    """Inner loops a launch may hold: what a join costs grows with what is there already."""

    def run(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                _Fuser(block, Target.of(op), self.max_ops, self.max_loops).run()


class _Fuser:
    """The state of fusing one block."""

    def __init__(self, block: Block, target: Target, max_ops: int, max_loops: int) -> None:
        self.block = block
        self.target = target
        self.max_ops = max_ops
        self.max_loops = max_loops
        self.sizes: dict[Operation, int] = {}
        """The scalar ops of each launch."""
        self.loops: dict[Operation, int] = {}
        """The inner loops of each launch."""
        self.changes: dict[Operation, int] = {}
        """How often each launch was changed: what was refused before a change may be tried again after it."""
        self.refused: dict[tuple[Operation, Operation], tuple[int, int]] = {}
        self.untidy: set[kernel.Launch] = set()
        self.spans: dict[Operation, tuple[int, int]] = {}
        """Numbers of an op and of the last op below it in a tree in which each op stands below the nearest one that it
        needs: what stands below an op needs it, also when ops were joined since the numbers were given."""
        self.joined = 0
        """How many ops went since then."""
        self.loop_free: dict[Operation, bool] = {}

    def run(self) -> None:
        for launch in self.launches():
            self.measure(launch)
            self.untidy.add(launch)
        while True:
            self.number()
            for launch in self.launches():
                while launch.parent is not None and self.absorb(launch):
                    pass
            self.tidy_all()
            if not self.merge_siblings():
                break

    def launches(self) -> list[kernel.Launch]:
        """The launches in program order."""
        return [op for op in self.block if isinstance(op, kernel.Launch)]

    def tidy_all(self) -> None:
        """Tidy the launches that were joined since the last time."""
        for launch in self.launches():
            if launch in self.untidy:
                simplify.simplify_launch(launch)
                self.measure(launch)
        self.untidy.clear()

    def measure(self, launch: kernel.Launch) -> None:
        """Note what a launch holds."""
        self.sizes[launch] = structure.scalar_ops(launch)
        self.loops[launch] = structure.inner_loops(launch)

    def fits(self, one: kernel.Launch, other: kernel.Launch) -> bool:
        """Whether one launch may hold what two do."""
        mine, theirs = self.loops[one], self.loops[other]
        return self.sizes[one] + self.sizes[other] <= self.max_ops and (
            not mine or not theirs or mine + theirs <= self.max_loops
        )

    def absorb(self, consumer: kernel.Launch) -> bool:
        """Join one producer into a consumer; whether one was."""
        producers = {v.defining_op for v in consumer.ins}
        candidates = [p for p in producers if isinstance(p, kernel.Launch) and p.parent is self.block]
        for producer in sorted(candidates, key=lambda p: -p.order):
            if self.was_refused(producer, consumer):
                continue
            if self.join(producer, consumer):
                return True
            self.refuse(producer, consumer)
        return False

    def was_refused(self, one: Operation, other: Operation) -> bool:
        """Whether a pair was refused, and neither has changed since."""
        return self.refused.get((one, other)) == (self.changes.get(one, 0), self.changes.get(other, 0))

    def refuse(self, one: Operation, other: Operation) -> None:
        """Remember that a pair was refused."""
        self.refused[one, other] = (self.changes.get(one, 0), self.changes.get(other, 0))

    def changed(self, launch: Operation) -> None:
        """Note that a launch is not what it was."""
        self.changes[launch] = self.changes.get(launch, 0) + 1

    def join(self, producer: kernel.Launch, consumer: kernel.Launch) -> bool:
        """Join a producer into a consumer when that is allowed and pays."""
        size = self.sizes[producer] + self.sizes[consumer]
        if not self.fits(producer, consumer) or self.path_between(producer, consumer):
            return False
        plan = plan_join(producer, consumer, self.target, self.is_loop_free(producer))
        if plan is None:
            return False
        before = producer.prev
        straight = plan.is_straight()
        loop_free = self.is_loop_free(consumer)  # a straight producer has none
        gone = plan.apply()
        if gone:
            self.joined += 1
            self.sizes.pop(producer, None)
            self.loop_free.pop(producer, None)
            self.move_before_users(consumer, before)
        self.sizes[consumer] = size
        self.changed(consumer)
        if straight:
            self.loop_free[consumer] = loop_free
            self.untidy.add(consumer)
        else:
            simplify.simplify_launch(consumer)
            self.measure(consumer)
            self.loop_free.pop(consumer, None)
        return True

    def is_loop_free(self, launch: kernel.Launch) -> bool:
        """Whether a launch has no inner loops."""
        found = self.loop_free.get(launch)
        if found is None:
            found = self.loop_free[launch] = not structure.has_loops(structure.body(launch))
        return found

    def path_between(self, producer: Operation, consumer: Operation) -> bool:
        """Whether the consumer needs the producer also through a third op.

        Searched from both ends in turn, so that it ends where either has little between them.
        """
        if self.joined > len(self.spans) // 4:
            self.number()
        first, last = self.spans.get(producer, (0, 0))
        floor, ceiling = producer.order, consumer.order
        needed = {d for d in _definers(consumer) if d is not producer and self.lies_behind(d, floor)}
        needing = {u for u in self.users(producer) if u is not consumer and u.order < ceiling}

        def needs_producer(op: Operation) -> bool:
            return op in needing or first < self.spans.get(op, (0, 0))[0] <= last

        back, ahead = list(needed), list(needing)
        if any(map(needs_producer, back)):
            return True
        while back and ahead:
            for op in _definers(back.pop()):
                if op not in needed and self.lies_behind(op, floor):
                    if needs_producer(op):
                        return True
                    needed.add(op)
                    back.append(op)
            for op in self.users(ahead.pop()):
                if op not in needing and op.order < ceiling:
                    if op in needed:
                        return True
                    needing.add(op)
                    ahead.append(op)
        return False

    def lies_behind(self, op: Operation, floor: float) -> bool:
        """Whether an op stands in the block, behind a place."""
        return op.parent is self.block and op.order > floor

    def users(self, op: Operation) -> set[Operation]:
        """The ops of the block that use results of one of them, inside their regions too."""
        return {top for r in op.results for u in r.users if (top := self.top(u)) is not None}

    def top(self, op: Operation | None) -> Operation | None:
        """The op of the block that an op is or stands in."""
        while op is not None and op.parent is not self.block:
            op = op.parent_op
        return op

    def number(self) -> None:
        """Give the ops their numbers in the tree."""
        below: dict[Operation | None, list[Operation]] = {}
        for op in self.block:
            inside = [d for d in _definers(op) if d.parent is self.block]
            below.setdefault(max(inside, key=lambda d: d.order, default=None), []).append(op)
        self.spans.clear()
        self.joined = 0
        count = 0
        pending: list[tuple[Operation, int]] = [(op, 0) for op in below.get(None, ())]
        while pending:
            op, first = pending.pop()
            if first:
                self.spans[op] = first, count
                continue
            count += 1
            pending.append((op, count))
            pending += [(child, 0) for child in below.get(op, ())]

    def move_before_users(self, launch: kernel.Launch, start: Operation | None) -> None:
        """Move a launch to behind `start`, where one stood whose results are now its own, if users of these stand
        before it; what it needs and stands in between comes along."""
        if not any(user.order < launch.order for user in self.users(launch)):
            return
        floor = start.order if start is not None else -math.inf
        needed: set[Operation] = {launch}
        pending: list[Operation] = [launch]
        while pending:
            for definer in _definers(pending.pop()):
                if definer not in needed and self.lies_behind(definer, floor):
                    needed.add(definer)
                    pending.append(definer)
        place = start
        for op in sorted(needed, key=lambda op: op.order):
            if place is not None:
                op.move_after(place)
            elif (first := self.block.first) is not None and first is not op:
                op.move_before(first)
            place = op

    def merge_siblings(self) -> bool:
        """Merge launches that read a common tensor; whether any were."""
        changed = False
        readers: dict[object, list[kernel.Launch]] = {}
        for launch in self.launches():
            near: dict[kernel.Launch, None] = {}
            for value in launch.ins:
                for other in readers.get(value, ())[-SIBLING_WINDOW:]:
                    near[other] = None
            for other in sorted(near, key=lambda o: -o.order):
                if other.parent is not None and other is not launch and self.merge(other, launch):
                    changed = True
            for value in launch.ins:
                readers.setdefault(value, []).append(launch)
        return changed

    def merge(self, earlier: kernel.Launch, later: kernel.Launch) -> bool:
        """Merge two siblings into the later op."""
        if not self.fits(earlier, later) or earlier in _definers(later) or self.path_between(earlier, later):
            return False
        if self.was_refused(later, earlier):
            return False
        plan = siblings.plan_merge(earlier, later, self.target)
        if plan is None:
            self.refuse(later, earlier)
            return False
        start = earlier.prev
        siblings.apply_merge(plan, later)
        self.move_before_users(later, start)
        self.joined += 1
        self.sizes.pop(earlier, None)
        self.measure(later)
        self.loop_free.pop(later, None)
        self.changed(later)
        return True


def _definers(op: Operation) -> Iterable[Operation]:
    """The ops whose results an op uses, inside its regions too (a launch's body uses nothing from outside)."""
    if op.regions and not isinstance(op, kernel.Launch):
        return {d for v in captured(op) if (d := v.defining_op) is not None}
    return {v.owner for v in op.operands if isinstance(v, OpResult)}

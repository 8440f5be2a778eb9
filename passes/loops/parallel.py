"""parallel: the outermost loops of a kernel become tasks for workers.

In: kernels after the other loop passes.  Out: foralls that stand in no other forall and do enough work are cut into
tasks; the loop over tasks is marked `nablair.worker`, and the target runs its points on several threads.

    scf.forall (%i) = (0) to (4096) step (64) {..}
        becomes
    scf.forall (%t) in (32) {
      %low = arith.muli %t, 128
      scf.forall (%i) = (%low) to (%low + 128) step (64) {..}
    } {nablair.worker}

The number of tasks follows from the sizes alone, never from the number of threads, so results do not depend on it.
Memory that each point writes for itself (what `memref.alloc` and `alloca` made at the head of the kernel, written at
places that do not move with the loop) is allocated in the task.  A forall inside an `scf.for` is cut too: the trips of
the outer loop stay in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import WORKER
from ...ir.attributes import UNIT
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, func, memref, scf, vector
from ...ir.operations import Operation
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.types import MemRefType
from ...ir.values import OpResult
from ..analysis.legality import IllegalError
from ..analysis.variance import varying_values
from ..manager import Pass
from . import nest

UNKNOWN_TRIPS = 32
"""Trips of a loop inside whose number is known at run time only: a guess about programs, not about machines."""
TASK = 20
"""A task takes at least so many times as long as it costs to hand it out, of which then a twentieth is lost at most."""

STORES = (memref.Store, vector.Store, vector.MaskedStore, vector.Scatter)


@dataclass
class Parallel(Pass):
    """Cut outermost loops into tasks."""

    name: ClassVar[str] = "parallel"
    anchor: ClassVar[str] = "builtin.module"

    least_work: float | None = None
    """Nanoseconds of a task, estimated; None: some twenty times what the target says that handing it out costs."""

    def run(self, op: Operation) -> None:
        target = Target.of(op)
        if target.kind != "cpu":
            return
        least_work = TASK * target.task_ns if self.least_work is None else self.least_work
        for function in nest.kernels(op):
            for loop in list(_outermost(function)):
                try:
                    parallel(function, loop, least_work, target)
                    self.count("parallel")
                except IllegalError as reason:
                    self.count(f"not parallel: {reason}")


def _outermost(function: func.Func) -> Iterator[scf.Forall]:
    """The foralls that stand in no other and in loops in order only."""
    for op in function.walk():
        if isinstance(op, scf.Forall) and not any(isinstance(a, scf.Forall) for a in op.ancestors()):
            yield op


def estimated_work(op: Operation, target: Target) -> int:
    """Picoseconds that an op with all inside it takes, roughly."""
    total = 0
    for region in op.regions:
        for block in region.blocks:
            total += sum(estimated_work(inner, target) for inner in block)
    match op:
        case scf.For():
            trips = op.trips
            return total * (UNKNOWN_TRIPS if trips is None else trips)
        case scf.Forall():
            known = nest.trips(op) if len(op.axes) == 1 else None
            return total * (UNKNOWN_TRIPS if known is None else known)
        case (
            memref.Load() | memref.Store() | vector.Load() | vector.Store() | vector.MaskedLoad() | vector.MaskedStore()
        ):
            return target.access_ps
        case arith.DivF() | vector.Gather() | vector.Scatter():
            return target.slow_op_ps
        case arith.Constant():
            return 0
        case _:
            return total or target.op_ps


def parallel(function: func.Func, loop: scf.Forall, least_work: float, target: Target) -> None:
    """Cut one forall into tasks of at least so many nanoseconds; IllegalError when it has to stay."""
    if len(loop.axes) != 1:
        raise IllegalError("the loop has several axes")
    (lower,), (upper,), (step,) = loop.lower, loop.upper, loop.step
    if not isinstance(step, int):
        raise IllegalError("the step of the loop is not known")
    point = sum(estimated_work(op, target) for op in loop.body.block)
    count = nest.trips(loop)
    share = max(1, round(1000 * least_work / max(point, target.op_ps)))
    if count is not None and count < 2 * share:
        raise IllegalError("the loop does too little")
    private = _private_buffers(function, loop)
    b = ScalarBuilder(before=loop, location=loop.location)
    if count is not None:
        share = max(share, -(-count // target.tasks))
        tasks: Extent = -(-count // share)
        points: Extent = share * step
    else:
        trips = b.value_of(arith.CeilDivSI, b.index_of(nest.subtract(b, upper, lower)), b.index_constant(step))
        most = b.value_of(arith.CeilDivSI, trips, b.index_constant(target.tasks))
        each = b.value_of(arith.MaxSI, most, b.index_constant(share))
        tasks = b.value_of(arith.CeilDivSI, trips, each)
        points = nest.multiply(b, each, step)
    outer = nest.forall(b, 0, tasks, name="t", attributes={WORKER: UNIT})
    inner = nest.at_end(b, outer.body.block)
    low = nest.add(inner, lower, nest.multiply(inner, outer.axes[0], points))
    high = nest.minimum(inner, nest.add(inner, low, points), upper)
    part = nest.forall(inner, low, high, step, name=loop.axes[0].name, attributes=dict(loop.attributes))
    loop.axes[0].replace_by(part.axes[0])
    end = part.body.block.last
    assert end is not None
    for op in nest.body_ops(loop.body.block):
        op.move_before(end)
    loop.erase()
    for buffer in private:
        _move_inside(buffer, outer, part)


def _private_buffers(function: func.Func, loop: scf.Forall) -> list[OpResult]:
    """The buffers of the kernel that each point of the loop writes for itself."""
    varying = varying_values(loop)
    private: list[OpResult] = []
    for op in function.entry:
        if not isinstance(op, memref.Alloc | memref.Alloca):
            continue
        inside = [u for u in op.result.users if loop.is_ancestor_of(u)]
        stores = [u for u in inside if isinstance(u, STORES)]
        if any(not isinstance(u, STORES) and u.results and isinstance(u.results[0].type, MemRefType) for u in inside):
            raise IllegalError("a view of a buffer of the kernel is used")
        if any(not any(i in varying for i in u.indices) for u in stores):
            private.append(op.result)
    return private


def _move_inside(buffer: OpResult, outer: scf.Forall, part: scf.Forall) -> None:
    """Give each task its own copy of a buffer."""
    maker = buffer.owner
    new = maker.clone()
    block = outer.body.block
    block.insert_before(new, part)
    inside = new.results[0]
    buffer.replace_by(inside, lambda user: outer.is_ancestor_of(user))
    if isinstance(maker, memref.Alloc):
        ScalarBuilder(before=part.next, location=maker.location).create(memref.Dealloc, inside)
    if all(isinstance(user, memref.Dealloc) for user in buffer.users):
        for user in list(buffer.users):
            user.erase()
        maker.erase()

"""unroll-jam: copies of a forall's body in one, with the loops of the copies merged.

In: kernels whose schedule says `unroll = [[axis, n], ..]`.  Out: the innermost forall over each axis does n of its
points in one step; when it has no more than n, it is gone.

    scf.forall (%j) = (0) to (32) step (16) {
      %s = scf.for %k = .. iter_args(%a = %zero) -> (vector<16xf32>) {..}
      vector.store %s, %y[%i, %j]
    }
        becomes
    %s:2 = scf.for %k = .. iter_args(%a = %zero, %a1 = %zero) -> (vector<16xf32>, vector<16xf32>) {..}
    vector.store %s#0, %y[%i, %c0]
    vector.store %s#1, %y[%i, %c16]

Points of a forall are independent, so their ops may be interleaved at will, unless they use one buffer of the kernel in
turn, as a local: such loops stay as they are.  Inner loops with bounds that the copies
share become one loop that carries the values of all copies; choices on a shared condition become one choice.  What
stands between is copied in whole stretches, copy after copy: op by op would keep the operands of all copies alive at
once, and the accumulators of a register tile would spill.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, memref, scf, vector
from ...ir.effects import is_pure
from ...ir.operations import Block, Operation
from ...ir.values import Value
from ..analysis.legality import IllegalError
from ..analysis.variance import varying_values
from ..manager import Pass
from ..schedules.remarks import entry, not_applied
from ..schedules.schedule import Schedule
from . import nest

Tables = list[dict[Value, Value]]
STORES = (memref.Store, vector.Store, vector.MaskedStore, vector.Scatter)


@dataclass
class UnrollJam(Pass):
    """Unroll and jam the loops that the schedule names."""

    name: ClassVar[str] = "unroll-jam"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            for axis, copies in Schedule.of(function).unroll:
                loops = nest.point_loops(function, axis)
                if not loops:
                    not_applied(self, function, entry("unroll", axis, copies), nest.NO_POINTS)
                for loop in loops:
                    try:
                        unroll_jam(loop, copies)
                        self.count("unrolled")
                    except IllegalError as reason:
                        self.count(f"not unrolled: {reason}")
                        not_applied(self, function, entry("unroll", axis, copies), reason)


def unroll_jam(loop: scf.Forall, copies: int) -> None:
    """Jam `copies` neighbouring points of a forall of one axis; all of them when there are no more."""
    (lower,), (upper,), (step,) = loop.lower, loop.upper, loop.step
    if not isinstance(step, int):
        raise IllegalError("the step of the loop is not known")
    if copies < 2:
        return
    varying = varying_values(loop)
    for op in loop.walk():
        if isinstance(op, STORES):
            index_vec = [op.index_vec] if isinstance(op, vector.Scatter) else []
            if not any(i in varying for i in (*op.indices, *index_vec)):
                raise IllegalError("points store to one place")
    b = ScalarBuilder(before=loop, location=loop.location)
    count = nest.trips(loop)
    if count is not None and count <= copies and isinstance(lower, int):
        starts = [b.index_constant(lower + i * step) for i in range(count)]
        _Jam(b, loop).run(starts)
        loop.erase()
        return
    name, attributes = loop.axes[0].name, dict(loop.attributes)
    end = nest.whole(b, lower, upper, copies * step)
    if isinstance(upper, int) and isinstance(lower, int):
        # The last point of a loop that does not divide evenly counts whole.
        assert count is not None
        end = lower + count // copies * copies * step
    wide = nest.forall(b, lower, end, copies * step, name=name, attributes=attributes)
    inner = nest.at_end(b, wide.body.block)
    starts: list[Value] = [wide.axes[0]]
    for i in range(1, copies):
        starts.append(inner.value_of(arith.AddI, wide.axes[0], inner.index_constant(i * step)))
    _Jam(inner, loop).run(starts)
    if isinstance(end, int) and isinstance(upper, int):
        assert count is not None
        left = count % copies
        if left:
            if left == 1:
                _Jam(b, loop).run([b.index_constant(end)])
            else:
                rest = nest.forall(b, end, upper, step, name=name)
                _Jam(nest.at_end(b, rest.body.block), loop).run([rest.axes[0]])
    else:
        rest = nest.forall(b, end, upper, step, name=name)
        _Jam(nest.at_end(b, rest.body.block), loop).run([rest.axes[0]])
    loop.erase()


class _Jam:
    """Copies of a body, jammed where a builder stands."""

    def __init__(self, b: ScalarBuilder, loop: scf.Forall) -> None:
        self.b = b
        self.body = loop.body.block
        self.axis = loop.axes[0]

    def run(self, starts: Sequence[Value]) -> None:
        """A copy for each point."""
        if starts:
            self.block(self.body, [{self.axis: start} for start in starts])

    def block(self, block: Block, tables: Tables) -> list[tuple[Value, ...]]:
        """The ops of a block but its terminator; what each copy would end with."""
        last = block.terminator
        stretch: list[Operation] = []
        own: set[Value] = set()
        """What the stretch defines, each copy for itself."""
        for op in nest.body_ops(block):
            if self.alike(op.operands, tables, own) and not op.regions and is_pure(op):
                self.share(op, tables)
            elif self.mergeable(op, tables, own):
                self.copy(stretch, tables)
                stretch = []
                own = set()
                self.merge(op, tables)
            else:
                stretch.append(op)
                own.update(op.results)
        self.copy(stretch, tables)
        return [tuple(t.get(v, v) for v in last.operands) for t in tables]

    def copy(self, stretch: Sequence[Operation], tables: Tables) -> None:
        """Ops in a row, whole, copy after copy."""
        for table in tables:
            for op in stretch:
                self.b.insert(op.clone(table))

    def alike(self, values: Sequence[Value], tables: Tables, own: set[Value]) -> bool:
        """Whether all copies have the same values."""
        return not any(v in own for v in values) and all(len({t.get(v, v) for t in tables}) == 1 for v in values)

    def share(self, op: Operation, tables: Tables) -> None:
        """One op that serves all copies."""
        new = self.b.insert(op.clone(tables[0]))
        for table in tables[1:]:
            table.update(zip(op.results, new.results, strict=True))

    def mergeable(self, op: Operation, tables: Tables, own: set[Value]) -> bool:
        """Whether the copies of a loop or choice can be one."""
        match op:
            case scf.For():
                return self.alike([op.lower, op.upper, op.step], tables, own)
            case scf.Forall():
                return self.alike(op.operands, tables, own)
            case scf.If():
                return self.alike([op.condition], tables, own)
            case _:
                return False

    def merge(self, op: Operation, tables: Tables) -> None:
        """One loop or choice for all copies."""
        first = tables[0]
        b = self.b
        b.location = op.location
        if isinstance(op, scf.For):
            lower, upper, step = (first.get(v, v) for v in (op.lower, op.upper, op.step))
            inits = [t.get(v, v) for t in tables for v in op.inits]
            new = scf.For.build(b, lower, upper, step, inits, name=op.counter.name)
            count = len(op.inits)
            for i, table in enumerate(tables):
                table[op.counter] = new.counter
                for old, argument in zip(op.carried, new.carried[i * count :], strict=False):
                    argument.name = old.name
                    table[old] = argument
            with b.at(new.body.block):
                ends = self.block(op.body.block, tables)
                b.create(scf.Yield, [v for end in ends for v in end])
        elif isinstance(op, scf.Forall):
            lower, upper, step = (
                [first.get(e, e) if isinstance(e, Value) else e for e in entries]
                for entries in (op.lower, op.upper, op.step)
            )
            new = scf.Forall.build(b, upper, lower, step, op.mapping, [a.name or "i" for a in op.axes])
            for table in tables:
                table.update(zip(op.axes, new.axes, strict=True))
            with b.at(new.body.block, new.body.block.last):
                self.block(op.body.block, tables)
        else:
            assert isinstance(op, scf.If)
            types = [r.type for _ in tables for r in op.results]
            new = scf.If.build(b, first.get(op.condition, op.condition), types, bool(op.otherwise.blocks))
            for old, region in zip(op.regions, new.regions, strict=True):
                if old.blocks:
                    with b.at(region.block):
                        ends = self.block(old.block, tables)
                        b.create(scf.Yield, [v for end in ends for v in end])
        new.attributes.update(op.attributes)
        count = len(op.results)
        for i, table in enumerate(tables):
            table.update(zip(op.results, new.results[i * count : (i + 1) * count], strict=True))

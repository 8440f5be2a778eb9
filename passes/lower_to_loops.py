"""lower-to-loops: each launch becomes a function of naive loops, and a call of it.

In: functions with `kernel.launch` ops on buffers.  Out: for each launch a private function with the loops, named after
its caller (`@main_k0`), and a `func.call` in its place.

    kernel.launch (%i) in (64) ins(%x : memref<64xf32>) outs(%y : memref<64xf32>) { load; mulf; store }
        becomes
    func.func private @main_k0(%x: memref<64xf32>, %y: memref<64xf32>) attributes {nablair.kernel, ..} {
      scf.forall (%i) in (64) {
        %0 = memref.load %x[%i] : memref<64xf32>
        %1 = arith.mulf %0, %half : f32
        memref.store %1, %y[%i] : memref<64xf32>
      } {axis = 0 : i64}

Points and sweeps are `scf.forall`, an axis each, so that loop passes find bands of them; folds are `scf.for` with
iter_args from the identity; a local is a buffer of the function.  Where several points add to one element of an
accumulate, the axes that make them meet are `scf.for`, in order.  In a fold by addition, a product whose only user is
the addition becomes `math.fma`.  The attribute `axis` numbers the axes in text order, the domain's first, as the
launch's `schedule`, which moves to the function, counts them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..ir.attribute_names import AXIS, GIVEN, KERNEL, NO_ALIAS, PARALLEL, READ_ONLY, SCHEDULE, SPACE
from ..ir.attributes import UNIT, Attribute, DenseAttr, IntegerAttr, StringAttr, index_array
from ..ir.builders.scalar import ScalarBuilder
from ..ir.builders.subscripts import AffineSubscript, inside
from ..ir.definition import make
from ..ir.diagnostics import PassError
from ..ir.dialects import arith, func, kernel, memref, scf, vector
from ..ir.dialects import math as mathd
from ..ir.dialects.kernel.coverage import steps_of
from ..ir.operations import Block, Operation
from ..ir.support.mixed import Extent
from ..ir.target import ALIGNMENT, Target
from ..ir.types import I1, I8, I64, MemRefType, TensorType, Type, VectorType
from ..ir.values import BlockArgument, Value
from .bufferize import buffer_type
from .kernel import build
from .manager import Pass
from .schedules.remarks import not_applied
from .schedules.schedule import Schedule

REDUCTIONS: dict[type[Operation], str] = {
    arith.AddF: "add",
    arith.AddI: "add",
    arith.MulF: "mul",
    arith.MulI: "mul",
    arith.MaximumF: "maximumf",
    arith.MinimumF: "minimumf",
    arith.MaxNumF: "maxnumf",
    arith.MinNumF: "minnumf",
    arith.MaxSI: "maxsi",
    arith.MaxUI: "maxui",
    arith.MinSI: "minsi",
    arith.MinUI: "minui",
    arith.AndI: "and",
    arith.OrI: "or",
    arith.XOrI: "xor",
}
"""The kind of `vector.reduction` that folds by an op."""


@dataclass
class LowerToLoops(Pass):
    """Turn launches into loops."""

    name: ClassVar[str] = "lower-to-loops"
    anchor: ClassVar[str] = "builtin.module"

    contract: bool = True
    """Whether a product and a sum of a fold become one `math.fma`."""

    def run(self, op: Operation) -> None:
        # On a GPU the lanes of a tree are threads, which fold in loops that map-gpu shares out.
        vectors = Target.of(op).kind == "cpu"
        for function in list(op.regions[0].block):
            if isinstance(function, func.Func) and not function.is_declaration:
                launches = [o for o in function.entry if isinstance(o, kernel.Launch)]
                for number, launch in enumerate(launches):
                    self.left(launch)
                    _outline(function, launch, f"{function.sym_name}_k{number}", self.contract, vectors)

    def left(self, launch: kernel.Launch) -> None:
        """Say what a schedule asks that no pass does, or that a pass before this one should have done."""
        schedule = Schedule.of(launch)
        for key in ("space", "stream", "mma"):
            if getattr(schedule, key):
                not_applied(self, launch, key, "no pass does it yet")
        for key in ("split", "chain"):
            if getattr(schedule, key):
                not_applied(self, launch, key, "split-reduce did not run before")
        if any(schedule.map):
            not_applied(self, launch, "map", "only the first block loop runs on workers, and only that of a fold")


def _outline(caller: func.Func, launch: kernel.Launch, name: str, contract: bool, vectors: bool) -> None:
    """Make the launch's function and call it."""
    if launch.results:
        raise PassError("lower-to-loops: this launch gives tensors, not buffers; run bufferize first", launch.location)
    inputs: list[Value] = list(launch.ins)
    for extent in launch.extents_:
        if extent not in inputs:
            inputs.append(extent)
    operands = [*inputs, *launch.outs_]
    function = func.Func.of(name, [v.type for v in operands], [], "private")
    function.location = launch.location
    for argument, value in zip(function.arguments, operands, strict=True):
        argument.name = value.name
    for argument, inner in zip(function.arguments, launch.in_arguments, strict=False):
        argument.name = inner.name
    readonly = [i for i, v in enumerate(inputs) if isinstance(v.type, MemRefType) and v not in launch.outs_]
    function.attributes[KERNEL] = UNIT
    function.attributes[READ_ONLY] = index_array(readonly)
    if len({*launch.outs_}) == len(launch.outs_) and not set(launch.outs_) & set(launch.ins):
        function.attributes[NO_ALIAS] = UNIT
    if launch.schedule is not None:
        function.attributes[SCHEDULE] = launch.schedule
    if GIVEN in launch.attributes:
        function.attributes[GIVEN] = UNIT
    block = function.entry
    arguments = block.arguments
    table: dict[Value, Value] = dict(zip(launch.in_arguments, arguments[: len(launch.ins)], strict=True))
    table.update(zip(launch.out_arguments, arguments[len(inputs) :], strict=True))
    sizes: dict[Value, Value] = dict(zip(inputs, arguments, strict=False))
    b = ScalarBuilder(block, location=launch.location)
    _Lowering(b, table, contract, vectors).launch(launch, sizes)
    b.create(func.Return, [])
    assert caller.parent is not None
    caller.parent.insert_before(function, caller)
    call = make(func.Call, (operands,), [], (), (), {"callee": name}, location=launch.location)
    assert launch.parent is not None
    launch.parent.insert_before(call, launch)
    launch.erase()


class _Lowering:
    """Lowering of one launch's body into a function."""

    def __init__(self, b: ScalarBuilder, table: dict[Value, Value], contract: bool, vectors: bool) -> None:
        self.b = b
        self.table = table
        self.contract = contract
        self.vectors = vectors
        self.entry = b.block
        self.axis_numbers: dict[Value, int] = {}
        self.freed: list[Value] = []
        self.placed: dict[Value, tuple[Value, list[AffineSubscript], int]] = {}

    def of(self, value: Value) -> Value:
        """What a value of the body is in the function."""
        return self.table.get(value, value)

    def launch(self, op: kernel.Launch, sizes: dict[Value, Value]) -> None:
        """The whole launch: identities of accumulates, then the points."""
        for loop in op.walk():
            if isinstance(loop, kernel.Axes):
                for axis in loop.axes:
                    self.axis_numbers[axis] = len(self.axis_numbers)
        accumulates = [o for o in op.walk() if isinstance(o, kernel.Accumulate)]
        for accumulate in accumulates:
            for dest, identity in zip(accumulate.dests, accumulate.identity, strict=True):
                if op.out_arguments.index(dest) not in op.inits:  # pyright: ignore[reportArgumentType]
                    self.fill(self.of(dest), identity)
        bounds: list[Extent] = [sizes[e] if isinstance(e, Value) else e for e in op.bounds]
        ordered: set[Value] = {a for a in op.axes if any(not _separates(a, acc) for acc in accumulates)}
        self.nest(op.axes, bounds, ordered, lambda: self.block(op.body.block))
        for buffer in self.freed:
            self.b.create(memref.Dealloc, buffer)

    def fill(self, buffer: Value, value: Attribute) -> None:
        """Store a constant everywhere."""
        type = buffer.type
        assert isinstance(type, MemRefType)
        constant = self.to_memory(self.b.constant(value), type)
        extents = [
            d if d >= 0 else self.b.value_of(memref.Dim, buffer, self.b.index_constant(i))
            for i, d in enumerate(type.shape)
        ]
        names = ["i", "j", "h", "v"]
        loops: list[Value] = []
        saved = self.b.block, self.b.before
        for depth, extent in enumerate(extents):
            loop = scf.Forall.build(self.b, [extent], names=names[depth : depth + 1])
            loops.append(loop.axes[0])
            self.b.block, self.b.before = loop.body.block, loop.body.block.last
        self.b.create(memref.Store, constant, buffer, loops)
        self.b.block, self.b.before = saved

    def nest(
        self, axes: Sequence[Value], bounds: Sequence[Extent], ordered: set[Value], body: Callable[[], object]
    ) -> None:
        """Loops over axes, outermost first, around a body; those in `ordered` go in order."""
        saved = self.b.block, self.b.before
        ends: list[tuple[Block, Operation | None]] = []
        for axis, bound in zip(axes, bounds, strict=True):
            number = IntegerAttr(self.axis_numbers[axis], I64)
            if axis in ordered:
                upper = bound if isinstance(bound, Value) else self.b.index_constant(bound)
                loop = scf.For.build(self.b, self.b.index_constant(0), upper, self.b.index_constant(1), name=axis.name)
                loop.attributes[AXIS] = number
                self.table[axis] = loop.counter
                self.b.block, self.b.before = loop.body.block, None
                ends.append((loop.body.block, None))
            else:
                forall = scf.Forall.build(self.b, [bound], names=[axis.name] if axis.name else ())
                forall.attributes[AXIS] = number
                self.table[axis] = forall.axes[0]
                self.b.block, self.b.before = forall.body.block, forall.body.block.last
        body()
        for block, _ in ends:
            block.append(make(scf.Yield, ([],), [], (), (), {}, location=self.b.location))
        self.b.block, self.b.before = saved

    def block(self, block: Block) -> list[Value]:
        """The ops of a body; what its terminator yields."""
        for op in block:
            if isinstance(op, kernel.Yield | scf.Yield):
                return [self.of(v) for v in op.values]
            self.op(op)
        return []

    def op(self, op: Operation) -> None:
        """One op of a body."""
        self.b.location = op.location
        match op:
            case kernel.Load():
                self.table[op.result] = self.load(op)
            case kernel.Store():
                self.store(self.of(op.value), op.dest, build.indices_of(op))
            case kernel.Accumulate():
                self.accumulate(op)
            case kernel.Reduce():
                for result, value in zip(op.results, self.fold(op, None), strict=True):
                    self.table[result] = value
            case kernel.Scan():
                for result, value in zip(op.results, self.fold(op, op.do.block), strict=True):
                    self.table[result] = value
            case kernel.Sweep():
                self.sweep(op)
            case kernel.Local():
                self.local(op)
            case scf.If():
                self.choice(op)
            case _:
                self.b.insert(op.clone(self.table))

    def sweep(self, op: kernel.Sweep) -> None:
        """Loops, in order where steps accumulate; of the steps of a lane (`splits.accumulate`) those that all
        lanes take, then the one that only the first lanes take."""
        accumulates = [o for o in op.walk() if isinstance(o, kernel.Accumulate)]
        ordered: set[Value] = {a for a in op.axes if any(not _separates(a, acc) for acc in accumulates)}
        extent = op.bounds[0] if op.rank == 1 else None
        steps = steps_of(extent) if isinstance(extent, Value) else None
        if steps is None:
            self.nest(op.axes, self.bounds(op), ordered, lambda: self.no_values(op.body.block))
            return
        b, lanes = self.b, steps.lanes
        if isinstance(steps.total, int):
            total: Extent = steps.total
            whole: Extent = steps.total // lanes
        else:
            total = self.of(steps.total)
            whole = b.value_of(arith.DivUI, total, b.index_constant(lanes))
        self.nest(op.axes, [whole], ordered, lambda: self.no_values(op.body.block))
        step = b.index_of(whole)
        place = b.add(b.mul(step, lanes), self.of(steps.lane))
        choice = scf.If.build(b, b.cmp("slt", place, total))
        self.table[op.axes[0]] = step
        with b.at(choice.then.block):
            self.no_values(op.body.block)
            b.create(scf.Yield, [])

    def choice(self, op: scf.If) -> None:
        """A pure choice; its branches may load."""
        new = scf.If.build(self.b, self.of(op.condition), [r.type for r in op.results], bool(op.otherwise.blocks))
        for old, region in zip(op.regions, new.regions, strict=True):
            if old.blocks:
                with self.b.at(region.block):
                    self.b.create(scf.Yield, self.block(old.block))
        self.table.update(zip(op.results, new.results, strict=True))

    def no_values(self, block: Block) -> None:
        """A body that yields nothing."""
        self.block(block)

    def bounds(self, op: kernel.Loop) -> list[Extent]:
        """The extents of an inner loop, in the function."""
        return [self.of(e) if isinstance(e, Value) else e for e in op.bounds]

    # Memory.

    def subscripts(self, at: Sequence[AffineSubscript]) -> list[Value]:
        """Subscripts as index values of the function."""
        placed = {v: AffineSubscript.of(self.of(v)) for index in at for v in index.values}
        return [index.replaced(placed).value(self.b) for index in at]

    def place(self, source: Value, at: Sequence[AffineSubscript]) -> tuple[Value, list[AffineSubscript]]:
        """The buffer and subscripts of an access; a local that is placed in an out is a row of the out."""
        if source in self.placed:
            buffer, row, position = self.placed[source]
            full = list(row)
            full[position] = at[0]
            return buffer, full
        return self.of(source), list(at)

    def load(self, op: kernel.Load) -> Value:
        """A load; a guarded one reads only inside the bounds."""
        buffer, at = self.place(op.source, build.indices_of(op))
        indices = self.subscripts(at)
        if op.fill is None:
            return self.read(buffer, indices, op.result.type)
        type = buffer.type
        assert isinstance(type, MemRefType)
        if not indices:
            return self.read(buffer, indices, op.result.type)
        limits: list[Extent] = [
            extent if extent >= 0 else self.b.value_of(memref.Dim, buffer, self.b.index_constant(axis))
            for axis, extent in enumerate(type.shape)
        ]
        condition = inside(self.b, indices, limits)
        fill = self.b.constant(op.fill)
        choice = scf.If.build(self.b, condition, [op.result.type])
        with self.b.at(choice.then.block):
            self.b.create(scf.Yield, [self.read(buffer, indices, op.result.type)])
        with self.b.at(choice.otherwise.block):
            self.b.create(scf.Yield, [fill])
        return choice.results[0]

    def read(self, buffer: Value, indices: Sequence[Value], type: Type) -> Value:
        """The element as a scalar: a bool comes from a byte."""
        if not isinstance(buffer.type, MemRefType):
            return buffer
        value = self.b.value_of(memref.Load, buffer, indices)
        return self.b.value_of(arith.TruncI, value, results=[I1]) if type is I1 else value

    def to_memory(self, value: Value, type: MemRefType) -> Value:
        """A scalar as it is stored."""
        return self.b.value_of(arith.ExtUI, value, results=[I8]) if value.type is I1 and type.element is I8 else value

    def store(self, value: Value, dest: Value, at: Sequence[AffineSubscript]) -> None:
        """A store."""
        buffer = self.of(dest)
        assert isinstance(buffer.type, MemRefType)
        self.b.create(memref.Store, self.to_memory(value, buffer.type), buffer, self.subscripts(at))

    def accumulate(self, op: kernel.Accumulate) -> None:
        """Load, combine, store."""
        indices = self.subscripts(build.indices_of(op))
        buffers = [self.of(d) for d in op.dests]
        old = [self.read(buffer, indices, v.type) for buffer, v in zip(buffers, op.values, strict=True)]
        new = self.combine(op, old, [self.of(v) for v in op.values], op.values)
        for buffer, value in zip(buffers, new, strict=True):
            assert isinstance(buffer.type, MemRefType)
            self.b.create(memref.Store, self.to_memory(value, buffer.type), buffer, indices)

    # Folds and locals.

    def combine(
        self, op: kernel.Monoidal, old: Sequence[Value], new: Sequence[Value], elements: Sequence[Value] = ()
    ) -> list[Value]:
        """The combine region inlined; a sum of a product that serves nothing else is one fma.  `elements` are the new
        values in the kernel."""
        operators = op.operators
        if operators is None:
            block = op.combine_region.block
            for argument, value in zip(block.arguments, [*old, *new], strict=True):
                self.table[argument] = value
            return self.block(block)
        results: list[Value] = []
        for i, (operator, a, b) in enumerate(zip(operators, old, new, strict=True)):
            product = b.defining_op
            alone = i < len(elements) and elements[i].num_uses == 1 and not b.users
            here = isinstance(product, arith.MulF) and product.parent is self.b.block
            if self.contract and operator is arith.AddF and here and alone:
                assert product is not None
                results.append(self.b.value_of(mathd.Fma, *product.operands, a))
                product.erase()
            else:
                results.append(self.b.value_of(operator, a, b))
        return results

    def fold(self, op: kernel.Fold, do: Block | None) -> list[Value]:
        """`scf.for` loops that carry the fold, one inside the other."""
        for attribute in op.identity:
            if isinstance(attribute, DenseAttr):
                message = f"'{op.name}' op folds values of type {attribute.type}; loops fold scalars"
                raise PassError(message, op.location)
        if isinstance(op, kernel.Reduce) and op.tree:
            return self.tree(op)
        carried = [self.b.constant(a) for a in op.identity]
        return self.fold_axis(op, do, list(zip(op.axes, self.bounds(op), strict=True)), carried)

    def fold_axis(
        self, op: kernel.Fold, do: Block | None, axes: Sequence[tuple[Value, Extent]], carried: list[Value]
    ) -> list[Value]:
        """The loop of the first of the axes left."""
        if not axes:
            elements = self.block(op.body.block)
            after = self.combine(op, carried, elements, op.body.block.terminator.operands)
            if do is not None:
                count = len(carried)
                arguments = do.arguments[len(op.axes) :]
                for argument, value in zip(do.arguments, op.axes, strict=False):
                    self.table[argument] = self.of(value)
                for argument, value in zip(arguments, [*carried, *after], strict=True):
                    self.table[argument] = value
                assert len(arguments) == 2 * count
                self.block(do)
            return after
        (axis, bound), *rest = axes
        upper = bound if isinstance(bound, Value) else self.b.index_constant(bound)
        loop = scf.For.build(self.b, self.b.index_constant(0), upper, self.b.index_constant(1), carried, name=axis.name)
        loop.attributes[AXIS] = IntegerAttr(self.axis_numbers[axis], I64)
        self.table[axis] = loop.counter
        with self.b.at(loop.body.block):
            values = self.fold_axis(op, do, rest, list(loop.carried))
            self.b.create(scf.Yield, values)
        return list(loop.results)

    def tree(self, op: kernel.Reduce) -> list[Value]:
        """Elements in buffers of the function, then folded in halves: by `vector.reduction` where it can say the
        monoid, else by loops."""
        (lanes,) = op.bounds
        assert isinstance(lanes, int)
        elements = [r.type for r in op.results]
        buffers = [self.scratch(op, MemRefType([lanes], I8 if t is I1 else t)) for t in elements]

        def body() -> None:
            for value, buffer in zip(self.block(op.body.block), buffers, strict=True):
                assert isinstance(buffer.type, MemRefType)
                self.b.create(memref.Store, self.to_memory(value, buffer.type), buffer, [self.of(op.axes[0])])

        self.nest(op.axes, [lanes], set(), body)
        operators = op.operators
        kinds = [REDUCTIONS.get(f) for f in operators] if operators is not None else [None]
        if not self.vectors or None in kinds or lanes & (lanes - 1) or I1 in elements:
            return self.halves(op, buffers, lanes)
        zero = self.b.index_constant(0)
        results: list[Value] = []
        for buffer, kind, element in zip(buffers, kinds, elements, strict=True):
            vector_type = VectorType([lanes], element)
            loaded = self.b.value_of(vector.Load, buffer, [zero], results=[vector_type])
            results.append(self.b.value_of(vector.Reduction, loaded, None, kind=kind, fastmath=frozenset({"reassoc"})))
        return results

    def halves(self, op: kernel.Reduce, buffers: Sequence[Value], count: int) -> list[Value]:
        """Combine element i with i + h, h half of the number left, until one is left."""
        zero, one = self.b.index_constant(0), self.b.index_constant(1)

        def element(index: Value) -> list[Value]:
            loaded = [self.b.value_of(memref.Load, buffer, [index]) for buffer in buffers]
            return [
                self.b.value_of(arith.TruncI, v, results=[I1]) if r.type is I1 else v
                for v, r in zip(loaded, op.results, strict=True)
            ]

        while count > 1:
            half = (count + 1) // 2
            loop = scf.For.build(self.b, zero, self.b.index_constant(count - half), one, name="h")
            loop.attributes[PARALLEL] = UNIT
            with self.b.at(loop.body.block):
                other = self.b.value_of(arith.AddI, loop.counter, self.b.index_constant(half))
                values = self.combine(op, element(loop.counter), element(other))
                for value, buffer in zip(values, buffers, strict=True):
                    assert isinstance(buffer.type, MemRefType)
                    self.b.create(memref.Store, self.to_memory(value, buffer.type), buffer, [loop.counter])
                self.b.create(scf.Yield, [])
            count = half
        return element(zero)

    def scratch(self, op: Operation, type: MemRefType) -> Value:
        """Stack memory of the function."""
        new = make(memref.Alloca, ([], []), [type], (), (), {"alignment": ALIGNMENT}, location=op.location)
        self.at_head(new)
        return new.result

    def at_head(self, op: Operation) -> None:
        """Put an op at the head of the function."""
        assert self.entry is not None
        first = self.entry.first
        if first is None:
            self.entry.append(op)
        else:
            self.entry.insert_before(op, first)

    def local(self, op: kernel.Local) -> None:
        """A buffer of the function and the loops that fill it, or a row of an out."""
        type = buffer_type(op.result.type)
        assert isinstance(type, MemRefType)
        if not self.place_in_out(op):
            self.table[op.result] = self.allocate(op, type)
        self.nest(op.axes, self.bounds(op), set(), lambda: self.fill_local(op))

    def fill_local(self, op: kernel.Local) -> None:
        """One element of a local."""
        (value,) = self.block(op.body.block)
        buffer, at = self.place(op.result, [AffineSubscript.of(a) for a in op.axes])
        assert isinstance(buffer.type, MemRefType)
        self.b.create(memref.Store, self.to_memory(value, buffer.type), buffer, self.subscripts(at))

    def allocate(self, op: kernel.Local, type: MemRefType) -> Value:
        """Memory for a local, once for all points: at the head of the function, padded to whole cache lines."""
        small = type.is_static and type.num_elements * 8 <= Target.of(op).stack_bytes
        cls = memref.Alloca if small else memref.Alloc
        sizes = [e for e in self.bounds(op) if isinstance(e, Value)]
        new = make(cls, (sizes, []), [type], (), (), {"alignment": ALIGNMENT}, location=op.location)
        new.result.name = op.result.name
        self.at_head(new)
        if not small:
            self.freed.append(new.result)
        return new.result

    def place_in_out(self, op: kernel.Local) -> bool:
        """Let a local that asks for it live where a later sweep of the same extents stores an out, when that sweep
        reads
        the local only at its own step."""
        if op.attributes.get(SPACE) != StringAttr("out") or op.rank != 1:
            return False
        assert isinstance(op.result.type, TensorType)
        loads = [u for u in op.result.users if isinstance(u, kernel.Load)]
        for sweep in (o for o in _after(op) if isinstance(o, kernel.Sweep)):
            if not kernel.same_extents(sweep.bounds, op.bounds):
                continue
            inside = [u for u in loads if u.parent is sweep.body.block]
            axis = sweep.axes[0]
            later = [u for u in loads if u not in inside and not _stands_before(u, sweep)]
            if later or any(build.indices_of(u) != [AffineSubscript.of(axis)] for u in inside):
                return False
            wanted = buffer_type(op.result.type)
            assert isinstance(wanted, MemRefType)
            for store in (o for o in sweep.body.block if isinstance(o, kernel.Store)):
                at = build.indices_of(store)
                buffer = self.of(store.dest)
                if AffineSubscript.of(axis) not in at or not isinstance(buffer.type, MemRefType):
                    continue
                # An out holds one local, which must have been read where its own value overwrites it.
                if any(buffer is taken for taken, _, _ in self.placed.values()):
                    continue
                if not all(u.is_before(store) for u in inside):
                    continue
                if buffer.type.element is not wanted.element:
                    continue
                self.placed[op.result] = (buffer, at, at.index(AffineSubscript.of(axis)))
                return True
        return False


def _after(op: Operation) -> list[Operation]:
    found: list[Operation] = []
    following = op.next
    while following is not None:
        found.append(following)
        following = following.next
    return found


def _stands_before(op: Operation, other: Operation) -> bool:
    """Whether `op`, at any depth, stands before `other` in other's block."""
    block = other.parent
    inner: Operation | None = op
    while inner is not None and inner.parent is not block:
        inner = inner.parent_op
    return inner is not None and inner.is_before(other)


def _separates(axis: Value, op: kernel.Accumulate) -> bool:
    """Whether different points of an axis add to different elements, whatever the other axes are."""
    return any(axis in index.values and _distinct(index) for index in build.indices_of(op))


def _distinct(index: AffineSubscript) -> bool:
    """Whether a subscript has another value at each point of its axes: a linear form whose factors are large enough."""
    linear = index.expr.linear()
    if linear is None:
        return False
    reach = 0
    for number, factor in sorted(linear[0].items(), key=lambda item: abs(item[1])):
        if abs(factor) <= reach:
            return False
        value = index.values[number]
        loop = value.owner.parent_op if isinstance(value, BlockArgument) else None
        if not isinstance(value, BlockArgument) or not isinstance(loop, kernel.Axes) or value.index >= loop.rank:
            return False
        extent = loop.bounds[value.index]
        reach = reach + abs(factor) * max(extent - 1, 0) if isinstance(extent, int) else sys.maxsize
    return True

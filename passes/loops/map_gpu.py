"""map-gpu: kernel functions become kernels of a device module, and their calls become launches.

In: private functions with the attribute `nablair.kernel`, whose bodies are loop nests over buffers, and host functions
that call them.  Out: one `gpu.module @<host function>_kernels` with a `gpu.func` for each nest, and `gpu.launch_func`
in place of each call, with a grid that the host computes.

    func.func private @main_k0(%x: memref<100x40xf32>, %y: memref<100x40xf32>) attributes {nablair.kernel} {
      scf.forall (%i) in (100) { scf.forall (%j) in (40) { ..  memref.store %0, %y[%i, %j] } }
    func.func @main(..) { func.call @main_k0(%x, %y)
        becomes
    gpu.module @main_kernels { gpu.func @main_k0(%x : .., %y : ..) kernel attributes {known_block_size = [256, 1, 1]} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      .. %p = 256 * %b + %t, %j = %p mod 40, %i = %p / 40
      scf.if %p < 4000 { .. }
    func.func @main(..) { gpu.launch_func @main_kernels::@main_k0 blocks in (%c16, %c1, %c1) threads in (%c256, ..)

A nest at the top of a function is a launch of its own: the end of a launch is the barrier of the whole grid, which the
identities of an accumulate need before the points.  The band of foralls at its head is numbered in row-major order, a
thread for each point, so that neighbours touch neighbouring elements.  A `scf.for` over an axis of an accumulate may
stand between them; the parallel axes separate the elements that meet, so it moves inside, and each thread adds its own
elements in order.  All other loops run in the thread, and locals are the thread's own.  A local that is too large for
that, or of unknown size, is a buffer of the host with an element for each thread, threads innermost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from ...ir.attributes import UNIT, DenseArrayAttr, index_array
from ...ir.dialects import arith, func, gpu, memref, scf
from ...ir.dialects.builtin import Module
from ...ir.dialects.scalar_builder import ScalarBuilder
from ...ir.effects import is_pure
from ...ir.operations import Block, Operation
from ...ir.target import Target
from ...ir.types import DYNAMIC, I32, INDEX, MemRefType
from ...ir.values import BlockArgument, Value
from ..manager import Pass

KERNEL = "nablair.kernel"
READ_ONLY = "nablair.readonly"
NO_ALIAS = "nablair.noalias"

Extent = int | Value
PRIVATE_BYTES = 2048
"""A local larger than this is a buffer of the host."""
SCRATCH_THREADS = 1 << 14
"""Threads of a launch whose locals are buffers of the host; each then takes several points."""


@dataclass
class MapGpu(Pass):
    """Turn kernel functions into device kernels."""

    name: ClassVar[str] = "map-gpu"
    anchor: ClassVar[str] = "builtin.module"

    threads: int = 0
    """Threads of a block; 0: as the target says."""

    def run(self, op: Operation) -> None:
        assert isinstance(op, Module)
        functions = [f for f in op.block if isinstance(f, func.Func)]
        kernels = {f.sym_name: f for f in functions if KERNEL in f.attributes}
        for host in functions:
            if KERNEL in host.attributes or host.is_declaration:
                continue
            calls = [c for c in host.walk() if isinstance(c, func.Call) and c.callee in kernels]
            if calls:
                op.attributes[gpu.CONTAINER] = UNIT
                self.map_calls(host, calls, kernels)
        for kernel in kernels.values():
            kernel.erase()

    def map_calls(self, host: func.Func, calls: Sequence[func.Call], kernels: dict[str, func.Func]) -> None:
        """Make the device module of a host function and launch its kernels."""
        target = Target.of(host)
        threads = self.threads or (target.threads if target.kind != "cpu" else 256)
        b = ScalarBuilder(before=host, location=host.location)
        module = gpu.Module.build(b, f"{host.sym_name}_kernels")
        made: dict[str, list[Part]] = {}
        for call in calls:
            if call.callee not in made:
                kernel = kernels[call.callee]
                made[call.callee] = map_kernel(kernel, module, threads)
                self.count("kernels", len(made[call.callee]))
            arguments: dict[Value, Value] = dict(zip(kernels[call.callee].arguments, call.operands, strict=True))
            for part in made[call.callee]:
                part.launch(module.sym_name, call, arguments)
            call.erase()


def map_kernel(function: func.Func, module: gpu.Module, threads: int) -> list[Part]:
    """The kernels of a function, which go into the module, in the order of their launches."""
    groups = segments(function)
    names = [function.sym_name] if len(groups) == 1 else [f"{function.sym_name}_{i}" for i in range(len(groups))]
    return [_Mapping(function, group, threads).build(name, module) for name, group in zip(names, groups, strict=True)]


# What runs on its own.


def is_free(op: Operation, known: set[Value]) -> bool:
    """Whether an op can be computed anywhere: pure, of values that are known everywhere."""
    return not op.regions and is_pure(op) and all(v in known for v in op.operands)


def segments(function: func.Func) -> list[list[Operation]]:
    """The ops of a kernel function in groups that may run one launch after the other.

    A loop nest is a group of its own, unless a value or a private buffer passes between it and others.
    """
    known: set[Value] = set(function.arguments)
    work: list[Operation] = []
    private: list[Operation] = []
    for op in function.entry:
        if is_free(op, known):
            known.update(op.results)
        elif isinstance(op, memref.Alloca | memref.Alloc):
            private.append(op)
        elif not isinstance(op, memref.Dealloc | func.Return):
            work.append(op)
    place = {op: i for i, op in enumerate(work)}
    together: list[tuple[int, int]] = []
    for op in (*private, *work):
        users = [place[top] for r in op.results for u in r.uses if (top := _top(u, function.entry)) in place]
        if users:
            together.append((place.get(op, min(users)), max(users)))
    groups: list[list[Operation]] = []
    end = -1
    for i, op in enumerate(work):
        alone = isinstance(op, scf.Forall | scf.For)
        serial = bool(groups) and not alone and not isinstance(groups[-1][-1], scf.Forall | scf.For)
        if i <= end or serial:
            groups[-1].append(op)
        else:
            groups.append([op])
        end = max([end, *(last for first, last in together if first <= i)])
    return groups


def _top(op: Operation, block: Block) -> Operation:
    """The op of a block that an op is or stands in."""
    while op.parent is not block:
        outer = op.parent_op
        assert outer is not None
        op = outer
    return op


@dataclass
class Band:
    """The loops at the head of a nest: axes that run in any order, loops in order that move inside, and the body."""

    axes: list[BlockArgument] = field(default_factory=list[BlockArgument])
    bounds: list[Extent] = field(default_factory=list[Extent])
    ordered: list[scf.For] = field(default_factory=list[scf.For])
    between: list[Operation] = field(default_factory=list[Operation])
    """Ops between the loops, which can be computed anywhere."""
    body: list[Operation] = field(default_factory=list[Operation])


def find_band(group: Sequence[Operation], known: set[Value]) -> Band:
    """The band of a group of ops; without axes where the group is no nest."""
    band = Band(body=list(group))
    best = band
    known = set(known)
    while True:
        free = [op for op in band.body if is_free(op, known)]
        for op in free:
            known.update(op.results)
        rest = [op for op in band.body if op not in free]
        if len(rest) != 1:
            return best
        (loop,) = rest
        between = [*band.between, *free]
        if (
            isinstance(loop, scf.Forall)
            and loop.is_normalized
            and all(isinstance(e, int) or e in known for e in loop.upper)
        ):
            axes, bounds = [*band.axes, *loop.axes], [*band.bounds, *loop.upper]
            best = band = Band(axes, bounds, band.ordered, between, _body(loop.body.block))
        elif isinstance(loop, scf.For) and not loop.inits and "axis" in loop.attributes:
            band = Band(band.axes, band.bounds, [*band.ordered, loop], between, _body(loop.body.block))
        else:
            return best


def _body(block: Block) -> list[Operation]:
    last = block.terminator
    return [op for op in block if op is not last]


# Kernels.


@dataclass
class Part:
    """A kernel and how it is launched."""

    kernel: gpu.Func
    arguments: list[Value]
    """Arguments of the kernel function, of which this kernel takes these."""
    bounds: list[Extent]
    threads: int
    scratch: list[memref.Alloc | memref.Alloca]
    """Locals that are buffers of the host."""

    def launch(self, module: str, call: func.Call, arguments: dict[Value, Value]) -> None:
        """Launch it before a call."""
        b = ScalarBuilder(before=call, location=call.location)
        table = dict(arguments)
        points: Value = b.index_constant(1)
        for bound in self.bounds:
            points = b.mul(points, bound if isinstance(bound, int) else computed(b, bound, table))
        grid = b.value_of(arith.CeilDivSI, points, b.index_constant(self.threads))
        scratch: list[Value] = []
        if self.scratch:
            grid = b.value_of(arith.MinSI, grid, b.index_constant(max(1, SCRATCH_THREADS // self.threads)))
            total = b.mul(grid, self.threads)
            for local in self.scratch:
                sizes = [computed(b, size, table) for size in local.sizes]
                scratch.append(
                    b.value_of(memref.Alloc, [*sizes, total], [], results=[_scratch_type(local.result.type)])
                )
        one, threads = b.index_constant(1), b.index_constant(self.threads)
        operands = [arguments[a] for a in self.arguments] + scratch
        gpu.LaunchFunc.build(b, module, self.kernel.sym_name, (grid, one, one), (threads, one, one), operands)
        for buffer in scratch:
            b.create(memref.Dealloc, buffer)


def computed(b: ScalarBuilder, value: Value, table: dict[Value, Value]) -> Value:
    """A value of the kernel function computed where the builder stands, from what the table has for its arguments."""
    found = table.get(value)
    if found is None:
        op = value.defining_op
        assert op is not None
        for operand in op.operands:
            computed(b, operand, table)
        b.insert(op.clone(table))
        found = table[value]
    return found


def _scratch_type(type: object) -> MemRefType:
    assert isinstance(type, MemRefType)
    return MemRefType((*type.shape, DYNAMIC), type.element)


class _Mapping:
    """The making of one kernel."""

    def __init__(self, function: func.Func, group: Sequence[Operation], threads: int) -> None:
        self.function = function
        self.group = group
        known: set[Value] = set(function.arguments)
        for op in function.entry:
            if is_free(op, known):
                known.update(op.results)
        self.band = find_band(group, known)
        static = [e for e in self.band.bounds if isinstance(e, int)]
        self.count = prod(static) if len(static) == len(self.band.bounds) else None
        if self.count is not None:
            threads = min(threads, -(-self.count // 32) * 32) if self.count > 1 else 1
        self.threads = max(1, threads)
        self.table: dict[Value, Value] = {}

    def build(self, name: str, module: gpu.Module) -> Part:
        """The kernel, in the module."""
        outside = list(self.outside())
        locals_ = [op for v in outside if isinstance(op := v.defining_op, memref.Alloca | memref.Alloc)]
        scratch = [op for op in locals_ if not _fits_thread(op)]
        wanted = {a for v in (*outside, *(s for op in scratch for s in op.sizes)) for a in self.roots(v)}
        wanted |= {a for e in self.band.bounds if isinstance(e, Value) for a in self.roots(e)}
        arguments: list[Value] = [a for a in self.function.arguments if a in wanted]
        types = [*(a.type for a in arguments), *(_scratch_type(op.result.type) for op in scratch)]
        b = ScalarBuilder(module.body.block, module.body.block.last, self.function.location)
        kernel = gpu.Func.build(b, name, types, known_block_size=[self.threads, 1, 1])
        for argument, inner in zip(arguments, kernel.parameters, strict=False):
            inner.name = argument.name
            self.table[argument] = inner
        positions = self.function.attributes.get(READ_ONLY)
        readonly = positions.values if isinstance(positions, DenseArrayAttr) else ()
        kernel.attributes[READ_ONLY] = index_array(
            i for i, a in enumerate(arguments) if isinstance(a, BlockArgument) and a.index in readonly
        )
        if NO_ALIAS in self.function.attributes:
            kernel.attributes[NO_ALIAS] = UNIT
        b = ScalarBuilder(kernel.body.entry, location=self.function.location)
        for value in outside:
            if not isinstance(value.defining_op, memref.Alloca | memref.Alloc):
                computed(b, value, self.table)
        for op in locals_:
            if op not in scratch:
                own = b.value_of(memref.Alloca, [], [], results=[op.result.type])
                own.name = op.result.name
                self.table[op.result] = own
        buffers = kernel.parameters[len(arguments) :]
        for op, buffer in zip(scratch, buffers, strict=True):
            buffer.name = op.result.name
            self.table[op.result] = buffer
        thread = self.points(b, bool(scratch))
        b.create(gpu.Return, [])
        for buffer in buffers:
            for access in list(buffer.uses):
                access.set_operands([*access.operands, thread])
        for forall in [op for op in kernel.walk() if isinstance(op, scf.Forall)]:
            in_order(forall)
        return Part(kernel, arguments, self.band.bounds, self.threads, scratch)

    def outside(self) -> Iterable[Value]:
        """The values that the group takes from outside of it, in order."""
        inside = {r for op in self.group for inner in op.walk() for r in inner.results}
        inside |= {
            a for op in self.group for inner in op.walk() for r in inner.regions for x in r.blocks for a in x.arguments
        }
        used = [v for op in self.group for inner in op.walk() for v in inner.operands if v not in inside]
        return dict.fromkeys(used)

    def roots(self, value: Value) -> list[Value]:
        """The function's arguments that a value is computed from."""
        op = value.defining_op
        if op is None:
            return [value]
        return [root for operand in op.operands for root in self.roots(operand)]

    def points(self, b: ScalarBuilder, several: bool) -> Value:
        """The points of a thread, one or `several`; its number in the grid."""
        for op in self.band.between:
            b.insert(op.clone(self.table))
        if not self.band.axes:
            self.body(b)
            return b.index_constant(0)
        small = self.count is not None and self.count < 1 << 31
        kind = I32 if small else INDEX
        block = b.value_of(gpu.BlockId, dimension="x")
        thread = b.value_of(gpu.ThreadId, dimension="x")
        size = b.constant(self.threads, kind)
        point = b.add(b.mul(b.index_cast(block, kind), size), b.index_cast(thread, kind))
        number = b.index_cast(point)
        extents = [b.constant(e, kind) if isinstance(e, int) else computed(b, e, self.table) for e in self.band.bounds]
        count = extents[0]
        for extent in extents[1:]:
            count = b.mul(count, extent)
        if several:
            total = b.mul(b.index_cast(b.value_of(gpu.GridDim, dimension="x"), kind), size)
            loop = scf.For.build(b, point, count, total)
            with b.at(loop.body.block):
                self.one_point(b, loop.counter, extents)
                b.create(scf.Yield, [])
        elif self.count is not None and self.count % self.threads == 0:
            self.one_point(b, point, extents)
        else:
            inside = scf.If.build(b, b.cmp("slt", point, count))
            with b.at(inside.then.block):
                self.one_point(b, point, extents)
                b.create(scf.Yield, [])
        return number

    def one_point(self, b: ScalarBuilder, point: Value, extents: Sequence[Value]) -> None:
        """The body at a point, given by its number."""
        rest = point
        for number in range(len(extents) - 1, -1, -1):
            axis = self.band.axes[number]
            index = b.rem(rest, extents[number], unsigned=True) if number else rest
            if number:
                rest = b.div(rest, extents[number], unsigned=True)
            cast = b.index_cast(index, unsigned=True)
            if cast.name is None:
                cast.name = axis.name
            self.table[axis] = cast
        self.ordered(b, list(self.band.ordered))

    def ordered(self, b: ScalarBuilder, loops: Sequence[scf.For]) -> None:
        """The loops that run in order, then the body."""
        if not loops:
            self.body(b)
            return
        old, *rest = loops
        lower, upper, step = (self.table.get(v, v) for v in (old.lower, old.upper, old.step))
        loop = scf.For.build(b, lower, upper, step, name=old.counter.name)
        self.table[old.counter] = loop.counter
        with b.at(loop.body.block):
            self.ordered(b, rest)
            b.create(scf.Yield, [])

    def body(self, b: ScalarBuilder) -> None:
        """The ops of the body."""
        for op in self.band.body:
            b.insert(op.clone(self.table))


def _fits_thread(op: memref.Alloca | memref.Alloc) -> bool:
    type = op.result.type
    assert isinstance(type, MemRefType)
    return type.is_static and type.num_elements * 8 <= PRIVATE_BYTES


def in_order(forall: scf.Forall) -> None:
    """Replace a forall by loops in order, one an axis."""
    b = ScalarBuilder(before=forall, location=forall.location)

    def entry(value: Extent) -> Value:
        return b.index_constant(value) if isinstance(value, int) else value

    for axis, lower, upper, step in zip(forall.axes, forall.lower, forall.upper, forall.step, strict=True):
        loop = scf.For.build(b, entry(lower), entry(upper), entry(step), name=axis.name)
        if "axis" in forall.attributes:
            loop.attributes["axis"] = forall.attributes["axis"]
        axis.replace_by(loop.counter)
        b = ScalarBuilder(loop.body.block, location=forall.location)
        end = b.create(scf.Yield, [])
        b.before = end
    for op in _body(forall.body.block):
        op.detach()
        b.insert(op)
    forall.erase()

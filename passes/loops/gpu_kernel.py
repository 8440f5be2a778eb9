"""What mappings of kernels to a GPU share: bands of loops, the making of a device kernel, and its launch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod

from ...ir.attribute_names import AXIS, NO_ALIAS, READ_ONLY
from ...ir.attributes import UNIT, DenseArrayAttr, index_array
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, func, gpu, memref, scf
from ...ir.effects import is_pure
from ...ir.operations import Block, Operation
from ...ir.support.mixed import Extent
from ...ir.types import DYNAMIC, I32, INDEX, MemRefType
from ...ir.values import BlockArgument, Value
from ..analysis.launch import origins

Local = memref.Alloca | memref.Alloc


def is_free(op: Operation, known: set[Value]) -> bool:
    """Whether an op can be computed anywhere: pure, of values that are known everywhere."""
    return not op.regions and is_pure(op) and all(v in known for v in op.operands)


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
    """The band of a group of ops; without axes where the group is not a nest."""
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
            best = band = Band(axes, bounds, band.ordered, between, body_of(loop.body.block))
        elif isinstance(loop, scf.For) and not loop.inits and AXIS in loop.attributes:
            band = Band(band.axes, band.bounds, [*band.ordered, loop], between, body_of(loop.body.block))
        else:
            return best


def body_of(block: Block) -> list[Operation]:
    """The ops of a block but its terminator."""
    last = block.terminator
    return [op for op in block if op is not last]


@dataclass
class Part:
    """A kernel and how it is launched: `per_block` points by a block of `block` threads along x and y."""

    kernel: gpu.Func
    arguments: list[Value]
    """Arguments of the kernel function, of which this kernel takes these."""
    bounds: list[Extent]
    per_block: int
    block: tuple[int, int]
    tile: list[int] | None = None
    """Points of a block along each axis, where a block is not a run of points."""
    most_blocks: int = 0
    """Blocks of a launch at most, which then take several points for each thread; 0: no limit."""
    scratch: list[tuple[Local, bool]] = field(default_factory=list[tuple[Local, bool]])
    """Locals that are buffers of the host with a place for each point, or for each thread of a limited launch, and
    whether that is the last axis, else the first."""

    def launch(self, module: str, call: func.Call, arguments: dict[Value, Value]) -> None:
        """Launch it before a call."""
        b = ScalarBuilder(before=call, location=call.location)
        table = dict(arguments)
        points: Value = b.index_constant(1)
        for bound in self.bounds:
            points = b.mul(points, bound if isinstance(bound, int) else computed(b, bound, table))
        if self.tile is not None:
            grid = self.tiles(b, table)
        else:
            grid = b.value_of(arith.CeilDivSI, points, b.index_constant(self.per_block))
        if self.most_blocks:
            grid = b.value_of(arith.MinSI, grid, b.index_constant(self.most_blocks))
        scratch: list[Value] = []
        places = b.mul(grid, self.per_block) if self.most_blocks else points
        for local, last in self.scratch:
            sizes = [computed(b, size, table) for size in local.sizes]
            sizes = [*sizes, places] if last else [places, *sizes]
            scratch.append(b.value_of(memref.Alloc, sizes, [], results=[scratch_type(local, last)]))
        one = b.index_constant(1)
        x, y = (b.index_constant(n) for n in self.block)
        operands = [arguments[a] for a in self.arguments] + scratch
        gpu.LaunchFunc.build(b, module, self.kernel.sym_name, (grid, one, one), (x, y, one), operands)
        for buffer in scratch:
            b.create(memref.Dealloc, buffer)

    def tiles(self, b: ScalarBuilder, table: dict[Value, Value]) -> Value:
        """The number of tiles."""
        assert self.tile is not None
        grid: Value = b.index_constant(1)
        for bound, size in zip(self.bounds, self.tile, strict=True):
            extent = b.index_of(bound if isinstance(bound, int) else computed(b, bound, table))
            grid = b.mul(grid, b.value_of(arith.CeilDivSI, extent, b.index_constant(size)))
        return grid


def computed(b: ScalarBuilder, value: Value, table: dict[Value, Value]) -> Value:
    """A value of the kernel function computed where the builder stands, from what the table has for its arguments."""
    pending = [value]
    while pending:
        wanted = pending[-1]
        op = wanted.defining_op
        missing = [] if op is None else [v for v in op.operands if v not in table]
        if wanted in table:
            pending.pop()
        elif missing:
            pending += reversed(missing)
        else:
            assert op is not None
            b.insert(op.clone(table))
    return table[value]


def buffer_of(local: Local) -> MemRefType:
    """The type of a local."""
    type = local.result.type
    assert isinstance(type, MemRefType)
    return type


def scratch_type(local: Local, last: bool) -> MemRefType:
    """The type of a local as a buffer of the host, with its places as the last axis or the first."""
    type = buffer_of(local)
    return MemRefType((*type.shape, DYNAMIC) if last else (DYNAMIC, *type.shape), type.element)


class Mapping:
    """The making of one kernel from a group of ops."""

    def __init__(self, function: func.Func, group: Sequence[Operation], band: Band) -> None:
        self.function = function
        self.group = group
        self.band = band
        static = [e for e in band.bounds if isinstance(e, int)]
        self.count = prod(static) if len(static) == len(band.bounds) else None
        """The number of points, when it is known."""
        self.table: dict[Value, Value] = {}
        self.outside = list(self._outside())
        self.locals = [op for v in self.outside if isinstance(op := v.defining_op, memref.Alloca | memref.Alloc)]

    def begin(
        self,
        name: str,
        module: gpu.Module,
        block: tuple[int, int],
        scratch: Sequence[tuple[Local, bool]],
        shared: Sequence[MemRefType] = (),
    ) -> tuple[gpu.Func, list[Value], ScalarBuilder]:
        """The kernel with what can be computed anywhere in it, and the arguments of the function that it takes."""
        wanted = {a for v in (*self.outside, *(s for op, _ in scratch for s in op.sizes)) for a in roots(v)}
        wanted |= {a for e in self.band.bounds if isinstance(e, Value) for a in roots(e)}
        arguments: list[Value] = [a for a in self.function.arguments if a in wanted]
        types = [*(a.type for a in arguments), *(scratch_type(op, last) for op, last in scratch)]
        b = ScalarBuilder(module.body.block, module.body.block.last, self.function.location)
        kernel = gpu.Func.build(b, name, types, shared, known_block_size=[*block, 1])
        for argument, inner in zip(arguments, kernel.parameters, strict=False):
            inner.name = argument.name
            self.table[argument] = inner
        for (op, _), buffer in zip(scratch, kernel.parameters[len(arguments) :], strict=True):
            buffer.name = op.result.name
            self.table[op.result] = buffer
        positions = self.function.attributes.get(READ_ONLY)
        readonly = positions.values if isinstance(positions, DenseArrayAttr) else ()
        kernel.attributes[READ_ONLY] = index_array(
            i for i, a in enumerate(arguments) if isinstance(a, BlockArgument) and a.index in readonly
        )
        if NO_ALIAS in self.function.attributes:
            kernel.attributes[NO_ALIAS] = UNIT
        b = ScalarBuilder(kernel.body.entry, location=self.function.location)
        for value in self.outside:
            if not isinstance(value.defining_op, memref.Alloca | memref.Alloc):
                computed(b, value, self.table)
        return kernel, arguments, b

    def _outside(self) -> Iterable[Value]:
        """The values that the group takes from outside of it, in order."""
        inside = {r for op in self.group for inner in op.walk() for r in inner.results}
        inside |= {
            a for op in self.group for inner in op.walk() for r in inner.regions for x in r.blocks for a in x.arguments
        }
        used = [v for op in self.group for inner in op.walk() for v in inner.operands if v not in inside]
        return dict.fromkeys(used)

    def extents(self, b: ScalarBuilder) -> list[Value]:
        """The extents of the band, in 32 bits where the number of points fits."""
        kind = I32 if self.small else INDEX
        return [b.constant(e, kind) if isinstance(e, int) else computed(b, e, self.table) for e in self.band.bounds]

    @property
    def small(self) -> bool:
        """Whether points are numbered in 32 bits."""
        return self.count is not None and self.count < 1 << 31

    def place(self, b: ScalarBuilder, point: Value, extents: Sequence[Value]) -> None:
        """Set the axes of the band at a point, given by its number in row-major order."""
        for axis, index in zip(reversed(self.band.axes), delinearized(b, point, extents), strict=True):
            cast = b.index_cast(index, unsigned=True)
            if cast.name is None:
                cast.name = axis.name
            self.table[axis] = cast


def roots(value: Value) -> list[Value]:
    """The function's arguments that a value is computed from."""
    return [v for v in origins(value) if v.defining_op is None]


def delinearized(b: ScalarBuilder, position: Value, extents: Sequence[Value]) -> Iterator[Value]:
    """The subscripts of the element at a position in row-major order, the last one first."""
    for extent in reversed(extents[1:]):
        index = b.rem(position, extent, unsigned=True)
        position = b.div(position, extent, unsigned=True)
        yield index
    yield position


def product(b: ScalarBuilder, extents: Sequence[Value]) -> Value:
    """The number of points."""
    count = extents[0]
    for extent in extents[1:]:
        count = b.mul(count, extent)
    return count


def add_subscript(buffer: Value, subscript: Value, last: bool) -> None:
    """Give all accesses to a buffer another subscript, the first or the last."""
    for access in list(buffer.users):
        operands = list(access.operands)
        place = len(operands) if last else operands.index(buffer) + 1
        access.set_operands([*operands[:place], subscript, *operands[place:]])


def in_order(forall: scf.Forall) -> None:
    """Replace a forall by loops in order, one an axis."""
    b = ScalarBuilder(before=forall, location=forall.location)

    for axis, lower, upper, step in zip(forall.axes, forall.lower, forall.upper, forall.step, strict=True):
        loop = scf.For.build(b, b.index_of(lower), b.index_of(upper), b.index_of(step), name=axis.name)
        if AXIS in forall.attributes:
            loop.attributes[AXIS] = forall.attributes[AXIS]
        axis.replace_by(loop.counter)
        b = ScalarBuilder(loop.body.block, location=forall.location)
        end = b.create(scf.Yield, [])
        b.before = end
    for op in body_of(forall.body.block):
        op.detach()
        b.insert(op)
    forall.erase()

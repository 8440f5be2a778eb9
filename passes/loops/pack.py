"""pack: the box of an operand that a block reads is copied, so that it lies as it is read.

In: kernels whose schedule says `pack = [{operand, at, panel, pad}, ..]`.  Out: inside the first `at` block loops a copy
of the box of the operand that is read there, and loads from the copy.

    scf.for %k0 = .. {                                        // the block loop number 0; at = 1, panel = 32
      scf.forall (%j0) = (0) to (64) step (32) { .. %x = memref.load %b[%k0 + %kk, %j0 + %jj] ..
        becomes
    scf.for %k0 = .. {
      scf.forall (%p) in (2) { scf.forall (%q) in (256) { scf.forall (%w) in (32) {
        %copy[%p, %q, %w] = %b[%k0 + %q, %p * 32 + %w]
      } } }
      scf.forall (%j0) = (0) to (64) step (32) { %p = %j0 / 32 .. %x = memref.load %copy[%p, %kk, %jj] ..

Each subscript of the loads is a sum of loop counters.  Those of loops around the copy are the base of the box, those
inside run over it; the innermost block around the copy gives its extent, else the operand does.  With `panel` the
extent along the vectorized axis is cut into panels, outermost in the copy, whose width is innermost; without, the copy
has the axes of the operand along which the box extends, rows lengthened by `pad`.  The innermost loop of a copy carries
the axis that it runs over, so that the schedule's lanes apply to it.

Legal when nothing in the kernel writes the operand and all its loads in the block agree on the base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from ...ir.attribute_names import AXIS, BLOCK, MAX_TRIP_COUNT, READ_ONLY
from ...ir.attributes import DenseArrayAttr
from ...ir.builders.scalar import ScalarBuilder
from ...ir.captures import defined_inside
from ...ir.dialects import arith, func, memref, scf
from ...ir.operations import Block, Operation
from ...ir.support.mixed import Extent, known
from ...ir.target import ALIGNMENT, Target
from ...ir.types import DYNAMIC, MemRefType, element_bytes
from ...ir.values import BlockArgument, Value
from ..analysis.legality import IllegalError
from ..manager import Pass
from ..schedules import schedule as schedules
from ..schedules.remarks import not_applied
from ..schedules.schedule import Schedule
from . import nest

STACK_SHARE = 16
"""Copies larger than this part of what a buffer may take of the stack come from the heap: a kernel may have several."""


@dataclass
class Pack(Pass):
    """Copy the operands that the schedule names."""

    name: ClassVar[str] = "pack"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            schedule = Schedule.of(function)
            lanes = schedule.vector[0][0] if schedule.vector else -1
            for wanted in schedule.pack:
                asked = f"pack = [{wanted.attribute()}]"
                places = _places(function, wanted.at)
                if not places:
                    not_applied(self, function, asked, f"there are not {max(1, wanted.at)} block loops")
                for place in places:
                    try:
                        pack(function, wanted, place, lanes)
                        self.count("packed")
                    except IllegalError as reason:
                        self.count(f"not packed: {reason}")
                        not_applied(self, function, asked, reason)


@dataclass
class Scope:
    """Where a copy stands, and the ops that may read it."""

    before: Operation
    ops: list[Operation]


def _places(function: func.Func, at: int) -> list[Scope]:
    """The places inside the first `at` block loops."""
    if at:
        loops = [o for o in function.walk() if nest.number_of(o, BLOCK) == at - 1]
        return [Scope(first, nest.body_ops(block)) for o in loops if (first := (block := _body(o)).first) is not None]  # pyright: ignore[reportArgumentType]
    groups: dict[Block, list[Operation]] = {}
    for op in function.walk():
        if nest.number_of(op, BLOCK) == 0 and op.parent is not None:
            groups.setdefault(op.parent, []).append(op)
    return [Scope(group[0], group) for group in groups.values()]


def _body(loop: Operation) -> Block:
    return loop.regions[0].block


class Leaf(NamedTuple):
    """A term of a subscript: a value times a number."""

    value: Value
    factor: int

    def at(self, b: ScalarBuilder) -> Extent:
        """The term, computed here."""
        return nest.multiply(b, self.value, self.factor)


@dataclass
class Dim:
    """An axis of the operand: the base of the box, the counters that run over it, its extent and how much is there."""

    number: int
    axis: int | None = None
    base: list[Leaf] = field(default_factory=list["Leaf"])
    runs: bool = False
    extent: Extent = 1
    count: Extent = 1


@dataclass
class Read:
    """A load, and for each axis of the operand the counters inside the scope."""

    op: memref.Load
    inner: list[list[Leaf]]


def pack(function: func.Func, wanted: schedules.Packing, scope: Scope, lane_axis: int) -> None:
    """One copy."""
    operand = _operand(function, wanted.operand)
    type = operand.type
    assert isinstance(type, MemRefType)
    loads = [o for op in scope.ops for o in op.walk() if isinstance(o, memref.Load) and o.memref is operand]
    if not loads:
        raise IllegalError("the operand is not read in the block")
    dims = [Dim(i) for i in range(type.rank)]
    reads = [_read(load, scope, dims, i == 0) for i, load in enumerate(loads)]
    panel = next((d for d in dims if wanted.panel and d.runs and d.axis == lane_axis), None)
    kept = [d for d in dims if d.runs and d is not panel]
    if not kept and panel is None:
        raise IllegalError("the block reads a single element")
    if panel is not None:
        _check_panels(reads, panel, type.shape[panel.number], wanted.panel)
    for dim in dims:
        _check_extent(dim)
    b = ScalarBuilder(before=scope.before, location=loads[0].location)
    for dim in dims:
        _measure(b, operand, type, dim)
    buffer = _allocate(function, type, dims, kept, panel, wanted)
    _copy(b, operand, buffer, dims, kept, panel, wanted.panel)
    for read in reads:
        _redirect(read, buffer, kept, panel, wanted.panel)


def _operand(function: func.Func, number: int) -> BlockArgument:
    readonly = function.attributes.get(READ_ONLY)
    arguments = function.arguments
    if not isinstance(readonly, DenseArrayAttr) or number not in readonly.values:
        raise IllegalError("the operand may be written")
    if not 0 <= number < len(arguments) or not isinstance(arguments[number].type, MemRefType):
        raise IllegalError("the operand is not a buffer")
    return arguments[number]


def _leaves(value: Value) -> list[Leaf]:
    """The terms of a sum."""
    op = value.defining_op
    if isinstance(op, arith.AddI):
        return [*_leaves(op.lhs), *_leaves(op.rhs)]
    if isinstance(op, arith.MulI):
        factor = known(op.rhs)
        if factor is not None and _loop_of(op.lhs) is not None:
            return [Leaf(op.lhs, factor)]
    return [] if known(value) == 0 else [Leaf(value, 1)]


def _loop_of(value: Value) -> Operation | None:
    """The loop whose counter a value is."""
    if not isinstance(value, BlockArgument):
        return None
    loop = value.owner.parent_op
    if isinstance(loop, scf.For) and value is not loop.counter:
        return None
    return loop if isinstance(loop, scf.For | scf.Forall) else None


def _read(load: memref.Load, scope: Scope, dims: Sequence[Dim], first: bool) -> Read:
    """The counters of a load, sorted into those of the base and those inside."""
    inner: list[list[Leaf]] = []
    for dim, index in zip(dims, load.indices, strict=True):
        base: list[Leaf] = []
        own: list[Leaf] = []
        axes: set[int | None] = set()
        for leaf in _leaves(index):
            value = leaf.value
            inside = any(defined_inside(value, op) or value.defining_op is op for op in scope.ops)
            loop = _loop_of(value)
            kept = own if inside else base
            if loop is None and inside:
                raise IllegalError("a subscript is not a sum of loop counters")
            kept.append(leaf)
        for leaf in own or base:
            loop = _loop_of(leaf.value)
            if loop is not None:
                axes.add(nest.axis_of(loop))
        if len(axes) > 1:
            raise IllegalError("a subscript runs over several axes")
        axis = next(iter(axes), None)
        if first:
            dim.base, dim.axis = base, axis
        elif set(dim.base) != set(base) or (own and dim.runs and dim.axis != axis):
            raise IllegalError("the loads read different boxes")
        dim.axis = axis if dim.axis is None else dim.axis
        dim.runs = dim.runs or bool(own)
        inner.append(own)
    return Read(load, inner)


def _innermost(dim: Dim) -> tuple[Operation, int] | None:
    """The innermost block loop whose counter is in the base of the box along an axis, and its factor there."""
    found = [(loop, leaf.factor) for leaf in dim.base if _is_tile(leaf) and (loop := _loop_of(leaf.value)) is not None]
    return max(found, key=lambda pair: nest.number_of(pair[0], BLOCK) or 0, default=None)


def _check_panels(reads: Sequence[Read], panel: Dim, extent: int, width: int) -> None:
    """Refuse panels that the blocks inside the scope do not take one by one, the last of them in part."""
    for read in reads:
        tiles = [_bounds(loop) for leaf in read.inner[panel.number] if (loop := _tile(leaf)) is not None]
        aligned = all(isinstance(step, int) and (step % width == 0 or step < width) for _, _, step in tiles)
        rest = [(low, high) for low, high, step in tiles if isinstance(step, int) and step < width]
        single = all(
            isinstance(low, int) and isinstance(high, int) and low % width == 0 and high - low < width
            for low, high in rest
        )
        innermost = min((step for _, _, step in tiles if isinstance(step, int)), default=None)
        one = 0 <= extent <= width if innermost is None else innermost <= width
        if not (aligned and single and one):
            raise IllegalError(f"the blocks along the panel are not of {width} elements")


def _check_extent(dim: Dim) -> None:
    """Refuse a box whose extent along an axis is not known, before anything is built."""
    if not dim.runs or not dim.base:
        return
    innermost = _innermost(dim)
    if innermost is None:
        raise IllegalError("the box has no known extent")
    if not isinstance(_bounds(innermost[0])[2], int):
        raise IllegalError("the block has no known extent")


def _measure(b: ScalarBuilder, operand: Value, type: MemRefType, dim: Dim) -> None:
    """The extent of the box along an axis, and how much of it there is."""
    if not dim.runs:
        return
    there: Extent = type.shape[dim.number]
    if there == DYNAMIC:
        there = b.value_of(memref.Dim, operand, b.index_constant(dim.number))
    innermost = _innermost(dim)
    if innermost is None:
        dim.extent = dim.count = there
        return
    loop, factor = innermost
    low, high, step = _bounds(loop)
    assert isinstance(step, int)
    dim.extent = step * factor
    ends = isinstance(low, int) and isinstance(high, int) and (high - low) % step == 0
    if len(dim.base) == 1 and ends and isinstance(there, int) and isinstance(high, int) and high * factor <= there:
        dim.count = dim.extent
        return
    start: Extent = 0
    for leaf in dim.base:
        start = nest.add(b, start, leaf.at(b))
    dim.count = nest.minimum(b, dim.extent, nest.subtract(b, there, start))


def _bounds(loop: Operation) -> tuple[Extent, Extent, Extent]:
    if isinstance(loop, scf.For):
        return nest.simple(loop.lower), nest.simple(loop.upper), nest.simple(loop.step)
    assert isinstance(loop, scf.Forall)
    return loop.lower[0], loop.upper[0], loop.step[0]


def _allocate(
    function: func.Func,
    type: MemRefType,
    dims: Sequence[Dim],
    kept: Sequence[Dim],
    panel: Dim | None,
    wanted: schedules.Packing,
) -> Value:
    """The buffer of the copy, at the head of the function."""
    first = function.entry.first
    assert first is not None
    b = ScalarBuilder(before=first, location=first.location)

    def size(dim: Dim) -> Extent:
        """An extent, as the head of the function knows it."""
        if isinstance(dim.extent, int):
            return dim.extent
        return b.value_of(memref.Dim, function.arguments[wanted.operand], b.index_constant(dim.number))

    shape = [size(d) for d in kept]
    if panel is not None:
        whole = nest.add(b, size(panel), wanted.panel - 1)
        if isinstance(whole, int):
            panels: Extent = whole // wanted.panel
        else:
            panels = b.value_of(arith.DivUI, whole, b.index_constant(wanted.panel))
        shape = [panels, *shape, wanted.panel]
    elif shape:
        shape[-1] = nest.add(b, shape[-1], wanted.pad)
    static = [s if isinstance(s, int) else DYNAMIC for s in shape]
    made = MemRefType(static, type.element)
    small = made.is_static and made.num_elements * element_bytes(made) <= Target.of(function).stack_bytes // STACK_SHARE
    sizes = [s for s in shape if not isinstance(s, int)]
    if small:
        return b.value_of(memref.Alloca, sizes, [], results=[made], alignment=ALIGNMENT)
    buffer = b.value_of(memref.Alloc, sizes, [], results=[made], alignment=ALIGNMENT)
    ScalarBuilder(before=function.returns, location=b.location).create(memref.Dealloc, buffer)
    return buffer


def _copy(
    b: ScalarBuilder,
    operand: Value,
    buffer: Value,
    dims: Sequence[Dim],
    kept: Sequence[Dim],
    panel: Dim | None,
    width: int,
) -> None:
    """The loops that copy the box."""

    def element(into: ScalarBuilder, at: dict[int, Extent], target: Sequence[Extent]) -> None:
        subscripts: list[Value] = []
        for dim in dims:
            place: Extent = at.get(dim.number, 0)
            for leaf in dim.base:
                place = nest.add(into, leaf.at(into), place)
            subscripts.append(into.index_of(place))
        value = into.value_of(memref.Load, operand, subscripts)
        into.create(memref.Store, value, buffer, [into.index_of(t) for t in target])

    if panel is None:
        _loops(b, kept, lambda into, at: element(into, at, [at[d.number] for d in kept]), last_has_axis=True)
        return
    assert panel.axis is not None

    def strip(into: ScalarBuilder, number: Extent, extent: Extent, limit: int | None) -> None:
        """One panel."""

        def row(inner: ScalarBuilder, at: dict[int, Extent]) -> None:
            attributes = {AXIS: nest.number(panel.axis or 0)}
            if limit is not None:
                attributes[MAX_TRIP_COUNT] = nest.number(limit)
            loop = nest.forall(inner, 0, extent, name="w", attributes=attributes)
            body = nest.at_end(inner, loop.body.block)
            start = nest.multiply(body, number, width)
            across = nest.add(body, start, loop.axes[0])
            element(body, {**at, panel.number: across}, [number, *(at[d.number] for d in kept), loop.axes[0]])

        _loops(into, kept, row, last_has_axis=False)

    count = panel.count
    if isinstance(count, int):
        full: Extent = count // width
        rest: Extent = count % width
    else:
        full = b.value_of(arith.DivUI, count, b.index_constant(width))
        rest = b.value_of(arith.RemUI, count, b.index_constant(width))
    if full != 0:
        loop = nest.forall(b, 0, full, name="p")
        strip(nest.at_end(b, loop.body.block), loop.axes[0], width, None)
    if isinstance(rest, int):
        if rest:
            strip(b, full, rest, None)
        return
    some = b.cmp("ne", rest, 0)
    choice = scf.If.build(b, some)
    with b.at(choice.then.block):
        b.create(scf.Yield, [])
    strip(nest.at_end(b, choice.then.block), full, rest, width)


def _loops(
    b: ScalarBuilder,
    dims: Sequence[Dim],
    body: Callable[[ScalarBuilder, dict[int, Extent]], None],
    *,
    last_has_axis: bool,
) -> None:
    """Foralls over the axes of the box, around a body."""
    at: dict[int, Extent] = {}
    for i, dim in enumerate(dims):
        axis = dim.axis if last_has_axis and i == len(dims) - 1 else None
        loop = nest.forall(
            b, 0, dim.count, name="q", attributes={AXIS: nest.number(axis)} if axis is not None else None
        )
        at[dim.number] = loop.axes[0]
        b = nest.at_end(b, loop.body.block)
    body(b, at)


def _redirect(read: Read, buffer: Value, kept: Sequence[Dim], panel: Dim | None, width: int) -> None:
    """Let a load read the copy."""
    load = read.op
    b = ScalarBuilder(before=load, location=load.location)

    def place(into: ScalarBuilder, leaves: Sequence[Leaf]) -> Extent:
        total: Extent = 0
        for leaf in leaves:
            total = nest.add(into, total, leaf.at(into))
        return total

    at = [place(b, read.inner[d.number]) for d in kept]
    if panel is not None:
        tiles = [leaf for leaf in read.inner[panel.number] if _is_tile(leaf)]
        within = [leaf for leaf in read.inner[panel.number] if not _is_tile(leaf)]
        number: Extent = 0
        if tiles:
            innermost = tiles[-1]
            block = innermost.value.block
            assert block is not None and block.first is not None
            head = ScalarBuilder(before=block.first, location=load.location)
            number = head.value_of(arith.DivUI, head.index_of(place(head, tiles)), head.index_constant(width))
        at = [number, *at, place(b, within)]
    new = b.value_of(memref.Load, buffer, [b.index_of(a) for a in at])
    load.replace_by([new])


def _is_tile(leaf: Leaf) -> bool:
    """Whether a counter is that of a block loop, which steps by whole panels."""
    return _tile(leaf) is not None


def _tile(leaf: Leaf) -> Operation | None:
    """The block loop whose counter a term is."""
    loop = _loop_of(leaf.value)
    return loop if loop is not None and nest.number_of(loop, BLOCK) is not None else None

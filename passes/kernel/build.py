"""Making the parts of a launch: loops, accesses, and scalar code at a place in a body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...ir.attributes import ArrayAttr, Attribute, DenseArrayAttr, constant_attr
from ...ir.builder import Builder
from ...ir.builders.scalar import ScalarBuilder
from ...ir.builders.subscripts import AffineSubscript, access
from ...ir.definition import OPERAND_SIZES, make
from ...ir.dialects import arith, kernel
from ...ir.location import Location
from ...ir.operations import Block, Operation, Region
from ...ir.support import mixed
from ...ir.support.mixed import Extent
from ...ir.types import I32, FloatType, TensorType, Type
from ...ir.values import BlockArgument, Value


def scalars_before(op: Operation) -> ScalarBuilder:
    """A builder of scalar code just before an op of a body."""
    return ScalarBuilder(before=op, location=op.location)


def empty_body(
    arguments: Sequence[BlockArgument] | None, extents: Sequence[Extent], names: Sequence[str] = ()
) -> Block:
    """A body that only yields nothing; its axes are `arguments`, moved over from where they were, or new ones."""
    block = Block()
    if arguments is None:
        block = kernel.loop_body(extents, names)
    else:
        adopt(block, arguments)
    Builder(block).create(kernel.Yield, [])
    return block


def adopt(block: Block, arguments: Iterable[BlockArgument]) -> None:
    """Make block arguments, wherever they belonged, the arguments of `block`; their uses stay."""
    block.arguments = list(arguments)
    for index, argument in enumerate(block.arguments):
        argument.owner = block
        argument.index = index


def new_sweep(arguments: Sequence[BlockArgument] | None, extents: Sequence[Extent], location: Location) -> kernel.Sweep:
    """A detached sweep with an empty body."""
    static, dynamic = mixed.split(extents)
    body = Region([empty_body(arguments, extents, ["j"] * len(extents))])
    return make(kernel.Sweep, (dynamic,), [], [body], (), {"extents": static}, location=location)


def new_local(
    arguments: Sequence[BlockArgument] | None,
    extents: Sequence[Extent],
    element: Type,
    location: Location,
    name: str | None = None,
) -> kernel.Local:
    """A detached local whose body yields nothing yet."""
    static, dynamic = mixed.split(extents)
    body = Region([empty_body(arguments, extents, ["k"] * len(extents))])
    type = TensorType(static, element)
    op = make(kernel.Local, (dynamic,), [type], [body], (), {"extents": static}, location=location)
    op.result.name = name
    return op


def new_reduce(
    arguments: Sequence[BlockArgument],
    extents: Sequence[Extent],
    identity: Sequence[Attribute],
    types: Sequence[Type],
    combine: Region,
    location: Location,
) -> kernel.Reduce:
    """A detached reduce whose body yields nothing yet."""
    static, dynamic = mixed.split(extents)
    regions = [Region([empty_body(arguments, extents)]), combine]
    return make(
        kernel.Reduce,
        (dynamic,),
        types,
        regions,
        (),
        {"extents": static, "identity": ArrayAttr(identity)},
        location=location,
    )


def new_launch(
    extents: Sequence[Extent],
    ins: Sequence[Value],
    types: Sequence[Type],
    body: Block,
    location: Location,
    inits: Mapping[int, Value] | None = None,
) -> kernel.Launch:
    """A detached launch of a finished body; `inits` gives the values that outs start from, by their numbers."""
    static, dynamic = mixed.split(extents)
    start = dict(sorted((inits or {}).items()))
    properties = {"extents": static, "inits": tuple(start) or None}
    groups = (dynamic, ins, list(start.values()))
    return make(kernel.Launch, groups, types, [Region([body])], (), properties, location=location)


def add_to(b: Builder, value: Value, dest: Value, at: Sequence[AffineSubscript | int]) -> kernel.Accumulate:
    """Add a value to an element."""
    operator = arith.AddF if isinstance(value.type, FloatType) else arith.AddI
    map_, values = access(at)
    combine = Region([kernel.combine_block([operator], [value.type])])
    identity = ArrayAttr([operator.identity(value.type)])
    return b.create(kernel.Accumulate, [value], [dest], values, regions=[combine], map=map_, identity=identity)


def load(
    b: Builder, source: Value, at: Sequence[AffineSubscript | int], fill: float | Attribute | None = None
) -> Value:
    """Load an element; `fill` where the subscripts lie outside."""
    map_, values = access(at)
    if fill is not None and not isinstance(fill, Attribute):
        fill = constant_attr(fill, kernel.scalar_type(source.type))
    return b.create(kernel.Load, source, values, map=map_, fill=fill).result


def store(b: Builder, value: Value, dest: Value, at: Sequence[AffineSubscript | int]) -> kernel.Store:
    """Store an element."""
    map_, values = access(at)
    return b.create(kernel.Store, value, dest, values, map=map_)


def accumulate(
    b: Builder,
    values: Sequence[Value],
    stores: Sequence[kernel.Store],
    identity: Sequence[Attribute],
    combine: Region,
) -> kernel.Accumulate:
    """Accumulate by a monoid into where `stores` would put the values; all stores have one list of subscripts."""
    first = stores[0]
    return b.create(
        kernel.Accumulate,
        values,
        [s.dest for s in stores],
        first.indices,
        regions=[combine],
        map=first.map,
        identity=ArrayAttr(identity),
    )


def indices_of(op: kernel.Load | kernel.Store | kernel.Accumulate) -> list[AffineSubscript]:
    """The subscripts of an access."""
    return [AffineSubscript(r, op.indices).reduced() for r in op.map.results]


def set_indices(op: kernel.Load | kernel.Store | kernel.Accumulate, at: Sequence[AffineSubscript]) -> None:
    """Give an access new subscripts."""
    fixed = len(op.operands) - len(op.indices)
    map_, values = access(at)
    rest = op.operands[:fixed]
    op.properties["map"] = op.definition.properties["map"].to_attribute(map_)
    sizes = op.properties.get(OPERAND_SIZES)
    if sizes is not None:
        assert isinstance(sizes, DenseArrayAttr)
        op.properties[OPERAND_SIZES] = DenseArrayAttr([*sizes.values[:-1], len(values)], I32)  # pyright: ignore[reportArgumentType]
    op.set_operands([*rest, *values])

"""The invariants of the kernel ops.

1. The arguments of a body are the axes (index), the ins and the outs; results have the types of the outs; maps fit
   the rank and the index operands; a scalar has the element type of the memory it comes from or goes to.
2. Outs are written only, by stores or by accumulates but not by both; ins and locals are read only.
3. An out without init is stored exactly once per element, or accumulated.
4. Stores and accumulates stand in the bodies of launch and sweep and in `do`.
5. combine captures nothing and yields the types of the identity.
6. A subscript that is an axis lies inside the bounds, or the load has an `else`.
7. Every region ends in `kernel.yield`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...affine import AffineDim
from ...attributes import FloatAttr, IntegerAttr
from ...definition import Op
from ...effects import ANYTHING, effect_kind
from ...operations import Operation, Region
from ...support import mixed
from ...types import DYNAMIC, INDEX, FloatType, IndexType, IntegerType, MemRefType, ShapedType, TensorType, Type
from ...values import BlockArgument, Value
from .coverage import covers
from .ops import (
    Access,
    Accumulate,
    Axes,
    Fold,
    Launch,
    Load,
    Local,
    Monoidal,
    Scan,
    Store,
    Sweep,
    Yield,
    holds,
    is_local,
    scalar_type,
)
from .schedule_verifier import verify_schedule


def _join(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


def _check_region(op: Op, what: str, region: Region, arguments: Sequence[Type], yields: Sequence[Type] | None) -> None:
    """One block with these arguments that ends in a yield of these types (None: of any)."""
    if len(region.blocks) != 1:
        raise op.error(f"needs a {what} of one block")
    block = region.block
    given = [a.type for a in block.arguments]
    if given != list(arguments):
        raise op.error(f"expects a {what} with arguments ({_join(arguments)}), got ({_join(given)})")
    last = block.last
    if not isinstance(last, Yield):
        raise op.error(f"must end its {what} in kernel.yield")
    found = [v.type for v in last.values]
    if yields is not None and found != list(yields):
        raise op.error(f"must yield ({_join(yields)}) in its {what}, got ({_join(found)})")


def _check_extents(op: Axes) -> None:
    mixed.check(op, "extents", op.extents, op.extents_)
    for extent in op.extents:
        if extent < 0 and extent != DYNAMIC:
            raise op.error(f"has a negative extent, {extent}")


def is_in_launch(op: Operation) -> bool:
    """Whether an op stands in the body of a launch, at any depth."""
    return any(isinstance(a, Launch) for a in op.ancestors())


def verify_launch(op: Launch) -> None:
    """Rules 1, 2, 3 and 7 for the launch as a whole."""
    _check_extents(op)
    if is_in_launch(op):
        raise op.error("cannot stand in another launch")
    if len(op.body.blocks) != 1 or len(op.body.block.arguments) < op.rank + len(op.ins):
        raise op.error(f"needs a body of one block with {op.rank} axes, {len(op.ins)} ins and the outs as arguments")
    outs = [a.type for a in op.out_arguments]
    expected = [*[INDEX] * op.rank, *(v.type for v in op.ins), *outs]
    _check_region(op, "body", op.body, expected, [])
    _check_outs(op, outs)
    memory = MemRefType if op.on_buffers else TensorType
    for i, value in enumerate(op.ins):
        if not isinstance(value.type, memory | FloatType | IntegerType | IndexType):
            raise op.error(f"has an in number {i} of type {value.type} beside {memory.__name__} outs")
    for i, argument in enumerate(op.in_arguments):
        if isinstance(argument.type, ShapedType):
            _check_read_only(op, f"in number {i}", argument)
    for i, argument in enumerate(op.out_arguments):
        _check_written(op, i, argument)
    for inner in op.walk():
        if effect_kind(type(inner)) == ANYTHING:
            raise inner.error("may have effects, so it cannot stand in a launch, whose points come in any order")
    verify_schedule(op)


def _check_outs(op: Launch, outs: Sequence[Type]) -> None:
    inits = op.inits
    if list(inits) != sorted(set(inits)) or any(not 0 <= i < len(outs) for i in inits):
        raise op.error(f"has inits {list(inits)}, which must be ascending numbers of its {len(outs)} outs")
    if not outs:
        raise op.error("has no outs, so it does nothing")
    if op.results:
        given = [r.type for r in op.results]
        if given != list(outs):
            raise op.error(f"has results ({_join(given)}) but outs ({_join(outs)})")
        wanted = [outs[i] for i in inits]
    else:
        wanted = list(outs)
        if not all(isinstance(t, MemRefType) for t in outs):
            raise op.error("has no results, so its outs must be memrefs")
    starts = [v.type for v in op.outs_]
    if starts != wanted:
        raise op.error(f"expects inits or buffers of types ({_join(wanted)}), got ({_join(starts)})")


def _check_read_only(op: Launch, what: str, argument: Value) -> None:
    for user in argument.uses:
        if not isinstance(user, Load):
            raise op.error(f"has the {what} used by '{user.name}'; an in is read by kernel.load only")


def _check_written(op: Launch, number: int, argument: BlockArgument) -> None:
    stores: list[Store] = []
    accumulates: list[Accumulate] = []
    for user in argument.uses:
        if isinstance(user, Store) and user.value is not argument:
            stores.append(user)
        elif isinstance(user, Accumulate) and argument not in user.values:
            accumulates.append(user)
        else:
            raise op.error(f"has out number {number} used by '{user.name}'; an out is written only")
    if stores and accumulates:
        raise op.error(f"both stores to and accumulates into out number {number}")
    type = argument.type
    assert isinstance(type, ShapedType)
    if number in op.inits or accumulates:
        return
    if not stores:
        raise op.error(f"never writes out number {number}, which has no init")
    if all(len(s.subscripts) == type.rank for s in stores) and not covers(stores, type.shape):
        raise op.error(
            f"does not provably store each element of out number {number}, {type}, once; "
            f"give it an init: outs(%y = %x : {type})"
        )


def _check_map(op: Access, indices: Sequence[Value], memory: Value) -> None:
    type = memory.type
    map = op.map
    if not isinstance(type, ShapedType):
        raise op.error(f"needs a tensor or memref, got {type}")
    if map.num_symbols or map.num_dims != len(indices):
        raise op.error(f"has {len(indices)} indices for the map {map}")
    if len(map.results) != type.rank:
        raise op.error(f"has {len(map.results)} subscripts for {type} of rank {type.rank}")


def _check_bounds(op: Access, indices: Sequence[Value], memory: Value) -> None:
    """Rule 6: whole axes and constants."""
    type = memory.type
    assert isinstance(type, ShapedType)
    for d, (subscript, size) in enumerate(zip(op.subscripts, type.shape)):
        if not isinstance(subscript, AffineDim) or size == DYNAMIC:
            continue
        axis = indices[subscript.index]
        loop = axis.owner.parent_op if isinstance(axis, BlockArgument) else None
        if not isinstance(axis, BlockArgument) or not isinstance(loop, Axes) or axis.index >= loop.rank:
            continue
        extent = loop.extents[axis.index]
        if extent != DYNAMIC and extent > size:
            hint = "; give the load an `else`" if isinstance(op, Load) else ""
            raise op.error(f"has an axis of extent {extent} as subscript {d} of {type}, which has {size} places{hint}")


def verify_load(op: Load) -> None:
    """Rules 1, 2 and 6."""
    _check_map(op, op.indices, op.source)
    element = scalar_type(op.source.type)
    found = op.result.type
    if not holds(op.source.type, found):
        raise op.error(f"loads {found} from {op.source.type}, whose elements are {element}")
    source = op.source
    if not is_local(source) and not _is_argument_of_launch(source):
        raise op.error("needs an in of the launch or a local as its source")
    fill = op.fill
    if fill is None:
        _check_bounds(op, op.indices, source)
    elif not isinstance(fill, FloatAttr | IntegerAttr) or fill.type is not found:
        raise op.error(f"has the fill {fill} for elements of type {found}")


def _is_argument_of_launch(value: Value) -> bool:
    return isinstance(value, BlockArgument) and isinstance(value.owner.parent_op, Launch)


def _check_dest(op: Store | Accumulate, indices: Sequence[Value], dest: Value, value: Value) -> None:
    _check_map(op, indices, dest)
    if not holds(dest.type, value.type):
        raise op.error(f"writes {value.type} to {dest.type}, whose elements are {scalar_type(dest.type)}")
    launch = dest.owner.parent_op if isinstance(dest, BlockArgument) else None
    if not isinstance(launch, Launch) or dest not in launch.out_arguments:
        raise op.error("needs an out of the launch as its destination")
    _check_bounds(op, indices, dest)
    _check_place(op)


def _check_place(op: Operation) -> None:
    """Rule 4."""
    region = op.parent_region
    while region is not None:
        parent = region.parent
        if isinstance(parent, Launch):
            return
        if not (isinstance(parent, Sweep) or (isinstance(parent, Scan) and region is parent.do)):
            name = parent.name if parent is not None else "no op"
            raise op.error(f"cannot stand in {name}; only the bodies of launch and sweep, and do, may write")
        region = parent.parent_region
    raise op.error("must stand in a kernel.launch")


def verify_store(op: Store) -> None:
    """Rules 1, 4 and 6."""
    _check_dest(op, op.indices, op.dest, op.value)


def verify_accumulate(op: Accumulate) -> None:
    """Rules 1, 4, 5 and 6."""
    if not op.values or len(op.values) != len(op.dests):
        raise op.error(f"has {len(op.values)} values for {len(op.dests)} outs")
    for value, dest in zip(op.values, op.dests):
        _check_dest(op, op.indices, dest, value)
    verify_monoid(op, [v.type for v in op.values])


def verify_monoid(op: Monoidal, types: Sequence[Type]) -> None:
    """Rule 5, for elements of these types."""
    given: list[Type | None] = [getattr(a, "type", None) for a in op.identity]
    if given != list(types):
        found = ", ".join(map(str, op.identity))
        raise op.error(f"has the identity [{found}] for elements of types ({_join(types)})")
    region = op.combine_region
    _check_region(op, "combine region", region, [*types, *types], types)
    inside: set[Operation] = set()
    for inner in region.block:
        inside.update(inner.walk())
    for inner in inside:
        for value in inner.operands:
            defined = value.defining_op
            if defined is None:
                owner = value.block
                defined = owner.parent_op if owner is not None else None
                if owner is region.block:
                    continue
            if defined not in inside:
                raise op.error(f"has a combine region that uses a value from outside in '{inner.name}'")


def _check_inside(op: Operation) -> None:
    if not is_in_launch(op):
        raise op.error("must stand in a kernel.launch")


def verify_fold(op: Fold) -> None:
    """Rules 1, 5 and 7 for reduce and scan."""
    _check_inside(op)
    _check_extents(op)
    types = [r.type for r in op.results]
    for type in types:
        if isinstance(type, ShapedType) and not (isinstance(type, TensorType) and type.is_static):
            raise op.error(f"folds elements of type {type}; a row must have static extents")
    axes = [INDEX] * op.rank
    _check_region(op, "body", op.body, axes, types)
    verify_monoid(op, types)
    if isinstance(op, Scan):
        _check_region(op, "do region", op.do, [*axes, *types, *types], [])


def verify_sweep(op: Sweep) -> None:
    """Rules 1 and 7, and that a sweep stands where it may store."""
    _check_inside(op)
    _check_extents(op)
    _check_region(op, "body", op.body, [INDEX] * op.rank, [])
    _check_place(op)


def verify_local(op: Local) -> None:
    """Rules 1, 2 and 7."""
    _check_inside(op)
    _check_extents(op)
    type = op.result.type
    if not isinstance(type, TensorType):
        raise op.error(f"needs a tensor as its result, got {type}")
    if type.shape != op.extents:
        raise op.error(f"has extents {list(op.extents)} but the result {type}")
    if scalar_type(type) is not type.element:
        raise op.error(f"needs signless elements, got {type}")
    _check_region(op, "body", op.body, [INDEX] * op.rank, [type.element])
    for user in op.result.uses:
        if not (isinstance(user, Load) or user.name in ("kernel.yield", "scf.yield")):
            raise op.error(f"is used by '{user.name}'; a local is read by kernel.load, or yielded")

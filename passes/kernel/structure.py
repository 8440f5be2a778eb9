"""Reading and editing the structure of a `kernel.launch`: axes, extents, ins, outs, subscripts, costs.

An *extent* is an int, or the index value that gives it at run time; two extents are equal when they are the same int or
the same value (lower-to-kernels makes one value for each symbol).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ...ir.affine import AffineDim, AffineExpr
from ...ir.attributes import DenseArrayAttr, index_array
from ...ir.captures import captured
from ...ir.definition import OPERAND_SIZES, Op
from ...ir.dialects import arith, kernel
from ...ir.operations import Block, Operation
from ...ir.support import mixed
from ...ir.support.mixed import Extent
from ...ir.types import I32, TensorType, Type, element_bytes
from ...ir.values import BlockArgument, OpResult, Value
from . import build

LoopOp = kernel.Launch | kernel.Reduce | kernel.Scan | kernel.Sweep | kernel.Local
LOOPS = (kernel.Reduce, kernel.Scan, kernel.Local, kernel.Sweep)


def extents(op: LoopOp) -> list[Extent]:
    """The extents of the axes of a launch or inner loop."""
    return op.bounds


def points(values: Iterable[Extent]) -> float:
    """The number of points of a product of extents; infinite when one is known only at run time."""
    total = 1.0
    for extent in values:
        total *= extent if isinstance(extent, int) else math.inf if total else 0
    return total


def body(launch: kernel.Launch) -> Block:
    """The block of a launch."""
    return launch.regions[0].blocks[0]


def axes(launch: kernel.Launch) -> list[BlockArgument]:
    """The block arguments that are the domain's axes."""
    return body(launch).arguments[: len(launch.extents)]


def in_arguments(launch: kernel.Launch) -> list[BlockArgument]:
    """The block arguments of the ins."""
    start = len(launch.extents)
    return body(launch).arguments[start : start + len(launch.ins)]


def out_arguments(launch: kernel.Launch) -> list[BlockArgument]:
    """The block arguments of the outs."""
    return body(launch).arguments[len(launch.extents) + len(launch.ins) :]


def set_launch(
    launch: kernel.Launch,
    domain: Sequence[tuple[BlockArgument, Extent]],
    ins: Sequence[tuple[BlockArgument, Value]],
    outs: Sequence[tuple[BlockArgument, OpResult, Value | None]],
) -> None:
    """Give a launch new axes, ins and outs in place.  Arguments and results are moved over from wherever they were;
    an out is (argument, result, initial value or None)."""
    block = body(launch)
    build.adopt(block, [*(a for a, _ in domain), *(a for a, _ in ins), *(a for a, _, _ in outs)])
    static, dynamic = mixed.split([e for _, e in domain])
    inits = [v for _, _, v in outs if v is not None]
    launch.properties["extents"] = index_array(static)
    launch.properties[OPERAND_SIZES] = DenseArrayAttr([len(dynamic), len(ins), len(inits)], I32)
    if inits:
        launch.properties["inits"] = index_array(i for i, (_, _, v) in enumerate(outs) if v is not None)
    else:
        launch.properties.pop("inits", None)
    launch.set_operands([*dynamic, *(v for _, v in ins), *inits])
    launch.results = tuple(r for _, r, _ in outs)
    for index, result in enumerate(launch.results):
        result.owner = launch
        result.index = index


def outs(launch: kernel.Launch) -> list[tuple[BlockArgument, OpResult, Value | None]]:
    """`(argument, result, initial value or None)` for each out."""
    initial: dict[int, Value] = dict(zip(launch.inits or (), launch.outs_, strict=True))
    return [(a, r, initial.get(i)) for i, (a, r) in enumerate(zip(out_arguments(launch), launch.results, strict=True))]


def extent_inside(extent: Extent, block: Block, ins: list[tuple[BlockArgument, Value]]) -> Extent:
    """An extent of the domain as the body has it: one that is known at run time only comes in as an argument, which is
    added to `ins` where it is missing."""
    if isinstance(extent, int):
        return extent
    found = next((a for a, v in ins if v is extent), None)
    if found is None:
        found = BlockArgument(extent.type, block, 0, extent.name)
        ins.append((found, extent))
    return found


def subscripts(op: kernel.Load | kernel.Store | kernel.Accumulate) -> list[Value | AffineExpr]:
    """For each dimension the index value that stands there alone, else the expression over `op.indices`."""
    indices = op.indices
    return [indices[r.index] if isinstance(r, AffineDim) else r for r in op.map.results]


def walk(block: Block) -> Iterator[Operation]:
    """All ops of a block, at any depth, in text order."""
    for op in block:
        yield from op.walk()


def is_free(op: Operation) -> bool:
    """Whether an op costs nothing: constants, loads, stores and terminators."""
    return isinstance(op, arith.Constant | kernel.Load | kernel.Store | kernel.Yield)


def cost(ops: Iterable[Operation]) -> int:
    """The declared cost of one evaluation of scalar ops, at any depth."""
    return sum(o.cost for op in ops for o in op.walk() if isinstance(o, Op) and not is_free(o))


def scalar_ops(launch: kernel.Launch) -> int:
    """The number of scalar ops in a launch that cost something."""
    return sum(not is_free(op) for op in walk(body(launch)))


def inner_loops(launch: kernel.Launch) -> int:
    """The number of loops inside the points of a launch, at any depth."""
    return sum(isinstance(op, LOOPS) for op in walk(body(launch)))


def has_loops(block: Block) -> bool:
    """Whether a block holds a reduce, scan, local or sweep."""
    return any(isinstance(op, LOOPS) for op in block)


def is_product(fold: Operation) -> bool:
    """Whether a fold is a sum over factors each of which lacks an axis of another, as in a product of matrices: one
    that registers and caches serve only when nothing else stands in their way."""
    if not isinstance(fold, kernel.Reduce) or arith.AddF not in (fold.operators or ()):
        return False
    mine = set(fold.axes)
    # Most loads of a large body move alike, so few sets are to be compared.
    moving = {frozenset(op.indices) for op in fold.walk() if isinstance(op, kernel.Load) and mine & set(op.indices)}
    return any(x - y and y - x for x, y in combinations(moving, 2))


def has_product(launch: kernel.Launch) -> bool:
    """Whether a launch holds a product."""
    return any(is_product(op) for op in body(launch))


def tensor_bytes(type: Type) -> float:
    """Bytes of a tensor; infinite when an extent is known only at run time."""
    if not isinstance(type, TensorType):
        return element_bytes(type)
    return float(type.num_elements * element_bytes(type)) if type.is_static else math.inf


def slice_of(ops: Iterable[Operation], block: Block) -> set[Operation]:
    """Ops of a block, and all in it that they need."""
    found: set[Operation] = set()
    pending = list(ops)
    while pending:
        op = pending.pop()
        if op not in found and op.parent is block:
            found.add(op)
            pending += [d for v in captured(op) if (d := v.defining_op) is not None]
    return found


def depends_on(op: Operation, others: set[Operation]) -> bool:
    """Whether `op`, or an op inside it, uses a result of one of `others`."""
    return any(v.defining_op in others for v in captured(op))

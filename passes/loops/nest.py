"""Finding and making the loops of kernels: what the loop passes share.

A kernel is a function with the attribute `nablair.kernel`.  Its loops carry the attribute `axis`, the number by which
the schedule names them; after tiling several loops have one axis, the outer ones counting tiles, the innermost points.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...ir.attribute_names import AXIS, KERNEL
from ...ir.attributes import Attribute, IntegerAttr
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, func, scf
from ...ir.operations import Block, Operation
from ...ir.support.mixed import Extent, known
from ...ir.types import I64, MemRefType
from ...ir.values import Value

NO_POINTS = "there is no loop over the axis whose points come in any order"


def kernels(module: Operation) -> Iterator[func.Func]:
    """The kernels of a module."""
    for op in module.regions[0].block:
        if isinstance(op, func.Func) and KERNEL in op.attributes and not op.is_declaration:
            yield op


def axis_of(op: Operation) -> int | None:
    """The axis that a loop runs over."""
    return number_of(op, AXIS)


def number_of(op: Operation, key: str) -> int | None:
    """An integer attribute of a loop."""
    found = op.attributes.get(key)
    return found.value if isinstance(found, IntegerAttr) else None


def number(value: int) -> Attribute:
    """An integer as an attribute."""
    return IntegerAttr(value, I64)


def point_loops(root: Operation, axis: int) -> list[scf.Forall]:
    """The foralls over an axis that hold no other loop over it, innermost in text order."""
    return [
        op
        for op in root.walk()
        if isinstance(op, scf.Forall)
        and axis_of(op) == axis
        and not any(inner is not op and axis_of(inner) == axis for inner in op.walk())
    ]


def forall(
    b: ScalarBuilder,
    lower: Extent,
    upper: Extent,
    step: int = 1,
    *,
    name: str | None = None,
    attributes: dict[str, Attribute] | None = None,
) -> scf.Forall:
    """A forall of one axis with an empty body."""
    loop = scf.Forall.build(b, [upper], [lower], [step], names=[name] if name else ())
    if attributes:
        loop.attributes.update(attributes)
    return loop


def at_end(b: ScalarBuilder, block: Block) -> ScalarBuilder:
    """A builder before the terminator of a block, or at its end when it has none yet."""
    last = block.last
    ends = last is not None and isinstance(last, scf.InParallel | scf.Yield)
    return ScalarBuilder(block, last if ends else None, b.location)


def trips(loop: scf.Forall) -> int | None:
    """The number of points of a forall of one axis, when that is known."""
    (lower,), (upper,), (step,) = loop.lower, loop.upper, loop.step
    if not (isinstance(lower, int) and isinstance(upper, int) and isinstance(step, int)):
        return None
    return max(0, -(-(upper - lower) // step))


def simple(value: Value) -> Extent:
    """A value as a bound: a number where it is a constant."""
    found = known(value)
    return value if found is None else found


def add(b: ScalarBuilder, x: Extent, y: Extent) -> Extent:
    """x + y, computed here where both are known."""
    if isinstance(x, int) and isinstance(y, int):
        return x + y
    if x == 0 or y == 0:
        return y if x == 0 else x
    return b.value_of(arith.AddI, b.index_of(x), b.index_of(y))


def subtract(b: ScalarBuilder, x: Extent, y: Extent) -> Extent:
    """x - y."""
    if isinstance(x, int) and isinstance(y, int):
        return x - y
    if y == 0:
        return x
    return b.value_of(arith.SubI, b.index_of(x), b.index_of(y))


def multiply(b: ScalarBuilder, x: Extent, y: Extent) -> Extent:
    """x * y."""
    if isinstance(x, int) and isinstance(y, int):
        return x * y
    if x == 1 or y == 1:
        return y if x == 1 else x
    return b.value_of(arith.MulI, b.index_of(x), b.index_of(y))


def whole(b: ScalarBuilder, lower: Extent, upper: Extent, block: int) -> Extent:
    """Where the last whole block of [lower, upper) ends."""
    extent = subtract(b, upper, lower)
    if isinstance(extent, int):
        rest: Extent = max(extent, 0) % block
    else:
        rest = b.value_of(arith.RemUI, extent, b.index_constant(block))
    return subtract(b, upper, rest)


def minimum(b: ScalarBuilder, x: Extent, y: Extent) -> Extent:
    """The lesser one."""
    if isinstance(x, int) and isinstance(y, int):
        return min(x, y)
    return b.value_of(arith.MinSI, b.index_of(x), b.index_of(y))


def body_ops(block: Block) -> Sequence[Operation]:
    """The ops of a body without its terminator."""
    last = block.terminator
    return [op for op in block if op is not last]


def is_buffer(value: Value) -> bool:
    """Whether a value is a buffer."""
    return isinstance(value.type, MemRefType)

"""rebase: rows of a tile are counted from its first one.

In: kernels whose schedule unrolls points.  Out: accesses to arguments of the kernel whose subscripts are a base and
different constants go through one view that starts at the base.

    %1 = arith.addi %i0, %c1
    %2 = arith.addi %i0, %c2
    memref.load %a[%1, %k]
    memref.load %a[%2, %k]
        becomes
    %v = memref.subview %a[%i0, 0] [3, 64] [1, 1]
    memref.load %v[%c1, %k]
    memref.load %v[%c2, %k]

So only constants differ between the rows of a register tile, which the processor's addressing takes, and one register
holds the address of all.  The view stands where its base is known.  The last axis stays: lanes that are masked off may
lie beyond its end.  So do accesses under a condition that does not hold for the base as well: they may have guarded
against a base that leaves the buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, func, memref, scf, vector
from ...ir.operations import Operation
from ...ir.support.mixed import Extent, known
from ...ir.types import DYNAMIC, MemRefType
from ...ir.values import BlockArgument, Value
from ..manager import Pass
from ..schedules.schedule import Schedule
from . import nest

Access = memref.Load | memref.Store | vector.Load | vector.Store | vector.MaskedLoad | vector.MaskedStore
ACCESSES = (memref.Load, memref.Store, vector.Load, vector.Store, vector.MaskedLoad, vector.MaskedStore)


@dataclass
class Rebase(Pass):
    """Give tiles views of their own."""

    name: ClassVar[str] = "rebase"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            if Schedule.of(function).unroll:
                for argument in function.arguments:
                    if isinstance(argument.type, MemRefType) and argument.type.layout is None:
                        self.count("views", _rebase(function, argument))


def _rebase(function: func.Func, buffer: BlockArgument) -> int:
    """Views of one buffer; how many."""
    assert isinstance(buffer.type, MemRefType)
    made = 0
    for axis in range(buffer.type.rank - 1):
        groups: dict[Value, list[tuple[Access, int]]] = {}
        for user in buffer.users:
            if isinstance(user, ACCESSES):
                sum_ = _base(user.indices[axis])
                if sum_ is not None and not _is_guarded(user, sum_[0]):
                    groups.setdefault(sum_[0], []).append((user, sum_[1]))
        for base, accesses in groups.items():
            if len({constant for _, constant in accesses}) > 1:
                _view(buffer, axis, base, accesses)
                made += 1
    return made


def _base(value: Value) -> tuple[Value, int] | None:
    """`(base, constant)` of a subscript that is their sum."""
    op = value.defining_op
    if not isinstance(op, arith.AddI):
        return None
    for base, other in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        constant = known(other)
        if constant is not None and constant >= 0 and known(base) is None:
            return base, constant
    return None


def _is_guarded(op: Operation, base: Value) -> bool:
    """Whether an access stands in an `scf.if` that does not hold the definition of its base."""
    block = op.parent
    while block is not None and block is not base.block:
        parent = block.parent_op
        if isinstance(parent, scf.If):
            return True
        block = None if parent is None else parent.parent
    return False


def _view(buffer: BlockArgument, axis: int, base: Value, accesses: list[tuple[Access, int]]) -> None:
    """One view for accesses that share a base along an axis."""
    type = buffer.type
    assert isinstance(type, MemRefType)
    maker = base.defining_op
    block = base.block
    assert block is not None
    before = block.first if maker is None else maker.next
    location = accesses[0][0].location
    b = ScalarBuilder(block, before, location)
    offsets: list[Extent] = [base if a == axis else 0 for a in range(type.rank)]
    sizes: list[Extent] = []
    for a, extent in enumerate(type.shape):
        if a == axis:
            sizes.append(max(constant for _, constant in accesses) + 1)
        elif extent == DYNAMIC:
            sizes.append(b.value_of(memref.Dim, buffer, b.index_constant(a)))
        else:
            sizes.append(extent)
    view = memref.Subview.build(b, buffer, offsets, sizes).result
    constants: dict[int, Value] = {}
    for op, constant in accesses:
        if constant not in constants:
            constants[constant] = b.index_constant(constant)
        at = list(op.indices)
        at[axis] = constants[constant]
        _redirect(op, view, at)


def _redirect(op: Access, view: Value, at: list[Value]) -> None:
    """Let an access use a view."""
    match op:
        case memref.Load():
            op.set_operands([view, *at])
        case memref.Store():
            op.set_operands([op.value, view, *at])
        case vector.Load():
            op.set_operands([view, *at])
        case vector.Store():
            op.set_operands([op.value, view, *at])
        case vector.MaskedLoad():
            op.set_operands([view, *at, op.mask, op.pass_thru])
        case vector.MaskedStore():
            op.set_operands([view, *at, op.mask, op.value])

"""promote: what a loop loads from one place and stores there again is carried instead.

In: kernels.  Out: `scf.for` loops that carry such elements and vectors.

    scf.for %s = .. {
      %0 = vector.load %sum[%c0] : memref<16xf32>, vector<16xf32>
      %1 = arith.addf %0, %x : vector<16xf32>
      vector.store %1, %sum[%c0] : memref<16xf32>, vector<16xf32>
    }
        becomes
    %0 = vector.load %sum[%c0] : memref<16xf32>, vector<16xf32>
    %2 = scf.for %s = .. iter_args(%a = %0) -> (vector<16xf32>) {
      %1 = arith.addf %a, %x : vector<16xf32>
      scf.yield %1 : vector<16xf32>
    }
    vector.store %2, %sum[%c0] : memref<16xf32>, vector<16xf32>

A place is a buffer with subscripts from outside the loop.  It is carried when the loop's body loads it once, then
stores it once, and nothing else in the loop can touch it: other accesses are to other buffers, which do not overlap
(arguments of kernels marked `nablair.noalias`, allocations), or to other constant places of the same buffer.  Inner
loops go first, so that a place moves out of a whole nest.  Exact; a loop of no trips stores what it loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import NO_ALIAS
from ...ir.builders.scalar import ScalarBuilder
from ...ir.captures import defined_inside
from ...ir.definition import ALLOCATES
from ...ir.dialects import func, memref, scf, vector
from ...ir.effects import ANYTHING, READS, WRITES, effect_kind
from ...ir.operations import Operation
from ...ir.support.mixed import known
from ...ir.types import VectorType
from ...ir.values import BlockArgument, OpResult, Value
from ..manager import Pass
from . import nest

Load = memref.Load | vector.Load
Store = memref.Store | vector.Store
TWINS: dict[type[Operation], type[Operation]] = {memref.Load: memref.Store, vector.Load: vector.Store}


@dataclass
class Promote(Pass):
    """Carry what loops load and store at one place."""

    name: ClassVar[str] = "promote"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            if NO_ALIAS in function.attributes:
                loops = [o for o in function.walk() if isinstance(o, scf.For)]
                # Text order has outer loops first.
                for loop in reversed(loops):
                    pairs = _pairs(function, loop)
                    if pairs:
                        _carry(loop, pairs)
                        self.count("promoted", len(pairs))


def _place(op: Load | Store) -> tuple[Value, tuple[Value, ...]]:
    """The buffer and subscripts of an access."""
    buffer = op.memref if isinstance(op, memref.Load | memref.Store) else op.base
    return buffer, op.indices


def _pairs(function: func.Func, loop: scf.For) -> list[tuple[Load, Store]]:
    """The loads and stores of places that the loop may carry."""
    accesses = [op for op in loop.walk() if effect_kind(type(op)) in (READS, WRITES)]
    if any(effect_kind(type(op)) == ANYTHING for op in loop.walk()):
        return []
    by_buffer: dict[Value, list[Operation]] = {}
    for op in accesses:
        for value in op.operands:
            if nest.is_buffer(value):
                by_buffer.setdefault(value, []).append(op)
    found: list[tuple[Load, Store]] = []
    for buffer, ops in by_buffer.items():
        if _is_apart(function, buffer):
            found += _of_buffer(loop, ops)
    return found


def _is_apart(function: func.Func, buffer: Value) -> bool:
    """Whether no other name leads to a buffer."""
    if isinstance(buffer, BlockArgument):
        own = buffer.owner is function.entry
    else:
        assert isinstance(buffer, OpResult)
        own = ALLOCATES in buffer.owner.traits
    return own and not any(r for user in buffer.users for r in user.results if nest.is_buffer(r))


def _of_buffer(loop: scf.For, ops: list[Operation]) -> list[tuple[Load, Store]]:
    """The pairs in one buffer, given all accesses to it in the loop."""
    places: dict[tuple[Value, ...], list[Load | Store]] = {}
    for op in ops:
        if not (isinstance(op, Load | Store) and op.parent is loop.body.block):
            return []
        _, indices = _place(op)
        if any(defined_inside(i, loop) for i in indices):
            return []
        places.setdefault(indices, []).append(op)
    keys = list(places)
    if any(not _disjoint(places[a][0], places[b][0]) for i, a in enumerate(keys) for b in keys[:i]):
        return []
    pairs: list[tuple[Load, Store]] = []
    for group in places.values():
        if len(group) != 2:
            continue
        load, store = group
        if isinstance(load, Load) and isinstance(store, Store) and type(store) is TWINS[type(load)]:
            if store.value.type is load.result.type:
                pairs.append((load, store))
    return pairs


def _disjoint(a: Load | Store, b: Load | Store) -> bool:
    """Whether two accesses to a buffer touch different elements: constant places along one axis that are far enough
    apart, equal ones along the others."""
    _, left = _place(a)
    _, right = _place(b)
    differ = [(x, y, i) for i, (x, y) in enumerate(zip(left, right, strict=True)) if x is not y]
    if len(differ) != 1:
        return False
    x, y, axis = differ[0]
    first, second = known(x), known(y)
    if first is None or second is None:
        return False
    width = 1
    if axis == len(left) - 1:
        width = max(_width(a), _width(b))
    return abs(first - second) >= width


def _width(op: Load | Store) -> int:
    type = op.result.type if isinstance(op, Load) else op.value.type
    return type.num_elements if isinstance(type, VectorType) else 1


def _carry(loop: scf.For, pairs: list[tuple[Load, Store]]) -> None:
    """Replace a loop by one that carries the pairs."""
    b = ScalarBuilder(before=loop, location=loop.location)
    inits = list(loop.inits)
    for load, _ in pairs:
        load.move_before(loop)
        inits.append(load.result)
    new = scf.For.build(b, loop.lower, loop.upper, loop.step, inits, name=loop.counter.name)
    new.attributes.update(loop.attributes)
    carried = new.carried
    loop.counter.replace_by(new.counter)
    for old, argument in zip(loop.carried, carried, strict=False):
        argument.name = old.name
        old.replace_by(argument)
    rest = carried[len(loop.carried) :]
    for (load, _), argument in zip(pairs, rest, strict=True):
        load.result.replace_by(argument, lambda user: loop.is_ancestor_of(user))
    ends = [*loop.body.block.terminator.operands, *(store.value for _, store in pairs)]
    for _, store in pairs:
        store.detach()
    for op in nest.body_ops(loop.body.block):
        op.detach()
        new.body.block.append(op)
    with b.at(new.body.block):
        b.create(scf.Yield, ends)
    after = ScalarBuilder(new.parent, loop, loop.location)
    results = new.results[len(loop.results) :]
    for (_, store), result in zip(pairs, results, strict=True):
        after.insert(store)
        store.set_operand(0, result)
    for old, result in zip(loop.results, new.results, strict=False):
        old.replace_by(result)
    loop.erase()

"""What differs between the points of a loop: the analysis behind vectors, copies and tasks.

A value varies when it depends on the loop's counter, or is loaded from memory that each point writes for itself.
Loads in a branch that not every point takes vary too: where no point takes it, not even a load of one place for all is
safe.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.definition import ELEMENTWISE
from ...ir.dialects import memref, scf
from ...ir.effects import is_pure
from ...ir.operations import Operation
from ...ir.types import MemRefType, VectorType
from ...ir.values import Value
from .legality import IllegalError


def varying_values(loop: scf.Forall, private: Sequence[Value] = ()) -> set[Value]:
    """The values of the body that may differ from lane to lane; each lane has its own of the private buffers."""
    varying: set[Value] = {loop.axes[0]}
    inside = [op for op in loop.walk() if op is not loop]
    guarded: set[Operation] = set()
    while True:
        before = len(varying), len(guarded)
        for op in inside:
            if isinstance(op, scf.For):
                ends = op.body.block.terminator.operands
                for init, argument, end, result in zip(op.inits, op.carried, ends, op.results, strict=True):
                    if init in varying or end in varying:
                        varying.update((argument, result))
            elif isinstance(op, scf.If):
                ends = [r.block.terminator.operands for r in op.regions if r.blocks]
                for i, result in enumerate(op.results):
                    if op.condition in varying or any(e[i] in varying for e in ends):
                        varying.add(result)
            elif not op.regions and (any(v in varying or v in private for v in op.operands) or op in guarded):
                varying.update(op.results)
            if isinstance(op, scf.If) and op.condition in varying:
                # Where no lane may take the branch, not even a load of one place for all is safe, unless there is no
                # other place.
                guarded.update(o for o in op.walk() if isinstance(o, memref.Load) and o.indices)
        if (len(varying), len(guarded)) == before:
            return varying


def private_buffers(loop: scf.Forall) -> list[Value]:
    """The buffers that each point of the loop writes for itself: memory of the kernel that only the loop uses, stored
    to
    at places that do not move with it."""
    moving = varying_values(loop)
    found: dict[Value, None] = {}
    for op in loop.walk():
        if not isinstance(op, memref.Store) or any(i in moving for i in op.indices):
            continue
        maker = op.memref.defining_op
        if isinstance(maker, memref.Alloc | memref.Alloca) and not loop.is_ancestor_of(maker):
            users = [u for u in op.memref.users if not isinstance(u, memref.Dealloc)]
            if all(isinstance(u, memref.Load | memref.Store) and loop.is_ancestor_of(u) for u in users):
                found[op.memref] = None
    return list(found)


def check(loop: scf.Forall, varying: set[Value], private: Sequence[Value]) -> None:
    """Raise when the body cannot be vectorized."""
    for op in loop.walk():
        if op is loop or isinstance(op, scf.Yield | scf.InParallel):
            continue
        match op:
            case memref.Load() | memref.Store():
                _check_access(op, varying, private)
            case scf.For():
                if any(v in varying for v in (op.lower, op.upper, op.step)):
                    raise IllegalError("the bounds of an inner loop differ from lane to lane")
            case scf.Forall():
                if any(v in varying for v in op.operands):
                    raise IllegalError("the bounds of an inner loop differ from lane to lane")
            case scf.If():
                pass
            case memref.Alloca() | memref.Alloc() | memref.Dealloc():
                raise IllegalError("memory is allocated inside")
            case _:
                if op.regions or not is_pure(op):
                    raise IllegalError(f"'{op.name}' has no vector form")
                if any(isinstance(v.type, VectorType) for v in (*op.operands, *op.results)):
                    raise IllegalError("the body holds vectors already")
                if any(v in varying for v in op.operands) and (len(op.results) != 1 or ELEMENTWISE not in op.traits):
                    raise IllegalError(f"'{op.name}' has no vector form")


def _check_access(op: memref.Load | memref.Store, varying: set[Value], private: Sequence[Value]) -> None:
    if op.memref in varying:
        raise IllegalError("the buffer differs from lane to lane")
    moves = any(i in varying for i in op.indices)
    if op.memref in private:
        if moves:
            raise IllegalError("lanes use different places of what is private to a point")
        return
    if isinstance(op, memref.Store) and not moves:
        raise IllegalError("all lanes store to one place")
    type = op.memref.type
    assert isinstance(type, MemRefType)
    if moves and type.layout is not None and (not op.indices or op.indices[-1] not in varying):
        raise IllegalError("lanes lie apart in a buffer that is not contiguous")

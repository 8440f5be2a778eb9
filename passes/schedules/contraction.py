"""Schedules of contractions: sums of products whose factors each lack an axis of the result.

A register tile of `rows` x `vectors` accumulators is filled by one pass over the contracted axis: each step loads
`vectors` vectors of one factor and broadcasts `rows` scalars of the other.  The tile obeys rows * vectors + vectors + 1
<= registers.  The contracted axis is blocked, so that a panel of one factor stays in the first cache; factors are
packed where their rows would meet in the same cache sets, or fill no whole pages (Goto and van de Geijn, 2008).  A
block is a chain of its own, so that the sums of long products keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.dialects import arith, kernel
from ...ir.target import Target
from ...ir.types import FloatType, element_bytes
from ...ir.values import Value
from ..analysis.launch import Axis, LaunchAnalysis, bare
from .schedule import Packing, Schedule

VECTORS = 2
"""Vectors of a row of the register tile: with one, broadcasts of scalars would be as many as products; with more, fewer
rows share a vector."""


@dataclass(frozen=True)
class Contraction:
    """The parts of a contraction: the axes of rows and columns, the contracted axis, and the loads of both factors."""

    row: Axis
    column: Axis
    inner: Axis
    rows: kernel.Load
    columns: kernel.Load


def find(facts: LaunchAnalysis) -> Contraction | None:
    """The contraction that a launch is, if it is one."""
    loops = [a for a in facts.axes if a.op is not facts.launch]
    if len(facts.domain) < 2 or len(loops) != 1:
        return None
    (inner,) = loops
    op = inner.op
    if not isinstance(op, kernel.Reduce) or op.tree or op.operators != [arith.AddF]:
        return None
    if not isinstance(op.results[0].type, FloatType):
        return None
    row, column = facts.domain[-2:]
    loads = [a for a in facts.within(op) if isinstance(a, kernel.Load)]
    if len(loads) != 2 or any(load.fill is not None for load in loads):
        return None
    found: dict[str, kernel.Load] = {}
    for load in loads:
        at: list[Value] | None = bare(load)
        if at is None or len(set(at)) != len(at) or inner.value not in at:
            return None
        if row.value in at and column.value not in at:
            found["rows"] = load
        elif column.value in at and row.value not in at:
            found["columns"] = load
    if len(found) != 2:
        return None
    return Contraction(row, column, inner, found["rows"], found["columns"])


def contraction(facts: LaunchAnalysis, target: Target) -> Schedule | None:
    """A register tile, blocks and copies; None when the launch is not a contraction."""
    found = find(facts)
    if found is None:
        return None
    type = found.inner.op.results[0].type
    assert isinstance(type, FloatType)
    lanes = target.vector_bits // max(32, type.width)
    vectors = VECTORS
    height = max(1, (target.vector_registers - vectors - 1) // vectors)
    row, column, inner = found.row, found.column, found.inner
    if column.size < lanes // 2 or row.size < 2:
        return None
    if column.size <= lanes:
        vectors = 1
    if row.size < height:
        height = int(row.size)
    width = lanes * vectors
    loops: list[tuple[int, int]] = []
    depth = inner.size
    if inner.size > target.depth + target.depth // 2:
        if isinstance(inner.extent, int):
            blocks = -(-inner.extent // target.depth)
            depth = -(-inner.extent // blocks)
        else:
            depth = target.depth
        loops.append((inner.number, int(depth)))
    outer = len(loops)
    loops += [(row.number, height), (column.number, width)]
    packs = _packs(facts, found, target, outer, width, element_bytes(type), depth)
    vector = [(column.number, lanes)]
    if len(packs) > len([p for p in packs if p.panel]):
        vector.append((inner.number, lanes))
    return Schedule(
        loops=tuple(loops),
        chain=((inner.number, int(depth)),) if outer else (),
        vector=tuple(vector),
        unroll=((column.number, vectors), (row.number, height)) if vectors > 1 else ((row.number, height),),
        pack=packs,
    )


def _packs(
    facts: LaunchAnalysis, found: Contraction, target: Target, outer: int, width: int, size: int, depth: float
) -> tuple[Packing, ...]:
    """Which factors are copied, and where."""
    packs: list[Packing] = []
    arguments: list[Value] = [*facts.launch.in_arguments]
    row, column, inner = found.row, found.column, found.inner
    across = bare(found.columns) or []
    large = row.size >= target.pack_rows and depth * column.size * size >= target.pack_bytes
    if across[-1] is not column.value or large:
        packs.append(Packing(arguments.index(found.columns.source), outer, panel=width))
    down = bare(found.rows) or []
    long = inner.size * size
    # Rows whose length is a multiple of half a way fall into few sets of the cache; longer ones lie on a page each.
    apart = target.l1_way // 2
    if down[-1] is inner.value and (long % apart == 0 or long > apart):
        packs.append(Packing(arguments.index(found.rows.source), outer + 1, pad=max(1, target.line // size)))
    return tuple(packs)

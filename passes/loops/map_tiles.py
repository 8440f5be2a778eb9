"""A block of threads for a tile of a contraction: operands in workgroup memory, results in registers.

In: a band whose last axes are i and j, around one fold over k whose loads move either with i and k or with k and j,
such as a matrix product with whatever is fused before and behind it.  Out: blocks of 16 x 16 threads, or
what the target lets a block have, each of which folds a few rows times a few columns:

    %sums = scf.for %k0 = %c0 to %K step %c16 iter_args(..) {
      copy %a[i0 .. i0 + 63, k0 .. k0 + 15] and %b[k0 .., j0 ..] to workgroup memory, all threads together
      gpu.barrier
      scf.for %kk = %c0 to %c16 step %c1 iter_args(..) {
        4 elements of a row of %a's tile, 4 of %b's, 16 products
      }
      gpu.barrier
    }
    what follows the fold, for each of the 16 results

Every result is folded in the order of k, as without tiles.  Threads take rows and columns 16 apart, so that
neighbouring threads read and store neighbouring elements.  At ragged edges rows and columns beyond the last are
computed from the last and not stored; a ragged fold has a short last step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import arith, func, gpu, memref, scf
from ...ir.effects import is_pure
from ...ir.operations import Operation
from ...ir.support import mixed
from ...ir.support.mixed import Extent
from ...ir.target import Target
from ...ir.types import F64, I32, I64, INDEX, MemRefType
from ...ir.values import Value
from ..analysis.launch import depends, origins
from .gpu_kernel import Band, Mapping, Part, body_of, computed, delinearized

LEAST_SIDE, MOST_SIDE = 8, 16
"""Threads of a block along each axis: with fewer, barriers cost more than shared operands spare; with more, a barrier
holds up more warps."""
FEWEST = 4
"""Results of a thread along each axis below which shared operands do not pay: 4 x 4 products for 4 + 4 loads."""

Table = dict[Value, Value]


class Tiles(Mapping):
    """The making of a kernel of tiles."""

    def __init__(
        self, function: func.Func, group: Sequence[Operation], band: Band, fold: scf.For, target: Target
    ) -> None:
        super().__init__(function, group, band)
        self.fold: scf.For = fold
        self.rows, self.columns = band.axes[-2:]
        place = band.body.index(fold)
        self.before, self.after = band.body[:place], band.body[place + 1 :]
        self.inside = body_of(fold.body.block)
        self.loads = [op for op in self.inside if isinstance(op, memref.Load)]
        self.by_row = [op for op in self.loads if moves(op, self.rows)]
        self.by_column = [op for op in self.loads if moves(op, self.columns)]
        self.side = side_of(target)
        self.step = self.side
        """Elements of k in workgroup memory: each thread moves as many of them as it takes results along an axis."""
        self.pad = max(1, target.banks // self.side)
        """Elements between rows of workgroup memory: the threads along k write to banks that lie so far apart."""
        most = results_of(target)
        large = most * self.side * math.isqrt(target.grain)
        sizes = [e if isinstance(e, int) else large for e in band.bounds]
        narrow = all(v.type is not F64 and v.type is not I64 for v in fold.inits)
        each = most if narrow and len(fold.inits) == 1 and min(sizes[-2:]) >= large else most // 2
        while each > 2 and _blocks(sizes, each * self.side) < target.grain:
            each //= 2
        self.each = each
        self.tile = each * self.side
        upper = mixed.known(fold.upper)
        self.whole = upper is not None and upper % self.step == 0

    @staticmethod
    def of(function: func.Func, group: Sequence[Operation], band: Band, target: Target) -> Tiles | None:
        """The mapping, where it fits the group."""
        folds = [op for op in band.body if op.regions]
        if len(band.axes) < 2 or band.ordered or len(folds) != 1 or side_of(target) < LEAST_SIDE:
            return None
        if results_of(target) < FEWEST:
            return None
        (fold,) = folds
        if (
            not isinstance(fold, scf.For)
            or not fold.inits
            or not _counts(fold, side_of(target))
            or not _fits(band, fold, side_of(target))
        ):
            return None
        tiles = Tiles(function, group, band, fold, target)
        operands = [*tiles.by_row, *tiles.by_column]
        nbytes = len(operands) * tiles.step * (tiles.tile + tiles.pad) * 8
        if tiles.locals or not tiles.by_row or not tiles.by_column or set(tiles.by_row) & set(tiles.by_column):
            return None
        if nbytes > target.shared_bytes or not all(moves(op, fold.counter) for op in operands):
            return None
        return tiles

    def build(self, name: str, module: gpu.Module) -> Part:
        """The kernel, in the module."""
        block = (self.side, self.side)
        types = [
            MemRefType((self.step, self.tile + self.pad), _type(op).element, None, gpu.WORKGROUP)
            for op in (*self.by_row, *self.by_column)
        ]
        kernel, arguments, b = self.begin(name, module, block, (), types)
        for op in self.band.between:
            b.insert(op.clone(self.table))
        self.x = b.index_cast(b.value_of(gpu.ThreadId, dimension="x"), I32)
        self.y = b.index_cast(b.value_of(gpu.ThreadId, dimension="y"), I32)
        self.thread = b.add(b.mul(self.y, self.side), self.x)
        self.origin(b)
        self.body(b, list(kernel.workgroup))
        b.create(gpu.Return, [])
        tile = [1] * (len(self.band.bounds) - 2) + [self.tile, self.tile]
        return Part(kernel, arguments, self.band.bounds, 1, block, tile=tile)

    def origin(self, b: ScalarBuilder) -> None:
        """The first row and column of the block's tile, and the axes around."""
        bounds = [b.index_of(e if isinstance(e, int) else computed(b, e, self.table)) for e in self.band.bounds]
        self.limits = bounds[-2:]
        self.guards = [not isinstance(e, int) or e % self.tile != 0 for e in self.band.bounds[-2:]]
        block = b.value_of(gpu.BlockId, dimension="x")
        tiles = [b.value_of(arith.CeilDivSI, bound, b.index_constant(self.tile)) for bound in self.limits]
        column, row, *outer = delinearized(b, block, [*bounds[:-2], *tiles])
        self.first_column, self.first_row = b.mul(column, self.tile), b.mul(row, self.tile)
        self.table.update(zip(reversed(self.band.axes[:-2]), outer, strict=True))

    def along(self, b: ScalarBuilder, row: bool, offset: Value) -> tuple[Value, Value | None]:
        """A row or column of the tile, at most the last one, and whether it is one."""
        index = b.add(self.first_row if row else self.first_column, b.index_cast(offset, unsigned=True))
        limit = self.limits[0 if row else 1]
        if not self.guards[0 if row else 1]:
            return index, None
        inside = b.cmp("slt", index, limit)
        return b.value_of(arith.MinSI, index, b.sub(limit, 1)), inside

    # The fold.

    def body(self, b: ScalarBuilder, tiles: Sequence[Value]) -> None:
        """Everything that a thread does."""
        rows = [self.along(b, True, b.add(self.y, self.side * m)) for m in range(self.each)]
        columns = [self.along(b, False, b.add(self.x, self.side * n)) for n in range(self.each)]
        tables: list[Table] = []
        for row, _ in rows:
            for column, _ in columns:
                table: Table = {**self.table, self.rows: row, self.columns: column}
                for op in self.before:
                    b.insert(op.clone(table))
                tables.append(table)
        width = len(self.fold.inits)
        inits = [table.get(v, v) for table in tables for v in self.fold.inits]
        lower, upper = (computed(b, v, dict(tables[0])) for v in (self.fold.lower, self.fold.upper))
        outer = scf.For.build(b, lower, upper, b.index_constant(self.step), inits, name="k0")
        with b.at(outer.body.block):
            self.copies(b, outer.counter, upper, tiles)
            b.create(gpu.Barrier)
            left = b.index_constant(self.step)
            if not self.whole:
                left = b.value_of(arith.MinSI, left, b.sub(upper, outer.counter))
            zero, one = b.index_constant(0), b.index_constant(1)
            inner = scf.For.build(b, zero, left, one, outer.carried, name="kk")
            with b.at(inner.body.block):
                self.products(b, tables, b.add(outer.counter, inner.counter), inner, tiles)
            b.create(gpu.Barrier)
            b.create(scf.Yield, list(inner.results))
        for number, table in enumerate(tables):
            table.update(zip(self.fold.results, outer.results[number * width :], strict=False))
            inside = [v for _, v in (rows[number // self.each], columns[number % self.each]) if v is not None]
            if not inside:
                self.store(b, table)
                continue
            choice = scf.If.build(b, inside[0] if len(inside) == 1 else b.and_(*inside))
            with b.at(choice.then.block):
                self.store(b, table)
                b.create(scf.Yield, [])

    def store(self, b: ScalarBuilder, table: Table) -> None:
        """What follows the fold."""
        for op in self.after:
            b.insert(op.clone(table))

    def copies(self, b: ScalarBuilder, start: Value, end: Value, tiles: Sequence[Value]) -> None:
        """Bring the operands' tiles to workgroup memory; each thread takes elements, neighbours those side by side."""
        for load, tile in zip((*self.by_row, *self.by_column), tiles, strict=True):
            row = load in self.by_row
            along_k = bool(load.indices) and depends(load.indices[-1], self.fold.counter)
            for number in range(self.each):
                element = b.add(self.thread, self.side * self.side * number)
                fast = self.step if along_k else self.tile
                low = b.and_(element, fast - 1)
                high = b.shr(element, fast.bit_length() - 1, unsigned=True)
                depth, across = (low, high) if along_k else (high, low)
                depth = b.index_cast(depth, unsigned=True)
                k = b.add(start, depth)
                if not self.whole:
                    k = b.value_of(arith.MinSI, k, b.sub(end, 1))
                index, _ = self.along(b, row, across)
                table = {**self.table, self.fold.counter: k, self.rows if row else self.columns: index}
                at = [computed(b, v, table) for v in load.indices]
                value = b.value_of(memref.Load, computed(b, load.memref, table), at)
                b.create(memref.Store, value, tile, [depth, b.index_cast(across, unsigned=True)])

    def products(
        self, b: ScalarBuilder, tables: Sequence[Table], k: Value, loop: scf.For, tiles: Sequence[Value]
    ) -> None:
        """One step of k for all results of a thread."""
        depth = loop.counter
        parts: dict[Operation, list[Value]] = {}
        for load, tile in zip((*self.by_row, *self.by_column), tiles, strict=True):
            base = self.y if load in self.by_row else self.x
            places = [b.index_cast(b.add(base, self.side * m), unsigned=True) for m in range(self.each)]
            parts[load] = [b.value_of(memref.Load, tile, [depth, place]) for place in places]
        width = len(self.fold.inits)
        results: list[Value] = []
        for number, outside in enumerate(tables):
            table = {**outside, self.fold.counter: k}
            table.update(zip(self.fold.carried, loop.carried[number * width :], strict=False))
            for op in self.inside:
                if op in parts:
                    place = number // self.each if op in self.by_row else number % self.each
                    table[op.results[0]] = parts[op][place]
                else:
                    b.insert(op.clone(table))
            results += [table.get(v, v) for v in self.fold.body.block.terminator.operands]
        b.create(scf.Yield, results)


def _type(load: memref.Load) -> MemRefType:
    type = load.memref.type
    assert isinstance(type, MemRefType)
    return type


def _blocks(sizes: Sequence[int], tile: int) -> int:
    count = 1
    for size in sizes[:-2]:
        count *= size
    for size in sizes[-2:]:
        count *= -(-size // tile)
    return count


def side_of(target: Target) -> int:
    """Threads of a block along each axis: a power of two, so that a thread's place is a shift and a mask."""
    return min(MOST_SIDE, 1 << (math.isqrt(target.threads).bit_length() - 1))


def results_of(target: Target) -> int:
    """Results of a thread along each axis where both extents give the device enough blocks of them, 8 of 32 bits with
    255 registers: the largest power of two whose square, with a row and a column of operands, fits the registers.
    Half as many of wider ones, or where blocks would be few; then a quarter."""
    most = 1
    while 4 * most * (most + 1) <= target.thread_registers:  # (2 most)^2 + 2 (2 most)
        most *= 2
    return most


def _counts(fold: scf.For, step: int) -> bool:
    """Whether a loop counts from 0 by 1, in index, at least a step."""
    upper: Extent | None = mixed.known(fold.upper)
    counts = mixed.known(fold.lower) == 0 and mixed.known(fold.step) == 1 and fold.lower.type is INDEX
    return counts and (upper is None or upper >= step)


def _fits(band: Band, fold: scf.For, side: int) -> bool:
    """Whether the ops around and inside the fold can be copied for each result: nothing is stored before it ends."""
    sizes = [e for e in band.bounds[-2:] if isinstance(e, int)]
    if any(size < 2 * side for size in sizes):
        return False
    place = band.body.index(fold)
    quiet = [*band.body[:place], *body_of(fold.body.block)]
    if not all(is_pure(op) or isinstance(op, memref.Load) for op in quiet):
        return False
    if any(isinstance(op, memref.Load) for op in band.body[:place]):
        return False
    after = band.body[place + 1 :]
    if not all(is_pure(op) or isinstance(op, memref.Load | memref.Store) for op in after):
        return False
    loads = [op for op in body_of(fold.body.block) if isinstance(op, memref.Load)]
    found: set[Value] = {op.result for op in loads}
    return all(found.isdisjoint(origins(index)) for op in loads for index in op.indices)


def moves(load: memref.Load, axis: Value) -> bool:
    """Whether the subscripts of a load depend on an axis."""
    return any(depends(index, axis) for index in load.indices)

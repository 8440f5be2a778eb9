"""tile: loops over points become loops over blocks and loops over the points of a block.

In: kernels whose schedule says `loops = [[axis, block], ..]`.  Out: the band of foralls over these axes as block loops
in the order of the list, and around the body the point loops in the order of the band.

    scf.forall (%i) in (28) { scf.forall (%j) in (64) { .. %i .. %j .. } }
        becomes, for loops = [[0, 14], [1, 32]]
    scf.forall (%i0) = (0) to (28) step (14) { scf.forall (%j0) = (0) to (64) step (32) {
      scf.forall (%ii) in (14) { scf.forall (%jj) in (32) {
        %i = arith.addi %i0, %ii : index
        ..

Legal for a perfect nest of foralls: their points come in any order.  Where blocks do not divide the extent, the range
of blocks is cut in pieces and each piece gets its own copy of what is inside.  An axis whose points are all unrolled is
cut into blocks of two neighbouring heights, so that no block is much smaller; known at run time only, it is cut into
whole blocks, then blocks of 4, then of 1.  Any other axis is cut into whole blocks and one that is left, whose extent
is marked with the most that it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ...ir.attribute_names import AXIS, BLOCK, MAX_TRIP_COUNT
from ...ir.attributes import Attribute
from ...ir.builders.scalar import ScalarBuilder
from ...ir.dialects import scf
from ...ir.operations import Operation
from ...ir.support.mixed import Extent
from ...ir.values import Value
from ..analysis.legality import IllegalError
from ..manager import Pass
from ..schedules.remarks import entry, not_applied
from ..schedules.schedule import Schedule
from . import nest

LOW_BLOCKS = (4, 1)
"""Heights of the blocks behind the whole ones of an axis whose extent is known at run time only: at most three rows are
computed one by one, for one more copy of the body.  A bound of the size of code, on any machine."""


@dataclass
class Tile(Pass):
    """Tile the bands that the schedule names."""

    name: ClassVar[str] = "tile"
    anchor: ClassVar[str] = "builtin.module"

    def run(self, op: Operation) -> None:
        for function in nest.kernels(op):
            schedule = Schedule.of(function)
            blocks = [Block(axis, size, i) for i, (axis, size) in enumerate(schedule.loops)]
            done = {nest.number_of(op, BLOCK) for op in function.walk()}
            unrolled = {axis for axis, _ in schedule.unroll if axis not in dict(schedule.vector)}
            for band in bands(function, {b.axis for b in blocks}):
                axes = {nest.axis_of(loop) for loop in band}
                try:
                    tile(band, [b for b in blocks if b.axis in axes], unrolled)
                    self.count("tiled")
                    done |= {b.place for b in blocks if b.axis in axes}
                except IllegalError as reason:
                    self.count(f"not tiled: {reason}")
                    done |= {b.place for b in blocks if b.axis in axes}
                    for block in (b for b in blocks if b.axis in axes):
                        not_applied(self, function, entry("loops", block.axis, block.size), reason)
            folds = {nest.axis_of(o) for o in function.walk() if isinstance(o, scf.For) and o.inits}
            for block in blocks:
                # What block-reduction could not do of a fold, it has said.
                if block.place not in done and block.axis not in folds:
                    not_applied(self, function, entry("loops", block.axis, block.size), nest.NO_POINTS)


@dataclass(frozen=True)
class Block:
    """A block loop to make: its axis, the points of a block, its place in the schedule."""

    axis: int
    size: int
    place: int


def bands(root: Operation, axes: set[int]) -> list[list[scf.Forall]]:
    """The perfect nests of foralls over the given axes, each as long as it goes."""
    found: list[list[scf.Forall]] = []
    seen: set[Operation] = set()
    for op in root.walk():
        if not isinstance(op, scf.Forall) or op in seen or nest.axis_of(op) not in axes:
            continue
        band = [op]
        while isinstance(inner := band[-1].body.block.first, scf.Forall) and nest.axis_of(inner) in axes:
            if not isinstance(inner.next, scf.InParallel):
                break
            band.append(inner)
        seen.update(band)
        found.append(band)
    return found


@dataclass(frozen=True)
class Range:
    """The points of an axis that are left to loop over: `extent` from `start` on, at most `limit`."""

    start: Extent
    extent: Extent
    limit: int | None = None


@dataclass(frozen=True)
class Piece:
    """Blocks of `size` in [low, high); `most` marks the one block of an extent known at run time only."""

    low: Extent
    high: Extent
    size: Extent
    most: int | None = None


def tile(band: Sequence[scf.Forall], blocks: Sequence[Block], unrolled: set[int]) -> None:
    """Replace a perfect nest by its tiles."""
    ranges: dict[int, Range] = {}
    for loop in band:
        axis = nest.axis_of(loop)
        if axis is None or axis in ranges or not loop.is_normalized or len(loop.axes) != 1:
            raise IllegalError("the nest is not one of loops that count from zero by one")
        ranges[axis] = Range(0, loop.upper[0])
    if not blocks:
        return
    b = ScalarBuilder(before=band[0], location=band[0].location)
    _Tiler(band, unrolled).blocks(b, list(blocks), ranges)
    band[0].erase()


class _Tiler:
    """Tiling of one band."""

    def __init__(self, band: Sequence[scf.Forall], unrolled: set[int]) -> None:
        self.band = band
        self.unrolled = unrolled
        self.names = {nest.axis_of(loop): loop.axes[0].name or "i" for loop in band}

    def blocks(self, b: ScalarBuilder, blocks: Sequence[Block], ranges: dict[int, Range]) -> None:
        """The block loops that are left, then the points."""
        if not blocks:
            self.points(b, ranges)
            return
        block, *rest = blocks
        whole = ranges[block.axis]
        name = f"{self.names[block.axis]}0"
        for piece in self.pieces(b, whole.extent, block):
            attributes = {AXIS: nest.number(block.axis), BLOCK: nest.number(block.place)}
            step = piece.size if isinstance(piece.size, int) else block.size
            loop = nest.forall(b, piece.low, piece.high, step, name=name, attributes=attributes)
            inner = nest.at_end(b, loop.body.block)
            start = nest.add(inner, whole.start, loop.axes[0])
            self.blocks(inner, rest, {**ranges, block.axis: Range(start, piece.size, piece.most)})

    def pieces(self, b: ScalarBuilder, extent: Extent, block: Block) -> list[Piece]:
        """The pieces of a range of blocks."""
        size = block.size
        if isinstance(extent, int):
            if block.axis in self.unrolled:
                return _balanced(extent, size)
            low = extent // size * size
            found = [Piece(0, low, size)] if low else []
            return [*found, Piece(low, extent, extent - low)] if low < extent else found
        end = nest.whole(b, 0, extent, size)
        found = [Piece(0, end, size)]
        if block.axis in self.unrolled:
            for height in LOW_BLOCKS:
                if height < size:
                    following = nest.whole(b, end, extent, height)
                    found.append(Piece(end, following, height))
                    end = following
            return found
        return [*found, Piece(end, extent, nest.subtract(b, extent, end), size)]

    def points(self, b: ScalarBuilder, ranges: dict[int, Range]) -> None:
        """The point loops and the body."""
        table: dict[Value, Value] = {}
        points: list[Value] = []
        for loop in self.band:
            axis = nest.axis_of(loop)
            assert axis is not None
            attributes: dict[str, Attribute] = {AXIS: nest.number(axis)}
            limit = ranges[axis].limit
            if limit is not None:
                attributes[MAX_TRIP_COUNT] = nest.number(limit)
            new = nest.forall(b, 0, ranges[axis].extent, name=loop.axes[0].name, attributes=attributes)
            b = nest.at_end(b, new.body.block)
            points.append(new.axes[0])
        for loop, point in zip(self.band, points, strict=True):
            axis = nest.axis_of(loop)
            assert axis is not None
            table[loop.axes[0]] = b.index_of(nest.add(b, ranges[axis].start, point))
        for op in nest.body_ops(self.band[-1].body.block):
            b.insert(op.clone(table))


def _balanced(extent: int, size: int) -> list[Piece]:
    """As few blocks as there can be, of two neighbouring heights."""
    if not extent:
        return []
    count = -(-extent // size)
    low, higher = divmod(extent, count)
    middle = higher * (low + 1)
    pieces = [Piece(0, middle, low + 1), Piece(middle, extent, low)]
    return [p for p in pieces if p.low != p.high]

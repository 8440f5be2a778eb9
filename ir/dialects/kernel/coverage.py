"""Whether the stores of a launch write every element of an out exactly once.

Each subscript of a store is taken apart into pieces of axes: a whole axis `i`, or, where several axes of the array are
folded into one axis of the launch, `i floordiv 4`, `i mod 4`, `(i floordiv 2) mod 8`.  A subscript is a sum of pieces
with factors, `8 * i + j + 2` or `9 - k`; it covers an interval, each place once, when the factors are the strides of
the pieces' extents.  A store covers a box when every subscript covers an interval and every axis around it is used up
by pieces, each once.  Stores cover an out when their boxes are disjoint and add up to it.

An axis of dynamic extent is taken to match a dynamic extent of the out; the interpreter counts.

Two extents that depend on the point are understood: that of the steps of a lane, `p in (n + 3 - l) / 4` inside `l in
4`, where `4 * p + l` covers n places, each once; and that of the points of a block, `k in min(4, n - 4 * b)` inside `b
in ceil(n / 4)`, where `4 * b + k` does.  The n of the first may be the points of a block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...affine import AffineBinary, AffineConstant, AffineDim, AffineExpr, AffineSum
from ...support import mixed
from ...support.mixed import Extent
from ...types import DYNAMIC
from ...values import BlockArgument, Value
from ..arith import AddI, CeilDivSI, DivUI, MinSI, MulI, SubI
from .accesses import Store
from .base import Axes, LaunchLike, is_launch_argument
from .loops import Sweep

WHOLE = (0, DYNAMIC)
"""The interval that a dynamic axis covers."""

Box = list[tuple[int, int]]
"""For each axis of an array the first place and the number of places."""


class Piece(NamedTuple):
    """`(axis floordiv divisor) mod extent`."""

    axis: Value
    divisor: int
    extent: int


class Steps(NamedTuple):
    """The extent of the steps that a lane takes: `(total + lanes - 1 - lane) / lanes`."""

    lane: Value
    lanes: int
    total: Extent


class Points(NamedTuple):
    """The extent of the points of a block: `min(size, total - size * block)`."""

    block: Value
    size: int
    total: Extent


def steps_of(extent: Value) -> Steps | None:
    """The steps of a lane, when an extent is that."""
    quotient = extent.defining_op
    if not isinstance(quotient, DivUI):
        return None
    lanes = mixed.known(quotient.rhs)
    rest = quotient.lhs.defining_op
    if lanes is None or not isinstance(rest, SubI):
        return None
    lane = rest.rhs
    loop = lane.owner.parent_op if isinstance(lane, BlockArgument) else None
    if not isinstance(lane, BlockArgument) or not isinstance(loop, Axes) or lane.index >= loop.rank:
        return None
    if loop.extents[lane.index] != lanes:
        return None
    rounded = mixed.known(rest.lhs)
    if rounded is not None:
        return Steps(lane, lanes, rounded - (lanes - 1))
    sum_ = rest.lhs.defining_op
    if not isinstance(sum_, AddI) or mixed.known(sum_.rhs) != lanes - 1:
        return None
    total = sum_.lhs
    return Steps(lane, lanes, total) if is_launch_argument(total) or points_of(total) is not None else None


def points_of(extent: Value) -> Points | None:
    """The points of a block, when an extent is that, and the launch has as many blocks as there are."""
    least = extent.defining_op
    if not isinstance(least, MinSI):
        return None
    size = mixed.known(least.lhs)
    rest = least.rhs.defining_op
    product = rest.rhs.defining_op if isinstance(rest, SubI) else None
    if not size or not isinstance(rest, SubI) or not isinstance(product, MulI) or mixed.known(product.rhs) != size:
        return None
    block, total = product.lhs, rest.lhs
    loop = block.owner.parent_op if isinstance(block, BlockArgument) else None
    if not isinstance(block, BlockArgument) or not isinstance(loop, LaunchLike | Sweep) or block.index >= loop.rank:
        return None
    count = loop.bounds[block.index]
    known = mixed.known(total)
    if known is not None:
        return Points(block, size, known) if count == -(-known // size) else None
    if not isinstance(count, Value) or not isinstance(total, BlockArgument) or not is_launch_argument(total):
        return None
    launch = total.owner.parent_op
    assert isinstance(launch, LaunchLike)
    outside: dict[Value, Value] = dict(zip(launch.in_arguments, launch.ins))
    rounded = outside.get(count, count).defining_op
    even = isinstance(rounded, CeilDivSI) and mixed.known(rounded.rhs) == size and rounded.lhs is outside.get(total)
    return Points(block, size, total) if even else None


def covers(stores: Sequence[Store], shape: Sequence[int]) -> bool:
    """Whether the stores provably write every element of an array once."""
    boxes: list[Box] = []
    for store in stores:
        box = covered(store, shape)
        if box is None:
            return False
        boxes.append(box)
    for i, box in enumerate(boxes):
        if any(not _disjoint(box, other) for other in boxes[:i]):
            return False
    for n, interval in zip(shape, zip(*boxes) if boxes else []):
        for first, size in interval:
            if size == DYNAMIC and n != DYNAMIC:
                return False
            if size != DYNAMIC and (n == DYNAMIC or first < 0 or first + size > n):
                return False
    whole = math.prod(n for n in shape if n != DYNAMIC)
    return sum(math.prod(size for _, size in box if size != DYNAMIC) for box in boxes) == whole


def _disjoint(a: Box, b: Box) -> bool:
    return any(
        DYNAMIC not in (m, n) and (i + m <= j or j + n <= i) for (i, m), (j, n) in zip(a, b, strict=True)
    ) or any(0 in (m, n) for (_, m), (_, n) in zip(a, b, strict=True))


def covered(store: Store, shape: Sequence[int]) -> Box | None:
    """The box that a store writes, each element once; None when that is not known."""
    axes = enclosing_axes(store)
    if axes is None:
        return None
    pieces: list[Piece] = []
    box: Box = []
    for subscript in store.subscripts:
        interval = _interval(subscript, store.indices, axes, pieces)
        if interval is None:
            return None
        box.append(interval)
    return box if _used_up(axes, pieces) else None


def enclosing_axes(store: Store) -> dict[Value, Extent | Steps | Points] | None:
    """The axes around a store, launch outermost, with their extents; None when a loop's extent depends on the point."""
    found: dict[Value, Extent | Steps | Points] = {}
    region = store.parent_region
    while region is not None and isinstance(region.parent, Axes):
        op = region.parent
        for axis, extent in zip(region.block.arguments, op.bounds):
            if isinstance(extent, Value) and not isinstance(op, LaunchLike) and not is_launch_argument(extent):
                part = steps_of(extent) or points_of(extent)
                if part is None:
                    return None
                found[axis] = part
            else:
                found[axis] = extent
        if isinstance(op, LaunchLike):
            return found
        region = op.parent_region
    return None


def _interval(
    subscript: AffineExpr, indices: Sequence[Value], axes: dict[Value, Extent | Steps | Points], pieces: list[Piece]
) -> tuple[int, int] | None:
    """The places that a subscript covers, each once; the pieces that it uses are added."""
    terms: list[tuple[AffineExpr, int]] = [(subscript, 1)]
    offset = 0
    if isinstance(subscript, AffineConstant):
        return subscript.value, 1
    if isinstance(subscript, AffineSum):
        terms, offset = list(subscript.terms), subscript.offset
    parts = _in_parts(terms, indices, axes)
    if parts is not None:
        total, used = parts
        pieces += used
        if offset:
            return None
        return WHOLE if isinstance(total, Value) else (0, total)
    found: list[tuple[Piece, int]] = []
    for expr, factor in terms:
        piece = _piece(expr, indices, axes)
        if piece is None:
            return None
        found.append((piece, factor))
    if any(piece.extent == DYNAMIC for piece, _ in found):
        if len(found) != 1 or found[0][1] != 1 or offset:
            return None
        pieces.append(found[0][0])
        return WHOLE
    size = 1
    for piece, factor in sorted(found, key=lambda item: abs(item[1])):
        pieces.append(piece)
        if piece.extent == 1:
            continue
        if abs(factor) != size:
            return None
        if factor < 0:
            offset += factor * (piece.extent - 1)
        size *= piece.extent
    return offset, size


def _in_parts(
    terms: Sequence[tuple[AffineExpr, int]], indices: Sequence[Value], axes: dict[Value, Extent | Steps | Points]
) -> tuple[Extent, list[Piece]] | None:
    """The places that terms cover, and the pieces they use, when they are `lanes * step + lane`, `size * block +
    point`, or the first inside the second."""
    if not all(isinstance(e, AffineDim) for e, _ in terms):
        return None
    factors = {indices[e.index]: factor for e, factor in terms if isinstance(e, AffineDim)}
    used: list[Piece] = []
    total: Extent | None = None
    for axis in factors:
        part = axes.get(axis)
        if isinstance(part, Steps) and factors[axis] == part.lanes and factors.get(part.lane) == 1:
            used += [Piece(axis, 1, DYNAMIC), Piece(part.lane, 1, part.lanes)]
            total = part.total
    if total is None:
        point = next((a for a in factors if isinstance(axes.get(a), Points) and factors[a] == 1), None)
        part = axes[point] if point is not None else None
        if point is None:
            return None
        used.append(Piece(point, 1, DYNAMIC))
    else:
        part = points_of(total) if isinstance(total, Value) else None
    if isinstance(part, Points):
        extent = axes.get(part.block)
        if factors.get(part.block) != part.size or extent is None or isinstance(extent, Steps | Points):
            return None
        used.append(Piece(part.block, 1, extent if isinstance(extent, int) else DYNAMIC))
        total = part.total
    elif isinstance(total, int) and len(factors) == len(used) + 1:
        # Blocks that are all alike, each in lanes.
        (block,) = factors.keys() - {piece.axis for piece in used}
        extent = axes.get(block)
        if not isinstance(extent, int) or factors[block] != total:
            return None
        used.append(Piece(block, 1, extent))
        total *= extent
    return (total, used) if total is not None and len(used) == len(factors) else None


def _piece(expr: AffineExpr, indices: Sequence[Value], axes: dict[Value, Extent | Steps | Points]) -> Piece | None:
    """The piece of an axis that a term is, without its factor."""
    modulus: int | None = None
    divisor = 1
    if isinstance(expr, AffineBinary) and expr.kind == "mod" and isinstance(expr.right, AffineConstant):
        modulus, expr = expr.right.value, expr.left
    if isinstance(expr, AffineBinary) and expr.kind == "floordiv" and isinstance(expr.right, AffineConstant):
        divisor, expr = expr.right.value, expr.left
    if not isinstance(expr, AffineDim):
        return None
    axis = indices[expr.index]
    extent = axes.get(axis)
    if extent is None or isinstance(extent, Steps | Points):
        return None
    if isinstance(extent, Value):
        return Piece(axis, 1, DYNAMIC) if modulus is None and divisor == 1 else None
    if divisor < 1 or extent % divisor:
        return None
    rest = extent // divisor
    if modulus is None or modulus >= rest:
        return Piece(axis, divisor, rest)
    return Piece(axis, divisor, modulus) if rest % modulus == 0 else None


def _used_up(axes: dict[Value, Extent | Steps | Points], pieces: Sequence[Piece]) -> bool:
    """Whether the pieces of every axis, put together, are the axis."""
    for axis, extent in axes.items():
        mine = sorted((p for p in pieces if p.axis is axis), key=lambda p: (p.divisor, p.extent))
        if isinstance(extent, Value | Steps | Points):
            if len(mine) != 1:
                return False
            continue
        reached = 1
        for piece in mine:
            if piece.extent == 1:
                continue
            if piece.divisor != reached:
                return False
            reached *= piece.extent
        if reached != extent:
            return False
    return True

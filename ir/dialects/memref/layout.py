"""Where the elements of a memref lie: strides and offsets of buffers and of the views that ops make.

Strides count elements; `DYNAMIC` stands for what is known only at run time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise

from ...attributes import StridedLayoutAttr
from ...support import mixed
from ...types import DYNAMIC, MemRefType, Type
from ...values import Value


def element_of(memref: Value) -> Type:
    """The element type of a buffer."""
    assert isinstance(memref.type, MemRefType)
    return memref.type.element


def rank_of(memref: Value) -> int:
    """The number of axes of a buffer."""
    assert isinstance(memref.type, MemRefType)
    return memref.type.rank


def row_major(shape: Sequence[int]) -> list[int]:
    """The strides of contiguous memory."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = _times(strides[axis + 1], shape[axis + 1])
    return strides


def strided(type: MemRefType) -> tuple[list[int], int]:
    """`(strides, offset)`; all dynamic when the layout is not a strided one."""
    if type.layout is None:
        return row_major(type.shape), 0
    if isinstance(type.layout, StridedLayoutAttr):
        return list(type.layout.strides), type.layout.offset
    return [DYNAMIC] * type.rank, DYNAMIC


def _times(a: int, b: int) -> int:
    if 0 in (a, b):
        return 0
    return DYNAMIC if DYNAMIC in (a, b) else a * b


def _plus(a: int, b: int) -> int:
    return DYNAMIC if DYNAMIC in (a, b) else a + b


def subview_type(
    source: MemRefType,
    offsets: Sequence[mixed.Extent],
    sizes: Sequence[mixed.Extent],
    strides: Sequence[mixed.Extent],
) -> MemRefType:
    """The type of a box of a buffer, all axes kept."""
    outer, offset = strided(source)
    for start, stride in zip(mixed.fixed(offsets), outer, strict=True):
        offset = _plus(offset, _times(start, stride))
    steps = [_times(step, stride) for step, stride in zip(mixed.fixed(strides), outer, strict=True)]
    return MemRefType(mixed.fixed(sizes), source.element, StridedLayoutAttr(steps, offset), source.space)


def without_axes(type: MemRefType, axes: Sequence[int]) -> MemRefType:
    """The type without some axes."""
    strides, offset = strided(type)
    kept = [a for a in range(type.rank) if a not in axes]
    layout = StridedLayoutAttr([strides[a] for a in kept], offset)
    return MemRefType([type.shape[a] for a in kept], type.element, layout, type.space)


def dropped_axes(whole: MemRefType, type: Type) -> tuple[int, ...] | None:
    """The unit axes of `whole` without which it is `type`, None when there are none; `()` when they are equal."""
    if not isinstance(type, MemRefType) or type.element is not whole.element or type.space is not whole.space:
        return None
    units = [a for a, extent in enumerate(whole.shape) if extent == 1]
    wanted = type.shape, strided(type)
    for axes in combinations(units, whole.rank - type.rank) if whole.rank >= type.rank else ():
        rest = without_axes(whole, axes)
        if (rest.shape, strided(rest)) == wanted:
            return axes
    return None


def collapsed_type(source: MemRefType, groups: Sequence[Sequence[int]]) -> MemRefType | None:
    """The type with the axes of each group merged; None when a group is known not to be contiguous."""
    shape: list[int] = []
    for group in groups:
        extent = 1
        for axis in group:
            extent = _times(extent, source.shape[axis])
        shape.append(extent)
    if source.layout is None:
        return MemRefType(shape, source.element, None, source.space)
    outer, offset = strided(source)
    strides: list[int] = []
    for group in groups:
        # Unit axes lie anywhere, so the innermost other one gives the stride.
        wide = [a for a in group if source.shape[a] != 1]
        strides.append(outer[wide[-1] if wide else group[-1]])
        for left, right in pairwise(wide):
            expected = _times(outer[right], source.shape[right])
            if DYNAMIC not in (expected, outer[left]) and expected != outer[left]:
                return None
    return MemRefType(shape, source.element, StridedLayoutAttr(strides, offset), source.space)


def expanded_type(source: MemRefType, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> MemRefType:
    """The type with each axis split into the extents of its group."""
    if source.layout is None:
        return MemRefType(shape, source.element, None, source.space)
    outer, offset = strided(source)
    strides: list[int] = []
    for group, stride in zip(groups, outer, strict=True):
        inner = row_major([shape[a] for a in group])
        strides += [_times(step, stride) for step in inner]
    return MemRefType(shape, source.element, StridedLayoutAttr(strides, offset), source.space)


def _agree(a: int, b: int) -> bool:
    return a == b or DYNAMIC in (a, b)


def same_shape(a: MemRefType, b: MemRefType) -> bool:
    """Whether the shapes may be equal at run time."""
    return a.rank == b.rank and all(map(_agree, a.shape, b.shape))


def compatible(a: Type, b: Type) -> bool:
    """Whether a buffer of one type may be one of the other."""
    if not isinstance(a, MemRefType) or not isinstance(b, MemRefType):
        return False
    if a.element is not b.element or a.space is not b.space or not same_shape(a, b):
        return False
    (left, start), (right, begin) = strided(a), strided(b)
    return _agree(start, begin) and all(map(_agree, left, right))

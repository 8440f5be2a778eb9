"""Shapes of tensors: extents are integers, or symbols (names of sizes that are known only at run time).

Equal symbols are equal extents.  A symbol never equals a number, and never broadcasts as 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..attributes import ArrayAttr, StringAttr
from ..types import DYNAMIC, TensorType, Type

Dims = tuple[int | str, ...]
"""A shape: `(64, "n")`; an extent without a name is `"?"`."""


def tensor_type(dims: Sequence[int | str], element: Type) -> TensorType:
    """The tensor type with these extents."""
    names = [d for d in dims if isinstance(d, str)]
    named = any(n != "?" for n in names)
    shape = [DYNAMIC if isinstance(d, str) else d for d in dims]
    return TensorType(shape, element, ArrayAttr(map(StringAttr, names)) if named else None)


def shape_text(dims: Sequence[int | str]) -> str:
    """A shape as messages show it: `(4, n)`, `(5,)`, `()`."""
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


@lru_cache(maxsize=4096)
def broadcast(*shapes: Dims) -> Dims | None:
    """The shape that all of these broadcast to by NumPy's rule, or None."""
    rank = max(map(len, shapes))
    out: list[int | str] = [1] * rank
    for dims in shapes:
        for axis, extent in enumerate(dims, rank - len(dims)):
            if extent == out[axis] or extent == 1:
                continue
            if out[axis] != 1:
                return None
            out[axis] = extent
    return tuple(out)


Group = tuple[list[int], list[int]]


@lru_cache(maxsize=1024)
def reassociation(old: Dims, new: Dims) -> list[Group] | None:
    """How a reshape regroups axes: pairs (axes of `old`, axes of `new`) that span equally many elements, axes of
    extent 1 left out; None when the sizes differ.  Sizes that symbols make unknowable are taken as equal.
    """

    def prefixes(dims: Dims) -> tuple[list[int], list[tuple[int, tuple[str, ...]]]]:
        axes = [i for i, d in enumerate(dims) if d != 1]
        number, symbols, sizes = 1, tuple[str, ...](), list[tuple[int, tuple[str, ...]]]()
        for axis in axes:
            extent = dims[axis]
            if isinstance(extent, str):
                symbols = tuple(sorted((*symbols, extent)))
            else:
                number *= extent
            sizes.append((number, symbols))
        return axes, sizes

    (old_axes, old_sizes), (new_axes, new_sizes) = prefixes(old), prefixes(new)
    if 0 in old or 0 in new:
        return [] if 0 in old and 0 in new else None
    total_old = old_sizes[-1] if old_sizes else (1, ())
    total_new = new_sizes[-1] if new_sizes else (1, ())
    if total_old != total_new and sorted(total_old[1]) == sorted(total_new[1]) and "?" not in total_old[1]:
        return None
    if (not total_old[1] or not total_new[1]) and total_old != total_new:
        return None
    ends = {size: i + 1 for i, size in enumerate(old_sizes)}
    groups: list[Group] = []
    old_start = new_start = 0
    for stop, size in enumerate(new_sizes, 1):
        end = ends.get(size)
        if end is not None:
            groups.append((old_axes[old_start:end], new_axes[new_start:stop]))
            old_start, new_start = end, stop
    if old_start < len(old_axes) or new_start < len(new_axes):
        groups.append((old_axes[old_start:], new_axes[new_start:]))
    return groups

"""Sets of lanes and the values in them: what `lanes` computes with.

A value is a NumPy scalar (the same in all lanes), an array (an element for each lane) or `Rows` (a local of each lane).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ..numeric import is_array
from ..values import Value

if TYPE_CHECKING:
    from ..arrays import Array

Extent = Union[int, "Array"]
"""The extent of an axis: one for all lanes, or an array with one for each."""


class Rows:
    """A local of every lane: lane i has row `rows[i]` of `data`, of which `extents` are in use."""

    __slots__ = ("data", "extents", "rows")

    def __init__(self, data: Array, rows: Array, extents: Sequence[Extent]) -> None:
        self.data = data
        self.rows = rows
        self.extents = list(extents)

    def take(self, index: Array) -> Rows:
        """The locals of some lanes."""
        return Rows(self.data, self.rows[index], self.extents)

    def shape(self) -> list[Extent]:
        """The extents, each the same for all lanes or an array."""
        return [e if isinstance(e, int) else e[self.rows] for e in self.extents]


def take(value: Any, index: Any) -> Any:
    """A value in some lanes."""
    if isinstance(value, Rows):
        return value.take(index)
    return value[index] if is_array(value) else value


class Lanes:
    """A set of lanes and the values in them.

    `index` maps them to lanes of `parent`; `keys` are columns that order them as the sequential definition does.
    """

    __slots__ = ("count", "env", "index", "keys", "parent")

    def __init__(self, count: int, parent: Lanes | None, index: Array | None, keys: Sequence[Array]) -> None:
        self.count = count
        self.parent = parent
        self.index = index
        self.keys = list(keys)
        self.env: dict[Value, Any] = {}

    def get(self, value: Value) -> Any:
        """The value in these lanes."""
        found = self.env.get(value)
        if found is None:
            if self.parent is None:
                raise KeyError(value)
            found = self.env[value] = take(self.parent.get(value), self.index)
        return found

    def narrow(self, index: Array) -> Lanes:
        """The lanes at the positions `index`, with this set as their parent."""
        return Lanes(len(index), self, index, [k[index] for k in self.keys])

    def again(self) -> Lanes:
        """The same lanes without the values that were computed in them."""
        return Lanes(self.count, self.parent, self.index, self.keys)

    def steps(self, extents: Sequence[Extent], start: int, stop: int, ordinal: int) -> tuple[Lanes, list[Array]]:
        """A lane for each lane and each step of an inner loop from `start` to before `stop`, and the axes' values."""
        import numpy as np

        total = product(extents)
        if is_array(total):
            sizes = np.clip(np.minimum(total, stop) - start, 0, None)
            index = np.repeat(np.arange(self.count), sizes)
            first = np.cumsum(sizes) - sizes
            step = np.arange(len(index)) - first[index] + start
        else:
            size = int(min(total, stop)) - start
            index = np.repeat(np.arange(self.count), size)
            step = np.tile(np.arange(start, start + size), self.count)
        keys = [k[index] for k in self.keys]
        if keys:
            keys += [np.full(len(index), ordinal), step]
        return Lanes(len(index), self, index, keys), unravel(step, [take(e, index) for e in extents])


def product(extents: Sequence[Extent]) -> Extent:
    """The number of points of an inner loop: an int, or an array where lanes differ."""
    total: Extent = 1
    for extent in extents:
        total = total * extent
    return total


def unravel(step: Array, extents: Sequence[Extent]) -> list[Array]:
    """The subscripts of a number in row-major order; an extent is one for all or one for each."""
    import numpy as np

    found: list[Array] = []
    for extent in reversed(extents):
        size = np.maximum(extent, 1)
        found.append(step % size)
        step = step // size
    return found[::-1]


def columns(steps: Sequence[Sequence[Any]], count: int) -> list[Any]:
    """Values of each step and lane, as lanes in row-major order."""
    import numpy as np

    out: list[Any] = []
    for values in zip(*steps):
        if len(values) == 1:
            out.append(values[0])
        else:
            out.append(np.stack([np.broadcast_to(v, (count,)) for v in values], axis=1).reshape(-1))
    return out


def put(old: Any, index: Array, new: Any, count: int) -> Any:
    """`old` with the lanes of `index` replaced."""
    import numpy as np

    rest = np.ones(count, bool)
    rest[index] = False
    kept = np.flatnonzero(rest)
    return merge([(kept, take(old, kept)), (index, new)], count)


def merge(parts: Sequence[tuple[Array, Any]], count: int) -> Any:
    """One value from the values of disjoint sets of lanes that together are all."""
    import numpy as np

    first = parts[0][1]
    if not isinstance(first, Rows):
        out = np.empty(count, first.dtype)
        for index, value in parts:
            out[index] = value
        return out
    if len(parts) == 1:
        return first
    shape = [max(p.data.shape[d] for _, p in parts) for d in range(1, first.data.ndim)]
    data = np.zeros((sum(len(p.data) for _, p in parts), *shape), first.data.dtype)
    rows = np.zeros(count, np.int64)
    extents = [np.zeros(len(data), np.int64) for _ in shape]
    start = 0
    for index, part in parts:
        stop = start + len(part.data)
        data[(slice(start, stop), *(slice(n) for n in part.data.shape[1:]))] = part.data
        rows[index] = part.rows + start
        for whole, mine in zip(extents, part.extents):
            whole[start:stop] = mine
        start = stop
    return Rows(data, rows, extents)

"""A launch with its points side by side: a value is an array with an element for each point, a lane.

An inner loop that stores, and the body of a fold, multiply the lanes; a fold then runs over the steps in order.  An
`scf.if` narrows the lanes to those that take the branch.  What is inside such a set of lanes gathers values from
outside through `index`, which says for every lane the lane of the outer set it belongs to.  Lanes are in the order in
which the sequential definition runs them, and accumulates are held back to the end and then applied in that order, so
the results are the same bit for bit.

A value is a NumPy scalar (the same in all lanes), an array (an element for each lane), `Rows` (a local), `Memory` or
`Out`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..definition import TERMINATOR
from ..dialects.arith import AddF, AddI, MulF, MulI
from ..dialects.kernel import Access, Accumulate, Axes, Fold, Launch, Load, Local, Monoidal, Reduce, Scan, Store, Sweep
from ..numeric import constant, dtype, is_array, is_bool
from ..operations import Block, Operation
from ..values import Value
from .lane_sets import Extent, Lanes, Rows, columns, merge, product, put, take, unravel
from .machine import Error, Interpreter, InterpreterError
from .memory import failed
from .operands import Out, as_dtype, out_of_bounds

if TYPE_CHECKING:
    from ..arrays import Array


LIMIT = 1 << 17
"""Lanes at a time: memory stays bounded however many points there are."""

SEQUENTIAL: dict[type[Operation], str] = {AddF: "add", MulF: "multiply", AddI: "add", MulI: "multiply"}
"""Monoid ops for which NumPy has a function whose `accumulate` and `at` work in order, as a fold does."""


def run(machine: Interpreter, op: Launch, extents: Sequence[int], ins: Sequence[object], outs: Sequence[Out]) -> None:
    """Run the body of a launch for every point."""
    import numpy as np

    program = _Program(machine, op)
    total = prod(extents)
    for start in range(0, total, LIMIT):
        points = np.arange(start, min(start + LIMIT, total))
        lanes = Lanes(len(points), None, None, [points] if program.accumulates else [])
        axes = unravel(points, extents)
        if total == 1:  # one point is no reason for arrays
            axes = [np.int64(0) for _ in axes]
        program.run(op.body.block, [*axes, *ins, *outs], lanes)
    program.finish()


class _Pending(NamedTuple):
    """An accumulate that waits: its values and subscripts, and the columns that order its lanes."""

    op: Accumulate
    outs: tuple[Out, ...]
    at: tuple[Array, ...]
    values: list[Array]
    keys: list[Array]


class _Program:
    def __init__(self, machine: Interpreter, op: Launch) -> None:
        self.machine = machine
        self.ordinals = {inner: i for i, inner in enumerate(op.walk())}
        self.accumulates = any(isinstance(inner, Accumulate) for inner in self.ordinals)
        self.pending: list[_Pending] = []

    def run(self, block: Block, arguments: Sequence[object], lanes: Lanes) -> list[Any]:
        """The values that a block yields in these lanes."""
        env = lanes.env
        env.update(zip(block.arguments, arguments, strict=True))
        op = block.first
        while op is not None:
            if TERMINATOR in op.traits:
                return [lanes.get(v) for v in op.operands]
            handler = _HANDLERS.get(op.name)
            try:
                if handler is not None:
                    results = handler(self, op, lanes)
                else:
                    results = self.machine.evaluate(op, [lanes.get(v) for v in op.operands])
            except Error:
                raise
            except Exception as error:
                raise failed(op, error) from error
            env.update(zip(op.results, results, strict=True))
            op = op.next
        return []

    def extents(self, op: Axes, lanes: Lanes) -> list[Extent]:
        """The extents of an inner loop: an int, or an array where lanes differ."""
        import numpy as np

        found: list[Any] = [lanes.get(e) if isinstance(e, Value) else e for e in op.bounds]
        return [np.maximum(e, 0) if is_array(e) else max(int(e), 0) for e in found]

    # Memory.

    def place(
        self, op: Access, indices: Sequence[Value], lanes: Lanes, shape: Sequence[Extent]
    ) -> tuple[list[Extent], Array | bool]:
        """The subscripts in every lane, and where they lie inside (True when they do everywhere)."""
        import numpy as np

        at: list[Extent] = list(op.map.evaluate([lanes.get(v) for v in indices]))
        inside: Array | bool = True
        for i, n in zip(at, shape, strict=True):
            inside = inside & ((i >= 0) & (i < n))
        if np.all(inside):
            return at, True
        if not (isinstance(op, Load) and op.fill is not None):
            lane = int(np.argmin(inside)) if np.ndim(inside) else 0
            raise out_of_bounds(op, [_lane(i, lane) for i in at], [_lane(n, lane) for n in shape])
        return at, inside

    def load(self, op: Load, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        source = lanes.get(op.source)
        wanted = dtype(op.result.type)
        if isinstance(source, Rows):
            array, shape = source.data, source.shape()
        else:
            array, shape = source.array, source.array.shape
        at, inside = self.place(op, op.indices, lanes, shape)
        if inside is not True:
            if not np.any(inside):
                return [constant(op.fill)]
            at = [np.where(inside, i, 0) for i in at]
        found = array[(source.rows, *at)] if isinstance(source, Rows) else array[tuple(at)]
        found = as_dtype(found, wanted)
        return [found if inside is True else np.where(inside, found, constant(op.fill))]

    def targets(self, op: Access, indices: Sequence[Value], lanes: Lanes, out: Out) -> tuple[Array, ...]:
        """The subscripts of a write, an array for each axis; of an array of rank 0 those of one of rank 1."""
        import numpy as np

        at, _ = self.place(op, indices, lanes, out.array.shape)
        return tuple(np.broadcast_to(np.asarray(i), (lanes.count,)) for i in at or [0])

    def store(self, op: Store, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        out: Out = lanes.get(op.dest)
        at = self.targets(op, op.indices, lanes, out)
        _at_least_1d(out.array)[at] = as_dtype(lanes.get(op.value), out.array.dtype)
        if out.counts is not None:
            np.add.at(_at_least_1d(out.counts), at, 1)
        return []

    def accumulate(self, op: Accumulate, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        outs = tuple(lanes.get(d) for d in op.dests)
        at = self.targets(op, op.indices, lanes, outs[0])
        values = [np.broadcast_to(np.asarray(lanes.get(v)), (lanes.count,)) for v in op.values]
        keys = [*lanes.keys, np.full(lanes.count, self.ordinals[op])]
        self.pending.append(_Pending(op, outs, at, values, keys))
        return []

    def finish(self) -> None:
        """Apply the accumulates, in the order of the sequential definition."""
        groups: dict[tuple[int, ...], list[_Pending]] = {}
        for entry in self.pending:
            groups.setdefault(tuple(map(id, entry.outs)), []).append(entry)
        for entries in groups.values():
            self._apply(entries)

    def _apply(self, entries: Sequence[_Pending]) -> None:
        import numpy as np

        outs = entries[0].outs
        ops = list(dict.fromkeys(e.op for e in entries))
        arrays = [_at_least_1d(o.array) for o in outs]
        at = [np.concatenate([e.at[d] for e in entries]) for d in range(arrays[0].ndim)]
        values = [np.concatenate([e.values[c] for e in entries]) for c in range(len(outs))]
        which = np.concatenate([np.full(len(e.keys[0]), ops.index(e.op)) for e in entries])
        if len(entries) > 1:
            depth = max(len(e.keys) for e in entries)
            columns = [
                np.concatenate([e.keys[c] if c < len(e.keys) else np.zeros(len(e.keys[0]), np.int64) for e in entries])
                for c in range(depth)
            ]
            order = np.lexsort(columns[::-1])
            at, values, which = [a[order] for a in at], [v[order] for v in values], which[order]
        functions = [_functions(op, values) for op in ops]
        if functions[0] is not None and all(f == functions[0] for f in functions):
            for name, array, value in zip(functions[0], arrays, values):
                getattr(np, name).at(array, tuple(at), as_dtype(value, array.dtype))
            return
        self._apply_rounds(ops, arrays, at, values, which)

    def _apply_rounds(
        self,
        ops: Sequence[Accumulate],
        arrays: Sequence[Array],
        at: Sequence[Array],
        values: Sequence[Array],
        which: Array,
    ) -> None:
        """Round r combines, for each element, the r-th value that it receives."""
        import numpy as np

        flat = np.asarray(np.ravel_multi_index(tuple(at), arrays[0].shape))
        order = np.argsort(flat, kind="stable")
        first = np.flatnonzero(np.diff(flat[order], prepend=-1))
        sizes = np.diff(np.append(first, len(order)))
        rank = np.arange(len(order)) - np.repeat(first, sizes)
        by_rank = order[np.argsort(rank, kind="stable")]
        for chosen in np.split(by_rank, np.cumsum(np.bincount(rank))[:-1]):
            for number, op in enumerate(ops):
                mine = chosen[which[chosen] == number]
                if not len(mine):
                    continue
                where = tuple(a[mine] for a in at)
                kept = [as_dtype(a[where], dtype(v.type)) for a, v in zip(arrays, op.values)]
                new = self.combine(op, kept, [v[mine] for v in values], len(mine))
                for array, value in zip(arrays, new):
                    array[where] = as_dtype(value, array.dtype)

    # Folds.

    def combine(self, op: Monoidal, a: Sequence[object], b: Sequence[object], count: int) -> list[Any]:
        """Two elements combined in `count` lanes."""
        return self.run(op.combine_region.block, [*a, *b], Lanes(count, None, None, []))

    def identity(self, op: Fold, lanes: Lanes) -> list[Array | Rows]:
        import numpy as np

        found: list[Array | Rows] = []
        for attribute in op.identity:
            value = constant(attribute)
            if is_array(value):
                value = Rows(value[None], np.zeros(lanes.count, np.int64), list(value.shape))
            found.append(value)
        return found

    def reduce(self, op: Reduce, lanes: Lanes) -> Sequence[object]:
        return self._tree(op, lanes) if op.tree else self._fold(op, lanes, None)

    def scan(self, op: Scan, lanes: Lanes) -> Sequence[object]:
        return self._fold(op, lanes, op.do.block)

    def _fold(self, op: Fold, lanes: Lanes, do: Block | None) -> list[Any]:
        """The fold; `do` runs with the fold before and after each step."""
        import numpy as np

        extents = self.extents(op, lanes)
        total = product(extents)
        folded = self.identity(op, lanes)
        ragged = is_array(total)
        single = ragged or (do is not None and any(isinstance(v, Rows) for v in folded))
        chunk = 1 if single else max(1, LIMIT // max(lanes.count, 1))
        for start in range(0, int(np.max(total, initial=0)), chunk):
            inner, axes = lanes.steps(extents, start, start + chunk, self.ordinals[op])
            elements = self.run(op.body.block, axes, inner)
            if ragged:
                assert inner.index is not None
                before = [take(v, inner.index) for v in folded]
                after = self.combine(op, before, elements, inner.count)
                folded = [put(v, inner.index, new, lanes.count) for v, new in zip(folded, after)]
            else:
                before, after, folded = self._steps(op, folded, elements, lanes.count, inner.count, do is not None)
            if do is not None:
                self.run(do, [*axes, *before, *after], inner.again())
        return folded

    def _steps(
        self, op: Fold, folded: list[Any], elements: list[Any], count: int, expanded: int, keep: bool
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Fold the steps of a chunk: the folds before and after each step (with `keep`), and the last one."""
        import numpy as np

        size = expanded // max(count, 1)
        names = _functions(op, [*folded, *elements])
        if names is not None:
            before: list[Any] = []
            after: list[Any] = []
            last: list[Any] = []
            for name, start, element in zip(names, folded, elements):
                rows = np.empty((count, size + 1), start.dtype)
                rows[:, 0] = start
                rows[:, 1:] = np.reshape(np.broadcast_to(element, (expanded,)), (count, size))
                rows = getattr(np, name).accumulate(rows, axis=1, dtype=rows.dtype)
                before.append(rows[:, :-1].reshape(-1))
                after.append(rows[:, 1:].reshape(-1))
                last.append(rows[:, -1].copy())
            return before, after, last
        befores: list[list[Any]] = []
        afters: list[list[Any]] = []
        for j in range(size):
            befores.append(folded)
            here = np.arange(count) * size + j
            folded = self.combine(op, folded, [take(e, here) for e in elements], count)
            afters.append(folded)
        if not keep or size == 0:
            return [], [], folded
        return columns(befores, count), columns(afters, count), folded

    def _tree(self, op: Reduce, lanes: Lanes) -> list[Any]:
        """The halving tree over the elements of each lane."""
        import numpy as np

        extents = self.extents(op, lanes)
        total = product(extents)
        if not isinstance(total, int):
            if np.any(total != total[:1]):
                raise InterpreterError("'kernel.reduce' op: a tree needs one extent for all points", op.location)
            total = int(total[0]) if len(total) else 0
        if total == 0:
            return self.identity(op, lanes)
        inner, axes = lanes.steps(extents, 0, total, self.ordinals[op])
        elements = self.run(op.body.block, axes, inner)
        row = [[take(e, np.arange(lanes.count) * total + j) for e in elements] for j in range(total)]
        while len(row) > 1:
            half = (len(row) + 1) // 2
            folded = [self.combine(op, a, b, lanes.count) for a, b in zip(row, row[half:])]
            row = folded + row[len(row) - half : half]
        return row[0]

    # Inner loops and choices.

    def sweep(self, op: Sweep, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        extents = self.extents(op, lanes)
        chunk = max(1, LIMIT // max(lanes.count, 1))
        for start in range(0, int(np.max(product(extents), initial=0)), chunk):
            inner, axes = lanes.steps(extents, start, start + chunk, self.ordinals[op])
            self.run(op.body.block, axes, inner)
        return []

    def local(self, op: Local, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        extents = self.extents(op, lanes)
        shape = [int(np.max(e, initial=0)) for e in extents]
        data = np.zeros((lanes.count, *shape), dtype(op.result.type))
        chunk = max(1, LIMIT // max(lanes.count, 1))
        for start in range(0, int(np.max(product(extents), initial=0)), chunk):
            inner, axes = lanes.steps(extents, start, start + chunk, self.ordinals[op])
            data[(inner.index, *axes)] = self.run(op.body.block, axes, inner)[0]
        return [Rows(data, np.arange(lanes.count), extents)]

    def choose(self, op: Operation, lanes: Lanes) -> Sequence[object]:
        import numpy as np

        condition = lanes.get(op.operands[0])
        if not is_array(condition):
            return self._branch(op, 0 if condition else 1, lanes)
        parts = [(np.flatnonzero(condition), 0), (np.flatnonzero(~condition), 1)]
        found = [(index, self._branch(op, k, lanes.narrow(index))) for index, k in parts if len(index)]
        if not found:
            return [np.zeros(0, dtype(r.type)) for r in op.results]
        return [merge([(i, values[k]) for i, values in found], lanes.count) for k in range(len(op.results))]

    def _branch(self, op: Operation, number: int, lanes: Lanes) -> list[Any]:
        region = op.regions[number]
        return self.run(region.block, [], lanes) if region.blocks else []


def _at_least_1d(array: Array) -> Array:
    return array if array.ndim else array.reshape(1)


def _lane(value: Extent, lane: int) -> int:
    import numpy as np

    return int(np.asarray(value)[lane] if np.ndim(value) else value)


def _functions(op: Monoidal, values: Sequence[object]) -> list[str] | None:
    """NumPy's functions for the components of a monoid, where folds by them are in order."""
    operators = op.operators
    if operators is None or any(isinstance(v, Rows) or is_bool(v) for v in values):
        return None
    names = [SEQUENTIAL.get(f) for f in operators]
    return [n for n in names if n is not None] if None not in names else None


def _refuse(program: _Program, op: Operation, lanes: Lanes) -> Sequence[object]:
    raise InterpreterError(f"'{op.name}' op cannot stand in a kernel", op.location)


_HANDLERS: dict[str, Callable[[_Program, Any, Lanes], Sequence[object]]] = {
    "kernel.load": _Program.load,
    "kernel.store": _Program.store,
    "kernel.accumulate": _Program.accumulate,
    "kernel.reduce": _Program.reduce,
    "kernel.scan": _Program.scan,
    "kernel.sweep": _Program.sweep,
    "kernel.local": _Program.local,
    "kernel.launch": _refuse,
    "scf.if": _Program.choose,
}

"""`PointBuilder` on NumPy arrays: what an op says of one point of its result, computed for all points at once.

Every scalar op is a real one, made to infer its type and then evaluated, so that ill-typed scalar code fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nablair.ir.builders.point import PointBuilder
from nablair.ir.builders.subscripts import AffineSubscript
from nablair.ir.dialects.kernel import identity_of, operator_class
from nablair.ir.numeric import constant, dtype
from nablair.ir.operations import Block
from nablair.ir.types import INDEX, IntegerType, TensorType
from nablair.ir.types import signless as signless_type
from nablair.ir.values import Value


class Array(Value):
    """A scalar at every point of a domain."""

    __slots__ = ("array",)

    def __init__(self, type: Any, array: Any) -> None:
        super().__init__(type)
        self.array = array


def array_of(value: Value) -> Any:
    """The elements of a scalar at all points."""
    assert isinstance(value, Array)
    return value.array


def signless(array: Any, type: Any) -> Any:
    """An array of unsigned integers as kernels hold it."""
    return array.view(f"i{array.dtype.itemsize}") if isinstance(type, IntegerType) and type.signedness == "u" else array


class NumpyPoint(PointBuilder):
    """All points of a domain; loads outside an operand must have a fill."""

    def __init__(self, shape: Sequence[int], operands: Sequence[Any], types: Sequence[Any]) -> None:
        super().__init__(Block())
        self.shape = tuple(shape)
        self.operands = operands
        self.types = types
        self.dry = False  # bodies are only asked for their types
        grid = np.indices(self.shape)
        self.axes = [AffineSubscript.of(self.at_all_points(INDEX, grid[i])) for i in range(len(self.shape))]

    def at_all_points(self, type: Any, array: Any) -> Array:
        """A value that has these elements at the points."""
        return Array(type, np.broadcast_to(array, self.shape))

    def create(self, cls: Any, *operands: Any, **keywords: Any) -> Any:
        op = super().create(cls, *operands, **keywords)
        values = constant(op.value) if cls.name == "arith.constant" else op.evaluate(*[v.array for v in op.operands])
        values = np.asarray(values)
        assert values.dtype == dtype(op.result.type), f"{cls.name} gave {values.dtype} for {op.result.type}"
        op.results = (self.at_all_points(op.result.type, values),)
        return op

    def load(self, operand: int, subscripts: Sequence[AffineSubscript | int], fill: float | None = None) -> Value:
        source, type = self.operands[operand], self.types[operand]
        assert len(subscripts) == source.ndim, f"{len(subscripts)} subscripts for the shape {source.shape}"
        places = [array_of(self.index_value(s)) for s in subscripts]
        inside = np.ones(self.shape, bool)
        for place, extent in zip(places, source.shape):
            inside &= (place >= 0) & (place < extent)
        scalar = signless_type(type.element)
        if not source.size:
            assert self.dry or fill is not None or not inside.size, "a load from an empty operand"
            return self.at_all_points(scalar, np.full((), fill or 0, dtype(scalar)))
        assert fill is not None or inside.all(), "a load leaves its operand"
        clipped = [np.clip(p, 0, n - 1) for p, n in zip(places, source.shape)]
        values = signless(source[tuple(clipped)], type.element)
        if fill is not None:
            values = np.where(inside, values, np.asarray(fill).astype(values.dtype))
        return self.at_all_points(scalar, values)

    def extent(self, operand: int, axis: int) -> Any:
        return self.operands[operand].shape[axis]

    def outside(self, value: Any) -> Any:
        return value

    def extent_of(self, value: Value, axis: int) -> Any:
        assert isinstance(value.type, TensorType) and value.type.is_static
        return value.type.shape[axis]

    def reduce(self, extents: Sequence[Any], by: Any, body: Callable[..., Any], names: Sequence[str] = ()) -> list[Any]:
        totals: list[Any] | None = None
        elements: list[Any] = []
        for place in itertools.product(*map(range, extents)):
            found = body([AffineSubscript.of(p) for p in place])
            elements = [found] if isinstance(found, Value) else list(found)
            if totals is None:
                totals = self.identities(by, [v.type for v in elements])
            totals = self.combine(by, totals, elements)
        if totals is None:
            return self.identities(by, [self.guess(body)])
        return totals

    def guess(self, body: Callable[..., Any]) -> Any:
        """The element type of a body that runs for no point."""
        self.dry = True
        type = body([AffineSubscript.of(0)] * 8).type
        self.dry = False
        return type

    def identities(self, by: Any, types: Sequence[Any]) -> list[Any]:
        if isinstance(by, tuple):
            return [self.constant(a) for a in by[0]]
        return [self.constant(identity_of(operator_class(by), t)) for t in types]

    def combine(self, by: Any, totals: list[Any], elements: list[Any]) -> list[Any]:
        if isinstance(by, tuple):
            return list(by[1](*totals, *elements))
        return [self.value_of(operator_class(by), *totals, *elements)]


def compute(op: Any, arrays: Sequence[Any]) -> Any:
    """The result of a tensor-level op through its `point` or `view`."""
    type = op.result.type
    k = NumpyPoint(type.shape, arrays, [v.type for v in op.operands])
    found = k.load(0, op.view(k, k.axes)) if hasattr(op, "view") else op.point(k)
    assert found.type is signless_type(type.element), f"{op.name} is {found.type} at a point of {type}"
    elements = array_of(found)
    return elements.view(dtype(type)) if elements.dtype.kind == "i" else elements


def scatter(op: Any, arrays: Sequence[Any]) -> Any:
    """The result of an op that scatters: every point of operand 2 adds to an element of operand 0."""
    k = NumpyPoint(arrays[2].shape, arrays, [v.type for v in op.operands])
    value, places = op.scatter(k)
    out = arrays[0].copy()
    np.add.at(out, tuple(array_of(k.index_value(p)) for p in places), array_of(value).astype(out.dtype))
    return out

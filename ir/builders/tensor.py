"""A builder of tensor-level ops by name, with Python numbers as operands.

    b = TensorBuilder(block)
    y = b.maximum(x, 0.0)                              # elementwise.maximum
    s = b.reduce_sum(x, axes=[-1], keepdims=True)      # linalg.reduce_sum

Every tensor-level op is a method, a plugin's too, by its name without the dialect (of two with one name that whose
dialect was registered first), its operands in the order of its fields, its properties keywords.  A number becomes a
0-d constant of the first tensor operand's element type; negative axes count from the end.  The method gives the op's
result, or a tuple of them.  Ops whose result types are given have methods of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..attributes import Attribute, DenseAttr, scalar_attr
from ..builder import Builder
from ..definition import MANY, ONE
from ..diagnostics import ShapeError
from ..dialects import array, elementwise
from ..support import mixed
from ..support.reference import to_attribute
from ..support.shapes import shape_text, tensor_type
from ..support.tensor_op import TensorOp, type_of_tensor
from ..types import DYNAMIC, INDEX, TensorType, Type
from ..values import Value
from . import sizes
from .op_methods import OpMethods
from .scalar import ScalarBuilder
from .sizes import Size

Dims = Sequence[int | str]


class TensorBuilder(OpMethods[Value], Builder):
    """Makes tensor ops, with types inferred and numbers taken as constants."""

    def apply(self, cls: type[TensorOp], *operands: Any, **properties: Any) -> Any:
        """Create an op of a class; its result, or the tuple of its results."""
        fields = cls.definition.operands
        groups: list[Any] = list(operands) + [None] * (len(fields) - len(operands))
        for i, field in enumerate(fields):
            if field.name in properties:
                groups[i] = properties.pop(field.name)
        like = self._reference(cls, groups)
        for i, group in enumerate(groups):
            if isinstance(group, int | float) and fields[i].arity in (ONE, MANY) and like is not None:
                groups[i] = self.constant(group, like.element)
        if like is not None:
            for key in ("axis", "axes"):
                if key in properties:
                    properties[key] = _normal(properties[key], like.rank)
        declared = cls.definition.properties
        given = {k: v for k, v in properties.items() if k not in declared or v != declared[k].default}
        op = self.create(cls, *groups, **given)
        return op.result if len(op.results) == 1 else op.results

    @staticmethod
    def _reference(op: type[TensorOp], groups: Sequence[Any]) -> TensorType | None:
        """The type that numbers take after: that of the first tensor among the operands that may be numbers."""
        for group in groups[op.first_value :]:
            for value in group if isinstance(group, list | tuple) else [group]:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(value, Value) and isinstance(value.type, TensorType):
                    return value.type
        return None

    def constant(self, value: Any, type: Type | None = None) -> Value:
        """A constant: a dense attribute; a number as a 0-d tensor of the element type, or at every point of the tensor
        type `type`; an array, of the tensor type that its dtype says when `type` is None."""
        if isinstance(value, DenseAttr):
            return self.value(array.Constant, value=value)
        if isinstance(value, int | float) and type is not None:
            full = type if isinstance(type, TensorType) else TensorType((), type)
            return self.value(array.Constant, value=DenseAttr.splat(full, value))
        assert type is None or isinstance(type, TensorType)
        return self.value(array.Constant, value=to_attribute(value, type))

    @staticmethod
    def number(value: float, like: Value) -> Attribute:
        """A number as an attribute of a tensor's element type."""
        return scalar_attr(value, type_of_tensor(like).element)

    def cast(self, x: Value, to: Type) -> Value:
        """x with the element type `to`; x itself when it has it."""
        return x if type_of_tensor(x).element is to else self.value(elementwise.Cast, x, to=to)

    def scalars(self) -> ScalarBuilder:
        """A builder of index values at the same place."""
        return ScalarBuilder(self.block, self.before, self.location)

    def dim(self, x: Value, axis: int) -> Value:
        """The extent of an axis as an index value."""
        return self.value(array.Dim, x, axis=axis % type_of_tensor(x).rank)

    def extents(self, dims: Dims, *sources: Value) -> list[Value]:
        """Index values for the dynamic extents of `dims`, read off tensors that have extents of the same name, or off
        the arguments of the block, or computed from such."""
        return [self._extent(d, sources) for d in dims if isinstance(d, str)]

    def _extent(self, symbol: str, sources: Sequence[Value]) -> Value:
        found = self._find_extent(symbol, sources)
        if found is None:
            shapes = ", ".join(shape_text(type_of_tensor(s).dims) for s in sources)
            raise ValueError(f"no tensor of the shapes {shapes} has the extent {symbol}")
        return found

    def _find_extent(self, symbol: str, sources: Sequence[Value]) -> Value | None:
        for source in sources:
            dims = type_of_tensor(source).dims
            if symbol in dims:
                return self.dim(source, dims.index(symbol))
        block = self.block
        arguments = [] if block is None or symbol == "?" else block.arguments
        for argument in arguments:
            if argument.type is INDEX and argument.name == symbol:
                return argument
        for argument in arguments:
            if isinstance(argument.type, TensorType) and symbol in argument.type.dims:
                return self.dim(argument, argument.type.dims.index(symbol))
        if sizes.is_symbol(symbol):
            return None
        parts = {part: self._find_extent(part, sources) for part in sorted(sizes.symbols(symbol))}
        known = {part: value for part, value in parts.items() if value is not None}
        return sizes.compute(self, symbol, known.__getitem__) if len(known) == len(parts) else None

    def index_value(self, size: Size | Value, *sources: Value) -> int | Value:
        """A size as an entry of a list of numbers and index values."""
        return self._extent(size, sources) if isinstance(size, str) else size

    def reshape(self, x: Value, dims: Dims, extents: Sequence[Value] | None = None) -> Value:
        """x in another shape; `extents` of its dynamic extents, by default those of x with the same names."""
        type = tensor_type(dims, type_of_tensor(x).element)
        if type is x.type:
            return x
        given = self.extents(dims, x) if extents is None else extents
        return self._checked(self.create(array.Reshape, x, given, results=[type]))

    def broadcast(
        self, x: Value, dims: Dims, axes: Sequence[int] | None = None, extents: Sequence[Value] | None = None
    ) -> Value:
        """x repeated to a larger shape; `axes`: the result's axes that x's axes are, by default the last ones."""
        type = type_of_tensor(x)
        target = tensor_type(dims, type.element)
        if axes is None:
            axes = range(target.rank - type.rank, target.rank)
        given = self.extents(dims, x) if extents is None else extents
        return self._checked(self.create(array.Broadcast, x, given, axes=list(axes), results=[target]))

    def broadcast_like(self, x: Value, like: Value, axes: Sequence[int] | None = None) -> Value:
        """x repeated to the shape of another tensor."""
        dims = type_of_tensor(like).dims
        return self.broadcast(x, dims, axes, self.extents(dims, x, like))

    def full(self, value: Any, type: TensorType, extents: Sequence[Value] = ()) -> Value:
        """A number at every point: a constant where the shape is known; `extents` as in `iota`."""
        if type.is_static:
            return self.constant(value, type)
        attribute = value if isinstance(value, Attribute) else scalar_attr(value, type.element)
        given = extents or self.extents(type.dims)
        return self._checked(self.create(array.Full, given, value=attribute, results=[type]))

    def full_like(self, value: Any, like: Value, element: Type | None = None) -> Value:
        """A number at every point of the shape of another tensor."""
        type = type_of_tensor(like)
        target = TensorType(type.shape, element or type.element, type.encoding)
        return self.full(value, target, self.extents(type.dims, like))

    def iota(self, type: TensorType, axis: int = 0, extents: Sequence[Value] = ()) -> Value:
        """The subscript along an axis, at every point; `extents` of the dynamic extents, by default what arguments of
        the block say of them."""
        given = extents or self.extents(type.dims)
        return self._checked(self.create(array.Iota, given, axis=axis % type.rank, results=[type]))

    def slice(
        self,
        x: Value,
        starts: Sequence[Size | Value] | None = None,
        stops: Sequence[Size] | None = None,
        steps: Sequence[int] | None = None,
        dims: Dims | None = None,
        sources: Sequence[Value] = (),
    ) -> Value:
        """The elements at range(start, stop, step) of each axis; by default the whole axis.

        Starts and stops may be sizes that are known at run time, starts index values too.  `dims`: the result's shape,
        by default what the stops say; then they lie no further back than the starts.  `sources`: tensors beside x that
        have its extents.
        """
        type = type_of_tensor(x)
        rank = type.rank
        first = [0] * rank if starts is None else list(starts)
        by = [1] * rank if steps is None else list(steps)
        last: list[Size] = list(type.dims) if stops is None else list(stops)
        last = [d if s == DYNAMIC else s for s, d in zip(last, type.dims, strict=False)] + last[rank:]
        if not len(first) == len(last) == len(by) == rank:
            raise ShapeError(
                f"array.slice: needs a start, a stop and a step for each axis of {shape_text(type.dims)}", self.location
            )
        if dims is None:
            dims = [_count(*limits) for limits in zip(first, last, by, strict=True)]
        else:
            ranges = zip(first, dims, by, strict=True)
            last = [
                _stop(start, n, step) if isinstance(start, int) and isinstance(n, int) else DYNAMIC
                for start, n, step in ranges
            ]
        ends = [
            stop if isinstance(stop, int) and isinstance(start, int) and isinstance(count, int) else DYNAMIC
            for start, stop, count in zip(first, last, dims, strict=True)
        ]
        given = [self.index_value(s, x) for s in first]
        target = tensor_type(dims, type.element)
        open_ = [
            d
            for start, d, extent, step in zip(given, dims, type.dims, by, strict=True)
            if isinstance(d, str) and not (start == 0 and step == 1 and d == extent)
        ]
        op = self.create(
            array.Slice,
            x,
            mixed.split(given)[1],
            self.extents(open_, x, *sources),
            starts=mixed.fixed(given),
            stops=ends,
            steps=by,
            results=[target],
        )
        return self._checked(op)

    def pad(
        self,
        x: Value,
        low: Sequence[Size | Value],
        high: Sequence[Size] | None = None,
        interior: Sequence[int] | None = None,
        value: Attribute | None = None,
        dims: Dims | None = None,
        sources: Sequence[Value] = (),
    ) -> Value:
        """x with a margin; the margins before it may be sizes or index values, those behind it sizes.

        `dims`: the result's shape, which says the margins behind, or by default follows from them.  `sources`: tensors
        beside x that have its extents.
        """
        type = type_of_tensor(x)
        gaps = [0] * type.rank if interior is None else list(interior)
        if dims is not None:
            margins = zip(type.dims, low, dims, gaps, strict=False)
            high = [DYNAMIC if isinstance(n, Value) else _behind(d, n, total, gap) for d, n, total, gap in margins]
        if high is None or not len(low) == len(high) == len(gaps) == type.rank:
            raise ShapeError(
                f"array.pad: needs low, high and interior padding for each axis of {shape_text(type.dims)}",
                self.location,
            )
        if dims is None:
            dims = [_padded(*margins) for margins in zip(type.dims, low, high, gaps, strict=True)]
        given = [self.index_value(n, x) for n in low]
        after = [n if isinstance(n, int) else DYNAMIC for n in high]
        target = tensor_type(dims, type.element)
        open_ = [
            d
            for n, end, gap, d, extent in zip(given, after, gaps, dims, type.dims, strict=True)
            if isinstance(d, str) and not (n == 0 and end == 0 and gap == 0 and d == extent)
        ]
        op = self.create(
            array.Pad,
            x,
            mixed.split(given)[1],
            self.extents(open_, x, *sources),
            low=mixed.fixed(given),
            high=after,
            interior=gaps if any(gaps) else None,
            value=scalar_attr(0, type.element) if value is None else value,
            results=[target],
        )
        return self._checked(op)

    def concat(self, inputs: Sequence[Value], axis: int, dims: Dims | None = None) -> Value:
        """Tensors one after another along an axis.  `dims`: the result's shape, by default with the sum of extents."""
        if not inputs:
            raise ShapeError("array.concat: needs at least one operand", self.location)
        types = [type_of_tensor(v) for v in inputs]
        rank = types[0].rank
        axis = axis + rank if axis < 0 else axis
        if dims is None:
            own = types[0].dims
            total = sizes.plus(*[t.dims[axis] if 0 <= axis < t.rank else 0 for t in types])
            dims = [total if i == axis else d for i, d in enumerate(own)]
        target = tensor_type(dims, types[0].element)
        open_ = [d for i, d in enumerate(dims) if i == axis and isinstance(d, str)]
        return self._checked(
            self.create(array.Concat, inputs, self.extents(open_, *inputs), axis=axis, results=[target])
        )

    @staticmethod
    def _checked(op: TensorOp) -> Value:
        """The result of an op whose result type was given, once it is known to fit."""
        try:
            op.verify_()
        except Exception:
            op.erase()
            raise
        return op.result


def _count(start: Size | Value, stop: Size, step: int) -> Size:
    """The number of elements of a range that is not turned around."""
    if isinstance(start, Value):
        raise TypeError("the extents of a slice that starts at an index value must be given")
    if isinstance(start, int) and isinstance(stop, int):
        return len(range(start, stop, step)) if step else 0
    length = sizes.minus(stop, start) if step > 0 else sizes.minus(start, stop)
    return sizes.quotient(sizes.plus(length, abs(step) - 1), abs(step)) if step else 0


def _stop(start: int, count: int, step: int) -> int:
    """Where a range of so many elements ends."""
    return start + (count - 1) * step + (1 if step > 0 else -1) if count else start


def _behind(extent: Size, low: Size, total: Size, gap: int) -> int:
    """The margin behind that makes an extent another; `DYNAMIC` where that is not a number."""
    rest = sizes.minus(total, _padded(extent, low, 0, gap))
    return rest if isinstance(rest, int) else DYNAMIC


def _padded(extent: Size, low: Size | Value, high: Size, gap: int) -> Size:
    if isinstance(low, Value):
        raise TypeError("the extents of a padding by an index value must be given")
    between = sizes.times(gap, sizes.largest(sizes.minus(extent, 1), 0)) if gap else 0
    return sizes.plus(extent, low, high, between)


def _normal(axes: Any, rank: int) -> Any:
    """Negative axes counted from the end."""
    if isinstance(axes, int):
        return axes + rank if axes < 0 else axes
    return [a + rank if a < 0 else a for a in axes]

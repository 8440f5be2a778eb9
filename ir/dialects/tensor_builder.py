"""A builder of tensor-level ops by name, with Python numbers as operands.

    b = TensorBuilder(block)
    y = b.maximum(x, 0.0)                              # elementwise.maximum
    s = b.reduce_sum(x, axes=[-1], keepdims=True)      # linalg.reduce_sum

Every op of `elementwise`, `array`, `linalg` and `loss` is a method, its operands in the order of its fields, its
properties keywords.  A number becomes a 0-d constant of the first tensor operand's element type; negative axes count
from the end.  The method gives the op's result, or a tuple of them.  Ops whose result types are given have
methods of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..attributes import Attribute, DenseAttr, scalar_attr
from ..builder import Builder
from ..definition import MANY, ONE, Op
from ..types import TensorType, Type
from ..values import Value
from . import array, elementwise, linalg, loss
from .shapes import shape_text, tensor_type
from .tensor_op import TensorOp, type_of_tensor

Dims = Sequence[int | str]


def _method_classes() -> dict[str, type[Op]]:
    found: dict[str, type[Op]] = {}
    for module in (elementwise, array, linalg, loss):
        for name in module.__all__:
            cls = getattr(module, name)
            if "name" in vars(cls):
                found[cls.name.partition(".")[2]] = cls
    return found


METHODS = _method_classes()
"""Method name -> op class."""


class TensorBuilder(Builder):
    """See the module."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        cls = METHODS.get(name)
        if cls is None:
            raise AttributeError(f"no tensor-level op has the name '{name}'")

        def build(*operands: Any, **properties: Any) -> Any:
            return self.apply(cls, *operands, **properties)

        return build

    def apply(self, cls: type[Op], *operands: Any, **properties: Any) -> Any:
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
    def _reference(op: type[Op], groups: Sequence[Any]) -> TensorType | None:
        """The type that numbers take after: that of the first tensor operand (of `where`: the first value)."""
        for group in groups[1:] if op is elementwise.Where else groups:
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
        from .reference import to_attribute

        assert type is None or isinstance(type, TensorType)
        return self.value(array.Constant, value=to_attribute(value, type))

    @staticmethod
    def number(value: float, like: Value) -> Attribute:
        """A number as an attribute of a tensor's element type."""
        return scalar_attr(value, type_of_tensor(like).element)

    def cast(self, x: Value, to: Type) -> Value:
        """x with the element type `to`; x itself when it has it."""
        return x if type_of_tensor(x).element is to else self.value(elementwise.Cast, x, to=to)

    def dim(self, x: Value, axis: int) -> Value:
        """The extent of an axis as an index value."""
        return self.value(array.Dim, x, axis=axis % type_of_tensor(x).rank)

    def extents(self, dims: Dims, *sources: Value) -> list[Value]:
        """Index values for the dynamic extents of `dims`, read off tensors that have extents of the same name."""
        return [self._extent(d, sources) for d in dims if isinstance(d, str)]

    def _extent(self, symbol: str, sources: Sequence[Value]) -> Value:
        for source in sources:
            dims = type_of_tensor(source).dims
            if symbol in dims:
                return self.dim(source, dims.index(symbol))
        shapes = ", ".join(shape_text(type_of_tensor(s).dims) for s in sources)
        raise ValueError(f"no tensor of the shapes {shapes} has the extent {symbol}")

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
        """A number at every point: a constant where the shape is known."""
        if type.is_static:
            return self.constant(value, type)
        attribute = value if isinstance(value, Attribute) else scalar_attr(value, type.element)
        return self._checked(self.create(array.Full, extents, value=attribute, results=[type]))

    def full_like(self, value: Any, like: Value, element: Type | None = None) -> Value:
        """A number at every point of the shape of another tensor."""
        type = type_of_tensor(like)
        target = TensorType(type.shape, element or type.element, type.encoding)
        return self.full(value, target, self.extents(type.dims, like))

    def iota(self, type: TensorType, axis: int = 0, extents: Sequence[Value] = ()) -> Value:
        """The subscript along an axis, at every point."""
        return self._checked(self.create(array.Iota, extents, axis=axis % type.rank, results=[type]))

    def slice(
        self,
        x: Value,
        starts: Sequence[int] | None = None,
        stops: Sequence[int] | None = None,
        steps: Sequence[int] | None = None,
    ) -> Value:
        """The elements at range(start, stop, step) of each axis; by default the whole axis."""
        shape = type_of_tensor(x).shape
        return self.value(
            array.Slice,
            x,
            starts=[0] * len(shape) if starts is None else starts,
            stops=shape if stops is None else stops,
            steps=[1] * len(shape) if steps is None else steps,
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


def _normal(axes: Any, rank: int) -> Any:
    """Negative axes counted from the end."""
    if isinstance(axes, int):
        return axes + rank if axes < 0 else axes
    return [a + rank if a < 0 else a for a in axes]

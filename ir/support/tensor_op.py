"""What all tensor-level ops share: checks with precise messages, extents of results, folding of small constants.

A tensor-level op states what it means to the lower levels in one of these ways:

    scalar(self, b, *operands)   an elementwise op at one point
    point(self, k)               any op at one point of its result
    view(self, k, subscripts)    a view: subscripts of the result -> subscripts of operand 0
    scatter(self, k)             points of an operand, each adding to an element of the result
    expand(self, b)              the op as simpler tensor-level ops
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, SupportsInt

from ..attributes import Attribute, DenseAttr
from ..definition import CONSTANT, FoldResult, Op, TypeConstraint
from ..diagnostics import DTypeError, ShapeError
from ..interfaces import Evaluates
from ..types import BF16, F16, F32, I1, I64, UI64, FloatType, IntegerType, TensorType, Type
from ..values import Value
from .shapes import shape_text

NUMBER = TypeConstraint("integer or float", lambda t: isinstance(t, FloatType | IntegerType) and t is not I1)
FLOATS = TypeConstraint("float", lambda t: isinstance(t, FloatType))
INTEGERS = TypeConstraint("integer", lambda t: isinstance(t, IntegerType) and t is not I1)
BOOLS = TypeConstraint("i1", lambda t: t is I1)
ELEMENTS = TypeConstraint("integer, float or i1", lambda t: isinstance(t, FloatType | IntegerType))

FOLD_LIMIT = 1024
"""The most elements of a result that folding computes."""


def accumulator(element: Type) -> Type:
    """The type that sums of `element` are accumulated in: f32 for f16 and bf16."""
    return F32 if element is F16 or element is BF16 else element


def sum_element(element: Type) -> Type:
    """The element type of a sum: integers and i1 sum to 64 bits (array API), floats to their own type."""
    if isinstance(element, IntegerType):
        return UI64 if element.signedness == "u" else I64
    return element


def type_of_tensor(value: Value) -> TensorType:
    """The type of a value that is known to be a tensor."""
    assert isinstance(value.type, TensorType)
    return value.type


class TensorOp(Op):
    """Base of the tensor-level ops; `accepts` says the element types of its operands, but for those that are fixed."""

    accepts: ClassVar[TypeConstraint] = FLOATS
    first_value: ClassVar[int] = 0
    """The first operand whose element type numbers in the place of operands take on."""

    def shape_error(self, message: str) -> ShapeError:
        """A ShapeError that names the op."""
        return ShapeError(f"{self.name}: {message}", self.location)

    def dtype_error(self, message: str) -> DTypeError:
        """A DTypeError that names the op."""
        return DTypeError(f"{self.name}: {message}", self.location)

    def tensor(self, name: str, value: Value | None = None, elements: TypeConstraint = ELEMENTS) -> TensorType:
        """The type of the operand `name`, checked to be a tensor of such elements."""
        type = getattr(self, name).type if value is None else value.type
        if not isinstance(type, TensorType):
            raise self.dtype_error(f"{name} must be a tensor, got {type}")
        if type.element not in elements:
            raise self.dtype_error(f"{name} must have {elements.description} elements, got {type}")
        return type

    def same_elements(self, *names: str) -> None:
        """Refuse operands of different element types."""
        types = {n: type_of_tensor(getattr(self, n)).element for n in names}
        if len(set(types.values())) > 1:
            listed = ", ".join(f"{n} {t}" for n, t in types.items())
            raise self.dtype_error(f"element types differ ({listed}); cast explicitly")

    def checked_axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """An axis in 0 .. rank - 1."""
        if not 0 <= axis < rank:
            raise self.shape_error(f"{what} {axis} is out of range for {rank} dimensions")
        return axis

    def checked_axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Distinct axes in 0 .. rank - 1."""
        for axis in axes:
            self.checked_axis(axis, rank)
        if len(set(axes)) != len(axes):
            raise self.shape_error(f"axes {list(axes)} repeat")
        return tuple(axes)

    def result_extent(self, axis: int, result: int = 0) -> int | Value | tuple[Value, int]:
        """The extent of a result's axis: a number, an index value, or `(operand, axis)` that has the same extent."""
        type = type_of_tensor(self.results[result])
        extent = type.dims[axis]
        if isinstance(extent, int):
            return extent
        tensors = [v for v in self.operands if isinstance(v.type, TensorType)]
        found = [(v, i) for v in tensors for i, d in enumerate(type_of_tensor(v).dims) if d == extent]
        if not found or (extent == "?" and len(found) > 1):
            raise self.shape_error(f'extent {axis} of {shape_text(type.dims)} needs a name: tensor<?xf32, ["n"]>')
        return found[0]

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.fold_constants(constants)

    def fold_constants(self, constants: Sequence[Attribute | None]) -> FoldResult:
        """The results as constants when all operands are and the results are small."""
        types: list[TensorType] = []
        for r in self.results:
            if not isinstance(r.type, TensorType) or not r.type.is_static or r.type.num_elements > FOLD_LIMIT:
                return None
            types.append(r.type)
        if not isinstance(self, Evaluates) or not constants or not all(isinstance(c, DenseAttr) for c in constants):
            return None
        import numpy as np

        from ..numeric import constant  # late
        from .reference import to_attribute  # late

        with np.errstate(all="ignore"):
            values = self.evaluate(*[constant(c) for c in constants if isinstance(c, DenseAttr)])
        if len(types) == 1:
            return to_attribute(values, types[0])
        return [to_attribute(v, t) for v, t in zip(values, types, strict=True)]


class ResultTyped(TensorOp):
    """An op whose result type is given, not inferred: its operand field `extents` holds one index value for each
    dynamic extent of the result, in order, but for those that `is_given` says to follow from other operands."""

    extents_field: ClassVar[str] = "extents"

    def dynamic_extents(self) -> tuple[Value, ...]:
        """The index values of the result's dynamic extents."""
        return getattr(self, self.extents_field)

    def is_given(self, axis: int) -> bool:
        """Whether `extents` has a value for an axis of the result, if it is dynamic."""
        return True

    def given_axes(self) -> list[int]:
        """The axes of the result that `extents` is for."""
        dims = type_of_tensor(self.results[0]).dims
        return [axis for axis, d in enumerate(dims) if isinstance(d, str) and self.is_given(axis)]

    def result_extent(self, axis: int, result: int = 0) -> int | Value | tuple[Value, int]:
        extent = type_of_tensor(self.results[result]).dims[axis]
        return extent if isinstance(extent, int) else self.dynamic_extents()[self.given_axes().index(axis)]

    def run_shape(self, extents: Sequence[SupportsInt]) -> tuple[int, ...]:
        """The result's shape when the dynamic extents have these values."""
        rest = iter(extents)
        return tuple(int(next(rest)) if isinstance(d, str) else d for d in type_of_tensor(self.result).dims)

    def verify_(self) -> None:
        dynamic, given = len(self.given_axes()), len(self.dynamic_extents())
        if given != dynamic:
            raise self.error(f"has {dynamic} dynamic extents in its result type and {given} given")


def splat_value(attribute: Attribute | None) -> float | None:
    """The number that all elements of a constant are, or None."""
    if isinstance(attribute, DenseAttr) and attribute.is_splat:
        return getattr(attribute.scalar(), "value")  # noqa: B009
    return None


def splat_number(value: Value) -> float | None:
    """The number that a constant tensor has at every point; None of anything else."""
    op = value.defining_op
    if op is None or CONSTANT not in op.traits:
        return None
    found = splat_value(op.properties.get("value"))
    return None if found is None else float(found)

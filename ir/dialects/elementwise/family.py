"""The families of elementwise ops: each states how its members are typed, evaluated and written as scalars."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...attributes import Attribute
from ...definition import COMMUTATIVE, PURE, TENSOR, FoldResult, TypeConstraint, operand, result
from ...interfaces import BoundsErrors, Evaluates, NoDerivative, PointForm, Tame
from ...support.error_bounds import Bounded, certain, of_function
from ...support.reference import function, narrow, wide
from ...support.shapes import broadcast, shape_text, tensor_type
from ...support.tensor_op import BOOLS, FLOATS, NUMBER, TensorOp, accumulator, splat_value, type_of_tensor
from ...types import I1, FloatType, TensorType, Type, is_unsigned, with_element
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.point import PointBuilder
    from ...builders.scalar import ScalarBuilder
    from ...builders.subscripts import AffineSubscript


def subscripts(axes: Sequence[AffineSubscript], operand: TensorType, result: TensorType) -> list[AffineSubscript | int]:
    """Where a broadcast operand is read at a point of the result: missing axes dropped, stretched axes at 0."""
    missing = result.rank - operand.rank
    return [
        0 if own == 1 and full != 1 else axis
        for axis, own, full in zip(axes[missing:], operand.dims, result.dims[missing:], strict=True)
    ]


class Elementwise(TensorOp, PointForm, Evaluates):
    """One value of the result for each point, from the operands' values there; shapes broadcast as in NumPy.

    `accepts` is the constraint on the operands' element types, which must be equal.
    """

    traits = frozenset({PURE})
    result = result(TENSOR)
    accepts: ClassVar[TypeConstraint] = NUMBER

    @abstractmethod
    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        """The op at one point."""

    def result_element(self) -> Type:
        """The element type of the result."""
        return self.element

    @property
    def element(self) -> Type:
        """The element type of the first operand."""
        return type_of_tensor(self.operands[0]).element

    @property
    def is_float(self) -> bool:
        """Whether the first operand has float elements."""
        return isinstance(self.element, FloatType)

    def all_alike(self) -> bool:
        """Whether the operands have one type: then nothing is broadcast, and one check serves for all."""
        first, *others = self.operands
        return all(v.type is first.type for v in others)

    def check_elements(self) -> None:
        """Raise DTypeError when the operands' element types do not fit."""
        for name, value in self.named_operands():
            self.tensor(name, value, self.accepts)
        if not self.all_alike():
            self.same_elements(*[name for name, _ in self.named_operands()])

    def infer(self) -> Sequence[Type]:
        first = self.operands[0].type
        if isinstance(first, TensorType) and first.element in self.accepts and self.all_alike():
            return [with_element(first, self.result_element())]
        self.check_elements()
        types = [type_of_tensor(v) for v in self.operands]
        dims = broadcast(*[t.dims for t in types])
        if dims is None:
            shapes = [shape_text(t.dims) for t in types]
            raise self.shape_error(f"shapes {', '.join(shapes[:-1])} and {shapes[-1]} do not broadcast")
        return [tensor_type(dims, self.result_element())]

    def point(self, k: PointBuilder) -> Value:
        """The op at one point of a kernel."""
        target = type_of_tensor(self.result)
        loads = [k.load(i, subscripts(k.axes, type_of_tensor(v), target)) for i, v in enumerate(self.operands)]
        return self.scalar(k, *loads)

    def result_extent(self, axis: int, result: int = 0) -> int | Value | tuple[Value, int]:
        target = type_of_tensor(self.result)
        extent = target.dims[axis]
        if isinstance(extent, int):
            return extent
        for value in self.operands:
            own = axis - target.rank + type_of_tensor(value).rank
            if own >= 0 and type_of_tensor(value).dims[own] == extent:
                return value, own
        raise self.shape_error(f"no operand has the extent of axis {axis} of {target}")


class Unary(Elementwise):
    """Base of elementwise ops of one operand."""

    x = operand(TENSOR)
    assembly = "$x attr-dict `:` signature"


class UnaryFloat(Unary, BoundsErrors):
    """A function of floats: `function` is its name in NumPy and among the scalar builder's math functions."""

    accepts = FLOATS
    function: ClassVar[str] = ""
    slope: ClassVar[float] = math.inf
    """How steep it is at most, anywhere."""

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return getattr(b, self.function)(*operands)

    def formula(self, x: Array) -> Array:
        """The function on float64 arrays."""
        return function(self.function)(x)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return narrow(self.formula(wide(x)), x.dtype)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        error = self.slope * x.error if math.isfinite(self.slope) else np.where(x.error > 0, np.inf, 0.0)
        return of_function(self.formula(x.value), error, unit)


class ComposedFloat(UnaryFloat):
    """A function of floats whose scalar form is a formula of several ops; 16-bit floats are computed in f32 and rounded
    once."""

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        element = self.element
        wide = accumulator(element)
        return b.cast(self.compose(b, b.cast(x, element, wide)), wide, element)

    @abstractmethod
    def compose(self, b: ScalarBuilder, x: Value) -> Value:
        """The function of an f32 or f64."""


class Binary(Elementwise):
    """Two operands of one element type; `function` is the NumPy function."""

    lhs = operand(TENSOR)
    rhs = operand(TENSOR)
    assembly = "$lhs `,` $rhs attr-dict `:` signature"
    function: ClassVar[str] = ""

    def formula(self, lhs: Array, rhs: Array) -> Array:
        """The function on wide arrays."""
        return function(self.function)(lhs, rhs)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return narrow(self.formula(wide(lhs), wide(rhs)), lhs.dtype)


class BinaryArithmetic(Binary):
    """Addition and its like; `identity` is the right operand that changes nothing, bit for bit, in floats."""

    identity: ClassVar[float | None] = None

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return getattr(b, self.name.rpartition(".")[2])(*operands)

    def is_identity(self, attribute: Attribute | None) -> bool:
        """Whether a constant changes nothing: for a float sum that is -0.0, since 0.0 turns -0.0 into 0.0."""
        value = splat_value(attribute)
        if value is None or self.identity is None:
            return False
        return str(value) == str(float(self.identity)) if self.is_float else value == self.identity

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        for kept, other in ((0, 1), (1, 0)) if COMMUTATIVE in self.traits else ((0, 1),):
            if self.operands[kept].type is self.result.type and self.is_identity(constants[other]):
                return self.operands[kept]
        return self.fold_constants(constants)


class Comparison(Binary, Tame, NoDerivative, BoundsErrors):
    """A comparison: i1 elements.  `predicate` is that of floats; that of integers is made from its last letters."""

    predicate: ClassVar[str] = ""

    def result_element(self) -> Type:
        return I1

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        predicate = self.predicate
        if not self.is_float:
            relation = predicate[1:]
            sign = "" if relation in ("eq", "ne") else "u" if is_unsigned(self.element) else "s"
            predicate = sign + relation
        return b.cmp(predicate, *operands)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.asarray(self.formula(wide(lhs), wide(rhs)), bool)

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        """Right only where no admissible error turns the comparison."""
        import numpy as np

        (a, ea), (b, eb) = lhs, rhs
        apart = abs(np.subtract(a, b, dtype=np.float64))
        return certain(self.evaluate(a, b), (apart > ea + eb) | ((ea == 0) & (eb == 0)))


class Logical(Binary, Tame, NoDerivative, BoundsErrors):
    """Base of elementwise logical ops, on i1."""

    traits = frozenset({PURE, COMMUTATIVE})
    accepts = BOOLS

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        return Bounded(self.evaluate(lhs.value, rhs.value), lhs.error + rhs.error)

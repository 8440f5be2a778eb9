"""Constants, filled tensors, places along an axis; the extent of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, scalar_attr
from ...definition import CONSTANT, INDEX_, PURE, TENSOR, FoldResult, attr, integer, operand, result, variadic_operand
from ...interfaces import BoundsErrors, Evaluates, NoDerivative, PointForm, Tame
from ...numeric import constant as constant_array
from ...numeric import dtype
from ...support.error_bounds import Bounded, exact, wide
from ...support.reference import narrow, to_attribute
from ...support.tensor_op import FOLD_LIMIT, NUMBER, ResultTyped, TensorOp, type_of_tensor
from ...types import I1, I64, INDEX, FloatType, TensorType, Type, signless
from ...values import Value

if TYPE_CHECKING:
    import numpy as np

    from ...arrays import Array
    from ...builders.point import PointBuilder


class Constant(TensorOp, Evaluates, Tame, NoDerivative, BoundsErrors):
    """The elements of a dense attribute; a splat is a number that every point has."""

    name = "array.constant"
    traits = frozenset({PURE, CONSTANT})
    value = attr(DenseAttr)
    result = result(TENSOR)
    assembly = "$value attr-dict"

    def infer(self) -> Sequence[Type]:
        if not isinstance(self.value.type, TensorType):
            raise self.dtype_error(f"the value must be a tensor, got {self.value.type}")
        return [self.value.type]

    def evaluate(self) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return constant_array(self.value)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.value

    def bound(self, unit: float, *operands: Bounded) -> Bounded:
        import numpy as np

        return exact(wide(np.asarray(self.evaluate(*[v for v, _ in operands]))))


class Full(ResultTyped, PointForm, Evaluates, Tame, NoDerivative, BoundsErrors):
    """`value` at every point.  `extents`: one index value for each dynamic extent."""

    name = "array.full"
    traits = frozenset({PURE})
    extents = variadic_operand(INDEX_)
    value = attr(Attribute)
    result = result(TENSOR)
    assembly = "(`(` $extents^ `)`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        super().verify_()
        element = type_of_tensor(self.result).element
        if not isinstance(self.value, FloatAttr | IntegerAttr) or self.value.type is not element:
            raise self.error(f"fills {self.result.type} with {self.value}, which is not of type {element}")

    def evaluate(self, *extents: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.full(self.run_shape(extents), constant_array(self.value))

    def point(self, k: PointBuilder) -> Value:
        """The value."""
        element = type_of_tensor(self.result).element
        return k.constant(self.value.value, signless(element))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        type = type_of_tensor(self.result)
        return DenseAttr.splat(type, self.value) if type.is_static else None

    def bound(self, unit: float, *operands: Bounded) -> Bounded:
        import numpy as np

        return exact(wide(np.asarray(self.evaluate(*[v for v, _ in operands]))))


class Iota(ResultTyped, PointForm, Evaluates, Tame, NoDerivative, BoundsErrors):
    """The subscript along `axis` at every point, 0, 1, 2 ..; floats are rounded from it.  `extents` as in `full`."""

    name = "array.iota"
    traits = frozenset({PURE})
    extents = variadic_operand(INDEX_)
    axis = integer(default=0)
    result = result(TENSOR)
    assembly = "(`(` $extents^ `)`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        super().verify_()
        type = type_of_tensor(self.result)
        self.checked_axis(self.axis, type.rank)
        if type.element not in NUMBER:
            raise self.dtype_error(f"counts in integers or floats, not in {type.element}")

    def evaluate(self, *extents: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        shape = self.run_shape(extents)
        element = type_of_tensor(self.result).element
        steps = np.arange(shape[self.axis], dtype=np.float64 if isinstance(element, FloatType) else np.int64)
        steps = narrow(steps, dtype(element)).reshape([-1 if i == self.axis else 1 for i in range(len(shape))])
        return np.broadcast_to(steps, shape)

    def point(self, k: PointBuilder) -> Value:
        """The subscript, as an element."""
        number = k.index_cast(k.value(k.axes[self.axis]), I64)
        return k.cast(number, I64, type_of_tensor(self.result).element)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        type = type_of_tensor(self.result)
        if not type.is_static or type.num_elements > FOLD_LIMIT or type.element is I1:
            return None
        return to_attribute(self.evaluate(), type)

    def bound(self, unit: float, *operands: Bounded) -> Bounded:
        import numpy as np

        return exact(wide(np.asarray(self.evaluate(*[v for v, _ in operands]))))


class Dim(TensorOp, Evaluates, Tame, NoDerivative, BoundsErrors):
    """The extent of x along `axis`, as an index value."""

    name = "array.dim"
    traits = frozenset({PURE})
    x = operand(TENSOR)
    axis = integer()
    result = result(INDEX_)
    assembly = "$x attr-dict `:` type($x)"

    def infer(self) -> Sequence[Type]:
        self.checked_axis(self.axis, self.tensor("x").rank)
        return [INDEX]

    def evaluate(self, x: Array) -> np.int64:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.int64(x.shape[self.axis])

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        extent = type_of_tensor(self.x).dims[self.axis]
        if isinstance(extent, int):
            return scalar_attr(extent, INDEX)
        source = self.x.defining_op
        if isinstance(source, ResultTyped):
            known = source.result_extent(self.axis)
            if isinstance(known, Value):
                return known
        return None

    def bound(self, unit: float, *operands: Bounded) -> Bounded:
        import numpy as np

        return exact(wide(np.asarray(self.evaluate(*[v for v, _ in operands]))))

"""The elementwise cast between element types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...definition import FoldResult, type_
from ...interfaces import BoundsErrors, HasPartials, Tame
from ...numeric import dtype
from ...support.error_bounds import Bounded, certain
from ...support.reference import narrow
from ...support.tensor_op import ELEMENTS, type_of_tensor
from ...types import I1, FloatType, IntegerType, Type
from ...values import Value
from .family import Unary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Cast(Unary, Tame, HasPartials, BoundsErrors):
    """x with the element type `to`.

    Floats are rounded once, to nearest even; floats become integers by truncation, saturating at the ends of the range,
    NaN as 0; integers wrap; i1 is 0 or 1, and everything but zero becomes true.
    """

    name = "elementwise.cast"
    accepts = ELEMENTS
    to = type_()
    assembly = "$x `to` $to attr-dict `:` signature"

    def result_element(self) -> Type:
        if self.to not in ELEMENTS:
            raise self.dtype_error(f"cannot cast to {self.to}")
        return self.to

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return convert(x, self.element, self.to)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.cast(operands[0], self.element, self.to)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.element is self.to:
            return self.x
        inner = self.x.defining_op
        if isinstance(inner, Cast) and inner.element is self.to and is_exact(self.to, self.element):
            return inner.x
        return self.fold_constants(constants)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        source = type_of_tensor(self.x).element
        yield (lambda t: b.cast(t, source)) if isinstance(source, FloatType) else None

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        if not isinstance(self.to, FloatType):
            return certain(self.evaluate(x.value), x.error == 0)
        value = x.value.astype(np.float64)
        if is_exact(self.element, self.to):
            return Bounded(value, x.error)
        return Bounded(value, x.error + unit * (abs(value) + x.error) + self.to.smallest)


def is_exact(narrow: Type, wide: Type) -> bool:
    """Whether every value of `narrow` is one of `wide`, so that the way there and back changes nothing."""
    if isinstance(narrow, FloatType):
        return isinstance(wide, FloatType) and (
            narrow.exponent_bits <= wide.exponent_bits and narrow.mantissa_bits <= wide.mantissa_bits
        )
    assert isinstance(narrow, IntegerType)
    if isinstance(wide, FloatType):
        return narrow.width <= wide.mantissa_bits and narrow.width <= (1 << (wide.exponent_bits - 1)) - 1
    assert isinstance(wide, IntegerType)
    return narrow.width <= wide.width and (narrow is I1 or wide is not I1)


def convert(x: Array, source: Type, target: Type) -> Array:
    """The elements of an array of type `source` as `target`."""
    import numpy as np

    if target is I1:
        return np.asarray(x != 0)
    if isinstance(source, FloatType) and isinstance(target, IntegerType):
        info = np.iinfo(dtype(target))
        whole = np.trunc(x.astype(np.float64))
        # The largest integers are no floats: compare first, convert only what lies inside.
        inside = (whole >= float(info.min)) & (whole < float(info.max) + (1 if info.bits < 64 else 0))
        limits = np.where(whole > 0, info.max, info.min).astype(dtype(target))
        limits = np.where(np.isnan(whole), np.zeros((), dtype(target)), limits)
        return np.where(inside, np.where(inside, whole, 0.0).astype(dtype(target)), limits)
    if isinstance(source, FloatType):
        return narrow(x, dtype(target))
    if isinstance(target, FloatType) and target.width == 16:
        return narrow(x.astype(np.float64), dtype(target))
    return np.asarray(x.astype(dtype(target)))

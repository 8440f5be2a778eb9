"""Comparisons, which give i1, and connectives on i1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...definition import COMMUTATIVE, PURE, Api, FoldResult, Sample
from ...interfaces import BoundsErrors, NoDerivative, Tame
from ...support.error_bounds import Bounded
from ...support.tensor_op import BOOLS, ELEMENTS, FLOATS
from ...values import Value
from .family import Comparison, Logical, Unary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder


class Equal(Comparison):
    """lhs == rhs; NaN equals nothing."""

    name = "elementwise.equal"
    api = Api("equal")
    samples = (Sample("numpy:equal"),)
    traits = frozenset({PURE, COMMUTATIVE})
    accepts = ELEMENTS
    function, predicate = "equal", "oeq"


class NotEqual(Comparison):
    """lhs != rhs; NaN differs from everything."""

    name = "elementwise.not_equal"
    api = Api("not_equal")
    samples = (Sample("numpy:not_equal"),)
    traits = frozenset({PURE, COMMUTATIVE})
    accepts = ELEMENTS
    function, predicate = "not_equal", "une"


class Less(Comparison):
    """lhs < rhs; false for NaN."""

    name = "elementwise.less"
    api = Api("less")
    samples = (Sample("numpy:less"),)
    function, predicate = "less", "olt"


class LessEqual(Comparison):
    """lhs <= rhs; false for NaN."""

    name = "elementwise.less_equal"
    api = Api("less_equal")
    samples = (Sample("numpy:less_equal"),)
    function, predicate = "less_equal", "ole"


class Greater(Comparison):
    """lhs > rhs; false for NaN."""

    name = "elementwise.greater"
    api = Api("greater")
    samples = (Sample("numpy:greater"),)
    function, predicate = "greater", "ogt"


class GreaterEqual(Comparison):
    """lhs >= rhs; false for NaN."""

    name = "elementwise.greater_equal"
    api = Api("greater_equal")
    samples = (Sample("numpy:greater_equal"),)
    function, predicate = "greater_equal", "oge"


class Unordered(Comparison):
    """A comparison that is true where either operand is NaN: the mask of a cotangent that a NaN must not stop."""

    accepts = FLOATS

    def formula(self, lhs: Array, rhs: Array) -> Array:
        return super().formula(lhs, rhs) | (lhs != lhs) | (rhs != rhs)


class GreaterOrNan(Unordered):
    """lhs > rhs, or either is NaN."""

    name = "elementwise.greater_or_nan"
    samples = (Sample("np.greater(lhs, rhs) | np.isnan(lhs) | np.isnan(rhs)"),)
    function, predicate = "greater", "ugt"


class LessOrNan(Unordered):
    """lhs < rhs, or either is NaN."""

    name = "elementwise.less_or_nan"
    samples = (Sample("np.less(lhs, rhs) | np.isnan(lhs) | np.isnan(rhs)"),)
    function, predicate = "less", "ult"


class EqualOrNan(Unordered):
    """lhs == rhs, or either is NaN."""

    name = "elementwise.equal_or_nan"
    samples = (Sample("np.equal(lhs, rhs) | np.isnan(lhs) | np.isnan(rhs)"),)
    function, predicate = "equal", "ueq"


class LogicalAnd(Logical):
    """True where both operands are."""

    name = "elementwise.logical_and"
    api = Api("logical_and", "bool")
    samples = (Sample("numpy:logical_and"),)
    function = "logical_and"

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.and_(*operands)


class LogicalOr(Logical):
    """True where at least one operand is."""

    name = "elementwise.logical_or"
    api = Api("logical_or", "bool")
    samples = (Sample("numpy:logical_or"),)
    function = "logical_or"

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.or_(*operands)


class LogicalXor(Logical):
    """True where exactly one operand is."""

    name = "elementwise.logical_xor"
    api = Api("logical_xor", "bool")
    samples = (Sample("numpy:logical_xor"),)
    function = "logical_xor"

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.xor(*operands)


class LogicalNot(Unary, Tame, NoDerivative, BoundsErrors):
    """True where the operand is false."""

    name = "elementwise.logical_not"
    api = Api("logical_not", "bool")
    samples = (Sample("numpy:logical_not"),)
    accepts = BOOLS

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return np.asarray(np.logical_not(x))

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        return b.xor(x, b.constant(1, x.type))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        inner = self.x.defining_op
        return inner.x if isinstance(inner, LogicalNot) else self.fold_constants(constants)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return Bounded(self.evaluate(x.value), x.error)

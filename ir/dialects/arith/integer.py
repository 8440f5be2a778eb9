"""Integer arithmetic: modulo the width, signedness a matter of the op.

Division by zero, the quotient that overflows, and shifts by the width or more have no meaning upstream; here they give
some value, and are not folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, folded_attr
from ...definition import FoldResult
from ...types import Type, bit_width
from .base import (
    PURE_SAME_COMMUTATIVE,
    IntegerBinary,
    Monoid,
    Number,
    WrappingBinary,
    binary,
    like,
    signed,
    unsigned,
)

if TYPE_CHECKING:
    from ...arrays import Array


class AddI(WrappingBinary, Monoid):
    """lhs + rhs."""

    name = "arith.addi"
    traits = PURE_SAME_COMMUTATIVE
    compute = binary("add")
    neutral = 0
    unit = 0


class SubI(WrappingBinary):
    """lhs - rhs."""

    name = "arith.subi"
    compute = binary("sub")
    neutral = 0

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.lhs is self.rhs:
            return folded_attr(0, self.result.type)
        return super().fold(constants)


class MulI(WrappingBinary, Monoid):
    """lhs * rhs."""

    name = "arith.muli"
    traits = PURE_SAME_COMMUTATIVE
    compute = binary("mul")
    neutral = 1
    absorbing = 0
    unit = 1


class Division(IntegerBinary):
    """A quotient or remainder."""

    cost = 20

    def defined(self, lhs: int, rhs: int, width: int) -> bool:
        overflows = not self.is_unsigned and rhs == -1 and lhs == -(1 << (width - 1))
        return rhs != 0 and not overflows


def _truncated(lhs: Any, rhs: Any) -> Any:
    quotient = lhs // rhs
    return quotient + ((quotient * rhs != lhs) & ((lhs < 0) != (rhs < 0)))


def _remainder(lhs: Number, rhs: Number) -> Number:
    return lhs - _truncated(lhs, rhs) * rhs


def _ceiling(lhs: Any, rhs: Any) -> Any:
    quotient = lhs // rhs
    return quotient + (quotient * rhs != lhs)


class DivSI(Division):
    """The signed quotient, rounded toward zero."""

    name = "arith.divsi"
    compute = binary(_truncated)
    neutral = 1


class DivUI(Division):
    """The unsigned quotient, rounded down."""

    name = "arith.divui"
    is_unsigned = True
    compute = binary("floordiv")
    neutral = 1


class FloorDivSI(Division):
    """The signed quotient, rounded down."""

    name = "arith.floordivsi"
    compute = binary("floordiv")
    neutral = 1


class CeilDivSI(Division):
    """The signed quotient, rounded up."""

    name = "arith.ceildivsi"
    compute = binary(_ceiling)
    neutral = 1


class RemSI(Division):
    """The signed remainder, with the sign of lhs."""

    name = "arith.remsi"
    compute = binary(_remainder)


class RemUI(Division):
    """The unsigned remainder."""

    name = "arith.remui"
    is_unsigned = True
    compute = binary("mod")


class Bitwise(IntegerBinary):
    """A commutative op on bits."""

    traits = PURE_SAME_COMMUTATIVE


class AndI(Bitwise, Monoid):
    """Bitwise and."""

    name = "arith.andi"
    compute = binary("and_")
    neutral = -1
    absorbing = 0
    unit = -1

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.lhs if self.lhs is self.rhs else super().fold(constants)


class OrI(Bitwise, Monoid):
    """Bitwise or."""

    name = "arith.ori"
    compute = binary("or_")
    neutral = 0
    absorbing = -1
    unit = 0

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.lhs if self.lhs is self.rhs else super().fold(constants)


class XOrI(Bitwise, Monoid):
    """Bitwise exclusive or."""

    name = "arith.xori"
    compute = binary("xor")
    neutral = 0
    unit = 0


class Shift(IntegerBinary):
    """A shift of lhs by rhs, which counts as unsigned."""

    neutral = 0

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        value = unsigned(lhs) if self.is_unsigned else signed(lhs)
        count = unsigned(rhs).astype(value.dtype)
        return like(type(self).compute(value, count), lhs)

    def defined(self, lhs: int, rhs: int, width: int) -> bool:
        return 0 <= rhs < width


class ShLI(Shift):
    """lhs << rhs."""

    name = "arith.shli"
    compute = binary("lshift")


class ShRSI(Shift):
    """lhs >> rhs, filled with the sign."""

    name = "arith.shrsi"
    compute = binary("rshift")


class ShRUI(Shift):
    """lhs >> rhs, filled with zeros."""

    name = "arith.shrui"
    is_unsigned = True
    compute = binary("rshift")


class IntegerExtremum(IntegerBinary):
    """A maximum or minimum."""

    traits = PURE_SAME_COMMUTATIVE
    function: str
    """NumPy's function."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        import numpy as np

        view = unsigned if self.is_unsigned else signed
        return like(getattr(np, self.function)(view(lhs), view(rhs)), lhs)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.lhs if self.lhs is self.rhs else super().fold(constants)


class MaxSI(IntegerExtremum, Monoid):
    """The greater one, signed."""

    name = "arith.maxsi"
    function = "maximum"
    compute = binary(max)

    @classmethod
    def unit_of(cls, element: Type) -> float:
        return -(1 << (bit_width(element) - 1))


class MaxUI(IntegerExtremum, Monoid):
    """The greater one, unsigned."""

    name = "arith.maxui"
    function, is_unsigned = "maximum", True
    compute = binary(max)
    unit = 0


class MinSI(IntegerExtremum, Monoid):
    """The lesser one, signed."""

    name = "arith.minsi"
    function = "minimum"
    compute = binary(min)

    @classmethod
    def unit_of(cls, element: Type) -> float:
        return (1 << (bit_width(element) - 1)) - 1


class MinUI(IntegerExtremum, Monoid):
    """The lesser one, unsigned."""

    name = "arith.minui"
    function, is_unsigned = "minimum", True
    compute = binary(min)
    unit = -1

"""Conversions between types of scalars and, element by element, of vectors and tensors.

A float out of an integer's range has no integer upstream.  Here it gives the nearest one, and NaN gives 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from ...attributes import Attribute, FloatAttr, IntegerAttr, folded_attr, scalar_attr
from ...definition import (
    ELEMENTWISE,
    FLOAT_LIKE,
    PURE,
    SIGNLESS_LIKE,
    FoldResult,
    Op,
    TypeConstraint,
    operand,
    result,
)
from ...fields import Operand, Result
from ...interfaces import Evaluates
from ...numeric import dtype, is_bool, round_to, where
from ...types import FloatType, IndexType, Type, bit_width, element_type, with_element
from .base import as_signed, as_unsigned, number, signed, unsigned

if TYPE_CHECKING:
    from ...arrays import Array, DType

ASSEMBLY = "$in_ attr-dict `:` type($in_) `to` type($out)"


class Cast(Op, Evaluates):
    """One value to another type, shapes equal."""

    traits = frozenset({PURE, ELEMENTWISE})
    assembly = ASSEMBLY
    widens: ClassVar[bool | None] = None
    """Whether the result must have more bits, must have fewer, or may have any number."""
    inverse: ClassVar[str] = ""
    """The cast that this one undoes exactly, so that `this(inverse(x))` of x's type is x."""

    def verify_(self) -> None:
        source, target = self.operands[0].type, self.results[0].type
        if with_element(source, element_type(target)) is not target:
            raise self.error(f"cannot change the shape: {source} to {target}")
        if self.widens is not None and (bit_width(target) > bit_width(source)) is not self.widens:
            raise self.error(f"needs a {'wider' if self.widens else 'narrower'} result: {source} to {target}")

    @abstractmethod
    def convert(self, value: float, source: Type, target: Type) -> float | None:
        """A Python number of an element type as one of another, or None when it is not to be folded."""

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        before, after = self.operands[0], self.results[0]
        earlier = before.defining_op
        if earlier is not None and earlier.name == self.inverse and earlier.operands[0].type is after.type:
            return earlier.operands[0]
        value = number(constants[0])
        if value is None:
            return None
        converted = self.convert(value, element_type(before.type), element_type(after.type))
        return None if converted is None else folded_attr(converted, after.type)


def cast(source: TypeConstraint, target: TypeConstraint) -> tuple[Operand, Result]:
    """The operand and the result of a cast."""
    return operand(source), result(target)


class ExtF(Cast):
    """A float as a wider one; exact."""

    name = "arith.extf"
    in_, out = cast(FLOAT_LIKE, FLOAT_LIKE)
    widens = True

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return value.astype(dtype(self.results[0].type))

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return None if value != value else value


class TruncF(Cast):
    """A float as a narrower one, rounded once to nearest even; NaN stays NaN."""

    name = "arith.truncf"
    in_, out = cast(FLOAT_LIKE, FLOAT_LIKE)
    widens = False
    inverse = "arith.extf"

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return round_to(value, dtype(self.results[0].type))

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return None if value != value else value


class ExtSI(Cast):
    """A signed integer as a wider one."""

    name = "arith.extsi"
    in_, out = cast(SIGNLESS_LIKE, SIGNLESS_LIKE)
    widens = True

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return signed(value).astype(dtype(self.results[0].type))

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return as_signed(int(value), bit_width(source))


class ExtUI(Cast):
    """An unsigned integer as a wider one."""

    name = "arith.extui"
    in_, out = cast(SIGNLESS_LIKE, SIGNLESS_LIKE)
    widens = True

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return unsigned(value).astype(dtype(self.results[0].type))

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return as_unsigned(int(value), bit_width(source))


def _low_bits(value: Array, type: Type) -> Array:
    target = dtype(type)
    return (value & 1).astype(bool) if is_bool(target) else value.astype(target)


class TruncI(Cast):
    """The low bits of an integer."""

    name = "arith.trunci"
    in_, out = cast(SIGNLESS_LIKE, SIGNLESS_LIKE)
    widens = False

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return _low_bits(value, self.results[0].type)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return value

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        source = self.operands[0].defining_op
        if isinstance(source, ExtSI | ExtUI) and source.operands[0].type is self.results[0].type:
            return source.operands[0]
        return super().fold(constants)


def _integer_to_float(value: Array, type: Type) -> Array:
    """Rounded once: beyond 2**53 a sticky bit stands for the bits that float64 has no room for."""
    import numpy as np

    target = dtype(type)
    if target.itemsize > 2:
        return value.astype(target)
    if value.dtype.itemsize == 8:
        large = value >= value.dtype.type(1 << 53)
        if value.dtype.kind == "i":
            large = large | (value < value.dtype.type(-(1 << 53)))
        low = value & value.dtype.type(0xFFF)
        jammed = (value - low) | ((low != 0).astype(value.dtype) << value.dtype.type(11))
        value = where(large, jammed, value)
    return round_to(value.astype(np.float64), target)


class SIToFP(Cast):
    """A signed integer as the nearest float."""

    name = "arith.sitofp"
    in_, out = cast(SIGNLESS_LIKE, FLOAT_LIKE)

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return _integer_to_float(signed(value), self.results[0].type)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return _exact_float(as_signed(int(value), bit_width(source)))


class UIToFP(Cast):
    """An unsigned integer as the nearest float."""

    name = "arith.uitofp"
    in_, out = cast(SIGNLESS_LIKE, FLOAT_LIKE)

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return _integer_to_float(unsigned(value), self.results[0].type)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return _exact_float(as_unsigned(int(value), bit_width(source)))


def _exact_float(value: int) -> float | None:
    return float(value) if abs(value) <= 1 << 53 else None


def _saturate(value: Array, low: int, high: int, integer: str | DType) -> Array:
    import numpy as np

    wide = np.trunc(value.astype(np.float64))
    inside = (wide >= low) & (wide < high + 1.0)
    least, most, zero = (np.asarray(v, integer) for v in (low, high, 0))
    bound = where(wide > 0, most, where(wide < 0, least, zero))
    return where(inside, where(inside, wide, 0.0).astype(integer), bound)


class FloatToInteger(Cast):
    """A float rounded toward zero; out of range the nearest integer, NaN as 0."""

    is_unsigned: ClassVar[bool]

    def bounds(self, type: Type) -> tuple[int, int]:
        """The least and the greatest integer of an element type."""
        width = bit_width(type)
        return (0, (1 << width) - 1) if self.is_unsigned else (-(1 << (width - 1)), (1 << (width - 1)) - 1)

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        type = self.results[0].type
        target = dtype(type)
        if is_bool(target):
            low, high = self.bounds(type)
            return _saturate(value, low, high, "i1") != 0
        working = f"u{target.itemsize}" if self.is_unsigned else target
        return _saturate(value, *self.bounds(type), working).view(target)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        low, high = self.bounds(target)
        if value != value:
            return 0
        if math.isinf(value):
            return high if value > 0 else low
        return min(max(int(value), low), high)


class FPToSI(FloatToInteger):
    """A float as a signed integer."""

    name = "arith.fptosi"
    in_, out = cast(FLOAT_LIKE, SIGNLESS_LIKE)
    is_unsigned = False


class FPToUI(FloatToInteger):
    """A float as an unsigned integer."""

    name = "arith.fptoui"
    in_, out = cast(FLOAT_LIKE, SIGNLESS_LIKE)
    is_unsigned = True


class Bitcast(Cast):
    """The same bits as another type of the same width."""

    name = "arith.bitcast"
    in_, out = operand(), result()
    inverse = "arith.bitcast"

    def verify_(self) -> None:
        super().verify_()
        source, target = self.operands[0].type, self.results[0].type
        if bit_width(source) != bit_width(target):
            raise self.error(f"needs equal widths: {source} to {target}")

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return value.view(dtype(self.results[0].type))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.operands[0].type is self.results[0].type:
            return self.operands[0]
        return super().fold(constants)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        if isinstance(source, FloatType) and value != value:
            return None
        bits = _bits(scalar_attr(value, source))
        if isinstance(target, FloatType):
            found = FloatAttr.from_bits(bits, target).value
            return found if found == found else None
        return bits


def _bits(attribute: FloatAttr | IntegerAttr) -> int:
    if isinstance(attribute, FloatAttr):
        return attribute.bits
    return as_unsigned(attribute.value, bit_width(attribute.type))


class IndexCast(Cast):
    """An integer as an index or back, with its sign; the low bits where the target is narrower."""

    name = "arith.index_cast"
    in_, out = cast(SIGNLESS_LIKE, SIGNLESS_LIKE)

    def verify_(self) -> None:
        super().verify_()
        elements = [element_type(self.operands[0].type), element_type(self.results[0].type)]
        if sum(isinstance(e, IndexType) for e in elements) != 1:
            raise self.error(f"needs one index and one integer: {elements[0]} to {elements[1]}")

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return _low_bits(signed(value), self.results[0].type)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return as_signed(int(value), bit_width(source))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        source = self.operands[0].defining_op
        if isinstance(source, type(self)) and source.operands[0].type is self.results[0].type:
            # Through an index nothing is lost; through a narrow integer it may be.
            if isinstance(element_type(source.results[0].type), IndexType) or bit_width(source.results[0].type) == 64:
                return source.operands[0]
        return super().fold(constants)


class IndexCastUI(IndexCast):
    """An unsigned integer as an index or back."""

    name = "arith.index_castui"

    def evaluate(self, value: Array) -> Array:
        """The op on a NumPy scalar or array."""
        return _low_bits(unsigned(value), self.results[0].type)

    def convert(self, value: float, source: Type, target: Type) -> float | None:
        return as_unsigned(int(value), bit_width(source))

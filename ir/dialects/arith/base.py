"""What the arithmetic ops share: operand shapes, folding of constants, monoids, and the two views of an integer."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from ...attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr, constant_attr, folded_attr
from ...definition import (
    COMMUTATIVE,
    ELEMENTWISE,
    FLOAT_LIKE,
    PURE,
    SAME_TYPE,
    SIGNLESS_LIKE,
    FoldResult,
    Op,
    operand,
    result,
)
from ...interfaces import Evaluates, MonoidOp
from ...numeric import is_bool
from ...support.dialect_properties import fast_math, overflow_flags
from ...types import Type, bit_width, element_type

if TYPE_CHECKING:
    from ...arrays import Array

Number = TypeVar("Number", int, float, "Array")

PURE_SAME = frozenset({PURE, SAME_TYPE, ELEMENTWISE})
PURE_SAME_COMMUTATIVE = frozenset({PURE, SAME_TYPE, ELEMENTWISE, COMMUTATIVE})

BINARY_FLOAT = "$lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($result)"
BINARY_INTEGER = "$lhs `,` $rhs attr-dict `:` type($result)"
BINARY_WRAPPING = "$lhs `,` $rhs (`overflow` `` $overflowFlags^)? attr-dict `:` type($result)"


def number(attribute: Attribute | None) -> float | None:
    """The Python number that a scalar or splat constant holds, else None."""
    if isinstance(attribute, DenseAttr) and attribute.is_splat:
        attribute = attribute.scalar()
    return attribute.value if isinstance(attribute, FloatAttr | IntegerAttr) else None


class BinaryFunction(Protocol):
    """Two Python numbers, or two NumPy values of one dtype, to one."""

    def __call__(self, lhs: Number, rhs: Number, /) -> Number: ...


def binary(function: str | BinaryFunction) -> BinaryFunction:
    """The function that a class body names: as it is, or a string for one of Python's operators."""
    return getattr(operator, function) if isinstance(function, str) else function


class Monoid(Op, MonoidOp):
    """An associative op with an identity, which a reduction may fold with."""

    unit: ClassVar[float] = 0
    """The identity as a Python number, where it is the same for all types."""

    @classmethod
    def unit_of(cls, element: Type) -> float:
        """The identity for an element type, as a Python number."""
        return cls.unit

    @classmethod
    def identity(cls, type: Type) -> Attribute:
        """The identity as a constant of `type`; a sum's is +0.0."""
        return constant_attr(cls.unit_of(element_type(type)), type)


class FloatBinary(Op, Evaluates):
    """Two floats to one, element by element, rounded once to nearest even."""

    traits = PURE_SAME
    lhs = operand(FLOAT_LIKE)
    rhs = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    fastmath = fast_math()
    assembly = BINARY_FLOAT

    compute: ClassVar[BinaryFunction]
    """The op on two Python numbers, and on two NumPy values."""
    neutral: ClassVar[float | None] = None
    """A right operand, compared with its sign, that leaves every left operand unchanged."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        return type(self).compute(lhs, rhs)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if constants[0] is None and constants[1] is None:
            return None
        a, b = map(number, constants)
        neutral = self.neutral
        if neutral is not None:
            if b is not None and repr(b) == repr(neutral):
                return self.lhs
            if COMMUTATIVE in self.traits and a is not None and repr(a) == repr(neutral):
                return self.rhs
        if a is None or b is None:
            return None
        try:
            # Wider than twice the precision of any narrower type, so rounding the result again is as rounding once.
            value = type(self).compute(a, b)
        except ZeroDivisionError:
            return None
        return None if value != value else folded_attr(value, self.result.type)


def signed(value: Array) -> Array:
    """An integer value as two's complement; a true i1 is -1."""
    return -value.astype("i1") if is_bool(value) else value


def unsigned(value: Array) -> Array:
    """An integer value as unsigned."""
    dtype = value.dtype
    return value.astype("u1") if dtype.kind == "b" else value.view(f"u{dtype.itemsize}")


def like(value: Array, model: Array) -> Array:
    """A computed integer, wrapped to the dtype of `model`."""
    if is_bool(model):
        return (value & 1).astype(bool)
    return value if value.dtype == model.dtype else value.view(model.dtype)


def as_signed(value: int, width: int) -> int:
    """A Python integer in the two's complement range of `width` bits."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def as_unsigned(value: int, width: int) -> int:
    """A Python integer in the unsigned range of `width` bits."""
    return value & ((1 << width) - 1)


class IntegerBinary(Op, Evaluates):
    """Two signless integers (or index values) to one, element by element, modulo the width."""

    traits = PURE_SAME
    lhs = operand(SIGNLESS_LIKE)
    rhs = operand(SIGNLESS_LIKE)
    result = result(SIGNLESS_LIKE)
    assembly = BINARY_INTEGER

    compute: ClassVar[BinaryFunction]
    """The op on two Python integers, and on two NumPy values."""
    is_unsigned: ClassVar[bool] = False
    neutral: ClassVar[int | None] = None
    """A right operand that leaves every left operand unchanged."""
    absorbing: ClassVar[int | None] = None
    """An operand that is the result whatever the other one is."""

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The op on NumPy scalars or arrays of one dtype."""
        view = unsigned if self.is_unsigned else signed
        return like(type(self).compute(view(lhs), view(rhs)), lhs)

    def defined(self, lhs: int, rhs: int, width: int) -> bool:
        """Whether upstream gives the operands a meaning."""
        return True

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if constants[0] is None and constants[1] is None:
            return None
        width = bit_width(self.result.type)
        view = as_unsigned if self.is_unsigned else as_signed
        a, b = (None if n is None else view(int(n), width) for n in map(number, constants))
        commutes = COMMUTATIVE in self.traits
        if self.neutral is not None:
            neutral = view(self.neutral, width)
            if b == neutral:
                return self.lhs
            if commutes and a == neutral:
                return self.rhs
        if self.absorbing is not None:
            absorbing = view(self.absorbing, width)
            if b == absorbing or a == absorbing:
                return folded_attr(absorbing, self.result.type)
        if a is None or b is None or not self.defined(a, b, width):
            return None
        return folded_attr(type(self).compute(a, b), self.result.type)


class WrappingBinary(IntegerBinary):
    """An integer op that takes overflow flags."""

    overflowFlags = overflow_flags()
    assembly = BINARY_WRAPPING

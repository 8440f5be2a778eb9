"""Scalar code without the names of ops: `b.add(x, y)` is `arith.addf` or `arith.addi`, as the operands' type has it.

Serves the bodies of kernels and of loops; vectors work as scalars do.  Where an operand is a Python number it becomes a
constant of the other operand's type.  Integers are signless, so that ops whose meaning depends on the sign say which.
"""

from __future__ import annotations

from typing import Any

from ..attributes import Attribute, constant_attr
from ..builder import Builder
from ..definition import Op
from ..dialects import arith
from ..dialects import math as m
from ..support.mixed import Extent
from ..types import (
    BF16,
    F16,
    F32,
    I1,
    I64,
    INDEX,
    FloatType,
    IndexType,
    IntegerType,
    Type,
    element_type,
    is_unsigned,
    signless,
    with_element,
)
from ..values import Value

Scalar = Value | float
"""A value, or a Python number that takes the type of the value beside it."""

FUNCTIONS: dict[str, type[Op]] = {
    "exp": m.Exp,
    "exp2": m.Exp2,
    "expm1": m.ExpM1,
    "log": m.Log,
    "log2": m.Log2,
    "log1p": m.Log1p,
    "tanh": m.Tanh,
    "erf": m.Erf,
    "sqrt": m.Sqrt,
    "rsqrt": m.RSqrt,
    "sin": m.Sin,
    "cos": m.Cos,
    "floor": m.Floor,
    "ceil": m.Ceil,
    "trunc": m.Trunc,
    "roundeven": m.RoundEven,
    "absf": m.AbsF,
}
"""Functions of one float, by name."""


def is_float(value: Value) -> bool:
    """Whether a value is a float or a vector of them."""
    return isinstance(element_type(value.type), FloatType)


class ScalarBuilder(Builder):
    """A builder of scalar ops, dispatched on operand types."""

    def constant(self, value: float | Attribute, type: Type | None = None) -> Value:
        """A constant: a Python number with its type, or an attribute."""
        if isinstance(value, Attribute):
            return self.value_of(arith.Constant, value=value)
        assert type is not None, "a Python number needs a type"
        return self.value_of(arith.Constant, value=constant_attr(value, type))

    def index_constant(self, value: int) -> Value:
        """A constant of type index."""
        return self.constant(value, INDEX)

    def index_of(self, entry: Extent) -> Value:
        """A size, offset or stride as an index value."""
        return self.index_constant(entry) if isinstance(entry, int) else entry

    def value_of(self, cls: type[Op], *operands: Any, **properties: Any) -> Value:
        """The single result of a new op."""
        return Builder.value(self, cls, *operands, **properties)

    def _pair(self, a: Scalar, b: Scalar) -> tuple[Value, Value]:
        if isinstance(a, Value):
            return a, b if isinstance(b, Value) else self.constant(b, a.type)
        if isinstance(b, Value):
            return self.constant(a, b.type), b
        raise TypeError("needs at least one value beside Python numbers")

    def _binary(self, a: Scalar, b: Scalar, on_floats: type[Op], on_integers: type[Op]) -> Value:
        lhs, rhs = self._pair(a, b)
        return self.value_of(on_floats if is_float(lhs) else on_integers, lhs, rhs)

    # Arithmetic.

    def add(self, a: Scalar, b: Scalar) -> Value:
        """a + b."""
        return self._binary(a, b, arith.AddF, arith.AddI)

    def sub(self, a: Scalar, b: Scalar) -> Value:
        """a - b."""
        return self._binary(a, b, arith.SubF, arith.SubI)

    def mul(self, a: Scalar, b: Scalar) -> Value:
        """a * b."""
        return self._binary(a, b, arith.MulF, arith.MulI)

    def div(self, a: Scalar, b: Scalar, unsigned: bool = False) -> Value:
        """a / b; of integers the quotient rounded toward zero."""
        return self._binary(a, b, arith.DivF, arith.DivUI if unsigned else arith.DivSI)

    def floordiv(self, a: Scalar, b: Scalar, unsigned: bool = False) -> Value:
        """The quotient of integers rounded down."""
        return self._binary(a, b, arith.DivF, arith.DivUI if unsigned else arith.FloorDivSI)

    def rem(self, a: Scalar, b: Scalar, unsigned: bool = False) -> Value:
        """The remainder of the quotient rounded toward zero."""
        return self._binary(a, b, arith.RemF, arith.RemUI if unsigned else arith.RemSI)

    def neg(self, a: Value) -> Value:
        """-a."""
        return self.value_of(arith.NegF, a) if is_float(a) else self.sub(0, a)

    def abs(self, a: Value) -> Value:
        """|a|, of integers as signed."""
        return self.value_of(m.AbsF if is_float(a) else m.AbsI, a)

    def fma(self, a: Value, b: Scalar, c: Scalar) -> Value:
        """a * b + c, of floats rounded once."""
        factor, addend = self._pair(a, b)[1], self._pair(a, c)[1]
        return self.value_of(m.Fma, a, factor, addend) if is_float(a) else self.add(self.mul(a, factor), addend)

    # Choices.

    def cmp(self, predicate: str, a: Scalar, b: Scalar) -> Value:
        """An i1: `oeq .. uno` compare floats (o: false, u: true with NaN), `eq ne slt .. uge` integers."""
        lhs, rhs = self._pair(a, b)
        return self.value_of(arith.CmpF if is_float(lhs) else arith.CmpI, lhs, rhs, predicate=predicate)

    def select(self, condition: Value, a: Scalar, b: Scalar) -> Value:
        """a where the condition holds, else b."""
        return self.value_of(arith.Select, condition, *self._pair(a, b))

    def maximum(self, a: Scalar, b: Scalar, unsigned: bool = False) -> Value:
        """The greater one, NaN if either is NaN, by comparisons: of equal zeros the second."""
        lhs, rhs = self._pair(a, b)
        if not is_float(lhs):
            return self.value_of(arith.MaxUI if unsigned else arith.MaxSI, lhs, rhs)
        return self._extremum("ugt", lhs, rhs)

    def minimum(self, a: Scalar, b: Scalar, unsigned: bool = False) -> Value:
        """The lesser one, NaN if either is NaN, by comparisons: of equal zeros the second."""
        lhs, rhs = self._pair(a, b)
        if not is_float(lhs):
            return self.value_of(arith.MinUI if unsigned else arith.MinSI, lhs, rhs)
        return self._extremum("ult", lhs, rhs)

    def _extremum(self, predicate: str, a: Value, b: Value) -> Value:
        # An unordered relation takes a NaN a; a NaN b is kept by the second test, which folds away for a constant b.
        first = self.and_(self.cmp(predicate, a, b), self.cmp("ord", b, b))
        return self.select(first, a, b)

    # Bits.

    def and_(self, a: Scalar, b: Scalar) -> Value:
        """Bitwise and."""
        return self.value_of(arith.AndI, *self._pair(a, b))

    def or_(self, a: Scalar, b: Scalar) -> Value:
        """Bitwise or."""
        return self.value_of(arith.OrI, *self._pair(a, b))

    def xor(self, a: Scalar, b: Scalar) -> Value:
        """Bitwise exclusive or."""
        return self.value_of(arith.XOrI, *self._pair(a, b))

    def not_(self, a: Value) -> Value:
        """Every bit flipped."""
        return self.xor(a, -1)

    def shl(self, a: Value, b: Scalar) -> Value:
        """a << b."""
        return self.value_of(arith.ShLI, *self._pair(a, b))

    def shr(self, a: Value, b: Scalar, unsigned: bool = False) -> Value:
        """a >> b."""
        return self.value_of(arith.ShRUI if unsigned else arith.ShRSI, *self._pair(a, b))

    # Functions of floats.

    def function(self, name: str, a: Value) -> Value:
        """The function of one float that `FUNCTIONS` names."""
        return self.value_of(FUNCTIONS[name], a)

    def exp(self, a: Value) -> Value:
        """e**a."""
        return self.value_of(m.Exp, a)

    def exp2(self, a: Value) -> Value:
        """2**a."""
        return self.value_of(m.Exp2, a)

    def expm1(self, a: Value) -> Value:
        """e**a - 1."""
        return self.value_of(m.ExpM1, a)

    def log(self, a: Value) -> Value:
        """The natural logarithm."""
        return self.value_of(m.Log, a)

    def log2(self, a: Value) -> Value:
        """The logarithm to base 2."""
        return self.value_of(m.Log2, a)

    def log1p(self, a: Value) -> Value:
        """log(1 + a)."""
        return self.value_of(m.Log1p, a)

    def tanh(self, a: Value) -> Value:
        """The hyperbolic tangent."""
        return self.value_of(m.Tanh, a)

    def erf(self, a: Value) -> Value:
        """The error function."""
        return self.value_of(m.Erf, a)

    def sqrt(self, a: Value) -> Value:
        """The square root."""
        return self.value_of(m.Sqrt, a)

    def rsqrt(self, a: Value) -> Value:
        """1 / sqrt(a)."""
        return self.value_of(m.RSqrt, a)

    def sin(self, a: Value) -> Value:
        """The sine."""
        return self.value_of(m.Sin, a)

    def cos(self, a: Value) -> Value:
        """The cosine."""
        return self.value_of(m.Cos, a)

    def powf(self, a: Scalar, b: Scalar) -> Value:
        """a ** b."""
        return self.value_of(m.PowF, *self._pair(a, b))

    def floor(self, a: Value) -> Value:
        """The greatest integer not above a."""
        return self.value_of(m.Floor, a)

    def ceil(self, a: Value) -> Value:
        """The least integer not below a."""
        return self.value_of(m.Ceil, a)

    def trunc(self, a: Value) -> Value:
        """The integer part."""
        return self.value_of(m.Trunc, a)

    def roundeven(self, a: Value) -> Value:
        """The nearest integer, ties to even."""
        return self.value_of(m.RoundEven, a)

    def absf(self, a: Value) -> Value:
        """The sign bit cleared."""
        return self.value_of(m.AbsF, a)

    def copysign(self, a: Scalar, b: Scalar) -> Value:
        """|a| with the sign of b."""
        return self.value_of(m.CopySign, *self._pair(a, b))

    # Conversions.

    def bitcast(self, a: Value, to: Type) -> Value:
        """The same bits as the type `to`."""
        return a if a.type is to else self._convert(arith.Bitcast, a, to)

    def index_cast(self, a: Value, to: Type = INDEX, unsigned: bool = False) -> Value:
        """An integer as an index, or an index as an integer."""
        return a if a.type is to else self._convert(arith.IndexCastUI if unsigned else arith.IndexCast, a, to)

    def _convert(self, cls: type[Op], a: Value, to: Type) -> Value:
        return self.value_of(cls, a, results=[to])

    def cast(self, a: Value, source: Type, target: Type) -> Value:
        """A scalar of a tensor with elements of type `source` as one of a tensor with elements of type `target`.

        Floats round to nearest even; a float becomes the nearest integer toward zero, saturated, NaN gives 0; integers
        lose their high bits; anything that is not zero is true.
        """
        to = with_element(a.type, signless(target))
        if source is target or (a.type is to and I1 not in (source, target)):
            return a
        if target is I1:
            return self.cmp("une" if is_float(a) else "ne", a, 0)
        if isinstance(source, FloatType):
            if isinstance(target, FloatType):
                return self._cast_float(a, source, target)
            if isinstance(target, IndexType):
                return self.index_cast(self._convert(arith.FPToSI, a, with_element(a.type, I64)), to)
            return self._convert(arith.FPToUI if is_unsigned(target) else arith.FPToSI, a, to)
        if isinstance(source, IndexType):
            if isinstance(target, FloatType):
                return self._convert(arith.SIToFP, self.index_cast(a, with_element(a.type, I64)), to)
            return self.index_cast(a, to)
        unsigned = is_unsigned(source)
        if isinstance(target, FloatType):
            return self._convert(arith.UIToFP if unsigned else arith.SIToFP, a, to)
        if isinstance(target, IndexType):
            return self.index_cast(a, to, unsigned)
        assert isinstance(source, IntegerType) and isinstance(target, IntegerType)
        if target.width < source.width:
            return self._convert(arith.TruncI, a, to)
        return self._convert(arith.ExtUI if unsigned else arith.ExtSI, a, to)

    def _cast_float(self, a: Value, source: FloatType, target: FloatType) -> Value:
        to = with_element(a.type, target)
        if {source, target} == {F16, BF16}:
            return self._convert(arith.TruncF, self._convert(arith.ExtF, a, with_element(a.type, F32)), to)
        return self._convert(arith.ExtF if target.width > source.width else arith.TruncF, a, to)

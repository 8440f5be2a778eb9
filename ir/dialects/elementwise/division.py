"""The floored quotient and its remainder, of integers and floats.

Floats follow C Python's float_divmod, as NumPy does: the remainder is exact (or the exact one, rounded once, when its
sign is turned), and the quotient is the whole number nearest to (x - remainder) / y.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...cotangents import ONE
from ...definition import Api, Sample
from ...interfaces import BoundsErrors, HasPartials, NoDerivative
from ...support.error_bounds import Bounded, exact, is_exact_kind, wide
from ...support.reference import narrow
from ...support.tensor_op import INTEGERS
from ...types import BF16, F32, FloatType, is_unsigned
from ...values import Value
from .family import Binary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class _Division(Binary, BoundsErrors):
    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The reference result on NumPy arrays; 16-bit floats are computed in float32."""
        import numpy as np

        if not self.is_float or lhs.dtype.itemsize > 2:
            return narrow(self.formula(lhs, rhs), lhs.dtype)
        return narrow(self.formula(lhs.astype(np.float32), rhs.astype(np.float32)), lhs.dtype)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        element = self.element
        if not isinstance(element, FloatType):
            return self.of_integers(*divide_integers(self, b, *operands))
        if element.width > 16:
            return self.of_floats(b, *operands)
        wide = [b.cast(v, element, F32) for v in operands]
        return b.cast(self.of_floats(b, *wide), F32, element)

    @abstractmethod
    def of_integers(self, quotient: Value, remainder: Value) -> Value:
        """The one of the two that is the result."""

    @abstractmethod
    def of_floats(self, b: ScalarBuilder, x: Value, y: Value) -> Value:
        """The result of floats of at least 32 bits."""

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        import numpy as np

        value = self.evaluate(lhs.value, rhs.value)
        if is_exact_kind(value):
            return exact(value)
        return Bounded(wide(value), np.where(lhs.error + rhs.error > 0, np.inf, unit * abs(value)))


class FloorDivide(_Division, NoDerivative):
    """The quotient rounded toward minus infinity; of integers by 0 it is 0.

    Integers: min / -1 wraps to min.  Floats: a division by zero is lhs / rhs; of an
    infinity NaN."""

    name = "elementwise.floor_divide"
    api = Api("floor_divide")
    samples = (
        Sample("np.where(rhs == 0, 0, np.floor_divide(lhs, np.where(rhs == 0, 1, rhs)))", elements=INTEGERS),
        Sample("numpy:floor_divide", elements=(F32, BF16)),
    )
    function = "floor_divide"

    def of_integers(self, quotient: Value, remainder: Value) -> Value:
        return quotient

    def of_floats(self, b: ScalarBuilder, x: Value, y: Value) -> Value:
        rest, _, turned = _float_remainder(b, x, y)
        ratio = b.div(x, y)
        near = b.div(b.sub(x, rest), y)
        near = b.select(turned, b.sub(near, 1.0), near)
        below = b.floor(near)
        whole = b.select(b.cmp("ogt", b.sub(near, below), 0.5), b.add(below, 1.0), below)
        # A quotient of 0 has the sign of the ratio.
        quotient = b.select(b.cmp("une", near, 0.0), whole, b.copysign(0.0, ratio))
        return b.select(b.cmp("oeq", y, 0.0), ratio, quotient)


class Remainder(_Division, HasPartials):
    """lhs - floor(lhs / rhs) * rhs without the errors of its steps, with the sign of rhs; of integers by 0 it is 0.

    Floats: NaN where rhs is 0 or lhs an infinity."""

    name = "elementwise.remainder"
    api = Api("remainder")
    samples = (
        Sample("np.where(rhs == 0, 0, np.remainder(lhs, np.where(rhs == 0, 1, rhs)))", elements=INTEGERS),
        Sample("numpy:remainder", elements=(F32, BF16), smooth=False),
    )
    function = "remainder"

    def of_integers(self, quotient: Value, remainder: Value) -> Value:
        return remainder

    def of_floats(self, b: ScalarBuilder, x: Value, y: Value) -> Value:
        rest, is_zero, turned = _float_remainder(b, x, y)
        signed = b.select(is_zero, b.copysign(0.0, y), b.select(turned, b.add(rest, y), rest))
        return signed

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield ONE
        yield lambda t: b.neg(b.mul(t, b.floor_divide(self.lhs, self.rhs)))


def _float_remainder(b: ScalarBuilder, x: Value, y: Value) -> tuple[Value, Value, Value]:
    """The remainder of the quotient rounded toward zero; whether it is 0; whether it has the other sign than y."""
    rest = b.rem(x, y)
    is_zero = b.cmp("oeq", rest, 0.0)
    signs_differ = b.xor(b.cmp("olt", y, 0.0), b.cmp("olt", rest, 0.0))
    return rest, is_zero, b.and_(b.cmp("une", rest, 0.0), signs_differ)


def divide_integers(op: Binary, b: ScalarBuilder, x: Value, y: Value) -> tuple[Value, Value]:
    """The floored quotient and its remainder, 0 and 0 where y is 0.

    A divisor of 0 or -1 is replaced by 1 before the division, which neither may trap nor overflow; x / -1 is -x.
    """
    zero, one = b.constant(0, x.type), b.constant(1, x.type)
    by_zero = b.cmp("eq", y, zero)
    if is_unsigned(op.element):
        quotient = b.div(x, b.select(by_zero, one, y), unsigned=True)
        remainder = b.sub(x, b.mul(quotient, y))
        return b.select(by_zero, zero, quotient), b.select(by_zero, zero, remainder)
    negated = b.cmp("eq", y, b.constant(-1, x.type))
    truncated = b.div(x, b.select(b.or_(by_zero, negated), one, y))
    rest = b.sub(x, b.mul(truncated, y))
    inexact = b.cmp("ne", rest, zero)
    signs_differ = b.cmp("slt", b.xor(rest, y), zero)
    down = b.and_(inexact, signs_differ)
    quotient = b.select(down, b.sub(truncated, one), truncated)
    remainder = b.select(down, b.add(rest, y), rest)
    trivial = b.or_(by_zero, negated)
    return b.select(by_zero, zero, b.select(negated, b.neg(x), quotient)), b.select(trivial, zero, remainder)

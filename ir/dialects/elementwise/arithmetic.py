"""Sums, products, exact quotients, powers and the choice of the larger.  Integers wrap."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...attributes import Attribute
from ...cotangents import ONE, Masked
from ...definition import COMMUTATIVE, PURE, Api, FoldResult, Sample
from ...interfaces import BoundsErrors, HasPartials, NoDerivative, Tame
from ...support.error_bounds import Bounded, certain, rounded
from ...support.reference import narrow, where, wide
from ...support.tensor_op import FLOATS, INTEGERS, splat_number, splat_value, type_of_tensor
from ...types import IntegerType, is_unsigned
from ...values import Value
from .family import Binary, BinaryArithmetic, Unary

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.scalar import ScalarBuilder
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Partial


class Add(BinaryArithmetic, Tame, HasPartials, BoundsErrors):
    """lhs + rhs."""

    name = "elementwise.add"
    api = Api("add")
    samples = (Sample("numpy:add"),)
    traits = frozenset({PURE, COMMUTATIVE})
    function = "add"
    identity = -0.0

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield ONE
        yield ONE

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        return rounded(lhs.value + rhs.value, lhs.error + rhs.error, unit)


class Sub(BinaryArithmetic, Tame, HasPartials, BoundsErrors):
    """lhs - rhs."""

    name = "elementwise.sub"
    api = Api("subtract")
    samples = (Sample("numpy:subtract"),)
    function = "subtract"
    identity = 0.0

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield ONE
        yield b.neg

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        return rounded(lhs.value - rhs.value, lhs.error + rhs.error, unit)


class Mul(BinaryArithmetic, Tame, HasPartials, BoundsErrors):
    """lhs * rhs."""

    name = "elementwise.mul"
    api = Api("multiply")
    samples = (Sample("numpy:multiply"),)
    traits = frozenset({PURE, COMMUTATIVE})
    function = "multiply"
    identity = 1.0

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.mul(t, self.rhs)
        yield lambda t: b.mul(t, self.lhs)

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        (a, ea), (b, eb) = lhs, rhs
        return rounded(a * b, abs(a) * eb + abs(b) * ea + ea * eb, unit)


class Div(BinaryArithmetic, Tame, HasPartials, BoundsErrors):
    """lhs / rhs, of floats: x/0 is an infinity, 0/0 is NaN."""

    name = "elementwise.div"
    api = Api("divide", "float")
    samples = (Sample("numpy:divide", low=0.5),)
    accepts = FLOATS
    function = "divide"
    identity = 1.0

    def is_tame(self) -> bool:
        return splat_number(self.rhs) not in (None, 0.0)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield lambda t: b.div(t, self.rhs)
        yield lambda t: b.neg(b.mul(b.div(t, self.rhs), self.result))

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        import numpy as np

        (a, ea), (b, eb) = lhs, rhs
        value, room = a / b, abs(b) - eb
        return rounded(value, np.where(room > 0, (ea + abs(value) * eb) / room, np.inf), unit)


class Pow(Binary, Tame, HasPartials):
    """lhs ** rhs.  Floats follow C's pow (x ** 0 is 1).

    Integers wrap; a negative exponent gives the quotient 1 / power truncated toward zero: 1 or -1 for the bases 1 and
    -1, otherwise 0.
    """

    name = "elementwise.pow"
    samples = (
        Sample("numpy:power", low=0.25, elements=FLOATS),
        Sample(
            "np.where(rhs >= 0, np.power(lhs, np.maximum(rhs, 0)),"
            " np.where(np.abs(lhs) == 1, np.where(rhs % 2 == 0, 1, lhs), 0))",
            high=5,
            elements=INTEGERS,
        ),
    )
    function = "power"

    def is_tame(self) -> bool:
        exponent = splat_number(self.rhs)
        return exponent is not None and (exponent >= 1.0 or exponent == 0.0)

    def formula(self, lhs: Array, rhs: Array) -> Array:
        import numpy as np

        if self.is_float:
            return np.power(lhs, rhs)
        power = np.power(lhs, np.maximum(rhs, 0))
        unit = where(rhs % 2 == 0, lhs * lhs, lhs)
        return where(rhs >= 0, power, where((lhs == 1) | (lhs == -1), unit, 0)).astype(lhs.dtype)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        base, exponent = operands
        if self.is_float:
            return b.powf(base, exponent)
        type = self.element
        assert isinstance(type, IntegerType)
        zero, one = b.constant(0, base.type), b.constant(1, base.type)
        power, square, unit = one, base, one
        for bit in range(type.width if is_unsigned(type) else type.width - 1):
            taken = b.cmp("ne", b.and_(exponent, b.constant(1 << bit, base.type)), zero)
            power = b.select(taken, b.mul(power, square), power)
            if bit == 0:
                unit = power
            square = b.mul(square, square)
        if is_unsigned(type):
            return power
        is_unit = b.or_(b.cmp("eq", base, one), b.cmp("eq", base, b.constant(-1, base.type)))
        return b.select(b.cmp("slt", exponent, zero), b.select(is_unit, unit, zero), power)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if splat_value(constants[1]) == 1 and self.lhs.type is self.result.type:
            return self.lhs
        return self.fold_constants(constants)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """x**0 is the constant 1, so its derivative is 0 everywhere; x**y has none in y where x is not positive."""
        x, y = self.lhs, self.rhs

        def by_base(t: Value) -> Value:
            return b.mul(t, b.mul(y, b.pow(x, b.sub(y, 1.0))))

        exponent = splat_number(y)
        if exponent is None:
            yield Masked(b.not_equal(y, 0.0), by_base)
        else:
            yield by_base if exponent else None
        yield Masked(b.greater(x, 0.0), lambda t: b.mul(t, b.mul(self.result, b.log(x))))


class Maximum(Binary, Tame, HasPartials, BoundsErrors):
    """The larger; NaN where either is NaN.  Of zeros with different signs the right one."""

    name = "elementwise.maximum"
    api = Api("maximum")
    samples = (Sample("numpy:maximum"),)

    def formula(self, lhs: Array, rhs: Array) -> Array:
        return where((lhs > rhs) | (lhs != lhs), lhs, rhs)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.maximum(*operands, unsigned=is_unsigned(self.element))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        x, y = self.lhs, self.rhs
        yield from _extremum(b, x, y, b.greater_or_nan(x, y), b.less_or_nan(x, y))

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        import numpy as np

        return Bounded(np.maximum(lhs.value, rhs.value), np.maximum(lhs.error, rhs.error))


class Minimum(Binary, Tame, HasPartials, BoundsErrors):
    """The smaller; NaN where either is NaN.  Of zeros with different signs the right one."""

    name = "elementwise.minimum"
    api = Api("minimum")
    samples = (Sample("numpy:minimum"),)

    def formula(self, lhs: Array, rhs: Array) -> Array:
        return where((lhs < rhs) | (lhs != lhs), lhs, rhs)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.minimum(*operands, unsigned=is_unsigned(self.element))

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        x, y = self.lhs, self.rhs
        yield from _extremum(b, x, y, b.less_or_nan(x, y), b.greater_or_nan(x, y))

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        import numpy as np

        return Bounded(np.minimum(lhs.value, rhs.value), np.maximum(lhs.error, rhs.error))


class Neg(Unary, Tame, HasPartials, BoundsErrors):
    """-x; integers wrap."""

    name = "elementwise.neg"
    api = Api("negative", "none")
    samples = (Sample("numpy:negative"),)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return narrow(-wide(x), x.dtype)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return b.neg(*operands)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        inner = self.x.defining_op
        return inner.x if isinstance(inner, Neg) else self.fold_constants(constants)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        yield b.neg

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return Bounded(-x.value, x.error)


class Abs(Unary, Tame, HasPartials, BoundsErrors):
    """|x|; the smallest integer stays itself."""

    name = "elementwise.abs"
    api = Api("abs", "none")
    samples = (Sample("numpy:abs"),)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        return narrow(abs(wide(x)), x.dtype)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        return operands[0] if is_unsigned(self.element) else b.abs(*operands)

    def partials(self, b: TensorBuilder) -> Iterator[Partial]:
        """0 at 0."""
        yield lambda t: b.mul(t, b.sign(self.x))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return Bounded(abs(x.value), x.error)


class Sign(Unary, Tame, NoDerivative, BoundsErrors):
    """-1, 0 or 1; NaN stays itself, -0.0 becomes 0.0."""

    name = "elementwise.sign"
    api = Api("sign", "none")
    samples = (Sample("numpy:sign"),)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        return narrow(np.sign(wide(x)), x.dtype)

    def scalar(self, b: ScalarBuilder, *operands: Value) -> Value:
        (x,) = operands
        zero, one, minus = (b.constant(v, x.type) for v in (0, 1, -1))
        if is_unsigned(self.element):
            return b.select(b.cmp("ne", x, zero), one, zero)
        above, below = ("ogt", "olt") if self.is_float else ("sgt", "slt")
        neither = b.sub(x, x) if self.is_float else zero  # of zeros or NaN
        return b.select(b.cmp(above, x, zero), one, b.select(b.cmp(below, x, zero), minus, neither))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        return certain(np.sign(x.value), (abs(x.value) > x.error) | (x.error == 0))


def _extremum(b: TensorBuilder, x: Value, y: Value, x_wins: Value, y_wins: Value) -> Iterator[Partial]:
    """The operand that was taken has all; where both are equal each has half."""
    tie, element = b.equal(x, y), type_of_tensor(x).element

    def share(t: Value) -> Value:
        return b.mul(t, b.where(tie, b.constant(0.5, element), b.constant(1.0, element)))

    yield Masked(b.logical_or(x_wins, tie), share, soft=True)
    yield Masked(b.logical_or(y_wins, tie), share, soft=True)

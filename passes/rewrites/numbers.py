"""What rules compute of constants: attributes of scalars, or of tensors and vectors element by element."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from ...ir.types import FloatType

MAX_ELEMENTS = 4096
"""Larger constants are left alone, splats aside: a bound of compile time and of the size of the text."""


def combine(function: Callable[[int, int], int]) -> Callable[[Attribute, Attribute], Attribute]:
    """The function of two integer constants of one type, modulo their width."""

    def combined(a: Attribute, b: Attribute) -> Attribute:
        if isinstance(a, DenseAttr) and isinstance(b, DenseAttr):
            if a.is_splat and b.is_splat:
                return DenseAttr.splat(a.type, function(a.values()[0], b.values()[0]))
            return DenseAttr.from_values(a.type, [function(x, y) for x, y in zip(a.values(), b.values())])
        assert isinstance(a, IntegerAttr) and isinstance(b, IntegerAttr)
        return IntegerAttr(function(a.value, b.value), a.type)

    return combined


def negate(a: Attribute) -> Attribute:
    """The negative of an integer constant."""
    return combine(lambda x, _: -x)(a, a)


def are_small_integers(*constants: Attribute) -> bool:
    """Whether constants of one type are integers that `combine` takes."""
    return all(
        isinstance(c, IntegerAttr)
        or (
            isinstance(c, DenseAttr)
            and not isinstance(c.type.element, FloatType)
            and c.type is getattr(constants[0], "type", None)
            and (c.is_splat or c.type.num_elements <= MAX_ELEMENTS)
        )
        for c in constants
    )


def is_all_ones(a: Attribute) -> bool:
    """Whether a constant is true, or -1, everywhere."""
    if isinstance(a, DenseAttr) and a.is_splat:
        a = a.scalar()
    return isinstance(a, IntegerAttr) and a.value in ((1,) if str(a.type) == "i1" else (-1,))


def has_exact_reciprocal(a: Attribute) -> bool:
    """Whether a float constant, scalar or splat, is a power of two whose reciprocal is a normal number of its type."""
    if isinstance(a, DenseAttr) and a.is_splat:
        a = a.scalar()
    if not isinstance(a, FloatAttr) or not math.isfinite(a.value) or math.frexp(abs(a.value))[0] != 0.5:
        return False
    return is_normal(a) and is_normal(FloatAttr(1.0 / a.value, a.type))


def is_normal(a: FloatAttr) -> bool:
    """Whether a float is neither zero, denormal, infinite nor NaN."""
    exponent = (a.bits >> a.type.mantissa_bits) & ((1 << a.type.exponent_bits) - 1)
    return 0 < exponent < (1 << a.type.exponent_bits) - 1


def reciprocal(a: Attribute) -> Attribute:
    """1 / a of a float constant, scalar or splat."""
    if isinstance(a, DenseAttr):
        return DenseAttr.splat(a.type, 1.0 / a.values()[0])
    assert isinstance(a, FloatAttr)
    return FloatAttr(1.0 / a.value, a.type)

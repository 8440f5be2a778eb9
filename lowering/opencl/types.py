"""OpenCL C types and constants for the types and constants of the loop level.

Signless integers are unsigned in C, where arithmetic wraps; `index` is a signed `long`.  A value of a 16-bit float type
is a `float` that holds it exactly, so no device needs half-precision arithmetic; in memory it is a `ushort`.
"""

from __future__ import annotations

import math

from ...ir.attributes import Attribute, FloatAttr, IntegerAttr
from ...ir.diagnostics import LoweringError
from ...ir.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, Type, bit_width

_FLOATS = {F16: "float", BF16: "float", F32: "float", F64: "double"}
_UNSIGNED = {8: "uchar", 16: "ushort", 32: "uint", 64: "ulong"}
_SIGNED = {8: "char", 16: "short", 32: "int", 64: "long"}
_SUFFIX = {32: "u", 64: "ul"}


def c_type(type: Type) -> str:
    """The C type of a value."""
    if isinstance(type, FloatType) and type in _FLOATS:
        return _FLOATS[type]
    if isinstance(type, IndexType):
        return "long"
    if isinstance(type, IntegerType):
        if type.width == 1:
            return "bool"
        if type.width in _UNSIGNED:
            return _UNSIGNED[type.width]
    raise LoweringError(f"OpenCL C has no type for {type}")


def memory_type(type: Type) -> str:
    """The C type of an element in memory."""
    return "ushort" if type in (F16, BF16) else "uchar" if type == IntegerType(1) else c_type(type)


def signed(type: Type) -> str:
    """The signed C type of an integer or index."""
    return "long" if isinstance(type, IndexType) else _SIGNED[bit_width(type)]


def unsigned(type: Type) -> str:
    """The unsigned C type of an integer or index."""
    return _UNSIGNED[bit_width(type)]


def is_narrow(type: Type) -> bool:
    """Whether a float has 16 bits."""
    return type in (F16, BF16)


def literal(value: Attribute) -> str:
    """A constant, exact."""
    if isinstance(value, IntegerAttr):
        return integer(value.value, value.type)
    if isinstance(value, FloatAttr):
        return floating(value)
    raise LoweringError(f"OpenCL C has no constant for {value}")


def integer(value: int, type: Type) -> str:
    """An integer, bool or index."""
    if isinstance(type, IndexType):
        if value == -(1 << 63):
            return "(-0x7fffffffffffffffL - 1)"
        text = str(value) if abs(value) < 1 << 31 else f"{value}L"
        return f"({text})" if value < 0 else text
    bits = bit_width(type)
    if bits == 1:
        return "true" if value else "false"
    value &= (1 << bits) - 1
    return f"{value}{_SUFFIX[bits]}" if bits in _SUFFIX else f"({_UNSIGNED[bits]}){value}"


def _as_float_nan(value: FloatAttr) -> int:
    """The bits in f32 of a NaN of at most 32 bits, its payload on the left of the mantissa."""
    mantissa = value.type.mantissa_bits
    payload = value.bits & ((1 << mantissa) - 1)
    return (value.bits >> (value.type.width - 1)) << 31 | 0xFF << 23 | payload << (23 - mantissa)


def floating(value: FloatAttr) -> str:
    """A float: short decimals where they are exact, else hexadecimal."""
    number = value.value
    double = value.type is F64
    if math.isnan(number):
        if double:
            return f"as_double(0x{value.bits:016x}ul)"
        bits = _as_float_nan(value)
        return "NAN" if bits == 0x7FC00000 else f"as_float(0x{bits:08x}u)"
    if math.isinf(number):
        text = "(double)INFINITY" if double else "INFINITY"
        return text if number > 0 else f"(-{text})"
    suffix = "" if double else "f"
    magnitude = abs(number)
    if magnitude == int(magnitude) and magnitude < 1e6:
        text = f"{int(magnitude)}.0{suffix}"
    else:
        digits, exponent = magnitude.hex().split("p")
        text = f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits}p{exponent}{suffix}"
    return f"(-{text})" if math.copysign(1.0, number) < 0 else text

"""PTX types, register classes and immediate operands for the types and constants of the loop level.

| type | register |
| --- | --- |
| i1 | `.pred` |
| i8, i16, i32 | `.b32`; the bits above the type are zero |
| i64, index | `.b64` |
| f16, bf16 | `.b16` |
| f32, f64 | `.f32`, `.f64` |
"""

from __future__ import annotations

from ...ir.attributes import Attribute, FloatAttr, IntegerAttr
from ...ir.diagnostics import LoweringError
from ...ir.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, Type, bit_width

PREFIXES = {"pred": "p", "b16": "h", "b32": "r", "b64": "rd", "f32": "f", "f64": "fd"}
"""Register class -> how its registers are named."""


def register_class(type: Type) -> str:
    """The class of registers that hold values of a type."""
    if isinstance(type, IndexType):
        return "b64"
    if isinstance(type, FloatType) and type in (F16, BF16, F32, F64):
        return {16: "b16", 32: "f32", 64: "f64"}[type.width]
    if isinstance(type, IntegerType):
        if type.width == 1:
            return "pred"
        if type.width in (8, 16, 32):
            return "b32"
        if type.width == 64:
            return "b64"
    raise LoweringError(f"PTX has no registers for {type}")


def is_narrow_float(type: Type) -> bool:
    """Whether a float has 16 bits."""
    return type in (F16, BF16)


def memory_type(type: Type) -> str:
    """The type of a load or store of an element."""
    if type in (F32, F64):
        return f"f{bit_width(type)}"
    return "b16" if is_narrow_float(type) else f"u{max(8, bit_width(type))}"


def immediate(value: Attribute) -> str:
    """A constant as an operand; floats by their bits, 16-bit floats as an integer."""
    if isinstance(value, IntegerAttr):
        bits = bit_width(value.type)
        number = value.value
        if bits < 32:
            number &= (1 << bits) - 1
        return str(number)
    if isinstance(value, FloatAttr):
        if value.type is F32:
            return f"0f{value.bits:08X}"
        if value.type is F64:
            return f"0d{value.bits:016X}"
        return f"0x{value.bits:04X}"
    raise LoweringError(f"PTX has no constant for {value}")


def is_immediate(text: str) -> bool:
    """Whether an operand is a number."""
    return text[0] in "-0123456789"

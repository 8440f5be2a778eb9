"""LLVM types and constants for the types and constants of the loop level.

bf16 travels as its 16 bits (`i16`): conversions are spelled out, so no runtime library is ever called for them.
"""

from __future__ import annotations

import struct

from ...ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from ...ir.diagnostics import LoweringError
from ...ir.float_bits import bits_to_float
from ...ir.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, MemRefType, Type, VectorType

_FLOATS = {F16: "half", BF16: "i16", F32: "float", F64: "double"}

MOST_BITS = 128
"""Of an integer: LLVM ends the process where a wider one becomes a float, or comes from one."""

MOST_LANES = 4096
"""Of a vector: LLVM ends the process where one of tens of thousands becomes operands of an instruction."""


def llvm_type(type: Type) -> str:
    """The LLVM type of a value."""
    if isinstance(type, FloatType):
        return _FLOATS[type]
    if isinstance(type, IntegerType):
        if type.width > MOST_BITS:
            raise LoweringError(f"LLVM converts and divides integers of at most {MOST_BITS} bits, not {type}")
        return f"i{type.width}"
    if isinstance(type, IndexType):
        return "i64"
    if isinstance(type, VectorType):
        if type.num_elements > MOST_LANES:
            raise LoweringError(f"LLVM takes vectors of at most {MOST_LANES} elements, not {type}")
        return f"<{type.num_elements} x {llvm_type(type.element)}>"
    if isinstance(type, MemRefType):
        return "ptr"
    raise LoweringError(f"LLVM has no type for {type}")


def mangled(type: Type) -> str:
    """The type as it stands in the name of an intrinsic: `f32`, `v16f32`, `i64`."""
    if isinstance(type, VectorType):
        return f"v{type.num_elements}{mangled(type.element)}"
    if isinstance(type, IndexType):
        return "i64"
    if isinstance(type, FloatType):
        return "i16" if type is BF16 else type.name
    assert isinstance(type, IntegerType)
    return f"i{type.width}"


def literal(attribute: Attribute) -> str:
    """A constant as an operand of LLVM IR."""
    if isinstance(attribute, FloatAttr):
        return float_literal(attribute.bits, attribute.type)
    if isinstance(attribute, IntegerAttr):
        return str(attribute.value)
    if isinstance(attribute, DenseAttr):
        type = attribute.type
        element = llvm_type(type.element)
        stored = attribute.bits()
        texts = [float_literal(b, type.element) if isinstance(type.element, FloatType) else str(b) for b in stored]
        if attribute.is_splat:
            if texts[0] in ("0", "0x0000000000000000", "0xH0000"):
                return "zeroinitializer"
            texts *= type.num_elements
        return "<" + ", ".join(f"{element} {t}" for t in texts) + ">"
    raise LoweringError(f"LLVM has no constant for {attribute}")


def float_literal(bits: int, type: FloatType) -> str:
    """A float by its bits: LLVM writes f32 and f64 as the hex bits of a double, f16 as `0xH....`."""
    if type is BF16:
        return str(bits)
    if type is F16:
        return f"0xH{bits:04X}"
    if type is F64:
        return f"0x{bits:016X}"
    value = bits_to_float(bits, type)
    if value != value:  # keep the payload: widen sign, exponent and mantissa by hand
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    else:
        (wide,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{wide:016X}"


def splat(text: str, type: Type) -> str:
    """A scalar literal, repeated when `type` is a vector."""
    if isinstance(type, VectorType):
        element = llvm_type(type.element)
        return "<" + ", ".join([f"{element} {text}"] * type.num_elements) + ">"
    return text


def with_scalar(type: Type, scalar: Type) -> Type:
    """`scalar`, or a vector of it as long as `type`."""
    return VectorType(type.shape, scalar) if isinstance(type, VectorType) else scalar

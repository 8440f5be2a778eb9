"""Floats as bit patterns: from numbers and decimals, rounded once, and back to the shortest decimal.

Bits keep what Python's float does not: NaN payloads and the bit by which a NaN signals.
"""

from __future__ import annotations

import math
import struct
from typing import Final

from .types import F64, FloatType

_PACK_F64, _UNPACK_F64 = struct.Struct("<d").pack, struct.Struct("<Q").unpack
_PACK = {16: "<e", 32: "<f", 64: "<d"}
BITS_CODE: Final = {16: "H", 32: "I", 64: "Q"}
"""The `struct` code of the bits of a float by its width."""


def float_to_bits(value: float, type: FloatType) -> int:
    """The bit pattern of `value` rounded once, to nearest even, in `type`."""
    if type is F64:
        return int(_UNPACK_F64(_PACK_F64(value))[0])
    wide: int = _UNPACK_F64(_PACK_F64(value))[0]
    sign = (wide >> 63) << (type.width - 1)
    exponent, fraction = (wide >> 52) & 0x7FF, wide & ((1 << 52) - 1)
    top = (1 << type.exponent_bits) - 1
    mantissa = type.mantissa_bits
    if exponent == 0x7FF:
        if fraction:  # a quiet NaN with the payload's leading bits
            return sign | top << mantissa | 1 << (mantissa - 1) | fraction >> (52 - mantissa)
        return sign | top << mantissa
    if exponent:
        fraction |= 1 << 52
    scale = max(exponent, 1) - 1023 + (top >> 1)  # the biased exponent in the narrow type
    drop = 52 - mantissa + max(0, 1 - scale)
    if drop > 54:
        return sign
    kept = fraction >> drop
    rest = fraction & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and kept & 1):
        kept += 1
    # Carries run from the mantissa into the exponent, which is how rounding up to a power of two must work.
    bits = kept if scale < 1 else kept + ((scale - 1) << mantissa)
    return sign | min(bits, top << mantissa)


def decimal_to_bits(text: str, type: FloatType) -> int:
    """The bit pattern of a decimal such as `1.5e-3`, rounded once, to nearest even, in `type`."""
    value = float(text)
    if type is F64:
        return float_to_bits(value, type)
    wide: int = _UNPACK_F64(_PACK_F64(value))[0] & ~(1 << 63)
    # The narrowest step, f32's, leaves 29 bits of a float64, of which a midpoint has the first alone.
    if not wide & 0xFFFFFFF and math.isfinite(value) and _is_midpoint(wide, type):
        # Rounding to float64 may have made the tie: then the decimal itself says on which side it lies.
        from decimal import Decimal

        exact, near = Decimal(text), Decimal(value)
        if exact != near:
            value = math.nextafter(value, math.inf if exact > near else -math.inf)
    return float_to_bits(value, type)


def _is_midpoint(wide: int, type: FloatType) -> bool:
    """Whether the float64 of these bits, at least 0, lies halfway between two neighbours in `type`."""
    scale = (wide >> 52) - 1023 + (1 << (type.exponent_bits - 1)) - 1
    drop = 52 - type.mantissa_bits + max(0, 1 - scale)
    fraction = wide & ((1 << 52) - 1) | 1 << 52
    return drop <= 53 and fraction & ((1 << drop) - 1) == 1 << (drop - 1)


def bits_to_float(bits: int, type: FloatType) -> float:
    """The value of a bit pattern."""
    if type.name == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    return float(struct.unpack(_PACK[type.width], struct.pack("<" + BITS_CODE[type.width], bits))[0])


def float_text(bits: int, type: FloatType) -> str:
    """The shortest decimal that gives these bits back in `type`, with a dot; hex bits for infinities and NaN."""
    value = bits_to_float(bits, type)
    if not math.isfinite(value):
        return f"0x{bits:0{type.width // 4}X}"
    text = repr(value)
    if type is not F64:
        for digits in range(1, 10):
            short = f"{value:.{digits}g}"
            if decimal_to_bits(short, type) == bits:
                text = repr(float(short))
                break
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa

"""Integer and bit arithmetic of PTX on NumPy lanes, and the conversions between integers and floats."""

from __future__ import annotations

from typing import Any

import numpy as np

Lanes = Any

ROUNDING = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}


def unsigned(size: int) -> np.dtype:
    return np.dtype(f"uint{size * 8}")


def mul_hi(a: Lanes, b: Lanes) -> Lanes:
    """The upper half of the product."""
    dtype = a.dtype
    if dtype.itemsize < 8:
        wide = np.dtype(f"{'uint' if dtype.kind == 'u' else 'int'}{dtype.itemsize * 16}")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(dtype.itemsize * 8)).astype(dtype)
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    ua, ub = a.view(np.uint64), b.view(np.uint64)
    a0, a1, b0, b1 = ua & low, ua >> shift, ub & low, ub >> shift
    middle = (a0 * b0 >> shift) + (a1 * b0 & low) + (a0 * b1 & low)
    high = a1 * b1 + (a1 * b0 >> shift) + (a0 * b1 >> shift) + (middle >> shift)
    if dtype.kind == "i":
        zero = np.uint64(0)
        high = high - np.where(a < 0, ub, zero) - np.where(b < 0, ua, zero)
    return high.view(dtype)


def divide(a: Lanes, b: Lanes) -> Lanes:
    """Quotient toward zero. PTX leaves division by zero unspecified: all bits are set here."""
    one = a.dtype.type(1)
    safe = np.where(b == 0, one, b)
    if a.dtype.kind == "u":
        return np.where(b == 0, ~a.dtype.type(0), a // safe)[()]
    quotient = a // safe
    toward_zero = quotient + ((quotient * safe != a) & ((a < 0) != (b < 0))).astype(a.dtype)
    return np.where(b == 0, ~a.dtype.type(0), toward_zero)[()]


def remainder(a: Lanes, b: Lanes) -> Lanes:
    """Remainder with the sign of the dividend; by zero, unspecified in PTX, the dividend."""
    return np.where(b == 0, a, a - divide(a, b) * b)[()]


def add_sat(a: Lanes, b: Lanes) -> Lanes:
    """`add.sat.s32`."""
    return _clamp32(a.astype(np.int64) + b.astype(np.int64))


def sub_sat(a: Lanes, b: Lanes) -> Lanes:
    """`sub.sat.s32`."""
    return _clamp32(a.astype(np.int64) - b.astype(np.int64))


def _clamp32(x: Lanes) -> Lanes:
    return np.minimum(np.maximum(x, np.int64(-(2**31))), np.int64(2**31 - 1)).astype(np.int32)


def shift_left(a: Lanes, count: Lanes) -> Lanes:
    """`shl`: counts beyond the width give 0."""
    bits = a.dtype.itemsize * 8
    moved = a << (count & np.uint32(bits - 1)).astype(a.dtype)
    return np.where(count >= np.uint32(bits), a.dtype.type(0), moved)[()]


def shift_right(a: Lanes, count: Lanes) -> Lanes:
    """`shr`: counts beyond the width give 0, or the sign."""
    bits = a.dtype.itemsize * 8
    if a.dtype.kind == "i":
        return a >> np.minimum(count, np.uint32(bits - 1)).astype(a.dtype)
    moved = a >> (count & np.uint32(bits - 1)).astype(a.dtype)
    return np.where(count >= np.uint32(bits), a.dtype.type(0), moved)[()]


def funnel(a: Lanes, b: Lanes, count: Lanes, left: bool, wrap: bool) -> Lanes:
    """`shf`: shift the 64-bit value b:a and keep 32 bits of it."""
    count = (count & np.uint32(31) if wrap else np.minimum(count, np.uint32(32))).astype(np.uint64)
    value = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    return ((value << count) >> np.uint64(32) if left else value >> count).astype(np.uint32)


def _ones(length: Lanes) -> Lanes:
    """uint64 with the lowest `length` bits set, for 0 <= length <= 64."""
    partial = (np.uint64(1) << np.minimum(length, np.uint64(63))) - np.uint64(1)
    return np.where(length >= np.uint64(64), ~np.uint64(0), partial)[()]


def extract(a: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """`bfe`: a field of bits, extended by its sign for signed types."""
    bits, dtype = a.dtype.itemsize * 8, a.dtype
    position = (position & np.uint32(255)).astype(np.uint64)
    length = (length & np.uint32(255)).astype(np.uint64)
    value = a.view(unsigned(dtype.itemsize)).astype(np.uint64)
    shifted = np.where(position >= np.uint64(bits), np.uint64(0), value >> np.minimum(position, np.uint64(bits - 1)))
    mask = _ones(np.minimum(length, np.uint64(64)))
    field = shifted & mask
    if dtype.kind == "i":
        top = np.minimum(np.maximum(position + length, np.uint64(1)) - np.uint64(1), np.uint64(bits - 1))
        negative = ((value >> top) & np.uint64(1)).astype(bool) & (length > np.uint64(0))
        available = np.where(
            position >= np.uint64(bits), np.uint64(0), np.uint64(bits) - np.minimum(position, np.uint64(bits))
        )
        field = np.where(negative, field | ~_ones(np.minimum(length, available)), field)
    return np.asarray(field).astype(unsigned(dtype.itemsize)).view(dtype)[()]


def insert(a: Lanes, b: Lanes, position: Lanes, length: Lanes) -> Lanes:
    """`bfi`: b with a field of bits replaced by the low bits of a."""
    bits, dtype = a.dtype.itemsize * 8, a.dtype
    position = (position & np.uint32(255)).astype(np.uint64)
    length = (length & np.uint32(255)).astype(np.uint64)
    inside = position < np.uint64(bits)
    at = np.minimum(position, np.uint64(63))
    mask = np.where(inside, _ones(np.minimum(length, np.uint64(64))) << at, np.uint64(0))
    return ((b.astype(np.uint64) & ~mask) | ((a.astype(np.uint64) << at) & mask)).astype(dtype)


def permute(a: Lanes, b: Lanes, selector: Lanes) -> Lanes:
    """`prmt` in its default mode: four bytes picked from b:a, or their sign replicated."""
    value = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
    result = np.uint32(0)
    for i in range(4):
        pick = (selector >> np.uint32(4 * i)) & np.uint32(15)
        byte = (value >> ((pick & np.uint32(7)).astype(np.uint64) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        chosen = np.where(pick & np.uint32(8), sign, byte).astype(np.uint32)
        result = result | (chosen << np.uint32(8 * i))
    return result


def lookup3(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    """`lop3`: any bitwise function of three inputs, given by its truth table."""
    result = a ^ a
    for i in range(8):
        if table >> i & 1:
            result = result | ((a if i & 4 else ~a) & (b if i & 2 else ~b) & (c if i & 1 else ~c))
    return result


def population(a: Lanes) -> Lanes:
    """`popc`, as uint32."""
    x = a.astype(np.uint64)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return ((x * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.uint32)


def leading_zeros(a: Lanes) -> Lanes:
    """`clz`, as uint32."""
    bits = a.dtype.itemsize * 8
    x = a.astype(np.uint64)
    for shift in (1, 2, 4, 8, 16, 32):
        x = x | (x >> np.uint64(shift))
    return np.uint32(bits) - population(x)


def find_leading(a: Lanes, shift_amount: bool) -> Lanes:
    """`bfind`: position of the most significant bit that is not the sign, as uint32; all ones where there is none."""
    bits = a.dtype.itemsize * 8
    plain = a.view(unsigned(a.dtype.itemsize))
    x = np.where(a < 0, ~plain, plain)[()] if a.dtype.kind == "i" else a
    zeros = leading_zeros(x)
    found = zeros if shift_amount else np.uint32(bits - 1) - zeros
    return np.where(x == 0, np.uint32(0xFFFFFFFF), found)[()]


def reverse(a: Lanes) -> Lanes:
    """`brev`."""
    bits = a.dtype.itemsize * 8
    x = a.astype(np.uint64)
    swaps = ((1, 0x5555555555555555), (2, 0x3333333333333333), (4, 0x0F0F0F0F0F0F0F0F), (8, 0x00FF00FF00FF00FF))
    for shift, mask in (*swaps, (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF)):
        x = ((x >> np.uint64(shift)) & np.uint64(mask)) | ((x & np.uint64(mask)) << np.uint64(shift))
    return (x >> np.uint64(64 - bits)).astype(a.dtype)


def to_integer(x: Lanes, dtype: Any, rounding: str) -> Lanes:
    """`cvt` from float to integer: rounds, clamps to the range, and gives NaN its documented value.

    NaN becomes 0, or 1 << (bits - 1) where the source is f64 or the destination has 64 bits (PTX ISA, `cvt`).
    """
    dtype = np.dtype(dtype)
    limits = np.iinfo(dtype)
    value = ROUNDING[rounding](np.asarray(x, np.float64))
    high, low = value >= float(limits.max), value <= float(limits.min)
    inside = np.where(high | low | np.isnan(value), 0.0, value)
    result = np.where(high, limits.max, np.where(low, limits.min, inside.astype(dtype)))
    wide = x.dtype == np.float64 or dtype.itemsize == 8
    invalid = unsigned(dtype.itemsize).type(1 << (dtype.itemsize * 8 - 1)).view(dtype) if wide else dtype.type(0)
    return np.where(np.isnan(value), invalid, result).astype(dtype)[()]


def clamp_integer(x: Lanes, dtype: Any) -> Lanes:
    """`cvt.sat` between integers."""
    source, target = np.iinfo(x.dtype), np.iinfo(dtype)
    low, high = max(source.min, target.min), min(source.max, target.max)
    return np.minimum(np.maximum(x, x.dtype.type(low)), x.dtype.type(high)).astype(dtype)


def to_float(x: Lanes, dtype: Any, rounding: str) -> Lanes:
    """`cvt` to a float type from an integer or a wider float, in rounding mode rn, rz, rm or rp."""
    dtype = np.dtype(dtype)
    near = np.asarray(x.astype(dtype))
    if rounding == "rn":
        return near[()]
    up, down = _compare_exactly(near, np.asarray(x))
    lower, higher = np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))
    if rounding == "rm":
        result = np.where(up, lower, near)
    elif rounding == "rp":
        result = np.where(down, higher, near)
    else:
        positive = x > 0
        result = np.where(up & positive, lower, np.where(down & ~positive, higher, near))
    return np.where((result == 0) & (near == 0), near, result)[()]


def _compare_exactly(near: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where `near` lies above and below x; 64-bit integers are compared as integers, which float64 cannot hold."""
    if x.dtype.kind == "f" or x.dtype.itemsize < 8:
        wide, exact = near.astype(np.float64), x.astype(np.float64)
        return wide > exact, wide < exact
    pairs = [(int(n) if np.isfinite(n) else 2**80, int(v)) for n, v in zip(near.ravel().tolist(), x.ravel().tolist())]
    above = np.array([n > v for n, v in pairs], bool).reshape(x.shape)
    return above, np.array([n < v for n, v in pairs], bool).reshape(x.shape)

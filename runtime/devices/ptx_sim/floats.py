"""Floating-point arithmetic of PTX on NumPy lanes: fma, min and max, flushing, bfloat16, approximations.

NumPy's +, -, *, / and sqrt on float16, float32 and float64 are IEEE and rounded once, so they serve as they are. A
fused multiply-add is built from error-free transformations: Boldo and Melquiond, "Emulation of FMA and correctly
rounded sums: proved algorithms using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

Lanes = Any  # a NumPy scalar (the same in all lanes) or an array with one element per lane

_F32_NAN = np.uint32(0x7FFFFFFF).view(np.float32)
_F16_NAN = np.uint16(0x7FFF).view(np.float16)
_F64_NAN = np.uint64(0x7FF8000000000000).view(np.float64)
_CANONICAL = {np.dtype(np.float16): _F16_NAN, np.dtype(np.float32): _F32_NAN, np.dtype(np.float64): _F64_NAN}
_INTEGER_OF = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def widen_bf16(bits: Lanes) -> Lanes:
    """bfloat16 bits -> float32, exact."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def round_bf16(x: Lanes) -> Lanes:
    """float32 -> bfloat16 bits, to nearest even; NaN becomes the canonical 0x7fff."""
    u = x.view(np.uint32)
    kept = (u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), kept.astype(np.uint16))[()]


def truncate_bf16(x: Lanes) -> Lanes:
    """float32 -> bfloat16 bits, toward zero."""
    return np.where(np.isnan(x), np.uint16(0x7FFF), (x.view(np.uint32) >> np.uint32(16)).astype(np.uint16))[()]


def round_tf32(x: Lanes) -> Lanes:
    """float32 -> tf32 bits (10 bits of fraction), ties away from zero: `cvt.rna.tf32.f32`."""
    u = x.view(np.uint32)
    kept = (u + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), kept, np.where(np.isnan(x), np.uint32(0x7FFFFFFF), u))[()]


def flush(x: Lanes) -> Lanes:
    """`.ftz`: subnormal float32 becomes a zero of the same sign."""
    return np.where(np.abs(x) < np.float32(1.17549435e-38), np.copysign(np.float32(0), x), x)[()]


def saturate(x: Lanes) -> Lanes:
    """`.sat`: clamp to [0, 1]; NaN becomes +0."""
    one, zero = x.dtype.type(1), x.dtype.type(0)
    return np.where(x > zero, np.where(x > one, one, x), zero)[()]


def _odd_sum(p: Lanes, c: Lanes) -> Lanes:
    """p + c in float64, rounded to odd, so that one further rounding to a narrower type is correct."""
    s = np.asarray(p + c)
    t = s - p
    error = (p - (s - t)) + (c - t)
    bits = s.view(np.int64)
    inexact = (error != 0) & ((bits & 1) == 0) & np.isfinite(s)
    away = np.where((error > 0) == (s > 0), np.int64(1), np.int64(-1))
    return np.where(inexact, bits + away, bits).view(np.float64)


def fma32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c in float32, rounded once.

    The product is exact in float64. Rounding the float64 sum again is right except where that sum lies half way between
    two float32 (or is so small that float32 keeps fewer bits); only those lanes take the exact way.
    """
    shape = np.broadcast(a, b, c).shape
    p = np.atleast_1d(np.multiply(a, b, dtype=np.float64))
    s = np.add(p, c, dtype=np.float64)
    result = s.astype(np.float32)
    low = s.view(np.int64) & 0x1FFFFFFF
    doubtful = low == 0x10000000
    doubtful |= (np.abs(s) < 2.0**-125) & (s != 0)
    if doubtful.any():
        where = doubtful.nonzero()
        exact = np.broadcast_to(np.float64(c), s.shape)[where]
        result[where] = _odd_sum(np.broadcast_to(p, s.shape)[where], exact).astype(np.float32)
    return result.reshape(shape)[()]


def fma16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c in float16, rounded once."""
    return _odd_sum(np.multiply(a, b, dtype=np.float64), c.astype(np.float64)).astype(np.float16)[()]


def fma_bf16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c on bfloat16 bits, rounded once."""
    a, b, c = (widen_bf16(x).astype(np.float64) for x in (a, b, c))
    exact = _odd_sum(a * b, c)
    near = exact.astype(np.float32)
    error = exact - near.astype(np.float64)
    bits = near.view(np.int32)
    inexact = (error != 0) & ((bits & 1) == 0) & np.isfinite(near)
    away = np.where((error > 0) == (near > 0), np.int32(1), np.int32(-1))
    return round_bf16(np.where(inexact, bits + away, bits).view(np.float32))


def fma64(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c in float64, rounded once; exponents near the ends of the range take exact rational arithmetic."""
    shape = np.broadcast(a, b, c).shape
    a, b, c = (np.array(np.atleast_1d(x), np.float64) for x in np.broadcast_arrays(a, b, c))
    result = np.asarray(a * b + c)
    plain = ~(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)) | (a == 0) | (b == 0)
    sizes = [np.abs(x) for x in (a, b)]
    safe = np.all([(size > 2.0**-450) & (size < 2.0**450) for size in sizes], axis=0)
    safe &= (c == 0) | ((np.abs(c) > 2.0**-900) & (np.abs(c) < 2.0**900))
    fast = (safe & ~plain).nonzero()
    if fast[0].size:
        result[fast] = _fma64_fast(a[fast], b[fast], c[fast])
    for index in zip(*(~safe & ~plain).nonzero()):
        exact = Fraction(float(a[index])) * Fraction(float(b[index])) + Fraction(float(c[index]))
        if exact:
            try:
                result[index] = float(exact)
            except OverflowError:
                result[index] = np.inf if exact > 0 else -np.inf
            if result[index] == 0:
                result[index] = np.copysign(0.0, float(exact.numerator))
    return result.reshape(shape)[()]


def _split(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    high = x * 134217729.0
    high = high - (high - x)
    return high, x - high


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fma64_fast(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    p = a * b
    (ah, al), (bh, bl) = _split(a), _split(b)
    error = ((ah * bh - p) + ah * bl + al * bh) + al * bl
    uh, ul = _two_sum(c, error)
    th, tl = _two_sum(p, uh)
    return th + _odd_sum(tl, ul)


def fmin(a: Lanes, b: Lanes) -> Lanes:
    """`min`: the number where one input is NaN, canonical NaN where both are, -0 below +0."""
    return _extremum(np.fmin(a, b), np.bitwise_or, a, b)


def fmax(a: Lanes, b: Lanes) -> Lanes:
    """`max`: the number where one input is NaN, canonical NaN where both are, +0 above -0."""
    return _extremum(np.fmax(a, b), np.bitwise_and, a, b)


def fmin_nan(a: Lanes, b: Lanes) -> Lanes:
    """`min.NaN`: canonical NaN where any input is NaN."""
    return np.where(np.isnan(a) | np.isnan(b), _CANONICAL[a.dtype], fmin(a, b))[()]


def fmax_nan(a: Lanes, b: Lanes) -> Lanes:
    """`max.NaN`: canonical NaN where any input is NaN."""
    return np.where(np.isnan(a) | np.isnan(b), _CANONICAL[a.dtype], fmax(a, b))[()]


def _extremum(value: Lanes, join: Any, a: Lanes, b: Lanes) -> Lanes:
    integer = _INTEGER_OF[value.dtype.itemsize]
    zeros = join(a.view(integer), b.view(integer)).view(value.dtype)
    value = np.where((a == 0) & (b == 0), zeros, value)
    return np.where(np.isnan(value), _CANONICAL[value.dtype], value)[()]


def unary_bf16(function: Any, *operands: Lanes) -> Lanes:
    """Apply a float32 function to bfloat16 bits and round its result once."""
    return round_bf16(function(*(widen_bf16(x) for x in operands)))


def pairs(function: Any, *operands: Lanes) -> Lanes:
    """Apply a function of 16-bit lanes (as uint16) to both halves of 32-bit registers."""
    halves = []
    for shift in (0, 16):
        halves.append(function(*((x >> np.uint32(shift)).astype(np.uint16) for x in operands)).astype(np.uint32))
    return halves[0] | (halves[1] << np.uint32(16))


def _rounded(function: Any) -> Any:
    """An approximate instruction as its function in float64, rounded once."""
    return lambda x: np.asarray(function(np.asarray(x, np.float64))).astype(x.dtype)[()]


APPROXIMATE = {
    "ex2": _rounded(np.exp2),
    "lg2": _rounded(np.log2),
    "rsqrt": _rounded(lambda x: 1.0 / np.sqrt(x)),
    "sin": _rounded(np.sin),
    "cos": _rounded(np.cos),
    "tanh": _rounded(np.tanh),
}

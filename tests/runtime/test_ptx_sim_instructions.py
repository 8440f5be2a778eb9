"""Single instructions of the PTX emulator on special values, each also assembled by ptxas."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from .ptx_kernels import (
    elementwise,
)
from .ptx_running import apply, same_bits

RANDOM = np.random.default_rng(7)
F32 = np.float32

SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 3.4e38, -3.4e38, 1e-45, -1e-45, 1.1754944e-38, 1e-39, np.inf, -np.inf, np.nan],
    F32,
)
LEFT, RIGHT = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))


UNARY = {
    "neg.f32 %out, %a0;": lambda x: -x,
    "abs.f32 %out, %a0;": np.abs,
    "sqrt.rn.f32 %out, %a0;": np.sqrt,
    "rcp.rn.f32 %out, %a0;": lambda x: F32(1) / x,
    "cvt.rni.f32.f32 %out, %a0;": np.rint,
    "cvt.rzi.f32.f32 %out, %a0;": np.trunc,
    "cvt.rmi.f32.f32 %out, %a0;": np.floor,
    "cvt.rpi.f32.f32 %out, %a0;": np.ceil,
    "cvt.sat.f32.f32 %out, %a0;": lambda x: np.where(x > 0, np.minimum(x, F32(1)), F32(0)),
    "add.ftz.f32 %out, %a0, 0f00000000;": lambda x: np.where(np.abs(x) < 1.1754944e-38, F32(0), x),
    "ex2.approx.f32 %out, %a0;": np.exp2,
    "lg2.approx.f32 %out, %a0;": np.log2,
    "tanh.approx.f32 %out, %a0;": np.tanh,
}


@pytest.mark.parametrize("body", UNARY)
def test_unary_on_special_values(body):
    with np.errstate(all="ignore"):
        expected = UNARY[body](SPECIAL)
    if "approx" in body:
        np.testing.assert_allclose(apply(elementwise(body), SPECIAL), expected, rtol=1e-6)
    else:
        same_bits(apply(elementwise(body), SPECIAL), expected)


def ordered_max(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    both_zero = (a == 0) & (b == 0)
    return np.where(both_zero, np.where(np.signbit(a) & np.signbit(b), F32(-0.0), F32(0.0)), np.fmax(a, b))


BINARY = {
    "add.f32 %out, %a0, %a1;": np.add,
    "sub.rn.f32 %out, %a0, %a1;": np.subtract,
    "mul.f32 %out, %a0, %a1;": np.multiply,
    "div.rn.f32 %out, %a0, %a1;": np.divide,
    "max.f32 %out, %a0, %a1;": ordered_max,
    "min.f32 %out, %a0, %a1;": lambda a, b: -ordered_max(-a, -b),
    "max.NaN.f32 %out, %a0, %a1;": lambda a, b: np.where(
        np.isnan(a + b) & (np.isnan(a) | np.isnan(b)), np.nan, ordered_max(a, b)
    ),
    "copysign.f32 %out, %a0, %a1;": lambda a, b: np.copysign(b, a),
}


@pytest.mark.parametrize("body", BINARY)
def test_binary_on_special_values(body):
    with np.errstate(all="ignore"):
        expected = BINARY[body](LEFT, RIGHT)
    same_bits(apply(elementwise(body, 2), LEFT, RIGHT), expected)


def test_min_of_two_nans_is_the_canonical_nan():
    nan = np.array([np.nan], F32)
    assert apply(elementwise("min.f32 %out, %a0, %a1;", 2), nan, nan).view(np.uint32)[0] == 0x7FFFFFFF


COMPARISONS = {"eq": np.equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


@pytest.mark.parametrize("name", [*COMPARISONS, "ne", *(f"{name}u" for name in COMPARISONS), "neu", "num", "nan"])
def test_float_comparisons_on_special_values(name):
    unordered = np.isnan(LEFT) | np.isnan(RIGHT)
    base = name.removesuffix("u") if name != "num" else name
    if name in ("num", "nan"):
        expected = unordered == (name == "nan")
    elif base == "ne":
        expected = (LEFT != RIGHT) & (~unordered | (name == "neu"))
    else:
        expected = COMPARISONS[base](LEFT, RIGHT) | (unordered & name.endswith("u"))
    body = f"setp.{name}.f32 %p2, %a0, %a1; selp.f32 %out, 0f3F800000, 0f00000000, %p2;"
    same_bits(apply(elementwise(body, 2), LEFT, RIGHT), expected.astype(F32))


def test_comparison_joined_with_a_predicate_and_its_complement():
    body = """setp.gt.s32 %p2, %r1, 3;
    setp.lt.and.f32 %p3|%p4, %a0, %a1, %p2;
    selp.f32 %f1, 0f3F800000, 0f00000000, %p3; selp.f32 %f2, 0f40000000, 0f00000000, %p4; add.f32 %out, %f1, %f2;"""
    late = np.arange(LEFT.size) > 3
    expected = ((LEFT < RIGHT) & late) + 2.0 * (~(LEFT < RIGHT) & late)
    same_bits(apply(elementwise(body, 2), LEFT, RIGHT), expected)


def exact_fma(a: float, b: float, c: float, dtype: type) -> float:
    """a * b + c rounded once, by exact rational arithmetic."""
    if not all(map(math.isfinite, (a, b, c))) or a == 0 or b == 0:
        with np.errstate(all="ignore"):
            return np.float64(a) * np.float64(b) + np.float64(c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return 0.0
    digits, smallest = {np.float32: (24, -149), np.float64: (53, -1074), np.float16: (11, -24)}[dtype]
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()
    while Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= abs(exact):
        exponent += 1
    unit = Fraction(2) ** max(exponent - digits + 1, smallest)
    sign = 1.0 if exact > 0 else -1.0
    try:
        return math.copysign(float(round(exact / unit) * unit), sign)
    except OverflowError:
        return math.copysign(math.inf, sign)


def test_fma_rounds_once_f32():
    a, b = (RANDOM.standard_normal(3000).astype(F32) for _ in range(2))
    exact = a.astype(np.float64) * b
    # Addends that put the sum half way between two float32, with and without a remainder beyond float64.
    c = np.concatenate([RANDOM.standard_normal(1000), -exact[1000:2000], 2.0**24 * exact[2000:]]).astype(F32)
    a[:4], b[:4], c[:4] = [1 + 2**-12, 1e-30, 1e-30, 3e38], [1 + 2**-12, 1e-12, -1e-14, 2], [2**-60, 1e-45, -0.0, -3e38]
    got = apply(elementwise("fma.rn.f32 %out, %a0, %a1, %a2;", 3), a, b, c)
    expected = np.array([exact_fma(float(x), float(y), float(z), F32) for x, y, z in zip(a, b, c)])
    same_bits(got, expected)


def test_fma_is_not_rounded_twice():
    # (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24 lies half way between two float32; float64 loses the addend that decides.
    a, c = np.full(2, 1 + 2**-12, F32), np.array([2**-60, -(2**-60)], F32)
    got = apply(elementwise("fma.rn.f32 %out, %a0, %a0, %a1;", 2), a, c)
    same_bits(got, [1 + 2**-11 + 2**-23, 1 + 2**-11])


def test_fma_on_special_values():
    third = np.roll(RIGHT, 7)
    got = apply(elementwise("fma.rn.f32 %out, %a0, %a1, %a2;", 3), LEFT, RIGHT, third)
    with np.errstate(all="ignore"):
        expected = [F32(exact_fma(float(x), float(y), float(z), F32)) for x, y, z in zip(LEFT, RIGHT, third)]
    same_bits(got, np.array(expected))


def test_fma_rounds_once_f64():
    a, b = RANDOM.standard_normal(400), RANDOM.standard_normal(400)
    c = np.concatenate([RANDOM.standard_normal(200), -(a * b)[200:]])
    extreme = np.array([1e-300, 1e300, -1e-320, 5e-324, 0.0, np.inf, np.nan, 1e-160])
    x, y, z = (part.ravel() for part in np.meshgrid(extreme, extreme, -extreme))
    a, b, c = np.concatenate([a, x]), np.concatenate([b, y]), np.concatenate([c, z])
    got = apply(elementwise("fma.rn.f64 %out, %a0, %a1, %a2;", 3, "f64"), a, b, c, result=np.float64)
    same_bits(got, [exact_fma(x, y, z, np.float64) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist())])


def test_fma_rounds_once_f16():
    a, b, c = (RANDOM.standard_normal(500).astype(np.float16) for _ in range(3))
    body = """cvt.rn.f16.f32 %h1, %a0; cvt.rn.f16.f32 %h2, %a1; cvt.rn.f16.f32 %h3, %a2;
    fma.rn.f16 %h4, %h1, %h2, %h3; cvt.f32.f16 %out, %h4;"""
    got = apply(elementwise(body, 3), *(x.astype(F32) for x in (a, b, c)))
    same_bits(got, np.array([exact_fma(float(x), float(y), float(z), np.float16) for x, y, z in zip(a, b, c)]))


@pytest.mark.parametrize("mode, rounding", [("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)])
@pytest.mark.parametrize("kind", ["s32", "u32", "s64"])
def test_float_to_integer(mode, rounding, kind):
    x = np.concatenate([SPECIAL, [0.5, 2.5, -0.5, 2147483648.0, -2147483648.0, 4294967040.0, 1e19]]).astype(F32)
    bits = int(kind[1:])
    limits = np.iinfo(f"int{bits}" if kind[0] == "s" else f"uint{bits}")
    text = elementwise(f"cvt.{mode}.{kind}.f32 %out, %a0;", 1, "f32", kind)
    got = apply(text, x, result=limits.dtype)
    for value, found in zip(x.tolist(), got.tolist()):
        if math.isnan(value):
            # PTX ISA, cvt: 0 for narrow results, 1 << 63 for 64 bits.
            assert found == (0 if bits == 32 else -(2**63))
        elif math.isinf(value):
            assert found == (limits.max if value > 0 else limits.min)
        else:
            assert found == min(max(int(rounding(value)), limits.min), limits.max), value


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("kind, dtype", [("s32", np.int32), ("u32", np.uint32), ("s64", np.int64), ("u64", np.uint64)])
def test_integer_to_float_rounds_as_told(mode, kind, dtype):
    limits = np.iinfo(dtype)
    x = np.array([0, 1, 16777217, 16777219, limits.max, limits.max - 1, limits.min, limits.min + 1, 123456789], dtype)
    got = apply(elementwise(f"cvt.{mode}.f32.{kind} %out, %a0;", 1, kind, "f32"), x)
    for value, found in zip(x.tolist(), got):
        below = F32(value) if Fraction(float(F32(value))) <= value else np.nextafter(F32(value), F32(-np.inf))
        above = below if Fraction(float(below)) == value else np.nextafter(below, F32(np.inf))
        expected = {"rn": F32(value), "rm": below, "rp": above, "rz": below if value >= 0 else above}[mode]
        assert found == expected, value


def test_narrow_float_conversions():
    x = np.concatenate([SPECIAL, RANDOM.standard_normal(500), [65504, 65519.9, 65520, 6e-8, 2.9e-8]]).astype(F32)
    with np.errstate(all="ignore"):
        half = x.astype(np.float16).astype(F32)
    same_bits(apply(elementwise("cvt.rn.f16.f32 %h1, %a0; cvt.f32.f16 %out, %h1;"), x), half)
    brain = x.astype(ml_dtypes.bfloat16).astype(F32)
    body = "cvt.rn.bf16.f32 %h1, %a0; mov.b16 %h2, 0; mov.b32 %r9, {%h2, %h1}; mov.b32 %out, %r9;"
    same_bits(apply(elementwise(body), x), brain)
    packed = "cvt.rn.bf16x2.f32 %r9, %a0, %a0; mov.b32 {%h1, %h2}, %r9; mov.b16 %h3, 0; mov.b32 %out, {%h3, %h1};"
    same_bits(apply(elementwise(packed), x), brain)


def test_packed_half_arithmetic():
    a, b = (RANDOM.standard_normal((300, 2)).astype(np.float16) for _ in range(2))
    text = elementwise("fma.rn.f16x2 %r10, %a0, %a1, %a0; max.f16x2 %out, %r10, %a1;", 2, "b32")
    got = apply(text, a.view(np.uint32).ravel(), b.view(np.uint32).ravel(), result=np.uint32).view(np.float16)
    exact = (a.astype(np.float64) * b + a).astype(np.float16)
    same_bits(got, np.maximum(exact, b).ravel())


INTEGERS = np.array([0, 1, -1, 5, -7, 31, 32, 33, 2**31 - 1, -(2**31), 0x12345678, -559038737], np.int64).astype(
    np.int32
)
IA, IB = (part.ravel() for part in np.meshgrid(INTEGERS, INTEGERS))


def wrap(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


INTEGER = {
    "add.s32 %out, %a0, %a1;": lambda a, b: a + b,
    "sub.s32 %out, %a0, %a1;": lambda a, b: a - b,
    "mul.lo.s32 %out, %a0, %a1;": lambda a, b: a * b,
    "mul.hi.s32 %out, %a0, %a1;": lambda a, b: (a * b) >> 32,
    "mul.hi.u32 %out, %a0, %a1;": lambda a, b: ((a % 2**32) * (b % 2**32)) >> 32,
    "mad.lo.s32 %out, %a0, %a1, %a0;": lambda a, b: a * b + a,
    "div.s32 %out, %a0, %a1;": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if b else -1,
    "rem.s32 %out, %a0, %a1;": lambda a, b: int(math.copysign(abs(a) % abs(b), a)) if b else a,
    "min.s32 %out, %a0, %a1;": min,
    "max.u32 %out, %a0, %a1;": lambda a, b: max(a % 2**32, b % 2**32),
    "shl.b32 %out, %a0, %a1;": lambda a, b: a << b % 2**32 if b % 2**32 < 32 else 0,
    "shr.s32 %out, %a0, %a1;": lambda a, b: a >> min(b % 2**32, 31),
    "shr.u32 %out, %a0, %a1;": lambda a, b: (a % 2**32) >> min(b % 2**32, 40),
    "xor.b32 %out, %a0, %a1;": lambda a, b: a ^ b,
    "not.b32 %out, %a0;": lambda a, b: ~a,
    "popc.b32 %out, %a0;": lambda a, b: bin(a % 2**32).count("1"),
    "clz.b32 %out, %a0;": lambda a, b: 32 - (a % 2**32).bit_length(),
    "brev.b32 %out, %a0;": lambda a, b: int(f"{a % 2**32:032b}"[::-1], 2),
    "bfind.u32 %out, %a0;": lambda a, b: (a % 2**32).bit_length() - 1,
    "bfe.u32 %out, %a0, 4, 7;": lambda a, b: (a >> 4) & 127,
    "bfe.s32 %out, %a0, 4, 7;": lambda a, b: ((a >> 4) & 127) - ((a >> 4) & 64) * 2,
    "bfi.b32 %out, %a0, %a1, 8, 4;": lambda a, b: (b & ~0xF00) | (a & 15) << 8,
    "prmt.b32 %out, %a0, %a1, 0x4321;": lambda a, b: (a % 2**32) >> 8 | (b & 255) << 24,
    "shf.l.wrap.b32 %out, %a0, %a1, 8;": lambda a, b: (b << 8) | (a % 2**32) >> 24,
    "lop3.b32 %out, %a0, %a1, %a0, 0x3C;": lambda a, b: a ^ b,
    "slct.s32.s32 %out, %a0, %a1, %a0;": lambda a, b: a if a >= 0 else b,
    "cvt.s32.s8 %out, %a0;": lambda a, b: (a + 128) % 256 - 128,
    "cvt.sat.s8.s32 %out, %a0;": lambda a, b: min(max(a, -128), 127),
}


@pytest.mark.parametrize("body", INTEGER)
def test_integer_instructions(body):
    got = apply(elementwise(body, 2, "b32"), IA, IB, result=np.int32)
    expected = [wrap(INTEGER[body](a, b)) for a, b in zip(IA.tolist(), IB.tolist())]
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("kind, dtype", [("s64", np.int64), ("u64", np.uint64)])
def test_high_half_of_64_bit_products(kind, dtype):
    limits = np.iinfo(dtype)
    values = np.array([0, 1, 3, limits.max, limits.min, limits.max // 3, 2**40 + 12345], dtype)
    a, b = (part.ravel() for part in np.meshgrid(values, values))
    got = apply(elementwise(f"mul.hi.{kind} %out, %a0, %a1;", 2, kind), a, b, result=dtype)
    assert got.tolist() == [(x * y) >> 64 for x, y in zip(a.tolist(), b.tolist())]


def test_packing_and_unpacking_registers():
    x = RANDOM.standard_normal(100)
    body = "mov.b64 {%r10, %r11}, %a0; xor.b32 %r11, %r11, 0x80000000; mov.b64 %out, {%r10, %r11};"
    same_bits(apply(elementwise(body, 1, "f64"), x, result=np.float64), -x)


def test_local_memory_and_generic_addresses():
    body = """.local .align 4 .b8 scratch[8];
    .shared .align 4 .b8 tile[256];
    mov.u64 %rd3, scratch; cvta.local.u64 %rd4, %rd3;
    st.f32 [%rd4+4], %a0;
    ld.local.f32 %f1, [scratch+4];
    mov.u64 %rd5, tile; cvta.shared.u64 %rd6, %rd5; mul.wide.u32 %rd7, %r5, 4; add.s64 %rd6, %rd6, %rd7;
    st.f32 [%rd6], %f1; ld.f32 %f2, [%rd6];
    cvta.to.shared.u64 %rd8, %rd6; ld.shared.f32 %f3, [%rd8];
    add.f32 %out, %f2, %f3;"""
    x = RANDOM.standard_normal(130).astype(F32)
    same_bits(apply(elementwise(body), x), 2 * x)


def test_nested_scopes_hide_registers():
    body = (
        "{ .reg .f32 %f1; mul.f32 %f1, %a0, %a0; mov.f32 %f2, %f1; } mov.f32 %f1, 0f3F800000; add.f32 %out, %f1, %f2;"
    )
    x = RANDOM.standard_normal(40).astype(F32)
    same_bits(apply(elementwise(body), x), x * x + F32(1))


def test_divergent_branches_meet_again():
    body = """mov.f32 %out, 0f00000000; and.b32 %r9, %r1, 3; setp.eq.u32 %p2, %r9, 0;
    @%p2 bra DONE_LOOP;
LOOP:
    add.f32 %out, %out, %a0; sub.u32 %r9, %r9, 1; setp.ne.u32 %p3, %r9, 0;
    @%p3 bra.uni LOOP;
DONE_LOOP:
    add.f32 %out, %out, 0f3F800000;"""
    body = body.replace("bra.uni", "bra")
    x = RANDOM.integers(0, 9, 130).astype(F32)
    same_bits(apply(elementwise(body), x), x * (np.arange(130) % 4) + 1)


def test_votes_and_active_lanes():
    body = """setp.gt.f32 %p2, %a0, 0f00000000;
    vote.sync.ballot.b32 %r9, %p2, 0xffffffff; vote.sync.any.pred %p3, %p2, -1; vote.sync.all.pred %p4, %p2, -1;
    popc.b32 %r10, %r9; @%p3 add.u32 %r10, %r10, 100; @%p4 add.u32 %r10, %r10, 1000;
    cvt.rn.f32.u32 %out, %r10;"""
    x = np.concatenate([np.ones(32), -np.ones(32), np.arange(64) % 2 * 2 - 1]).astype(F32)
    expected = np.repeat([1132, 0, 116, 116], 32)
    same_bits(apply(elementwise(body), x), expected)

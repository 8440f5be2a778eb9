"""The PTX emulator: kernels against NumPy, single instructions on special values, and every check on a seeded bug."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from nablair.ir.diagnostics import DeviceError
from nablair.runtime.devices import ptx_sim
from nablair.runtime.devices.ptx_sim import Checks, PtxFault, PtxSyntaxError, load
from nablair.runtime.ptxas import assemble, find_ptxas

from .ptx_kernels import (
    DYNAMIC_SHARED,
    GRID_STRIDE,
    HEADER,
    SCALE,
    SHUFFLE_REDUCTION,
    TENSOR_TF32,
    elementwise,
    kernel,
    tensor_core,
    tiled_matmul,
    tree_reduction,
)

RANDOM = np.random.default_rng(7)
F32 = np.float32


@pytest.fixture
def memory():
    return ptx_sim.Memory()


def apply(text: str, *inputs: np.ndarray, result: type = np.float32, **options) -> np.ndarray:
    """Run an `elementwise` kernel, after ptxas has agreed that it is PTX."""
    if find_ptxas() is not None:
        assemble(text, "sm_90")
    memory = ptx_sim.Memory()
    count = inputs[0].size
    out = memory.empty(count, result)
    args = [*map(memory.upload, inputs), out, np.uint32(count)]
    load(text).launch("apply", (-(-count // 64),), (64,), args, **options)
    return out.numpy()


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    """Equal bit for bit, but for the payload of NaN."""
    got, expected = np.asarray(got), np.asarray(expected, got.dtype)
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known])


def fault(kind: str, text: str, name: str, *launch, line: str = "", **options) -> PtxFault:
    """Launch and return the fault, which must be of that kind and stand at that line of the text."""
    with pytest.raises(PtxFault, match=f"^{kind}: ") as caught:
        load(text).launch(name, *launch, **options)
    found = caught.value
    assert found.kind == kind and found.site.kernel == name and isinstance(found, DeviceError)
    assert line in found.site.text
    assert not line or line.split()[0] in text.splitlines()[found.site.line - 1]
    return found


SPECIAL = np.array(
    [0.0, -0.0, 1.0, -1.0, 1.5, -2.5, 3.4e38, -3.4e38, 1e-45, -1e-45, 1.1754944e-38, 1e-39, np.inf, -np.inf, np.nan],
    F32,
)
LEFT, RIGHT = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))


# Whole kernels.


@pytest.mark.parametrize("count", [1, 31, 64, 1000, 4097])
def test_elementwise_with_a_tail(count):
    x = RANDOM.standard_normal(count).astype(F32)
    same_bits(apply(SCALE, x), x * F32(2) + F32(1))


@pytest.mark.parametrize("checks", [True, False])
def test_grid_stride_with_vector_accesses(memory, checks):
    x = RANDOM.standard_normal(4 * 1003).astype(F32)
    y = memory.empty(x.shape, F32)
    counters = load(GRID_STRIDE).launch("stride", (3,), (96,), [memory.upload(x), y, np.uint32(1003)], checks=checks)
    same_bits(y.numpy(), -x)
    assert counters.global_load_bytes == counters.global_store_bytes == x.nbytes


def test_grid_stride_in_place(memory):
    x = memory.upload(np.arange(400, dtype=F32))
    load(GRID_STRIDE).launch("stride", (2,), (32,), [x, x, np.uint32(100)])
    same_bits(x.numpy(), -np.arange(400, dtype=F32))


def test_tree_reduction_in_shared_memory(memory):
    x = RANDOM.integers(-100, 100, 256 * 300).astype(F32)
    y = memory.empty(300, F32)
    counters = load(tree_reduction()).launch("tree", (300,), (256,), [memory.upload(x), y])
    same_bits(y.numpy(), x.reshape(300, 256).sum(1))
    assert counters.barriers == 9 * 3  # 300 CTAs run in three batches


def test_shuffle_reduction(memory):
    x = RANDOM.integers(-1000, 1000, 64 * 40).astype(np.int32)
    total = memory.upload(np.zeros(1, np.int32))
    load(SHUFFLE_REDUCTION).launch("shuffle", (40,), (64,), [memory.upload(x), total])
    assert total.numpy()[0] == x.sum()


@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (120, 136, 72), (1, 1, 1), (33, 5, 50)])
def test_tiled_matmul_with_ragged_edges(memory, m, n, k):
    a, b = RANDOM.integers(-8, 8, (m, k)).astype(F32), RANDOM.integers(-8, 8, (k, n)).astype(F32)
    c = memory.empty((m, n), F32)
    args = [memory.upload(a), memory.upload(b), c, np.uint32(m), np.uint32(n), np.uint32(k)]
    load(tiled_matmul()).launch("matmul", (-(-n // 16), -(-m // 16)), (16, 16), args)
    same_bits(c.numpy(), a @ b)


@pytest.mark.parametrize("kind, dtype", [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_tensor_core_half_precision(memory, kind, dtype):
    a, b = RANDOM.integers(-50, 50, (16, 16)).astype(dtype), RANDOM.integers(-50, 50, (16, 8)).astype(dtype)
    d = memory.empty((16, 8), F32)
    args = [memory.upload(a.view(np.uint16)), memory.upload(b.view(np.uint16)), d]
    load(tensor_core(kind)).launch("tensor", (1,), (32,), args)
    same_bits(d.numpy(), a.astype(F32) @ b.astype(F32))


def test_tensor_core_tf32(memory):
    a, b = RANDOM.standard_normal((16, 8)).astype(F32), RANDOM.standard_normal((8, 8)).astype(F32)
    a, b = ((x.view(np.uint32) & np.uint32(0xFFFFE000)).view(F32) for x in (a, b))
    d = memory.empty((16, 8), F32)
    load(TENSOR_TF32).launch("tensor", (1,), (32,), [memory.upload(a), memory.upload(b), d])
    np.testing.assert_allclose(d.numpy(), a.astype(float) @ b + 1, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("threads", [32, 50, 1024])
def test_dynamic_shared_memory(memory, threads):
    x = RANDOM.standard_normal(threads).astype(F32)
    y = memory.empty(threads, F32)
    load(DYNAMIC_SHARED).launch("mirror", (1,), (threads,), [memory.upload(x), y], 4 * threads)
    same_bits(y.numpy(), 2 * x[::-1])


def test_three_dimensional_indices(memory):
    text = kernel(
        "where",
        "u64 out",
        """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z;
    mad.lo.u32 %r7, %r6, 3, %r5; mad.lo.u32 %r7, %r7, 2, %r4;
    mad.lo.u32 %r7, %r7, 2, %r3; mad.lo.u32 %r7, %r7, 3, %r2; mad.lo.u32 %r7, %r7, 4, %r1;
    mov.u32 %r8, %nctaid.z; mad.lo.u32 %r9, %r7, 10, %r8;
    ld.param.u64 %rd1, [out]; mad.wide.u32 %rd2, %r7, 4, %rd1; st.global.u32 [%rd2], %r9;
    ret;""",
    )
    out = memory.empty(4 * 6 * 24, np.uint32)
    load(text).launch("where", (2, 3, 4), (4, 3, 2), [out])
    same_bits(out.numpy(), np.arange(4 * 6 * 24) * 10 + 4)


# Single instructions.

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
    try:
        return math.copysign(float(round(exact / unit) * unit), exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


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
    body = "cvt.rn.f16.f32 %h1, %a0; cvt.rn.f16.f32 %h2, %a1; cvt.rn.f16.f32 %h3, %a2; fma.rn.f16 %h4, %h1, %h2, %h3; cvt.f32.f16 %out, %h4;"
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


def test_atomics_return_what_was_before(memory):
    text = kernel(
        "count",
        "u64 counter, u64 tickets, u64 slot",
        """
    ld.param.u64 %rd1, [counter]; ld.param.u64 %rd2, [tickets]; ld.param.u64 %rd5, [slot];
    atom.global.add.u32 %r1, [%rd1], 2;
    mul.wide.u32 %rd3, %r1, 2; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r1;
    atom.global.cas.b32 %r2, [%rd5], 0, 7;
    red.global.max.s32 [%rd5+4], %r1;
    ret;""",
    )
    counter, tickets = memory.upload(np.zeros(1, np.uint32)), memory.empty(128, np.uint32)
    slot = memory.upload(np.zeros(2, np.int32))
    load(text).launch("count", (4,), (32,), [counter, tickets, slot])
    assert counter.numpy()[0] == 256
    np.testing.assert_array_equal(tickets.numpy(), 2 * np.arange(128))
    assert slot.numpy().tolist() == [7, 254]


def test_votes_and_active_lanes():
    body = """setp.gt.f32 %p2, %a0, 0f00000000;
    vote.sync.ballot.b32 %r9, %p2, 0xffffffff; vote.sync.any.pred %p3, %p2, -1; vote.sync.all.pred %p4, %p2, -1;
    popc.b32 %r10, %r9; @%p3 add.u32 %r10, %r10, 100; @%p4 add.u32 %r10, %r10, 1000;
    cvt.rn.f32.u32 %out, %r10;"""
    x = np.concatenate([np.ones(32), -np.ones(32), np.arange(64) % 2 * 2 - 1]).astype(F32)
    expected = np.repeat([1132, 0, 116, 116], 32)
    same_bits(apply(elementwise(body), x), expected)


def test_module_variables_are_initialised(memory):
    text = HEADER + (
        ".const .align 4 .f32 weights[3] = {0f3F800000, 0f40000000, 0f40400000};\n.global .align 4 .u32 hits[1];\n"
    )
    text += kernel(
        "k", "u64 out", "ld.param.u64 %rd1, [out]; ld.const.f32 %f1, [weights+8]; st.global.f32 [%rd1], %f1; ret;"
    ).removeprefix(HEADER)
    out = memory.empty(1, F32)
    load(text).launch("k", (1,), (1,), [out])
    assert out.numpy()[0] == 3


def test_an_array_parameter_by_value(memory):
    text = kernel("k", "u64 out", "").replace(".param .u64 out", ".param .u64 out, .param .align 4 .b8 pair[8]")
    text = text.replace(
        "\n\n}",
        "\nld.param.u64 %rd1, [out]; ld.param.v2.u32 {%r1, %r2}, [pair]; sub.u32 %r3, %r2, %r1; st.global.u32 [%rd1], %r3; ret;\n}",
    )
    out = memory.empty(1, np.uint32)
    load(text).launch("k", (1,), (1,), [out, np.array([3, 10], np.uint32).tobytes()])
    assert out.numpy()[0] == 7


# Seeded bugs: each check finds its own.


def test_out_of_bounds_store_past_the_end(memory):
    text = SCALE.replace("setp.ge.s32 %p1, %r1, %r2", "setp.gt.s32 %p1, %r1, %r2")
    x, y = memory.upload(np.ones(101, F32)), memory.empty(100, F32)
    found = fault("out-of-bounds", text, "apply", (2,), (64,), [x, y, np.uint32(100)], line="st.global.f32")
    assert found.address == y.address + 400 and (found.site.cta, found.site.thread) == ((1, 0, 0), (36, 0, 0))
    assert "0 bytes past the end of the 400-byte allocation" in str(found)


def test_out_of_bounds_is_found_with_checks_off(memory):
    text = SCALE.replace("setp.ge.s32 %p1, %r1, %r2", "setp.gt.s32 %p1, %r1, %r2")
    x, y = memory.upload(np.ones(101, F32)), memory.empty(100, F32)
    fault("out-of-bounds", text, "apply", (2,), (64,), [x, y, np.uint32(100)], checks=False)


def test_a_freed_buffer_is_out_of_bounds(memory):
    x, y = memory.upload(np.ones(64, F32)), memory.empty(64, F32)
    x.free()
    fault("out-of-bounds", SCALE, "apply", (1,), (64,), [x, y, np.uint32(64)], line="ld.global.f32")


def test_misaligned_vector_load(memory):
    x, y = memory.upload(np.ones(100, F32)), memory.empty(96, F32)
    args = [np.uint64(x.address + 4), y, np.uint32(4)]
    found = fault("misaligned", GRID_STRIDE, "stride", (1,), (32,), args, line="ld.global.nc.v4", memory=memory)
    assert found.address == x.address + 4


def test_shared_memory_out_of_bounds(memory):
    text = tree_reduction().replace("part[1024]", "part[512]")
    args = [memory.upload(np.ones(256, F32)), memory.empty(1, F32)]
    found = fault("out-of-bounds", text, "tree", (1,), (256,), args, line="st.shared.f32")
    assert found.address == 512 and found.site.thread == (128, 0, 0)


def test_missing_barrier_after_the_first_store(memory):
    args = [memory.upload(np.ones(256, F32)), memory.empty(1, F32)]
    fault("race", tree_reduction(first=""), "tree", (1,), (256,), args, line="ld.shared.f32 %f3")


def test_missing_barrier_in_the_loop(memory):
    args = [memory.upload(np.ones(512, F32)), memory.empty(2, F32)]
    fault("race", tree_reduction(inner=""), "tree", (2,), (256,), args, line="ld.shared.f32")


def test_missing_barrier_before_a_tile_is_reused(memory):
    a, c = memory.upload(np.ones((32, 32), F32)), memory.empty((32, 32), F32)
    args = [a, a, c, *[np.uint32(32)] * 3]
    fault("race", tiled_matmul(last=""), "matmul", (2, 2), (16, 16), args, line="st.shared.f32")
    load(tiled_matmul(last="")).launch("matmul", (2, 2), (16, 16), args, checks=Checks(shared_races=False))


def test_two_threads_store_to_one_shared_word(memory):
    text = kernel("k", "u32 n", ".shared .b32 word; mov.u32 %r1, %tid.x; st.shared.u32 [word], %r1; ret;")
    fault("race", text, "k", (1,), (32,), [np.uint32(0)], line="st.shared.u32")


def test_two_ctas_store_to_one_global_word(memory):
    text = kernel("k", "u64 out", "ld.param.u64 %rd1, [out]; mov.u32 %r1, 1; st.global.u32 [%rd1], %r1; ret;")
    out = memory.empty(1, np.uint32)
    found = fault("race", text, "k", (2,), (1,), [out], line="st.global.u32")
    assert found.address == out.address
    load(text).launch("k", (2,), (1,), [out], checks=Checks(global_races=False))


def test_a_cta_reads_what_another_stores(memory):
    text = elementwise("mov.f32 %out, %a0;").replace("ld.global.f32 %a0, [%rd2]", "ld.global.f32 %a0, [%rd2+4]")
    x = memory.upload(np.ones(70000, F32))
    args = [x, x, np.uint32(69000)]
    # The other CTA stores later or earlier, in the same batch or in another one: all are races.
    fault("race", text, "apply", (1079,), (64,), args, line="st.global.f32")


def test_a_barrier_does_not_order_two_ctas(memory):
    body = """ld.param.u64 %rd1, [buffer]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r1;
    bar.sync 0;
    sub.u32 %r3, %r2, %r1; sub.u32 %r3, %r3, 1;
    mad.wide.u32 %rd3, %r3, 4, %rd1; ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd2+64], %r4; ret;"""
    fault("race", kernel("k", "u64 buffer", body), "k", (2,), (1,), [memory.empty(40, np.uint32)], line="ld.global.u32")


def test_a_barrier_orders_global_memory_within_a_cta(memory):
    body = """ld.param.u64 %rd1, [buffer]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, 4, %rd1; st.global.u32 [%rd2], %r1;
    BARRIER
    sub.u32 %r3, 63, %r1;
    mad.wide.u32 %rd3, %r3, 4, %rd1; ld.global.u32 %r4, [%rd3]; st.global.u32 [%rd2+256], %r4; ret;"""
    buffer = memory.empty(128, np.uint32)
    good, bad = (kernel("k", "u64 buffer", body.replace("BARRIER", one)) for one in ("bar.sync 0;", ""))
    load(good).launch("k", (1,), (64,), [buffer])
    np.testing.assert_array_equal(buffer.numpy()[64:], np.arange(64)[::-1])
    fault("race", bad, "k", (1,), (64,), [buffer], line="ld.global.u32")


def test_a_warp_barrier_orders_its_lanes_only():
    body = """.shared .align 4 .b8 tile[256]; mov.u32 %r1, %tid.x; mov.u32 %r5, tile;
    mad.lo.u32 %r2, %r1, 4, %r5; st.shared.u32 [%r2], %r1;
    bar.warp.sync -1;
    xor.b32 %r3, %r1, DISTANCE; mad.lo.u32 %r4, %r3, 4, %r5; ld.shared.u32 %r6, [%r4]; ret;"""
    near, far = (kernel("k", "u32 n", body.replace("DISTANCE", one)) for one in ("1", "32"))
    load(near).launch("k", (1,), (64,), [np.uint32(0)])
    fault("race", near.replace("bar.warp.sync -1;", ""), "k", (1,), (64,), [np.uint32(0)], line="ld.shared.u32")
    fault("race", far, "k", (1,), (64,), [np.uint32(0)], line="ld.shared.u32")


def test_atomics_need_a_barrier_after_the_counter_is_cleared(memory):
    body = """.shared .b32 counter; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, 0;
    @%p1 st.shared.u32 [counter], %r2;
    BARRIER
    atom.shared.add.u32 %r3, [counter], 1; ret;"""
    good, bad = (kernel("k", "u32 n", body.replace("BARRIER", one)) for one in ("bar.sync 0;", ""))
    load(good).launch("k", (2,), (64,), [np.uint32(0)])
    fault("race", bad, "k", (2,), (64,), [np.uint32(0)], line="atom.shared.add.u32")


def test_uninitialised_shared_memory(memory):
    text = tree_reduction().replace("st.shared.f32 [%r6], %f1;", "")
    args = [memory.upload(np.ones(256, F32)), memory.empty(1, F32)]
    fault("uninitialised", text, "tree", (1,), (256,), args, line="ld.shared.f32")
    load(text).launch("tree", (1,), (256,), args, checks=Checks(uninitialised=False))


def test_uninitialised_global_memory(memory):
    x, y = memory.empty(100, F32), memory.empty(100, F32)
    memory.write(x.address, np.ones(99, F32))
    load(SCALE).launch("apply", (2,), (64,), [x, y, np.uint32(99)])
    found = fault("uninitialised", SCALE, "apply", (2,), (64,), [x, y, np.uint32(100)], line="ld.global.f32")
    assert found.address == x.address + 396


def test_uninitialised_register_on_one_path(memory):
    body = "setp.lt.f32 %p2, %a0, 0f00000000; @%p2 mov.f32 %f1, 0f3F800000; add.f32 %out, %f1, %f1;"
    x = np.full(40, -1, F32)
    same_bits(apply(elementwise(body), x), np.full(40, 2))
    x[37] = 1
    y = memory.empty(40, F32)
    found = fault(
        "uninitialised", elementwise(body), "apply", (1,), (64,), [memory.upload(x), y, np.uint32(40)], line="add.f32"
    )
    assert "`%f1`" in str(found) and found.site.thread == (37, 0, 0)


def test_missing_wait_for_an_asynchronous_copy(memory):
    a, b = memory.upload(np.ones((16, 16), np.float16)), memory.upload(np.ones((16, 8), np.float16))
    args = [a, b, memory.empty((16, 8), F32)]
    fault("async-copy", tensor_core("f16", wait=""), "tensor", (1,), (32,), args, line="ldmatrix")
    fault("async-copy", tensor_core("f16", wait="cp.async.wait_group 1;"), "tensor", (1,), (32,), args, line="ldmatrix")
    fault("race", tensor_core("f16", barrier=""), "tensor", (1,), (32,), args, line="ldmatrix")


def test_asynchronous_copy_fills_with_zero_and_waits_by_group(memory):
    text = kernel(
        "k",
        "u64 x, u64 y",
        """.shared .align 16 .b8 tile[1024]; mov.u32 %r9, tile;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    mad.lo.u32 %r2, %r1, 16, %r9;
    setp.lt.u32 %p1, %r1, 31; selp.u32 %r3, 16, 4, %p1;
    cp.async.cg.shared.global [%r2], [%rd4], 16, %r3; cp.async.commit_group;
    cp.async.cg.shared.global [%r2+512], [%rd4], 16, 0; cp.async.commit_group;
    cp.async.wait_group 1;
    ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [%r2];
    cp.async.wait_group 0;
    ld.shared.f32 %f5, [%r2+512];
    add.f32 %f1, %f1, %f5; st.global.v4.f32 [%rd5], {%f1, %f2, %f3, %f4}; ret;""",
    )
    x = np.arange(1, 129, dtype=F32)
    # The last thread copies 4 of its 16 bytes: the buffer may end there.
    source, y = memory.upload(x[:125]), memory.empty(128, F32)
    load(text).launch("k", (1,), (32,), [source, y])
    same_bits(y.numpy(), np.where(np.arange(128) < 125, x, 0))


def test_divergent_barrier(memory):
    body = """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 40;
    @%p1 bra THERE;
    bar.sync 0;
    bra DONE;
THERE:
    bar.sync BARRIER;
DONE:
    ret;"""
    for barrier, who in (("0", "its warp"), ("1", "its CTA")):
        found = fault(
            "barrier",
            kernel("k", "u32 n", body.replace("BARRIER", barrier)),
            "k",
            (1,),
            (64,),
            [np.uint32(0)],
            line="bar.sync",
        )
        assert who in str(found)


def test_barrier_that_exited_threads_miss(memory):
    text = tree_reduction().replace(
        "st.shared.f32 [%r6], %f1;", "setp.gt.u32 %p4, %r1, 200; @%p4 ret; st.shared.f32 [%r6], %f1;"
    )
    args = [memory.upload(np.ones(256, F32)), memory.empty(1, F32)]
    fault("barrier", text, "tree", (1,), (256,), args, line="bar.sync")


def test_shuffle_with_lanes_that_are_elsewhere(memory):
    body = """mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; mov.u32 %r2, 0;
    @%p1 shfl.sync.bfly.b32 %r2, %r1, 1, 31, MEMBERS; ret;"""
    right, wrong = (kernel("k", "u32 n", body.replace("MEMBERS", one)) for one in ("0x0000ffff", "0xffffffff"))
    load(right).launch("k", (1,), (32,), [np.uint32(0)])
    found = fault("convergence", wrong, "k", (1,), (32,), [np.uint32(0)], line="shfl.sync")
    assert "0xffff0000" in str(found)


def test_shuffle_from_a_lane_that_does_not_exist(memory):
    x, total = memory.upload(np.ones(48, np.int32)), memory.upload(np.zeros(1, np.int32))
    found = fault("convergence", SHUFFLE_REDUCTION, "shuffle", (1,), (48,), [x, total], line="shfl.sync.bfly")
    assert found.site.thread == (32, 0, 0) and "lane 16" in str(found)


def test_trap_is_reported():
    fault(
        "trap",
        kernel("k", "u32 n", "mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 5; @%p1 trap; ret;"),
        "k",
        (1,),
        (32,),
        [np.uint32(0)],
        line="trap",
    )


# Counters.


def test_sectors_of_coalesced_and_strided_loads(memory):
    strided = elementwise("mov.f32 %out, %a0;").replace(
        "mad.wide.s32 %rd2, %r1, 4, %rd1; ld", "mad.wide.s32 %rd2, %r1, 32, %rd1; ld"
    )
    x, y = memory.upload(np.ones(8 * 256, F32)), memory.empty(256, F32)
    args = [x, y, np.uint32(256)]
    dense = load(SCALE).launch("apply", (4,), (64,), args, profile=True)
    assert (dense.global_loads, dense.global_load_sectors, dense.global_store_sectors) == (8, 32, 32)
    sparse = load(strided).launch("apply", (4,), (64,), args, profile=True)
    assert (sparse.global_loads, sparse.global_load_sectors) == (8, 256)
    assert dense.global_load_bytes == sparse.global_load_bytes == 1024
    assert load(SCALE).launch("apply", (4,), (64,), args).global_loads == 0


@pytest.mark.parametrize("stride, conflicts", [(4, 0), (8, 1), (128, 31), (132, 0)])
def test_bank_conflicts(stride, conflicts):
    text = kernel(
        "k",
        "u32 n",
        f".shared .align 16 .b8 tile[8192]; mov.u32 %r1, %tid.x; mov.u32 %r3, tile; mad.lo.u32 %r2, %r1, {stride}, %r3; st.shared.u32 [%r2], %r1; ret;",
    )
    counters = load(text).launch("k", (3,), (32,), [np.uint32(0)], profile=True)
    assert (counters.shared_requests, counters.shared_bank_conflicts) == (3, 3 * conflicts)


# What cannot be run is told.


@pytest.mark.parametrize(
    "args, message",
    [
        ([3], r"takes 3 arguments \(.u64 in0, .u64 out, .u32 n\), got 1"),
        ([np.uint64(0), np.uint64(0), 5], r"parameter `n` \(.u32\): expected a NumPy scalar like np.uint32, got int"),
        ([np.uint64(0), np.uint64(0), np.int64(5)], "got int64"),
        ([np.uint64(0), np.uint64(0), np.float32(5)], "got float32"),
        ([np.float64(0), np.uint64(0), np.uint32(5)], "parameter `in0`"),
    ],
)
def test_arguments_must_have_their_parameters_types(args, message):
    with pytest.raises(DeviceError, match=message):
        load(SCALE).launch("apply", (1,), (32,), args)


def test_launches_that_no_device_takes():
    module = load(SCALE.replace(")\n{", ") .maxntid 128, 1, 1\n{"))
    args = [np.uint64(0), np.uint64(0), np.uint32(0)]
    with pytest.raises(DeviceError, match="256 threads per block, at most 128"):
        module.launch("apply", (1,), (256,), args)
    with pytest.raises(DeviceError, match="empty"):
        module.launch("apply", (0,), (32,), args)
    with pytest.raises(DeviceError, match="no kernel `other`.*it has apply"):
        module.launch("other", (1,), (32,), args)


@pytest.mark.parametrize(
    "body, message",
    [
        ("frobnicate.s32 %r1, %r2;", "not supported"),
        ("add.s32 %r1, %r2;", "do not fit"),
        ("add.f32 %f1, %rd1, %f2;", "read as"),
        ("bra NOWHERE;", "no label `NOWHERE`"),
        ("mov.u32 %r1, nothing;", "`nothing` is not declared"),
        ("add.s32 %missing, %r1, %r2;", "is not a register"),
    ],
)
def test_text_that_is_not_understood_is_told_with_its_line(body, message):
    text = kernel("k", "u32 n", f"mov.u32 %r2, 1;\n{body}\nret;")
    line = next(i for i, one in enumerate(text.splitlines(), 1) if one == body)
    with pytest.raises(PtxSyntaxError, match=f"PTX line {line}: .*{message}"):
        load(text).launch("k", (1,), (1,), [np.uint32(0)])


def test_memory_of_zero_bytes_and_of_too_many(memory):
    empty = memory.upload(np.zeros((0, 4), F32))
    assert empty.numpy().shape == (0, 4) and empty.address
    empty.free()
    with pytest.raises(DeviceError, match="not the start of an allocation"):
        memory.free(empty.address)
    with pytest.raises(DeviceError, match="out of device memory"):
        ptx_sim.Memory(limit=1 << 16).alloc(1 << 17)
    with pytest.raises(DeviceError, match="outside of an allocation"):
        memory.read(memory.alloc(16), 17)

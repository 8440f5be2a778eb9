"""The PTX emulator: whole kernels against NumPy, counters, and what it refuses."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from nablair.ir.diagnostics import AllocationError, DeviceError
from nablair.runtime.devices import ptx_sim
from nablair.runtime.devices.ptx_sim import PtxSyntaxError, launch, load
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
from .ptx_running import apply, same_bits

RANDOM = np.random.default_rng(7)
F32 = np.float32


@pytest.fixture
def memory():
    return ptx_sim.Memory()


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
    assert counters.barriers == 9 * 300


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
        """
    ld.param.u64 %rd1, [out]; ld.param.v2.u32 {%r1, %r2}, [pair];
    sub.u32 %r3, %r2, %r1; st.global.u32 [%rd1], %r3; ret;\n}""",
    )
    out = memory.empty(1, np.uint32)
    load(text).launch("k", (1,), (1,), [out, np.array([3, 10], np.uint32).tobytes()])
    assert out.numpy()[0] == 7


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
        f""".shared .align 16 .b8 tile[8192]; mov.u32 %r1, %tid.x; mov.u32 %r3, tile;
        mad.lo.u32 %r2, %r1, {stride}, %r3; st.shared.u32 [%r2], %r1; ret;""",
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
    with pytest.raises(DeviceError, match=r"no kernel `other`.*it has apply"):
        module.launch("other", (1,), (32,), args)


@pytest.mark.parametrize(
    "body, message",
    [
        ("frobnicate.s32 %r1, %r2;", "not supported"),
        ("add.s32 %r1, %r2;", "do not fit"),
        ("add.f32 %f1, %rd1, %f2;", "read as"),
        ("bra NOWHERE;", "no label `NOWHERE`"),
        ("bar.arrive 0, 64;", "only bar.sync"),
        ("call helper;", "no body to expand for `helper`"),
        ("mov.u32 %r1, nothing;", "`nothing` is not declared"),
        ("add.s32 %missing, %r1, %r2;", "is not a register"),
    ],
)
def test_text_that_is_not_understood_is_told_with_its_line(body, message):
    text = kernel("k", "u32 n", f"mov.u32 %r2, 1;\n{body}\nret;")
    line = next(i for i, one in enumerate(text.splitlines(), 1) if one == body)
    with pytest.raises(PtxSyntaxError, match=f"PTX line {line}: .*{message}"):
        load(text).launch("k", (1,), (1,), [np.uint32(0)])


def test_what_nobody_wrote_does_not_look_like_a_result(memory):
    assert memory.empty(4, F32).numpy().tolist() == [-431602080.0] * 4


def test_memory_of_zero_bytes_and_of_too_many(memory):
    empty = memory.upload(np.zeros((0, 4), F32))
    assert empty.numpy().shape == (0, 4) and empty.address
    empty.free()
    with pytest.raises(DeviceError, match="not the start of an allocation"):
        memory.free(empty.address)
    with pytest.raises(AllocationError, match="out of device memory"):
        ptx_sim.Memory(limit=1 << 16).alloc(1 << 17)
    with pytest.raises(DeviceError, match="outside of an allocation"):
        memory.read(memory.alloc(16), 17)


FUNCTION = """
.func (.param .align 4 .b8 pair[8]) halves(.param .f32 value, .param .u32 steps)
{
    .reg .pred %p<3>; .reg .f32 %f<4>; .reg .b32 %r<4>;
    ld.param.f32 %f1, [value]; ld.param.u32 %r1, [steps]; mov.f32 %f2, 0f00000000;
LOOP:
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra DONE;
    mul.f32 %f1, %f1, 0f3F000000; add.f32 %f2, %f2, 0f3F800000; sub.u32 %r1, %r1, 1;
    setp.lt.f32 %p2, %f1, 0f3F800000;
    @%p2 ret;
    bra LOOP;
DONE:
    st.param.f32 [pair], %f1; st.param.f32 [pair+4], %f2;
    ret;
}
"""
CALLS = """
    { .param .f32 first; .param .u32 second; .param .align 4 .b8 result[8];
    mov.u32 %r9, 3;
    st.param.f32 [first], %a0; st.param.u32 [second], %r9;
    mov.f32 %f1, 0fBF800000; st.param.f32 [result], %f1; st.param.f32 [result+4], %f1;
    call (result), halves, (first, second);
    ld.param.f32 %f2, [result]; ld.param.f32 %f3, [result+4]; }
"""


def test_calls_of_device_functions():
    body = CALLS + "add.f32 %f4, %f2, %f3;" + CALLS + "add.f32 %f2, %f2, %f3; add.f32 %out, %f4, %f2;"
    text = elementwise(body).replace(HEADER, HEADER + FUNCTION)
    x = np.array([16, 8, 7.5, 1, 0.5], F32)
    same_bits(apply(text, x), [10, 8, -4, -4, -4])


def test_recursion_is_refused():
    text = HEADER + ".func loop() { call loop; ret; }\n" + kernel("k", "u32 n", "call loop; ret;").removeprefix(HEADER)
    with pytest.raises(PtxSyntaxError, match="recursion is not supported"):
        load(text).launch("k", (1,), (1,), [np.uint32(0)])


def test_the_size_of_a_batch_does_not_matter(memory, monkeypatch):
    monkeypatch.setattr(launch, "_BATCH_LANES", 256)
    test_tiled_matmul_with_ragged_edges(memory, 120, 136, 72)
    test_shuffle_reduction(memory)


def fragment(matrix: np.ndarray, rows: list[tuple[int, int]]) -> np.ndarray:
    """Registers of 32 lanes: for each register the (row, column) of its lower half for lane 0, as in the PTX ISA."""
    g, t = np.arange(32) // 4, np.arange(32) % 4
    return np.stack([np.stack([matrix[g + r, 2 * t + c + h] for h in (0, 1)], 1) for r, c in rows], 1)


@pytest.mark.parametrize("depth", [8, 16])
@pytest.mark.parametrize("total", ["f16", "f32"])
def test_mma_fragments_by_the_isa(memory, depth, total):
    a, b, c = (RANDOM.integers(-4, 5, shape).astype(np.float16) for shape in ((16, depth), (depth, 8), (16, 8)))
    blocks = range(0, depth, 8)
    left = fragment(a, [(r, k) for k in blocks for r in (0, 8)])
    right = fragment(b.T, [(0, k) for k in blocks])
    plus = fragment(c, [(0, 0), (8, 0)])
    packed = np.concatenate([left, right, plus], 1).reshape(32, -1).view(np.uint32)
    count = packed.shape[1]
    loads = "".join(f"ld.global.u32 %r{10 + k}, [%rd2+{4 * k}];\n" for k in range(count))
    names = [f"%r{10 + k}" for k in range(count)]
    left_names, right_names = names[: 2 * len(blocks)], names[2 * len(blocks) : -2]
    plus_names, results, widen, store = names[-2:], ["%r40", "%r41"], "", "st.global.v2.u32 [%rd4], {%r40, %r41};"
    if total == "f32":
        widen = f"mov.b32 {{%h1, %h2}}, {names[-2]}; mov.b32 {{%h3, %h4}}, {names[-1]};\n" + "".join(
            f"cvt.f32.f16 %f{k}, %h{k};\n" for k in range(1, 5)
        )
        plus_names, results = ["%f1", "%f2", "%f3", "%f4"], ["%f5", "%f6", "%f7", "%f8"]
        store = "st.global.v4.f32 [%rd4], {%f5, %f6, %f7, %f8};"
    groups = ", ".join("{" + ", ".join(group) + "}" for group in (results, left_names, right_names, plus_names))
    width = 8 if total == "f16" else 16
    text = kernel(
        "product",
        "u64 x, u64 y",
        f"""
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd3, [y]; mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd2, %r1, {4 * count}, %rd1; mad.wide.u32 %rd4, %r1, {width}, %rd3;
    {loads}{widen}
    mma.sync.aligned.m16n8k{depth}.row.col.{total}.f16.f16.{total} {groups};
    {store}
    ret;""",
    )
    if find_ptxas() is not None:
        assemble(text)
    dtype = np.float16 if total == "f16" else np.float32
    y = memory.empty((32, 2, 2), dtype)
    load(text).launch("product", (1,), (32,), [memory.upload(packed), y])
    expected = a.astype(F32) @ b.astype(F32) + c
    same_bits(y.numpy(), fragment(expected, [(0, 0), (8, 0)]))

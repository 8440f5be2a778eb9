"""Every check of the PTX emulator finds a bug that was put there for it, and passes the kernel without it."""

from __future__ import annotations

import numpy as np
import pytest

from nablair.ir.diagnostics import DeviceError
from nablair.runtime.devices import ptx_sim
from nablair.runtime.devices.ptx_sim import Checks, PtxFault, launch, load

from .ptx_kernels import (
    GRID_STRIDE,
    SCALE,
    SHUFFLE_REDUCTION,
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


def fault(kind: str, text: str, name: str, *arguments, line: str = "", **options) -> PtxFault:
    """Launch and return the fault, which must be of that kind and stand at that line of the text."""
    with pytest.raises(PtxFault, match=f"^{kind}: ") as caught:
        load(text).launch(name, *arguments, **options)
    found = caught.value
    assert found.kind == kind and found.site.kernel == name and isinstance(found, DeviceError)
    assert line in found.site.text
    assert not line or line.split()[0] in text.splitlines()[found.site.line - 1]
    return found


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


def test_the_thread_that_faults_is_named_under_a_mask(memory):
    body = """.shared .b32 word; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 37; mov.u32 %r2, 4096;
    @%p1 st.shared.u32 [%r2], %r1; ret;"""
    found = fault("out-of-bounds", kernel("k", "u32 n", body), "k", (1,), (64,), [np.uint32(0)], line="st.shared.u32")
    assert found.site.thread == (37, 0, 0)


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


def test_a_loop_without_end_is_given_up(monkeypatch):
    monkeypatch.setattr(launch, "_STEP_LIMIT", 1000)
    fault("no-progress", kernel("k", "u32 n", "LOOP:\n bra LOOP;"), "k", (1,), (32,), [np.uint32(0)])

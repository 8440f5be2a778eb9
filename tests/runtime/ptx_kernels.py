"""Hand-written PTX that the tests of the emulator, of ptxas and of the driver share."""

from __future__ import annotations

HEADER = ".version 7.0\n.target sm_80\n.address_size 64\n"


def kernel(name: str, parameters: str, body: str) -> str:
    """A module of one kernel. `parameters` is like "u64 x, u32 n"."""
    declared = ", ".join(f".param .{one.strip()}" for one in parameters.split(","))
    registers = (
        ".reg .pred %p<16>; .reg .b16 %h<32>; .reg .b32 %r<64>; .reg .f32 %f<64>; .reg .b64 %rd<64>; .reg .f64 %fd<32>;"
    )
    return f"{HEADER}.visible .entry {name}({declared})\n{{\n{registers}\n{body}\n}}\n"


# %r1 is the thread's index over the grid; it exits at %r2 = n.
_INDEX = """
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r3, %r4, %r5;
"""


def elementwise(body: str, inputs: int = 1, kind: str = "f32", result: str | None = None) -> str:
    """out[i] = body(in0[i], ...): inputs arrive in %a0, %a1, ..., the body leaves its result in %out."""
    result = result or kind
    size, result_size = (int(name.strip("bfus")) // 8 for name in (kind, result))
    names = [f"in{k}" for k in range(inputs)]
    loads = "".join(
        f"ld.param.u64 %rd1, [{name}]; mad.wide.s32 %rd2, %r1, {size}, %rd1; ld.global.{kind} %a{k}, [%rd2];\n"
        for k, name in enumerate(names)
    )
    text = f"""
    .reg .{kind} %a<4>; .reg .{result} %out;
    {_INDEX}
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra DONE;
    {loads}
    {body}
    ld.param.u64 %rd1, [out]; mad.wide.s32 %rd2, %r1, {result_size}, %rd1; st.global.{result} [%rd2], %out;
DONE:
    ret;"""
    return kernel("apply", ", ".join([*(f"u64 {name}" for name in names), "u64 out", "u32 n"]), text)


SCALE = elementwise("mul.f32 %f1, %a0, 0f40000000; add.f32 %out, %f1, 0f3F800000;")

GRID_STRIDE = kernel(
    "stride",
    "u64 x, u64 y, u32 n",
    f"""
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    {_INDEX}
    mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, %r6, %r4;
    setp.ge.u32 %p1, %r1, %r2;
    @%p1 bra DONE;
LOOP:
    mul.wide.u32 %rd3, %r1, 16;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
    ld.global.nc.v4.f32 {{%f1, %f2, %f3, %f4}}, [%rd4];
    neg.f32 %f1, %f1; neg.f32 %f2, %f2; neg.f32 %f3, %f3; neg.f32 %f4, %f4;
    st.global.v4.f32 [%rd5], {{%f1, %f2, %f3, %f4}};
    add.u32 %r1, %r1, %r7;
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra LOOP;
DONE:
    ret;""",
)


def tree_reduction(first: str = "bar.sync 0;", inner: str = "bar.sync 0;") -> str:
    """Sum of 256 elements per CTA through shared memory; a barrier can be taken out."""
    return kernel(
        "tree",
        "u64 x, u64 y",
        f"""
    .shared .align 4 .b8 part[1024];
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    shl.b32 %r3, %r2, 8; add.u32 %r4, %r3, %r1;
    mad.wide.u32 %rd3, %r4, 4, %rd1;
    ld.global.f32 %f1, [%rd3];
    mov.u32 %r5, part; mad.lo.u32 %r6, %r1, 4, %r5;
    st.shared.f32 [%r6], %f1;
    {first}
    mov.u32 %r7, 128;
LOOP:
    setp.lt.u32 %p1, %r1, %r7;
    shl.b32 %r8, %r7, 2; add.u32 %r9, %r6, %r8;
    @!%p1 bra SKIP;
    ld.shared.f32 %f2, [%r6]; ld.shared.f32 %f3, [%r9];
    add.f32 %f2, %f2, %f3;
    st.shared.f32 [%r6], %f2;
SKIP:
    {inner}
    shr.u32 %r7, %r7, 1;
    setp.ne.u32 %p2, %r7, 0;
    @%p2 bra LOOP;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra DONE;
    ld.shared.f32 %f4, [part];
    mad.wide.u32 %rd4, %r2, 4, %rd2;
    st.global.f32 [%rd4], %f4;
DONE:
    ret;""",
    )


SHUFFLE_REDUCTION = kernel(
    "shuffle",
    "u64 x, u64 total",
    """
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [total];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mad.wide.u32 %rd3, %r4, 4, %rd1;
    ld.global.s32 %r5, [%rd3];
    shfl.sync.bfly.b32 %r6, %r5, 16, 31, -1; add.s32 %r5, %r5, %r6;
    shfl.sync.bfly.b32 %r6, %r5, 8, 31, -1; add.s32 %r5, %r5, %r6;
    shfl.sync.down.b32 %r6|%p2, %r5, 4, 31, -1; add.s32 %r5, %r5, %r6;
    shfl.sync.down.b32 %r6|%p2, %r5, 2, 31, -1; add.s32 %r5, %r5, %r6;
    shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; add.s32 %r5, %r5, %r6;
    and.b32 %r7, %r1, 31;
    setp.ne.u32 %p1, %r7, 0;
    @!%p1 red.global.add.s32 [%rd2], %r5;
    ret;""",
)

_TILE_BODY = "\n".join(
    f"    ld.shared.f32 %f2, [%r14+{4 * k}]; ld.shared.f32 %f3, [%r15+{64 * k}]; fma.rn.f32 %f1, %f2, %f3, %f1;"
    for k in range(16)
)


def tiled_matmul(last: str = "bar.sync 0;") -> str:
    """C = A B in f32 by 16x16 tiles, ragged edges filled with zero; the last barrier can be taken out."""
    return kernel(
        "matmul",
        "u64 a, u64 b, u64 c, u32 m, u32 n, u32 k",
        f"""
    .shared .align 16 .b8 left[1024];
    .shared .align 16 .b8 right[1024];
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];
    ld.param.u32 %r1, [m]; ld.param.u32 %r2, [n]; ld.param.u32 %r3, [k];
    mov.u32 %r4, %tid.x; mov.u32 %r5, %tid.y; mov.u32 %r6, %ctaid.x; mov.u32 %r7, %ctaid.y;
    mad.lo.u32 %r8, %r7, 16, %r5;
    mad.lo.u32 %r9, %r6, 16, %r4;
    setp.lt.u32 %p1, %r8, %r1; setp.lt.u32 %p2, %r9, %r2;
    shl.b32 %r10, %r5, 6; shl.b32 %r11, %r4, 2; add.u32 %r12, %r10, %r11;
    mov.u32 %r13, left; add.u32 %r14, %r13, %r10; add.u32 %r16, %r13, %r12;
    mov.u32 %r13, right; add.u32 %r15, %r13, %r11; add.u32 %r17, %r13, %r12;
    mov.f32 %f1, 0f00000000; mov.u32 %r18, 0;
LOOP:
    add.u32 %r19, %r18, %r4; add.u32 %r20, %r18, %r5;
    setp.lt.and.u32 %p3, %r19, %r3, %p1; setp.lt.and.u32 %p4, %r20, %r3, %p2;
    mad.lo.u32 %r21, %r8, %r3, %r19; mad.wide.u32 %rd4, %r21, 4, %rd1;
    mad.lo.u32 %r22, %r20, %r2, %r9; mad.wide.u32 %rd5, %r22, 4, %rd2;
    mov.f32 %f4, 0f00000000; mov.f32 %f5, 0f00000000;
    @%p3 ld.global.nc.f32 %f4, [%rd4];
    @%p4 ld.global.nc.f32 %f5, [%rd5];
    st.shared.f32 [%r16], %f4; st.shared.f32 [%r17], %f5;
    bar.sync 0;
{_TILE_BODY}
    {last}
    add.u32 %r18, %r18, 16;
    setp.lt.u32 %p5, %r18, %r3;
    @%p5 bra LOOP;
    and.pred %p6, %p1, %p2;
    @!%p6 bra DONE;
    mad.lo.u32 %r23, %r8, %r2, %r9; mad.wide.u32 %rd6, %r23, 4, %rd3;
    st.global.f32 [%rd6], %f1;
DONE:
    ret;""",
    )


def tensor_core(kind: str, wait: str = "cp.async.wait_all;", barrier: str = "bar.sync 0;") -> str:
    """D[16,8] = A[16,16] B[16,8] on one warp, f16 or bf16: cp.async, ldmatrix, mma.sync; both operands row-major."""
    return kernel(
        "tensor",
        "u64 a, u64 b, u64 d",
        f"""
    .shared .align 16 .b8 left[512];
    .shared .align 16 .b8 right[256];
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [d];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, left; mov.u32 %r3, right;
    shl.b32 %r4, %r1, 4;
    add.u32 %r5, %r2, %r4; cvt.u64.u32 %rd4, %r4; add.s64 %rd5, %rd1, %rd4;
    cp.async.ca.shared.global [%r5], [%rd5], 16;
    setp.lt.u32 %p1, %r1, 16;
    add.u32 %r6, %r3, %r4; add.s64 %rd6, %rd2, %rd4;
    @%p1 cp.async.ca.shared.global [%r6], [%rd6], 16;
    cp.async.commit_group;
    {wait}
    {barrier}
    and.b32 %r7, %r1, 15; shr.u32 %r8, %r1, 4;
    shl.b32 %r9, %r7, 5; mad.lo.u32 %r10, %r8, 16, %r9; add.u32 %r11, %r2, %r10;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r20, %r21, %r22, %r23}}, [%r11];
    shl.b32 %r12, %r7, 4; add.u32 %r13, %r3, %r12;
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {{%r24, %r25}}, [%r13];
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    mma.sync.aligned.m16n8k16.row.col.f32.{kind}.{kind}.f32
        {{%f1, %f2, %f3, %f4}}, {{%r20, %r21, %r22, %r23}}, {{%r24, %r25}}, {{%f1, %f2, %f3, %f4}};
    shr.u32 %r14, %r1, 2; and.b32 %r15, %r1, 3;
    shl.b32 %r16, %r14, 5; mad.lo.u32 %r17, %r15, 8, %r16; cvt.u64.u32 %rd7, %r17; add.s64 %rd8, %rd3, %rd7;
    st.global.v2.f32 [%rd8], {{%f1, %f2}};
    st.global.v2.f32 [%rd8+256], {{%f3, %f4}};
    ret;""",
    )


# D[16,8] = A[16,8] B[8,8], fragments straight from global memory, rounded to tf32.
TENSOR_TF32 = kernel(
    "tensor",
    "u64 a, u64 b, u64 d",
    """
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [d];
    mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3;
    mad.lo.u32 %r4, %r2, 8, %r3; mad.wide.u32 %rd4, %r4, 4, %rd1;
    ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+256];
    ld.global.f32 %f3, [%rd4+16];
    ld.global.f32 %f4, [%rd4+272];
    mad.lo.u32 %r5, %r3, 8, %r2; mad.wide.u32 %rd5, %r5, 4, %rd2;
    ld.global.f32 %f5, [%rd5]; ld.global.f32 %f6, [%rd5+128];
    cvt.rna.tf32.f32 %r10, %f1; cvt.rna.tf32.f32 %r11, %f2; cvt.rna.tf32.f32 %r12, %f3; cvt.rna.tf32.f32 %r13, %f4;
    cvt.rna.tf32.f32 %r14, %f5; cvt.rna.tf32.f32 %r15, %f6;
    mov.f32 %f10, 0f3F800000;
    mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32
        {%f11, %f12, %f13, %f14}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f10, %f10, %f10, %f10};
    shl.b32 %r16, %r2, 5; mad.lo.u32 %r17, %r3, 8, %r16; cvt.u64.u32 %rd7, %r17; add.s64 %rd8, %rd3, %rd7;
    st.global.v2.f32 [%rd8], {%f11, %f12};
    st.global.v2.f32 [%rd8+256], {%f13, %f14};
    ret;""",
)

# y[i] = x[i] * 2 through dynamic shared memory, written by one thread and read by another.
DYNAMIC_SHARED = (
    HEADER
    + """
.extern .shared .align 16 .b8 pool[];
.visible .entry mirror(.param .u64 x, .param .u64 y)
{
    .reg .b32 %r<16>; .reg .f32 %f<4>; .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [x]; ld.param.u64 %rd2, [y];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, pool;
    mad.wide.u32 %rd3, %r1, 4, %rd1; ld.global.f32 %f1, [%rd3];
    mad.lo.u32 %r4, %r1, 4, %r3; st.shared.f32 [%r4], %f1;
    bar.sync 0;
    sub.u32 %r5, %r2, %r1; sub.u32 %r5, %r5, 1;
    mad.lo.u32 %r6, %r5, 4, %r3; ld.shared.f32 %f2, [%r6];
    add.f32 %f2, %f2, %f2;
    mad.wide.u32 %rd4, %r1, 4, %rd2; st.global.f32 [%rd4], %f2;
    ret;
}
"""
)

MODULES = {
    "scale": SCALE,
    "stride": GRID_STRIDE,
    "tree": tree_reduction(),
    "shuffle": SHUFFLE_REDUCTION,
    "matmul": tiled_matmul(),
    "tensor-f16": tensor_core("f16"),
    "tensor-bf16": tensor_core("bf16"),
    "tensor-tf32": TENSOR_TF32,
    "dynamic-shared": DYNAMIC_SHARED,
}

"""Emission of `gpu`: places in the grid, barriers, and values of other threads."""

from __future__ import annotations

from typing import Any

from ...ir.types import F32, F64
from .function import Function, emits

SPECIAL = {
    "gpu.block_id": "ctaid",
    "gpu.thread_id": "tid",
    "gpu.block_dim": "ntid",
    "gpu.grid_dim": "nctaid",
}
SHUFFLE = {"xor": "bfly", "up": "up", "down": "down", "idx": "idx"}


@emits(*SPECIAL)
def _coordinate(f: Function, op: Any) -> None:
    low = f.value("b32", "mov.u32", f"%{SPECIAL[op.name]}.{op.dimension}")
    f.narrow[op.result] = low
    f.set(op.result, "cvt.u64.u32", low)


@emits("gpu.barrier")
def _barrier(f: Function, op: Any) -> None:
    f.line("bar.sync 0")


@emits("gpu.shuffle")
def _shuffle(f: Function, op: Any) -> None:
    """Within groups of `width` threads; 64-bit values go in halves."""
    mode = SHUFFLE[op.mode]
    offset = f.of(op.offset)
    width = f.held(op.width)
    # The mask of segments in bits 8 to 12, the last (or, upwards, first) thread of a segment below.
    segment = f.value("b32", "sub.s32", f.in_register("32", op.width.type), width)
    clamp = f.value("b32", "shl.b32", segment, "8")
    if mode != "up":
        clamp = f.value("b32", "or.b32", clamp, "31")
    valid = f.register("pred")
    type = op.value.type

    def move(bits: str) -> str:
        result = f.register("b32")
        f.line(f"shfl.sync.{mode}.b32 {result}|{valid}, {bits}, {offset}, {clamp}, 0xffffffff")
        return result

    value = f.held(op.value)
    if type is F32:
        bits = f.value("b32", "mov.b32", value)
        f.set(op.shuffled, "mov.b32", move(bits))
    elif f.names[op.value].startswith("%r") and not f.names[op.value].startswith("%rd"):
        f.bind(op.shuffled, move(value))
    else:
        wide = f.value("b64", "mov.b64", value) if type is F64 else value
        low, high = f.register("b32"), f.register("b32")
        f.line(f"mov.b64 {{{low}, {high}}}, {wide}")
        pair = f.value("b64", "mov.b64", f"{{{move(low)}, {move(high)}}}")
        f.bind(op.shuffled, f.value("f64", "mov.b64", pair) if type is F64 else pair)
    f.bind(op.valid, valid)

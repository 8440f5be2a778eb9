"""Emission of `gpu`: places in the grid, and barriers."""

from __future__ import annotations

from typing import Any

from ...ir.dialects.gpu import DIMENSIONS
from .function import Function, emits

WORK_ITEM = {
    "gpu.block_id": "get_group_id",
    "gpu.thread_id": "get_local_id",
    "gpu.block_dim": "get_local_size",
    "gpu.grid_dim": "get_num_groups",
}


@emits(*WORK_ITEM)
def _coordinate(f: Function, op: Any) -> None:
    f.set(op.result, f"{WORK_ITEM[op.name]}({DIMENSIONS.index(op.dimension)})")


@emits("gpu.barrier")
def _barrier(f: Function, op: Any) -> None:
    f.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);")

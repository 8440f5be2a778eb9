"""Warps at work together: asynchronous copies, matrix loads and matrix products of `nvgpu`.

Where the elements of a matrix lie in a warp's registers is the PTX manual's (`ldmatrix`, `mma.sync`): thread
`4 * group + place` holds, in register r of `a`, elements of row `group + 8 * (r % 2)`; of `b`, of column `group`; of
`c`, of row `group + 8 * r`; along the other axis four bytes (of `c`: two elements) from `place` on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..types import VectorType
from .gpu import LaneEnv, Lanes, Team, lockstep
from .machine import Env
from .memory import box, fault

if TYPE_CHECKING:
    from ..arrays import Array
    from ..dialects.nvgpu import DeviceAsyncCopy, DeviceAsyncCreateGroup, DeviceAsyncWait, LdMatrix, MmaSync
    from ..operations import Operation

WARP = 32


@lockstep("nvgpu.device_async_copy")
def device_async_copy(team: Team, op: DeviceAsyncCopy, env: Env, mask: Array) -> Sequence[object]:
    """Nothing yet: the copies wait in the token until their group is waited for."""
    copies: list[Callable[[], None]] = []

    def start(lane: int) -> None:
        view = LaneEnv(env, lane)
        count = op.dstElements
        valid = count if op.source_elements is None else min(count, int(view[op.source_elements]))
        source = box(op, view[op.source], [int(view[v]) for v in op.source_indices], (valid,))
        dest = box(op, view[op.dest], [int(view[v]) for v in op.dest_indices], (count,))

        def finish() -> None:
            with team.memory.acting(lane):
                team.memory.before_read(op, source)
                team.memory.before_write(op, dest)
            dest[:valid] = source
            dest[valid:] = 0

        copies.append(finish)

    for lane in range(team.size):
        if mask[lane]:
            start(lane)
    return [copies]


@lockstep("nvgpu.device_async_create_group")
def device_async_create_group(team: Team, op: DeviceAsyncCreateGroup, env: Env, mask: Array) -> Sequence[object]:
    """The copies of all tokens."""
    group = [copy for token in op.tokens for copy in env[token]]
    team.groups.append(group)
    return [group]


@lockstep("nvgpu.device_async_wait")
def device_async_wait(team: Team, op: DeviceAsyncWait, env: Env, mask: Array) -> None:
    """The oldest groups arrive, until few enough are left."""
    left = op.numGroups or 0
    while len(team.groups) > left:
        for copy in team.groups.pop(0):
            copy()


def warps(team: Team, op: Operation, mask: Array) -> list[Array]:
    """The threads of each warp; an error when some of a warp are elsewhere."""
    import numpy as np

    if team.size % WARP:
        raise fault(op, f"needs whole warps of {WARP} threads, the block has {team.size}")
    found: list[Array] = []
    for first in range(0, team.size, WARP):
        here = mask[first : first + WARP]
        if here.all():
            found.append(np.arange(first, first + WARP))
        elif here.any():
            raise fault(op, f"is reached by {int(here.sum())} threads of a warp: it stands in divergent control flow")
    return found


@lockstep("nvgpu.ldmatrix")
def ldmatrix(team: Team, op: LdMatrix, env: Env, mask: Array) -> Sequence[object]:
    """Each thread's share of the tiles whose rows the threads name."""
    import numpy as np

    out = team.blank(op.result.type)
    type = op.result.type
    assert isinstance(type, VectorType)
    tiles, each = type.shape
    for warp in warps(team, op, mask):
        rows: list[Array] = []
        for lane in warp[: 8 * tiles]:
            view = LaneEnv(env, lane)
            row = box(op, view[op.source], [int(view[v]) for v in op.indices], (4 * each,))
            with team.memory.acting(int(lane)):
                team.memory.before_read(op, row)
            rows.append(row)
        matrix = np.array(rows).reshape(tiles, 8, 4 * each)
        if op.transpose:
            matrix = matrix.swapaxes(1, 2)
        # Row lane / 4 of a tile, and the four bytes lane % 4 of it.
        out[warp] = matrix.reshape(tiles, WARP, each).swapaxes(0, 1)
    return [Lanes(out)]


@lockstep("nvgpu.mma.sync")
def mma_sync(team: Team, op: MmaSync, env: Env, mask: Array) -> Sequence[object]:
    """c + a @ b; sums of floats are taken in float64 and rounded once, where the device's order is its own."""
    import numpy as np

    m, n, k = op.mmaShape
    a, b, c = (team.spread(env[v], v.type) for v in op.operands)
    out = team.blank(op.result.type)
    lane = np.arange(WARP)[:, None, None]
    group, place = lane // 4, lane % 4

    def number(values: Array) -> Array:
        return np.arange(int(values.shape[1]))[None, :, None]

    def along(registers: Array, each: int) -> Array:
        return registers * 4 * each + place * each + np.arange(each)

    rows, columns, sums = number(a), number(b), number(c)
    at = group + 8 * sums, place * 2 + np.arange(2)
    for warp in warps(team, op, mask):
        wide = np.int64 if a.dtype.kind in "iu" else np.float64
        left = np.zeros((m, k), wide)
        left[group + 8 * (rows % 2), along(rows // 2, a.shape[2])] = a[warp]
        right = np.zeros((k, n), wide)
        right[along(columns, b.shape[2]), group] = b[warp]
        total = np.zeros((m, n), wide)
        total[at] = c[warp]
        out[warp] = (total + left @ right)[at].astype(c.dtype)
    return [Lanes(out)]

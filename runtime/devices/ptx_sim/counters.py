"""What a launch did, as numbers that stand for performance where there is no hardware to measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass
class Counters:
    """Totals over all threads of a launch, of `barriers` over all CTAs.

    The second group is counted only with `profile=True`, else it stays 0. A request is one warp's access. A sector is
    32 bytes of global memory; a request of 32 neighbouring f32 takes 4. A bank conflict is one more pass that a request
    to shared memory needs because lanes want different words of a bank.
    """

    instructions: int = 0
    barriers: int = 0
    global_load_bytes: int = 0
    global_store_bytes: int = 0

    global_loads: int = 0
    global_load_sectors: int = 0
    global_stores: int = 0
    global_store_sectors: int = 0
    shared_requests: int = 0
    shared_bank_conflicts: int = 0


def _distinct(rows: np.ndarray) -> np.ndarray:
    """Sorted rows, where repeated and negative entries are -1."""
    rows = np.sort(rows, axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    return rows


def sectors(offsets: np.ndarray, m: Any) -> tuple[int, int]:
    """Requests and 32-byte sectors of an access by all warps; an aligned access lies in one sector."""
    sector = offsets >> 5
    rows = _distinct((sector if m is None else np.where(m, sector, -1)).reshape(-1, 32))
    used = rows >= 0
    return int(used.any(axis=1).sum()), int(used.sum())


def bank_conflicts(offsets: np.ndarray, nbytes: int, m: Any) -> tuple[int, int]:
    """Requests and conflicts on 32 banks of 4 bytes; wide accesses go in phases of 16 or 8 lanes."""
    words = max(nbytes // 4, 1)
    word = (offsets >> 2)[:, None] + np.arange(words)
    if m is not None:
        word = np.where(m[:, None], word, -1)
    rows = _distinct(word.reshape(-1, 32))
    used = rows >= 0
    row = np.broadcast_to(np.arange(len(rows))[:, None], rows.shape)[used]
    passes = np.bincount(row * 32 + (rows[used] & 31), minlength=32 * len(rows)).reshape(-1, 32).max(axis=1)
    requests = len(rows) // words if m is None else int(m.reshape(-1, 32).any(axis=1).sum())
    return requests, int((passes - 1)[passes > 0].sum())

"""How the tests of the emulator run kernels and compare results."""

from __future__ import annotations

from typing import Any

import numpy as np

from nablair.runtime.devices import ptx_sim
from nablair.runtime.ptxas import assemble, find_ptxas


def apply(text: str, *inputs: np.ndarray, result: Any = np.float32, **options) -> np.ndarray:
    """Run an `elementwise` kernel, after ptxas has agreed that it is PTX."""
    if find_ptxas() is not None:
        assemble(text, "sm_90")
    memory = ptx_sim.Memory()
    count = inputs[0].size
    out = memory.empty(count, result)
    args = [*map(memory.upload, inputs), out, np.uint32(count)]
    ptx_sim.load(text).launch("apply", (-(-count // 64),), (64,), args, **options)
    return out.numpy()


def same_bits(got: np.ndarray, expected: Any) -> None:
    """Equal bit for bit, but for the payload of NaN."""
    got, expected = np.asarray(got), np.asarray(expected, got.dtype)
    np.testing.assert_array_equal(got, expected)
    if got.dtype.kind == "f":
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(expected)[known])

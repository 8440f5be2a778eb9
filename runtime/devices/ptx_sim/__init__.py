"""An emulator of PTX on NumPy, with the checks of a sanitizer: a GPU for people and machines without one.

It runs the text that a driver would get and knows only what the PTX ISA says. Beside the results it reports what real
hardware passes over in silence: accesses out of bounds or misaligned, values never written, races between threads,
copies that nobody waited for, barriers that some threads miss. Each is a `PtxFault` with the kernel, the line and the
thread.

    memory = Memory()
    x = memory.upload(np.arange(1000, dtype=np.float32))
    y = memory.empty(1000, np.float32)
    counters = load(text).launch("scale", grid=(4,), block=(256,), args=[x, y, np.uint32(1000)])
    y.numpy()

Not supported, with an error that names the line: indirect calls and branches, carry chains, counted barriers,
mbarrier, wgmma and TMA. Approximate instructions (ex2.approx and the like) give the exact function rounded once, so a
device may differ within their documented error. NaN results carry NumPy's payload except where PTX documents one (min,
max, conversions to bf16).
"""

from __future__ import annotations

from .counters import Counters
from .driver import SimulatedLibrary
from .faults import PtxFault, PtxSyntaxError
from .launch import Checks, Module
from .memory import DeviceArray, Memory

__all__ = [
    "Checks",
    "Counters",
    "DeviceArray",
    "Memory",
    "Module",
    "PtxFault",
    "PtxSyntaxError",
    "SimulatedLibrary",
    "load",
]


def load(text: str) -> Module:
    """Read a PTX module. Raises PtxSyntaxError with the line of what it cannot read."""
    return Module(text)

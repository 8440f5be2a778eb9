"""Devices: what a module is compiled for and run on.  Each is found when it is first asked for."""

from __future__ import annotations

from functools import cache

from ...ir.diagnostics import DeviceError, shown
from .base import Device


@cache
def get_device(name: str = "cpu") -> Device:
    """The device `"cpu"`, `"opencl:0"`, `"cuda:0"` or `"ptx-sim"`; DeviceError when it is not there."""
    kind, colon, number = name.partition(":")
    counted = kind in ("opencl", "cuda") and number.isascii() and number.isdigit() and len(number) < 10
    if colon and not counted:
        kind = ""
    index = int(number) if counted else 0
    if kind == "cpu":
        from .cpu import CpuDevice  # late

        return CpuDevice()
    if kind == "opencl":
        from .opencl import OpenCLDevice  # late

        return OpenCLDevice(index)
    if kind == "cuda":
        from .cuda import CudaDevice  # late

        return CudaDevice(index)
    if kind == "ptx-sim":
        from .simulated import SimulatedDevice  # late

        return SimulatedDevice()
    raise DeviceError(f"unknown device {shown(name)}; there are: {', '.join(device_names())}")


def device_names() -> list[str]:
    """The devices that can be used here, the preferred one first."""
    from . import cuda, opencl  # late

    names = ["cpu"]
    names += [f"opencl:{i}" for i in range(opencl.count())]
    names += [f"cuda:{i}" for i in range(cuda.count())]
    return [*names, "ptx-sim"]

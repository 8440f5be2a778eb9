"""OpenCL devices, through pyopencl: loop level to OpenCL C, built by the device's driver.

pyopencl is imported when a device is first asked for.  Programs are built with correctly rounded division and square
roots where the device has them; a driver's complaint becomes a LoweringError with the line that it means.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import AllocationError, DeviceError, LoweringError
from ...ir.dialects.builtin import Module
from ...ir.target import DEFAULTS, Target
from ...ir.types import TensorType, Type
from ...lowering.opencl.emit import emit_modules
from ..host_program import HostExecutable, HostProgram
from .pocl import prelude

if TYPE_CHECKING:
    import numpy as np

_ERROR_LINES = (
    re.compile(r":(\d+):\d+: (?:fatal )?error: (.*)"),
    re.compile(r"error: [^\n:]*:(\d+):\d+: (.*)"),  # pocl
)


@cache
def _devices() -> tuple[Any, ...]:
    """All OpenCL devices; DeviceError where pyopencl or a driver is missing."""
    try:
        import pyopencl as cl
    except ImportError:
        message = 'no pyopencl: install the extra opencl (`pip install ".[opencl]"` in a clone), or "pyopencl[pocl]"'
        raise DeviceError(f"{message}, which brings a driver for the CPU") from None
    try:
        platforms = cl.get_platforms()
    except cl.Error as fault:
        raise DeviceError(f"no OpenCL driver: {fault}; `pip install pocl-binary-distribution` has one") from None
    _process()
    found: list[Any] = []
    for platform in platforms:
        try:
            found += platform.get_devices()
        except cl.Error:
            continue  # a platform without devices
    return tuple(found)


def _check_process() -> None:
    """DeviceError in the child of a fork: a driver's threads did not come along, and waiting for them has no end."""
    _devices()
    if os.getpid() != _process():
        raise DeviceError("OpenCL cannot be used after fork; start worker processes with spawn")


@cache
def _process() -> int:
    """The process that asked for the devices."""
    return os.getpid()


def count() -> int:
    """How many OpenCL devices there are; 0 where pyopencl or a driver is missing."""
    try:
        return len(_devices())
    except DeviceError:
        return 0


class OpenCLDevice:
    """A device of any OpenCL driver."""

    pipeline = "loop-opencl"

    def __init__(self, index: int = 0) -> None:
        _check_process()
        devices = _devices()
        if not 0 <= index < len(devices):
            raise DeviceError(f"OpenCL device {index} of {len(devices)}")
        import pyopencl as cl

        self.handle: Any = devices[index]
        self.name = f"opencl:{index}"
        self.is_pocl = "pocl" in self.handle.platform.version.lower()
        if self.is_pocl and shutil.which("ld") is None:
            # pocl would end the process.
            raise DeviceError("pocl needs the linker `ld`, which is not on PATH; install binutils")
        base = DEFAULTS["opencl"]
        features = tuple(sorted(self.handle.extensions.split()))
        self.target = Target(
            kind="opencl",
            rows=base.rows,
            local_bytes=base.local_bytes,
            grain=base.grain,
            threads=min(base.threads, self.handle.max_work_group_size),
            shared_bytes=self.handle.local_mem_size,
            features=features,
        )
        flags: Any = cl.device_fp_config
        exact = self.handle.single_fp_config & flags.CORRECTLY_ROUNDED_DIVIDE_SQRT
        self.options = ["-cl-fp32-correctly-rounded-divide-sqrt"] if exact else []
        self.context = cl.Context([self.handle])
        self.queue = cl.CommandQueue(self.context)

    def text(self, module: Module) -> str:
        """OpenCL C."""
        return emit_modules([(module, "")])

    def build(
        self, module: Module, entry: str, inputs: tuple[Type, ...], outputs: tuple[TensorType, ...]
    ) -> HostExecutable:
        """Emit and build."""
        _check_process()
        return self.build_all([(module, entry, inputs, outputs)])[0]

    def build_all(
        self, functions: Sequence[tuple[Module, str, tuple[Type, ...], tuple[TensorType, ...]]]
    ) -> list[HostExecutable]:
        """Executables of several functions from one program, which costs the driver far less than one for each."""
        prefixes = [f"f{i}_" if len(functions) > 1 else "" for i in range(len(functions))]
        text = emit_modules([(module, prefix) for (module, *_), prefix in zip(functions, prefixes, strict=True)])
        program = self.program(text)
        made: list[HostExecutable] = []
        for (module, entry, inputs, outputs), prefix in zip(functions, prefixes, strict=True):
            commands = OpenCLCommands(self, program, prefix)
            host = HostProgram(module, entry)
            made.append(HostExecutable(entry, self.name, inputs, outputs, host, commands, text))
        return made

    def program(self, text: str) -> Any:
        """A built program; LoweringError with the driver's words where it refuses the text."""
        import pyopencl as cl

        if "cl_khr_fp64" in text and "cl_khr_fp64" not in self.target.features:
            raise DeviceError(f"{self.handle.name} has no double precision")
        program = cl.Program(self.context, prelude(text) + text if self.is_pocl else text)
        if "__kernel" not in text:
            return program
        try:
            return program.build(self.options)
        except cl.Error as fault:
            raise LoweringError(_refusal(text, str(fault))) from None


def _refusal(text: str, log: str) -> str:
    lines = text.splitlines()
    complaints: list[str] = []
    for number, message in [found for pattern in _ERROR_LINES for found in pattern.findall(log)]:
        at = int(number)
        line = lines[at - 1].strip() if 0 < at <= len(lines) else ""
        complaints.append(f"line {at}: {message.strip()}: `{line}`")
    return "the OpenCL driver refuses this program: " + ("; ".join(complaints) or log.strip())


class OpenCLCommands:
    """The commands of host programs on a device's queue, with the kernels of one program."""

    def __init__(self, device: OpenCLDevice, program: Any, prefix: str = "") -> None:
        self.device = device
        self.program = program
        self.prefix = prefix
        self._kernels: dict[str, Any] = {}

    def alloc(self, nbytes: int) -> Any:
        _check_process()
        import pyopencl as cl

        try:
            return cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, max(nbytes, 1))
        except (cl.Error, OverflowError) as fault:
            raise AllocationError(f"{self.device.name} cannot allocate {nbytes} bytes: {fault}") from None

    def free(self, buffer: Any) -> None:
        buffer.release()

    def upload(self, buffer: Any, array: np.ndarray[Any, Any]) -> None:
        import pyopencl as cl

        if array.nbytes:
            with _drivers_memory(self.device.name):
                cl.enqueue_copy(self.device.queue, buffer, _bytes(array))

    def download(self, buffer: Any, array: np.ndarray[Any, Any]) -> None:
        import pyopencl as cl

        if array.nbytes:
            cl.enqueue_copy(self.device.queue, _bytes(array), buffer)
        else:
            self.device.queue.finish()

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        import pyopencl as cl

        with _drivers_memory(self.device.name):
            cl.enqueue_copy(self.device.queue, target, source, byte_count=nbytes)

    def launch(self, kernel: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        import pyopencl as cl

        found = self._kernels.get(kernel)
        if found is None:
            found = self._kernels[kernel] = cl.Kernel(self.program, self.prefix + kernel)
        found.set_args(*arguments)
        total = tuple(g * b for g, b in zip(grid, block, strict=True))
        with _drivers_memory(self.device.name):
            cl.enqueue_nd_range_kernel(self.device.queue, found, total, tuple(block))


@contextmanager
def _drivers_memory(device: str) -> Generator[None]:
    """Drivers may allocate a buffer only when it is first used."""
    import pyopencl as cl

    try:
        yield
    except cl.MemoryError as fault:
        raise AllocationError(f"{device} has no memory left: {fault}") from None


def _bytes(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """An array's memory, for dtypes that the buffer protocol does not know."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)

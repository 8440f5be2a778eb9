"""A stand-in for `libcuda.so.1` that runs kernels on the emulator.

It has the driver's entry points and is as strict as the driver: a context must be current in the calling thread, sizes
must not be zero, large shared memory must be asked for, captured streams run nothing, and an error of a kernel is
final.
"""

from __future__ import annotations

import ctypes
import threading
from collections import Counter
from typing import Any

from ....ir.diagnostics import AllocationError, DeviceError
from .faults import PtxFault, PtxSyntaxError
from .launch import Checks, Module
from .memory import Memory

_NAMES = {
    0: "CUDA_SUCCESS", 1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY", 201: "CUDA_ERROR_INVALID_CONTEXT",
    218: "CUDA_ERROR_INVALID_PTX", 209: "CUDA_ERROR_NO_BINARY_FOR_GPU", 222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    400: "CUDA_ERROR_INVALID_HANDLE", 500: "CUDA_ERROR_NOT_FOUND", 700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS", 719: "CUDA_ERROR_LAUNCH_FAILED", 801: "CUDA_ERROR_NOT_SUPPORTED",
    900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
}  # fmt: skip
_FAULT_CODES = {"out-of-bounds": 700, "misaligned": 716}


class SimulatedLibrary:
    """Entry points of the driver for one emulated device with `memory`.

    `capability` is its compute capability, `ptx_version` the newest PTX that it takes, `pools` whether it has
    stream-ordered allocation. `calls` counts the calls of each function, `checks` is passed to each launch.
    """

    def __init__(
        self,
        memory: Memory | None = None,
        *,
        capability: tuple[int, int] = (8, 0),
        ptx_version: tuple[int, int] = (8, 0),
        pools: bool = True,
        shared_limit: int = 163 * 1024,
        checks: bool | Checks = True,
    ) -> None:
        self.memory = memory or Memory()
        self.capability, self.ptx_version, self.checks = capability, ptx_version, checks
        self.attributes = {75: capability[0], 76: capability[1], 16: 4, 97: shared_limit, 115: int(pools)}
        self.calls: Counter[str] = Counter()
        self._objects: dict[int, Any] = {}
        self._handles = 0x1000
        self._current = threading.local()
        self._recording: list[Any] | None = None
        self._allowed_shared: dict[int, int] = {}
        self._fault = 0
        self._text = b"no error"

    def __getattribute__(self, name: str) -> Any:
        found = object.__getattribute__(self, name)
        if name.startswith("cu"):
            self.calls[name] += 1
        return found

    def _new(self, thing: Any, out: Any) -> int:
        self._handles += 16
        handle = self._handles
        self._objects[handle] = thing
        out.contents.value = handle
        return 0

    def _refuse(self, code: int, text: str) -> int:
        self._text = text.encode()
        return code

    def _state(self, capturable: bool = False) -> int:
        """What is wrong before any work: an earlier fault, no current context, a capture under way."""
        if self._fault:
            return self._fault
        if getattr(self._current, "context", None) is None:
            return self._refuse(201, "no context is current in this thread")
        if self._recording is not None and not capturable:
            return self._refuse(900, "not permitted while a stream is captured")
        return 0

    # Devices and contexts.

    def cuInit(self, flags: int) -> int:
        return 0

    def cuDriverGetVersion(self, out: Any) -> int:
        out.contents.value = 12000
        return 0

    def cuGetErrorName(self, code: int, out: Any) -> int:
        out.contents.value = _NAMES.get(code, "CUDA_ERROR_UNKNOWN").encode()
        return 0

    def cuGetErrorString(self, code: int, out: Any) -> int:
        out.contents.value = self._text
        return 0

    def cuDeviceGetCount(self, out: Any) -> int:
        out.contents.value = 1
        return 0

    def cuDeviceGet(self, out: Any, ordinal: int) -> int:
        out.contents.value = ordinal
        return 0

    def cuDeviceGetName(self, buffer: Any, size: int, device: int) -> int:
        buffer.value = b"emulated PTX device"
        return 0

    def cuDeviceGetAttribute(self, out: Any, number: int, device: int) -> int:
        out.contents.value = self.attributes.get(number, 0)
        return 0

    def cuDevicePrimaryCtxRetain(self, out: Any, device: int) -> int:
        return self._new("context", out)

    def cuDevicePrimaryCtxRelease_v2(self, device: int) -> int:
        return 0

    def cuCtxSetCurrent(self, context: Any) -> int:
        self._current.context = context
        return 0

    def cuStreamCreate(self, out: Any, flags: int) -> int:
        return self._state() or self._new("stream", out)

    def cuStreamSynchronize(self, stream: Any) -> int:
        return self._state()

    def cuStreamDestroy_v2(self, stream: Any) -> int:
        return self._state()

    # Memory.

    def cuMemAlloc_v2(self, out: Any, size: int) -> int:
        if size == 0:
            return self._refuse(1, "an allocation of zero bytes")
        try:
            out.contents.value = self.memory.alloc(size)
        except AllocationError as fault:
            return self._refuse(2, fault.message)
        return self._state()

    def cuMemAllocAsync(self, out: Any, size: int, stream: Any) -> int:
        if not self.attributes[115]:
            return self._refuse(801, "this device has no memory pools")
        return self.cuMemAlloc_v2(out, size)

    def cuMemFree_v2(self, address: int) -> int:
        try:
            self.memory.free(address)
        except DeviceError as fault:
            return self._refuse(1, fault.message)
        return self._state()

    def cuMemFreeAsync(self, address: int, stream: Any) -> int:
        return self.cuMemFree_v2(address)

    def cuMemcpyHtoDAsync_v2(self, address: int, source: int, size: int, stream: Any) -> int:
        try:
            self.memory.write(address, ctypes.string_at(source, size))
        except DeviceError as fault:
            return self._refuse(1, fault.message)
        return self._state()

    def cuMemcpyDtoHAsync_v2(self, target: int, address: int, size: int, stream: Any) -> int:
        try:
            ctypes.memmove(target, self.memory.read(address, size), size)
        except DeviceError as fault:
            return self._refuse(1, fault.message)
        return self._state()

    def cuMemcpyDtoDAsync_v2(self, target: int, source: int, size: int, stream: Any) -> int:
        try:
            self.memory.write(target, self.memory.read(source, size))
        except DeviceError as fault:
            return self._refuse(1, fault.message)
        return self._state()

    def cuMemsetD8Async(self, address: int, value: int, size: int, stream: Any) -> int:
        self.memory.fill(address, bytes([value]), size)
        return self._state()

    # Modules and launches.

    def cuModuleLoadDataEx(self, out: Any, image: int, count: int, options: Any, values: Any) -> int:
        state = self._state()
        if state:
            return state
        logs = {options[i]: values[i] for i in range(count)}
        try:
            module = Module(ctypes.string_at(image).decode())
            for name in module.kernels:
                module.kernel(name)
        except PtxSyntaxError as fault:
            if 5 in logs:
                text = fault.message.encode()[: logs[6] - 1] + b"\0"
                ctypes.memmove(logs[5], text, len(text))
            return self._refuse(218, "a PTX JIT compilation failed")
        major, _, minor = module.text.version.partition(".")
        if (int(major), int(minor)) > self.ptx_version:
            return self._refuse(222, "the provided PTX was compiled with an unsupported toolchain.")
        target = int("".join(filter(str.isdigit, module.text.target)) or 0)
        if target > 10 * self.capability[0] + self.capability[1]:
            return self._refuse(209, "no kernel image is available for execution on the device")
        return self._new(module, out)

    def cuModuleUnload(self, module: Any) -> int:
        return 0 if self._objects.pop(module.value, None) is not None else 400

    def cuModuleGetFunction(self, out: Any, module: Any, name: bytes) -> int:
        owner: Module = self._objects[module.value]
        if name.decode() not in owner.kernels:
            return self._refuse(500, "named symbol not found")
        return self._new((owner, name.decode()), out)

    def cuFuncSetAttribute(self, function: Any, number: int, value: int) -> int:
        if value > self.attributes[97]:
            return self._refuse(1, "more shared memory than the device has")
        self._allowed_shared[function.value] = value
        return 0

    def cuLaunchKernel(self, function: Any, *rest: Any) -> int:
        state = self._state(capturable=True)
        if state:
            return state
        *sizes, shared_bytes, _, arguments, _ = rest
        module, name = self._objects[function.value]
        if shared_bytes > self._allowed_shared.get(function.value, 48 * 1024):
            return self._refuse(1, "more than 48 KiB of dynamic shared memory without its attribute")
        kernel = module.kernels[name]
        buffer = bytearray(kernel.parameter_bytes)
        for position, parameter in enumerate(kernel.parameters.values()):
            raw = ctypes.string_at(arguments[position], parameter.size)
            buffer[parameter.offset : parameter.offset + parameter.size] = raw
        work = (module, name, tuple(sizes[:3]), tuple(sizes[3:]), bytes(buffer), shared_bytes)
        if self._recording is not None:
            self._recording.append(work)
            return 0
        return self._run([work])

    def _run(self, launches: list[Any]) -> int:
        for module, name, grid, block, parameters, shared_bytes in launches:
            try:
                module.launch_packed(
                    name, grid, block, parameters, shared_bytes, memory=self.memory, checks=self.checks
                )
            except PtxFault as fault:
                self._fault = _FAULT_CODES.get(fault.kind, 719)
                return self._refuse(self._fault, fault.message)
            except DeviceError as fault:
                return self._refuse(1, fault.message)
        return 0

    # Graphs.

    def cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> int:
        state = self._state()
        if not state:
            self._recording = []
        return state

    def cuStreamEndCapture(self, stream: Any, out: Any) -> int:
        recorded, self._recording = self._recording, None
        if recorded is None:
            return self._refuse(1, "no capture is under way")
        return self._new(recorded, out)

    def cuGraphInstantiateWithFlags(self, out: Any, graph: Any, flags: int) -> int:
        return self._new(list(self._objects[graph.value]), out)

    def cuGraphLaunch(self, graph: Any, stream: Any) -> int:
        return self._state() or self._run(self._objects[graph.value])

    def cuGraphDestroy(self, graph: Any) -> int:
        return 0

    def cuGraphExecDestroy(self, graph: Any) -> int:
        return 0

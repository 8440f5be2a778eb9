"""The CUDA driver through ctypes: modules, memory, launches and graphs, with no toolkit installed.

Only `libcuda.so.1` is needed, which comes with the NVIDIA driver; it is loaded at first use. The library object is a
parameter, so that everything here also runs on the emulator's stand-in, `ptx_sim.SimulatedLibrary`.

What the driver demands and this module sees to: argument types on every function (else handles are cut to an int), the
`_v2` entry points, the primary context (shared with other libraries in the process), a context that is current in
each thread, no use after fork, a NUL after PTX text, kernel arguments of exactly the parameter's size, an attribute
for more than 48 KiB of dynamic shared memory, and graph captures that are always ended.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_ulonglong, c_void_p
from typing import Any

import numpy as np

from ...ir.diagnostics import AllocationError, DeviceError

_HANDLE, _HANDLE_OUT, _INT_OUT = c_void_p, POINTER(c_void_p), POINTER(c_int)

SIGNATURES: dict[str, list[Any]] = {
    "cuInit": [c_uint],
    "cuDriverGetVersion": [_INT_OUT],
    "cuGetErrorName": [c_int, POINTER(c_char_p)],
    "cuGetErrorString": [c_int, POINTER(c_char_p)],
    "cuDeviceGetCount": [_INT_OUT],
    "cuDeviceGet": [_INT_OUT, c_int],
    "cuDeviceGetName": [c_char_p, c_int, c_int],
    "cuDeviceGetAttribute": [_INT_OUT, c_int, c_int],
    "cuDevicePrimaryCtxRetain": [_HANDLE_OUT, c_int],
    "cuDevicePrimaryCtxRelease_v2": [c_int],
    "cuCtxSetCurrent": [_HANDLE],
    "cuModuleLoadDataEx": [_HANDLE_OUT, c_void_p, c_uint, _INT_OUT, _HANDLE_OUT],
    "cuModuleUnload": [_HANDLE],
    "cuModuleGetFunction": [_HANDLE_OUT, _HANDLE, c_char_p],
    "cuFuncSetAttribute": [_HANDLE, c_int, c_int],
    "cuMemAlloc_v2": [POINTER(c_uint64), c_size_t],
    "cuMemFree_v2": [c_uint64],
    "cuMemAllocAsync": [POINTER(c_uint64), c_size_t, _HANDLE],
    "cuMemFreeAsync": [c_uint64, _HANDLE],
    "cuMemcpyHtoDAsync_v2": [c_uint64, c_void_p, c_size_t, _HANDLE],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_uint64, c_size_t, _HANDLE],
    "cuMemcpyDtoDAsync_v2": [c_uint64, c_uint64, c_size_t, _HANDLE],
    "cuMemsetD8Async": [c_uint64, ctypes.c_ubyte, c_size_t, _HANDLE],
    "cuStreamCreate": [_HANDLE_OUT, c_uint],
    "cuStreamSynchronize": [_HANDLE],
    "cuStreamDestroy_v2": [_HANDLE],
    "cuLaunchKernel": [_HANDLE, *[c_uint] * 7, _HANDLE, _HANDLE_OUT, _HANDLE_OUT],
    "cuStreamBeginCapture_v2": [_HANDLE, c_int],
    "cuStreamEndCapture": [_HANDLE, _HANDLE_OUT],
    "cuGraphInstantiateWithFlags": [_HANDLE_OUT, _HANDLE, c_ulonglong],
    "cuGraphLaunch": [_HANDLE, _HANDLE],
    "cuGraphDestroy": [_HANDLE],
    "cuGraphExecDestroy": [_HANDLE],
}

# Numbers from cuda.h: device attributes, function attributes, JIT options, flags.
ATTRIBUTE_MULTIPROCESSORS = 16
ATTRIBUTE_MAJOR, ATTRIBUTE_MINOR = 75, 76
ATTRIBUTE_SHARED_OPTIN = 97
ATTRIBUTE_MEMORY_POOLS = 115
FUNCTION_DYNAMIC_SHARED = 8
JIT_INFO_LOG, JIT_INFO_SIZE, JIT_ERROR_LOG, JIT_ERROR_SIZE = 3, 4, 5, 6
STREAM_NON_BLOCKING = 1
CAPTURE_THREAD_LOCAL = 1
SHARED_WITHOUT_OPTIN = 48 * 1024

_LOG_BYTES = 1 << 14
_HINTS = {
    34: "this libcuda is the toolkit's stub, not the driver: take .../stubs out of LD_LIBRARY_PATH",
    100: "no CUDA device is visible (CUDA_VISIBLE_DEVICES? a container without its GPU?)",
    209: "the kernel is built for another architecture than this device's",
    218: "the driver's assembler refused the PTX",
    221: "libnvidia-ptxjitcompiler.so.1 is missing, which assembles PTX; pass a cubin from ptxas instead",
    222: "the PTX .version is newer than this driver; update the driver or emit a lower version",
    701: "the block asks for more registers or shared memory than there are",
    803: "the driver library and the kernel module are of different versions",
}
# Errors of a running kernel; the driver answers every later call on the context with the same code.
_OUT_OF_MEMORY = 2
_FATAL = frozenset((700, 702, 709, 714, 715, 716, 717, 718, 719))


def load_library() -> Any:
    """The driver library with all signatures set. DeviceError where it cannot be loaded."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        raise DeviceError(
            f"no CUDA driver: cannot load {name} (it comes with the NVIDIA driver, not with a toolkit or a pip wheel); "
            'use device="cpu" or "opencl"'
        ) from None
    for function, arguments in SIGNATURES.items():
        entry = getattr(library, function, None)  # an old driver lacks some; calling one says so
        if entry is not None:
            entry.argtypes, entry.restype = arguments, c_int
    return library


def device_count(library: Any = None) -> int:
    """How many CUDA devices there are; 0 where there is no driver or it cannot start."""
    try:
        library = library if library is not None else load_library()
    except DeviceError:
        return 0
    count = c_int()
    if library.cuInit(0) or library.cuDeviceGetCount(ctypes.pointer(count)):
        return 0
    return count.value


class CudaFunction:
    """A kernel of a loaded module."""

    def __init__(self, module: CudaModule, name: str, handle: c_void_p) -> None:
        self.module = module
        self.name = name
        self.handle = handle
        self.dynamic_shared = SHARED_WITHOUT_OPTIN


class CudaModule:
    """PTX or a cubin in the driver; `log` is what its assembler said."""

    def __init__(self, driver: CudaDriver, handle: c_void_p, log: str) -> None:
        self.driver = driver
        self.handle = handle
        self.log = log

    def function(self, name: str) -> CudaFunction:
        """A kernel by name. DeviceError where the module has none."""
        handle = c_void_p()
        self.driver.call(
            "cuModuleGetFunction", ctypes.pointer(handle), self.handle, name.encode(), about=f"kernel `{name}`"
        )
        return CudaFunction(self, name, handle)

    def unload(self) -> None:
        self.driver.call("cuModuleUnload", self.handle)


class CudaGraph:
    """Captured launches, to be replayed as one."""

    def __init__(self, driver: CudaDriver, handle: c_void_p) -> None:
        self._driver = driver
        self._handle = handle

    def launch(self) -> None:
        self._driver.call("cuGraphLaunch", self._handle, self._driver.stream)

    def close(self) -> None:
        self._driver.call("cuGraphExecDestroy", self._handle)


class CudaDriver:
    """One device: its primary context and one non-blocking stream, on which all work is queued in order."""

    def __init__(self, library: Any = None, ordinal: int = 0) -> None:
        self.library = library if library is not None else load_library()
        self._process = os.getpid()
        self._thread = threading.local()
        self._dead = ""
        self._capturing = False
        self._context: c_void_p | None = None
        self.call("cuInit", 0)
        count = self._integer("cuDeviceGetCount")
        if not 0 <= ordinal < count:
            raise DeviceError(f"CUDA device {ordinal} of {count}")
        self.device = self._integer("cuDeviceGet", ordinal)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, self.device)
        self.name = name.value.decode(errors="replace")
        context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.pointer(context), self.device)
        self._context = context
        self.version = self._integer("cuDriverGetVersion")
        self.compute_capability = (self.attribute(ATTRIBUTE_MAJOR), self.attribute(ATTRIBUTE_MINOR))
        self.multiprocessors = self.attribute(ATTRIBUTE_MULTIPROCESSORS)
        self.shared_limit = self.attribute(ATTRIBUTE_SHARED_OPTIN) or SHARED_WITHOUT_OPTIN
        self.has_pools = bool(self.attribute(ATTRIBUTE_MEMORY_POOLS))
        self.stream = c_void_p()
        # The legacy stream cannot be captured and waits for all others.
        self.call("cuStreamCreate", ctypes.pointer(self.stream), STREAM_NON_BLOCKING)

    def call(self, function: str, *arguments: Any, about: str = "") -> None:
        """Call the driver with the context current in this thread.

        AllocationError where it has no memory, DeviceError for any other result but success.
        """
        if os.getpid() != self._process:
            raise DeviceError("the CUDA driver cannot be used after fork; start worker processes with spawn")
        if self._dead:
            raise DeviceError(f"the CUDA context was lost by an earlier error; restart the process ({self._dead})")
        if self._context is not None and getattr(self._thread, "current", None) is not self._context:
            self._thread.current = self._context
            self.call("cuCtxSetCurrent", self._context)
        entry = getattr(self.library, function, None)
        if entry is None:
            raise DeviceError(f"this CUDA driver is too old: it has no {function}")
        code = entry(*arguments)
        if code:
            kind = AllocationError if code == _OUT_OF_MEMORY else DeviceError
            raise kind(self._explain(function, code, about))

    def _explain(self, function: str, code: int, about: str) -> str:
        texts = []
        for query in ("cuGetErrorName", "cuGetErrorString"):
            text = c_char_p()
            getattr(self.library, query)(code, ctypes.pointer(text))
            texts.append((text.value or b"unknown").decode(errors="replace"))
        message = f"{function}: CUDA error {code}, {texts[0]}: {texts[1]}"
        if about:
            message += f" ({about})"
        if code in _HINTS:
            message += f"; {_HINTS[code]}"
        if code in _FATAL:
            self._dead = f"{function}: {texts[0]}"
            message += "; the CUDA context is now unusable: restart the process"
        return message

    def _integer(self, function: str, *arguments: Any) -> int:
        value = c_int()
        self.call(function, ctypes.pointer(value), *arguments)
        return value.value

    def attribute(self, number: int) -> int:
        """A CUdevice_attribute by its number in cuda.h."""
        return self._integer("cuDeviceGetAttribute", number, self.device)

    def load_module(self, image: str | bytes) -> CudaModule:
        """Load PTX text or a cubin. DeviceError with the assembler's log where the driver refuses it."""
        data = image.encode() if isinstance(image, str) else image
        terminated = ctypes.create_string_buffer(data)  # one byte longer: PTX must end in NUL
        information, errors = ctypes.create_string_buffer(_LOG_BYTES), ctypes.create_string_buffer(_LOG_BYTES)
        options = (c_int * 4)(JIT_INFO_LOG, JIT_INFO_SIZE, JIT_ERROR_LOG, JIT_ERROR_SIZE)
        # Sizes stand by value in the slots of pointers.
        values = (c_void_p * 4)(ctypes.addressof(information), _LOG_BYTES, ctypes.addressof(errors), _LOG_BYTES)
        handle = c_void_p()
        try:
            self.call("cuModuleLoadDataEx", ctypes.pointer(handle), ctypes.addressof(terminated), 4, options, values)
        except DeviceError as fault:
            log = errors.value.decode(errors="replace").strip()
            raise DeviceError(f"{fault.message}: {log}" if log else fault.message) from None
        return CudaModule(self, handle, information.value.decode(errors="replace"))

    def alloc(self, nbytes: int) -> int:
        """Address of new device memory; a size of zero is valid and gives an address too."""
        if self._capturing:
            raise DeviceError("no memory can be allocated while launches are captured")
        address = c_uint64()
        size = max(nbytes, 1)  # the driver refuses zero
        about = f"{nbytes} bytes"
        if self.has_pools:
            self.call("cuMemAllocAsync", ctypes.pointer(address), size, self.stream, about=about)
        else:
            self.call("cuMemAlloc_v2", ctypes.pointer(address), size, about=about)
        return address.value

    def free(self, address: int) -> None:
        """Give memory back, after the work that is queued so far."""
        if self.has_pools:
            self.call("cuMemFreeAsync", address, self.stream)
        else:
            self.synchronize()
            self.call("cuMemFree_v2", address)

    def upload(self, address: int, array: np.ndarray) -> None:
        """Copy a C-contiguous array to the device."""
        if not array.flags.c_contiguous:
            raise DeviceError(f"upload of an array of shape {array.shape} that is not C-contiguous")
        if array.nbytes:
            self.call("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, self.stream)
            self.synchronize()

    def download(self, address: int, array: np.ndarray) -> np.ndarray:
        """Fill a C-contiguous array from the device, after the work that is queued so far; returns it."""
        if not array.flags.c_contiguous:
            raise DeviceError(f"download to an array of shape {array.shape} that is not C-contiguous")
        if array.nbytes:
            self.call("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, self.stream)
        self.synchronize()
        return array

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy on the device."""
        if nbytes:
            self.call("cuMemcpyDtoDAsync_v2", target, source, nbytes, self.stream)

    def fill(self, address: int, nbytes: int, byte: int = 0) -> None:
        """Set bytes on the device."""
        if nbytes:
            self.call("cuMemsetD8Async", address, byte, nbytes, self.stream)

    def launch(
        self,
        function: CudaFunction,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        shared_bytes: int = 0,
    ) -> None:
        """Queue a kernel. `args` are NumPy scalars or ctypes values of exactly the parameters' sizes (np.uint64 for a
        pointer); a Python number has no size and is refused. An empty grid launches nothing.
        """
        values = [_argument(function.name, position, value) for position, value in enumerate(args)]
        addresses = (c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        if shared_bytes > self.shared_limit:
            raise DeviceError(
                f"kernel `{function.name}`: {shared_bytes} bytes of shared memory, this device has {self.shared_limit}"
            )
        if shared_bytes > function.dynamic_shared:
            self.call("cuFuncSetAttribute", function.handle, FUNCTION_DYNAMIC_SHARED, shared_bytes)
            function.dynamic_shared = shared_bytes
        x, y, z = (*grid, 1, 1)[:3]
        if 0 in (x, y, z):
            return
        threads = (*block, 1, 1)[:3]
        about = f"kernel `{function.name}`, grid {(x, y, z)}, block {threads}"
        self.call(
            "cuLaunchKernel",
            function.handle,
            x,
            y,
            z,
            *threads,
            shared_bytes,
            self.stream,
            addresses,
            None,
            about=about,
        )

    def synchronize(self) -> None:
        """Wait for all queued work; errors of kernels that ran come up here."""
        self.call("cuStreamSynchronize", self.stream)

    def capture(self, record: Callable[[], None]) -> CudaGraph:
        """Record the launches that `record()` makes, without running them."""
        self.call("cuStreamBeginCapture_v2", self.stream, CAPTURE_THREAD_LOCAL)
        graph = c_void_p()
        self._capturing = True
        try:
            record()
        finally:
            self._capturing = False
            # A capture that is left open makes the stream useless.
            ended = self.library.cuStreamEndCapture(self.stream, ctypes.pointer(graph))
        if ended:
            raise DeviceError(self._explain("cuStreamEndCapture", ended, "a call that cannot be captured"))
        executable = c_void_p()
        try:
            self.call("cuGraphInstantiateWithFlags", ctypes.pointer(executable), graph, 0)
        finally:
            self.call("cuGraphDestroy", graph)
        return CudaGraph(self, executable)

    def close(self) -> None:
        """Release the stream and the primary context."""
        if self._context is not None and not self._dead and os.getpid() == self._process:
            self.call("cuStreamDestroy_v2", self.stream)
            self._context = None
            self.call("cuDevicePrimaryCtxRelease_v2", self.device)


def _argument(kernel: str, position: int, value: Any) -> Any:
    """A ctypes object that holds the argument's bytes."""
    if isinstance(value, np.generic):
        raw = value.tobytes()
        return (ctypes.c_ubyte * len(raw)).from_buffer_copy(raw)
    if isinstance(value, ctypes._SimpleCData | ctypes.Structure | ctypes.Array):
        return value
    raise DeviceError(
        f"kernel `{kernel}`, argument {position}: a {type(value).__name__} has no exact type; "
        "pass a NumPy scalar such as np.uint32(n), np.uint64(address) for a pointer"
    )

"""The host path of the CUDA driver, run over the emulator's stand-in for libcuda."""

from __future__ import annotations

import ctypes
import os
import threading

import numpy as np
import pytest

from nablair.ir.diagnostics import AllocationError, DeviceError
from nablair.runtime.devices import cuda_driver
from nablair.runtime.devices.cuda_driver import CudaDriver
from nablair.runtime.devices.ptx_sim import SimulatedLibrary

from .ptx_kernels import DYNAMIC_SHARED, SCALE


@pytest.fixture
def library():
    return SimulatedLibrary()


@pytest.fixture
def driver(library):
    return CudaDriver(library)


def upload(driver: CudaDriver, array: np.ndarray) -> int:
    address = driver.alloc(array.nbytes)
    driver.upload(address, array)
    return address


def scale(driver: CudaDriver, count: int, source: int, target: int) -> None:
    function = driver.load_module(SCALE).function("apply")
    args = [np.uint64(source), np.uint64(target), np.uint32(count)]
    driver.launch(function, (-(-count // 64),), (64,), args)


def test_a_kernel_from_text_to_result(driver):
    x = np.arange(100, dtype=np.float32)
    source, target = upload(driver, x), driver.alloc(x.nbytes)
    scale(driver, 100, source, target)
    np.testing.assert_array_equal(driver.download(target, np.empty_like(x)), 2 * x + 1)
    driver.free(source)
    driver.free(target)
    driver.close()


def test_what_the_device_is(driver):
    assert (driver.compute_capability, driver.name) == ((8, 0), "emulated PTX device")
    assert driver.shared_limit == 163 * 1024 and driver.has_pools and driver.version == 12000


def test_without_a_driver(monkeypatch):
    def missing(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(cuda_driver.sys, "platform", "linux")
    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", missing)
    with pytest.raises(DeviceError) as caught:
        CudaDriver()
    assert str(caught.value) == (
        "no CUDA driver: cannot load libcuda.so.1 "
        "(it comes with the NVIDIA driver, not with a toolkit or a pip wheel); "
        'use device="cpu" or "opencl"'
    )


def test_counting_devices_never_fails(library, monkeypatch):
    assert cuda_driver.device_count(library) == 1
    monkeypatch.setattr(library, "cuInit", lambda flags: 100)
    assert cuda_driver.device_count(library) == 0

    def missing():
        raise DeviceError("no CUDA driver")

    monkeypatch.setattr(cuda_driver, "load_library", missing)
    assert cuda_driver.device_count() == 0


def test_every_function_of_the_real_library_gets_its_argument_types(monkeypatch):
    class Entry:
        argtypes = restype = None

    class Library:
        def __init__(self, name):
            self.name = name
            self.entries = {name: Entry() for name in cuda_driver.SIGNATURES if name != "cuMemAllocAsync"}

        def __getattr__(self, name):
            try:
                return self.__dict__["entries"][name]
            except KeyError:
                raise AttributeError(name) from None

    monkeypatch.setattr(cuda_driver.ctypes, "CDLL", Library)
    library = cuda_driver.load_library()
    for name, entry in library.entries.items():
        assert entry.argtypes == cuda_driver.SIGNATURES[name] and entry.restype is ctypes.c_int
    # The unversioned names take 32-bit sizes.
    versioned = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemcpyHtoDAsync_v2", "cuStreamBeginCapture_v2"}
    assert versioned <= cuda_driver.SIGNATURES.keys()


def test_the_context_is_made_current_in_each_thread(driver, library):
    x = np.ones(64, np.float32)
    source = upload(driver, x)
    found = []

    def work():
        target = driver.alloc(x.nbytes)
        scale(driver, 64, source, target)
        found.append(driver.download(target, np.empty_like(x)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], 3 * x)
    assert library.calls["cuCtxSetCurrent"] == 2
    assert "cuDevicePrimaryCtxRetain" in library.calls


def test_use_after_fork_is_refused(driver, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(DeviceError, match="cannot be used after fork"):
        driver.alloc(4)


@pytest.mark.parametrize("pools, used", [(True, "cuMemAllocAsync"), (False, "cuMemAlloc_v2")])
def test_allocation_uses_pools_only_where_the_device_has_them(pools, used):
    library = SimulatedLibrary(pools=pools)
    driver = CudaDriver(library)
    driver.free(driver.alloc(16))
    assert used in library.calls
    assert ("cuMemFreeAsync" in library.calls) == pools


def test_arrays_of_no_elements(driver):
    empty = np.empty((0, 3), np.float32)
    address = upload(driver, empty)
    assert driver.download(address, empty).shape == (0, 3)
    function = driver.load_module(SCALE).function("apply")
    driver.launch(function, (0,), (64,), [np.uint64(address), np.uint64(address), np.uint32(0)])
    driver.free(address)


def test_fill(driver):
    address = driver.alloc(12)
    driver.fill(address, 12, 255)
    np.testing.assert_array_equal(driver.download(address, np.empty(3, np.int32)), [-1, -1, -1])


def test_arrays_that_are_not_contiguous_are_refused(driver):
    array = np.zeros((4, 4), np.float32).T[::2]
    for copy in (driver.upload, driver.download):
        with pytest.raises(DeviceError, match="not C-contiguous"):
            copy(driver.alloc(64), array)


def test_out_of_memory_is_told(driver):
    with pytest.raises(AllocationError, match=r"CUDA error 2, CUDA_ERROR_OUT_OF_MEMORY.*\(8589934592 bytes\)"):
        driver.alloc(1 << 33)


def test_arguments_without_an_exact_type_are_refused(driver):
    function = driver.load_module(SCALE).function("apply")
    with pytest.raises(DeviceError, match=r"kernel `apply`, argument 2: a int has no exact type"):
        driver.launch(function, (1,), (64,), [np.uint64(0), np.uint64(0), 5])


def test_ctypes_arguments(driver):
    x = np.ones(64, np.float32)
    source, target = upload(driver, x), driver.alloc(x.nbytes)
    args = [ctypes.c_uint64(source), ctypes.c_uint64(target), ctypes.c_uint32(64)]
    driver.launch(driver.load_module(SCALE).function("apply"), (1,), (64,), args)
    np.testing.assert_array_equal(driver.download(target, np.empty_like(x)), 3 * x)


def test_large_dynamic_shared_memory_is_asked_for_once(driver, library):
    x = np.arange(256, dtype=np.float32)
    source, target = upload(driver, x), driver.alloc(x.nbytes)
    function = driver.load_module(DYNAMIC_SHARED).function("mirror")
    args = [np.uint64(source), np.uint64(target)]
    driver.launch(function, (1,), (256,), args, 48 * 1024)
    assert "cuFuncSetAttribute" not in library.calls
    for _ in range(2):
        driver.launch(function, (1,), (256,), args, 100 * 1024)
    assert library.calls["cuFuncSetAttribute"] == 1
    np.testing.assert_array_equal(driver.download(target, np.empty_like(x)), 2 * x[::-1])
    with pytest.raises(DeviceError, match="204800 bytes of shared memory, this device has 166912"):
        driver.launch(function, (1,), (256,), args, 200 * 1024)


def test_refused_ptx_comes_with_the_log(driver):
    with pytest.raises(DeviceError, match=r"error 218.*refused the PTX: PTX line \d+: .*not supported.*frobnicate"):
        driver.load_module(SCALE.replace("mul.f32", "frobnicate.f32"))


def test_ptx_too_new_or_for_a_newer_device(driver):
    with pytest.raises(DeviceError, match=r"error 222.*newer than this driver"):
        driver.load_module(SCALE.replace(".version 7.0", ".version 8.7"))
    with pytest.raises(DeviceError, match=r"error 209.*another architecture"):
        driver.load_module(SCALE.replace("sm_80", "sm_90"))


def test_an_unknown_kernel_is_told(driver):
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_NOT_FOUND.*kernel `other`"):
        driver.load_module(SCALE).function("other")


def test_an_illegal_address_ends_the_context(driver):
    x = upload(driver, np.ones(64, np.float32))
    target = driver.alloc(4)
    with pytest.raises(DeviceError, match=r"error 700.*out-of-bounds.*kernel `apply`.*restart the process"):
        scale(driver, 64, x, target)
    with pytest.raises(DeviceError, match=r"context was lost by an earlier error.*restart"):
        driver.synchronize()
    driver.close()


def test_captured_launches_run_when_the_graph_does(driver):
    x = np.ones(64, np.float32)
    address = upload(driver, x)
    function = driver.load_module(SCALE).function("apply")
    args = [np.uint64(address), np.uint64(address), np.uint32(64)]

    def record():
        for _ in range(2):
            driver.launch(function, (1,), (64,), args)

    graph = driver.capture(record)
    np.testing.assert_array_equal(driver.download(address, np.empty_like(x)), x)
    graph.launch()
    np.testing.assert_array_equal(driver.download(address, np.empty_like(x)), 7 * x)
    graph.launch()
    np.testing.assert_array_equal(driver.download(address, np.empty_like(x)), 31 * x)
    graph.close()


def test_a_failed_capture_is_ended(driver, library):
    def fails():
        raise RuntimeError("the user's own error")

    with pytest.raises(RuntimeError, match="the user's own error"):
        driver.capture(fails)
    assert "cuStreamEndCapture" in library.calls
    with pytest.raises(DeviceError, match="no memory can be allocated while launches are captured"):
        driver.capture(lambda: driver.alloc(4))
    driver.synchronize()


def test_the_stream_can_be_captured(library, monkeypatch):
    flags = []
    monkeypatch.setattr(library, "cuStreamCreate", lambda out, value: flags.append(value) or 0)
    CudaDriver(library)
    assert flags == [1]  # CU_STREAM_NON_BLOCKING


def test_an_old_driver_without_a_function(driver, library):
    with pytest.raises(DeviceError, match="too old: it has no cuBrandNew"):
        driver.call("cuBrandNew")


def test_a_device_that_is_not_there(library):
    with pytest.raises(DeviceError, match="CUDA device 3 of 1"):
        CudaDriver(library, ordinal=3)

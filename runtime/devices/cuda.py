"""NVIDIA devices: loop level to PTX, assembled and run by the CUDA driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.dialects.builtin import Module
from ...ir.target import DEFAULTS, Target
from ...ir.types import TensorType, Type
from ...lowering.ptx.emit import emit_modules
from ..host_program import HostExecutable, HostProgram

if TYPE_CHECKING:
    import numpy as np

    from .cuda_driver import CudaDriver, CudaFunction, CudaModule


def count() -> int:
    """How many CUDA devices there are; 0 without a driver."""
    from .cuda_driver import device_count  # late

    return device_count()


def target(shared_bytes: int = DEFAULTS["cuda"].shared_bytes, features: tuple[str, ...] = ()) -> Target:
    """What passes know of an NVIDIA device."""
    base = DEFAULTS["cuda"]
    return Target(
        kind="cuda",
        rows=base.rows,
        local_bytes=base.local_bytes,
        grain=base.grain,
        threads=base.threads,
        shared_bytes=shared_bytes,
        features=features,
    )


class CudaDevice:
    """A CUDA device.  DeviceError where there is no driver; `driver` stands in for the installed one."""

    pipeline = "loop-cuda"

    def __init__(self, index: int = 0, driver: CudaDriver | None = None) -> None:
        from .cuda_driver import CudaDriver  # late

        self.name = f"cuda:{index}"
        self.driver = driver if driver is not None else CudaDriver(ordinal=index)
        major, minor = self.driver.compute_capability
        self.target = target(features=(f"sm_{major}{minor}",))

    def text(self, module: Module) -> str:
        """PTX."""
        return emit_modules([(module, "")])

    def build(
        self, module: Module, entry: str, inputs: tuple[Type, ...], outputs: tuple[TensorType, ...]
    ) -> HostExecutable:
        """Emit PTX and load it."""
        text = self.text(module)
        commands = CudaCommands(self.driver, self.driver.load_module(text) if ".entry" in text else None)
        return HostExecutable(entry, self.name, inputs, outputs, HostProgram(module, entry), commands, text)


class CudaCommands:
    """The commands of host programs on a driver's stream, with the kernels of one module."""

    def __init__(self, driver: CudaDriver, module: CudaModule | None) -> None:
        self.driver = driver
        self.module = module
        self._functions: dict[str, CudaFunction] = {}

    def alloc(self, nbytes: int) -> int:
        return self.driver.alloc(nbytes)

    def free(self, buffer: int) -> None:
        self.driver.free(buffer)

    def upload(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        self.driver.upload(buffer, array)

    def download(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        self.driver.download(buffer, array)

    def copy(self, source: int, target: int, nbytes: int) -> None:
        self.driver.copy(target, source, nbytes)

    def launch(self, kernel: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        import numpy as np

        assert self.module is not None
        found = self._functions.get(kernel)
        if found is None:
            found = self._functions[kernel] = self.module.function(kernel)
        # A buffer is an address; all else has its exact type already.
        exact = [a if isinstance(a, np.generic) else np.uint64(a) for a in arguments]
        self.driver.launch(found, grid, block, exact)

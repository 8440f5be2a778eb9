"""The device `ptx-sim`: PTX on the emulator, for people and machines without a GPU.

It runs the text that a CUDA device gets and checks what hardware passes over: bounds, alignment, values never written,
races, barriers that some threads miss.  It is not a fast device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.dialects.builtin import Module
from ...ir.types import TensorType, Type
from ...lowering.ptx.emit import emit_modules
from ..host_program import HostExecutable, HostProgram
from .cuda import target

if TYPE_CHECKING:
    import numpy as np

    from .ptx_sim import Counters
    from .ptx_sim import Module as PtxModule


class SimulatedDevice:
    """The emulator as a device.  With `profile`, executables count memory sectors and bank conflicts."""

    name = "ptx-sim"
    pipeline = "loop-cuda"
    checks_itself = True
    """Every access is looked at by the emulator."""

    def __init__(self, profile: bool = False) -> None:
        self.target = target(features=("sm_80",))
        self.profile = profile

    def text(self, module: Module) -> str:
        """PTX."""
        return emit_modules([(module, "")])

    def build(
        self, module: Module, entry: str, inputs: tuple[Type, ...], outputs: tuple[TensorType, ...]
    ) -> HostExecutable:
        """Emit PTX and read it."""
        from . import ptx_sim  # late

        text = self.text(module)
        commands = SimulatedCommands(ptx_sim.load(text), self.profile)
        return HostExecutable(entry, self.name, inputs, outputs, HostProgram(module, entry), commands, text)


class SimulatedCommands:
    """The commands of host programs on the emulator; `counters` are those of each launch, by kernel and in order."""

    def __init__(self, module: PtxModule, profile: bool = False) -> None:
        from .ptx_sim import Memory  # late

        self.module = module
        self.memory = Memory()
        self.profile = profile
        self.counters: list[tuple[str, Counters]] = []

    def alloc(self, nbytes: int) -> int:
        return self.memory.alloc(nbytes)

    def free(self, buffer: int) -> None:
        self.memory.free(buffer)

    def upload(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        if array.nbytes:
            self.memory.write(buffer, array)

    def download(self, buffer: int, array: np.ndarray[Any, Any]) -> None:
        import numpy as np

        if array.nbytes:
            array.reshape(-1).view(np.uint8)[:] = np.frombuffer(self.memory.read(buffer, array.nbytes), np.uint8)

    def copy(self, source: int, target: int, nbytes: int) -> None:
        self.memory.write(target, self.memory.read(source, nbytes))

    def launch(self, kernel: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        import numpy as np

        exact = [a if isinstance(a, np.generic) else np.uint64(a) for a in arguments]
        counters = self.module.launch(kernel, grid, block, exact, memory=self.memory, profile=self.profile)
        self.counters.append((kernel, counters))

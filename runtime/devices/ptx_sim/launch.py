"""Modules and launches: arguments in, CTAs in batches through the machine, counters out.

Scheduling: lanes that stand at the same basic block run together, and of the blocks where lanes stand the first in the
text runs first, so that lanes which took a branch wait at its end for those that did not. At a barrier lanes wait until
no lane can run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....ir.diagnostics import DeviceError
from .calls import expand_calls
from .compiler import CompiledBlock, CompiledKernel, compile_kernel
from .counters import Counters
from .faults import PtxFault, Site
from .machine import Machine
from .memory import Allocation, DeviceArray, Memory
from .parser import Instruction, Kernel, ModuleText, Parameter, parse
from .races import RaceDetector
from .types import TYPES

_BATCH_LANES = 32768
_STEP_LIMIT = 2_000_000


@dataclass(frozen=True)
class Checks:
    """Which rules are checked beyond bounds and alignment, which always are.

    CTAs that hand data to each other through fences and flags look like a race of global memory: turn that check off.
    """

    uninitialised: bool = True
    shared_races: bool = True
    global_races: bool = True
    convergence: bool = True

    @classmethod
    def of(cls, value: bool | Checks) -> Checks:
        return value if isinstance(value, Checks) else cls(value, value, value, value)


class Module:
    """A loaded PTX module. Kernels are compiled when first launched."""

    def __init__(self, text: str) -> None:
        self.text: ModuleText = parse(text)
        self._compiled: dict[str, CompiledKernel] = {}
        self._symbols: dict[int, tuple[Memory, dict[str, np.int64]]] = {}

    @property
    def kernels(self) -> dict[str, Kernel]:
        return self.text.kernels

    def kernel(self, name: str) -> CompiledKernel:
        """The compiled kernel. DeviceError where there is none of that name."""
        if name not in self._compiled:
            if name not in self.kernels:
                raise DeviceError(f"no kernel `{name}` in the module; it has {', '.join(self.kernels) or 'none'}")
            expand_calls(self.kernels[name], self.text.functions)
            self._compiled[name] = compile_kernel(self.kernels[name], self.text)
        return self._compiled[name]

    def symbols(self, memory: Memory) -> dict[str, np.int64]:
        """Addresses of the module's variables in that memory, where they are created at first use."""
        if id(memory) not in self._symbols:
            addresses: dict[str, np.int64] = {}
            variables = [*self.text.variables.values()]
            for kernel in self.kernels.values():
                variables += kernel.variables.values()
            for one in variables:
                if one.space in ("global", "const"):
                    address = memory.alloc(one.size)
                    memory.write(address, one.data or bytes(one.size))
                    addresses[one.name] = np.int64(address)
            self._symbols[id(memory)] = (memory, addresses)
        return self._symbols[id(memory)][1]

    def launch(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        shared_bytes: int = 0,
        *,
        memory: Memory | None = None,
        checks: bool | Checks = True,
        profile: bool = False,
    ) -> Counters:
        """Run a kernel to its end.

        `args` are DeviceArrays, NumPy scalars of exactly the parameter's size and kind (np.uint32 for .u32 and .b32),
        or bytes for a parameter passed by value. `shared_bytes` is dynamic shared memory. Raises PtxFault for a broken
        rule and DeviceError for arguments or sizes that do not fit.
        """
        compiled = self.kernel(name)
        if memory is None:
            memory = next((one.memory for one in args if isinstance(one, DeviceArray)), None) or Memory()
        raw = pack_arguments(compiled.kernel, args)
        return self.launch_packed(name, grid, block, raw, shared_bytes, memory=memory, checks=checks, profile=profile)

    def launch_packed(
        self,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        parameters: bytes,
        shared_bytes: int = 0,
        *,
        memory: Memory,
        checks: bool | Checks = True,
        profile: bool = False,
    ) -> Counters:
        """`launch` with the parameter buffer as bytes, as a driver passes it."""
        launch = Launch(
            self.kernel(name), memory, _dimensions(grid, "grid"), _dimensions(block, "block"), parameters, shared_bytes,
            Checks.of(checks), profile, self.symbols(memory),
        )  # fmt: skip
        launch.run()
        return launch.counters


def _dimensions(values: Sequence[int], what: str) -> tuple[int, int, int]:
    x, y, z = (*[int(value) for value in values], 1, 1)[:3]
    if min(x, y, z) < 1:
        raise DeviceError(f"a {what} of {(x, y, z)} is empty")
    return x, y, z


def pack_arguments(kernel: Kernel, args: Sequence[Any]) -> bytes:
    """The parameter buffer. DeviceError for an argument of another size or kind than its parameter."""
    if len(args) != len(kernel.parameters):
        names = ", ".join(f".{one.type} {one.name}" for one in kernel.parameters.values())
        raise DeviceError(f"kernel `{kernel.name}` takes {len(kernel.parameters)} arguments ({names}), got {len(args)}")
    buffer = bytearray(kernel.parameter_bytes)
    for parameter, value in zip(kernel.parameters.values(), args):
        raw = _argument_bytes(kernel, parameter, value)
        buffer[parameter.offset : parameter.offset + parameter.size] = raw
    return bytes(buffer)


def _argument_bytes(kernel: Kernel, parameter: Parameter, value: Any) -> bytes:
    kind = TYPES[parameter.type]
    if isinstance(value, DeviceArray):
        value = np.uint64(value.address)
    if parameter.count and isinstance(value, bytes) and len(value) == parameter.size:
        return value
    if isinstance(value, np.generic) and not parameter.count and value.dtype.itemsize == kind.size:
        given = value.dtype.kind.replace("b", "u").replace("V", "u")
        if (given == "f") == (kind.kind == "f") or kind.kind in "bh":
            return value.tobytes()
    wanted = f"{parameter.size} bytes" if parameter.count else f"a NumPy scalar like np.{kind.numpy}"
    given = getattr(value, "dtype", type(value).__name__)
    raise DeviceError(
        f"kernel `{kernel.name}`, parameter `{parameter.name}` (.{parameter.type}): expected {wanted}, got {given}"
    )


class Launch:
    """One launch: what is common to its batches of CTAs."""

    def __init__(
        self,
        compiled: CompiledKernel,
        memory: Memory,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        parameters: bytes,
        shared_bytes: int,
        checks: Checks,
        profile: bool,
        symbols: dict[str, np.int64],
    ) -> None:
        self.compiled, self.memory, self.grid, self.block = compiled, memory, grid, block
        self.parameters, self.shared_bytes, self.checks, self.profile = parameters, shared_bytes, checks, profile
        self.symbols = symbols
        self.counters = Counters()
        self._races: dict[Allocation, RaceDetector] = {}
        kernel, threads = compiled.kernel, block[0] * block[1] * block[2]
        if kernel.required_block not in (None, block):
            raise DeviceError(f"kernel `{kernel.name}` requires blocks of {kernel.required_block}, got {block}")
        if threads > (kernel.max_threads or 1024):
            raise DeviceError(
                f"kernel `{kernel.name}`: {threads} threads per block, at most {kernel.max_threads or 1024}"
            )
        if shared_bytes < 0 or compiled.shared_bytes + shared_bytes > 227 * 1024:
            raise DeviceError(f"kernel `{kernel.name}`: {compiled.shared_bytes + shared_bytes} bytes of shared memory")
        if max(grid[1:]) > 65535 or grid[0] >= 1 << 31:
            raise DeviceError(f"grid {grid} is larger than (2147483647, 65535, 65535)")

    def races(self, allocation: Allocation, cta_lanes: int) -> tuple[RaceDetector, int]:
        """The detector of an allocation, and the binary logarithm of its location's size."""
        granule = self.compiled.granule.get("global", 4)
        if allocation not in self._races:
            ordered = not self.compiled.opcodes.isdisjoint(("bar", "barrier"))
            self._races[allocation] = RaceDetector(-(-allocation.size // granule), cta_lanes, ordered)
        return self._races[allocation], granule.bit_length() - 1

    def run(self) -> None:
        ctas = self.grid[0] * self.grid[1] * self.grid[2]
        lanes = -(-self.block[0] * self.block[1] * self.block[2] // 32) * 32
        step = max(1, _BATCH_LANES // lanes)
        with np.errstate(all="ignore"):
            for first in range(0, ctas, step):
                _Schedule(self, Machine(self, first, min(first + step, ctas))).run()


class _Schedule:
    """Where the lanes of one batch stand: `ready` and `waiting` map a block's number to the mask of lanes before it."""

    def __init__(self, launch: Launch, machine: Machine) -> None:
        self.blocks = launch.compiled.blocks
        self.kernel = launch.compiled.kernel
        self.counters = launch.counters
        self.machine = machine
        self.registers = list(launch.compiled.initial)
        self.ready: dict[int, Any] = {}
        self.waiting: dict[int, Any] = {}

    def run(self) -> None:
        self._enter(self.ready, 0, self.machine.everyone)
        for _ in range(_STEP_LIMIT):
            if not self.ready:
                if not self.waiting:
                    return
                self._release()
            number = min(self.ready)
            m = self.ready.pop(number)
            block = self.blocks[number]
            lanes = self.machine.count if m is None else int(np.count_nonzero(m))
            self.counters.instructions += lanes * block.instructions
            condition = block.run(self.registers, self.machine, m)
            self._leave(number, block, m, condition)
        site = Site(self.kernel.name, self.kernel.line, "")
        raise PtxFault("no-progress", f"{_STEP_LIMIT} blocks have run: an endless loop?", site)

    def _enter(self, where: dict[int, Any], number: int, m: Any) -> None:
        """Lanes arrive before a block; past the last one they exit."""
        if number >= len(self.blocks):
            self.machine.dead |= self.machine.active(m)
            return
        if number in where and m is not None and where[number] is not None:
            m = m | where[number]
            m = None if m.all() else m
        where[number] = None if m is None else m

    def _leave(self, number: int, block: CompiledBlock, m: Any, condition: Any) -> None:
        taken, rest = self._split(m, condition) if block.terminator is not None else (False, m)
        if taken is not False:
            if block.kind == "bra":
                self._enter(self.ready, block.target, taken)
            elif block.kind == "bar":
                self._wait(number, taken)
            elif block.kind == "trap":
                where = self.kernel.instructions.index(self._terminator(number))
                self.machine.fault("trap", "the kernel trapped", where, int(self.machine.active(taken).argmax()))
            else:
                self.machine.dead |= self.machine.active(taken)
        if rest is not False:
            self._enter(self.ready, number + 1, rest)

    def _split(self, m: Any, condition: Any) -> tuple[Any, Any]:
        """Masks of the lanes for which a terminator acts, and of the others; False for none."""
        if condition is None:
            return m, False
        if np.ndim(condition) == 0:
            return (m, False) if condition else (False, m)
        taken, rest = (condition, ~condition) if m is None else (condition & m, ~condition & m)
        if not taken.any():
            return False, m
        return (taken, rest) if rest.any() else (m, False)

    def _wait(self, number: int, m: Any) -> None:
        terminator = self._terminator(number)
        if len(terminator.operands) == 2 and int(terminator.operands[1], 0) != self.machine.cta_threads:
            raise DeviceError(
                f"PTX line {terminator.line}: `{terminator.text}`: barriers take all threads of the block"
            )
        self._enter(self.waiting, number, m)

    def _release(self) -> None:
        """Every live lane waits: check that they wait for the same barrier, and let them go."""
        machine = self.machine
        masks = {number: machine.active(m) for number, m in self.waiting.items()}
        exited = machine.dead & (machine.within < machine.cta_threads)
        for number, m in masks.items():
            mine = self._terminator(number)
            if exited.any():
                lane = _meeting(m, exited, machine.cta_lanes)
                self._fault_at(mine, lane, "threads wait here while others of their CTA have exited")
            for other in masks.keys() - {number}:
                theirs = self._terminator(other)
                # The warps of a CTA may meet at one barrier from two places of the text, the lanes of a warp may not.
                same = mine.operands[:1] == theirs.operands[:1]
                lane = _meeting(m, masks[other], 32 if same else machine.cta_lanes)
                who = "its warp" if same else "its CTA"
                self._fault_at(mine, lane, f"this thread waits here while others of {who} wait at line {theirs.line}")
        machine.epoch += 1
        arrived = np.logical_or.reduce(list(masks.values()))
        self.counters.barriers += int(arrived.reshape(-1, machine.cta_lanes).any(axis=1).sum())
        if machine.shared_races is not None:
            machine.shared_races.forget()
        waiting, self.waiting = self.waiting, {}
        for number, m in waiting.items():
            self._enter(self.ready, number + 1, m)

    def _terminator(self, number: int) -> Instruction:
        terminator = self.blocks[number].terminator
        assert terminator is not None
        return terminator

    def _fault_at(self, barrier: Instruction, lane: int, message: str) -> None:
        if lane >= 0:
            self.machine.fault("barrier", message, self.kernel.instructions.index(barrier), lane)


def _meeting(m: np.ndarray, others: np.ndarray, width: int) -> int:
    """A lane of m in whose group of `width` lanes there is one of the others, or -1."""
    both = m & np.repeat(others.reshape(-1, width).any(axis=1), width)
    return int(both.argmax()) if both.any() else -1

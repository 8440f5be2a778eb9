"""The host's side of a compiled function on a device: a list of commands, and an executable that runs it.

`@main` of a mapped module allocates buffers, launches kernels, copies and frees, with sizes that it computes from the
extents of its arguments.  `HostProgram` turns its ops into commands once; a device gives the few actions of `Commands`.
The same program serves OpenCL, CUDA and the emulator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Protocol

from ..ir import numeric
from ..ir.definition import Op
from ..ir.diagnostics import LoweringError
from ..ir.dialects import arith, func, gpu, memref
from ..ir.dialects.builtin import Module
from ..ir.forking import shared_lock
from ..ir.types import DYNAMIC, MemRefType, TensorType, Type, element_bytes
from ..ir.values import Value
from ..lowering.names import kernel_names
from .executable import Executable

if TYPE_CHECKING:
    import numpy as np

Env = dict[Value, Any]
Command = Callable[["Commands", Env], None]


class Commands(Protocol):
    """What a host program asks of a device; all work is queued in order.  A buffer is whatever `alloc` gives."""

    def alloc(self, nbytes: int) -> Any:
        """New device memory; zero bytes are valid."""
        ...

    def free(self, buffer: Any) -> None:
        """Give memory back, after the work queued so far."""
        ...

    def upload(self, buffer: Any, array: np.ndarray[Any, Any]) -> None:
        """Copy a C-contiguous array to the device."""
        ...

    def download(self, buffer: Any, array: np.ndarray[Any, Any]) -> None:
        """Fill a C-contiguous array, after the work queued so far."""
        ...

    def copy(self, source: Any, target: Any, nbytes: int) -> None:
        """Copy between buffers."""
        ...

    def launch(self, kernel: str, grid: Sequence[int], block: Sequence[int], arguments: Sequence[Any]) -> None:
        """Queue a kernel.  Arguments are buffers and NumPy scalars; the grid has no zero."""
        ...


@dataclass(frozen=True, slots=True)
class Array:
    """A memref on the host: a buffer and its extents."""

    buffer: Any
    shape: tuple[int, ...]


def nbytes(type: MemRefType, shape: Sequence[int]) -> int:
    """Bytes of a buffer."""
    return prod(shape) * element_bytes(type.element)


class HostProgram:
    """The commands of a function of a mapped module."""

    def __init__(self, module: Module, entry: str) -> None:
        function = module.symbol(entry)
        if not isinstance(function, func.Func):
            raise LoweringError(f"the module has no function '@{entry}'", module.location)
        self.module = module
        self.arguments = list(function.arguments)
        self.constants: dict[str, Array] = {}
        self.commands: list[Command] = []
        self.temporaries: list[Value] = []
        """What the program allocates; a run drops each when it is freed."""
        for op in function.entry:
            make = COMMANDS.get(op.name)
            if make is not None:
                self.commands.append(make(self, op))
            elif isinstance(op, func.Return):
                break
            elif isinstance(op, Op) and not op.regions and len(op.results) == 1:
                self.commands.append(_scalar(self, op))
            else:
                raise LoweringError(f"a device's host program cannot run '{op.name}'", op.location)

    def run(self, device: Commands, arrays: Sequence[Any]) -> None:
        """Queue everything; `arrays` are the inputs, scalars as NumPy scalars, then the outputs."""
        env: Env = dict(zip(self.arguments, arrays, strict=True))
        try:
            for command in self.commands:
                command(device, env)
        except BaseException:
            for value in self.temporaries:
                if value in env:
                    device.free(env[value].buffer)
            raise


def _scalar(program: HostProgram, op: Any) -> Command:
    """Index arithmetic, by the op's own meaning."""
    result, operands = op.result, tuple(op.operands)
    if isinstance(op, arith.Constant):
        value = numeric.constant(op.properties["value"])

        def constant(device: Commands, env: Env) -> None:
            env[result] = value

        return constant

    def compute(device: Commands, env: Env) -> None:
        env[result] = op.evaluate(*[env[v] for v in operands])

    return compute


def _alloc(program: HostProgram, op: memref.Alloc) -> Command:
    type, sizes, result = op.result.type, tuple(op.sizes), op.result
    assert isinstance(type, MemRefType)
    program.temporaries.append(result)

    def run(device: Commands, env: Env) -> None:
        rest = iter(sizes)
        shape = tuple(int(env[next(rest)]) if d == DYNAMIC else d for d in type.shape)
        env[result] = Array(device.alloc(nbytes(type, shape)), shape)

    return run


def _dealloc(program: HostProgram, op: memref.Dealloc) -> Command:
    value = op.memref

    def run(device: Commands, env: Env) -> None:
        device.free(env.pop(value).buffer)

    return run


def _dim(program: HostProgram, op: memref.Dim) -> Command:
    source, index, result = op.source, op.index, op.result
    import numpy as np

    def run(device: Commands, env: Env) -> None:
        env[result] = np.int64(env[source].shape[int(env[index])])

    return run


def _copy(program: HostProgram, op: memref.Copy) -> Command:
    source, target, type = op.source, op.target, op.source.type
    assert isinstance(type, MemRefType)

    def run(device: Commands, env: Env) -> None:
        size = nbytes(type, env[source].shape)
        if size:
            device.copy(env[source].buffer, env[target].buffer, size)

    return run


def _global(program: HostProgram, op: memref.GetGlobal) -> Command:
    """A constant array, which the first run brings to the device, where it stays."""
    name = op.properties["name"].root  # pyright: ignore[reportAttributeAccessIssue]
    result, type = op.result, op.result.type
    assert isinstance(type, MemRefType)
    defined = program.module.symbol(name)
    assert isinstance(defined, memref.Global)
    import numpy as np

    data = np.ascontiguousarray(numeric.constant(defined.properties["initial_value"]))

    def run(device: Commands, env: Env) -> None:
        found = program.constants.get(name)
        if found is None:
            found = program.constants[name] = Array(device.alloc(data.nbytes), type.shape)
            device.upload(found.buffer, data)
        env[result] = found

    return run


def _launch(program: HostProgram, op: gpu.LaunchFunc) -> Command:
    kernel = kernel_names(program.module)[op.kernel.root, op.kernel.nested[0]]
    grid, block = op.grid, op.block
    import numpy as np

    def pack(value: Value) -> Callable[[Env], list[Any]]:
        type = value.type
        if not isinstance(type, MemRefType):
            return lambda env: [env[value]]
        dynamic = [i for i, d in enumerate(type.shape) if d == DYNAMIC]
        if not dynamic:
            return lambda env: [env[value].buffer]
        return lambda env: [env[value].buffer, *(np.int64(env[value].shape[i]) for i in dynamic)]

    packers = [pack(v) for v in op.arguments]

    def run(device: Commands, env: Env) -> None:
        blocks = [int(env[v]) for v in grid]
        if 0 not in blocks:
            arguments = [a for p in packers for a in p(env)]
            device.launch(kernel, blocks, [int(env[v]) for v in block], arguments)

    return run


COMMANDS: dict[str, Callable[[HostProgram, Any], Command]] = {
    "memref.alloc": _alloc,
    "memref.dealloc": _dealloc,
    "memref.dim": _dim,
    "memref.copy": _copy,
    "memref.get_global": _global,
    "gpu.launch_func": _launch,
}
"""How host ops become commands, by name; ops without a row compute scalars."""


class HostExecutable(Executable):
    """A host program on a device.  Arrays go up before it and come down after it; scalars are passed by value."""

    def __init__(
        self,
        name: str,
        device: str,
        inputs: Sequence[Type],
        outputs: Sequence[TensorType],
        program: HostProgram,
        commands: Commands,
        text: str,
    ) -> None:
        super().__init__(name, device, inputs, outputs)
        self.program = program
        self.commands = commands
        self.text = text
        self._lock = shared_lock()

    def execute(self, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]) -> None:
        device = self.commands
        with self._lock:
            arrays: list[Any] = []
            try:
                for array, type in zip((*inputs, *outputs), (*self.inputs, *self.outputs), strict=True):
                    in_memory = isinstance(type, TensorType)
                    arrays.append(Array(device.alloc(array.nbytes), array.shape) if in_memory else array[()])
                for array, given in zip(arrays, inputs, strict=False):
                    if isinstance(array, Array):
                        device.upload(array.buffer, given)
                self.program.run(device, arrays)
                for array, out in zip(arrays[len(inputs) :], outputs, strict=True):
                    device.download(array.buffer, out)
            finally:
                for array in arrays:
                    if isinstance(array, Array):
                        device.free(array.buffer)

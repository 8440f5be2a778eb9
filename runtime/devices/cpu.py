"""The CPU: loop level to LLVM IR to code in this process."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...ir.diagnostics import AllocationError, CheckError, LoweringError
from ...ir.dialects import cf
from ...ir.dialects.builtin import Module
from ...ir.target import Target
from ...ir.types import DYNAMIC, INDEX, ShapedType, TensorType, Type
from ...lowering.llvm.emit import RUNTIME_SYMBOLS, emit_module
from ...lowering.llvm.entry import Argument, Signature
from ...lowering.llvm.failure import FIRST_ASSERTION, assertions, fallible
from ...lowering.names import function_name
from ..executable import Executable, dynamic_sizes
from ..host import host_features
from ..native import NativeModule, compile_ir
from ..threads import SHARED_SYMBOLS

if TYPE_CHECKING:
    import numpy as np

    from ..entry import TensorClass

MOST_CTYPES_ARGUMENTS = 1024
"""More than these go through the native entry alone."""
RELEASE_GIL_BYTES = 64 << 10
"""A call that touches more than this lets other Python threads run meanwhile."""


class CpuDevice:
    """The processor that this process runs on."""

    name = "cpu"
    pipeline = "loop-cpu"

    def __init__(self) -> None:
        host = host_features()
        self.target = Target(
            kind="cpu",
            vector_bits=host.vector_bits,
            vector_registers=host.vector_registers,
            l1=host.l1,
            line=host.line,
            l1_way=host.l1_way,
            l2=host.l2,
            l3=host.l3,
        )

    def text(self, module: Module) -> str:
        """LLVM IR."""
        return emit_module(module, self.target.vector_bits)

    def build(
        self, module: Module, entry: str, inputs: tuple[Type, ...], outputs: tuple[TensorType, ...]
    ) -> CpuExecutable:
        """Compile and load."""
        fails = entry in fallible(module)
        return CpuExecutable(entry, self.text(module), inputs, outputs, fails, assertions(module) if fails else ())


class CpuExecutable(Executable):
    """Native code and the LLVM IR that it came from."""

    def __init__(
        self,
        name: str,
        text: str,
        inputs: tuple[Type, ...],
        outputs: tuple[TensorType, ...],
        may_fail: bool,
        assertions: Sequence[cf.Assert] = (),
    ) -> None:
        super().__init__(name, "cpu", inputs, outputs)
        self.text = text
        self.may_fail = may_fail
        self.assertions = [(op.msg, op.location) for op in assertions]
        self.native: NativeModule = compile_ir(text, name=name, symbols=SHARED_SYMBOLS, libraries=RUNTIME_SYMBOLS)
        arguments: list[Any] = []
        for type, dtype in zip((*inputs, *outputs), (*self.dtypes, *self.output_dtypes), strict=True):
            if isinstance(type, ShapedType):
                arguments += [ctypes.c_void_p] + [ctypes.c_int64] * sum(d == DYNAMIC for d in type.shape)
            else:
                arguments.append(_scalar_type(type, dtype))
        self._call: Any = None
        self._entry: Any = None
        if len(arguments) <= MOST_CTYPES_ARGUMENTS:
            self._call = ctypes.CFUNCTYPE(ctypes.c_int32 if may_fail else None, *arguments)(
                self.native.address(function_name(name))
            )
        else:
            self._entry = self.native_entry(None, ["array"] * len(inputs), [None] * len(inputs))
            if self._entry is None:
                raise LoweringError(f"'{name}' takes {len(arguments)} arguments; ctypes passes {MOST_CTYPES_ARGUMENTS}")

    def assembly(self) -> str:
        """The assembly text."""
        return self.native.assembly()

    def execute(self, inputs: Sequence[np.ndarray[Any, Any]], outputs: Sequence[np.ndarray[Any, Any]]) -> None:
        if self._entry is not None:
            if self._entry(*inputs, *outputs) is not None:
                raise LoweringError(f"'{self.name}' was given arrays that its native entry refuses")
            return
        arguments: list[Any] = []
        for array, type in zip((*inputs, *outputs), (*self.inputs, *self.outputs), strict=True):
            arguments.append(array.ctypes.data if isinstance(type, ShapedType) else array.item())
            arguments += dynamic_sizes(array, type)
        status = self._call(*arguments)
        if status and status >= FIRST_ASSERTION:
            raise CheckError(*self.assertions[status - FIRST_ASSERTION])
        if status:
            raise AllocationError(f"'{self.name}' found no memory for its temporaries")

    def native_entry(
        self, tensor_class: TensorClass | None, kinds: Sequence[str], abstract_values: Sequence[Any]
    ) -> Any | None:
        from ..entry import entry_of  # late

        def argument(kind: Any, type: Type) -> Argument:
            if not isinstance(type, TensorType):
                return Argument("number", "index", ())
            return Argument(kind, str(type.element), type.dims)

        tensors = [t for t in self.inputs if isinstance(t, TensorType)]
        if not all(isinstance(t, TensorType) or t is INDEX for t in self.inputs):
            return None
        total = sum(t.num_elements * 4 for t in (*tensors, *self.outputs) if t.is_static)
        large = total > RELEASE_GIL_BYTES or not all(t.is_static for t in tensors)
        signature = Signature(
            function_name(self.name),
            tuple(argument(k, t) for k, t in zip(kinds, self.inputs, strict=True)),
            tuple(argument("array", t) for t in self.outputs),
            release_gil=large,
            may_fail=self.may_fail,
        )
        return entry_of(
            self.native, signature, name=self.name, tensor_class=tensor_class, abstract_values=abstract_values
        )


def _scalar_type(type: Type, dtype: np.dtype[Any]) -> Any:
    """How ctypes passes a scalar argument; LoweringError for one that it cannot."""
    import numpy as np

    if dtype.kind == "V" or (dtype.itemsize == 2 and dtype.kind == "f"):
        raise LoweringError(f"a {type} cannot be passed by value; pass it as a tensor<{type}>")
    return np.ctypeslib.as_ctypes_type(dtype)

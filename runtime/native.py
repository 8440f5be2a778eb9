"""Native code: LLVM IR text becomes an object, an object becomes code in this process.

`compile_object` needs llvmlite; `load_object` does not (on x86-64 ELF hosts): objects from a disk cache run without it.
Objects leave open only names, which `symbols` and the process itself fill in at load time: no address is compiled in.

No LLVM pass pipeline runs: kernels arrive vectorised and unrolled, and the passes cost several times what code
generation costs while they gain nothing on such code.  llvmlite serialises all its calls by a lock of its own, so
compiling from several threads is safe and no faster.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from typing import Any, Protocol

from ..ir.diagnostics import LoweringError
from ..ir.forking import LLVM, held_across_forks
from .elf import ElfImage
from .host import HostFeatures, host_features

__all__ = [
    "Compiler",
    "HostFeatures",
    "NativeModule",
    "assembly",
    "compile_ir",
    "compile_object",
    "host_features",
    "load_object",
]

# For kernels; and for code that runs briefly, which LLVM then generates in a quarter of the time.
CODEGEN_LEVEL, QUICK_CODEGEN_LEVEL = 1, 0

# LLVM ends the process when it meets an intrinsic that the processor lacks; longest prefix first.
_INTRINSIC_FEATURES = (
    ("llvm.x86.avx512bf16.", "avx512bf16"),
    ("llvm.x86.avx512.", "avx512f"),
    ("llvm.x86.avx2.", "avx2"),
    ("llvm.x86.fma.", "fma"),
    ("llvm.x86.vcvtps2ph.", "f16c"),
    ("llvm.x86.avx.", "avx"),
)

# LLVM's parser is recursive and dies on constants nested by the thousand; such a line is long.
_LONG_LINE, _DEEPEST_NESTING = 4096, 256


class Compiler(Protocol):
    """LLVM IR text to an object, as `compile_object` does it; a cache may stand in front."""

    def __call__(self, text: str, *, name: str, codegen_level: int = ...) -> bytes: ...


class _Image(Protocol):
    def address(self, symbol: str) -> int: ...
    def close(self) -> None: ...


class NativeModule:
    """Code of one LLVM module in this process; its memory goes back when the module is closed or dies.

    Whoever hands out an address keeps the module alive as long as the address may be called.
    """

    def __init__(self, name: str, object_bytes: bytes, image: _Image, text: str | None) -> None:
        self.name = name
        self.object_bytes = object_bytes
        self._image: _Image | None = image
        self._text = text

    def address(self, symbol: str) -> int:
        """The address of a symbol that the module defines. LoweringError when there is none, or after `close()`."""
        if self._image is None:
            raise LoweringError(f"native module '{self.name}' is closed")
        try:
            return self._image.address(symbol)
        except KeyError:
            raise LoweringError(f"native module '{self.name}' defines no symbol '{symbol}'") from None

    def assembly(self) -> str:
        """The assembly text, generated anew. LoweringError for a module that came as an object without its IR."""
        if self._text is None:
            raise LoweringError(f"native module '{self.name}' was loaded from an object: its IR is not at hand")
        return assembly(self._text, name=self.name)

    def close(self) -> None:
        """Free the code. Nothing may be running in it or call it afterwards."""
        if self._image is not None:
            self._image.close()
            self._image = None

    def __enter__(self) -> NativeModule:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._image is None else ""
        return f"<NativeModule '{self.name}', {len(self.object_bytes)} bytes{state}>"


def compile_ir(
    text: str, *, name: str, symbols: Mapping[str, int] | None = None, libraries: Collection[str] | None = None
) -> NativeModule:
    """Compile LLVM IR text for this processor and load it. Errors as in `compile_object` and `load_object`."""
    return load_object(compile_object(text, name=name), name=name, symbols=symbols, libraries=libraries, text=text)


def assembly(text: str, *, name: str) -> str:
    """The assembly text that LLVM IR becomes on this processor. Errors as in `compile_object`."""
    _check(text, name)
    with _parsed(text, name) as module:
        return _target_machine(CODEGEN_LEVEL).emit_assembly(module)


def compile_object(text: str, *, name: str, codegen_level: int = CODEGEN_LEVEL) -> bytes:
    """The object file for LLVM IR text, for this processor.

    LoweringError, with LLVM's own message, when the text does not parse or verify, nests absurdly, or uses an
    intrinsic that this processor lacks.
    """
    _check(text, name)
    with _parsed(text, name) as module:
        return _target_machine(codegen_level).emit_object(module)


def load_object(
    data: bytes,
    *,
    name: str,
    symbols: Mapping[str, int] | None = None,
    libraries: Collection[str] | None = None,
    text: str | None = None,
) -> NativeModule:
    """Load an object file; what it leaves open is looked up in `symbols`, then in the process (libc, libm, Python).

    `libraries`: the only names that may be looked up in the process; None: any.

    `text` is the IR it came from, if known. LoweringError when the object is damaged, a symbol is found nowhere, or the
    system denies executable memory.
    """
    given = {} if symbols is None else symbols
    if sys.platform == "linux" and platform.machine() == "x86_64":

        def resolve(symbol: str) -> int | None:
            known = given.get(symbol)
            return known or (_process_symbol(symbol) if libraries is None or symbol in libraries else None)

        image: _Image = ElfImage(data, resolve, name=name)
    else:
        image = _OrcImage(data, given, libraries, name)
    return NativeModule(name, data, image, text)


@cache
def _libraries() -> tuple[ctypes.CDLL, ...]:
    """Where open symbols are looked up: the process, then what compilers expect beside libc (float16 conversions)."""
    found = [ctypes.CDLL(None)]
    for library in ("libm.so.6", "libgcc_s.so.1"):
        try:
            found.append(ctypes.CDLL(library))
        except OSError:
            continue
    return tuple(found)


def _process_symbol(name: str) -> int | None:
    for library in _libraries():
        try:
            return ctypes.cast(library[name], ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


class _OrcImage:
    """An object loaded by LLVM's ORC linker, on hosts whose object format `ElfImage` does not read.

    Each image has a JIT of its own: one that is shared keeps some 10 KiB of every module it ever linked.
    """

    def __init__(self, data: bytes, symbols: Mapping[str, int], libraries: Collection[str] | None, name: str) -> None:
        import llvmlite.binding as llvm

        self._jit: Any = llvm.create_lljit_compiler(_target_machine(CODEGEN_LEVEL))
        self._name = name
        builder: Any = llvm.JITLibraryBuilder().add_object_img(data)
        if libraries is None:
            builder = builder.add_current_process()
        for symbol in libraries or ():
            address = None if symbol in symbols else _process_symbol(symbol)
            if address is not None:
                builder.import_symbol(symbol, address)
        for symbol, address in symbols.items():
            builder.import_symbol(symbol, address)
        # A tracker unloads the whole library when it dies, even one that only looked a symbol up: all stay to the end.
        self._trackers: list[Any] = []
        try:
            self._trackers.append(builder.link(self._jit, name))
        except RuntimeError as fault:
            self._jit.close()
            raise LoweringError(f"cannot load the object of '{name}': {fault}") from fault

    def address(self, symbol: str) -> int:
        try:
            self._trackers.append(self._jit.lookup(self._name, symbol))
        except RuntimeError as fault:
            raise KeyError(symbol) from fault
        return self._trackers[-1][symbol]

    def close(self) -> None:
        for tracker in self._trackers:
            tracker.close()
        self._jit.close()


@contextmanager
def _parsed(text: str, name: str) -> Iterator[Any]:
    """The verified module. It goes at the end, and only then its context, which else keeps every type ever named:
    left to the garbage collector they may go in the other order, which ends the process."""
    import llvmlite.binding as llvm

    _initialize()
    with closing(llvm.create_context()) as context:
        try:
            module = llvm.parse_assembly(text, context)
        except RuntimeError as fault:
            raise LoweringError(f"LLVM rejects module '{name}': {str(fault).strip()}") from fault
        with closing(module):
            try:
                module.verify()
            except RuntimeError as fault:
                raise LoweringError(f"LLVM rejects module '{name}': {str(fault).strip()}") from fault
            yield module


@cache
def _initialize() -> None:
    import llvmlite.binding as llvm
    from llvmlite.binding import ffi

    # Its lock keeps LLVM at rest while a fork copies it.
    held_across_forks(ffi.lib._lock._lock, LLVM)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _target_machine(codegen_level: int) -> Any:
    import llvmlite.binding as llvm

    _initialize()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=codegen_level,
        reloc="pic",
        codemodel="default",
    )


def _check(text: str, name: str) -> None:
    """Refuse what would end the process inside LLVM."""
    _check_nesting(text, name)
    _check_intrinsics(text, name)


def _check_nesting(text: str, name: str) -> None:
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) <= _LONG_LINE:
            continue
        depth = 0
        for character in line:
            if character in "([{<":
                depth += 1
                if depth > _DEEPEST_NESTING:
                    raise LoweringError(
                        f"module '{name}': line {number} nests more than {_DEEPEST_NESTING} levels deep, which LLVM's"
                        " parser does not survive"
                    )
            elif character in ")]}>":
                depth -= 1


def _check_intrinsics(text: str, name: str) -> None:
    if "llvm.x86." not in text:
        return
    features = host_features().features
    for prefix, feature in _INTRINSIC_FEATURES:
        if feature not in features and prefix in text:
            raise LoweringError(f"module '{name}' uses {prefix}*, but this processor has no {feature}")

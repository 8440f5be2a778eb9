"""The compiler driver: a tensor-level function in, an executable out, with a cache between.

Everything that runs goes through here: eager chains, jit, gradients, ir-run.  The cache lives in memory and is keyed by
the digest of the module's structure, the device's numbers and the options; names and locations do not count.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from ..ir.attribute_names import TARGET
from ..ir.bounded_cache import BoundedCache
from ..ir.definition import ON_REDEFINITION, SCALAR
from ..ir.diagnostics import Error, PassError
from ..ir.dialects.builtin import Module
from ..ir.dialects.func import Func
from ..ir.digest import digest
from ..ir.forking import shared_lock
from ..ir.target import DEFAULTS, Target
from ..ir.types import INDEX, MemRefType, TensorType, Type
from ..ir.verifier import verify
from ..lowering.targets import TARGETS
from ..passes.manager import PassManager
from ..passes.pipelines import PIPELINES
from .devices import get_device
from .executable import Executable

CACHE_SIZE = 1024
"""Executables kept; the one not used for longest goes first."""

STAGES = {"trace": "", "tensor": "tensor", "kernel": "kernel"}
"""Stages above the loop level and the named pipelines that lead to them."""


@dataclass
class CompileStatistics:
    """What the cache has seen."""

    hits: int = 0
    misses: int = 0
    compiles: int = 0


_cache: BoundedCache[Executable] = BoundedCache(CACHE_SIZE)
_statistics = CompileStatistics()
_lock = shared_lock()


def cache_statistics() -> CompileStatistics:
    """A copy of the cache's counts."""
    with _lock:
        return CompileStatistics(_statistics.hits, _statistics.misses, _statistics.compiles)


def clear_cache() -> None:
    """Forget all executables."""
    _cache.clear()


ON_REDEFINITION.append(clear_cache)


def _count(hits: int = 0, misses: int = 0, compiles: int = 0) -> None:
    with _lock:
        _statistics.hits += hits
        _statistics.misses += misses
        _statistics.compiles += compiles


def compile_function(
    module: Module, entry: str = "main", device: str = "cpu", *, fast_math: bool = False, checked: bool = False
) -> Executable:
    """The executable of a tensor-level function; `module` stays as it is.

    `checked` is for text of unknown origin: claims that nothing verifies are dropped, and what could reach outside of
    buffers is checked while it runs (CheckError), or refused where it cannot be (LoweringError).  On the CPU a function
    may take contiguous memrefs, which it changes in place.

    `fast_math` permits passes and targets less accurate functions; none makes use of it so far.

    Errors: those of the passes and lowerings (nablair.Error), DeviceError for a device that is not there.
    """
    target = get_device(device)
    names = _index_names(module, entry)
    key: Hashable = (digest(module), f"{target.name} {target.target} {entry} {names}", fast_math)
    if checked:
        # Its errors speak of places in this very text, which the key does not hold; a fork waits for it all the same.
        _count(compiles=1)
        with _cache.making(object()):
            return _compile(module, entry, target, checked)
    was_made = False

    def make() -> Executable:
        nonlocal was_made
        was_made = True
        _count(misses=1)
        made = _compile(module, entry, target, checked)
        _count(compiles=1)
        return made

    found = _cache.get_or_make(key, make)
    if not was_made:
        _count(hits=1)
    return found


def _compile(module: Module, entry: str, device: Any, checked: bool) -> Executable:
    inputs, outputs = signature(module, entry, device.target.kind == "cpu")
    pipeline = device.pipeline
    if checked:
        verify(module)
    if checked and not getattr(device, "checks_itself", False):
        pipeline = f"strip-annotations,{PIPELINES[pipeline]}".replace("map-kernels", PIPELINES["map-kernels"])
        pipeline = pipeline.replace("lower-to-loops", "lower-to-loops,insert-checks")
    lowered = lowered_module(module, device.target, pipeline)
    made: Executable = device.build(lowered, entry, inputs, outputs)
    function = module.symbol(entry)
    assert isinstance(function, Func)
    made.names = tuple([a.name for a in function.arguments])
    return made


def _index_names(module: Module, entry: str) -> tuple[str | None, ...]:
    """The names of index arguments: they may be symbols of types, so that here names count."""
    function = module.symbol(entry)
    return tuple([a.name for a in function.arguments if a.type is INDEX]) if isinstance(function, Func) else ()


def signature(module: Module, entry: str, buffers: bool = False) -> tuple[tuple[Type, ...], tuple[TensorType, ...]]:
    """The types that a function takes, tensors, scalars and (with `buffers`) memrefs, and the tensors that it gives."""
    function = module.symbol(entry)
    if not isinstance(function, Func):
        raise PassError(f"the module has no function '@{entry}'", module.location)
    for type in function.type.inputs:
        if buffers and isinstance(type, MemRefType) and type.layout is None:
            continue
        if not isinstance(type, TensorType) and type not in SCALAR:
            message = f"'@{entry}' takes a {type}; tensors and scalars pass from host to device"
            raise PassError(message, function.location)
    for type in function.type.results:
        if not isinstance(type, TensorType):
            raise PassError(f"'@{entry}' gives a {type}; only tensors pass from device to host", function.location)
    return function.type.inputs, function.type.results  # pyright: ignore[reportReturnType]


def lowered_module(module: Module, target: Target, pipeline: str) -> Module:
    """A copy of a module, with a target, after a pipeline."""
    copy = module.clone()
    copy.attributes[TARGET] = target.attribute()
    if pipeline:
        # The copy is dropped when a pass fails, so nothing has to be restored.
        PassManager.parse(pipeline, verify_each=False, restore=False).run(copy)
    return copy


def lower(module: Module, device: str, stage: str, entry: str = "main") -> Module | str:
    """A module at a stage: IR at "trace", "tensor", "kernel" and "loop", text at those of `lowering.targets`: "llvm",
    "asm", "opencl", "ptx", and what plugins add."""
    if stage in STAGES:
        return lowered_module(module, get_device(device).target, STAGES[stage])
    row = TARGETS.get(stage)
    if row is None and stage != "loop":
        raise Error(f"unknown stage '{stage}'; there are: {', '.join([*STAGES, 'loop', *TARGETS])}")
    if row is not None and not row.device:
        # The text needs no device, and so no pyopencl.
        return row.text(lowered_module(module, DEFAULTS["cpu"], row.pipeline))
    found = get_device(device if row is None else row.device)
    made = lowered_module(module, found.target, found.pipeline)
    return made if row is None else row.finished(found.text(made), entry)

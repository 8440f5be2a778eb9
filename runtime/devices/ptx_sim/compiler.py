"""Kernels -> Python functions on NumPy lanes, one per basic block.

A block of PTX such as

    mad.lo.s32 %r4, %r1, %r2, %r3;      becomes      def block_0(R, S, m):
    setp.ge.s32 %p1, %r4, %r5;                           v3 = ((R[0]*R[1])+R[2])
    @%p1 bra DONE;                                       return (v3 >= R[4])

`R` holds the registers (a NumPy scalar where all lanes agree, else an array over lanes), `S` is the machine, and `m`
the mask of active lanes, None for all. Assignments keep the lanes outside the mask, except to registers that never
leave the block. Each instruction's text comes from the table that the modules under `instructions/` fill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import floats, integers
from . import instructions as _instructions  # noqa: F401 - fills RULES
from .analysis import Block, blocks_of, classify
from .emitter import RULES, Emitter
from .parser import Instruction, Kernel, ModuleText
from .types import TYPES, PtxType


@dataclass(frozen=True)
class CompiledBlock:
    run: Callable[[list[Any], Any, Any], Any]
    kind: str
    target: int
    terminator: Instruction | None
    instructions: int


@dataclass
class CompiledKernel:
    """Executable form of a kernel: `source` is the generated Python, `granule` the smallest access by space."""

    kernel: Kernel
    source: str
    blocks: list[CompiledBlock]
    initial: list[Any]
    shared_bytes: int
    dynamic_offset: int
    local_bytes: int
    granule: dict[str, int]
    opcodes: frozenset[str]
    warp_sync: bool


def compile_kernel(kernel: Kernel, module: ModuleText) -> CompiledKernel:
    """Translate a kernel. Raises PtxSyntaxError for an instruction that is not supported."""
    blocks = blocks_of(kernel)
    emitter = Emitter(kernel, module, classify(kernel, blocks))
    sources = [_block_source(emitter, number, block) for number, block in enumerate(blocks)]
    source = "\n".join(sources)
    dtypes = {kind.numpy: kind.dtype.type for kind in TYPES.values()}
    scope: dict[str, Any] = {
        **dtypes, **emitter.constants, "np": np, "floats": floats, "integers": integers, "select": _select,
    }  # fmt: skip
    exec(compile(source, f"<ptx {kernel.name}>", "exec"), scope)
    compiled = []
    for number, block in enumerate(blocks):
        size = block.last - block.first + (block.terminator is not None)
        compiled.append(CompiledBlock(scope[f"block_{number}"], block.kind, block.target, block.terminator, size))
    opcodes = frozenset(one.opcode for one in kernel.instructions)
    warp_sync = any(one.opcode in ("bar", "barrier") and "warp" in one.modifiers for one in kernel.instructions)
    return CompiledKernel(
        kernel, source, compiled, [_poison(TYPES[name]) for name in kernel.registers.values()], emitter.shared.size,
        emitter.dynamic_offset, emitter.local.size, emitter.granule, opcodes, warp_sync,
    )  # fmt: skip


def _select(mask: Any, new: Any, old: Any) -> Any:
    return new if mask is None else np.where(mask, new, old)


def _poison(kind: PtxType) -> Any:
    """What an unassigned register holds where its use is not checked: a pattern that shows."""
    if kind.kind == "p":
        return np.bool_(True)
    return np.frombuffer(b"\xef\xbe\xad\xde\xef\xbe\xad\xde"[: kind.size], kind.dtype)[0]


def _block_source(emitter: Emitter, number: int, block: Block) -> str:
    emitter.lines = []
    guarded: tuple[str, bool] | None = None
    for position in range(block.first, block.last):
        one = emitter.kernel.instructions[position]
        emitter.current, emitter.position = one, position
        rule = RULES.get(one.opcode)
        if rule is None:
            raise emitter.error("this instruction is not supported")
        guard = None if one.guard is None else (one.guard, one.negated)
        if guard is None or guard != guarded:
            emitter.indent, emitter.mask = "    ", "m"
        if guard is not None and guard != guarded:
            emitter.line(f"g = S.guard({emitter.read(guard[0], TYPES['pred'])}, {guard[1]}, m)")
            emitter.line("if g is not False:")
            emitter.line("    pass")
        if guard is not None:
            emitter.indent, emitter.mask = "        ", "g"
        try:
            rule(emitter, one)
        except (ValueError, IndexError, KeyError, StopIteration):
            raise emitter.error("these operands or modifiers do not fit the instruction") from None
        # A guard that was just overwritten must be evaluated anew.
        guarded = None if guard is None or any(guard[0] in part for part in one.operands[:1]) else guard
    emitter.indent, emitter.mask = "    ", "m"
    if block.terminator is not None and block.terminator.guard is not None:
        emitter.current, emitter.position = block.terminator, block.last
        predicate = emitter.read(block.terminator.guard, TYPES["pred"])
        emitter.line(f"return ~{predicate}" if block.terminator.negated else f"return {predicate}")
    return f"def block_{number}(R, S, m):\n" + ("\n".join(emitter.lines) or "    pass") + "\n"

"""Loads, stores, atomics and asynchronous copies (PTX ISA, sections 9.7.9 and 9.7.13)."""

from __future__ import annotations

import re

from ..emitter import Emitter, instruction, vector
from ..parser import Instruction
from ..types import TYPES

_SPACES = ("global", "shared", "local", "const")
_STRONG = frozenset(("volatile", "relaxed", "acquire", "release", "mmio"))
_ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def _space(i: Instruction) -> str:
    return next((name for name in i.modifiers if name in _SPACES), "generic")


def _count(i: Instruction) -> int:
    return next((int(name[1:]) for name in i.modifiers if re.fullmatch(r"v\d", name)), 1)


@instruction("ld", "ldu")
def _load(e: Emitter, i: Instruction) -> None:
    kind, count = e.type_of(), _count(i)
    targets = vector(i.operands[0])
    if len(targets) != count:
        raise e.error(f"{len(targets)} registers for {count} elements")
    if "param" in i.modifiers:
        address = e.address(i.operands[1])
        for position, target in enumerate(targets):
            e.write(target, f"S.parameter({address}, {position * kind.size}, {kind.numpy}, {e.here()})", kind)
        return
    space = _space(i)
    if space == "const":
        space = "global"
    e.note_access(space, kind.size)
    strong = not _STRONG.isdisjoint(i.modifiers)
    e.line(f"t = S.load({space!r}, {e.address(i.operands[1])}, {kind.numpy}, {count}, {e.mask}, {e.here()}, {strong})")
    for position, target in enumerate(targets):
        e.write(target, f"t[{position}]", kind)


@instruction("st")
def _store(e: Emitter, i: Instruction) -> None:
    kind, count, space = e.type_of(), _count(i), _space(i)
    sources = vector(i.operands[1])
    if len(sources) != count:
        raise e.error(f"{len(sources)} registers for {count} elements")
    e.note_access(space, kind.size)
    values = ", ".join(e.read(source, kind) for source in sources)
    strong = not _STRONG.isdisjoint(i.modifiers)
    address = e.address(i.operands[0])
    e.line(f"S.store({space!r}, {address}, [{values}], {kind.numpy}, {e.mask}, {e.here()}, {strong})")


@instruction("atom", "red")
def _atomic(e: Emitter, i: Instruction) -> None:
    kind, space = e.type_of(), _space(i)
    operation = next((name for name in i.modifiers if name in _ATOMICS), None)
    if operation is None or kind.name in ("bf16", "f16x2", "bf16x2"):
        raise e.error("this atomic is not supported")
    e.note_access(space, kind.size)
    wants = i.opcode == "atom"
    operands = i.operands[1:] if wants else i.operands
    address = e.address(operands[0])
    b = e.read(operands[1], kind)
    c = e.read(operands[2], kind) if len(operands) > 2 else "None"
    call = f"S.atomic({operation!r}, {space!r}, {address}, {b}, {c}, {kind.numpy}, {e.mask}, {e.here()}, {wants})"
    if wants:
        e.write(i.operands[0], call, kind)
    else:
        e.line(call)


@instruction("cp")
def _copy_async(e: Emitter, i: Instruction) -> None:
    if "async" not in i.modifiers or "bulk" in i.modifiers or "mbarrier" in i.modifiers:
        raise e.error("this copy is not supported")
    if "commit_group" in i.modifiers:
        e.line(f"S.copies.commit({e.mask})")
    elif "wait_group" in i.modifiers:
        e.line(f"S.copies.wait({int(i.operands[0], 0)}, {e.mask})")
    elif "wait_all" in i.modifiers:
        e.line(f"S.copies.wait_all({e.mask})")
    else:
        if len(i.operands) < 3:
            raise e.error("cp.async takes a destination, a source and a size")
        size = int(i.operands[2], 0)
        e.note_access("shared", 4)
        e.note_access("global", 4)
        kept = e.read(i.operands[3], TYPES["u32"]) if len(i.operands) > 3 else "None"
        target, source = (e.address(operand) for operand in i.operands[:2])
        e.line(f"S.copies.start({target}, {source}, {size}, {kept}, {e.mask}, {e.here()})")


@instruction("membar", "fence", "prefetch", "prefetchu", "nanosleep", "griddepcontrol", "discard")
def _no_effect(e: Emitter, i: Instruction) -> None:
    """Ordering and hints: lanes see every store at once here, so there is nothing to do."""

"""Instructions that exchange values between the lanes of a warp (PTX ISA, sections 9.7.8.6, 9.7.13 and 9.7.14)."""

from __future__ import annotations

import re

from ..emitter import Emitter, instruction, vector
from ..parser import Instruction
from ..types import TYPES

_B32, _PRED, _F32 = TYPES["b32"], TYPES["pred"], TYPES["f32"]
_SHAPES = {
    ("m16n8k16", "f16"): 16, ("m16n8k16", "bf16"): 16, ("m16n8k8", "f16"): 8, ("m16n8k8", "bf16"): 8,
    ("m16n8k8", "tf32"): 8, ("m16n8k4", "tf32"): 4,
}  # fmt: skip


@instruction("shfl")
def _shuffle(e: Emitter, i: Instruction) -> None:
    if "sync" not in i.modifiers:
        raise e.error("shfl needs .sync")
    mode = next(name for name in i.modifiers if name in ("up", "down", "bfly", "idx"))
    a, b, c, members = (e.read(operand, _B32) for operand in i.operands[1:5])
    targets = [part.strip() for part in i.operands[0].split("|")]
    e.line(f"t = S.warp.shuffle({mode!r}, {a}, {b}, {c}, {members}, {e.mask}, {e.here()}, {len(targets) > 1})")
    e.write(targets[0], "t[0]", _B32)
    if len(targets) > 1:
        e.write(targets[1], "t[1]", _PRED)


@instruction("vote")
def _vote(e: Emitter, i: Instruction) -> None:
    mode = next((name for name in i.modifiers if name in ("all", "any", "uni", "ballot")), None)
    if "sync" not in i.modifiers or mode is None:
        raise e.error("vote needs .sync and .all, .any, .uni or .ballot")
    source = (
        f"S.warp.vote({mode!r}, {e.read(i.operands[1], _PRED)}, {e.read(i.operands[2], _B32)}, {e.mask}, {e.here()})"
    )
    e.write(i.operands[0], source, _B32 if mode == "ballot" else _PRED)


@instruction("activemask")
def _active(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], f"S.warp.active({e.mask})", _B32)


@instruction("bar", "barrier")
def _warp_barrier(e: Emitter, i: Instruction) -> None:
    e.line(f"S.warp.synchronize({e.read(i.operands[0], _B32)}, {e.mask}, {e.here()})")


@instruction("redux")
def _reduce(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    operation = next(name for name in i.modifiers if name in ("add", "min", "max", "and", "or", "xor"))
    value, members = e.read(i.operands[1], kind), e.read(i.operands[2], _B32)
    e.write(i.operands[0], f"S.warp.reduce({operation!r}, {value}, {members}, {e.mask}, {e.here()})", kind)


@instruction("ldmatrix")
def _load_matrix(e: Emitter, i: Instruction) -> None:
    count = next((int(name[1]) for name in i.modifiers if re.fullmatch(r"x[124]", name)), 0)
    targets = vector(i.operands[0])
    if "m8n8" not in i.modifiers or len(targets) != count:
        raise e.error("ldmatrix is .m8n8 with .x1, .x2 or .x4, and as many registers")
    e.note_access("shared", 4)
    e.line(f"t = S.load_matrix({e.address(i.operands[1])}, {count}, {'trans' in i.modifiers}, {e.mask}, {e.here()})")
    for position, target in enumerate(targets):
        e.write(target, f"t[{position}]", _B32)


@instruction("mma")
def _multiply_matrix(e: Emitter, i: Instruction) -> None:
    types = [name for name in i.modifiers if name in TYPES]
    shape = next((name for name in i.modifiers if name.startswith("m16n8")), "")
    if len(types) != 4 or (shape, types[1]) not in _SHAPES or types[1] != types[2] or types[0] != types[3]:
        raise e.error("this shape or these types are not supported")
    if types[0] not in ("f32", "f16"):
        raise e.error(f"no accumulator of .{types[0]}")
    element = _F32 if types[0] == "f32" else _B32
    lists = []
    for operand, kind in zip(i.operands[1:], (_B32, _B32, element)):
        lists.append(f"[{', '.join(e.read(part, kind) for part in vector(operand))}]")
    depth = _SHAPES[shape, types[1]]
    e.line(f"t = S.warp.multiply_matrix({depth}, {types[1]!r}, {', '.join(lists)}, {e.mask}, {e.here()})")
    for position, target in enumerate(vector(i.operands[0])):
        e.write(target, f"t[{position}]", element)

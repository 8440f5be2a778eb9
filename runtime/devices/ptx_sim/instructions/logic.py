"""Comparison, selection, bitwise logic, shifts and moves (PTX ISA, sections 9.7.6 to 9.7.9)."""

from __future__ import annotations

from ..emitter import Emitter, instruction, vector
from ..parser import Instruction
from ..types import TYPES, PtxType, bits_type

_PRED, _U32 = TYPES["pred"], TYPES["u32"]
_COMPARE = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">=",
}  # fmt: skip
_JOIN = {"and": "&", "or": "|", "xor": "^"}


def _value(e: Emitter, operand: str, kind: PtxType) -> str:
    """An operand to compare: bfloat16 as the float32 that it is, bits as unsigned."""
    source = e.read(operand, kind)
    return f"floats.widen_bf16({source})" if kind.kind == "h" else source


def _comparison(e: Emitter, operator: str, a: str, b: str, kind: PtxType) -> str:
    either = f"(np.isnan({a})|np.isnan({b}))"
    if operator == "nan":
        return either
    if operator == "num":
        return f"(~{either})"
    if operator == "ne" and kind.kind in "fh":
        return f"(({a}!={b})&~{either})"
    if operator in _COMPARE:
        return f"({a}{_COMPARE[operator]}{b})"
    if operator[-1:] == "u" and operator[:-1] in _COMPARE:
        return f"({a}!={b})" if operator == "neu" else f"(({a}{_COMPARE[operator[:-1]]}{b})|{either})"
    raise e.error(f"no comparison `{operator}`")


@instruction("setp")
def _set_predicate(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    a, b = (_value(e, operand, kind) for operand in i.operands[1:3])
    if "ftz" in i.modifiers and kind.name == "f32":
        a, b = f"floats.flush({a})", f"floats.flush({b})"
    source = _comparison(e, i.modifiers[0], a, b, kind)
    results = i.operands[0].split("|")
    join = next((_JOIN[name] for name in i.modifiers[1:] if name in _JOIN), None)
    third = e.read(i.operands[3], _PRED) if join else ""
    if len(results) == 1 and not join:
        return e.write(results[0], source, _PRED)
    e.line(f"t = {source}")
    if join:
        e.line(f"q = {third}")
    for result, value in zip(results, ("t", "~t")):
        e.write(result.strip(), f"(({value}){join}q)" if join else f"({value})", _PRED)
    return None


@instruction("set")
def _set(e: Emitter, i: Instruction) -> None:
    result, kind = e.type_of(-2), e.type_of()
    a, b = (_value(e, operand, kind) for operand in i.operands[1:3])
    source = _comparison(e, i.modifiers[0], a, b, kind)
    true = f"{result.numpy}(1)" if result.kind == "f" else f"~{result.numpy}(0)"
    e.write(i.operands[0], f"np.where({source}, {true}, {result.numpy}(0))[()]", result)


@instruction("selp")
def _select(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:3])
    e.write(i.operands[0], f"np.where({e.read(i.operands[3], _PRED)}, {a}, {b})[()]", kind)


@instruction("slct")
def _select_by_sign(e: Emitter, i: Instruction) -> None:
    kind, sign = e.type_of(-2), e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:3])
    c = e.read(i.operands[3], sign)
    c = f"floats.flush({c})" if "ftz" in i.modifiers else c
    e.write(i.operands[0], f"np.where({c} >= 0, {a}, {b})[()]", kind)


@instruction("and", "or", "xor")
def _bitwise(e: Emitter, i: Instruction) -> None:
    a, b = (e.read(operand, e.type_of()) for operand in i.operands[1:])
    e.write(i.operands[0], f"({a}{_JOIN[i.opcode]}{b})", e.type_of())


@instruction("not")
def _not(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], f"(~{e.read(i.operands[1], e.type_of())})", e.type_of())


@instruction("cnot")
def _logical_not(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    e.write(i.operands[0], f"({e.read(i.operands[1], kind)} == 0).astype({kind.numpy})", kind)


@instruction("shl", "shr")
def _shift(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    name = "shift_left" if i.opcode == "shl" else "shift_right"
    e.write(i.operands[0], f"integers.{name}({e.read(i.operands[1], kind)}, {e.read(i.operands[2], _U32)})", kind)


@instruction("shf")
def _funnel(e: Emitter, i: Instruction) -> None:
    operands = ", ".join(e.read(operand, _U32) for operand in i.operands[1:])
    e.write(i.operands[0], f"integers.funnel({operands}, {'l' in i.modifiers}, {'wrap' in i.modifiers})", _U32)


@instruction("prmt")
def _permute(e: Emitter, i: Instruction) -> None:
    if len(i.modifiers) > 1:
        raise e.error("only the default mode of prmt is supported")
    e.write(i.operands[0], f"integers.permute({', '.join(e.read(operand, _U32) for operand in i.operands[1:])})", _U32)


@instruction("lop3")
def _lookup(e: Emitter, i: Instruction) -> None:
    a, b, c = (e.read(operand, _U32) for operand in i.operands[1:4])
    e.write(i.operands[0], f"integers.lookup3({a}, {b}, {c}, {int(i.operands[4], 0)})", _U32)


@instruction("mov")
def _move(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    target, source = i.operands
    if target.startswith("{"):
        parts = vector(target)
        piece = TYPES[bits_type(kind.size // len(parts))]
        e.line(f"t = {e.read(source, TYPES[bits_type(kind.size)])}")
        for position, part in enumerate(parts):
            e.write(part, f"(t>>uint{kind.bits}({piece.bits * position})).astype({piece.numpy})", piece)
    elif source.startswith("{"):
        parts = vector(source)
        whole, piece = TYPES[bits_type(kind.size)], TYPES[bits_type(kind.size // len(parts))]
        pieces = [
            f"({e.read(part, piece)}.astype({whole.numpy})<<{whole.numpy}({piece.bits * position}))"
            for position, part in enumerate(parts)
        ]
        e.write(target, f"({'|'.join(pieces)})", whole)
    else:
        e.write(target, e.read(source, kind), kind)

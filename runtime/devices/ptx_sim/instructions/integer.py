"""Integer arithmetic (PTX ISA, section 9.7.1) and the opcodes that integers share with floats."""

from __future__ import annotations

from ..emitter import Emitter, instruction
from ..parser import Instruction
from ..types import TYPES
from . import floating

_U32 = TYPES["u32"]


def _is_integer(e: Emitter) -> bool:
    return e.type_of().kind in "bus" and not e.type_of().name.endswith("x2")


@instruction("add", "sub")
def _add(e: Emitter, i: Instruction) -> None:
    if not _is_integer(e):
        return floating.arithmetic(e, i)
    kind = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:])
    if "cc" in i.modifiers:
        raise e.error("carry chains are not supported")
    if "sat" in i.modifiers:
        return e.write(i.operands[0], f"integers.{i.opcode}_sat({a}, {b})", kind)
    return e.write(i.operands[0], f"({a}{'+' if i.opcode == 'add' else '-'}{b})", kind)


@instruction("mul", "mad")
def _multiply(e: Emitter, i: Instruction) -> None:
    if not _is_integer(e):
        return floating.arithmetic(e, i)
    kind = result = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:3])
    if "wide" in i.modifiers:
        result = TYPES[f"{kind.kind}{kind.bits * 2}"]
        product = f"({a}.astype({result.numpy})*{b}.astype({result.numpy}))"
    elif "hi" in i.modifiers:
        product = f"integers.mul_hi({a}, {b})"
    elif "lo" in i.modifiers:
        product = f"({a}*{b})"
    else:
        raise e.error("an integer product needs .lo, .hi or .wide")
    if i.opcode == "mad":
        product = f"({product}+{e.read(i.operands[3], result)})"
    return e.write(i.operands[0], product, result)


@instruction("div", "rem")
def _divide(e: Emitter, i: Instruction) -> None:
    if not _is_integer(e):
        return floating.arithmetic(e, i)
    kind = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:])
    return e.write(i.operands[0], f"integers.{'divide' if i.opcode == 'div' else 'remainder'}({a}, {b})", kind)


@instruction("min", "max")
def _extremum(e: Emitter, i: Instruction) -> None:
    if not _is_integer(e):
        return floating.arithmetic(e, i)
    kind = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:])
    return e.write(i.operands[0], f"np.{i.opcode}imum({a}, {b})", kind)


@instruction("abs", "neg")
def _sign(e: Emitter, i: Instruction) -> None:
    if not _is_integer(e):
        return floating.arithmetic(e, i)
    kind = e.type_of()
    a = e.read(i.operands[1], kind)
    return e.write(i.operands[0], f"np.abs({a})" if i.opcode == "abs" else f"(~{a}+{kind.numpy}(1))", kind)


_COUNTS = {
    "popc": "integers.population({})",
    "clz": "integers.leading_zeros({})",
    "bfind": "integers.find_leading({}, False)",
}


@instruction(*_COUNTS)
def _count(e: Emitter, i: Instruction) -> None:
    source = "integers.find_leading({}, True)" if "shiftamt" in i.modifiers else _COUNTS[i.opcode]
    e.write(i.operands[0], source.format(e.read(i.operands[1], e.type_of())), _U32)


@instruction("brev")
def _reverse(e: Emitter, i: Instruction) -> None:
    e.write(i.operands[0], f"integers.reverse({e.read(i.operands[1], e.type_of())})", e.type_of())


@instruction("bfe")
def _extract(e: Emitter, i: Instruction) -> None:
    position, length = (e.read(operand, _U32) for operand in i.operands[2:])
    e.write(i.operands[0], f"integers.extract({e.read(i.operands[1], e.type_of())}, {position}, {length})", e.type_of())


@instruction("bfi")
def _insert(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    a, b = (e.read(operand, kind) for operand in i.operands[1:3])
    position, length = (e.read(operand, _U32) for operand in i.operands[3:])
    e.write(i.operands[0], f"integers.insert({a}, {b}, {position}, {length})", kind)

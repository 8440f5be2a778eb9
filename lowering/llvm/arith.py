"""Emission of `arith` and `math`: scalars and vectors alike, one op to one instruction where LLVM has it.

No fast-math flag is ever set: what may be contracted was contracted in the IR.  Integer division and shifts are defined
for every operand, as the dialect says, so they are guarded here.
"""

from __future__ import annotations

from typing import Any

from ...ir.attributes import DenseAttr, IntegerAttr
from ...ir.dialects.arith.base import bit_width
from ...ir.dialects.arith.comparison import FLOAT_RELATIONS
from ...ir.types import (
    BF16,
    F16,
    F32,
    F64,
    I1,
    I16,
    I32,
    IndexType,
    IntegerType,
    Type,
    element_type,
)
from .function import Function, emits
from .types import literal, llvm_type, mangled, splat, with_scalar

BINARY = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.divf": "fdiv",
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
}
INTRINSIC = {
    "arith.maximumf": "llvm.maximum",
    "arith.minimumf": "llvm.minimum",
    "arith.maxsi": "llvm.smax",
    "arith.minsi": "llvm.smin",
    "arith.maxui": "llvm.umax",
    "arith.minui": "llvm.umin",
    "math.sqrt": "llvm.sqrt",
    "math.fma": "llvm.fma",
    "math.roundeven": "llvm.roundeven",
    "math.floor": "llvm.floor",
    "math.ceil": "llvm.ceil",
    "math.trunc": "llvm.trunc",
    "math.absf": "llvm.fabs",
    "math.copysign": "llvm.copysign",
}
CONVERT = {
    "arith.extsi": "sext",
    "arith.extui": "zext",
    "arith.trunci": "trunc",
    "arith.sitofp": "sitofp",
    "arith.uitofp": "uitofp",
}


@emits("arith.constant")
def _constant(f: Function, op: Any) -> None:
    f.bind(op.result, literal(op.properties["value"]))


@emits(*BINARY)
def _binary(f: Function, op: Any) -> None:
    a, b = op.operands
    if isinstance(a.type, IndexType):
        x, y = f.index(a), f.index(b)
        if op.name == "arith.addi":
            f.bind(op.result, str(f.add(x, y)))
            return
        if op.name == "arith.muli":
            f.bind(op.result, str(f.multiply(x, y)))
            return
        if op.name == "arith.subi" and isinstance(x, int) and isinstance(y, int):
            f.bind(op.result, str(x - y))
            return
    x, type = computed(f, a)
    y, _ = computed(f, b)
    bind_computed(f, op.result, f.value(f"{BINARY[op.name]} {llvm_type(type)} {x}, {y}"), type)


@emits(*INTRINSIC)
def _intrinsic(f: Function, op: Any) -> None:
    operands = [computed(f, v) for v in op.operands]
    type = operands[0][1]
    arguments = [(llvm_type(t), x) for x, t in operands]
    bind_computed(f, op.result, f.call(f"{INTRINSIC[op.name]}.{mangled(type)}", llvm_type(type), arguments), type)


def computed(f: Function, value: Any) -> tuple[str, Type]:
    """An operand of arithmetic and its type: bf16, which has none of its own, as f32.

    One sum, product, quotient or root of bf16 in f32, rounded again, is that rounded once (Figueroa, "When is double
    rounding innocuous?", 1995)."""
    type = value.type
    if element_type(type) is BF16:
        return from_bf16(f, f.of(value), type), with_scalar(type, F32)
    return f.of(value), type


def bind_computed(f: Function, result: Any, value: str, type: Type) -> None:
    """Bind a result that was computed in `type`."""
    f.bind(result, to_bf16(f, value, type) if element_type(result.type) is BF16 else value)


@emits("arith.maxnumf", "arith.minnumf")
def _number_extremum(f: Function, op: Any) -> None:
    (a, type), (b, _) = (computed(f, v) for v in op.operands)
    bind_computed(f, op.result, number_extremum(f, "maximum" if "max" in op.name else "minimum", type, a, b), type)


def number_extremum(f: Function, which: str, type: Type, a: str, b: str) -> str:
    """The greater or lesser operand, the other one where one is NaN: LLVM's own maxnum does not order the zeros."""
    text, flags = llvm_type(type), llvm_type(with_scalar(type, I1))
    numbers: list[str] = []
    for x, other in ((a, b), (b, a)):
        is_nan = f.value(f"fcmp uno {text} {x}, {x}")
        numbers.append(f.value(f"select {flags} {is_nan}, {text} {other}, {text} {x}"))
    return f.call(f"llvm.{which}.{mangled(type)}", text, [(text, x) for x in numbers])


@emits("math.absi")
def _absi(f: Function, op: Any) -> None:
    text = llvm_type(op.result.type)
    arguments = [(text, f.of(op.operand)), ("i1", "false")]
    f.bind(op.result, f.call(f"llvm.abs.{mangled(op.result.type)}", text, arguments))


@emits("arith.negf")
def _negf(f: Function, op: Any) -> None:
    x, type = computed(f, op.operand)
    bind_computed(f, op.result, f.value(f"fneg {llvm_type(type)} {x}"), type)


@emits("arith.cmpf")
def _cmpf(f: Function, op: Any) -> None:
    predicate = op.predicate
    assert predicate in FLOAT_RELATIONS
    if predicate in ("false", "true"):
        f.bind(op.result, splat(predicate, op.result.type))
        return
    x, type = computed(f, op.lhs)
    y, _ = computed(f, op.rhs)
    f.bind(op.result, f.value(f"fcmp {predicate} {llvm_type(type)} {x}, {y}"))


@emits("arith.cmpi")
def _cmpi(f: Function, op: Any) -> None:
    f.bind(op.result, f.value(f"icmp {op.predicate} {f.typed(op.lhs)}, {f.of(op.rhs)}"))


@emits("arith.select")
def _select(f: Function, op: Any) -> None:
    f.bind(op.result, f.value(f"select {f.typed(op.condition)}, {f.typed(op.true_value)}, {f.typed(op.false_value)}"))


# Division and shifts.


@emits("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")
def _division(f: Function, op: Any) -> None:
    """By 0 the quotient is 0 and the remainder the dividend's; the least integer by -1 wraps: neither may trap."""
    name = op.name.removeprefix("arith.")
    type = op.result.type
    text = llvm_type(type)
    a, b = f.of(op.lhs), f.of(op.rhs)
    constant = b if b.lstrip("-").isdigit() else None
    if constant in (None, "0", "-1"):
        flags = llvm_type(with_scalar(type, I1))
        zero, one, minus = splat("0", type), splat("1", type), splat("-1", type)
        by_zero = f.value(f"icmp eq {text} {b}, {zero}")
        safe = f.value(f"select {flags} {by_zero}, {text} {one}, {text} {b}")
        if name in ("divui", "remui"):
            quotient = f.value(f"udiv {text} {a}, {safe}")
        else:
            negates = f.value(f"icmp eq {text} {safe}, {minus}")
            divisor = f.value(f"select {flags} {negates}, {text} {one}, {text} {safe}")
            plain = f.value(f"sdiv {text} {a}, {divisor}")
            negative = f.value(f"sub {text} {zero}, {a}")
            quotient = f.value(f"select {flags} {negates}, {text} {negative}, {text} {plain}")
        quotient = f.value(f"select {flags} {by_zero}, {text} {zero}, {text} {quotient}")
    else:
        quotient = f.value(f"{'udiv' if name in ('divui', 'remui') else 'sdiv'} {text} {a}, {b}")
    if name in ("divsi", "divui"):
        f.bind(op.result, quotient)
        return
    product = f.value(f"mul {text} {quotient}, {b}")
    remainder = f.value(f"sub {text} {a}, {product}")
    if name in ("remsi", "remui"):
        f.bind(op.result, remainder)
        return
    # floor (ceil): one less (more) where the remainder is not 0 and its sign differs from (equals) the divisor's.
    flags = llvm_type(with_scalar(type, I1))
    inexact = f.value(f"icmp ne {text} {remainder}, {splat('0', type)}")
    signs = f.value(f"xor {text} {remainder}, {b}")
    differ = f.value(f"icmp {'slt' if name == 'floordivsi' else 'sge'} {text} {signs}, {splat('0', type)}")
    adjust = f.value(f"and {flags} {inexact}, {differ}")
    divided = f.value(f"icmp ne {text} {b}, {splat('0', type)}")
    adjust = f.value(f"and {flags} {adjust}, {divided}")
    step = f.value(f"zext {flags} {adjust} to {text}")
    f.bind(op.result, f.value(f"{'sub' if name == 'floordivsi' else 'add'} {text} {quotient}, {step}"))


@emits("arith.shli", "arith.shrsi", "arith.shrui")
def _shift(f: Function, op: Any) -> None:
    """A distance of the width or more shifts everything out; a signed right shift leaves the sign."""
    type = op.result.type
    element = element_type(type)
    width = element.width if isinstance(element, IntegerType) else 64
    text, a, b = llvm_type(type), f.of(op.lhs), f.of(op.rhs)
    instruction = {"arith.shli": "shl", "arith.shrsi": "ashr", "arith.shrui": "lshr"}[op.name]
    if _known_below(op.rhs, width):
        f.bind(op.result, f.value(f"{instruction} {text} {a}, {b}"))
        return
    flags = llvm_type(with_scalar(type, I1))
    far = f.value(f"icmp uge {text} {b}, {splat(str(width), type)}")
    last = splat(str(width - 1), type)
    if op.name == "arith.shrsi":
        near = f.value(f"select {flags} {far}, {text} {last}, {text} {b}")
        f.bind(op.result, f.value(f"ashr {text} {a}, {near}"))
        return
    near = f.value(f"select {flags} {far}, {text} {splat('0', type)}, {text} {b}")
    shifted = f.value(f"{instruction} {text} {a}, {near}")
    f.bind(op.result, f.value(f"select {flags} {far}, {text} {splat('0', type)}, {text} {shifted}"))


def _known_below(value: Any, width: int) -> bool:
    """Whether a shift distance is a constant below the width."""
    definer = value.defining_op
    attribute = definer.properties.get("value") if definer is not None and definer.name == "arith.constant" else None
    match attribute:
        case IntegerAttr():
            return 0 <= attribute.value < width
        case DenseAttr():
            return all(0 <= s < width for s in attribute.bits())
        case _:
            return False


# Conversions.


@emits(*CONVERT)
def _convert(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    if element_type(target) is BF16:
        f.bind(op.result, _integer_to_bf16(f, CONVERT[op.name], f.of(source), source.type))
        return
    f.bind(op.result, f.value(f"{CONVERT[op.name]} {f.typed(source)} to {llvm_type(target)}"))


def _integer_to_bf16(f: Function, conversion: str, value: str, type: Type) -> str:
    """By way of a float that holds the integer: one of 32 or 64 bits is first rounded to odd at the float's precision,
    so that the rounding to 8 bits is the only one that counts."""
    bits = bit_width(type)
    wide = with_scalar(type, F64 if bits == 64 else F32)
    text, flags = llvm_type(type), llvm_type(with_scalar(type, I1))
    if bits >= 32:
        drop = 11 if bits == 64 else 8
        exact = 1 << (bits - drop)
        rest = f.value(f"and {text} {value}, {splat(str((1 << drop) - 1), type)}")
        inexact = f.value(f"icmp ne {text} {rest}, {splat('0', type)}")
        sticky = f.value(f"select {flags} {inexact}, {text} {splat(str(1 << drop), type)}, {text} {splat('0', type)}")
        kept = f.value(f"and {text} {value}, {splat(str(-(1 << drop)), type)}")
        odd = f.value(f"or {text} {kept}, {sticky}")
        measure, limit = value, exact
        if conversion == "sitofp":
            measure, limit = f.value(f"add {text} {value}, {splat(str(exact), type)}"), 2 * exact
        large = f.value(f"icmp ugt {text} {measure}, {splat(str(limit), type)}")
        value = f.value(f"select {flags} {large}, {text} {odd}, {text} {value}")
    exactly = f.value(f"{conversion} {text} {value} to {llvm_type(wide)}")
    if bits == 64:
        exactly = to_odd_single(f, exactly, wide)
    return to_bf16(f, exactly, with_scalar(type, F32))


@emits("arith.fptosi", "arith.fptoui")
def _to_integer(f: Function, op: Any) -> None:
    """Out of range saturates and NaN gives 0."""
    source, target = op.operands[0], op.result.type
    value, type = f.of(source), source.type
    if element_type(type) is BF16:
        value, type = from_bf16(f, value, type), with_scalar(type, F32)
    kind = "llvm.fptosi.sat" if op.name == "arith.fptosi" else "llvm.fptoui.sat"
    result = llvm_type(target)
    f.bind(op.result, f.call(f"{kind}.{mangled(target)}.{mangled(type)}", result, [(llvm_type(type), value)]))


@emits("arith.extf")
def _extend(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    value, type = f.of(source), source.type
    if element_type(type) is BF16:
        value, type = from_bf16(f, value, type), with_scalar(type, F32)
        if type is target:
            f.bind(op.result, value)
            return
    f.bind(op.result, f.value(f"fpext {llvm_type(type)} {value} to {llvm_type(target)}"))


@emits("arith.truncf")
def _truncate(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    value, type = f.of(source), source.type
    narrow = element_type(target)
    if narrow in (F16, BF16) and element_type(type) is F64:
        value, type = to_odd_single(f, value, type), with_scalar(type, F32)
    if narrow is BF16:
        if element_type(type) is F16:
            value, type = (
                f.value(f"fpext {llvm_type(type)} {value} to {llvm_type(with_scalar(type, F32))}"),
                with_scalar(type, F32),
            )
        f.bind(op.result, to_bf16(f, value, type))
        return
    f.bind(op.result, f.value(f"fptrunc {llvm_type(type)} {value} to {llvm_type(target)}"))


def from_bf16(f: Function, value: str, type: Type) -> str:
    """bf16 bits as f32: the upper half of its bits."""
    wide = llvm_type(with_scalar(type, I32))
    bits = f.value(f"zext {llvm_type(type)} {value} to {wide}")
    shifted = f.value(f"shl {wide} {bits}, {splat('16', with_scalar(type, I32))}")
    return f.value(f"bitcast {wide} {shifted} to {llvm_type(with_scalar(type, F32))}")


def to_bf16(f: Function, value: str, type: Type) -> str:
    """f32 as bf16 bits, to nearest even; a NaN stays one, made quiet."""
    integers = with_scalar(type, I32)
    wide, flags = llvm_type(integers), llvm_type(with_scalar(type, I1))
    bits = f.value(f"bitcast {llvm_type(type)} {value} to {wide}")
    upper = f.value(f"lshr {wide} {bits}, {splat('16', integers)}")
    odd = f.value(f"and {wide} {upper}, {splat('1', integers)}")
    bias = f.value(f"add {wide} {odd}, {splat('32767', integers)}")
    rounded = f.value(f"add {wide} {bits}, {bias}")
    kept = f.value(f"lshr {wide} {rounded}, {splat('16', integers)}")
    quiet = f.value(f"or {wide} {upper}, {splat('64', integers)}")
    is_nan = f.value(f"fcmp uno {llvm_type(type)} {value}, {value}")
    chosen = f.value(f"select {flags} {is_nan}, {wide} {quiet}, {wide} {kept}")
    return f.value(f"trunc {wide} {chosen} to {llvm_type(with_scalar(type, I16))}")


def to_odd_single(f: Function, value: str, type: Type) -> str:
    """f64 as f32 rounded to odd, so that a second rounding, to 16 bits, is the only one that counts (Boldo, Melquiond,
    "Emulation of FMA and correctly rounded sums", IEEE Trans. Comput. 57(4), 2008)."""
    single, integers = with_scalar(type, F32), with_scalar(type, I32)
    narrow, wide, ints = llvm_type(single), llvm_type(type), llvm_type(integers)
    flags = llvm_type(with_scalar(type, I1))
    nearest = f.value(f"fptrunc {wide} {value} to {narrow}")
    back = f.value(f"fpext {narrow} {nearest} to {wide}")
    magnitude = f.call(f"llvm.fabs.{mangled(type)}", wide, [(wide, value)])
    rounded = f.call(f"llvm.fabs.{mangled(type)}", wide, [(wide, back)])
    above = f.value(f"fcmp ogt {wide} {rounded}, {magnitude}")
    inexact = f.value(f"fcmp one {wide} {rounded}, {magnitude}")
    bits = f.value(f"bitcast {narrow} {nearest} to {ints}")
    step = f.value(f"zext {flags} {above} to {ints}")
    toward_zero = f.value(f"sub {ints} {bits}, {step}")
    sticky = f.value(f"zext {flags} {inexact} to {ints}")
    odd = f.value(f"or {ints} {toward_zero}, {sticky}")
    return f.value(f"bitcast {ints} {odd} to {narrow}")


@emits("arith.bitcast")
def _bitcast(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    if llvm_type(source.type) == llvm_type(target):
        f.bind(op.result, f.of(source))
        return
    f.bind(op.result, f.value(f"bitcast {f.typed(source)} to {llvm_type(target)}"))


@emits("arith.index_cast", "arith.index_castui")
def _index_cast(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    a, b = bit_width(source.type), bit_width(target)
    if a == b:
        f.bind(op.result, f.of(source))
        return
    instruction = "trunc" if b < a else "zext" if op.name == "arith.index_castui" else "sext"
    f.bind(op.result, f.value(f"{instruction} {f.typed(source)} to {llvm_type(target)}"))

"""Emission of `arith`: an instruction an op where PTX has it.

Every rounding is spelled out, nothing is contracted.  Division, shifts and conversions are guarded where PTX leaves
them open.  Integers of fewer than 32 bits are computed in 32 and cut.  Floats of 16 bits are computed in f32 and
rounded, which for one operation gives what 16 bits would.
"""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import LoweringError
from ...ir.types import BF16, F16, F32, F64, FloatType, IndexType, Type, bit_width
from ...ir.values import Value
from .function import Function, emits
from .registers import immediate, is_immediate, is_narrow_float, register_class

FLOAT = {"arith.addf": "add.rn", "arith.subf": "sub.rn", "arith.mulf": "mul.rn", "arith.divf": "div.rn"}
INTEGER = {
    "arith.addi": "add.s",
    "arith.subi": "sub.s",
    "arith.muli": "mul.lo.s",
    "arith.andi": "and.b",
    "arith.ori": "or.b",
    "arith.xori": "xor.b",
}
ON_PREDICATES = {
    "arith.addi": "xor", "arith.subi": "xor", "arith.muli": "and", "arith.andi": "and", "arith.ori": "or",
    "arith.xori": "xor",
}  # fmt: skip
RELATIONS = {
    "oeq": "eq", "ogt": "gt", "oge": "ge", "olt": "lt", "ole": "le", "one": "ne", "ord": "num", "ueq": "equ",
    "ugt": "gtu", "uge": "geu", "ult": "ltu", "ule": "leu", "une": "neu", "uno": "nan",
}  # fmt: skip


# Views of values.


def signed(f: Function, value: Value) -> str:
    """An integer with the bits above its type filled with its sign."""
    bits = bit_width(value.type)
    text = f.of(value)
    if bits == 1:
        return f.value("b32", "selp.b32", "-1", "0", f.held(value))
    if bits in (8, 16):
        if is_immediate(text):
            number = int(text)
            return str(number - (1 << bits) if number >> (bits - 1) else number)
        up = f.value("b32", "shl.b32", text, str(32 - bits))
        return f.value("b32", "shr.s32", up, str(32 - bits))
    return text


def unsigned(f: Function, value: Value) -> str:
    """An integer with the bits above its type zero."""
    return f.value("b32", "selp.b32", "1", "0", f.held(value)) if bit_width(value.type) == 1 else f.of(value)


def cut(f: Function, text: str, type: Type) -> str:
    """A 32-bit result with the bits above the type cleared."""
    bits = bit_width(type)
    return f.value("b32", "and.b32", text, str((1 << bits) - 1)) if bits in (8, 16) else text


def as_single(f: Function, value: Value) -> str:
    """A 16-bit float as f32."""
    return single(f, f.held(value), value.type)


def single(f: Function, half: str, type: Type) -> str:
    """The register of a 16-bit float as f32."""
    if type is F16:
        return f.value("f32", "cvt.f32.f16", half)
    bits = f.value("b32", "cvt.u32.u16", half)
    return f.value("f32", "mov.b32", f.value("b32", "shl.b32", bits, "16"))


def from_single(f: Function, value: str, type: Type) -> str:
    """An f32 rounded to 16 bits."""
    return f.value("b16", "cvt.rn.f16.f32" if type is F16 else "cvt.rn.bf16.f32", value)


def odd_single(f: Function, value: str) -> str:
    """f64 as f32 rounded to odd, so that a second rounding, to 16 bits, is the only one that counts (Boldo, Melquiond,
    "Emulation of FMA and correctly rounded sums", IEEE Trans. Comput. 57(4), 2008)."""
    near = f.value("f32", "cvt.rz.f32.f64", value)
    back = f.value("f64", "cvt.f64.f32", near)
    inexact = f.value("pred", "setp.neu.f64", back, value)
    sticky = f.value("b32", "selp.b32", "1", "0", inexact)
    bits = f.value("b32", "mov.b32", near)
    return f.value("f32", "mov.b32", f.value("b32", "or.b32", bits, sticky))


# Arithmetic.


@emits("arith.constant")
def _constant(f: Function, op: Any) -> None:
    f.bind(op.result, immediate(op.properties["value"]))


@emits(*FLOAT)
def _float(f: Function, op: Any) -> None:
    type = op.result.type
    if is_narrow_float(type):
        result = f.value("f32", f"{FLOAT[op.name]}.f32", *(as_single(f, v) for v in op.operands))
        f.bind(op.result, from_single(f, result, type))
    else:
        f.set(op.result, f"{FLOAT[op.name]}.{register_class(type)}", *f.operands(op))


@emits("arith.negf")
def _negf(f: Function, op: Any) -> None:
    type = op.result.type
    if is_narrow_float(type):
        f.set(op.result, "xor.b16", f.held(op.operand), "0x8000")
    else:
        f.set(op.result, f"neg.{register_class(type)}", f.held(op.operand))


@emits(*INTEGER)
def _integer(f: Function, op: Any) -> None:
    type = op.result.type
    kind = register_class(type)
    if isinstance(type, IndexType):
        x, y = (f.index(v) for v in op.operands)
        found = f.add(x, y) if op.name == "arith.addi" else f.multiply(x, y) if op.name == "arith.muli" else None
        if found is not None:
            f.bind(op.result, str(found))
            return
    if kind == "pred":
        f.set(op.result, f"{ON_PREDICATES[op.name]}.pred", *(f.held(v) for v in op.operands))
        return
    result = f.value(kind, f"{INTEGER[op.name]}{kind[1:]}", *f.operands(op))
    f.bind(op.result, result if INTEGER[op.name].endswith("b") else cut(f, result, type))


@emits("arith.cmpf")
def _cmpf(f: Function, op: Any) -> None:
    type = op.lhs.type
    if op.predicate in ("true", "false"):
        f.bind(op.result, "1" if op.predicate == "true" else "0")
    elif is_narrow_float(type):
        f.set(op.result, f"setp.{RELATIONS[op.predicate]}.f32", *(as_single(f, v) for v in op.operands))
    else:
        f.set(op.result, f"setp.{RELATIONS[op.predicate]}.{register_class(type)}", *f.operands(op))


@emits("arith.cmpi")
def _cmpi(f: Function, op: Any) -> None:
    predicate = op.predicate
    is_signed = predicate[0] == "s"
    order = predicate[-2:]
    bits = "64" if register_class(op.lhs.type) == "b64" else "32"
    a, b = (signed(f, v) if is_signed else unsigned(f, v) for v in op.operands)
    if is_immediate(a) and is_immediate(b):
        a = f.value(f"b{bits}", f"mov.b{bits}", a)
    kind = "b" if order in ("eq", "ne") else "s" if is_signed else "u"
    f.set(op.result, f"setp.{order}.{kind}{bits}", a, b)


@emits("arith.select")
def _select(f: Function, op: Any) -> None:
    kind = register_class(op.result.type)
    condition = f.held(op.condition)
    if kind == "pred":
        taken = f.value("pred", "and.pred", condition, f.held(op.true_value))
        other = f.value("pred", "not.pred", condition)
        left = f.value("pred", "and.pred", other, f.held(op.false_value))
        f.set(op.result, "or.pred", taken, left)
    else:
        f.set(op.result, f"selp.{kind}", f.of(op.true_value), f.of(op.false_value), condition)


# Extremes.


@emits("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
def _extremum(f: Function, op: Any) -> None:
    """PTX orders -0.0 below +0.0 and prefers numbers to NaN; f64 has no variant that keeps NaN."""
    type = op.result.type
    which = op.name[len("arith.") : len("arith.") + 3]
    keeps = not op.name.endswith("numf")
    if type is F64:
        a, b = f.operands(op)
        found = f.value("f64", f"{which}.f64", a, b)
        if keeps:
            unordered = f.value("pred", "setp.nan.f64", a, b)
            found = f.value("f64", "selp.f64", f.value("f64", "add.rn.f64", a, b), found, unordered)
        f.bind(op.result, found)
        return
    instruction = f"{which}.NaN.f32" if keeps else f"{which}.f32"
    if is_narrow_float(type):
        f.bind(op.result, from_single(f, f.value("f32", instruction, *(as_single(f, v) for v in op.operands)), type))
    else:
        f.set(op.result, instruction, *f.operands(op))


@emits("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
def _integer_extremum(f: Function, op: Any) -> None:
    type = op.result.type
    kind = register_class(type)
    which = op.name[len("arith.") : len("arith.") + 3]
    is_signed = op.name.endswith("si")
    if kind == "pred":
        joins = (which == "max") != is_signed
        f.set(op.result, f"{'or' if joins else 'and'}.pred", *(f.held(v) for v in op.operands))
        return
    a, b = (signed(f, v) if is_signed else f.of(v) for v in op.operands)
    if is_immediate(a):
        a, b = b, a
    a = f.in_register(a, type)
    result = f.value(kind, f"{which}.{'s' if is_signed else 'u'}{kind[1:]}", a, b)
    f.bind(op.result, cut(f, result, type) if is_signed else result)


# Division and shifts.


@emits("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")
def _division(f: Function, op: Any) -> None:
    """By 0 the quotient is 0 and the remainder the dividend's; the least integer by -1 wraps."""
    name = op.name.removeprefix("arith.")
    type = op.result.type
    kind = register_class(type)
    is_signed = not name.endswith("ui")
    letter = f"{'s' if is_signed else 'u'}{kind[1:]}"
    view = signed if is_signed else unsigned
    a = f.in_register(view(f, op.lhs), type)
    b = view(f, op.rhs)
    if kind == "pred":
        raise_unsupported(op)
    positive = is_immediate(b) and int(b) > 0
    if positive and name in ("divui", "remui", "divsi", "remsi"):
        result = f.value(kind, f"{name[:3]}.{letter}", a, b)
        f.bind(op.result, cut(f, result, type) if is_signed else result)
        return
    b = f.in_register(b, type)
    by_zero = f.value("pred", f"setp.eq.b{kind[1:]}", b, "0")
    divisor = f.value(kind, f"selp.{kind}", "1", b, by_zero)
    if is_signed:
        negates = f.value("pred", f"setp.eq.b{kind[1:]}", divisor, "-1")
        safe = f.value(kind, f"selp.{kind}", "1", divisor, negates)
        plain = f.value(kind, f"div.{letter}", a, safe)
        quotient = f.value(kind, f"selp.{kind}", f.value(kind, f"neg.{letter}", a), plain, negates)
    else:
        quotient = f.value(kind, f"div.{letter}", a, divisor)
    quotient = f.value(kind, f"selp.{kind}", "0", quotient, by_zero)
    if name in ("divsi", "divui"):
        f.bind(op.result, cut(f, quotient, type))
        return
    product = f.value(kind, f"mul.lo.s{kind[1:]}", quotient, b)
    rest = f.value(kind, f"sub.s{kind[1:]}", a, product)
    if name in ("remsi", "remui"):
        f.bind(op.result, cut(f, rest, type))
        return
    # floor (ceil): one less (more) where the remainder is not 0 and its sign differs from (equals) the divisor's.
    signs = f.value(kind, f"xor.{kind}", rest, b)
    differs = f.value("pred", f"setp.{'lt' if name == 'floordivsi' else 'ge'}.{letter}", signs, "0")
    inexact = f.value("pred", f"setp.ne.b{kind[1:]}", rest, "0")
    adjusts = f.value("pred", "and.pred", differs, inexact)
    divided = f.value("pred", "not.pred", by_zero)
    adjusts = f.value("pred", "and.pred", adjusts, divided)
    step = f.value(kind, f"selp.{kind}", "-1" if name == "floordivsi" else "1", "0", adjusts)
    f.bind(op.result, cut(f, f.value(kind, f"add.s{kind[1:]}", quotient, step), type))


def raise_unsupported(op: Any) -> None:
    """LoweringError: no meaning on bools."""
    raise LoweringError(f"the ptx target has no '{op.name}' on {op.result.type}", op.location)


@emits("arith.shli", "arith.shrsi", "arith.shrui")
def _shift(f: Function, op: Any) -> None:
    """PTX shifts everything out at distances of the register's width or more, as the op does at those of the type's;
    a distance is 32 bits wide."""
    type = op.result.type
    kind = register_class(type)
    if kind == "pred":
        raise_unsupported(op)
    bits = bit_width(type)
    a = f.in_register(signed(f, op.lhs) if op.name == "arith.shrsi" else f.of(op.lhs), type)
    distance = f.of(op.rhs)
    if is_immediate(distance):
        distance = str(min(int(distance) % (1 << bits), 64))
    elif kind == "b64":
        # A distance beyond 32 bits must not wrap to a near one.
        distance = f.value("b32", "cvt.u32.u64", f.value("b64", "min.u64", distance, "64"))
    instruction = {"arith.shli": "shl.b", "arith.shrsi": "shr.s", "arith.shrui": "shr.u"}[op.name]
    f.bind(op.result, cut(f, f.value(kind, f"{instruction}{kind[1:]}", a, distance), type))


# Conversions.


@emits("arith.extui", "arith.extsi")
def _extend(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    is_signed = op.name == "arith.extsi"
    text = signed(f, source) if is_signed else unsigned(f, source)
    if register_class(target) == "b64":
        letter = "s" if is_signed else "u"
        f.set(op.result, f"cvt.{letter}64.{letter}32", f.value("b32", "mov.b32", text) if is_immediate(text) else text)
    else:
        f.bind(op.result, cut(f, text, target) if is_signed else text)


@emits("arith.trunci")
def _truncate(f: Function, op: Any) -> None:
    f.bind(op.result, low_bits(f, op.operands[0], op.result.type))


def low_bits(f: Function, source: Value, target: Type) -> str:
    """An integer or index cut to a narrower integer."""
    text = f.held(source)
    if register_class(source.type) == "b64":
        text = str(f.low(source)) if isinstance(source.type, IndexType) else f.value("b32", "cvt.u32.u64", text)
    if bit_width(target) == 1:
        return f.value("pred", "setp.ne.b32", f.value("b32", "and.b32", text, "1"), "0")
    return cut(f, text, target)


@emits("arith.index_cast", "arith.index_castui")
def _index_cast(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    if register_class(source.type) == register_class(target):
        f.bind(op.result, f.of(source))
    elif isinstance(target, IndexType):
        is_signed = op.name == "arith.index_cast"
        text = f.in_register(signed(f, source) if is_signed else unsigned(f, source), source.type)
        if not is_signed:
            f.narrow[op.result] = text
        letter = "s" if is_signed else "u"
        f.set(op.result, f"cvt.{letter}64.{letter}32", text)
    else:
        f.bind(op.result, low_bits(f, source, target))


@emits("arith.sitofp", "arith.uitofp")
def _from_integer(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    is_signed = op.name == "arith.sitofp"
    bits = "64" if register_class(source.type) == "b64" else "32"
    text = signed(f, source) if is_signed else unsigned(f, source)
    if is_immediate(text):
        text = f.value(f"b{bits}", f"mov.b{bits}", text)
    kind = "s" if is_signed else "u"
    if target is BF16:
        f.bind(op.result, from_single(f, _odd_single_of(f, text, kind, int(bits)), target))
    else:
        f.set(op.result, f"cvt.rn.f{bit_width(target)}.{kind}{bits}", text)


def _odd_single_of(f: Function, text: str, kind: str, bits: int) -> str:
    """An integer as f32, rounded to odd, so that a second rounding, to 16 bits, is the only one that counts."""
    drop = 11 if bits == 64 else 8
    exact = 1 << (bits - drop)  # up to here a float of f64 or f32 holds it
    rest = f.value(f"b{bits}", f"and.b{bits}", text, str((1 << drop) - 1))
    inexact = f.value("pred", f"setp.ne.b{bits}", rest, "0")
    sticky = f.value(f"b{bits}", f"selp.b{bits}", str(1 << drop), "0", inexact)
    odd = f.value(f"b{bits}", f"or.b{bits}", f.value(f"b{bits}", f"and.b{bits}", text, str(-(1 << drop))), sticky)
    measure, limit = text, exact
    if kind == "s":
        measure, limit = f.value(f"b{bits}", f"add.s{bits}", text, str(exact)), 2 * exact
    large = f.value("pred", f"setp.gt.u{bits}", measure, str(limit))
    chosen = f.value(f"b{bits}", f"selp.b{bits}", odd, text, large)
    if bits == 64:
        return odd_single(f, f.value("f64", f"cvt.rn.f64.{kind}64", chosen))
    return f.value("f32", f"cvt.rn.f32.{kind}32", chosen)


@emits("arith.fptosi", "arith.fptoui")
def _to_integer(f: Function, op: Any) -> None:
    """Out of range saturates, as in PTX, and NaN gives 0, which PTX leaves to 64 bits."""
    source, target = op.operands[0], op.result.type
    kind = "f64" if source.type is F64 else "f32"
    value = as_single(f, source) if is_narrow_float(source.type) else f.held(source)
    is_signed = op.name == "arith.fptosi"
    bits = bit_width(target)
    if bits == 1:
        relation, bound = ("le", -1.0) if is_signed else ("ge", 1.0)
        number = {("f32", -1.0): "0fBF800000", ("f32", 1.0): "0f3F800000"}.get(
            (kind, bound), "0dBFF0000000000000" if is_signed else "0d3FF0000000000000"
        )
        f.set(op.result, f"setp.{relation}.{kind}", value, number)
        return
    letter = "s" if is_signed else "u"
    wide = "64" if bits == 64 else "32"
    result = f.value(f"b{wide}", f"cvt.rzi.{letter}{wide}.{kind}", value)
    if bits < 32:
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
        result = f.value("b32", f"min.{letter}32", result, str(high))
        if is_signed:
            result = cut(f, f.value("b32", "max.s32", result, str(low)), target)
    if bits == 64 or kind == "f64":
        unordered = f.value("pred", f"setp.nan.{kind}", value, value)
        result = f.value(f"b{wide}", f"selp.b{wide}", "0", result, unordered)
    f.bind(op.result, result)


@emits("arith.extf")
def _extf(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    if source.type is F32:
        f.set(op.result, "cvt.f64.f32", f.held(source))
        return
    value = as_single(f, source)
    f.bind(op.result, value if target is F32 else f.value("f64", "cvt.f64.f32", value))


@emits("arith.truncf")
def _truncf(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    if is_narrow_float(source.type):
        f.bind(op.result, from_single(f, as_single(f, source), target))
    elif source.type is F32:
        f.bind(op.result, from_single(f, f.held(source), target))
    elif target is F32:
        f.set(op.result, "cvt.rn.f32.f64", f.held(source))
    elif target is F16:
        f.set(op.result, "cvt.rn.f16.f64", f.held(source))
    else:
        f.bind(op.result, from_single(f, odd_single(f, f.held(source)), target))


@emits("arith.bitcast")
def _bitcast(f: Function, op: Any) -> None:
    source, target = op.operands[0], op.result.type
    before, after = register_class(source.type), register_class(target)
    if before == after:
        f.bind(op.result, f.of(source))
    elif {before, after} == {"b16", "b32"}:
        f.set(op.result, "cvt.u32.u16" if isinstance(source.type, FloatType) else "cvt.u16.u32", f.held(source))
    else:
        f.set(op.result, f"mov.b{bit_width(target)}", f.held(source))

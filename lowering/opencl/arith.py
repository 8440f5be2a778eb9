"""Emission of `arith`: an expression an op.

Nothing depends on a device's choices: contraction is off, literals are exact, and division, shifts and conversions are
guarded where C leaves them undefined.
"""

from __future__ import annotations

from typing import Any

from ...ir.types import BF16, F16, F32, F64, FloatType, IndexType, IntegerType, Type, bit_width
from .function import Function, emits
from .types import c_type, is_narrow, literal, signed, unsigned

FLOAT = {"arith.addf": "+", "arith.subf": "-", "arith.mulf": "*", "arith.divf": "/"}
INTEGER = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
}
ON_BOOLS = {"arith.addi": "^", "arith.subi": "^", "arith.muli": "&"}
RELATIONS = {
    "oeq": "{a} == {b}", "ogt": "{a} > {b}", "oge": "{a} >= {b}", "olt": "{a} < {b}", "ole": "{a} <= {b}",
    "one": "{a} < {b} || {a} > {b}", "ord": "{a} == {a} && {b} == {b}", "uno": "{a} != {a} || {b} != {b}",
    "ueq": "!({a} < {b} || {a} > {b})", "ugt": "!({a} <= {b})", "uge": "!({a} < {b})", "ult": "!({a} >= {b})",
    "ule": "!({a} > {b})", "une": "{a} != {b}", "true": "true", "false": "false",
}  # fmt: skip
ORDERS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

ROUND_HALF = """float round_half(const float x) {
  ushort h;
  vstore_half_rte(x, 0, (half*)&h);
  return vload_half(0, (const half*)&h);
}"""
ROUND_BF16 = """float round_bf16(const float x) {
  const uint b = as_uint(x);
  return as_float((x != x ? b | 0x400000u : b + 0x7fffu + ((b >> 16) & 1u)) & 0xffff0000u);
}"""
ODD_SINGLE = """float odd_single(const double x) {
  const float y = (float)x;
  const double d = fabs((double)y);
  const uint b = as_uint(y) - (d > fabs(x) ? 1u : 0u);
  return as_float(d != fabs(x) ? b | 1u : b);
}"""
"""Rounding to odd, so that a second rounding, to 16 bits, is the only one that counts (Boldo, Melquiond, "Emulation of
FMA and correctly rounded sums", IEEE Trans. Comput. 57(4), 2008)."""
PACK_HALF = """ushort pack_half(const float x) {
  ushort h;
  vstore_half_rte(x, 0, (half*)&h);
  const uint b = as_uint(x), m = (b >> 13) & 0x3ffu;
  return x != x ? (ushort)(((b >> 16) & 0x8000u) | 0x7c00u | (m != 0 ? m : 0x200u)) : h;
}"""
UNPACK_HALF = """float unpack_half(const ushort h) {
  const float x = vload_half(0, (const half*)&h);
  const uint b = ((uint)(h & 0x8000u) << 16) | 0x7f800000u | ((uint)(h & 0x3ffu) << 13);
  return (h & 0x7fffu) > 0x7c00u ? as_float(b) : x;
}"""
"""Conversions that keep the bits of NaN, which built-in ones need not."""


ODD_SINGLE_OF_ULONG = """float odd_single_of_ulong(const ulong x) {
  const int drop = x < (1ul << 24) ? 0 : x < (1ul << 39) ? 15 : x < (1ul << 54) ? 30 : 40;
  const ulong rest = x & ((1ul << drop) - 1);
  return (float)((x - rest) | (rest != 0 ? 1ul << drop : 0));
}"""
"""An integer as float, rounded to odd at some bit above the float's last and below bfloat16's half."""

ODD_SINGLE_OF_LONG = """float odd_single_of_long(const long x) {
  return x < 0 ? -odd_single_of_ulong(0ul - (ulong)x) : odd_single_of_ulong((ulong)x);
}"""


def computed(f: Function, type: Type, expression: str, double: bool = False) -> str:
    """A float (or `double`) expression rounded to a type."""
    if not is_narrow(type):
        return expression
    if double:
        expression = f"{f.program.helper('odd_single', ODD_SINGLE)}({expression})"
    name, text = ("round_half", ROUND_HALF) if type is F16 else ("round_bf16", ROUND_BF16)
    return f"{f.program.helper(name, text)}({expression})"


@emits("arith.constant")
def _constant(f: Function, op: Any) -> None:
    f.type_of(op.result.type)
    f.bind(op.result, literal(op.properties["value"]))


@emits(*FLOAT)
def _float(f: Function, op: Any) -> None:
    f.program.floats = True
    a, b = f.operands(op)
    f.set(op.result, computed(f, op.result.type, f"{a} {FLOAT[op.name]} {b}"))


@emits("arith.negf")
def _negf(f: Function, op: Any) -> None:
    f.set(op.result, f"-{f.of(op.operand)}")


@emits(*INTEGER)
def _integer(f: Function, op: Any) -> None:
    type = op.result.type
    a, b = f.operands(op)
    sign = INTEGER[op.name]
    if isinstance(type, IndexType):
        x, y = (f.index(v) for v in op.operands)
        if isinstance(x, int) and isinstance(y, int):
            f.bind(op.result, str({"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}[sign]))
            return
    if bit_width(type) == 1:
        sign = ON_BOOLS.get(op.name, sign)
    elif bit_width(type) < 32:
        # C computes narrow types as int, where products of two unsigned shorts overflow.
        f.set(op.result, f"({c_type(type)})((uint){a} {sign} (uint){b})")
        return
    f.set(op.result, f"{a} {sign} {b}")


@emits("arith.cmpf")
def _cmpf(f: Function, op: Any) -> None:
    f.set(op.result, RELATIONS[op.predicate].format(a=f.of(op.lhs), b=f.of(op.rhs)))


def as_signed(type: Type, text: str) -> str:
    """An integer counted with its sign; a true bool is -1."""
    if isinstance(type, IndexType):
        return text
    return f"-(int){text}" if bit_width(type) == 1 else f"({signed(type)}){text}"


def as_unsigned(type: Type, text: str) -> str:
    """An integer counted without sign."""
    return f"(ulong){text}" if isinstance(type, IndexType) else text


@emits("arith.cmpi")
def _cmpi(f: Function, op: Any) -> None:
    type, predicate = op.lhs.type, op.predicate
    a, b = f.of(op.lhs), f.of(op.rhs)
    if predicate[0] in "su":
        view = as_signed if predicate[0] == "s" else as_unsigned
        a, b = view(type, a), view(type, b)
    f.set(op.result, f"{a} {ORDERS[predicate[-2:]]} {b}")


@emits("arith.select")
def _select(f: Function, op: Any) -> None:
    condition, a, b = f.operands(op)
    f.set(op.result, f"{condition} ? {a} : {b}")


# Extremes.


@emits("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")
def _extremum(f: Function, op: Any) -> None:
    """-0.0 is less than +0.0, which comparisons do not see: the bits of equal values are joined."""
    type = op.result.type
    a, b = f.operands(op)
    double = type is F64
    c, bits, floats = f.type_of(type), "as_ulong" if double else "as_uint", "as_double" if double else "as_float"
    largest = "max" in op.name
    number = op.name.endswith("numf")
    name = f"{op.name.removeprefix('arith.')}_{'f64' if double else 'f32'}"
    above, join = (">", "&") if largest else ("<", "|")
    unordered = "a != a ? b : a" if number else "a + b"
    text = (
        f"{c} {name}(const {c} a, const {c} b) {{\n"
        f"  return a {above} b ? a : b {above} a ? b : a == b ? {floats}({bits}(a) {join} {bits}(b)) : {unordered};\n}}"
    )
    f.set(op.result, f"{f.program.helper(name, text)}({a}, {b})")


@emits("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui")
def _integer_extremum(f: Function, op: Any) -> None:
    type = op.result.type
    a, b = f.operands(op)
    function = op.name[len("arith.") : len("arith.") + 3]
    if bit_width(type) == 1:
        joins = (function == "max") == op.name.endswith("ui")
        f.set(op.result, f"{a} {'|' if joins else '&'} {b}")
        return
    kind = signed(type) if op.name.endswith("si") else unsigned(type)
    view = "" if kind == c_type(type) else f"({kind})"
    f.set(op.result, f"{view}{a} {'>' if function == 'max' else '<'} {view}{b} ? {a} : {b}")


# Division and shifts.


@emits("arith.divsi", "arith.divui", "arith.remsi", "arith.remui", "arith.floordivsi", "arith.ceildivsi")
def _division(f: Function, op: Any) -> None:
    """By 0 the quotient is 0 and the remainder the dividend's; the least integer by -1 wraps."""
    name = op.name.removeprefix("arith.")
    type = op.result.type
    a, b = f.operands(op)
    s, u, c = signed(type), unsigned(type), c_type(type)
    known = _constant_of(op.rhs)
    if known is not None and known > 0 and name in ("divsi", "divui", "remsi", "remui"):
        sign = "/" if name[:3] == "div" else "%"
        kind = u if name.endswith("ui") else s
        plain = f"{a} {sign} {b}" if kind == c else f"({kind}){a} {sign} ({kind}){b}"
        f.set(op.result, plain if kind == c and bit_width(type) >= 32 else f"({c})({plain})")
        return
    helper = f"{name}_{u}"
    if name.endswith("ui"):
        body = "b == 0 ? 0 : a / b" if name == "divui" else "b == 0 ? a : a % b"
        text = f"{u} {helper}(const {u} a, const {u} b) {{\n  return {body};\n}}"
    else:
        rest = f"const {s} r = ({s})({u})(a - q * b);\n"
        body = {
            "divsi": "return q;",
            "remsi": f"return ({u})(a - q * b);",
            "floordivsi": f"{rest}  return r != 0 && (r ^ ({s})b) < 0 && b != 0 ? q - 1 : q;",
            "ceildivsi": f"{rest}  return r != 0 && (r ^ ({s})b) >= 0 && b != 0 ? q + 1 : q;",
        }[name]
        text = (
            f"{u} {helper}(const {u} a, const {u} b) {{\n"
            f"  const {u} q = b == 0 ? 0 : ({s})b == -1 ? ({u})(0 - a) : ({u})(({s})a / ({s})b);\n  {body}\n}}"
        )
    f.set(op.result, f"({c}){f.program.helper(helper, text)}({a}, {b})")


def _constant_of(value: Any) -> int | None:
    definer = value.defining_op
    attribute = definer.properties.get("value") if definer is not None and definer.name == "arith.constant" else None
    found = getattr(attribute, "value", None)
    return found if isinstance(found, int) else None


@emits("arith.shli", "arith.shrsi", "arith.shrui")
def _shift(f: Function, op: Any) -> None:
    """A distance of the width or more shifts everything out; a signed right shift leaves the sign."""
    type = op.result.type
    bits = bit_width(type)
    a, b = f.operands(op)
    c = c_type(type)
    near = _constant_of(op.rhs)
    if op.name == "arith.shrsi":
        value = f"({signed(type)}){a}"
        distance = b
        if near is None or not 0 <= near < bits:
            distance = f"min({as_unsigned(type, b)}, ({unsigned(type)}){bits - 1})"
        f.set(op.result, f"({c})({value} >> {distance})")
        return
    text = f"({c})(({unsigned(type)}){a} {'<<' if op.name == 'arith.shli' else '>>'} {b})"
    if near is None or not 0 <= near < bits:
        text = f"{as_unsigned(type, b)} < {bits} ? {text} : ({c})0"
    f.set(op.result, text)


# Conversions.


@emits("arith.extsi")
def _extsi(f: Function, op: Any) -> None:
    value = as_signed(op.operands[0].type, f.operands(op)[0])
    f.set(op.result, f"({c_type(op.result.type)})({signed(op.result.type)})({value})")


@emits("arith.extui")
def _extui(f: Function, op: Any) -> None:
    f.set(op.result, f"({c_type(op.result.type)}){f.operands(op)[0]}")


@emits("arith.trunci")
def _trunci(f: Function, op: Any) -> None:
    (a,) = f.operands(op)
    type = op.result.type
    f.set(op.result, f"({a} & 1) != 0" if bit_width(type) == 1 else f"({c_type(type)}){a}")


@emits("arith.index_cast", "arith.index_castui")
def _index_cast(f: Function, op: Any) -> None:
    (a,) = f.operands(op)
    source, target = op.operands[0].type, op.result.type
    if isinstance(source, IndexType) == isinstance(target, IndexType):
        f.bind(op.result, a)
    elif isinstance(target, IndexType):
        f.set(op.result, f"(long){a if op.name.endswith('ui') else '(' + as_signed(source, a) + ')'}")
    else:
        f.set(op.result, f"({a} & 1) != 0" if bit_width(target) == 1 else f"({c_type(target)}){a}")


@emits("arith.sitofp", "arith.uitofp")
def _from_integer(f: Function, op: Any) -> None:
    (a,) = f.operands(op)
    source, target = op.operands[0].type, op.result.type
    is_signed = op.name == "arith.sitofp"
    view = as_signed(source, a) if is_signed else as_unsigned(source, a)
    if target is BF16 and bit_width(source) >= 32:
        magnitude = f.program.helper("odd_single_of_ulong", ODD_SINGLE_OF_ULONG)
        f.program.helper("odd_single_of_long", ODD_SINGLE_OF_LONG)
        name = "odd_single_of_long" if is_signed else magnitude
        f.set(op.result, computed(f, target, f"{name}({view})"))
        return
    f.set(op.result, computed(f, target, f"({f.type_of(target)})({view})"))


@emits("arith.fptosi", "arith.fptoui")
def _to_integer(f: Function, op: Any) -> None:
    """Out of range saturates and NaN gives 0."""
    (a,) = f.operands(op)
    source, target = op.operands[0].type, op.result.type
    sign = op.name == "arith.fptosi"
    bits = bit_width(target)
    if bits == 1:
        f.set(op.result, f"{a} {'<= -1' if sign else '>= 1'}")
        return
    c, s, u = c_type(source), signed(target), unsigned(target)
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if sign else (0, 1 << bits)
    point = "" if source is F64 else "f"
    name = f"{s if sign else u}_of_{c}"
    least = f"0x{1 << (bits - 1):x}{'ul' if bits == 64 else 'u'}" if sign else "0"
    most = f"0x{high - 1:x}{'ul' if bits == 64 else 'u'}"
    text = (
        f"{u} {name}(const {c} x) {{\n"
        f"  return x != x ? 0 : x <= {float(low)!r}{point} ? {least} : x >= {float(high)!r}{point} ? {most} "
        f": ({u})({s if sign else u})x;\n}}"
    )
    f.type_of(source)
    f.set(op.result, f"{f.program.helper(name, text)}({a})")


@emits("arith.extf", "arith.truncf")
def _float_cast(f: Function, op: Any) -> None:
    (a,) = f.operands(op)
    source, target = op.operands[0].type, op.result.type
    if is_narrow(target):
        f.type_of(source)
        f.set(op.result, computed(f, target, a, double=source is F64))
    elif c_type(source) == c_type(target):
        f.bind(op.result, a)
    else:
        f.set(op.result, f"({f.type_of(target)}){a}")


@emits("arith.bitcast")
def _bitcast(f: Function, op: Any) -> None:
    (a,) = f.operands(op)
    source, target = op.operands[0].type, op.result.type
    if source is target:
        f.bind(op.result, a)
    elif isinstance(source, FloatType):
        bits = {
            F32: "as_uint({})",
            F64: "as_ulong({})",
            BF16: "(ushort)(as_uint({}) >> 16)",
            F16: f"{f.program.helper('pack_half', PACK_HALF) if source is F16 else ''}({{}})",
        }[source].format(a)
        f.set(op.result, bits)
    else:
        assert isinstance(source, IntegerType)
        floats = {
            F32: "as_float({})",
            F64: "as_double({})",
            BF16: "as_float((uint){} << 16)",
            F16: f"{f.program.helper('unpack_half', UNPACK_HALF) if target is F16 else ''}({{}})",
        }[target].format(a)
        f.set(op.result, floats)

"""Floating-point arithmetic (PTX ISA, sections 9.7.3 to 9.7.5): f16, bf16, f16x2, bf16x2, f32, f64.

Formulas are NumPy on lanes. bfloat16 computes in float32 and rounds once; a packed pair applies the formula to its
halves.
"""

from __future__ import annotations

from ..emitter import Emitter, instruction
from ..parser import Instruction
from ..types import TYPES

_FORMULAS = {
    "add": "{0}+{1}",
    "sub": "{0}-{1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "min": "floats.fmin({0}, {1})",
    "max": "floats.fmax({0}, {1})",
    "abs": "np.abs({0})",
    "neg": "-{0}",
    "sqrt": "np.sqrt({0})",
    "copysign": "np.copysign({1}, {0})",
    **{name: f"floats.APPROXIMATE[{name!r}]({{0}})" for name in ("ex2", "lg2", "rsqrt", "sin", "cos", "tanh")},
}
_FMA = {"f16": "floats.fma16", "bf16": "floats.fma_bf16", "f32": "floats.fma32", "f64": "floats.fma64"}
_EXACT_ON_BITS = {"abs": "({0} & uint16(0x7fff))", "neg": "({0} ^ uint16(0x8000))"}


def _formula(e: Emitter, i: Instruction, element: str) -> str:
    if i.opcode in ("fma", "mad"):
        return _FMA[element] + "({0}, {1}, {2})"
    if i.opcode in ("min", "max") and "NaN" in i.modifiers:
        return f"floats.f{i.opcode}_nan({{0}}, {{1}})"
    if i.opcode == "rcp":
        return f"({TYPES[element].numpy if element != 'bf16' else 'float32'}(1)/{{0}})"
    if "xorsign" in i.modifiers or ("rz" in i.modifiers or "rm" in i.modifiers or "rp" in i.modifiers):
        raise e.error("only rounding to nearest is supported for arithmetic, and no .xorsign")
    return f"({_FORMULAS[i.opcode]})"


@instruction("fma", "sqrt", "rcp", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "copysign")
def arithmetic(e: Emitter, i: Instruction) -> None:
    """Emit a float operation; approximate ones are the exact function rounded once."""
    kind = e.type_of()
    count = len(i.operands) - 1
    if kind.name in ("f16x2", "bf16x2"):
        function = f"lambda a, b=None, c=None: {_on_bits(e, i, kind.name[:-2])}"
        operands = ", ".join(e.read(operand, kind) for operand in i.operands[1:])
        return e.write(i.operands[0], f"floats.pairs({function}, {operands})", kind)
    if kind.kind == "h":
        names = dict(zip("abc", (e.read(operand, kind) for operand in i.operands[1:])))
        function = f"(lambda {', '.join(names)}: {_on_bits(e, i, 'bf16')})({', '.join(names.values())})"
        return e.write(i.operands[0], function, kind)
    if kind.kind != "f":
        raise e.error(f"no float operation on .{kind.name}")
    operands = [e.read(operand, kind) for operand in i.operands[1:]]
    flush = "ftz" in i.modifiers and kind.name == "f32"
    if flush:
        operands = [f"floats.flush({operand})" for operand in operands]
    source = _formula(e, i, kind.name).format(*operands[:count])
    if "sat" in i.modifiers:
        source = f"floats.saturate({source})"
    return e.write(i.operands[0], f"floats.flush({source})" if flush else source, kind)


def _on_bits(e: Emitter, i: Instruction, element: str) -> str:
    """The operation as an expression of a, b, c that are 16-bit patterns."""
    count = len(i.operands) - 1
    if i.opcode in _EXACT_ON_BITS:
        return _EXACT_ON_BITS[i.opcode].format("a")
    if element == "f16":
        source = _formula(e, i, "f16").format(*[f"{name}.view(float16)" for name in "abc"[:count]])
        source = f"floats.saturate({source})" if "sat" in i.modifiers else source
        source = f"np.maximum({source}, float16(0))" if "relu" in i.modifiers else source
        return f"({source}).view(uint16)"
    if i.opcode == "fma":
        result = "floats.fma_bf16(a, b, c)"
    else:
        source = _formula(e, i, "bf16").format(*[f"floats.widen_bf16({name})" for name in "abc"[:count]])
        result = f"floats.round_bf16({source})"
    if "relu" in i.modifiers:
        result = f"floats.unary_bf16(lambda x: np.maximum(x, float32(0)), {result})"
    return result


@instruction("testp")
def _test(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    x = e.read(i.operands[1], kind)
    tiny = f"np.finfo({kind.numpy}).tiny"
    tests = {
        "finite": f"np.isfinite({x})",
        "infinite": f"np.isinf({x})",
        "number": f"~np.isnan({x})",
        "notanumber": f"np.isnan({x})",
        "normal": f"(np.isfinite({x}) & (np.abs({x}) >= {tiny}))",
        "subnormal": f"((np.abs({x}) < {tiny}) & ({x} != 0))",
    }
    e.write(i.operands[0], tests[i.modifiers[0]], TYPES["pred"])

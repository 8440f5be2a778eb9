"""Conversions between types and between address spaces (PTX ISA, sections 9.7.9.19 to 9.7.9.22)."""

from __future__ import annotations

from ..emitter import LOCAL_WINDOW, SHARED_WINDOW, Emitter, instruction
from ..integers import ROUNDING
from ..parser import Instruction
from ..types import TYPES

_WINDOWS = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
_NUMPY_ROUNDING = {name: f"np.{function.__name__}" for name, function in ROUNDING.items()}


@instruction("cvt")
def _convert(e: Emitter, i: Instruction) -> None:
    target, source = e.type_of(-2), e.type_of()
    value = e.read(i.operands[1], source)
    mode = next((name for name in i.modifiers if name in ROUNDING), None)
    rounding = next((name for name in i.modifiers if name in ("rn", "rz", "rm", "rp")), "rn")
    saturate, relu = "sat" in i.modifiers, "relu" in i.modifiers
    if source.kind == "h":
        value = f"floats.widen_bf16({value})"
    elif "ftz" in i.modifiers and source.name == "f32":
        value = f"floats.flush({value})"
    if target.name in ("f16x2", "bf16x2"):
        halves = [_to_half(e, e.read(operand, source), target.name[:-2], rounding, relu) for operand in i.operands[1:]]
        joined = f"(({halves[0]}.astype(uint32)<<uint32(16))|{halves[1]}.astype(uint32))"
        return e.write(i.operands[0], joined, TYPES["b32"])
    if target.name == "tf32":
        return e.write(i.operands[0], f"floats.round_tf32({value})", TYPES["b32"])
    if target.kind in "bus":
        if source.kind in "bus":
            converted = (
                f"integers.clamp_integer({value}, {target.numpy})" if saturate else f"{value}.astype({target.numpy})"
            )
            return e.write(i.operands[0], converted, target)
        if mode is None:
            raise e.error("a conversion from float to integer needs .rni, .rzi, .rmi or .rpi")
        return e.write(i.operands[0], f"integers.to_integer({value}, {target.numpy}, {mode!r})", target)
    if target.kind == "h":
        # An integer or a double goes to bfloat16 only through float32 in PTX; float32 and float16 are exact there.
        half = _to_half(e, f"{value}.astype(float32)", "bf16", rounding, relu)
        return e.write(i.operands[0], half, target)
    wide = TYPES["f32"] if source.kind == "h" else source
    if wide.name == target.name:
        converted = f"{_NUMPY_ROUNDING[mode]}({value})" if mode else value
    elif wide.kind == "f" and wide.size < target.size:
        converted = f"{value}.astype({target.numpy})"
    else:
        converted = f"integers.to_float({value}, {target.numpy}, {rounding!r})"
    if relu:
        converted = f"np.maximum({converted}, {target.numpy}(0))"
    if saturate:
        converted = f"floats.saturate({converted})"
    if "ftz" in i.modifiers and target.name == "f32":
        converted = f"floats.flush({converted})"
    return e.write(i.operands[0], converted, target)


def _to_half(e: Emitter, value: str, half: str, rounding: str, relu: bool) -> str:
    """Source of the 16 bits of a float32 value."""
    if relu:
        value = f"np.maximum({value}, float32(0))"
    if half == "f16":
        return f"integers.to_float({value}, float16, {rounding!r}).view(uint16)"
    if rounding not in ("rn", "rz"):
        raise e.error("bf16 is rounded by .rn or .rz")
    return f"floats.{'round' if rounding == 'rn' else 'truncate'}_bf16({value})"


@instruction("cvta")
def _convert_address(e: Emitter, i: Instruction) -> None:
    kind = e.type_of()
    space = next((name for name in i.modifiers if name in ("global", "shared", "local", "const", "param")), "")
    value = e.read(i.operands[1], kind)
    window = _WINDOWS.get(space, 0)
    if window and kind.size == 8:
        value = f"({value}{'-' if 'to' in i.modifiers else '+'}{kind.numpy}({window}))"
    e.write(i.operands[0], value, kind)

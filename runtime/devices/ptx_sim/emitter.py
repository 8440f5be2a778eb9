"""Python text for the instructions of a kernel: registers, addresses, constants; the table of rules by opcode."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .analysis import Registers
from .faults import PtxSyntaxError
from .parser import Instruction, Kernel, ModuleText, Variable, immediate_bytes
from .types import TYPES, PtxType, bits_type

SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 1 << 41
GLOBAL_BASE = 1 << 44

Rule = Callable[["Emitter", Instruction], None]
RULES: dict[str, Rule] = {}


def instruction(*opcodes: str) -> Callable[[Rule], Rule]:
    """Register the function that emits these opcodes."""

    def register(rule: Rule) -> Rule:
        for opcode in opcodes:
            RULES[opcode] = rule
        return rule

    return register


@dataclass
class Layout:
    """Byte offsets of the variables of one space."""

    offsets: dict[str, int] = field(default_factory=dict)
    size: int = 0

    def place(self, variable: Variable) -> None:
        self.size = -(-self.size // variable.align) * variable.align
        self.offsets[variable.name] = self.size
        self.size += variable.size


class Emitter:
    """Writes the source of one kernel. Rules call `read`, `write`, `address` and `line`."""

    def __init__(self, kernel: Kernel, module: ModuleText, registers: Registers) -> None:
        self.kernel = kernel
        self.registers = registers
        self.number = {name: i for i, name in enumerate(kernel.registers)}
        self.constants: dict[str, Any] = {}
        self.names: dict[tuple[str, bytes], str] = {}
        self.lines: list[str] = []
        self.indent = "    "
        self.mask = "m"
        self.granule: dict[str, int] = {}
        self.current = Instruction(kernel.line, kernel.name, "", (), ())
        self.position = 0
        self.shared, self.local = Layout(), Layout()
        variables = [*kernel.variables.values(), *module.variables.values()]
        for variable in sorted(variables, key=lambda one: one.size == 0):
            if variable.space in ("shared", "local"):
                (self.shared if variable.space == "shared" else self.local).place(variable)
        self.globals = {one.name for one in variables if one.space in ("global", "const")}
        self.dynamic_offset = self.shared.size

    def error(self, message: str) -> PtxSyntaxError:
        return PtxSyntaxError(message, self.current.line, self.current.text)

    def line(self, source: str) -> None:
        self.lines.append(self.indent + source)

    def type_of(self, index: int = -1) -> PtxType:
        """The instruction's type: the last type among its modifiers, or another by index."""
        names = [name for name in self.current.modifiers if name in TYPES]
        if not names:
            raise self.error("no type")
        return TYPES[names[index]]

    def constant(self, value: Any) -> str:
        key = (value.dtype.str, value.tobytes())
        if key not in self.names:
            self.names[key] = f"K{len(self.names)}"
            self.constants[self.names[key]] = value
        return self.names[key]

    def register(self, name: str) -> str:
        return f"v{self.number[name]}" if name in self.registers.local else f"R[{self.number[name]}]"

    def read(self, operand: str, kind: PtxType) -> str:
        """Source of an operand as lanes of that type's dtype."""
        if operand in self.number:
            return self._read_register(operand, kind)
        if operand.startswith("!"):
            return f"(~{self.read(operand[1:], kind)})"
        if operand.startswith("%"):
            source = f"S.special[{operand!r}]"
            if kind.size != (8 if operand in ("%globaltimer", "%clock64", "%gridid") else 4):
                return f"{source}.astype({kind.numpy})"
            return source if kind.kind in "bu" else f"{source}.view({kind.numpy})"
        if operand == "WARP_SZ":
            return self.constant(kind.dtype.type(32))
        symbol = re.match(r"([A-Za-z_$][\w$.]*)\s*(?:\+\s*(\d+))?$", operand)
        if symbol is not None:
            return f"{self.symbol(symbol[1], int(symbol[2] or 0))}.astype({kind.numpy})"
        try:
            raw = immediate_bytes(operand, kind.name)
        except ValueError:
            raise self.error(f"cannot read the operand `{operand}`") from None
        return self.constant(np.frombuffer(raw, kind.dtype)[0])

    def _read_register(self, name: str, kind: PtxType) -> str:
        source = self.register(name)
        have = TYPES[self.kernel.registers[name]]
        if name in self.registers.tracked:
            self.line(f"S.require({self.number[name]}, {self.mask}, {self.here()})")
        if have.dtype == kind.dtype:
            return source
        if (
            have.kind == "p"
            or kind.kind == "p"
            or have.size < kind.size
            or (have.size > kind.size and kind.kind in "fh")
        ):
            raise self.error(f"`{name}` is .{have.name} and is read as .{kind.name}")
        if have.size > kind.size:
            plain = f"uint{kind.bits}"
            source = (
                f"{source}.view(uint{have.bits}).astype({plain})" if have.kind == "f" else f"{source}.astype({plain})"
            )
            return source if kind.numpy == plain else f"{source}.view({kind.numpy})"
        return f"{source}.view({kind.numpy})"

    def write(self, destination: str, source: str, kind: PtxType) -> None:
        """Assign lanes of that type to a register, in the active lanes; a narrow integer is extended by its sign."""
        if destination == "_":
            return
        if destination not in self.number:
            raise self.error(f"`{destination}` is not a register")
        have = TYPES[self.kernel.registers[destination]]
        if have.dtype != kind.dtype:
            if have.kind == "p" or kind.kind == "p" or have.size < kind.size:
                raise self.error(f"`{destination}` is .{have.name} and is given a .{kind.name}")
            if have.size > kind.size:
                bits = source if kind.kind != "f" else f"({source}).view(uint{kind.bits})"
                source = f"({bits}).astype({'int' if kind.kind == 's' else 'uint'}{have.bits})"
            source = f"({source}).view({have.numpy})"
        name = self.register(destination)
        self.line(f"{name} = {source}" if name[0] == "v" else f"{name} = select({self.mask}, {source}, {name})")
        if destination in self.registers.tracked:
            self.line(f"S.assign({self.number[destination]}, {self.mask})")

    def here(self) -> str:
        """The number of the current instruction: what the machine needs to say where a fault happened."""
        return str(self.position)

    def symbol(self, name: str, offset: int = 0) -> str:
        """Source of a variable's address in its own space, as int64."""
        for layout in (self.shared, self.local):
            if name in layout.offsets:
                return self.constant(np.int64(layout.offsets[name] + offset))
        if name in self.kernel.parameters:
            return self.constant(np.int64(self.kernel.parameters[name].offset + offset))
        if name in self.globals:
            return f"(S.symbols[{name!r}]+{self.constant(np.int64(offset))})"
        raise self.error(f"`{name}` is not declared")

    def address(self, operand: str) -> str:
        """Source of `[base+offset]` as int64 lanes."""
        match = re.match(r"\[\s*([^+\s\]-]+|-?\d+)\s*(?:([+-])\s*(-?\w+))?\s*\]$", operand)
        if match is None:
            raise self.error(f"cannot read the address `{operand}`")
        base, offset = match[1], int(match[3] or "0", 0) * (-1 if match[2] == "-" else 1)
        if base in self.number:
            kind = TYPES[self.kernel.registers[base]]
            source = self._read_register(base, TYPES[bits_type(kind.size)])
            source = f"{source}.view(int64)" if kind.size == 8 else f"{source}.astype(int64)"
            return f"({source}+{self.constant(np.int64(offset))})" if offset else source
        if re.fullmatch(r"-?\d\w*", base):
            return self.constant(np.int64(int(base, 0) + offset))
        return self.symbol(base, offset)

    def note_access(self, space: str, size: int) -> None:
        """Remember the smallest access of a space: race detection works in units of it."""
        for one in (space,) if space != "generic" else ("global", "shared"):
            self.granule[one] = min(self.granule.get(one, 16), size)


def vector(operand: str) -> list[str]:
    """Elements of `{a, b}`, or the one operand."""
    return [part.strip() for part in operand.strip("{}").split(",")] if operand.startswith("{") else [operand]

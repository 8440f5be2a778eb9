"""The state of emitting one PTX kernel: lines, registers, values, and addresses of memrefs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.diagnostics import LoweringError
from ...ir.operations import Operation
from ...ir.types import DYNAMIC, MemRefType, Type, element_bytes
from ...ir.values import Value
from ..emission import Bindings, Emission, Emitter, registration
from .registers import PREFIXES, is_immediate, register_class

SMALL = 1 << 30
"""A buffer of fewer elements is addressed by 32-bit offsets."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a memref is here: the address of its first element, its state space, extents and strides (numbers or 64-bit
    registers), whether loads may go past the coherent caches, and whether it has fewer than `SMALL` elements."""

    pointer: str
    space: str
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]
    constant: bool = False
    small: bool = False


EMITTERS: dict[str, Emitter[Function]] = {}
"""How each op is emitted, by name; the twin modules of the dialects fill it."""
emits = registration(EMITTERS)


class Function(Emission):
    """A kernel under construction.  A value is an operand: a register or an immediate number."""

    target = "ptx"
    emitters = EMITTERS

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.arrays: list[str] = []
        """Declarations of shared and local arrays."""
        self.names = Bindings[str]()
        self.narrow: dict[Value, str] = {}
        """Index values that 32 bits hold without sign, in the registers that do."""
        self.buffers = Bindings[Buffer]()
        self.counts: dict[str, int] = dict.fromkeys(PREFIXES, 0)
        self.labels = 0

    # Text.

    def register(self, kind: str) -> str:
        """A new register of a class."""
        number = self.counts[kind]
        self.counts[kind] = number + 1
        return f"%{PREFIXES[kind]}{number}"

    def line(self, text: str) -> None:
        """Add an instruction."""
        self.lines.append(f"\t{text};")

    def label(self, name: str) -> None:
        """Start a block."""
        self.lines.append(f"{name}:")

    def fresh_label(self, what: str) -> str:
        """A new label."""
        self.labels += 1
        return f"$L_{what}{self.labels}"

    def value(self, kind: str, instruction: str, *operands: str) -> str:
        """Add an instruction with a result in a new register of a class."""
        result = self.register(kind)
        self.line(f"{instruction} {', '.join([result, *operands])}")
        return result

    def set(self, result: Value, instruction: str, *operands: str) -> None:
        """Compute a result."""
        self.names[result] = self.value(register_class(result.type), instruction, *operands)

    # Values.

    def of(self, value: Value) -> str:
        """The operand of a value."""
        return self.names[value]

    def operands(self, op: Operation) -> list[str]:
        """The operands of an op; the first of several numbers is put in a register."""
        texts = [self.names[v] for v in op.operands]
        if texts and all(is_immediate(t) for t in texts):
            texts[0] = self.in_register(texts[0], op.operands[0].type)
        return texts

    def bind(self, value: Value, text: str) -> None:
        """Say what a value is."""
        self.names[value] = text

    def in_register(self, text: str, type: Type) -> str:
        """An operand in a register, for instructions that take no numbers."""
        if not is_immediate(text):
            return text
        kind = register_class(type)
        if kind == "pred":
            number = self.value("b32", "mov.b32", text)
            return self.value("pred", "setp.ne.b32", number, "0")
        return self.value(kind, f"mov.{kind}", text)

    def held(self, value: Value) -> str:
        """A value in a register."""
        return self.in_register(self.names[value], value.type)

    def index(self, value: Value) -> int | str:
        """An index value: a number where it is one."""
        text = self.names[value]
        return int(text) if is_immediate(text) else text

    def low(self, value: int | str | Value) -> int | str:
        """The low 32 bits of an index."""
        if isinstance(value, Value):
            if value in self.narrow:
                return self.narrow[value]
            value = self.index(value)
        return value if isinstance(value, int) else self.value("b32", "cvt.u32.u64", value)

    # Integers of index type: folded where both are numbers.

    def add(self, a: int | str, b: int | str) -> int | str:
        """a + b in 64 bits."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        first, second = (b, a) if isinstance(a, int) else (a, b)
        return self.value("b64", "add.s64", str(first), str(second))

    def multiply(self, a: int | str, b: int | str) -> int | str:
        """a * b in 64 bits."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        if b == 1:
            return a
        first, second = (b, a) if isinstance(a, int) else (a, b)
        return self.value("b64", "mul.lo.s64", str(first), str(second))

    # Memory.

    def buffer_of(
        self, type: MemRefType, pointer: str, space: str, dynamic: Sequence[int | str], constant: bool = False
    ) -> Buffer:
        """A contiguous row-major buffer with the given dynamic extents."""
        if type.layout is not None:
            raise LoweringError(f"a kernel takes contiguous buffers, not {type}")
        rest = iter(dynamic)
        sizes = tuple(next(rest) if d == DYNAMIC else d for d in type.shape)
        small = type.is_static and type.num_elements < SMALL
        return Buffer(pointer, space, sizes, self.row_major(sizes), constant, small)

    def address(self, buffer: Buffer, element: Type, indices: Sequence[int | Value]) -> str:
        """The address of an element, as it stands in brackets: a register and a number of bytes.

        An offset into a small buffer is exact in 32 bits whatever its terms are, since the element lies inside.
        """
        size = element_bytes(element)
        fixed = 0
        terms: list[tuple[Value, int | str]] = []
        for index, stride in zip(indices, buffer.strides, strict=True):
            number = index if isinstance(index, int) else self.index(index)
            if isinstance(number, int) and isinstance(stride, int):
                fixed += number * stride
            elif isinstance(number, int):
                if number:
                    raise AssertionError("a number along a dynamic stride stands in a register")
            else:
                assert isinstance(index, Value)
                terms.append((index, stride))
        pointer = buffer.pointer
        if terms:
            pointer = self.narrow_offset(pointer, size, terms) if buffer.small else self.offset(pointer, size, terms)
        return f"[{pointer}]" if not fixed else f"[{pointer}+{fixed * size}]"

    def narrow_offset(self, pointer: str, size: int, terms: Sequence[tuple[Value, int | str]]) -> str:
        """The address of the sum of terms, added up in 32 bits."""
        total: str | None = None
        for index, stride in terms:
            low = str(self.low(index))
            if total is None:
                total = low if stride == 1 else self.value("b32", "mul.lo.s32", low, str(stride))
            elif stride == 1:
                total = self.value("b32", "add.s32", total, low)
            else:
                total = self.value("b32", "mad.lo.s32", low, str(stride), total)
        assert total is not None
        return self.value("b64", "mad.wide.s32", total, str(size), pointer)

    def offset(self, pointer: str, size: int, terms: Sequence[tuple[Value, int | str]]) -> str:
        """The address of the sum of terms, added up in 64 bits."""
        total: int | str = 0
        for index, stride in terms:
            text = self.of(index)
            if self.narrow.get(index) == text:
                # A counter that was needed in 32 bits only, so far.
                text = self.value("b64", "cvt.u64.u32", text)
            total = self.add(total, self.multiply(text, stride))
        return self.value("b64", "mad.lo.s64", str(total), str(size), pointer)

    # Control.

    def assign(self, registers: Sequence[str], values: Sequence[Value]) -> None:
        """Give registers their next values, all at once: one that another one takes over is kept first."""
        texts = [self.of(v) for v in values]
        for i, (value, text) in enumerate(zip(values, texts, strict=True)):
            if text in registers[:i]:
                kind = register_class(value.type)
                texts[i] = self.value(kind, f"mov.{kind}", text)
        for register, value, text in zip(registers, values, texts, strict=True):
            if register != text:
                kind = register_class(value.type)
                self.line(f"mov.{kind} {register}, {self.in_register(text, value.type) if kind == 'pred' else text}")

    def variable(self, type: Type) -> str:
        """A register that is written several times."""
        return self.register(register_class(type))

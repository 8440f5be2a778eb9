"""The state of emitting one LLVM function: lines, names of values, blocks, and addresses of memrefs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...ir.diagnostics import LoweringError
from ...ir.types import DYNAMIC, MemRefType, Type
from ...ir.values import Value
from ..emission import Bindings, Emission, Emitter, registration
from .failure import Facts, Failures
from .types import llvm_type


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a memref is here: the address of its first element, extents and strides (numbers or i64 names)."""

    pointer: str
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]


EMITTERS: dict[str, Emitter[Function]] = {}
"""How each op is emitted, by name; the twin modules of the dialects fill it."""
emits = registration(EMITTERS)


class Function(Emission):
    """A function under construction.  Values are strings as they stand in operands: `%5`, `7`, `zeroinitializer`."""

    target = "llvm"
    emitters = EMITTERS

    def __init__(
        self,
        declarations: dict[str, str],
        facts: Facts,
        leave: Callable[[str], list[str]] | None = None,
        symbols: Mapping[str, str] | None = None,
    ) -> None:
        self.lines: list[str] = []
        self.entry: list[str] = []
        """Allocas, which belong at the head of the function: in a loop they would eat stack at every step."""
        self.names = Bindings[str]()
        self.buffers = Bindings[Buffer]()
        self.declarations = declarations
        self.facts = facts
        self.symbols = symbols or {}
        """How functions and globals of the module are called in text, by their symbols."""
        self.failures = Failures(leave)
        self.stack_bytes = 0
        self.count = 0
        self.current = "entry"
        self.addresses: list[dict[tuple[str, ...], str]] = [{}]

    # Text.

    def fresh(self, prefix: str = "") -> str:
        """A new number for a name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        """Add an instruction without a result."""
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        """Add an instruction and name its result."""
        name = f"%{self.fresh()}"
        self.lines.append(f"  {name} = {text}")
        return name

    def label(self, name: str) -> None:
        """Start a block."""
        self.lines.append(f"{name}:")
        self.current = name

    def call(self, intrinsic: str, result: str, arguments: Sequence[tuple[str, str]]) -> str:
        """Call an intrinsic or function `(type, value)..` with a result."""
        self.declare(intrinsic, result, [t for t, _ in arguments])
        return self.value(f"call {result} @{intrinsic}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def call_void(self, function: str, arguments: Sequence[tuple[str, str]]) -> None:
        """Call a function without a result."""
        self.declare(function, "void", [t for t, _ in arguments])
        self.line(f"call void @{function}({', '.join(f'{t} {v}' for t, v in arguments)})")

    def declare(self, function: str, result: str, arguments: Sequence[str]) -> None:
        """Declare what is called."""
        self.declarations.setdefault(function, f"declare {result} @{function}({', '.join(arguments)})")

    def require(self, condition: str, status: str) -> None:
        """Go on where a condition holds; else the function fails with a status."""
        number = self.fresh()
        self.line(f"br i1 {condition}, label %ok{number}, label %failed{number}")
        self.declare("free", "void", ["ptr"])
        self.failures.block(f"failed{number}", status)
        self.label(f"ok{number}")

    # Values.

    def of(self, value: Value) -> str:
        """The operand text of a value."""
        return self.names[value]

    def typed(self, value: Value) -> str:
        """Type and operand text."""
        return f"{llvm_type(value.type)} {self.names[value]}"

    def bind(self, value: Value, text: str) -> None:
        """Say what a value is."""
        self.names[value] = text

    # Integers of index type: folded where both are numbers.

    def add(self, a: int | str, b: int | str) -> int | str:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        return self.value(f"add i64 {a}, {b}")

    def multiply(self, a: int | str, b: int | str) -> int | str:
        """a * b."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        if b == 1:
            return a
        return self.value(f"mul i64 {a}, {b}")

    def index(self, value: Value) -> int | str:
        """An index value: a number where it is one."""
        text = self.names[value]
        return int(text) if text.lstrip("-").isdigit() else text

    # Memory.

    def buffer_of(self, type: MemRefType, pointer: str, dynamic: Sequence[int | str]) -> Buffer:
        """A contiguous row-major buffer with the given dynamic extents."""
        if type.layout is not None:
            raise LoweringError(f"a function takes contiguous buffers, not {type}")
        rest = iter(dynamic)
        sizes = tuple(next(rest) if d == DYNAMIC else d for d in type.shape)
        return Buffer(pointer, sizes, self.row_major(sizes))

    def address(self, memref: Value, indices: Sequence[int | str]) -> str:
        """The address of an element.  The constant part of the subscripts comes last, where the processor's addressing
        takes it; the rest is computed once for all that share it."""
        buffer = self.buffers[memref]
        assert isinstance(memref.type, MemRefType)
        return self.element_address(buffer, memref.type.element, indices)

    def element_address(self, buffer: Buffer, element: Type, indices: Sequence[int | str]) -> str:
        """The address of an element of a buffer."""
        constant = 0
        terms: list[tuple[str, int | str]] = []
        for index, stride in zip(indices, buffer.strides, strict=True):
            if isinstance(index, int) and isinstance(stride, int):
                constant += index * stride
            elif index != 0:
                terms.append((str(index), stride))
        pointer = buffer.pointer
        if terms:
            key = (pointer, *(f"{i}*{s}" for i, s in terms))
            found = next((scope[key] for scope in reversed(self.addresses) if key in scope), None)
            if found is None:
                total: int | str = 0
                for index, stride in terms:
                    total = self.add(total, self.multiply(index, stride))
                found = self.value(f"getelementptr inbounds {llvm_type(element)}, ptr {pointer}, i64 {total}")
                self.addresses[-1][key] = found
            pointer = found
        if constant:
            return self.value(f"getelementptr inbounds {llvm_type(element)}, ptr {pointer}, i64 {constant}")
        return pointer

    @contextmanager
    def scope(self) -> Generator[None]:
        """Addresses computed inside are not known outside, memory allocated inside is not live there."""
        self.addresses.append({})
        live = list(self.failures.live)
        yield
        self.failures.live = [p for p in live if p in self.failures.live]
        self.addresses.pop()

"""The state of emitting one OpenCL kernel: lines, names of values, and buffers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ...ir.diagnostics import LoweringError
from ...ir.operations import Operation
from ...ir.types import DYNAMIC, F64, MemRefType, Type
from ...ir.values import Value
from ..emission import Bindings, Emission, Emitter, registration
from .types import c_type


@dataclass(frozen=True, slots=True)
class Buffer:
    """What a memref is here: a pointer, where it starts, extents and strides (numbers or C expressions)."""

    pointer: str
    space: str
    offset: int | str
    sizes: tuple[int | str, ...]
    strides: tuple[int | str, ...]


EMITTERS: dict[str, Emitter[Function]] = {}
"""How each op is emitted, by name; the twin modules of the dialects fill it."""
emits = registration(EMITTERS)


class Program:
    """What the kernels of a program share: helper functions and extensions, each present only where it is used."""

    def __init__(self) -> None:
        self.helpers: dict[str, str] = {}
        self.double = False
        self.floats = False

    def helper(self, name: str, text: str) -> str:
        """A function that is defined once, before the kernels; its name."""
        self.helpers.setdefault(name, text)
        return name


class Function(Emission):
    """A kernel under construction.  A value is a C expression that may stand as an operand: a name or a literal."""

    target = "opencl"
    emitters = EMITTERS

    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self.head: list[str] = []
        """Declarations of arrays, which stand at the head of the kernel."""
        self.names = Bindings[str]()
        self.buffers = Bindings[Buffer]()
        self.count = 0
        self.depth = 1

    # Text.

    def fresh(self, prefix: str = "v") -> str:
        """A new name."""
        self.count += 1
        return f"{prefix}{self.count}"

    def line(self, text: str) -> None:
        """Add a statement."""
        self.lines.append("  " * self.depth + text)

    @contextmanager
    def nested(self, head: str) -> Generator[None]:
        """Statements in braces."""
        self.line(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.line("}")

    def type_of(self, type: Type) -> str:
        """The C type of a value; notes that the program needs doubles."""
        if type is F64:
            self.program.double = True
        return c_type(type)

    def set(self, result: Value, expression: str) -> None:
        """Compute a result."""
        name = self.fresh()
        self.line(f"const {self.type_of(result.type)} {name} = {expression};")
        self.names[result] = name

    # Values.

    def of(self, value: Value) -> str:
        """The operand text of a value."""
        return self.names[value]

    def operands(self, op: Operation) -> list[str]:
        """The operand texts of an op."""
        return [self.names[v] for v in op.operands]

    def bind(self, value: Value, text: str) -> None:
        """Say what a value is."""
        self.names[value] = text

    # Index expressions: folded where both sides are numbers.

    def add(self, a: int | str, b: int | str) -> int | str:
        """a + b."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        if b == 0:
            return a
        return f"{a} + {b}"

    def multiply(self, a: int | str, b: int | str) -> int | str:
        """a * b; each a factor already."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        if b == 1:
            return a
        return f"{self.factor(a)} * {self.factor(b)}"

    def factor(self, a: int | str) -> str:
        """An expression as a factor."""
        text = str(a)
        return text if text.replace("_", "a").isalnum() or text.startswith("(") else f"({text})"

    def index(self, value: Value) -> int | str:
        """An index value: a number where it is one."""
        text = self.names[value]
        bare = text.strip("()").rstrip("L")
        return int(bare) if bare.lstrip("-").isdigit() else text

    # Memory.

    def buffer_of(self, type: MemRefType, pointer: str, space: str, dynamic: Sequence[int | str]) -> Buffer:
        """A contiguous row-major buffer with the given dynamic extents."""
        if type.layout is not None:
            raise LoweringError(f"a kernel takes contiguous buffers, not {type}")
        rest = iter(dynamic)
        sizes = tuple(next(rest) if d == DYNAMIC else d for d in type.shape)
        return Buffer(pointer, space, 0, sizes, self.row_major(sizes))

    def offset(self, buffer: Buffer, indices: Sequence[int | str]) -> str:
        """The number of an element of a buffer, counted from its pointer."""
        total = buffer.offset
        for index, stride in zip(indices, buffer.strides, strict=True):
            total = self.add(total, self.multiply(index, stride))
        return str(total)

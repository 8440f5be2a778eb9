"""The native entry of a compiled function: what Python calls, in LLVM IR.

In goes a `Signature`: what the arguments must be.  Out comes the text of a CPython function of the METH_FASTCALL kind
that checks its arguments, reads the addresses of their data, calls the host function, and returns None.  An argument
that does not fit makes it return NotImplemented before anything ran: the slow path in Python then decides what to do.

    add(x: tensor<?x4xf32, ["n"]>) -> array<?x4xf32, ["n"]>        entry(x, out)

    define ptr @"add.entry"(ptr %self, ptr %args, i64 %count) nounwind noinline optnone {
      %counted = icmp eq i64 %count, 2
      br i1 %counted, label %fit1, label %mismatch
    fit1:                                         ; x: exactly the Tensor class, its value exactly an ndarray,
      ...                                         ; dtype, rank, layout, sizes; n is bound
    fit9:
      call void @"add"(ptr %a0.data, i64 %a0.size0, ptr %a1.data, i64 %a1.size0)
      ...                                         ; a reference to None

Shapes of tensors need no look where they are static: a Tensor holds an interned object for its shape and dtype (its
abstract value), so that one comparison of pointers stands for all of them.  Everything that belongs to a process is an
external symbol (types, dtypes, abstract values, NotImplemented), so the object can be cached on disk.

The fields of objects are at the offsets in a `Layout`, which the runtime verifies in its own process before it relies
on any of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

_C_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400

TENSOR_TYPE = "nablair.type.tensor"
ARRAY_TYPE = "nablair.type.ndarray"
SUCCESS = "nablair.none"
MISMATCH = "nablair.not_implemented"
EXHAUSTED = "nablair.allocation_error"


def dtype_symbol(dtype: str) -> str:
    """The symbol that stands for the address of a dtype object, by its name in IR (`f32`)."""
    return f"nablair.dtype.{dtype}"


def abstract_value_symbol(index: int) -> str:
    """The symbol that stands for the address of the abstract value of input `index`."""
    return f"nablair.abstract_value.{index}"


@dataclass(frozen=True, slots=True)
class Argument:
    """An array that an entry takes. `shape` holds sizes, and names for sizes that each call brings.

    `kind`: "tensor", an instance of the Tensor class, "array", a plain ndarray, or "number", an int64 ndarray without
    axes whose element the host function takes by value. `dtype` is an element type in IR
    (`f32`, `bf16`, `i1`). `alignment`: what the address must be a multiple of, beyond the element's own alignment.
    """

    kind: Literal["tensor", "array", "number"]
    dtype: str
    shape: tuple[int | str, ...]
    alignment: int = 1

    @property
    def has_static_shape(self) -> bool:
        return all(isinstance(size, int) for size in self.shape)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a host function takes: `void @function(inputs, outputs)`.

    Each array stands as a bare `ptr` to its first element (C-contiguous), then an `i64` for each named size of its
    shape in order. Equal names must be equal sizes. `release_gil` lets other Python threads run meanwhile: it costs
    some 30 ns, so it is for work above a few microseconds. A function that `may_fail` returns an i32, 0 where it ran to
    its end; the entry raises AllocationError for any other.
    """

    function: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    release_gil: bool = False
    may_fail: bool = False

    @property
    def exhausted(self) -> str:
        """What an AllocationError says."""
        return f"'{self.function}' found no memory for its temporaries"

    @property
    def entry(self) -> str:
        """The symbol of the entry."""
        return f"{self.function}.entry"

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return self.inputs + self.outputs


@dataclass(frozen=True, slots=True)
class Layout:
    """Byte offsets of fields: in CPython's object header, NumPy's public `PyArrayObject_fields`, a Tensor's slots."""

    object_type: int = 8
    array_data: int = 16
    array_rank: int = 24
    array_sizes: int = 32
    array_dtype: int = 56
    array_flags: int = 64
    tensor_abstract_value: int = -1
    tensor_value: int = -1


def emit_entry(signature: Signature, layout: Layout = Layout(), *, declare: bool = True) -> str:
    """LLVM IR text of the entry of `signature`.

    With `declare` it stands as a module of its own; without, it is appended to the text that defines the host function.
    """
    writer = _Writer(layout)
    writer.guard([writer.value("icmp eq i64 %count, " + str(len(signature.arguments)))])
    sizes: dict[str, str] = {}
    operands: list[str] = []
    held: list[str] = []
    for index, argument in enumerate(signature.arguments):
        is_output = index >= len(signature.inputs)
        given = writer.load("ptr", "%args", 8 * index)
        array = given
        if argument.kind == "tensor":
            array = writer.tensor_value(given, index, argument)
            held.append(array)
        writer.is_array(array)
        # An abstract value stands for dtype and shape.
        is_vouched_for = argument.kind == "tensor" and argument.has_static_shape
        if not is_vouched_for:
            writer.has_dtype_and_rank(array, argument)
        passed = writer.array(array, argument, sizes, writable=is_output, check_sizes=not is_vouched_for)
        if argument.kind == "number":
            passed = [f"i64 {writer.load('i64', passed[0].removeprefix('ptr '), 0)}"]
        operands += passed
    writer.call(signature, operands, held)
    name = _quoted(signature.entry)
    lines = [
        # As fast unoptimised, and compiled in a third of the time.
        f"define ptr {name}(ptr %self, ptr %args, i64 %count) nounwind noinline optnone {{",
        "start:",
        *writer.lines,
        "mismatch:",
        f"  call void @Py_IncRef(ptr {_quoted(MISMATCH)})",
        f"  ret ptr {_quoted(MISMATCH)}",
        *_failure(signature),
        "}",
        *_declarations(signature, operands, declare),
    ]
    return "\n".join(lines) + "\n"


def _failure(signature: Signature) -> Iterable[str]:
    if signature.may_fail:
        yield "failed:"
        yield f"  call void @PyErr_SetString(ptr {_quoted(EXHAUSTED)}, ptr {_quoted(f'{signature.entry}.message')})"
        yield "  ret ptr null"


def _declarations(signature: Signature, operands: list[str], declare: bool) -> Iterable[str]:
    symbols = {ARRAY_TYPE, SUCCESS, MISMATCH} | {dtype_symbol(argument.dtype) for argument in signature.arguments}
    for index, argument in enumerate(signature.arguments):
        if argument.kind == "tensor":
            symbols |= {TENSOR_TYPE, abstract_value_symbol(index)}
    yield from (f"{_quoted(symbol)} = external global i8" for symbol in sorted(symbols))
    if signature.may_fail:
        text = signature.exhausted.encode()
        escaped = "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text)
        yield f"{_quoted(EXHAUSTED)} = external global i8"
        yield f'{_quoted(f"{signature.entry}.message")} = private constant [{len(text) + 1} x i8] c"{escaped}\\00"'
        yield "declare void @PyErr_SetString(ptr, ptr)"
    yield "declare void @Py_IncRef(ptr)"
    if signature.release_gil:
        yield "declare void @Py_DecRef(ptr)"
        yield "declare ptr @PyEval_SaveThread()"
        yield "declare void @PyEval_RestoreThread(ptr)"
    if declare:
        result = "i32" if signature.may_fail else "void"
        yield f"declare {result} {_quoted(signature.function)}({', '.join(operand.split()[0] for operand in operands)})"


def _quoted(symbol: str) -> str:
    return f'@"{symbol}"'


@dataclass(slots=True)
class _Writer:
    """Writes the body; `guard` ends a block, so that what follows is reached only if its conditions hold."""

    layout: Layout
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def value(self, operation: str) -> str:
        self.count += 1
        self.lines.append(f"  %v{self.count} = {operation}")
        return f"%v{self.count}"

    def load(self, type: str, base: str, offset: int) -> str:
        return self.value(f"load {type}, ptr {self.value(f'getelementptr i8, ptr {base}, i64 {offset}')}")

    def guard(self, conditions: list[str]) -> None:
        """Go on where all conditions hold."""
        holds = conditions[0]
        for condition in conditions[1:]:
            holds = self.value(f"and i1 {holds}, {condition}")
        self.count += 1
        self.lines += [f"  br i1 {holds}, label %fit{self.count}, label %mismatch", f"fit{self.count}:"]

    def has_type(self, thing: str, symbol: str) -> None:
        type_of = self.load("ptr", thing, self.layout.object_type)
        self.guard([self.value(f"icmp eq ptr {type_of}, {_quoted(symbol)}")])

    def is_array(self, thing: str) -> None:
        self.has_type(thing, ARRAY_TYPE)

    def tensor_value(self, tensor: str, index: int, argument: Argument) -> str:
        """The object in the value slot of a Tensor whose abstract value is the one this entry is for."""
        self.has_type(tensor, TENSOR_TYPE)
        value = self.load("ptr", tensor, self.layout.tensor_value)
        conditions = [self.value(f"icmp ne ptr {value}, null")]
        if argument.has_static_shape:
            abstract = self.load("ptr", tensor, self.layout.tensor_abstract_value)
            conditions.append(self.value(f"icmp eq ptr {abstract}, {_quoted(abstract_value_symbol(index))}"))
        self.guard(conditions)
        return value

    def has_dtype_and_rank(self, array: str, argument: Argument) -> None:
        # The rank must be known before a size is read: an array of rank 0 may have no list of sizes.
        rank = self.load("i32", array, self.layout.array_rank)
        dtype = self.load("ptr", array, self.layout.array_dtype)
        self.guard(
            [
                self.value(f"icmp eq i32 {rank}, {len(argument.shape)}"),
                self.value(f"icmp eq ptr {dtype}, {_quoted(dtype_symbol(argument.dtype))}"),
            ]
        )

    def array(
        self, array: str, argument: Argument, sizes: dict[str, str], *, writable: bool, check_sizes: bool
    ) -> list[str]:
        """Check memory layout and sizes; the operands that stand for the array. Names new in `sizes` are bound."""
        flags = self.load("i32", array, self.layout.array_flags)
        wanted = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE if writable else 0)
        conditions = [self.value(f"icmp eq i32 {self.value(f'and i32 {flags}, {wanted}')}, {wanted}")]
        data = self.load("ptr", array, self.layout.array_data)
        if argument.alignment > 1:
            address = self.value(f"ptrtoint ptr {data} to i64")
            low = self.value(f"and i64 {address}, {argument.alignment - 1}")
            conditions.append(self.value(f"icmp eq i64 {low}, 0"))
        operands = [f"ptr {data}"]
        if check_sizes and argument.shape:
            listed = self.load("ptr", array, self.layout.array_sizes)
            for axis, size in enumerate(argument.shape):
                actual = self.load("i64", listed, 8 * axis)
                if isinstance(size, str):
                    operands.append(f"i64 {actual}")
                expected = size if isinstance(size, int) else sizes.setdefault(size, actual)
                if expected is not actual:
                    conditions.append(self.value(f"icmp eq i64 {actual}, {expected}"))
        self.guard(conditions)
        return operands

    def call(self, signature: Signature, operands: list[str], held: list[str]) -> None:
        result, name = ("i32", "%status = ") if signature.may_fail else ("void", "")
        call = f"  {name}call {result} {_quoted(signature.function)}({', '.join(operands)})"
        if signature.release_gil:
            # Meanwhile another thread may rebind the value of a Tensor: the array must outlive the call all the same.
            self.lines += [f"  call void @Py_IncRef(ptr {array})" for array in held]
            thread = self.value("call ptr @PyEval_SaveThread()")
            self.lines += [call, f"  call void @PyEval_RestoreThread(ptr {thread})"]
            self.lines += [f"  call void @Py_DecRef(ptr {array})" for array in held]
        else:
            self.lines.append(call)
        if signature.may_fail:
            self.lines += [
                "  %ended = icmp eq i32 %status, 0",
                "  br i1 %ended, label %succeeded, label %failed",
                "succeeded:",
            ]
        self.lines += [f"  call void @Py_IncRef(ptr {_quoted(SUCCESS)})", f"  ret ptr {_quoted(SUCCESS)}"]

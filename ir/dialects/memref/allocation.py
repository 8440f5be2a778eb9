"""Making buffers and giving them back."""

from __future__ import annotations

from collections.abc import Sequence

from ...definition import ALLOCATES, INDEX_, MEMREF, Op, integer, operand, result, variadic_operand
from ...types import DYNAMIC, I64, MemRefType, Type
from ...values import Value


def check_allocation(op: Op, type: Type, sizes: Sequence[Value], symbols: Sequence[Value]) -> None:
    """Raise unless there is a size for each dynamic extent."""
    assert isinstance(type, MemRefType)
    needed = type.shape.count(DYNAMIC)
    if len(sizes) != needed:
        raise op.error(f"needs {needed} sizes for the dynamic extents of {type}, got {len(sizes)}")
    if symbols or type.layout is not None:
        raise op.error(f"allocates contiguous memory only, not {type}")


class Alloc(Op):
    """Heap memory, one index operand for each dynamic extent; undefined until it is stored to."""

    name = "memref.alloc"
    traits = frozenset({ALLOCATES})
    sizes = variadic_operand(INDEX_)
    symbols = variadic_operand(INDEX_)
    result = result(MEMREF)
    alignment = integer(I64, optional=True)
    assembly = "`(` $sizes `)` (`[` $symbols^ `]`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        check_allocation(self, self.result.type, self.sizes, self.symbols)


class Alloca(Op):
    """Stack memory that lives until the function returns."""

    name = "memref.alloca"
    traits = frozenset({ALLOCATES})
    sizes = variadic_operand(INDEX_)
    symbols = variadic_operand(INDEX_)
    result = result(MEMREF)
    alignment = integer(I64, optional=True)
    assembly = "`(` $sizes `)` (`[` $symbols^ `]`)? attr-dict `:` type($result)"

    def verify_(self) -> None:
        check_allocation(self, self.result.type, self.sizes, self.symbols)


class Dealloc(Op):
    """Gives memory of `memref.alloc` back."""

    name = "memref.dealloc"
    writes = ("memref",)
    memref = operand(MEMREF)
    assembly = "$memref attr-dict `:` type($memref)"

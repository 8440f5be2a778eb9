"""Buffers: allocation, views and element access, upstream's `memref`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import IntegerAttr, StridedLayoutAttr
from ..builder import Builder
from ..definition import (
    INDEX_,
    MEMREF,
    PURE,
    FoldResult,
    Op,
    Trait,
    boolean,
    enumeration,
    integer,
    integers,
    operand,
    result,
    variadic_operand,
)
from ..types import DYNAMIC, I32, I64, INDEX, MemRefType, Type
from ..values import Value
from . import mixed
from .dialect_properties import integer_lists

if TYPE_CHECKING:
    from ..attributes import Attribute
    from ..parser import Parser
    from ..printer import Printer

ALLOCATES = Trait("Allocates")
"""The result is fresh memory; an unused one may be removed, two are never merged."""


class Alloc(Op):
    """Heap memory, one index operand for each dynamic extent; undefined until it is stored to."""

    name = "memref.alloc"
    traits = frozenset({ALLOCATES})
    sizes = variadic_operand(INDEX_)
    symbols = variadic_operand(INDEX_)
    result = result(MEMREF)
    alignment = integer(I64, optional=True)
    assembly = "`(` $sizes `)` (`[` $symbols^ `]`)? attr-dict `:` type($result)"


class Alloca(Op):
    """Stack memory that lives until the function returns."""

    name = "memref.alloca"
    traits = frozenset({ALLOCATES})
    sizes = variadic_operand(INDEX_)
    symbols = variadic_operand(INDEX_)
    result = result(MEMREF)
    alignment = integer(I64, optional=True)
    assembly = "`(` $sizes `)` (`[` $symbols^ `]`)? attr-dict `:` type($result)"


class Dealloc(Op):
    """Gives memory of `memref.alloc` back."""

    name = "memref.dealloc"
    writes = ("memref",)
    memref = operand(MEMREF)
    assembly = "$memref attr-dict `:` type($memref)"


class Load(Op):
    """One element."""

    name = "memref.load"
    reads = ("memref",)
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result()
    nontemporal = boolean(default=False)
    assembly = "$memref `[` $indices `]` attr-dict `:` type($memref)"

    def infer(self) -> Sequence[Type]:
        return [element_of(self.memref)]


class Store(Op):
    """Writes one element."""

    name = "memref.store"
    writes = ("memref",)
    value = operand()
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    nontemporal = boolean(default=False)
    assembly = "$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)"


class Subview(Op):
    """A box of a buffer: `memref.subview %m[%i, 0] [4, 8] [1, 1] : memref<..> to memref<..>`.

    Unit extents may be dropped from the result's shape.
    """

    name = "memref.subview"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    offset_values = variadic_operand(INDEX_)
    size_values = variadic_operand(INDEX_)
    stride_values = variadic_operand(INDEX_)
    result = result(MEMREF)
    static_offsets = integers()
    static_sizes = integers()
    static_strides = integers()

    @property
    def offsets(self) -> list[mixed.Entry]:
        """Where the box starts."""
        return mixed.merge(self.static_offsets, self.offset_values)

    @property
    def sizes(self) -> list[mixed.Entry]:
        """The extents of the box."""
        return mixed.merge(self.static_sizes, self.size_values)

    @property
    def strides(self) -> list[mixed.Entry]:
        """The steps between elements, in elements of the source's axes."""
        return mixed.merge(self.static_strides, self.stride_values)


class CollapseShape(Op):
    """Merges neighbouring axes: `[[0, 1], [2]]`."""

    name = "memref.collapse_shape"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    result = result(MEMREF)
    reassociation = integer_lists()


class ExpandShape(Op):
    """Splits axes: the groups name the result's axes that an axis of the source becomes."""

    name = "memref.expand_shape"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    output_values = variadic_operand(INDEX_)
    result = result(MEMREF)
    reassociation = integer_lists()
    static_output_shape = integers()

    @property
    def output_shape(self) -> list[mixed.Entry]:
        """The result's extents."""
        return mixed.merge(self.static_output_shape, self.output_values)


class ReinterpretCast(Op):
    """The same memory with another offset, shape and strides, all counted from the base of the buffer."""

    name = "memref.reinterpret_cast"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    offset_values = variadic_operand(INDEX_)
    size_values = variadic_operand(INDEX_)
    stride_values = variadic_operand(INDEX_)
    result = result(MEMREF)
    static_offsets = integers()
    static_sizes = integers()
    static_strides = integers()

    @property
    def offsets(self) -> list[mixed.Entry]:
        """One offset, in elements."""
        return mixed.merge(self.static_offsets, self.offset_values)

    @property
    def sizes(self) -> list[mixed.Entry]:
        """The extents."""
        return mixed.merge(self.static_sizes, self.size_values)

    @property
    def strides(self) -> list[mixed.Entry]:
        """The strides, in elements."""
        return mixed.merge(self.static_strides, self.stride_values)


class Cast(Op):
    """The same buffer with more or less of its shape and layout known."""

    name = "memref.cast"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    result = result(MEMREF)
    assembly = "$source attr-dict `:` type($source) `to` type($result)"


class Dim(Op):
    """The extent of an axis."""

    name = "memref.dim"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    index = operand(INDEX_)
    result = result(INDEX_)
    assembly = "$source `,` $index attr-dict `:` type($source)"

    def infer(self) -> Sequence[Type]:
        return [INDEX]


class Copy(Op):
    """Copies all elements."""

    name = "memref.copy"
    reads = ("source",)
    writes = ("target",)
    source = operand(MEMREF)
    target = operand(MEMREF)
    assembly = "$source `,` $target attr-dict `:` type($source) `to` type($target)"


class Prefetch(Op):
    """`memref.prefetch %m[%i], read, locality<3>, data : memref<..>`: a hint."""

    name = "memref.prefetch"
    # Declared a write, so that nothing takes a hint without results for dead.
    writes = ("memref",)
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    isWrite = boolean()
    localityHint = integer(I32)
    isDataCache = boolean()


ATOMIC_KINDS = (
    "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori", "andi",
    "maxnumf", "minnumf",
)  # fmt: skip


class AtomicRmw(Op):
    """`memref.atomic_rmw addf %v, %m[%i] : (f32, memref<..>) -> f32`: combines an element; the result is the old one."""

    name = "memref.atomic_rmw"
    reads = ("memref",)
    writes = ("memref",)
    value = operand()
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result()
    kind = enumeration(*ATOMIC_KINDS)
    assembly = "$kind $value `,` $memref `[` $indices `]` attr-dict `:` `(` type($value) `,` type($memref) `)` `->` type($result)"

    def infer(self) -> Sequence[Type]:
        return [self.value.type]


def element_of(memref: Value) -> Type:
    """The element type of a buffer."""
    assert isinstance(memref.type, MemRefType)
    return memref.type.element

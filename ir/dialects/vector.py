"""Operations on `vector<16xf32>`: contiguous and masked memory access, shuffles, reductions; upstream's `vector`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..definition import (
    ANY,
    BOOL_LIKE,
    INDEX_,
    MEMREF,
    PURE,
    VECTOR,
    Op,
    boolean,
    integers,
    operand,
    optional_operand,
    result,
    variadic_operand,
)
from ..types import DYNAMIC, INDEX, MemRefType, Type, VectorType, element_type
from . import mixed
from .dialect_properties import DialectEnumeration, fast_math, integer_list

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer


class Load(Op):
    """Neighbouring elements along the last axis, which must be contiguous."""

    name = "vector.load"
    reads = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result(VECTOR)
    nontemporal = boolean(default=False)
    assembly = "$base `[` $indices `]` attr-dict `:` type($base) `,` type($result)"


class Store(Op):
    """Writes neighbouring elements along the last axis."""

    name = "vector.store"
    writes = ("base",)
    value = operand(VECTOR)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    nontemporal = boolean(default=False)
    assembly = "$value `,` $base `[` $indices `]` attr-dict `:` type($base) `,` type($value)"


class MaskedLoad(Op):
    """As `vector.load` where the mask is set, `pass_thru` elsewhere; memory behind unset lanes is not touched."""

    name = "vector.maskedload"
    reads = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    mask = operand(VECTOR)
    pass_thru = operand(VECTOR)
    result = result(VECTOR)
    assembly = (
        "$base `[` $indices `]` `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def infer(self) -> Sequence[Type]:
        return [self.pass_thru.type]


class MaskedStore(Op):
    """As `vector.store` where the mask is set."""

    name = "vector.maskedstore"
    writes = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    mask = operand(VECTOR)
    value = operand(VECTOR)
    assembly = (
        "$base `[` $indices `]` `,` $mask `,` $value attr-dict `:` type($base) `,` type($mask) `,` type($value)"
    )


class Gather(Op):
    """Elements at `indices` plus, along the last axis, `index_vec` of each lane; `pass_thru` where the mask is unset."""

    name = "vector.gather"
    reads = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    index_vec = operand(VECTOR)
    mask = operand(VECTOR)
    pass_thru = operand(VECTOR)
    result = result(VECTOR)
    assembly = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $pass_thru attr-dict `:` "
        "type($base) `,` type($index_vec) `,` type($mask) `,` type($pass_thru) `into` type($result)"
    )

    def infer(self) -> Sequence[Type]:
        return [self.pass_thru.type]


class Scatter(Op):
    """Writes elements at computed places; where lanes meet, the last one stays."""

    name = "vector.scatter"
    writes = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    index_vec = operand(VECTOR)
    mask = operand(VECTOR)
    value = operand(VECTOR)
    assembly = (
        "$base `[` $indices `]` `[` $index_vec `]` `,` $mask `,` $value attr-dict `:` "
        "type($base) `,` type($index_vec) `,` type($mask) `,` type($value)"
    )


class Broadcast(Op):
    """A scalar in every lane, or a vector repeated along new leading axes."""

    name = "vector.broadcast"
    traits = frozenset({PURE})
    source = operand()
    result = result(VECTOR)
    assembly = "$source attr-dict `:` type($source) `to` type($result)"


class CreateMask(Op):
    """Lanes below the size are set; a size beyond either end saturates."""

    name = "vector.create_mask"
    traits = frozenset({PURE})
    sizes = variadic_operand(INDEX_)
    result = result(VECTOR)
    assembly = "$sizes attr-dict `:` type($result)"


class ConstantMask(Op):
    """`vector.create_mask` with constant sizes."""

    name = "vector.constant_mask"
    traits = frozenset({PURE})
    result = result(VECTOR)
    mask_dim_sizes = integer_list()


class Shuffle(Op):
    """Lanes of two vectors laid end to end, chosen by `mask`."""

    name = "vector.shuffle"
    traits = frozenset({PURE})
    v1 = operand(VECTOR)
    v2 = operand(VECTOR)
    result = result(VECTOR)
    mask = integer_list()


class Extract(Op):
    """The element or sub-vector at a position, whose places are integers or index values."""

    name = "vector.extract"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    position_values = variadic_operand(INDEX_)
    result = result()
    static_position = integers()

    @property
    def position(self) -> list[mixed.Entry]:
        """The position."""
        return mixed.merge(self.static_position, self.position_values)


class Insert(Op):
    """The vector with the element or sub-vector at a position replaced."""

    name = "vector.insert"
    traits = frozenset({PURE})
    source = operand()
    dest = operand(VECTOR)
    position_values = variadic_operand(INDEX_)
    result = result(VECTOR)
    static_position = integers()

    @property
    def position(self) -> list[mixed.Entry]:
        """The position."""
        return mixed.merge(self.static_position, self.position_values)

    def infer(self) -> Sequence[Type]:
        return [self.dest.type]


REDUCTIONS = (
    "add", "mul", "minui", "minsi", "minnumf", "maxui", "maxsi", "maxnumf", "and", "or", "xor", "maximumf", "minimumf",
)  # fmt: skip


class Reduction(Op):
    """`vector.reduction <add>, %v, %acc fastmath<reassoc> : vector<16xf32> into f32`: all lanes to one.

    The order is first to last from `acc`; with `reassoc` it is the halving tree: lane i with lane i + n/2, and so on.
    """

    name = "vector.reduction"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    acc = optional_operand()
    result = result()
    kind = DialectEnumeration("vector", "kind<{}>", REDUCTIONS)
    fastmath = fast_math()

    def infer(self) -> Sequence[Type]:
        return [element_type(self.vector.type)]


class Step(Op):
    """`[0, 1, .., n - 1]`."""

    name = "vector.step"
    traits = frozenset({PURE})
    result = result(VECTOR)
    assembly = "attr-dict `:` type($result)"


class ExtractStridedSlice(Op):
    """A box of a vector; the axes that `offsets` does not reach are taken whole."""

    name = "vector.extract_strided_slice"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    result = result(VECTOR)
    offsets = integer_list()
    sizes = integer_list()
    strides = integer_list()
    assembly = "$vector attr-dict `:` type($vector) `to` type($result)"

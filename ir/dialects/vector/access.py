"""Reading and writing memory: contiguous, masked, and at computed places."""

from __future__ import annotations

from collections.abc import Sequence

from ...definition import INDEX_, MEMREF, VECTOR, Op, boolean, operand, result, variadic_operand
from ...types import Type
from .checks import check_access, check_mask, check_places


class Load(Op):
    """Neighbouring elements along the last axis, which must be contiguous."""

    name = "vector.load"
    reads = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result(VECTOR)
    nontemporal = boolean(default=False)
    assembly = "$base `[` $indices `]` attr-dict `:` type($base) `,` type($result)"

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.result.type)


class Store(Op):
    """Writes neighbouring elements along the last axis."""

    name = "vector.store"
    writes = ("base",)
    value = operand(VECTOR)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    nontemporal = boolean(default=False)
    assembly = "$value `,` $base `[` $indices `]` attr-dict `:` type($base) `,` type($value)"

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.value.type)


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

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.pass_thru.type)
        check_mask(self, self.mask.type, self.pass_thru.type)


class MaskedStore(Op):
    """As `vector.store` where the mask is set."""

    name = "vector.maskedstore"
    writes = ("base",)
    base = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    mask = operand(VECTOR)
    value = operand(VECTOR)
    assembly = "$base `[` $indices `]` `,` $mask `,` $value attr-dict `:` type($base) `,` type($mask) `,` type($value)"

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.value.type)
        check_mask(self, self.mask.type, self.value.type)


class Gather(Op):
    """Elements at `indices` plus, along the last axis, `index_vec`; `pass_thru` where the mask is unset."""

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

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.pass_thru.type, contiguous=False)
        check_mask(self, self.mask.type, self.pass_thru.type)
        check_places(self, self.index_vec.type, self.pass_thru.type)


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

    def verify_(self) -> None:
        check_access(self, self.base, self.indices, self.value.type, contiguous=False)
        check_mask(self, self.mask.type, self.value.type)
        check_places(self, self.index_vec.type, self.value.type)

"""Reading and writing elements and whole buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...definition import (
    INDEX_,
    MEMREF,
    Op,
    boolean,
    enumeration,
    integer,
    make,
    operand,
    result,
    variadic_operand,
)
from ...interfaces import CustomForm
from ...types import I32, FloatType, MemRefType, Type
from ...values import Value
from .layout import element_of, rank_of, same_shape
from .views import expect_type

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer


def check_subscripts(op: Op, memref: Value, indices: Sequence[Value]) -> None:
    """Raise unless there is a subscript for each axis."""
    rank = rank_of(memref)
    if len(indices) != rank:
        raise op.error(f"needs {rank} subscripts for {memref.type}, got {len(indices)}")


def check_element(op: Op, memref: Value, value: Value) -> None:
    """Raise unless the value has the buffer's element type."""
    if value.type is not element_of(memref):
        raise op.error(f"stores a value of type {value.type} into {memref.type}")


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

    def verify_(self) -> None:
        check_subscripts(self, self.memref, self.indices)


class Store(Op):
    """Writes one element."""

    name = "memref.store"
    writes = ("memref",)
    value = operand()
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    nontemporal = boolean(default=False)
    assembly = "$value `,` $memref `[` $indices `]` attr-dict `:` type($memref)"

    def verify_(self) -> None:
        check_subscripts(self, self.memref, self.indices)
        check_element(self, self.memref, self.value)


class Copy(Op):
    """Copies all elements."""

    name = "memref.copy"
    reads = ("source",)
    writes = ("target",)
    source = operand(MEMREF)
    target = operand(MEMREF)
    assembly = "$source `,` $target attr-dict `:` type($source) `to` type($target)"

    def verify_(self) -> None:
        source, target = self.source.type, self.target.type
        assert isinstance(source, MemRefType) and isinstance(target, MemRefType)
        if source.element is not target.element or not same_shape(source, target):
            raise self.error(f"cannot copy {source} to {target}: shapes and element types must agree")


class Prefetch(Op, CustomForm):
    """`memref.prefetch %m[%i], read, locality<3>, data : memref<..>`: a hint."""

    name = "memref.prefetch"
    # Declared a write, so that nothing takes a hint without results for dead.
    writes = ("memref",)
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    isWrite = boolean()
    localityHint = integer(I32)
    isDataCache = boolean()

    def verify_(self) -> None:
        check_subscripts(self, self.memref, self.indices)
        if not 0 <= self.localityHint <= 3:
            raise self.error(f"needs a locality from 0 to 3, got {self.localityHint}")

    @classmethod
    def parse(cls, p: Parser) -> Prefetch:
        memref = p.operand()
        indices = p.list("[", p.operand, "]")
        p.expect(",")
        write = p.accept("write") or (p.expect("read"), False)[1]
        for word in (",", "locality", "<"):
            p.expect(word)
        locality = p.integer()
        p.expect(">")
        p.expect(",")
        data = p.accept("data") or (p.expect("instr"), False)[1]
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, memref)
        properties = {"isWrite": write, "localityHint": locality, "isDataCache": data}
        op = make(cls, (memref, indices), [], (), (), properties)
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.memref)
        w.write("[")
        w.values(self.indices)
        cache = "data" if self.isDataCache else "instr"
        w.write(f"], {'write' if self.isWrite else 'read'}, locality<{self.localityHint}>, {cache}")
        w.attr_dict(self, elided=("isWrite", "localityHint", "isDataCache"))
        w.write(f" : {self.memref.type}")


ATOMIC_KINDS = (
    "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori", "andi",
    "maxnumf", "minnumf",
)  # fmt: skip


class AtomicRmw(Op):
    """`%old = memref.atomic_rmw addf %v, %m[%i] : (f32, memref<..>) -> f32`: combines an element with a value."""

    name = "memref.atomic_rmw"
    reads = ("memref",)
    writes = ("memref",)
    value = operand()
    memref = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result()
    kind = enumeration(*ATOMIC_KINDS)
    assembly = (
        "$kind $value `,` $memref `[` $indices `]` attr-dict `:` "
        "`(` type($value) `,` type($memref) `)` `->` type($result)"
    )

    def infer(self) -> Sequence[Type]:
        return [self.value.type]

    def verify_(self) -> None:
        check_subscripts(self, self.memref, self.indices)
        check_element(self, self.memref, self.value)
        floats = self.kind.endswith("f")
        if self.kind != "assign" and floats != isinstance(self.value.type, FloatType):
            raise self.error(f"'{self.kind}' combines {'floats' if floats else 'integers'}, got {self.value.type}")

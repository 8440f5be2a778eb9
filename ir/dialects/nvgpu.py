"""Tensor cores and asynchronous copies of NVIDIA GPUs; upstream's `nvgpu`.

A matrix is spread over the 32 threads of a warp, each holding a few 32-bit registers of it, as the PTX manual lays out
for `ldmatrix` and `mma.sync`: a vector of registers, whose second axis counts the elements in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import IntegerAttr, dict_text
from ..definition import (
    INDEX_,
    MEMREF,
    OPERAND_SIZES,
    PURE,
    VECTOR,
    Op,
    TypeConstraint,
    boolean,
    flag,
    integer,
    make,
    operand,
    optional_operand,
    result,
    variadic_operand,
)
from ..interfaces import CustomForm
from ..support.dialect_properties import integer_list
from ..types import I32, INDEX, FloatType, IntegerType, OpaqueType, Type, VectorType, element_type
from .gpu import WORKGROUP
from .memref.access import check_subscripts
from .memref.layout import element_of
from .memref.views import expect_type

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

TOKEN = OpaqueType("nvgpu", "device.async.token")
"""What a copy or a group of copies is waited for by."""
TOKEN_ = TypeConstraint("a token of asynchronous copies", lambda t: t is TOKEN)


def write_attributes(w: Printer, op: Op) -> None:
    """All attributes in full: upstream's reader needs the types that the short spelling leaves out."""
    if attributes := {**op.properties, **op.attributes}:
        w.write(f" {dict_text(dict(sorted(attributes.items())))}")


class DeviceAsyncCopy(Op, CustomForm):
    """`nvgpu.device_async_copy %src[..], %dst[..], 8 : T to T`: neighbouring elements go to workgroup memory.

    They have arrived after a wait for the copy's group.  With `source_elements` the elements beyond it are zeros.
    """

    name = "nvgpu.device_async_copy"
    reads = ("source",)
    writes = ("dest",)
    dest = operand(MEMREF)
    dest_indices = variadic_operand(INDEX_)
    source = operand(MEMREF)
    source_indices = variadic_operand(INDEX_)
    source_elements = optional_operand(INDEX_)
    token = result(TOKEN_)
    dstElements = integer(INDEX)
    bypassL1 = flag()

    def infer(self) -> Sequence[Type]:
        return [TOKEN]

    def verify_(self) -> None:
        check_subscripts(self, self.dest, self.dest_indices)
        check_subscripts(self, self.source, self.source_indices)
        element = element_of(self.source)
        if element is not element_of(self.dest) or not isinstance(element, FloatType | IntegerType):
            raise self.error(f"copies numbers of one type, got {self.source.type} to {self.dest.type}")
        if getattr(self.dest.type, "space", None) is not WORKGROUP:
            raise self.error(f"copies to workgroup memory, not to {self.dest.type}")
        size = self.dstElements * element.width // 8
        if size not in (4, 8, 16):
            raise self.error(f"copies 4, 8 or 16 bytes, not {self.dstElements} elements of {element}")
        if self.bypassL1 and size != 16:
            raise self.error("copies 16 bytes when it bypasses the L1 cache")

    @classmethod
    def parse(cls, p: Parser) -> DeviceAsyncCopy:
        source = p.operand()
        source_indices = p.list("[", p.operand, "]")
        p.expect(",")
        dest = p.operand()
        dest_indices = p.list("[", p.operand, "]")
        p.expect(",")
        count = IntegerAttr(p.integer(), INDEX)
        valid = p.operand(INDEX) if p.accept(",") else None
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("to")
        expect_type(p, dest)
        groups = (dest, dest_indices, source, source_indices, valid)
        op = make(cls, groups, None, (), (), {"dstElements": count})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        for memref, indices in ((self.source, self.source_indices), (self.dest, self.dest_indices)):
            w.value(memref)
            w.write("[")
            w.values(indices)
            w.write("], ")
        w.write(str(self.dstElements))
        if self.source_elements is not None:
            w.write(", ")
            w.value(self.source_elements)
        w.attr_dict(self, elided=("dstElements", OPERAND_SIZES))
        w.write(f" : {self.source.type} to {self.dest.type}")


class DeviceAsyncCreateGroup(Op):
    """Makes a group of the copies that the thread has started since the last one."""

    name = "nvgpu.device_async_create_group"
    tokens = variadic_operand(TOKEN_)
    group = result(TOKEN_)
    assembly = "$tokens attr-dict"

    def infer(self) -> Sequence[Type]:
        return [TOKEN]


class DeviceAsyncWait(Op, CustomForm):
    """Waits until only the last `numGroups` groups of the thread are still on their way (absent: none)."""

    name = "nvgpu.device_async_wait"
    group = operand(TOKEN_)
    numGroups = integer(I32, optional=True)

    @classmethod
    def parse(cls, p: Parser) -> DeviceAsyncWait:
        op = make(cls, (p.operand(TOKEN),), [], (), (), {})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.value(self.group)
        write_attributes(w, self)


class LdMatrix(Op, CustomForm):
    """Tiles of eight rows of 16 bytes: threads 8 i to 8 i + 7 of a warp name the rows of tile i.

    Register i of a thread gets four bytes of row `lane / 4` of tile i (transposed: elements of column `lane / 4`).
    """

    name = "nvgpu.ldmatrix"
    reads = ("source",)
    source = operand(MEMREF)
    indices = variadic_operand(INDEX_)
    result = result(VECTOR)
    transpose = boolean()
    numTiles = integer(I32)

    def verify_(self) -> None:
        check_subscripts(self, self.source, self.indices)
        element = element_of(self.source)
        if getattr(self.source.type, "space", None) is not WORKGROUP:
            raise self.error(f"reads workgroup memory, not {self.source.type}")
        if not isinstance(element, FloatType | IntegerType) or element.width not in (8, 16, 32):
            raise self.error(f"moves elements of 8, 16 or 32 bits, not {element}")
        if self.transpose and element.width != 16:
            raise self.error(f"transposes elements of 16 bits only, not {element}")
        if self.numTiles not in (1, 2, 4):
            raise self.error(f"loads 1, 2 or 4 tiles, not {self.numTiles}")
        expected = VectorType((self.numTiles, 32 // element.width), element)
        if self.result.type is not expected:
            raise self.error(f"gives a {expected}, not a {self.result.type}")

    @classmethod
    def parse(cls, p: Parser) -> LdMatrix:
        source = p.operand()
        indices = p.list("[", p.operand, "]")
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("->")
        op = make(cls, (source, indices), [p.type()], (), (), {})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        w.write("[")
        w.values(self.indices)
        w.write("]")
        write_attributes(w, self)
        w.write(f" : {self.source.type} -> {self.result.type}")


class MmaSync(Op, CustomForm):
    """`nvgpu.mma.sync (%a, %b, %c) {mmaShape = [16, 8, 16]} : (..) -> ..`: c + a @ b by a whole warp."""

    name = "nvgpu.mma.sync"
    traits = frozenset({PURE})
    a = operand(VECTOR)
    b = operand(VECTOR)
    c = operand(VECTOR)
    result = result(VECTOR)
    mmaShape = integer_list()
    tf32Enabled = flag()

    def infer(self) -> Sequence[Type]:
        return [self.c.type]

    def verify_(self) -> None:
        if len(self.mmaShape) != 3 or self.mmaShape[:2] != (16, 8):
            raise self.error(f"needs a shape of 16, 8 and the length of the sum, got {list(self.mmaShape)}")
        m, n, k = self.mmaShape
        for what, value, count in (("a", self.a, m * k), ("b", self.b, k * n), ("c", self.c, m * n)):
            type = value.type
            if not isinstance(type, VectorType) or type.rank != 2 or type.num_elements * 32 != count:
                raise self.error(f"needs {count // 32} elements in two axes as '{what}', got {type}")
        if element_type(self.a.type) is not element_type(self.b.type):
            raise self.error(f"multiplies elements of one type, got {self.a.type} and {self.b.type}")

    @classmethod
    def parse(cls, p: Parser) -> MmaSync:
        a, b, c = p.list("(", p.operand, ")")
        attributes = p.optional_attr_dict()
        p.expect(":")
        p.type()
        op = make(cls, (a, b, c), None, (), (), {})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write("(")
        w.values(self.operands)
        w.write(")")
        write_attributes(w, self)
        w.write(" : (")
        w.types(v.type for v in self.operands)
        w.write(f") -> {self.result.type}")

"""Other ways to see a buffer: boxes, merged and split axes, other layouts; and its extents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from ...attributes import Attribute, IntegerAttr, StridedLayoutAttr
from ...builder import Builder
from ...definition import (
    INDEX_,
    MEMREF,
    OPERAND_SIZES,
    PURE,
    FoldResult,
    Op,
    integers,
    make,
    operand,
    result,
    variadic_operand,
)
from ...interfaces import CustomForm
from ...location import UNKNOWN, Location
from ...support import mixed
from ...support.dialect_properties import integer_lists
from ...types import DYNAMIC, INDEX, MemRefType, Type
from ...values import Value
from .allocation import Alloc, Alloca
from .layout import (
    collapsed_type,
    compatible,
    dropped_axes,
    element_of,
    expanded_type,
    subview_type,
    without_axes,
)

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer

VIEW_PROPERTIES = ("static_offsets", "static_sizes", "static_strides", OPERAND_SIZES)

V = TypeVar("V", bound=Op)


def make_view(
    cls: type[V],
    source: Value,
    offsets: Sequence[mixed.Extent],
    sizes: Sequence[mixed.Extent],
    strides: Sequence[mixed.Extent],
    type: Type,
    location: Location = UNKNOWN,
) -> V:
    """A detached Subview or ReinterpretCast."""
    static_offsets, offset_values = mixed.split(offsets)
    static_sizes, size_values = mixed.split(sizes)
    static_strides, stride_values = mixed.split(strides)
    properties = {"static_offsets": static_offsets, "static_sizes": static_sizes, "static_strides": static_strides}
    groups = (source, offset_values, size_values, stride_values)
    return make(cls, groups, [type], (), (), properties, location=location)


def expect_type(p: Parser, value: Value) -> None:
    """Parse a value's type, which must be the one that it has."""
    given = p.type()
    if given is not value.type:
        p.error(f"the operand has type {value.type}, not {given}")


def parse_groups(p: Parser) -> list[list[int]]:
    """`[[0, 1], [2]]`."""
    return p.list("[", lambda: p.list("[", p.integer, "]"), "]")


def group_text(groups: Sequence[Sequence[int]]) -> str:
    """`[[0, 1], [2]]`."""
    return str([list(g) for g in groups])


def check_groups(op: Op, groups: Sequence[Sequence[int]], rank: int) -> None:
    """Raise unless the groups, laid end to end, count the axes."""
    if [a for g in groups for a in g] != list(range(rank)) or any(not g for g in groups):
        raise op.error(f"needs groups that name the axes 0 to {rank - 1} in order, got {group_text(groups)}")


class Subview(Op, CustomForm):
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
    offsets = mixed.Entries("static_offsets", "offset_values", "offsets")
    """Where the box starts."""
    sizes = mixed.Entries("static_sizes", "size_values", "sizes")
    """The extents of the box."""
    strides = mixed.Entries("static_strides", "stride_values", "strides")
    """The steps between elements, in elements of the source's axes."""

    @classmethod
    def parse(cls, p: Parser) -> Subview:
        source = p.operand()
        offsets, sizes, strides = mixed.parse(p), mixed.parse(p), mixed.parse(p)
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("to")
        op = make_view(cls, source, offsets, sizes, strides, p.type())
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        mixed.write(w, self.offsets)
        w.write(" ")
        mixed.write(w, self.sizes)
        w.write(" ")
        mixed.write(w, self.strides)
        w.attr_dict(self, elided=VIEW_PROPERTIES)
        w.write(f" : {self.source.type} to {self.result.type}")

    def verify_(self) -> None:
        source = self.source.type
        assert isinstance(source, MemRefType)
        rank = source.rank
        for entries in (Subview.offsets, Subview.sizes, Subview.strides):
            count = len(entries.fixed(self))
            if count != rank:
                raise self.error(f"needs {rank} {entries.what} for {source}, got {count}")
            entries.check(self)
        for axis, (extent, offset, size, stride) in enumerate(
            zip(source.shape, self.static_offsets, self.static_sizes, self.static_strides, strict=True)
        ):
            if DYNAMIC in (extent, offset, size, stride) or size == 0:
                continue
            last = offset + (size - 1) * stride
            if not (0 <= offset < extent and 0 <= last < extent):
                raise self.error(f"runs from {offset} to {last} along axis {axis}, which has {extent} elements")
        whole = subview_type(source, self.offsets, self.sizes, self.strides)
        if dropped_axes(whole, self.result.type) is None:
            raise self.error(f"expects the result type {whole}, perhaps with unit axes dropped, got {self.result.type}")

    @property
    def dropped(self) -> tuple[int, ...]:
        """The unit axes that the result does not have."""
        source = self.source.type
        assert isinstance(source, MemRefType)
        found = dropped_axes(subview_type(source, self.offsets, self.sizes, self.strides), self.result.type)
        assert found is not None
        return found

    @classmethod
    def build(
        cls,
        b: Builder,
        source: Value,
        offsets: Sequence[mixed.Extent],
        sizes: Sequence[mixed.Extent],
        strides: Sequence[mixed.Extent] | None = None,
        drop: Sequence[int] = (),
    ) -> Subview:
        """A view with the result type that follows; `drop` names unit axes that the result shall not have."""
        assert isinstance(source.type, MemRefType)
        steps: Sequence[mixed.Extent] = [1] * len(sizes) if strides is None else strides
        whole = subview_type(source.type, offsets, sizes, steps)
        return b.insert(make_view(cls, source, offsets, sizes, steps, without_axes(whole, drop), b.location))


class CollapseShape(Op, CustomForm):
    """Merges neighbouring axes: `[[0, 1], [2]]`."""

    name = "memref.collapse_shape"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    result = result(MEMREF)
    reassociation = integer_lists()

    def infer(self) -> Sequence[Type]:
        assert isinstance(self.source.type, MemRefType)
        check_groups(self, self.reassociation, self.source.type.rank)
        collapsed = collapsed_type(self.source.type, self.reassociation)
        if collapsed is None:
            groups = group_text(self.reassociation)
            raise self.error(f"cannot merge axes {groups} of {self.source.type}: they are not contiguous")
        return [collapsed]

    @classmethod
    def parse(cls, p: Parser) -> CollapseShape:
        source = p.operand()
        groups = parse_groups(p)
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("into")
        op = make(cls, (source,), [p.type()], (), (), {"reassociation": groups})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        w.write(f" {group_text(self.reassociation)}")
        w.attr_dict(self, elided=("reassociation",))
        w.write(f" : {self.source.type} into {self.result.type}")


class ExpandShape(Op, CustomForm):
    """Splits axes: the groups name the result's axes that an axis of the source becomes."""

    name = "memref.expand_shape"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    output_values = variadic_operand(INDEX_)
    result = result(MEMREF)
    reassociation = integer_lists()
    static_output_shape = integers()
    output_shape = mixed.Entries("static_output_shape", "output_values", "extents")
    """The result's extents."""

    def verify_(self) -> None:
        source, shape = self.source.type, self.static_output_shape
        assert isinstance(source, MemRefType)
        ExpandShape.output_shape.check(self)
        check_groups(self, self.reassociation, len(shape))
        if len(self.reassociation) != source.rank:
            raise self.error(f"needs a group for each axis of {source}, got {group_text(self.reassociation)}")
        for group, extent in zip(self.reassociation, source.shape, strict=True):
            parts = [shape[a] for a in group]
            if extent == DYNAMIC and DYNAMIC not in parts:
                raise self.error(f"needs a dynamic extent in group {list(group)}, as the source's is")
            if DYNAMIC not in (extent, *parts) and math.prod(parts) != extent:
                raise self.error(f"splits an axis of {extent} elements into {' x '.join(map(str, parts))}")
        expected = expanded_type(source, self.reassociation, shape)
        if expected is not self.result.type:
            raise self.error(f"expects the result type {expected}, got {self.result.type}")

    @classmethod
    def parse(cls, p: Parser) -> ExpandShape:
        source = p.operand()
        groups = parse_groups(p)
        p.expect("output_shape")
        static, dynamic = mixed.split(mixed.parse(p))
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("into")
        properties = {"reassociation": groups, "static_output_shape": static}
        op = make(cls, (source, dynamic), [p.type()], (), (), properties)
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        w.write(f" {group_text(self.reassociation)} output_shape ")
        mixed.write(w, self.output_shape)
        w.attr_dict(self, elided=("reassociation", "static_output_shape"))
        w.write(f" : {self.source.type} into {self.result.type}")


class ReinterpretCast(Op, CustomForm):
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
    offsets = mixed.Entries("static_offsets", "offset_values", "offsets")
    """One offset, in elements."""
    sizes = mixed.Entries("static_sizes", "size_values", "sizes")
    """The extents."""
    strides = mixed.Entries("static_strides", "stride_values", "strides")
    """The strides, in elements."""

    def verify_(self) -> None:
        target = self.result.type
        assert isinstance(target, MemRefType)
        if len(self.static_offsets) != 1:
            raise self.error(f"needs one offset, got {len(self.static_offsets)}")
        for entries in (ReinterpretCast.offsets, ReinterpretCast.sizes, ReinterpretCast.strides):
            entries.check(self)
        layout = StridedLayoutAttr(self.static_strides, self.static_offsets[0])
        expected = MemRefType(self.static_sizes, element_of(self.source), layout, target.space)
        if len(self.static_strides) != len(self.static_sizes) or dropped_axes(expected, target) != ():
            raise self.error(f"expects the result type {expected}, got {target}")

    @classmethod
    def parse(cls, p: Parser) -> ReinterpretCast:
        source = p.operand()
        lists: list[list[mixed.Extent]] = []
        for word in ("to", ",", ","):
            p.expect(word)
            p.expect(("offset", "sizes", "strides")[len(lists)])
            p.expect(":")
            lists.append(mixed.parse(p))
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("to")
        offsets, sizes, strides = lists
        op = make_view(cls, source, offsets, sizes, strides, p.type())
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        for word, entries in (
            (" to offset: ", self.offsets),
            (", sizes: ", self.sizes),
            (", strides: ", self.strides),
        ):
            w.write(word)
            mixed.write(w, entries)
        w.attr_dict(self, elided=VIEW_PROPERTIES)
        w.write(f" : {self.source.type} to {self.result.type}")


class Cast(Op):
    """The same buffer with more or less of its shape and layout known."""

    name = "memref.cast"
    traits = frozenset({PURE})
    source = operand(MEMREF)
    result = result(MEMREF)
    assembly = "$source attr-dict `:` type($source) `to` type($result)"

    def verify_(self) -> None:
        if not compatible(self.source.type, self.result.type):
            raise self.error(f"cannot cast {self.source.type} to {self.result.type}: they are known to differ")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return self.source if self.source.type is self.result.type else None


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

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        """A static extent, or the value that gave a dynamic one to the op that made the buffer."""
        axis, source = constants[1], self.source.type
        assert isinstance(source, MemRefType)
        if not isinstance(axis, IntegerAttr) or not 0 <= axis.value < source.rank:
            return None
        if source.shape[axis.value] != DYNAMIC:
            return IntegerAttr(source.shape[axis.value], INDEX)
        maker = self.source.defining_op
        if isinstance(maker, Alloc | Alloca):
            return maker.sizes[source.shape[: axis.value].count(DYNAMIC)]
        if isinstance(maker, Subview | ReinterpretCast):
            dropped = maker.dropped if isinstance(maker, Subview) else ()
            kept = [size for i, size in enumerate(maker.sizes) if i not in dropped]
            size = kept[axis.value]
            return IntegerAttr(size, INDEX) if isinstance(size, int) else size
        return None

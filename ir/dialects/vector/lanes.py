"""Making vectors and moving their lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from ...definition import INDEX_, PURE, VECTOR, FoldResult, Op, integers, make, operand, result, variadic_operand
from ...interfaces import ConditionallySpeculatable, CustomForm, Evaluates
from ...support import mixed
from ...support.dialect_properties import integer_list
from ...types import DYNAMIC, INDEX, Type, VectorType, element_type
from ..memref.views import expect_type
from .checks import vector_type

if TYPE_CHECKING:
    from ...arrays import Array, Scalar
    from ...parser import Parser
    from ...printer import Printer


def check_position(op: Extract | Insert, vector: VectorType) -> None:
    """Raise unless the position lies inside the vector."""
    type(op).position.check(op)
    for place, extent in zip(op.static_position, vector.shape):
        if place != DYNAMIC and not 0 <= place < extent:
            raise op.error(f"has position {place} along an axis of {extent} elements of {vector}")


def part_type(op: Op, vector: VectorType, position: Sequence[int]) -> Type:
    """The type of what stands at a position."""
    if len(position) > vector.rank:
        raise op.error(f"has a position of {len(position)} places in {vector}")
    rest = vector.shape[len(position) :]
    return VectorType(rest, vector.element) if rest else vector.element


def place_of(op: Extract | Insert, vector: Any, values: Sequence[Any]) -> tuple[int, ...]:
    """A position with its computed places filled in."""
    place = tuple(type(op).position.filled(op, values))
    if any(not 0 <= p < extent for p, extent in zip(place, vector.shape)):
        raise op.error(f"has position {list(place)} in a vector of shape {list(vector.shape)}")
    return place


class Broadcast(Op, Evaluates):
    """A scalar in every lane, or a vector repeated along new leading axes."""

    name = "vector.broadcast"
    traits = frozenset({PURE})
    source = operand()
    result = result(VECTOR)
    assembly = "$source attr-dict `:` type($source) `to` type($result)"

    def evaluate(self, source: Array | Scalar) -> Array:
        """A scalar or array to an array of the result's shape."""
        import numpy as np

        return np.broadcast_to(source, vector_type(self.result.type).shape).copy()

    def verify_(self) -> None:
        source, target = self.source.type, vector_type(self.result.type)
        if element_type(source) is not target.element:
            raise self.error(f"cannot broadcast {source} to {target}: the element types differ")
        if isinstance(source, VectorType):
            shared = target.shape[target.rank - source.rank :] if source.rank <= target.rank else ()
            if len(shared) != source.rank or any(a not in (1, b) for a, b in zip(source.shape, shared, strict=True)):
                raise self.error(f"cannot broadcast {source} to {target}: trailing extents must be equal or 1")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        constant = constants[0]
        if self.source.type is self.result.type:
            return self.source
        if isinstance(constant, IntegerAttr | FloatAttr):
            return DenseAttr.splat(vector_type(self.result.type), constant)
        if isinstance(constant, DenseAttr) and constant.is_splat:
            return DenseAttr(vector_type(self.result.type), constant.data)
        return None


class Step(Op, Evaluates):
    """`[0, 1, .., n - 1]`."""

    name = "vector.step"
    traits = frozenset({PURE})
    result = result(VECTOR)
    assembly = "attr-dict `:` type($result)"

    def evaluate(self) -> Array:
        """An array of int64."""
        import numpy as np

        return np.arange(vector_type(self.result.type).shape[0], dtype=np.int64)

    def verify_(self) -> None:
        type = vector_type(self.result.type)
        if type.rank != 1 or type.element is not INDEX:
            raise self.error(f"gives a vector of indices with one axis, not {type}")


class Shuffle(Op, Evaluates, CustomForm):
    """Lanes of two vectors laid end to end, chosen by `mask`."""

    name = "vector.shuffle"
    traits = frozenset({PURE})
    v1 = operand(VECTOR)
    v2 = operand(VECTOR)
    result = result(VECTOR)
    mask = integer_list()

    def evaluate(self, v1: Array, v2: Array) -> Array:
        """The chosen lanes of two arrays."""
        import numpy as np

        return np.concatenate([v1, v2])[list(self.mask)]

    def infer(self) -> Sequence[Type]:
        v1, v2 = vector_type(self.v1.type), vector_type(self.v2.type)
        if v1.element is not v2.element or v1.shape[1:] != v2.shape[1:] or not v1.rank or not v2.rank:
            raise self.error(f"needs vectors that differ in their first extent alone, got {v1} and {v2}")
        if not self.mask:
            raise self.error("needs at least one lane in its mask")
        return [VectorType((len(self.mask), *v1.shape[1:]), v1.element)]

    def verify_(self) -> None:
        lanes = vector_type(self.v1.type).shape[0] + vector_type(self.v2.type).shape[0]
        for lane in self.mask:
            if not 0 <= lane < lanes:
                raise self.error(f"has lane {lane} in its mask, but the operands have {lanes} together")

    @classmethod
    def parse(cls, p: Parser) -> Shuffle:
        v1 = p.operand()
        p.expect(",")
        v2 = p.operand()
        mask = p.list("[", p.integer, "]")
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, v1)
        p.expect(",")
        expect_type(p, v2)
        op = make(cls, (v1, v2), None, (), (), {"mask": mask})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.values(self.operands)
        w.write(f" {list(self.mask)}")
        w.attr_dict(self, elided=("mask",))
        w.write(f" : {self.v1.type}, {self.v2.type}")


class Extract(Op, Evaluates, ConditionallySpeculatable, CustomForm):
    """The element or sub-vector at a position, whose places are integers or index values."""

    name = "vector.extract"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    position_values = variadic_operand(INDEX_)
    result = result()
    static_position = integers()
    position = mixed.Entries("static_position", "position_values", "positions")

    def evaluate(self, vector: Array, *values: Array | Scalar) -> Array:
        """The part of an array; an error when a computed place lies outside."""
        return vector[place_of(self, vector, values)].copy()

    def is_speculatable(self) -> bool:
        return not self.position_values

    def infer(self) -> Sequence[Type]:
        return [part_type(self, vector_type(self.vector.type), self.static_position)]

    def verify_(self) -> None:
        check_position(self, vector_type(self.vector.type))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        constant = constants[0]
        if isinstance(constant, DenseAttr) and constant.is_splat and not isinstance(self.result.type, VectorType):
            return constant.scalar()
        maker = self.vector.defining_op
        if isinstance(maker, Broadcast) and maker.source.type is self.result.type:
            return maker.source
        if isinstance(maker, Insert) and not self.position_values and not maker.position_values:
            if maker.static_position == self.static_position:
                return maker.source
        return None

    @classmethod
    def parse(cls, p: Parser) -> Extract:
        vector = p.operand()
        static, dynamic = mixed.split(mixed.parse(p))
        attributes = p.optional_attr_dict()
        p.expect(":")
        type = p.type()
        p.expect("from")
        expect_type(p, vector)
        op = make(cls, (vector, dynamic), [type], (), (), {"static_position": static})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.vector)
        mixed.write(w, self.position)
        w.attr_dict(self, elided=("static_position",))
        w.write(f" : {self.result.type} from {self.vector.type}")


class Insert(Op, Evaluates, ConditionallySpeculatable, CustomForm):
    """The vector with the element or sub-vector at a position replaced."""

    name = "vector.insert"
    traits = frozenset({PURE})
    source = operand()
    dest = operand(VECTOR)
    position_values = variadic_operand(INDEX_)
    result = result(VECTOR)
    static_position = integers()
    position = mixed.Entries("static_position", "position_values", "positions")

    def evaluate(self, source: Array | Scalar, dest: Array, *values: Array | Scalar) -> Array:
        """A copy of an array with a part replaced; an error when a computed place lies outside."""
        out = dest.copy()
        out[place_of(self, dest, values)] = source
        return out

    def is_speculatable(self) -> bool:
        return not self.position_values

    def infer(self) -> Sequence[Type]:
        return [self.dest.type]

    def verify_(self) -> None:
        dest = vector_type(self.dest.type)
        check_position(self, dest)
        expected = part_type(self, dest, self.static_position)
        if self.source.type is not expected:
            raise self.error(f"needs a {expected} for position {list(self.static_position)}, got {self.source.type}")

    @classmethod
    def parse(cls, p: Parser) -> Insert:
        source = p.operand()
        p.expect(",")
        dest = p.operand()
        static, dynamic = mixed.split(mixed.parse(p))
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, source)
        p.expect("into")
        expect_type(p, dest)
        op = make(cls, (source, dest, dynamic), None, (), (), {"static_position": static})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.value(self.source)
        w.write(", ")
        w.value(self.dest)
        w.write(" ")
        mixed.write(w, self.position)
        w.attr_dict(self, elided=("static_position",))
        w.write(f" : {self.source.type} into {self.dest.type}")


class ExtractStridedSlice(Op, Evaluates):
    """A box of a vector; the axes that `offsets` does not reach are taken whole."""

    name = "vector.extract_strided_slice"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    result = result(VECTOR)
    offsets = integer_list()
    sizes = integer_list()
    strides = integer_list()
    assembly = "$vector attr-dict `:` type($vector) `to` type($result)"

    def evaluate(self, vector: Array) -> Array:
        """The box of an array."""
        box = tuple(slice(o, o + n) for o, n in zip(self.offsets, self.sizes, strict=True))
        return vector[box].copy()

    def infer(self) -> Sequence[Type]:
        source = vector_type(self.vector.type)
        rank = len(self.offsets)
        if not rank == len(self.sizes) == len(self.strides) or rank > source.rank:
            raise self.error(f"needs equally many offsets, sizes and strides, at most {source.rank}")
        for offset, size, stride, extent in zip(self.offsets, self.sizes, self.strides, source.shape):
            if stride != 1 or not 0 <= offset < offset + size <= extent:
                raise self.error(f"needs strides of 1 and a box inside {source}")
        return [VectorType((*self.sizes, *source.shape[rank:]), source.element)]

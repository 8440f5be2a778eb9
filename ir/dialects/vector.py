"""Operations on `vector<16xf32>`: contiguous and masked memory access, shuffles, reductions; upstream's `vector`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from ..definition import (
    INDEX_,
    MEMREF,
    PURE,
    VECTOR,
    FoldResult,
    Op,
    boolean,
    integers,
    make,
    operand,
    optional_operand,
    result,
    variadic_operand,
)
from ..types import DYNAMIC, I1, INDEX, FloatType, IndexType, IntegerType, MemRefType, Type, VectorType, element_type
from ..values import Value
from . import mixed
from .dialect_properties import FAST_MATH_FLAGS, DialectEnumeration, fast_math, integer_list
from .memref.layout import strided
from .memref.views import expect_type

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer


def vector_type(type: Type) -> VectorType:
    """`type`, which the constraints have found to be a vector."""
    assert isinstance(type, VectorType)
    return type


def check_access(op: Op, base: Value, indices: Sequence[Value], type: Type, contiguous: bool = True) -> None:
    """Raise unless a vector of `type` can be read or written at `indices` of `base`."""
    buffer, vector = base.type, vector_type(type)
    assert isinstance(buffer, MemRefType)
    if len(indices) != buffer.rank:
        raise op.error(f"needs {buffer.rank} subscripts for {buffer}, got {len(indices)}")
    if buffer.element is not vector.element:
        raise op.error(f"moves a {vector} to or from {buffer}: the element types differ")
    if vector.rank > max(buffer.rank, 1):
        raise op.error(f"moves a {vector}, which has more axes than {buffer}")
    if contiguous and buffer.rank and strided(buffer)[0][-1] != 1:
        raise op.error(f"needs a buffer whose last axis has stride 1, got {buffer}")


def check_mask(op: Op, mask: Type, vector: Type) -> None:
    """Raise unless there is a mask bit for each lane."""
    expected = VectorType(vector_type(vector).shape, I1)
    if mask is not expected:
        raise op.error(f"needs a mask of type {expected} for {vector}, got {mask}")


def check_places(op: Op, places: Type, vector: Type) -> None:
    """Raise unless there is an integer or index for each lane."""
    given = vector_type(places)
    if given.shape != vector_type(vector).shape or not isinstance(given.element, IntegerType | IndexType):
        raise op.error(f"needs a vector of integers or indices with the lanes of {vector}, got {places}")


def check_mask_type(op: Op, type: VectorType, sizes: int) -> None:
    """Raise unless `type` is a mask with as many axes as there are sizes."""
    if type.element is not I1:
        raise op.error(f"gives a vector of i1, not {type}")
    if sizes != type.rank:
        raise op.error(f"needs {type.rank} sizes for {type}, got {sizes}")


def check_position(op: Op, vector: VectorType, static: Sequence[int], dynamic: Sequence[Value]) -> None:
    """Raise unless the position lies inside the vector."""
    mixed.check(op, "positions", static, dynamic)
    for place, extent in zip(static, vector.shape):
        if place != DYNAMIC and not 0 <= place < extent:
            raise op.error(f"has position {place} along an axis of {extent} elements of {vector}")


def part_type(op: Op, vector: VectorType, position: Sequence[int]) -> Type:
    """The type of what stands at a position."""
    if len(position) > vector.rank:
        raise op.error(f"has a position of {len(position)} places in {vector}")
    rest = vector.shape[len(position) :]
    return VectorType(rest, vector.element) if rest else vector.element


def mask_attr(type: VectorType, sizes: Sequence[int]) -> DenseAttr:
    """The mask with the lanes below `sizes` set."""
    bits = [1]
    for size, extent in zip(reversed(sizes), reversed(type.shape), strict=True):
        off = [0] * len(bits)
        bits = [bit for place in range(extent) for bit in (bits if place < size else off)]
    return DenseAttr.from_values(type, bits)


def flags_text(flags: frozenset[str]) -> str:
    """`fastmath<reassoc,contract>`."""
    return f"fastmath<{','.join(f for f in FAST_MATH_FLAGS if f in flags)}>"


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


class Broadcast(Op):
    """A scalar in every lane, or a vector repeated along new leading axes."""

    name = "vector.broadcast"
    traits = frozenset({PURE})
    source = operand()
    result = result(VECTOR)
    assembly = "$source attr-dict `:` type($source) `to` type($result)"

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
        if isinstance(constant, IntegerAttr | FloatAttr) and constant.value == constant.value:
            return DenseAttr.splat(vector_type(self.result.type), constant.value)
        if isinstance(constant, DenseAttr) and constant.is_splat:
            return DenseAttr(vector_type(self.result.type), constant.data)
        return None


class CreateMask(Op):
    """Lanes below the size are set; a size beyond either end saturates."""

    name = "vector.create_mask"
    traits = frozenset({PURE})
    sizes = variadic_operand(INDEX_)
    result = result(VECTOR)
    assembly = "$sizes attr-dict `:` type($result)"

    def verify_(self) -> None:
        check_mask_type(self, vector_type(self.result.type), len(self.sizes))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        sizes = [c.value for c in constants if isinstance(c, IntegerAttr)]
        return mask_attr(vector_type(self.result.type), sizes) if len(sizes) == len(constants) else None


class ConstantMask(Op):
    """`vector.create_mask` with constant sizes."""

    name = "vector.constant_mask"
    traits = frozenset({PURE})
    result = result(VECTOR)
    mask_dim_sizes = integer_list()

    def verify_(self) -> None:
        type = vector_type(self.result.type)
        check_mask_type(self, type, len(self.mask_dim_sizes))
        for size, extent in zip(self.mask_dim_sizes, type.shape, strict=True):
            if not 0 <= size <= extent:
                raise self.error(f"needs sizes from 0 to the extents of {type}, got {list(self.mask_dim_sizes)}")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return mask_attr(vector_type(self.result.type), self.mask_dim_sizes)

    @classmethod
    def parse(cls, p: Parser) -> ConstantMask:
        sizes = p.list("[", p.integer, "]")
        attributes = p.optional_attr_dict()
        p.expect(":")
        op = make(cls, (), [p.type()], (), (), {"mask_dim_sizes": sizes})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(str(list(self.mask_dim_sizes)))
        w.attr_dict(self, elided=("mask_dim_sizes",))
        w.write(f" : {self.result.type}")


class Shuffle(Op):
    """Lanes of two vectors laid end to end, chosen by `mask`."""

    name = "vector.shuffle"
    traits = frozenset({PURE})
    v1 = operand(VECTOR)
    v2 = operand(VECTOR)
    result = result(VECTOR)
    mask = integer_list()

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

    def infer(self) -> Sequence[Type]:
        return [part_type(self, vector_type(self.vector.type), self.static_position)]

    def verify_(self) -> None:
        check_position(self, vector_type(self.vector.type), self.static_position, self.position_values)

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

    def verify_(self) -> None:
        dest = vector_type(self.dest.type)
        check_position(self, dest, self.static_position, self.position_values)
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

    def verify_(self) -> None:
        vector, kind = vector_type(self.vector.type), self.kind
        if vector.rank != 1:
            raise self.error(f"reduces vectors of one axis, got {vector}")
        if self.acc is not None and self.acc.type is not vector.element:
            raise self.error(f"needs an accumulator of type {vector.element}, got {self.acc.type}")
        floats = isinstance(vector.element, FloatType)
        if kind not in ("add", "mul") and floats != kind.endswith("f"):
            raise self.error(f"<{kind}> reduces {'floats' if kind.endswith('f') else 'integers'}, got {vector}")

    @classmethod
    def parse(cls, p: Parser) -> Reduction:
        (kind,) = p.list("<", p.identifier, ">")
        p.expect(",")
        vector = p.operand()
        acc = p.operand() if p.accept(",") else None
        flags = p.list("<", p.identifier, ">") if p.accept("fastmath") else None
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, vector)
        p.expect("into")
        properties = {"kind": kind, "fastmath": flags}
        op = make(cls, (vector, acc), [p.type()], (), (), properties)
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(f"<{self.kind}>, ")
        w.values(self.operands)
        if self.fastmath:
            w.write(f" {flags_text(self.fastmath)}")
        w.attr_dict(self, elided=("kind", "fastmath"))
        w.write(f" : {self.vector.type} into {self.result.type}")


class Step(Op):
    """`[0, 1, .., n - 1]`."""

    name = "vector.step"
    traits = frozenset({PURE})
    result = result(VECTOR)
    assembly = "attr-dict `:` type($result)"

    def verify_(self) -> None:
        type = vector_type(self.result.type)
        if type.rank != 1 or type.element is not INDEX:
            raise self.error(f"gives a vector of indices with one axis, not {type}")


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

    def infer(self) -> Sequence[Type]:
        source = vector_type(self.vector.type)
        rank = len(self.offsets)
        if not rank == len(self.sizes) == len(self.strides) or rank > source.rank:
            raise self.error(f"needs equally many offsets, sizes and strides, at most {source.rank}")
        for offset, size, stride, extent in zip(self.offsets, self.sizes, self.strides, source.shape):
            if stride != 1 or not 0 <= offset < offset + size <= extent:
                raise self.error(f"needs strides of 1 and a box inside {source}")
        return [VectorType((*self.sizes, *source.shape[rank:]), source.element)]

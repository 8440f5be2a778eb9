"""Declarative operation definitions.

An op is a class with one descriptor for each operand, result, property, region and successor:

    class AddF(Op):
        '''Floating-point addition.'''

        name = "arith.addf"
        traits = frozenset({PURE, COMMUTATIVE, SAME_TYPE})
        lhs = operand(FLOAT_LIKE)
        rhs = operand(FLOAT_LIKE)
        result = result(FLOAT_LIKE)
        assembly = "$lhs `,` $rhs attr-dict `:` type($result)"

The class gives typed access (`op.lhs`), construction (`builder.create(AddF, x, y)`), the verifier's checks and, through
`assembly`, parsing and printing of the custom form.  Beyond that an op may define

    infer(self) -> Sequence[Type]            result types from operands, properties and regions
    verify_(self) -> None                    invariants that constraints cannot say
    fold(self, constants) -> FoldResult      `constants[i]` is the constant attribute of operand i or None
    evaluate(self, *operands) -> Any         the meaning, on NumPy arrays and scalars
    expand(self, b) -> Sequence[Value]       the op as simpler ops
    parse(cls, parser) / print(self, printer)   a custom form that `assembly` cannot say
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, overload

from .affine import AffineMap
from .attributes import (
    UNIT,
    AffineMapAttr,
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
)
from .operations import Block, Operation, Region, SingleResult
from .types import (
    I32,
    I64,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ShapedType,
    TensorType,
    Type,
    VectorType,
)
from .values import OpResult, Value


class Trait:
    """A fact about an op that passes rely on."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


PURE: Final = Trait("Pure")
"""No effect but its results; may be removed, merged, moved and repeated."""
COMMUTATIVE: Final = Trait("Commutative")
TERMINATOR: Final = Trait("Terminator")
ISOLATED: Final = Trait("IsolatedFromAbove")
"""Regions use nothing that is defined outside."""
CONSTANT: Final = Trait("ConstantLike")
"""No operands, one result, which the property `value` gives."""
SYMBOL: Final = Trait("Symbol")
"""Has the property `sym_name`."""
SYMBOL_TABLE: Final = Trait("SymbolTable")
NO_TERMINATOR: Final = Trait("NoTerminator")
RECURSIVE_EFFECTS: Final = Trait("RecursiveMemoryEffects")
"""Has the effects of the ops in its regions and no others."""
SAME_TYPE: Final = Trait("SameOperandsAndResultType")
ALLOCATES: Final = Trait("Allocates")
"""The result is fresh memory; an unused one may be removed, two are never merged."""


class TypeConstraint:
    """A set of types with a description for messages; membership is remembered, types being interned."""

    __slots__ = ("_known", "description", "predicate")

    def __init__(self, description: str, predicate: Callable[[Type], bool]) -> None:
        self.description = description
        self.predicate = predicate
        self._known: dict[Type, bool] = {}

    def __contains__(self, type: Type) -> bool:
        known = self._known.get(type)
        if known is None:
            known = self._known[type] = self.predicate(type)
        return known


def like(description: str, scalar: Callable[[Type], bool]) -> TypeConstraint:
    """Scalars for which `scalar` holds, and vectors and tensors of them."""
    return TypeConstraint(
        f"{description} or a vector or tensor of it",
        lambda t: scalar(t.element) if isinstance(t, VectorType | TensorType) else scalar(t),
    )


def _is_bool(type: Type) -> bool:
    return isinstance(type, IntegerType) and type.width == 1


def _is_signless(type: Type) -> bool:
    return isinstance(type, IntegerType) and not type.signedness


ANY = TypeConstraint("any type", lambda t: True)
FLOAT = TypeConstraint("a float", lambda t: isinstance(t, FloatType))
INTEGER = TypeConstraint("an integer", lambda t: isinstance(t, IntegerType))
SIGNLESS = TypeConstraint("a signless integer", _is_signless)
BOOL = TypeConstraint("i1", _is_bool)
INDEX_ = TypeConstraint("index", lambda t: isinstance(t, IndexType))
FLOAT_LIKE = like("a float", lambda t: isinstance(t, FloatType))
SIGNLESS_LIKE = like("a signless integer or index", lambda t: _is_signless(t) or isinstance(t, IndexType))
BOOL_LIKE = like("i1", _is_bool)
TENSOR = TypeConstraint("a tensor", lambda t: isinstance(t, TensorType))
MEMREF = TypeConstraint("a memref", lambda t: isinstance(t, MemRefType))
VECTOR = TypeConstraint("a vector", lambda t: isinstance(t, VectorType))
SHAPED = TypeConstraint("a tensor, memref or vector", lambda t: isinstance(t, ShapedType))
SCALAR = TypeConstraint("a scalar", lambda t: isinstance(t, FloatType | IntegerType | IndexType))
FUNCTION = TypeConstraint("a function type", lambda t: isinstance(t, FunctionType))


# Fields.  A field's place among the operands (results, regions) is fixed when its class is made.

ONE, OPTIONAL, MANY = "one", "optional", "many"


class Field:
    """What operand, result, region and successor fields share."""

    __slots__ = ("arity", "constraint", "index", "name", "segments")

    def __init__(self, arity: str, constraint: TypeConstraint = ANY) -> None:
        self.arity = arity
        self.constraint = constraint
        self.name = ""
        self.index = 0
        self.segments: tuple[Field, ...] = ()  # all fields of its kind, when one of them is variadic

    def range(self, op: Operation, total: int, sizes_key: str) -> tuple[int, int]:
        """`(start, stop)` of the field among `total` operands (or results, regions)."""
        fields = self.segments
        if not fields:
            return self.index, self.index + 1
        loose = sum(f.arity != ONE for f in fields)
        if loose > 1:
            sizes = op.properties.get(sizes_key)
            if not isinstance(sizes, DenseArrayAttr) or len(sizes.values) != len(fields):
                raise op.error(f"requires the property '{sizes_key}' with {len(fields)} entries")
            start = int(sum(sizes.values[: self.index]))
            return start, start + int(sizes.values[self.index])
        size = total - (len(fields) - 1)
        start = 0
        for f in fields[: self.index]:
            start += 1 if f.arity == ONE else size
        return start, start + (1 if self.arity == ONE else size)


OPERAND_SIZES = "operandSegmentSizes"
RESULT_SIZES = "resultSegmentSizes"


class OperandField(Field):
    """Base of the operand descriptors."""

    __slots__ = ()

    def of(self, op: Operation) -> tuple[Value, ...]:
        """The values of this field."""
        start, stop = self.range(op, len(op.operands), OPERAND_SIZES)
        return op.operands[start:stop]


class Operand(OperandField):
    """One operand."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> Value:
        if not self.segments:
            return op.operands[self.index]
        return self.of(op)[0]


class OptionalOperand(OperandField):
    """An operand that may be absent."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> Value | None:
        values = self.of(op)
        return values[0] if values else None


class VariadicOperand(OperandField):
    """Any number of operands."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> tuple[Value, ...]:
        return self.of(op)


class ResultField(Field):
    """Base of the result descriptors."""

    __slots__ = ()

    def of(self, op: Operation) -> tuple[OpResult, ...]:
        """The results of this field."""
        start, stop = self.range(op, len(op.results), RESULT_SIZES)
        return op.results[start:stop]


class Result(ResultField, SingleResult):
    """One result."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> OpResult:
        if not self.segments:
            return op.results[self.index]
        return self.of(op)[0]


class VariadicResult(ResultField):
    """Any number of results."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> tuple[OpResult, ...]:
        return self.of(op)


class RegionField(Field):
    """One region; `single_block` says whether it must have exactly one block."""

    __slots__ = ("single_block",)

    def __init__(self, single_block: bool = True) -> None:
        super().__init__(ONE)
        self.single_block = single_block

    def __get__(self, op: Operation, owner: object = None) -> Region:
        return op.regions[self.index]


class SuccessorField(Field):
    """One successor block."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> Block:
        return op.successors[self.index]


def operand(constraint: TypeConstraint = ANY) -> Operand:
    """One operand whose type satisfies `constraint`."""
    return Operand(ONE, constraint)


def optional_operand(constraint: TypeConstraint = ANY) -> OptionalOperand:
    """An operand that may be absent."""
    return OptionalOperand(OPTIONAL, constraint)


def variadic_operand(constraint: TypeConstraint = ANY) -> VariadicOperand:
    """Any number of operands."""
    return VariadicOperand(MANY, constraint)


def result(constraint: TypeConstraint = ANY) -> Result:
    """One result."""
    return Result(ONE, constraint)


def variadic_result(constraint: TypeConstraint = ANY) -> VariadicResult:
    """Any number of results."""
    return VariadicResult(MANY, constraint)


def region(single_block: bool = True) -> RegionField:
    """One region."""
    return RegionField(single_block)


def successor() -> SuccessorField:
    """One successor block."""
    return SuccessorField(ONE)


T = TypeVar("T")


class Property(Generic[T]):
    """An inherent attribute, read and given as the Python value that it stands for.

    `kind` is the attribute class that the verifier demands, `encode` and `decode` translate.  A property with a
    default, or an optional one (read as None), may be absent.
    """

    __slots__ = ("decode", "default", "description", "encode", "kind", "name", "optional", "type")

    def __init__(
        self,
        kind: type[Attribute],
        encode: Callable[[Any], Attribute],
        decode: Callable[[Any], T],
        description: str,
        default: Any = None,
        optional: bool = False,
        type: Type | None = None,
    ) -> None:
        self.type = type
        """The only type of the number (or of the elements), where the text need not repeat it."""
        self.kind = kind
        self.encode = encode
        self.decode = decode
        self.description = description
        self.default = default
        self.optional = optional or default is not None
        self.name = ""

    def __get__(self, op: Operation, owner: object = None) -> T:
        found = op.properties.get(self.name)
        return self.default if found is None else self.decode(found)

    def to_attribute(self, value: Any) -> Attribute:
        """The attribute for a Python value; attributes pass through."""
        return value if isinstance(value, Attribute) else self.encode(value)


def attr(kind: type[Attribute] = Attribute, optional: bool = False, default: Any = None) -> Property[Any]:
    """Any attribute of a class, read as it is."""

    def refuse(value: Any) -> Attribute:
        raise TypeError(f"expected {kind.__name__}, got {value!r}")

    return Property(kind, refuse, lambda a: a, kind.__name__, default, optional)


@overload
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, optional: Literal[False] = False
) -> Property[int]: ...
@overload
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, *, optional: Literal[True]
) -> Property[int | None]: ...
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, optional: bool = False
) -> Property[int] | Property[int | None]:
    """An integer of a fixed type."""
    return Property(
        IntegerAttr,
        lambda v: IntegerAttr(v, type),
        lambda a: a.value,
        f"an integer of type {type}",
        default,
        optional,
        type,
    )


def number(type: FloatType, default: float | None = None) -> Property[float]:
    """A float of a fixed type."""
    return Property(
        FloatAttr, lambda v: FloatAttr(v, type), lambda a: a.value, f"a float of type {type}", default, False, type
    )


@overload
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, optional: Literal[False] = False
) -> Property[tuple[int, ...]]: ...
@overload
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, *, optional: Literal[True]
) -> Property[tuple[int, ...] | None]: ...
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, optional: bool = False
) -> Property[tuple[int, ...]] | Property[tuple[int, ...] | None]:
    """`array<i64: ..>`, read as a tuple of ints."""
    fixed = None if default is None else tuple(default)
    return Property(
        DenseArrayAttr,
        lambda v: DenseArrayAttr(v, element),
        lambda a: a.values,
        f"array<{element}>",
        fixed,
        optional,
        element,
    )


@overload
def string(default: str | None = None, optional: Literal[False] = False) -> Property[str]: ...
@overload
def string(default: str | None = None, *, optional: Literal[True]) -> Property[str | None]: ...
def string(default: str | None = None, optional: bool = False) -> Property[str] | Property[str | None]:
    """A string."""
    return Property(StringAttr, StringAttr, lambda a: a.value, "a string", default, optional)


def type_(optional: bool = False) -> Property[Any]:
    """A type, read as the type itself."""
    return Property(TypeAttr, TypeAttr, lambda a: a.type, "a type", None, optional)


def symbol_ref() -> Property[str]:
    """`@name`, read as the name."""
    return Property(SymbolRefAttr, SymbolRefAttr, lambda a: a.root, "a symbol")


def affine_map() -> Property[AffineMap]:
    """An affine map."""
    return Property(AffineMapAttr, AffineMapAttr, lambda a: a.map, "an affine map")


@overload
def array(
    optional: Literal[False] = False, default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...]]: ...
@overload
def array(
    optional: Literal[True], default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...] | None]: ...
def array(
    optional: bool = False, default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...]] | Property[tuple[Attribute, ...] | None]:
    """`[..]`, read as a tuple of attributes."""
    return Property(
        ArrayAttr, ArrayAttr, lambda a: a.elements, "an array", None if default is None else tuple(default), optional
    )


def boolean(default: bool | None = None) -> Property[bool]:
    """`true` or `false`."""
    return Property(
        IntegerAttr, lambda v: IntegerAttr(bool(v), IntegerType(1)), lambda a: bool(a.value), "a bool", default
    )


def flag() -> Property[bool]:
    """A unit attribute, present or not, read as a bool."""
    return Property(UnitAttr, lambda v: UNIT, lambda a: True, "unit", False, optional=True)


class Enumeration(Property[str]):
    """One of `names`, stored as its position (an integer attribute) and written as a bare word in custom form."""

    __slots__ = ("names",)

    names: tuple[str, ...]

    def __init__(self, names: Sequence[str], type: IntegerType, default: str | None) -> None:
        self.names = tuple(names)
        positions = {n: i for i, n in enumerate(self.names)}

        def encode(value: Any) -> Attribute:
            if value not in positions:
                raise ValueError(f"{value!r} is none of {', '.join(self.names)}")
            return IntegerAttr(positions[value], type)

        description = f"one of {', '.join(self.names)}"
        def decode(attribute: Any) -> str:
            position: int = attribute.value
            return self.names[position]

        super().__init__(IntegerAttr, encode, decode, description, default, False, type)


def enumeration(*names: str, type: IntegerType = I64, default: str | None = None) -> Enumeration:
    """An enumeration; reads as the name."""
    return Enumeration(names, type, default)


class OpDefinition:
    """What a class body declared: its fields in order."""

    __slots__ = ("operands", "properties", "regions", "results", "successors")

    def __init__(self) -> None:
        self.operands: list[OperandField] = []
        self.results: list[ResultField] = []
        self.regions: list[RegionField] = []
        self.successors: list[SuccessorField] = []
        self.properties: dict[str, Property[Any]] = {}

    def lists(self) -> tuple[list[Any], ...]:
        """The four positional kinds."""
        return self.operands, self.results, self.regions, self.successors

    def copy(self) -> OpDefinition:
        """A copy for a subclass to extend."""
        new = OpDefinition()
        for mine, theirs in zip(new.lists(), self.lists(), strict=True):
            mine += theirs
        new.properties = dict(self.properties)
        return new


FoldResult = Value | Attribute | Sequence[Value | Attribute] | None

OPS: dict[str, type[Op]] = {}
"""All op classes defined so far, by name; `registry.lookup` imports dialects on demand."""


class Op(Operation):
    """Base of all registered operations."""

    __slots__ = ()
    definition: ClassVar[OpDefinition] = OpDefinition()
    assembly: ClassVar[str | None] = None
    reads: ClassVar[tuple[str, ...]] = ()
    """Names of the memref operands that the op reads."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Names of the memref operands that the op writes."""
    closed_regions: ClassVar[tuple[str, ...]] = ()
    """Names of the regions that use nothing from outside, so that constants stay inside; see also `ISOLATED`."""
    cost: ClassVar[int] = 1
    """Rough cost of one scalar evaluation in additions; fusion weighs recomputation by it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        definition = cls.definition.copy()
        kinds: list[tuple[type[Field], list[Any]]] = list(
            zip((OperandField, ResultField, RegionField, SuccessorField), definition.lists())
        )
        for key, value in list(vars(cls).items()):
            if isinstance(value, Property):
                value.name = key
                definition.properties[key] = value  # pyright: ignore[reportUnknownArgumentType]
                continue
            field: Any = value
            for kind, fields in kinds:
                if isinstance(value, kind):
                    field.name = key
                    # A field that the class declares anew keeps the place that its base gave it.
                    field.index = next((i for i, f in enumerate(fields) if f.name == key), len(fields))
                    fields[field.index : field.index + 1] = [field]
        for _, fields in kinds:
            if any(f.arity != ONE for f in fields):
                for i, f in enumerate(fields):
                    if vars(cls).get(f.name) is not f:  # inherited: the base may have other fields beside it
                        fields[i] = copy(f)
                        setattr(cls, f.name, fields[i])
                for f in fields:
                    f.segments = tuple(fields)
        cls.definition = definition
        cls.infers = cls.infer is not Op.infer or SAME_TYPE in cls.traits
        if cls.name and "name" in vars(cls):
            OPS[cls.name] = cls

    infers: ClassVar[bool] = False
    """Whether result types follow from operands, properties and regions."""

    def infer(self) -> Sequence[Type]:
        """The result types; ShapeError or DTypeError when the operands do not fit."""
        if SAME_TYPE in self.traits:
            return [self.operands[0].type] * len(self.definition.results)
        raise self.error("has no rule for its result types")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        """A value or constant (or one for each result) that this op equals, or None."""
        return None

    def named_operands(self) -> Iterator[tuple[str, Value]]:
        """`(field name, value)` for every operand."""
        for f in self.definition.operands:
            for value in f.of(self):
                yield f.name, value

    def effects(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """`(read, written)` memrefs of the op itself, not of its regions."""
        if not self.reads and not self.writes:
            return (), ()
        values = list(self.named_operands())
        return (
            tuple(v for n, v in values if n in self.reads),
            tuple(v for n, v in values if n in self.writes),
        )


def flatten(definition: OpDefinition, groups: Sequence[Any], name: str) -> tuple[list[Value], list[int]]:
    """Operands given by field (a value, None, or a sequence for a variadic one) as a flat list and their sizes."""
    if len(groups) != len(definition.operands):
        expected = ", ".join(f.name for f in definition.operands)
        raise TypeError(f"{name} takes {len(definition.operands)} operands ({expected}), got {len(groups)}")
    flat: list[Value] = []
    sizes: list[int] = []
    for f, group in zip(definition.operands, groups, strict=True):
        values: Sequence[Value] = group if f.arity == MANY else [] if group is None else [group]
        if f.arity == ONE and group is None:
            raise TypeError(f"{name} needs the operand '{f.name}'")
        flat += values
        sizes.append(len(values))
    return flat, sizes


def make(
    cls: type[T],
    groups: Sequence[Any],
    results: Sequence[Type] | None,
    regions: Sequence[Region],
    successors: Sequence[Block],
    properties: Mapping[str, Any],
    **rest: Any,
) -> T:
    """A detached op: operands by field, properties as Python values, result types inferred when not given."""
    assert issubclass(cls, Op)
    definition = cls.definition
    flat, sizes = flatten(definition, groups, cls.name)
    attributes: dict[str, Attribute] = {}
    for key, value in properties.items():
        declared = definition.properties.get(key)
        if declared is None:
            raise TypeError(f"{cls.name} has no property '{key}'")
        if value is not None and not (value is False and declared.kind is UnitAttr):
            attributes[key] = declared.to_attribute(value)
    if sum(f.arity != ONE for f in definition.operands) > 1:
        attributes[OPERAND_SIZES] = DenseArrayAttr(sizes, I32)
    op = cls(flat, () if results is None else results, attributes, None, regions, successors, **rest)
    if results is None and (definition.results or cls.infers):
        try:
            op.results = tuple([OpResult(t, op, i) for i, t in enumerate(op.infer())])
        except Exception:
            op.drop_references()
            raise
    return op

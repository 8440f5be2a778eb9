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
    implied_terminator                       the terminator that the regions of `assembly` may leave out
    outer_properties                         properties that generic form writes among the attributes, as upstream does

declare `api`, its function in the front-end, and `samples`, on which it is tried (`ir.declared`),
and state, by further bases, what else passes may ask of it (`ir.interfaces`): its meaning on NumPy arrays, a custom
form that `assembly` cannot say, how it is written at the kernel level, its derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, ClassVar, TypeVar

from .attributes import Attribute, DenseArrayAttr, UnitAttr
from .constraints import (
    ANY,
    BOOL,
    BOOL_LIKE,
    FLOAT,
    FLOAT_LIKE,
    FUNCTION,
    INDEX_,
    INTEGER,
    MEMREF,
    SCALAR,
    SHAPED,
    SIGNLESS,
    SIGNLESS_LIKE,
    TENSOR,
    VECTOR,
    TypeConstraint,
    like,
)
from .declared import Api, Argument, Sample
from .fields import (
    MANY,
    ONE,
    OPERAND_SIZES,
    OPTIONAL,
    RESULT_SIZES,
    Field,
    Operand,
    OperandField,
    OptionalOperand,
    RegionField,
    Result,
    ResultField,
    SuccessorField,
    VariadicOperand,
    VariadicResult,
    operand,
    optional_operand,
    region,
    result,
    successor,
    variadic_operand,
    variadic_result,
)
from .interfaces import abstract_members, undefined_members
from .operations import Block, Operation, Region
from .properties import (
    Enumeration,
    Property,
    affine_map,
    array,
    attr,
    boolean,
    enumeration,
    flag,
    integer,
    integers,
    number,
    string,
    symbol_ref,
    type_,
)
from .traits import (
    ALLOCATES,
    COMMUTATIVE,
    CONSTANT,
    ELEMENTWISE,
    ISOLATED,
    LOOP,
    NO_TERMINATOR,
    PURE,
    RECURSIVE_EFFECTS,
    SAME_TYPE,
    SYMBOL,
    SYMBOL_TABLE,
    TERMINATOR,
    Trait,
)
from .types import I32, Type
from .values import OpResult, Value

__all__ = [
    "ALLOCATES",
    "ANY",
    "BOOL",
    "BOOL_LIKE",
    "COMMUTATIVE",
    "CONSTANT",
    "ELEMENTWISE",
    "FLOAT",
    "FLOAT_LIKE",
    "FUNCTION",
    "INDEX_",
    "INTEGER",
    "ISOLATED",
    "LOOP",
    "MANY",
    "MEMREF",
    "NO_TERMINATOR",
    "ONE",
    "OPERAND_SIZES",
    "OPS",
    "OPTIONAL",
    "PURE",
    "RECURSIVE_EFFECTS",
    "RESULT_SIZES",
    "SAME_TYPE",
    "SCALAR",
    "SHAPED",
    "SIGNLESS",
    "SIGNLESS_LIKE",
    "SYMBOL",
    "SYMBOL_TABLE",
    "TENSOR",
    "TERMINATOR",
    "VECTOR",
    "Api",
    "Argument",
    "Enumeration",
    "Field",
    "Op",
    "OpDefinition",
    "Operand",
    "OperandField",
    "OptionalOperand",
    "Property",
    "RegionField",
    "Result",
    "ResultField",
    "Sample",
    "SuccessorField",
    "Trait",
    "TypeConstraint",
    "VariadicOperand",
    "VariadicResult",
    "affine_map",
    "array",
    "attr",
    "boolean",
    "enumeration",
    "flag",
    "flatten",
    "integer",
    "integers",
    "like",
    "make",
    "number",
    "operand",
    "optional_operand",
    "region",
    "result",
    "string",
    "successor",
    "symbol_ref",
    "type_",
    "variadic_operand",
    "variadic_result",
]


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
        """The operand, result, region and successor fields, each in order."""
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
ON_REDEFINITION: list[Callable[[], None]] = []
"""Called when a class takes the name of another, as it does where a cell of a notebook is run again: what was compiled
with the former one goes."""


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
    members: ClassVar[tuple[str, ...]] = ()
    """What a family leaves to its ops to define: its own methods that are abstract."""
    implied_terminator: ClassVar[type[Op] | None] = None
    """The terminator that the regions of `assembly` may leave out."""
    cost: ClassVar[int] = 1
    """Rough cost of one scalar evaluation in additions; fusion weighs recomputation by it."""
    api: ClassVar[Api | None] = None
    """The function of the front-end that applies the op."""
    samples: ClassVar[tuple[Sample, ...]] = ()
    """Operands on which the op is tried."""

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
        cls.members = abstract_members(cls)
        cls.infers = cls.infer is not Op.infer or SAME_TYPE in cls.traits
        if cls.name and "name" in vars(cls):
            if missing := undefined_members(cls):
                raise TypeError(f"{cls.name} does not define {', '.join(missing)}")
            is_anew = cls.name in OPS
            OPS[cls.name] = cls
            if is_anew:
                for forget in ON_REDEFINITION:
                    forget()

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


T = TypeVar("T")


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
        if value is None or value is declared.default:
            continue
        attribute = declared.to_attribute(value)
        # A default is left out, so that equal ops have equal properties and both forms of text say the same.
        default = None if declared.kind is UnitAttr else declared.default
        if default is None or attribute is not declared.to_attribute(default):
            attributes[key] = attribute
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

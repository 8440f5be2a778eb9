"""Fields of op classes: descriptors that read operands, results, regions and successors by name.

A field's place among the operands (results, regions) is fixed when its class is made.
"""

from __future__ import annotations

from .attributes import DenseArrayAttr
from .constraints import ANY, TypeConstraint
from .operations import Block, Operation, Region, SingleResult
from .values import OpResult, Value

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
    """One region; `single_block`: it must have exactly one block, `bare`: which takes no arguments."""

    __slots__ = ("bare", "single_block")

    def __init__(self, single_block: bool = True, bare: bool = False) -> None:
        super().__init__(ONE)
        self.single_block = single_block
        self.bare = bare

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


def region(single_block: bool = True, bare: bool = False) -> RegionField:
    """One region."""
    return RegionField(single_block, bare)


def successor() -> SuccessorField:
    """One successor block."""
    return SuccessorField(ONE)

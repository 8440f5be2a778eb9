"""Rewrite rules as rows of a table.

    x, p, q = captures("x p q")
    c, d = constants("c d")
    add, transpose = term(AddI), term(Transpose)

    RULES = table(
        (add(x, 0), x, "x + 0 -> x"),
        (add(add(x, c), d), add(x, compute(sum_of, c, d)), "one constant"),
        (transpose(transpose(x, axes=p), axes=q), transpose(x, axes=compute(compose, p, q)), "one transpose"),
        (mul(x, c), shift(x, compute(log2, c)), "x * 2**n -> x << n", compute(is_power_of_two, c)),
    )

A row is a pattern, its replacement, what it does, and maybe a condition.  In a pattern a number stands for a constant
(scalar or splat) of exactly that value, 0.0 and -0.0 being different; the same capture twice stands for the same value;
operands of commutative ops match in either order; keywords match properties as the Python values that they read as.
A replacement's ops get the fused location of all ops that the pattern matched.  A row whose replacement would have
another type than the root's result (`x + 0 -> x` where x is broadcast) does not apply.

What no row can say is a function: `@rule(If, "a constant condition leaves one branch")`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any, TypeVar

from .attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from .definition import COMMUTATIVE, Op
from .operations import Operation
from .rewriter import NoConstantError, Rewriter, Rule, location_of
from .types import Type
from .values import Value

_O = TypeVar("_O", bound=Op)
_R = TypeVar("_R")


class Capture:
    """Any value (as an operand) or any property (as a keyword); the same name must be the same each time."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class ConstantCapture(Capture):
    """A value that is a constant; `compute` gets its attribute."""

    __slots__ = ()


class Compute:
    """`function(*arguments)` of what captures stand for: values, attributes of constants, properties."""

    __slots__ = ("arguments", "function")

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Capture]) -> None:
        self.function = function
        self.arguments = tuple(arguments)

    def evaluate(self, bound: dict[str, Any], rewriter: Rewriter) -> Any:
        """The result for what was matched."""
        values: list[Any] = [
            rewriter.constant_of(bound[a.name]) if isinstance(a, ConstantCapture) else bound[a.name]
            for a in self.arguments
        ]
        return self.function(*values)


class Term:
    """An op in a pattern or a replacement."""

    __slots__ = ("cls", "operands", "properties")

    def __init__(self, cls: type[Op], operands: Sequence[Pattern], properties: dict[str, Any]) -> None:
        unknown = properties.keys() - cls.definition.properties.keys()
        if unknown:
            raise TypeError(f"{cls.name} has no property '{min(unknown)}'")
        self.cls = cls
        self.operands = tuple(operands)
        self.properties = properties


Pattern = Capture | Term | Compute | int | float
Row = tuple[Term, Pattern, str] | tuple[Term, Pattern, str, Compute]


def captures(names: str) -> tuple[Capture, ...]:
    """Captures of the names separated by blanks."""
    return tuple(Capture(name) for name in names.split())


def constants(names: str) -> tuple[ConstantCapture, ...]:
    """Captures of constants."""
    return tuple(ConstantCapture(name) for name in names.split())


def compute(function: Callable[..., Any], *arguments: Capture) -> Compute:
    """A property, a constant (a number or an attribute) or a condition computed from captures."""
    return Compute(function, arguments)


def term(cls: type[Op]) -> Callable[..., Term]:
    """A function that makes terms of an op class: operands in order, properties by name."""
    return lambda *operands, **properties: Term(cls, operands, properties)


def table(*rows: Row) -> tuple[Rule, ...]:
    """The rules for rows `(pattern, replacement, text)` or `(pattern, replacement, text, condition)`."""
    return tuple(_compile(row[0], row[1], row[2], row[3] if len(row) == 4 else None) for row in rows)


def rule(root: type[_O], text: str) -> Callable[[Callable[[_O, Rewriter], Sequence[Value] | None]], Rule]:
    """A rule from a function; see `Rule` for what it returns."""
    return lambda rewrite: Rule(root, text, rewrite)


# Matching.  A pattern becomes nested functions once; each enters what it captures in `bound`.

_Match = Callable[[Any, dict[str, Any], list[Operation], Rewriter], bool]


def _compile(pattern: Term, replacement: Pattern, text: str, condition: Compute | None = None) -> Rule:
    variants = [(_needs(v), _match_op(v)) for v in _variants(pattern, _repeated(pattern))]
    count = len(pattern.operands)

    def rewrite(op: Operation, rewriter: Rewriter) -> Sequence[Value] | None:
        operands: Any = op.operands
        if len(operands) != count:
            return None
        for needs, match in variants:
            # Nearly all attempts end here, so this costs no more than a look at the operands.
            for i, cls in needs:
                if operands[i] not in rewriter.known if cls is None else type(operands[i].owner) is not cls:
                    break
            else:
                if (value := attempt(op, rewriter, match)) is not None:
                    return value
        return None

    def attempt(op: Operation, rewriter: Rewriter, match: _Match) -> Sequence[Value] | None:
        bound: dict[str, Any] = {}
        ops: list[Operation] = [op]
        if not match(op, bound, ops, rewriter) or not (condition is None or condition.evaluate(bound, rewriter)):
            return None
        if len(ops) > 1:
            rewriter.location = location_of(ops)
        result = op.results[0]
        value = _build(replacement, bound, rewriter, result.type)
        if value.type is result.type:
            return [value]
        rewriter.location = op.location
        return None

    return Rule(pattern.cls, text, rewrite)


def _variants(pattern: Any, repeated: frozenset[str]) -> list[Any]:
    """The pattern with the operands of commutative ops in every order that can make a difference.

    Constants stand on the right already, so that only ops and captures that occur elsewhere are open.
    """
    if not isinstance(pattern, Term):
        return [pattern]
    free = COMMUTATIVE in pattern.cls.traits and any(
        isinstance(o, Term) or (isinstance(o, Capture) and o.name in repeated) for o in pattern.operands
    )
    return [
        Term(pattern.cls, choice, pattern.properties)
        for order in (permutations(pattern.operands) if free else [pattern.operands])
        for choice in product(*(_variants(o, repeated) for o in order))
    ]


def _needs(pattern: Term) -> list[tuple[int, type[Op] | None]]:
    """What the root's operands must be: `(operand, class of its op)`, None in place of the class for a constant."""
    found: list[tuple[int, type[Op] | None]] = []
    for i, item in enumerate(pattern.operands):
        if isinstance(item, Term):
            found.append((i, item.cls))
        elif isinstance(item, ConstantCapture | int | float):
            found.append((i, None))
    return found


def _repeated(pattern: Term) -> frozenset[str]:
    """The names of captures that occur more than once among the operands of a pattern."""
    counts: dict[str, int] = {}
    pending: list[Pattern] = [pattern]
    while pending:
        item = pending.pop()
        if isinstance(item, Term):
            pending += item.operands
        elif isinstance(item, Capture):
            counts[item.name] = counts.get(item.name, 0) + 1
    return frozenset(name for name, count in counts.items() if count > 1)


def _match_op(pattern: Term) -> _Match:
    count = len(pattern.operands)
    # What rejects most stands first: numbers, then ops, then captures.
    order = sorted(
        range(count), key=lambda i: (isinstance(pattern.operands[i], Capture), isinstance(pattern.operands[i], Term))
    )
    steps = [(i, _match_value(pattern.operands[i])) for i in order]
    properties = list(pattern.properties.items())

    def match(op: Any, bound: dict[str, Any], ops: list[Operation], rewriter: Rewriter) -> bool:
        operands = op.operands
        if len(operands) != count:
            return False
        for i, step in steps:
            if not step(operands[i], bound, ops, rewriter):
                return False
        for name, expected in properties:
            actual = getattr(op, name)
            if isinstance(expected, Capture):
                if bound.setdefault(expected.name, actual) != actual:
                    return False
            elif actual != expected:
                return False
        return True

    return match


def _match_value(pattern: Pattern) -> _Match:
    if isinstance(pattern, Term):
        cls, inner = pattern.cls, _match_op(pattern)

        def match_term(value: Any, bound: dict[str, Any], ops: list[Operation], rewriter: Rewriter) -> bool:
            owner = value.owner
            if type(owner) is not cls:
                return False
            ops.append(owner)
            return inner(owner, bound, ops, rewriter)

        return match_term
    if isinstance(pattern, Capture):
        name, constant = pattern.name, isinstance(pattern, ConstantCapture)

        def match_capture(value: Any, bound: dict[str, Any], ops: list[Operation], rewriter: Rewriter) -> bool:
            if constant and value not in rewriter.known:
                return False
            return bound.setdefault(name, value) is value

        return match_capture
    if isinstance(pattern, Compute):
        raise TypeError("a pattern cannot compute; use a capture and a condition")
    number = pattern

    def match_number(value: Any, bound: dict[str, Any], ops: list[Operation], rewriter: Rewriter) -> bool:
        attribute = rewriter.known.get(value)
        return attribute is not None and is_number(attribute, number)

    return match_number


def is_number(attribute: Attribute, number: float) -> bool:
    """Whether a constant, scalar or splat, is exactly a number; 0.0 is not -0.0."""
    if isinstance(attribute, DenseAttr):
        if not attribute.is_splat:
            return False
        attribute = attribute.scalar()
    if isinstance(attribute, FloatAttr):
        return attribute.value == number and math.copysign(1.0, attribute.value) == math.copysign(1.0, number)
    return isinstance(attribute, IntegerAttr) and attribute.value == number


# Building.


def _build(item: Pattern, bound: dict[str, Any], rewriter: Rewriter, type: Type) -> Value:
    """The value of a replacement; numbers and computed constants are of `type`, arrays of their own."""
    if isinstance(item, Capture):
        return bound[item.name]
    if isinstance(item, Compute):
        made = item.evaluate(bound, rewriter)
        if isinstance(made, Attribute):
            # Beside a tensor that it is broadcast to, an array has a type of its own.
            value = rewriter.constant(made, made.type if isinstance(made, DenseAttr) else type)
            if value is None:
                raise NoConstantError(f"no op makes constants of type {type}", rewriter.location)
            return value
        return made if isinstance(made, Value) else rewriter.number(made, type)
    if not isinstance(item, Term):
        return rewriter.number(item, type)
    operands: list[Any] = [
        _build(o, bound, rewriter, type) if isinstance(o, Capture | Term) else None for o in item.operands
    ]
    # A number takes the type of an operand beside it: the ops of a table combine operands of one type.
    beside = next((v.type for v in operands if v is not None), type)
    operands = [_build(o, bound, rewriter, beside) if v is None else v for o, v in zip(item.operands, operands)]
    properties = {k: _property(v, bound, rewriter) for k, v in item.properties.items()}
    results = None if item.cls.infers else [type]
    return rewriter.create(item.cls, *operands, results=results, **properties).results[0]


def _property(item: Any, bound: dict[str, Any], rewriter: Rewriter) -> Any:
    if isinstance(item, Compute):
        return item.evaluate(bound, rewriter)
    return bound[item.name] if isinstance(item, Capture) else item

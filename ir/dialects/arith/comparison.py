"""Comparisons and the choice between two values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ...attributes import Attribute, folded_attr
from ...definition import (
    BOOL_LIKE,
    ELEMENTWISE,
    FLOAT_LIKE,
    PURE,
    SIGNLESS_LIKE,
    FoldResult,
    Op,
    enumeration,
    operand,
    result,
)
from ...interfaces import CustomForm, Evaluates
from ...numeric import where
from ...support.dialect_properties import fast_math
from ...types import I1, ShapedType, Type, bit_width, with_element
from .base import as_signed, as_unsigned, number, signed, unsigned

if TYPE_CHECKING:
    from ...arrays import Array
    from ...parser import Parser
    from ...printer import Printer


_Relation = Callable[[Any, Any], Any]

ORDERED: dict[str, _Relation] = {
    "eq": lambda a, b: a == b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "ne": lambda a, b: (a < b) | (a > b),
}
UNORDERED: _Relation = lambda a, b: (a != a) | (b != b)  # noqa: E731

FLOAT_RELATIONS: dict[str, _Relation] = {
    "false": lambda a, b: (a != a) & (a == a),
    **{f"o{n}": r for n, r in ORDERED.items()},
    "ord": lambda a, b: (a == a) & (b == b),
    **{f"u{n}": (lambda a, b, r=r: r(a, b) | UNORDERED(a, b)) for n, r in ORDERED.items()},
    "uno": UNORDERED,
    "true": lambda a, b: (a != a) | (a == a),
}
"""Predicate -> relation on floats, in upstream's order; `o..` is false, `u..` true when an operand is NaN."""

INTEGER_RELATIONS: dict[str, tuple[bool, _Relation]] = {
    "eq": (False, ORDERED["eq"]),
    "ne": (False, lambda a, b: a != b),
    **{f"s{n}": (False, ORDERED[n]) for n in ("lt", "le", "gt", "ge")},
    **{f"u{n}": (True, ORDERED[n]) for n in ("lt", "le", "gt", "ge")},
}
"""Predicate -> (whether operands count as unsigned, relation), in upstream's order."""


class Compare(Op, Evaluates):
    """What both comparisons share: operands of one type, a bool for each element."""

    traits = frozenset({PURE, ELEMENTWISE})

    def infer(self) -> Sequence[Type]:
        return [with_element(self.operands[0].type, I1)]

    def verify_(self) -> None:
        lhs, rhs = (v.type for v in self.operands)
        if lhs is not rhs:
            raise self.error(f"needs operands of one type, got {lhs} and {rhs}")


class CmpF(Compare):
    """Whether a relation holds between two floats."""

    name = "arith.cmpf"
    predicate = enumeration(*FLOAT_RELATIONS)
    lhs = operand(FLOAT_LIKE)
    rhs = operand(FLOAT_LIKE)
    result = result(BOOL_LIKE)
    fastmath = fast_math()
    assembly = "$predicate `,` $lhs `,` $rhs (`fastmath` `` $fastmath^)? attr-dict `:` type($lhs)"

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """A NumPy bool or an array of them."""
        return FLOAT_RELATIONS[self.predicate](lhs, rhs)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        a, b = map(number, constants)
        if self.predicate in ("true", "false"):
            a = b = 0.0
        if a is None or b is None:
            return None
        return folded_attr(bool(FLOAT_RELATIONS[self.predicate](a, b)), self.result.type)


class CmpI(Compare):
    """Whether a relation holds between two integers or index values."""

    name = "arith.cmpi"
    predicate = enumeration(*INTEGER_RELATIONS)
    lhs = operand(SIGNLESS_LIKE)
    rhs = operand(SIGNLESS_LIKE)
    result = result(BOOL_LIKE)
    assembly = "$predicate `,` $lhs `,` $rhs attr-dict `:` type($lhs)"

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """A NumPy bool or an array of them."""
        is_unsigned, relation = INTEGER_RELATIONS[self.predicate]
        view = unsigned if is_unsigned else signed
        return relation(view(lhs), view(rhs))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        is_unsigned, relation = INTEGER_RELATIONS[self.predicate]
        a, b = map(number, constants)
        if self.lhs is self.rhs:
            a = b = 0
        if a is None or b is None:
            return None
        view = as_unsigned if is_unsigned else as_signed
        width = bit_width(self.lhs.type)
        return folded_attr(relation(view(int(a), width), view(int(b), width)), self.result.type)


class Select(Op, Evaluates, CustomForm):
    """`true_value` where the condition holds, else `false_value`; one condition for all, or one for each element."""

    name = "arith.select"
    traits = frozenset({PURE, ELEMENTWISE})
    condition = operand(BOOL_LIKE)
    true_value = operand()
    false_value = operand()
    result = result()

    def infer(self) -> Sequence[Type]:
        return [self.true_value.type]

    def verify_(self) -> None:
        chosen, other, condition = self.true_value.type, self.false_value.type, self.condition.type
        if chosen is not other:
            raise self.error(f"needs both values of one type, got {chosen} and {other}")
        if condition is not I1 and condition is not with_element(chosen, I1):
            raise self.error(f"has a condition of type {condition} for values of type {chosen}")

    def evaluate(self, condition: Array, true_value: Array, false_value: Array) -> Array:
        """The values are NumPy scalars or arrays; the condition is a scalar or of their shape."""
        if not getattr(condition, "shape", ()):
            # One of the two as it is: a buffer must stay the same buffer.
            return true_value if condition else false_value
        return where(condition, true_value, false_value)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if self.true_value is self.false_value:
            return self.true_value
        condition = number(constants[0])
        if condition is None:
            return None
        return self.true_value if condition else self.false_value

    @classmethod
    def parse(cls, p: Parser) -> Op:
        """`%c, %a, %b : T`, or `: C, T` when the condition is not a single i1."""
        names = [p.value_name()]
        for _ in range(2):
            p.expect(",")
            names.append(p.value_name())
        attributes = p.optional_attr_dict()
        p.expect(":")
        condition: Type = I1
        chosen = p.type()
        if p.accept(","):
            condition, chosen = chosen, p.type()
        values = [p.resolve(n, t) for n, t in zip(names, (condition, chosen, chosen), strict=True)]
        return cls(values, [chosen], None, attributes)

    def print(self, w: Printer) -> None:
        """As `parse` reads it."""
        w.write(" ")
        w.values(self.operands)
        w.attr_dict(self)
        w.write(" : ")
        if isinstance(self.condition.type, ShapedType):
            w.type(self.condition.type)
            w.write(", ")
        w.type(self.result.type)

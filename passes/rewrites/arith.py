"""Rules for scalars and vectors, all exact: integers modulo their width, floats bit for bit (NaN payloads aside)."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dialects.arith import (
    AddF,
    AddI,
    CmpF,
    CmpI,
    DivF,
    MulF,
    MulI,
    NegF,
    Select,
    SubF,
    SubI,
    XOrI,
)
from ...ir.rewrite_rules import captures, compute, constants, rule, table, term
from ...ir.rewriter import CHANGED, Rewriter
from ...ir.values import Value
from .numbers import (
    are_small_integers,
    combine,
    has_exact_reciprocal,
    is_all_ones,
    negate,
    reciprocal,
)

x, y, z, f, p = captures("x y z f p")
c, d = constants("c d")
addi, subi, muli, xori = term(AddI), term(SubI), term(MulI), term(XOrI)
addf, subf, mulf, divf, negf, select = term(AddF), term(SubF), term(MulF), term(DivF), term(NegF), term(Select)
cmpi, cmpf = term(CmpI), term(CmpF)
small = compute(are_small_integers, c, d)

MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""The relation between exchanged operands; eq and ne are their own."""


def mirrored(predicate: str) -> str:
    """The predicate of a comparison with its operands exchanged: `slt` -> `sgt`."""
    return predicate[:-2] + MIRRORED.get(predicate[-2:], predicate[-2:])


NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"}
OTHER_NAN = {"o": "u", "u": "o"}


def negated(predicate: str) -> str:
    """The integer predicate that holds where `predicate` does not: `slt` -> `sge`."""
    return predicate[:-2] + NEGATED[predicate[-2:]]


def negated_float(predicate: str) -> str:
    """The float predicate that holds where `predicate` does not; NaN changes sides: `olt` -> `uge`."""
    words = {"ord": "uno", "uno": "ord", "true": "false", "false": "true"}
    return words.get(predicate) or OTHER_NAN[predicate[0]] + negated(predicate[1:])


def constant_right(op: CmpI | CmpF, rewriter: Rewriter) -> Sequence[Value] | None:
    """Exchange operands when only the left one is constant."""
    if rewriter.constant_of(op.lhs) is None or rewriter.constant_of(op.rhs) is not None:
        return None
    predicate = mirrored(op.predicate)
    op.set_operands((op.rhs, op.lhs))
    op.properties["predicate"] = op.definition.properties["predicate"].to_attribute(predicate)
    return CHANGED


RULES = (
    *table(
        (addi(addi(x, c), d), addi(x, compute(combine(lambda m, n: m + n), c, d)), "(x + c) + d -> x + (c + d)", small),
        (muli(muli(x, c), d), muli(x, compute(combine(lambda m, n: m * n), c, d)), "(x * c) * d -> x * (c * d)", small),
        (xori(xori(x, c), d), xori(x, compute(combine(lambda m, n: m ^ n), c, d)), "(x ^ c) ^ d -> x ^ (c ^ d)", small),
        (subi(x, c), addi(x, compute(negate, c)), "x - c -> x + -c", compute(are_small_integers, c)),
        (addi(subi(x, y), y), x, "(x - y) + y -> x"),
        (subi(addi(x, y), y), x, "(x + y) - y -> x"),
        (subi(x, x), 0, "x - x -> 0"),
        (xori(x, x), 0, "x ^ x -> 0"),
        (addf(x, negf(y), fastmath=f), subf(x, y, fastmath=f), "x + -y -> x - y"),
        (subf(x, negf(y), fastmath=f), addf(x, y, fastmath=f), "x - -y -> x + y"),
        (mulf(negf(x), negf(y), fastmath=f), mulf(x, y, fastmath=f), "-x * -y -> x * y"),
        (divf(negf(x), negf(y), fastmath=f), divf(x, y, fastmath=f), "-x / -y -> x / y"),
        (
            divf(x, c, fastmath=f),
            mulf(x, compute(reciprocal, c), fastmath=f),
            "x / 2**n -> x * 2**-n",
            compute(has_exact_reciprocal, c),
        ),
        (
            xori(cmpi(x, y, predicate=p), c),
            cmpi(x, y, predicate=compute(negated, p)),
            "not x < y -> x >= y",
            compute(is_all_ones, c),
        ),
        (
            xori(cmpf(x, y, predicate=p, fastmath=f), c),
            cmpf(x, y, predicate=compute(negated_float, p), fastmath=f),
            "not x < y -> x >= y or NaN",
            compute(is_all_ones, c),
        ),
        (select(xori(x, c), y, z), select(x, z, y), "not x ? y : z -> x ? z : y", compute(is_all_ones, c)),
    ),
    rule(CmpI, "c < x -> x > c")(constant_right),
    rule(CmpF, "c < x -> x > c")(constant_right),
)

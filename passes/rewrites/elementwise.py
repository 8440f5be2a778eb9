"""Rules for tensor-level arithmetic; like those of `arith` they are exact."""

from __future__ import annotations

from ...ir.dialects.elementwise import Add, Div, LogicalNot, Mul, Neg, Sub, Where
from ...ir.rewrite_rules import captures, compute, constants, table, term
from .numbers import are_small_integers, combine, has_exact_reciprocal, reciprocal

x, y, z = captures("x y z")
c, d = constants("c d")
add, sub, mul, div, neg = term(Add), term(Sub), term(Mul), term(Div), term(Neg)
where, not_ = term(Where), term(LogicalNot)
small = compute(are_small_integers, c, d)

RULES = table(
    (add(x, neg(y)), sub(x, y), "x + -y -> x - y"),
    (sub(x, neg(y)), add(x, y), "x - -y -> x + y"),
    (mul(neg(x), neg(y)), mul(x, y), "-x * -y -> x * y"),
    (div(neg(x), neg(y)), div(x, y), "-x / -y -> x / y"),
    (add(add(x, c), d), add(x, compute(combine(lambda m, n: m + n), c, d)), "(x + c) + d -> x + (c + d)", small),
    (mul(mul(x, c), d), mul(x, compute(combine(lambda m, n: m * n), c, d)), "(x * c) * d -> x * (c * d)", small),
    (div(x, c), mul(x, compute(reciprocal, c)), "x / 2**n -> x * 2**-n", compute(has_exact_reciprocal, c)),
    (where(not_(x), y, z), where(x, z, y), "not x ? y : z -> x ? z : y"),
)

"""Rules for math functions, exact."""

from __future__ import annotations

from ...ir.dialects.arith import NegF
from ...ir.dialects.math import AbsF
from ...ir.rewrite_rules import captures, table, term

x, f, g = captures("x f g")
absf, negf = term(AbsF), term(NegF)

RULES = table((absf(negf(x, fastmath=f), fastmath=g), absf(x, fastmath=g), "|-x| -> |x|"))

"""Rules for views: one view of a view is one view."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.dialects.array import Reshape, Transpose
from ...ir.location import fuse
from ...ir.rewrite_rules import captures, compute, rule, table, term
from ...ir.rewriter import Rewriter
from ...ir.values import Value

x, p, q = captures("x p q")
transpose = term(Transpose)


def compose(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """The permutation that does `first`, then `second`."""
    return [first[i] for i in second]


@rule(Reshape, "reshape(reshape(x)) -> reshape(x)")
def merge_reshapes(op: Reshape, rewriter: Rewriter) -> Sequence[Value] | None:
    """A reshape of a reshape is a reshape, unless the way through the middle splits what is dynamic."""
    inner = op.x.defining_op
    if not isinstance(inner, Reshape) or op.extents or inner.extents:
        return None
    location = fuse([op.location, inner.location])
    return [rewriter.create(Reshape, inner.x, (), results=[op.result.type], location=location).result]


RULES = (
    *table(
        (
            transpose(transpose(x, permutation=p), permutation=q),
            transpose(x, permutation=compute(compose, p, q)),
            "transpose(transpose(x)) -> transpose(x)",
        ),
    ),
    merge_reshapes,
)

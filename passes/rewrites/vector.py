"""Rules for vectors: masks that are known."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.attributes import DenseAttr
from ...ir.dialects.vector import Load, MaskedLoad, MaskedStore, Store
from ...ir.rewrite_rules import rule
from ...ir.rewriter import Rewriter
from ...ir.values import Value


def _mask(rewriter: Rewriter, mask: Value) -> bool | None:
    """Whether all lanes are set (True) or none is (False); None when it is neither or not known."""
    constant = rewriter.constant_of(mask)
    if not isinstance(constant, DenseAttr) or not constant.is_splat:
        return None
    return any(constant.data)


@rule(MaskedLoad, "a load of all lanes has no mask, one of none gives what stands in")
def plain_load(op: MaskedLoad, rewriter: Rewriter) -> Sequence[Value] | None:
    """A mask that is all set or all unset."""
    found = _mask(rewriter, op.mask)
    if found is None:
        return None
    if not found:
        return [op.pass_thru]
    return [rewriter.create(Load, op.base, op.indices, results=[op.result.type], location=op.location).result]


@rule(MaskedStore, "a store of all lanes has no mask, one of none does nothing")
def plain_store(op: MaskedStore, rewriter: Rewriter) -> Sequence[Value] | None:
    """A mask that is all set or all unset."""
    found = _mask(rewriter, op.mask)
    if found:
        rewriter.create(Store, op.value, op.base, op.indices, location=op.location)
    return None if found is None else ()


RULES = (plain_load, plain_store)

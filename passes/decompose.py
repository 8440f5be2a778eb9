"""decompose: ops that are defined by simpler tensor-level ops become those.

In: tensor-level ops.  Out: the same function without losses, softmax, norms: all ops that have an expansion and no
meaning at one point of their own.

    %y = linalg.softmax %x {axis = 1} : tensor<8x16xf32>
        becomes
    %0 = linalg.reduce_max %x {axes = [1], keepdims} : tensor<8x16xf32> -> tensor<8x1xf32>
    %1 = elementwise.sub %x, %0 : tensor<8x16xf32>, tensor<8x1xf32> -> tensor<8x16xf32>
    %2 = elementwise.exp %1 : tensor<8x16xf32>
    %3 = linalg.reduce_sum %2 {axes = [1], keepdims} : tensor<8x16xf32> -> tensor<8x1xf32>
    %y = elementwise.div %2, %3 : tensor<8x16xf32>, tensor<8x1xf32> -> tensor<8x16xf32>

What an op expands to stands in its class (`expand`); what that makes is expanded again if need be.  With `ops=` only
the named ops are expanded, also those that have a meaning at one point.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeGuard

from ..ir.definition import OPS, Op
from ..ir.diagnostics import PassError
from ..ir.interfaces import Expands, PointForm
from ..ir.operations import Operation
from ..ir.registry import lookup
from ..ir.values import Value
from .manager import Pass

MAX_DEPTH = 64
"""Expansions within each other, beyond which an op is taken to expand to itself."""


@dataclass
class Decompose(Pass):
    """Expand ops into simpler ones."""

    name: ClassVar[str] = "decompose"
    ops: tuple[str, ...] = ()

    def run(self, op: Operation) -> None:
        for name in self.ops:
            if not issubclass(lookup(name) or Op, Expands):
                known = sorted(n for n, cls in OPS.items() if issubclass(cls, Expands))
                raise PassError(
                    f"pass 'decompose': no op '{name}' has an expansion; some that have: {', '.join(known)}"
                )
        pending: list[tuple[Expands, int]] = [(inner, 0) for inner in op.walk() if self._wanted(inner)]
        while pending:
            inner, depth = pending.pop()
            if depth > MAX_DEPTH:
                raise PassError(f"the expansion of {inner.name} never comes to an end", inner.location)
            pending += [(made, depth + 1) for made in expand(inner) if self._wanted(made)]
            self.count("expanded")

    def _wanted(self, op: Operation) -> TypeGuard[Expands]:
        if not isinstance(op, Expands):
            return False
        return op.name in self.ops if self.ops else not isinstance(op, PointForm)


def expand(op: Expands) -> list[Operation]:
    """Replace an op by its expansion; the ops that were made."""
    from ..ir.builders.tensor import TensorBuilder  # late

    before = op.prev
    block = op.parent
    assert block is not None
    values = op.expand(TensorBuilder(before=op, location=op.location))
    results: list[Value] = [values] if isinstance(values, Value) else list(values)
    for value, result in zip(results, op.results):
        if value.type is not result.type:
            raise PassError(f"{op.name} of type {result.type} expands to a value of type {value.type}", op.location)
    made: list[Operation] = []
    at = block.first if before is None else before.next
    while at is not None and at is not op:
        made.append(at)
        at = at.next
    op.replace_by(results)
    return made

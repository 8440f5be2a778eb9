"""Which values an op with regions takes from outside, and whether a value is made inside it."""

from __future__ import annotations

from collections.abc import Collection

from .operations import Operation
from .values import Value


def captured(op: Operation, operands: bool = True) -> Collection[Value]:
    """The values that the regions of an op use and do not define, in the order of first use, after the op's own
    operands; without those with `operands=False`."""
    used: dict[Value, None] = dict.fromkeys(op.operands) if operands else {}
    if not op.regions:
        return used.keys()
    inside: set[Value] = set()
    for inner in op.walk():
        if inner is not op:
            used.update(dict.fromkeys(inner.operands))
            inside.update(inner.results)
        for region in inner.regions:
            for block in region.blocks:
                inside.update(block.arguments)
    return [v for v in used if v not in inside]


def defined_inside(value: Value, op: Operation) -> bool:
    """Whether a value is defined in a region of `op`, at any depth."""
    block = value.block
    holder = block.parent_op if block is not None else None
    return holder is not None and op.is_ancestor_of(holder)

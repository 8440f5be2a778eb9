"""Insertion of operations: a builder stands at a place in a block and gives ops a location."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from .attributes import Attribute
from .definition import Op, make
from .location import UNKNOWN, Location
from .operations import Block, Operation, Region
from .types import Type
from .values import OpResult

T = TypeVar("T", bound=Op)
AnyOp = TypeVar("AnyOp", bound=Operation)


class Builder:
    """Inserts operations at the end of `block`, or before the op `before` of it.

    `location` is given to every op that is created without one of its own.
    """

    def __init__(
        self, block: Block | None = None, before: Operation | None = None, location: Location = UNKNOWN
    ) -> None:
        self.block = block if before is None else before.parent
        self.before = before
        self.location = location

    @classmethod
    def before_op(cls, op: Operation) -> Builder:
        """A builder just before `op`, with its location."""
        return cls(before=op, location=op.location)

    @classmethod
    def after_op(cls, op: Operation) -> Builder:
        """A builder just after `op`, with its location."""
        return cls(op.parent, op.next, op.location)

    def insert(self, op: AnyOp) -> AnyOp:
        """Insert a detached operation."""
        if self.block is None:
            raise ValueError("the builder has no insertion point")
        if self.before is None:
            self.block.append(op)
        else:
            self.block.insert_before(op, self.before)
        return op

    def create(
        self,
        cls: type[T],
        *operands: Any,
        results: Sequence[Type] | None = None,
        regions: Sequence[Region] = (),
        successors: Sequence[Block] = (),
        attributes: dict[str, Attribute] | None = None,
        location: Location | None = None,
        **properties: Any,
    ) -> T:
        """Create and insert an op: one argument for each operand field (a sequence for a variadic one), properties as
        Python values by name; result types are inferred when not given."""
        op = make(
            cls,
            operands,
            results,
            regions,
            successors,
            properties,
            location=self.location if location is None else location,
        )
        if attributes:
            op.attributes.update(attributes)
        return self.insert(op)

    def value(self, cls: type[Op], *operands: Any, **keywords: Any) -> OpResult:
        """Create an op with one result and return the result."""
        return self.create(cls, *operands, **keywords).result

    @contextmanager
    def at(self, block: Block, before: Operation | None = None) -> Generator[Builder]:
        """Build elsewhere for a while."""
        saved = self.block, self.before
        self.block, self.before = block, before
        try:
            yield self
        finally:
            self.block, self.before = saved

"""SSA values: results of operations and arguments of blocks, with their uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .operations import Block, Operation
    from .types import Type


class Value:
    """A value of a type.

    `uses` maps each operation that uses the value to the number of its operands that are this value; so adding and
    removing a use takes constant time however many there are, and the order is that of insertion.
    `name` is a wish for the text (without `%`), or None.
    """

    __slots__ = ("name", "type", "uses")
    type: Type
    name: str | None
    uses: dict[Operation, int]

    def __init__(self, type: Type, name: str | None = None) -> None:
        self.type = type
        self.name = name
        self.uses = {}

    @property
    def defining_op(self) -> Operation | None:
        """The operation that this is a result of; None for a block argument."""
        return None

    @property
    def block(self) -> Block | None:
        """The block in which the value is defined."""
        raise NotImplementedError

    @property
    def num_uses(self) -> int:
        """The number of operands that are this value."""
        return sum(self.uses.values())

    def replace_by(self, new: Value, where: Callable[[Operation], bool] | None = None) -> None:
        """Let every user (for which `where(user)` holds) use `new` instead; a `new` without a name takes this one's."""
        if new is self:
            return
        for user in list(self.uses):
            if where is None or where(user):
                user.set_operands([new if v is self else v for v in user.operands])
        if new.name is None:
            new.name = self.name


class OpResult(Value):
    """The `index`-th result of `owner`."""

    __slots__ = ("index", "owner")

    def __init__(self, type: Type, owner: Operation, index: int) -> None:
        self.type = type
        self.name = None
        self.uses = {}
        self.owner = owner
        self.index = index

    @property
    def defining_op(self) -> Operation:
        return self.owner

    @property
    def block(self) -> Block | None:
        return self.owner.parent

    def __repr__(self) -> str:
        return f"<result {self.index} of {self.owner.name} : {self.type}>"


class BlockArgument(Value):
    """The `index`-th argument of the block `owner`."""

    __slots__ = ("index", "owner")

    def __init__(self, type: Type, owner: Block, index: int, name: str | None = None) -> None:
        self.type = type
        self.name = name
        self.uses = {}
        self.owner = owner
        self.index = index

    @property
    def block(self) -> Block:
        return self.owner

    def __repr__(self) -> str:
        return f"<argument {self.index} : {self.type}>"

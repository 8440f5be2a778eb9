"""SSA values: results of operations and arguments of blocks, with their uses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .operations import Block, Operation
    from .types import Type

NO_USES: Mapping[Operation, int] = MappingProxyType({})


class Value:
    """A value of a type.

    `use_list` holds what `uses` reads: None, the only user where one operand of one operation is the value, as it is
    for most, or a dictionary from users to counts.  So most values need no dictionary, and adding and removing a use
    takes constant time however many there are.
    `name` is a wish for the text (without `%`), or None.
    """

    __slots__ = ("name", "type", "use_list")
    type: Type
    name: str | None
    use_list: Operation | dict[Operation, int] | None

    def __init__(self, type: Type, name: str | None = None) -> None:
        self.type = type
        self.name = name
        self.use_list = None

    @property
    def uses(self) -> Mapping[Operation, int]:
        """The operations that use the value, in the order of insertion, with the number of operands of each."""
        users = self.use_list
        if users is None:
            return NO_USES
        return users if isinstance(users, dict) else {users: 1}

    def add_use(self, user: Operation) -> None:
        """Record that one more operand of `user` is this value."""
        users = self.use_list
        if users is None:
            self.use_list = user
        elif isinstance(users, dict):
            users[user] = users.get(user, 0) + 1
        else:
            self.use_list = {users: 2} if users is user else {users: 1, user: 1}

    def remove_use(self, user: Operation) -> None:
        """Record that one operand less of `user` is this value."""
        users = self.use_list
        if isinstance(users, dict):
            count = users[user]
            if count > 1:
                users[user] = count - 1
            else:
                del users[user]
        elif users is user:
            self.use_list = None
        else:
            raise KeyError(user)

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

    @property
    def users(self) -> Collection[Operation]:
        """The operations that use the value, each once, in the order of insertion."""
        users = self.use_list
        return users if isinstance(users, dict) else () if users is None else (users,)

    @property
    def num_users(self) -> int:
        """The number of operations that use the value."""
        users = self.use_list
        return len(users) if isinstance(users, dict) else 0 if users is None else 1

    def replace_by(self, new: Value, where: Callable[[Operation], bool] | None = None) -> None:
        """Let every user (for which `where(user)` holds) use `new` instead; a `new` without a name takes this one's."""
        if new is self:
            return
        for user in tuple(self.users):
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
        self.use_list = None
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
        self.use_list = None
        self.owner = owner
        self.index = index

    @property
    def block(self) -> Block:
        return self.owner

    def __repr__(self) -> str:
        return f"<argument {self.index} : {self.type}>"

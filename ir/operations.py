"""Operations, blocks and regions: the mutable structure of IR.

An operation's operands are a tuple, changed only through `set_operand(s)`, which keep the use lists right.  The
operations of a block form a linked list, so insertion and removal take constant time at any size.  They are numbered in
order, with gaps: one that is inserted takes a number of the gap, or its neighbours are numbered again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .collector import without_collector
from .location import UNKNOWN, Location
from .values import BlockArgument, OpResult, Value

if TYPE_CHECKING:
    from .attributes import Attribute
    from .definition import Trait
    from .diagnostics import VerifyError
    from .types import Type

_O = TypeVar("_O", bound="Operation")

STRIDE = 1 << 12
"""The gap between the numbers of operations that are appended."""


class SingleResult:
    """Reads an operation's only result; op definitions may declare a field in its place."""

    __slots__ = ()

    def __get__(self, op: Operation, owner: object = None) -> OpResult:
        (result,) = op.results
        return result


class Slotted(type):
    """The class of op classes: their instances have the slots of `Operation` and no dictionary beside it.

    A class statement cannot forget it, so an op costs no more memory in a plugin than here.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, object]) -> Slotted:
        namespace.setdefault("__slots__", ())
        return super().__new__(cls, name, bases, namespace)


class Operation(metaclass=Slotted):
    """One operation.

    `properties` are the attributes that the op's definition names, `attributes` the discardable ones.
    Registered ops are subclasses made with `ir.definition`; others are `UnregisteredOp`.
    """

    __slots__ = (
        "attributes",
        "location",
        "next",
        "operands",
        "order",
        "parent",
        "prev",
        "properties",
        "regions",
        "results",
        "successors",
    )
    name: str = ""
    traits: ClassVar[frozenset[Trait]] = frozenset()
    outer_properties: ClassVar[tuple[str, ...]] = ()
    """Properties that generic form writes among the attributes."""

    operands: tuple[Value, ...]
    results: tuple[OpResult, ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    regions: tuple[Region, ...]
    successors: tuple[Block, ...]
    parent: Block | None
    prev: Operation | None
    next: Operation | None
    order: int
    location: Location

    def __init__(
        self,
        operands: Iterable[Value] = (),
        result_types: Iterable[Type] = (),
        properties: Mapping[str, Attribute] | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        regions: Iterable[Region] = (),
        successors: Iterable[Block] = (),
        location: Location = UNKNOWN,
    ) -> None:
        self.operands = operands = tuple(operands)
        for value in operands:
            if value.use_list is None:
                value.use_list = self
            else:
                value.add_use(self)
        self.results = tuple([OpResult(t, self, i) for i, t in enumerate(result_types)])
        self.properties = dict(properties) if properties else {}
        self.attributes = dict(attributes) if attributes else {}
        self.regions = regions = tuple(regions)
        for region in regions:
            if region.parent is not None:
                raise ValueError(f"a region of {self.name} belongs to {region.parent.name} already")
            region.parent = self
        self.successors = tuple(successors)
        self.parent = self.prev = self.next = None
        self.order = 0
        self.location = location

    # Structure.

    result = SingleResult()
    """The only result."""

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region this one stands in."""
        block = self.parent
        return block.parent.parent if block is not None and block.parent is not None else None

    @property
    def parent_region(self) -> Region | None:
        """The region that this operation stands in."""
        return self.parent.parent if self.parent is not None else None

    def ancestors(self) -> Iterator[Operation]:
        """The enclosing operations, innermost first."""
        op = self.parent_op
        while op is not None:
            yield op
            op = op.parent_op

    def is_ancestor_of(self, other: Operation) -> bool:
        """Whether `other` is this operation or stands, at any depth, inside it."""
        op: Operation | None = other
        while op is not None:
            if op is self:
                return True
            op = op.parent_op
        return False

    def walk(self) -> Iterator[Operation]:
        """This operation and all inside it, in text order.  The one just yielded may be erased or moved."""
        yield self
        pending = [b.first for r in reversed(self.regions) for b in reversed(r.blocks)]
        while pending:
            op = pending.pop()
            while op is not None:
                following = op.next
                regions = op.regions
                yield op
                if regions and op.parent is not None:
                    pending.append(following)
                    pending += [b.first for r in reversed(regions) for b in reversed(r.blocks)]
                    break
                op = following

    # Operands and results.

    def set_operand(self, index: int, value: Value) -> None:
        """Replace one operand."""
        operands = list(self.operands)
        operands[index] = value
        self.set_operands(operands)

    def set_operands(self, values: Sequence[Value]) -> None:
        """Replace all operands; the number may change."""
        for value in self.operands:
            if value.use_list is self:
                value.use_list = None
            else:
                value.remove_use(self)
        self.operands = operands = tuple(values)
        for value in operands:
            if value.use_list is None:
                value.use_list = self
            else:
                value.add_use(self)

    def replace_by(self, values: Sequence[Value] | Operation) -> None:
        """Let all users of the results use `values` instead, and erase this operation."""
        new = values.results if isinstance(values, Operation) else values
        if len(new) != len(self.results):
            raise ValueError(f"{self.name} has {len(self.results)} results, {len(new)} replacements given")
        for old, value in zip(self.results, new, strict=True):
            old.replace_by(value)
        self.erase()

    # Place.

    def detach(self) -> None:
        """Take the operation out of its block; it keeps operands and uses."""
        block = self.parent
        if block is None:
            return
        before, after = self.prev, self.next
        if before is None:
            block.first = after
        else:
            before.next = after
        if after is None:
            block.last = before
        else:
            after.prev = before
        self.parent = self.prev = self.next = None

    def erase(self) -> None:
        """Remove the operation and all inside it.  Its results must have no uses left."""
        for result in self.results:
            if result.use_list:
                user = next(iter(result.users))
                raise ValueError(f"cannot erase {self.name}: result {result.index} is used by {user.name}")
        self.detach()
        self.drop_references()

    def drop_references(self) -> None:
        """Release all operands and successors of this operation and of all inside it."""
        for op in self.walk():
            op.set_operands(())
            op.successors = ()

    def move_before(self, other: Operation) -> None:
        """Move to just before `other`."""
        self.detach()
        assert other.parent is not None
        other.parent.insert_before(self, other)

    def move_after(self, other: Operation) -> None:
        """Move to just after `other`."""
        self.detach()
        assert other.parent is not None
        if other.next is None:
            other.parent.append(self)
        else:
            other.parent.insert_before(self, other.next)

    def is_before(self, other: Operation) -> bool:
        """Whether this operation stands before `other` in their common block."""
        block = self.parent
        if block is None or block is not other.parent:
            raise ValueError("the operations are not in the same block")
        return self.order < other.order

    # Copies.

    def clone(self: _O, mapping: dict[Value, Value] | None = None) -> _O:
        """A detached deep copy.

        `mapping` gives the replacement of values that are defined outside (those not in it are kept), and receives the
        copies of all values defined inside.
        """
        return without_collector(self._clone, {} if mapping is None else mapping)

    def _clone(self: _O, table: dict[Value, Value]) -> _O:
        root = self._clone_shell(table)
        work: list[tuple[Operation, Operation]] = [(self, root)] if self.regions else []
        forward: list[Operation] = []
        blocks: dict[Block, Block] = {}
        while work:
            source, copy = work.pop()
            regions: list[Region] = []
            for region in source.regions:
                fresh = Region()
                for block in region.blocks:
                    target = Block()
                    fresh.append(target)
                    blocks[block] = target
                    for argument in block.arguments:
                        table[argument] = target.add_argument(argument.type, argument.name)
                regions.append(fresh)
                fresh.parent = copy
            copy.regions = tuple(regions)
            nested: list[tuple[Operation, Operation]] = []
            for region, fresh in zip(source.regions, regions, strict=True):
                for block, target in zip(region.blocks, fresh.blocks, strict=True):
                    op, last, order = block.first, None, 0
                    while op is not None:
                        twin = op._clone_shell(table)
                        # As Block.append does, for a block that nobody else sees yet.
                        twin.parent = target
                        twin.prev = last
                        twin.order = order
                        if last is None:
                            target.first = twin
                        else:
                            last.next = twin
                        last = twin
                        order += STRIDE
                        if op.regions:
                            nested.append((op, twin))
                        if op.successors:
                            twin.successors = tuple([blocks.get(s, s) for s in op.successors])
                        op = op.next
                    target.last = last
                # Uses before definitions (graph regions, blocks out of order) are mended once all is copied.
                if len(region.blocks) > 1:
                    forward += [op for block in fresh.blocks for op in block]
            work += reversed(nested)
        for op in forward:
            if any(v in table for v in op.operands):
                op.set_operands([table.get(v, v) for v in op.operands])
        return root

    def _clone_shell(self: _O, table: dict[Value, Value]) -> _O:
        """The operation without its regions, entered in the table."""
        copy = object.__new__(self.__class__)
        operands = self.operands
        if operands:
            get = table.get
            copy.operands = operands = tuple([get(v, v) for v in operands])
            for value in operands:
                if value.use_list is None:
                    value.use_list = copy
                else:
                    value.add_use(copy)
        else:
            copy.operands = ()
        results = self.results
        if len(results) == 1:
            old = results[0]
            new = table[old] = OpResult(old.type, copy, 0)
            new.name = old.name
            copy.results = (new,)
        elif results:
            copies: list[OpResult] = []
            for old in results:
                new = table[old] = OpResult(old.type, copy, old.index)
                new.name = old.name
                copies.append(new)
            copy.results = tuple(copies)
        else:
            copy.results = ()
        copy.properties = self.properties.copy()
        copy.attributes = self.attributes.copy()
        copy.regions = ()
        copy.successors = self.successors
        copy.parent = copy.prev = copy.next = None
        copy.order = 0
        copy.location = self.location
        return copy

    # Meaning, as the op's definition gives it.  Defaults for ops that say nothing.

    def verify_(self) -> None:
        """Check what the declared constraints cannot say; raise through `self.error`."""

    def error(self, message: str) -> VerifyError:
        """A VerifyError at this operation: `raise op.error("..")`."""
        from .diagnostics import VerifyError  # late

        return VerifyError(f"'{self.name}' op {message}", self.location)

    text_of: ClassVar[Callable[[Operation], str]]
    """What `str` gives.  The package sets it, since the printer stands above operations."""

    def __str__(self) -> str:
        return Operation.text_of(self)

    def __repr__(self) -> str:
        return f"<{self.name or type(self).__name__} at {id(self):#x}>"


class UnregisteredOp(Operation):
    """An operation that no dialect defines; only its generic form is known."""

    __slots__ = ("name",)

    def __init__(self, name: str, *args: Any, **keywords: Any) -> None:
        self.name = name
        super().__init__(*args, **keywords)

    def _clone_shell(self, table: dict[Value, Value]) -> UnregisteredOp:
        copy = super()._clone_shell(table)
        copy.name = self.name
        return copy


class Block:
    """A straight line of operations, entered with arguments."""

    __slots__ = ("arguments", "first", "last", "parent")

    def __init__(self, types: Iterable[Type] = ()) -> None:
        self.arguments: list[BlockArgument] = [BlockArgument(t, self, i) for i, t in enumerate(types)]
        self.first: Operation | None = None
        self.last: Operation | None = None
        self.parent: Region | None = None

    def __iter__(self) -> Iterator[Operation]:
        """The operations in order.  The one just yielded may be erased or moved."""
        op = self.first
        while op is not None:
            following = op.next
            yield op
            op = following

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region the block stands in."""
        return self.parent.parent if self.parent is not None else None

    @property
    def terminator(self) -> Operation:
        """The last operation."""
        if self.last is None:
            raise ValueError("the block is empty")
        return self.last

    def add_argument(self, type: Type, name: str | None = None, index: int | None = None) -> BlockArgument:
        """Add an argument, last or at `index`."""
        place = len(self.arguments) if index is None else index
        argument = BlockArgument(type, self, place, name)
        self.arguments.insert(place, argument)
        for i in range(place + 1, len(self.arguments)):
            self.arguments[i].index = i
        return argument

    def erase_argument(self, index: int) -> None:
        """Remove an argument that has no uses."""
        if self.arguments[index].users:
            raise ValueError(f"block argument {index} still has uses")
        del self.arguments[index]
        for i in range(index, len(self.arguments)):
            self.arguments[i].index = i

    def append(self, op: Operation) -> None:
        """Add a detached operation at the end."""
        assert op.parent is None, f"{op.name} stands in a block already"
        op.parent = self
        last = self.last
        op.prev = last
        if last is None:
            self.first = op
            op.order = 0
        else:
            last.next = op
            op.order = last.order + STRIDE
        self.last = op

    def insert_before(self, op: Operation, other: Operation) -> None:
        """Add a detached operation just before `other`."""
        assert op.parent is None, f"{op.name} stands in a block already"
        assert other.parent is self
        before = other.prev
        op.parent = self
        op.prev, op.next = before, other
        other.prev = op
        if before is None:
            self.first = op
            op.order = other.order - STRIDE
        else:
            before.next = op
            low, high = before.order, other.order
            op.order = (low + high) >> 1
            if high - low < 2:
                _renumber_around(op)

    def erase(self) -> None:
        """Remove the block and all inside it."""
        for op in self:
            op.drop_references()
        if self.parent is not None:
            self.parent.blocks.remove(self)
            self.parent = None


def _renumber_around(op: Operation) -> None:
    """Give `op`, whose number is that of its predecessor, and its neighbours numbers with gaps.

    Those numbered again are the ops of the smallest aligned range of 2^i numbers around it that holds at most (4/3)^i
    ops, so that an insertion costs a logarithm of the ops of the block on average (M. Bender et al., Two simplified
    algorithms for maintaining order in a list, 2002).
    """
    first = last = op
    count, bits = 1, 2
    while True:
        bits += 1
        start = op.order >> bits << bits
        while first.prev is not None and first.prev.order >= start:
            first = first.prev
            count += 1
        while last.next is not None and last.next.order < start + (1 << bits):
            last = last.next
            count += 1
        if count <= (4 / 3) ** bits:
            break
    step = (1 << bits) // count
    place: Operation | None = first
    for number in range(start, start + count * step, step):
        assert place is not None
        place.order = number
        place = place.next


class Region:
    """A list of blocks, owned by an operation; the first is the entry."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Iterable[Block] = ()) -> None:
        self.blocks: list[Block] = []
        self.parent: Operation | None = None
        for block in blocks:
            self.append(block)

    @property
    def block(self) -> Block:
        """The only block; VerifyError when there is another number of them."""
        if len(self.blocks) != 1:
            where = None if self.parent is None else self.parent.location
            from .diagnostics import VerifyError  # late

            raise VerifyError(f"expected a region of one block, got {len(self.blocks)}", where)
        return self.blocks[0]

    @property
    def entry(self) -> Block:
        """The first block."""
        return self.blocks[0]

    def append(self, block: Block) -> None:
        """Add a block at the end."""
        assert block.parent is None
        block.parent = self
        self.blocks.append(block)

    def take_body(self, other: Region) -> None:
        """Move all blocks of `other` to the end of this region."""
        for block in other.blocks:
            block.parent = self
        self.blocks += other.blocks
        other.blocks = []

    def clone(self, mapping: dict[Value, Value] | None = None) -> Region:
        """A deep copy that belongs to no operation; `mapping` as in `Operation.clone`."""
        holder = Operation()
        parent, self.parent = self.parent, None
        holder.regions = (self,)
        copy = holder.clone(mapping).regions[0]
        self.parent = parent
        copy.parent = None
        return copy

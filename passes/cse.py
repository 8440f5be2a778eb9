"""cse: compute once what is computed twice.

In: any op.  Out: the same op, where an op that repeats one that dominates it is replaced by it.

    %0 = arith.addf %a, %b : f32
    %1 = arith.addf %b, %a : f32
    %2 = arith.mulf %0, %1 : f32
        becomes
    %0 = arith.addf %a, %b : f32
    %2 = arith.mulf %0, %0 : f32

Two ops are equal when class, operands (those of a commutative op in either order), attributes, result types and regions
are.  Operands and attributes compare by identity, so the key of an op is a tuple of pointers.  One table serves a whole
isolated region; what a nested region entered is taken out behind it, so only dominating ops are found.

Loads take part as long as nothing may have written what they read.  Every buffer has a version, which is part of the
key and grows with each write, and on entry to a region that writes it.  Allocations, and arguments of `nablair.noalias`
functions, have a version each if all their uses are known; `nablair.readonly` arguments never change; all other buffers
may alias and share one version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from ..ir.attribute_names import NO_ALIAS, READ_ONLY
from ..ir.attributes import Attribute, DictAttr
from ..ir.definition import ALLOCATES, COMMUTATIVE, ISOLATED, TERMINATOR, Op
from ..ir.dominance import Dominance
from ..ir.effects import (
    ALLOCATION,
    ANYTHING,
    NOTHING,
    READS,
    RECURSIVE,
    WRITES,
    effect_kind,
    effect_of,
    is_pure,
)
from ..ir.location import fuse
from ..ir.operations import Block, Operation
from ..ir.rewriter import is_closed
from ..ir.types import MemRefType
from ..ir.values import BlockArgument, OpResult, Value
from .manager import Pass

Key = tuple[object, ...]
"""What equal ops have in common, compared by identity."""
Buffers = Value | str
"""A class of buffers: the only one, or SHARED or CONSTANT_MEMORY."""

SHARED: Final = "shared"
"""Stands for all buffers that may alias others."""
CONSTANT_MEMORY: Final = "read-only"


@dataclass
class CommonSubexpressionElimination(Pass):
    """Replace ops that repeat an earlier one."""

    name: ClassVar[str] = "cse"

    def run(self, op: Operation) -> None:
        self.count("num-cse'd", merge_repeated(op))


def merge_repeated(root: Operation) -> int:
    """Merge equal ops inside `root`; how many went."""
    merger = _Merger(root)
    merger.run()
    return merger.merged


class _Scope:
    """An open block: where it goes on, and how to leave it."""

    __slots__ = ("at", "dominated", "kept", "table")

    def __init__(self, block: Block, table: dict[Key, Operation], dominated: list[Block]) -> None:
        self.at = block.first
        self.table = table
        self.kept: list[Key] = []
        self.dominated = dominated


class _Merger:
    """One run over the ops inside `root`, in an order in which what dominates comes first."""

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.merged = 0
        self.memory = _Memory(root)
        self.dominance = Dominance()
        # Class -> (kind of effect, commutative, result types belong to the key).
        self.facts: dict[type[Operation], tuple[int, bool, bool]] = {}

    def run(self) -> None:
        stack: list[_Scope] = []
        self.enter(self.root, {}, stack)
        while stack:
            scope = stack[-1]
            op = scope.at
            if op is None:
                stack.pop()
                for block in scope.dominated:
                    self.open_block(block, scope.table, stack)
                if not scope.dominated:
                    for key in scope.kept:
                        del scope.table[key]
                continue
            self.block(op, scope, stack)

    def enter(self, op: Operation, table: dict[Key, Operation], stack: list[_Scope]) -> None:
        """Open the entry blocks of an op's regions, the first one on top."""
        for region in reversed(op.regions):
            if region.blocks:
                self.open_block(region.blocks[0], {} if is_closed(op, region) else table, stack)

    def open_block(self, block: Block, table: dict[Key, Operation], stack: list[_Scope]) -> None:
        region = block.parent
        children: list[Block] = []
        if region is not None and len(region.blocks) > 1:
            immediate = self.dominance.immediate(region)
            children = [b for b in region.blocks if b is not block and immediate.get(b) is block]
            table = dict(table)  # blocks that this one dominates see its ops, others do not
            self.memory.everything += 1  # other paths may lead here
        stack.append(_Scope(block, table, children))

    def block(self, op: Operation | None, scope: _Scope, stack: list[_Scope]) -> None:
        """Go on in a block until it ends or an op with regions comes."""
        facts, table, kept, memory = self.facts, scope.table, scope.kept, self.memory
        while op is not None:
            following = op.next
            cls = type(op)
            found = facts.get(cls)
            if found is None:
                found = facts[cls] = (
                    effect_kind(cls) if TERMINATOR not in cls.traits else ALLOCATION,
                    COMMUTATIVE in cls.traits,
                    not (issubclass(cls, Op) and cls.infers),
                )
            kind, commutative, typed = found
            if op.regions:
                if (
                    kind not in (ANYTHING, ALLOCATION)
                    and op.results
                    and is_pure(op)
                    and self.merge((*self.key(op, commutative, typed), *_fingerprint(op)), op, table, kept)
                ):
                    op = following
                    continue
                scope.at = following
                memory.enter(op)
                self.enter(op, table, stack)
                return
            if kind == NOTHING:
                # The most frequent case, spelled out.
                operands = op.operands
                if commutative and len(operands) == 2 and id(operands[0]) > id(operands[1]):
                    operands = (operands[1], operands[0])
                properties = op.properties
                if properties or op.attributes or typed:
                    key = self.key(op, commutative, typed)
                else:
                    key = (cls, operands)
                self.merge(key, op, table, kept)
            elif kind == READS:
                version = memory.version_of(op)
                self.merge((*self.key(op, commutative, typed), version), op, table, kept)
            elif kind != ALLOCATION:
                memory.write(op)
            op = following
        scope.at = None

    def key(self, op: Operation, commutative: bool, typed: bool) -> Key:
        operands = op.operands
        if commutative and len(operands) == 2 and id(operands[0]) > id(operands[1]):
            operands = (operands[1], operands[0])
        return (
            type(op),
            operands,
            _items(op.properties),
            _items(op.attributes),
            tuple([r.type for r in op.results]) if typed else None,
        )

    def merge(self, key: Key, op: Operation, table: dict[Key, Operation], kept: list[Key]) -> bool:
        found = table.get(key)
        if found is None:
            table[key] = op
            kept.append(key)
            return False
        for old, new in zip(op.results, found.results):
            old.replace_by(new)
        if found.location is not op.location:
            found.location = fuse([found.location, op.location])
        op.erase()
        self.merged += 1
        return True


def _items(attributes: dict[str, Attribute]) -> object:
    if len(attributes) < 2:
        return next(iter(attributes.items())) if attributes else None
    return frozenset(attributes.items())


def _fingerprint(op: Operation) -> list[object]:
    """What the regions of an op hold, with the values and blocks inside by their number."""
    numbers: dict[object, int] = {}
    out: list[object] = []

    def number(item: Value | Block) -> None:
        numbers[item] = len(numbers)

    for inner in op.walk():
        if inner is not op:
            out += (
                type(inner),
                inner.name,
                tuple([numbers.get(v, v) for v in inner.operands]),
                _items(inner.properties),
                _items(inner.attributes),
                tuple([r.type for r in inner.results]),
                tuple([numbers.get(b, b) for b in inner.successors]),
                numbers.get(inner.parent),
            )
            for result in inner.results:
                number(result)
        for region in inner.regions:
            out.append(len(region.blocks))
            for block in region.blocks:
                number(block)
                out.append(tuple([a.type for a in block.arguments]))
                for argument in block.arguments:
                    number(argument)
    return out


class _Memory:
    """Versions of buffers.

    A buffer belongs to a class: the value itself, for an allocation or an argument that overlaps nothing, when all its
    uses are reads, writes and views; `CONSTANT_MEMORY` for arguments marked read-only; else `SHARED`.
    """

    def __init__(self, root: Operation) -> None:
        self.root = root
        self.classes: dict[Value, Buffers] = {}
        self.versions: dict[Buffers, int] = {}
        self.everything = 0  # how often something unknown may have written any buffer
        self.written: dict[Operation, set[Buffers | int]] | None = None

    def class_of(self, value: Value) -> Buffers:
        found = self.classes.get(value)
        if found is None:
            found = self.classes[value] = self._classify(value)
        return found

    def _classify(self, value: Value) -> Buffers:
        if isinstance(value, BlockArgument):
            return _argument_class(value)
        op = value.defining_op
        assert isinstance(value, OpResult) and op is not None
        if ALLOCATES in op.traits:
            return value if _only_accessed(value) else SHARED
        sources = [v for v in op.operands if isinstance(v.type, MemRefType)]
        return self.class_of(sources[0]) if effect_kind(type(op)) == NOTHING and len(sources) == 1 else SHARED

    def version_of(self, op: Operation) -> tuple[int, ...]:
        """Part of the key of an op that reads."""
        assert isinstance(op, Op)
        read, _ = op.effects()
        classes = [self.class_of(v) for v in read]
        if not classes or all(c is CONSTANT_MEMORY for c in classes):
            return ()
        return (self.everything, *(self.versions.get(c, 0) for c in classes))

    def write(self, op: Operation) -> None:
        """Take note of what an op writes."""
        kind = effect_of(op)
        if kind == ANYTHING:
            self.everything += 1
        elif kind == WRITES:
            assert isinstance(op, Op)
            for value in op.effects()[1]:
                self._bump(self.class_of(value))

    def _bump(self, buffers: Buffers) -> None:
        self.versions[buffers] = self.versions.get(buffers, 0) + 1

    def enter(self, op: Operation) -> None:
        """Regions may run again: what they write may have been written before their first op."""
        kind = effect_of(op)
        if kind != RECURSIVE:
            self.write(op)
            return
        if self.written is None:
            self.written = self._summary()
        for buffers in self.written.get(op, ()):
            if isinstance(buffers, int):
                self.everything += 1
            else:
                self._bump(buffers)

    def _summary(self) -> dict[Operation, set[Buffers | int]]:
        """For every op with recursive effects the classes of buffers that are written inside."""
        written: dict[Operation, set[Buffers | int]] = {}
        for op in self.root.walk():
            kind = effect_of(op)
            if kind == ANYTHING:
                self._note(written, op, ANYTHING)
            elif kind == WRITES:
                assert isinstance(op, Op)
                for value in op.effects()[1]:
                    self._note(written, op, self.class_of(value))
        return written

    def _note(self, written: dict[Operation, set[Buffers | int]], op: Operation, buffers: Buffers | int) -> None:
        for around in op.ancestors():
            known = written.setdefault(around, set())
            if buffers in known or around is self.root:
                return
            known.add(buffers)


def _argument_class(argument: BlockArgument) -> Buffers:
    """The class of a block argument, by the attributes of the function whose argument it is."""
    block = argument.owner
    function = block.parent_op
    if (
        function is None
        or block.parent is None
        or block is not block.parent.blocks[0]
        or ISOLATED not in function.traits
    ):
        return SHARED
    positions = getattr(function.attributes.get(READ_ONLY), "values", ())
    attributes = getattr(function.properties.get("arg_attrs"), "elements", ())
    entry = attributes[argument.index] if argument.index < len(attributes) else None
    if argument.index in positions or (isinstance(entry, DictAttr) and READ_ONLY in entry.entries):
        return CONSTANT_MEMORY
    return argument if NO_ALIAS in function.attributes and _only_accessed(argument) else SHARED


def _only_accessed(value: Value) -> bool:
    """Whether every use of a buffer, and of views of it, is a read, a write or a view."""
    pending = [value]
    while pending:
        for user in pending.pop().users:
            kind = effect_of(user)
            if kind in (READS, WRITES):
                continue
            if kind != NOTHING or TERMINATOR in user.traits or user.regions:
                return False
            pending += [r for r in user.results if isinstance(r.type, MemRefType)]
    return True

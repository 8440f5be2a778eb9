"""What an op does to memory, from what its class declares: traits, and the memrefs that it reads and writes.

An op that declares nothing is taken to do anything.  An op with `RECURSIVE_EFFECTS` does what the ops inside it do.
"""

from __future__ import annotations

from typing import Final

from .definition import ALLOCATES, CONSTANT, PURE, RECURSIVE_EFFECTS, SYMBOL, TERMINATOR, Op
from .operations import Operation

NOTHING: Final = 0
ALLOCATION: Final = 1
"""Fresh memory and nothing else."""
READS: Final = 2
"""Reads the memrefs that `Op.reads` names."""
WRITES: Final = 3
"""Writes the memrefs that `Op.writes` names, and may read."""
RECURSIVE: Final = 4
"""As the ops inside."""
BY_OP: Final = 5
"""As `Op.effects` of the op at hand says: its class overrides that method."""
ANYTHING: Final = 6

_kinds: dict[type[Operation], int] = {}


def effect_kind(cls: type[Operation]) -> int:
    """What the ops of a class do: one of the constants of this module."""
    found = _kinds.get(cls)
    if found is None:
        found = _kinds[cls] = _classify(cls)
    return found


def _classify(cls: type[Operation]) -> int:
    traits = cls.traits
    if issubclass(cls, Op) and cls.effects is not Op.effects:
        return BY_OP
    if issubclass(cls, Op) and cls.writes:
        return WRITES
    if issubclass(cls, Op) and cls.reads:
        return READS
    if RECURSIVE_EFFECTS in traits:
        return RECURSIVE
    if ALLOCATES in traits:
        return ALLOCATION
    return NOTHING if traits & {PURE, CONSTANT, TERMINATOR} else ANYTHING


def effect_of(op: Operation) -> int:
    """What an op does: `effect_kind`, but never `BY_OP`."""
    kind = effect_kind(type(op))
    if kind != BY_OP:
        return kind
    assert isinstance(op, Op)
    read, written = op.effects()
    return WRITES if written else READS if read else NOTHING


def _at_most(op: Operation, limit: int) -> bool:
    kind = effect_of(op)
    if kind != RECURSIVE:
        return kind <= limit
    return all(k <= limit or k == RECURSIVE for k in map(effect_of, op.walk()))


def is_pure(op: Operation) -> bool:
    """Whether the op, with all inside it, touches no memory at all."""
    return _at_most(op, NOTHING)


def only_reads(op: Operation) -> bool:
    """Whether the op, with all inside it, leaves all memory that others see as it is."""
    return _at_most(op, READS)


def is_removable(op: Operation) -> bool:
    """Whether the op may go when nothing uses its results."""
    return not op.traits & FIXED and _at_most(op, READS)


FIXED: Final = frozenset({TERMINATOR, SYMBOL})
"""Traits of ops that stay, whatever they do."""

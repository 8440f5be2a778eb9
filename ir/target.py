"""What passes know of a device: a few numbers, kept as the module attribute `nablair.target`.

    module attributes {nablair.target = {kind = "cpu", vector_bits = 512 : i64, ..}}

The runtime fills it from the device, a person by the pass `set-target` or in a file; without one the numbers are those
of a CPU with 256-bit vectors.  All of them may be tuned.  An entry that no pass knows, or of another type or sign than
its number has, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from functools import lru_cache
from typing import Any, Final

from .attribute_names import TARGET
from .attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, StringAttr
from .diagnostics import PassError
from .operations import Operation
from .types import I1, I64

ALIGNMENT: Final = 64
"""Bytes that all buffers are aligned to: a cache line, and the widest vector of any machine.  Passes, lowerings and the
pool of memory agree on it, so that it is no number of a target."""


@dataclass(frozen=True, slots=True)
class Target:
    """A device, as passes see it."""

    kind: str = "cpu"
    """cpu, opencl or cuda."""
    vector_bits: int = 256
    """Bits of a vector register."""
    vector_registers: int = 16
    """Vector registers of a core; the accumulators of a product fill them."""
    independent_vectors: int = 4
    """Vector operations that must be independent to keep a core busy: the latency of an addition times additions a
    cycle."""
    streams: int = 8
    """Rows of memory that are read side by side at full speed."""
    rows: int = 16
    """How many rows of a tile share one read of an operand."""
    local_bytes: int = 256 << 10
    """What a point may keep in a local array."""
    stack_bytes: int = 1 << 20
    """The largest buffer of a kernel that stands on the stack of a thread."""
    grain: int = 4
    """Points that a launch needs at least to be worth its threads; on a GPU blocks."""
    tasks: int = 32
    """Parts that long loops are cut into for workers: enough for an even load on many threads.  Sums depend on it, so
    that it does not follow from the number of threads."""
    task_points: int = 1 << 17
    """Points of a launch, inner loops counted, from which cutting a loop for workers pays."""
    task_ns: int = 200
    """Nanoseconds that handing out a task costs."""
    access_ps: int = 1000
    """Picoseconds of a load or store, on average."""
    op_ps: int = 300
    """Picoseconds of another op, on average."""
    slow_op_ps: int = 4000
    """Picoseconds of a division, or of a gather or scatter."""
    threads: int = 1
    """Workers; on a GPU the threads of a block."""
    resident_threads: int = 1 << 14
    """Threads that keep a GPU busy."""
    thread_registers: int = 255
    """Registers of 32 bits that a thread of a GPU may use (CUDA C++ Programming Guide, table of compute
    capabilities)."""
    private_bytes: int = 2 << 10
    """What a thread of a GPU may keep in private memory."""
    l1: int = 32 << 10
    """Bytes of the first cache."""
    line: int = 64
    """Bytes of a cache line."""
    l1_way: int = 4 << 10
    """Bytes of a way of it: addresses that lie so far apart meet in one set."""
    l2: int = 512 << 10
    """Bytes of the second cache."""
    l3: int = 8 << 20
    """Bytes of the third cache."""
    depth: int = 256
    """Points of a contracted axis that a block of a product spans: the panel of the other factor stays in the first
    cache.  Sums depend on it, so that it does not follow from the caches."""
    pack_rows: int = 48
    """Rows that must share a panel of a factor for copying it to pay."""
    pack_bytes: int = 128 << 10
    """Bytes of a block of a factor from which copying it in panels pays, for what misses of the TLB cost."""
    warp: int = 32
    """Threads that run in step and shuffle values among each other."""
    shared_bytes: int = 48 << 10
    """Memory that the threads of a block share."""
    banks: int = 32
    """Banks of that memory, each of 4 bytes: threads of a warp that ask for different places of one bank wait."""
    features: tuple[str, ...] = ()
    """Instruction sets and extensions, in the target's own spelling."""

    def attribute(self) -> DictAttr:
        """The target as a module attribute."""
        entries: dict[str, Attribute] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, tuple):
                entries[f.name] = ArrayAttr([StringAttr(str(v)) for v in value])  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
            else:
                entries[f.name] = StringAttr(value) if isinstance(value, str) else IntegerAttr(value, I64)
        return DictAttr(entries)

    @staticmethod
    def of(op: Operation) -> Target:
        """The target that an op's module names, or the default; PassError for an attribute that says no target."""
        module: Operation | None = op
        while module is not None:
            found = module.attributes.get(TARGET)
            if found is not None:
                try:
                    return from_attribute(found)
                except ValueError as error:
                    raise PassError(f"the attribute {TARGET} {error}", module.location) from None
            module = module.parent_op
        return Target()


DEFAULTS: Final[dict[str, Target]] = {
    "cpu": Target(),
    "opencl": Target(kind="opencl", rows=64, local_bytes=32 << 10, grain=64, threads=256),
    "cuda": Target(kind="cuda", rows=64, local_bytes=32 << 10, grain=64, threads=256),
}
"""The numbers of each kind of device where nothing more is known."""


NUMBERS: Final[Mapping[str, Field[Any]]] = {f.name: f for f in fields(Target)}
"""What a target says, by name."""
_MAY_BE_NONE = frozenset({"l3", "local_bytes", "stack_bytes", "private_bytes", "shared_bytes"})
"""Sizes that may be 0: memory that a device does not have."""


@lru_cache(maxsize=64)
def from_attribute(attribute: Attribute) -> Target:
    """The target that an attribute says; entries that it lacks are the defaults of its kind.

    ValueError for an attribute, an entry or a value that says nothing of a target.
    """
    if not isinstance(attribute, DictAttr):
        raise ValueError(f'is {attribute}; a target is a dictionary, such as {{kind = "cpu", vector_bits = 512}}')
    values: dict[str, Any] = {}
    for key, entry in attribute.entries.items():
        match entry:
            case StringAttr(value=text):
                values[key] = text
            case IntegerAttr(value=number, type=type) if type is not I1:
                values[key] = number
            case ArrayAttr(elements=parts) if all(isinstance(p, StringAttr) for p in parts):
                values[key] = tuple([p.value for p in parts if isinstance(p, StringAttr)])
            case _:
                values[key] = entry
    return of_numbers(values)


def of_numbers(values: Mapping[str, Any]) -> Target:
    """The target with these numbers, by the names of `Target`; the others are the defaults of its kind.

    ValueError for a name or a value that is none of a target's.
    """
    kind = values.get("kind", "cpu")
    base = DEFAULTS.get(kind) if isinstance(kind, str) else None
    if base is None:
        shown = f"'{kind}'" if isinstance(kind, str) else kind
        raise ValueError(f"has the kind {shown}; there are {', '.join(DEFAULTS)}")
    for key, value in values.items():
        if key not in NUMBERS:
            raise ValueError(f"has the unknown entry '{key}'; there are {', '.join(NUMBERS)}")
        default = getattr(base, key)
        least = 0 if key in _MAY_BE_NONE else 1
        if isinstance(default, tuple):
            expected = "" if isinstance(value, tuple) else "a list of strings"
        elif isinstance(default, str):
            expected = "" if isinstance(value, str) else "a string"
        else:
            expected = "" if isinstance(value, int) and value >= least else f"an integer from {least} up"
        if expected:
            raise ValueError(f"has {key} = {value}; it is {expected}")
    return replace(base, **values)

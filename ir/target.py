"""What passes know of a device: a few numbers, kept as the module attribute `nablair.target`.

    module attributes {nablair.target = {kind = "cpu", vector_bits = 512 : i64, ..}}

The runtime fills it from the device, a person from the command line; without one the numbers are those of a CPU with
256-bit vectors.  All of them may be tuned.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Final

from .attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, StringAttr
from .operations import Operation
from .types import I64

ATTRIBUTE: Final = "nablair.target"


@dataclass(frozen=True, slots=True)
class Target:
    """A device, as passes see it."""

    kind: str = "cpu"
    """cpu, opencl or cuda."""
    vector_bits: int = 256
    """Bits of a vector register."""
    vector_registers: int = 16
    """Vector registers of a core; the accumulators of a product fill them."""
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
    threads: int = 1
    """Workers; on a GPU the threads of a block."""
    resident_threads: int = 1 << 14
    """Threads that keep a GPU busy."""
    private_bytes: int = 2 << 10
    """What a thread of a GPU may keep in private memory."""
    l1: int = 32 << 10
    """Bytes of the first cache."""
    l1_way: int = 4 << 10
    """Bytes of a way of it: addresses that lie so far apart meet in one set."""
    l2: int = 512 << 10
    """Bytes of the second cache."""
    l3: int = 8 << 20
    """Bytes of the third cache."""
    warp: int = 32
    """Threads that run in step and shuffle values among each other."""
    shared_bytes: int = 48 << 10
    """Memory that the threads of a block share."""
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
        """The target that an op's module names, or the default of a kind."""
        module: Operation | None = op
        while module is not None:
            found = module.attributes.get(ATTRIBUTE)
            if isinstance(found, DictAttr):
                return from_attribute(found)
            module = module.parent_op
        return Target()


DEFAULTS: Final[dict[str, Target]] = {
    "cpu": Target(),
    "opencl": Target(kind="opencl", rows=64, local_bytes=32 << 10, grain=64, threads=256),
    "cuda": Target(kind="cuda", rows=64, local_bytes=32 << 10, grain=64, threads=256),
}
"""The numbers of each kind of device where nothing more is known."""


def from_attribute(attribute: DictAttr) -> Target:
    """The target that an attribute says; entries that it lacks are the defaults of its kind."""
    entries = attribute.entries
    kind = entries.get("kind")
    base = DEFAULTS.get(kind.value if isinstance(kind, StringAttr) else "cpu", Target())
    values: dict[str, Any] = {}
    for f in fields(Target):
        match entries.get(f.name):
            case StringAttr(value=text) if isinstance(getattr(base, f.name), str):
                values[f.name] = text
            case IntegerAttr(value=number) if isinstance(getattr(base, f.name), int):
                values[f.name] = number
            case ArrayAttr(elements=parts) if isinstance(getattr(base, f.name), tuple):
                values[f.name] = tuple(p.value for p in parts if isinstance(p, StringAttr))
            case _:
                pass
    return replace(base, **values)

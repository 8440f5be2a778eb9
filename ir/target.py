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
    """A device, as passes see it.

    `rows`: how many rows of a tile share one read of an operand; `local_bytes`: what a point may keep in a local array;
    `grain`: points that a launch needs at least to be worth its threads (of a gpu: its blocks); `threads`: workers
    (cpu) or threads of a block
    (gpu); `features`: instruction sets and extensions, in the target's own spelling; caches in bytes.
    """

    kind: str = "cpu"
    vector_bits: int = 256
    rows: int = 16
    local_bytes: int = 256 << 10
    grain: int = 4
    threads: int = 1
    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20
    warp: int = 32
    shared_bytes: int = 48 << 10
    features: tuple[str, ...] = ()

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

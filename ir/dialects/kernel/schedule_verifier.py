"""What the attribute `schedule` of a kernel may say: its keys, the form of each, and the axes and operands it names.

    {loops = [[2, 256], [0, 14]], map = ["", "worker"], split = [[1, 64]], chain = [[2, 32]], vector = [[1, 16]],
     unroll = [[0, 14]], pack = [{operand = 1, at = 1, panel = 32}], space = [[0, "out"]], stream = true,
     mma = [16, 8, 16]}

Whether a pass can do what is asked is for the pass to say; here stands what no kernel could mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, StringAttr
from ...types import I1, MemRefType, TensorType
from .base import Axes
from .loops import Local

if TYPE_CHECKING:
    from .launch import Launch

PAIRS = ("loops", "split", "chain", "vector", "unroll")
KEYS = ("chain", "loops", "map", "mma", "pack", "space", "split", "stream", "unroll", "vector")
RUNNERS = ("", "worker", *(f"{kind}.{axis}" for kind in ("block", "warp", "thread") for axis in "xyz"))
PACK_KEYS = {"operand": 0, "at": 0, "panel": 0, "pad": 0, "stages": 1}
"""The numbers of a pack, and the least that each may be."""


def verify_schedule(op: Launch) -> None:
    """Raise when the schedule of a launch names what is not there, or has no meaning."""
    schedule = op.schedule
    if schedule is None:
        return
    axes = sum(inner.rank for inner in op.walk() if isinstance(inner, Axes))
    buffers = [isinstance(v.type, TensorType | MemRefType) for v in op.ins]
    locals_ = sum(isinstance(inner, Local) for inner in op.walk())
    found = problem(schedule, axes, buffers, locals_)
    if found is not None:
        raise op.error(f"has a schedule {found}")


def problem(
    schedule: DictAttr, axes: int | None = None, buffers: Sequence[bool] | None = None, locals_: int | None = None
) -> str | None:
    """What is wrong with a schedule, or None: for a kernel of so many axes and locals, whose ins are buffers or not;
    None where that is not known."""
    entries = schedule.entries
    for key in entries:
        if key not in KEYS:
            return f"with the unknown key '{key}'; there are {', '.join(KEYS)}"
    for key in PAIRS:
        found = _pairs_problem(entries.get(key), axes, repeated=key == "loops")
        if found is not None:
            return f"whose '{key}' {found}"
    loops = len(_elements(entries.get("loops")))
    return (
        _map_problem(entries.get("map"), loops)
        or _packs_problem(entries.get("pack"), loops, buffers)
        or _space_problem(entries.get("space"), locals_)
        or _rest_problem(entries)
    )


def _elements(attribute: Attribute | None) -> tuple[Attribute, ...]:
    return tuple(attribute.elements) if isinstance(attribute, ArrayAttr) else ()


def _number(attribute: Attribute | None) -> int | None:
    return attribute.value if isinstance(attribute, IntegerAttr) else None


def _pairs_problem(attribute: Attribute | None, axes: int | None, *, repeated: bool) -> str | None:
    if attribute is None:
        return None
    if not isinstance(attribute, ArrayAttr):
        return f"is {attribute}; it is a list of pairs [axis, number]"
    seen: set[int] = set()
    for pair in attribute.elements:
        numbers = [_number(e) for e in _elements(pair)]
        axis, size = numbers if len(numbers) == 2 else (None, None)
        if axis is None or size is None:
            return f"has the entry {pair}; an entry is a pair [axis, number]"
        if axis < 0 or (axes is not None and axis >= axes):
            return (
                f"names the axis {axis}; the kernel has the axes 0 to {axes - 1}" if axes else f"names the axis {axis}"
            )
        if size < 1:
            return f"gives the axis {axis} the number {size}; the least is 1"
        if axis in seen and not repeated:
            return f"names the axis {axis} twice"
        seen.add(axis)
    return None


def _map_problem(attribute: Attribute | None, loops: int) -> str | None:
    if attribute is None:
        return None
    runners = [e.value if isinstance(e, StringAttr) else None for e in _elements(attribute)]
    if not isinstance(attribute, ArrayAttr) or None in runners:
        return f"whose 'map' is {attribute}; it is a list of names"
    for runner in runners:
        if runner not in RUNNERS:
            return f"whose 'map' has the unknown name \"{runner}\"; there are {', '.join(map(repr, RUNNERS))}"
    return f"whose 'map' has {len(runners)} entries for {loops} loops" if len(runners) > loops else None


def _packs_problem(attribute: Attribute | None, loops: int, buffers: Sequence[bool] | None) -> str | None:
    if attribute is None:
        return None
    if not isinstance(attribute, ArrayAttr) or not all(isinstance(e, DictAttr) for e in attribute.elements):
        return f"whose 'pack' is {attribute}; it is a list of {{operand = .., at = ..}}"
    for pack in attribute.elements:
        assert isinstance(pack, DictAttr)
        for key, value in pack.entries.items():
            if key != "space" and key not in PACK_KEYS:
                return f"whose 'pack' has the unknown key '{key}'; there are {', '.join(sorted([*PACK_KEYS, 'space']))}"
            number = _number(value)
            if key == "space" and not isinstance(value, StringAttr):
                return f"whose 'pack' has the space {value}; it is a name"
            if key != "space" and (number is None or number < PACK_KEYS[key]):
                return f"whose 'pack' has {key} = {value}; it is a number from {PACK_KEYS[key]} up"
        operand, at = _number(pack.entries.get("operand")), _number(pack.entries.get("at")) or 0
        if operand is None:
            return "whose 'pack' names no operand"
        if buffers is not None and (operand >= len(buffers) or not buffers[operand]):
            return f"whose 'pack' names the operand {operand}, which is not an array among the {len(buffers)} ins"
        if at > loops:
            return f"whose 'pack' stands inside {at} block loops, of which there are {loops}"
    return None


def _space_problem(attribute: Attribute | None, locals_: int | None) -> str | None:
    if attribute is None:
        return None
    for pair in _elements(attribute):
        parts = _elements(pair)
        number = _number(parts[0]) if len(parts) == 2 else None
        if number is None or not isinstance(parts[1], StringAttr):
            return f"whose 'space' has the entry {pair}; an entry is a pair [local, place]"
        if number < 0 or (locals_ is not None and number >= locals_):
            return f"whose 'space' names the local {number}, of which there are {locals_}"
    return None if isinstance(attribute, ArrayAttr) else f"whose 'space' is {attribute}; it is a list of pairs"


def _rest_problem(entries: dict[str, Attribute]) -> str | None:
    stream, mma = entries.get("stream"), entries.get("mma")
    if stream is not None and not (isinstance(stream, IntegerAttr) and stream.type is I1):
        return f"whose 'stream' is {stream}; it is true or false"
    if mma is not None:
        tile = [_number(e) for e in _elements(mma)]
        if len(tile) != 3 or any(n is None or n < 1 for n in tile):
            return f"whose 'mma' is {mma}; it is the three extents of a tile"
    return None

"""The attribute `schedule` of a kernel, read and written.

    {loops = [[2, 256], [0, 14], [1, 32]], vector = [[1, 16]], unroll = [[1, 2], [0, 14]], pack = [{operand = 1, ..}]}

Axes are numbered in text order: the domain's first, then those of inner loops.  A key that is absent asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ...ir.attribute_names import SCHEDULE
from ...ir.attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, StringAttr
from ...ir.diagnostics import PassError
from ...ir.dialects.kernel.schedule_verifier import problem
from ...ir.operations import Operation
from ...ir.types import I1, I64

WORKER = "worker"
"""In `map`: the blocks of the loop run on any of several threads."""

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Packing:
    """Copy the box of in `operand` that is read inside the first `at` block loops.

    `panel`: the extent of the vector axis that lies together, 0 for none; `pad`: elements added to a row; `space` and
    `stages` are for GPUs: where the copy lives, and how many are in flight.
    """

    operand: int
    at: int
    panel: int = 0
    pad: int = 0
    space: str = ""
    stages: int = 1

    def attribute(self) -> DictAttr:
        """As it stands in IR."""
        entries: dict[str, Attribute] = {"operand": _number(self.operand), "at": _number(self.at)}
        for name, value, default in (("panel", self.panel, 0), ("pad", self.pad, 0), ("stages", self.stages, 1)):
            if value != default:
                entries[name] = _number(value)
        if self.space:
            entries["space"] = StringAttr(self.space)
        return DictAttr(entries)

    @staticmethod
    def of(attribute: Attribute) -> Packing:
        """The packing that an entry of the schedule states."""
        assert isinstance(attribute, DictAttr)
        entries = attribute.entries

        def number(name: str, default: int) -> int:
            found = entries.get(name)
            return found.value if isinstance(found, IntegerAttr) else default

        space = entries.get("space")
        return Packing(
            number("operand", 0),
            number("at", 0),
            number("panel", 0),
            number("pad", 0),
            space.value if isinstance(space, StringAttr) else "",
            number("stages", 1),
        )


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is asked of the loops of a kernel.

    `loops`: block loops `(axis, block)`, outermost first; `map`: who runs each ("" in sequence); `split`: partial
    results `(axis, lanes)` of a fold; `chain`: the steps `(axis, steps)` that a fold takes one after another before
    what it has is added to the rest, or the points of the domain of which accumulates make one partial result;
    `vector`: lanes; `unroll`: copies that are jammed; `pack`: copies of operands;
    `space`: where locals live `(local, place)`; `stream`: stores around the caches; `mma`: the tile of a matrix unit.
    """

    loops: Pairs = ()
    map: tuple[str, ...] = ()
    split: Pairs = ()
    chain: Pairs = ()
    vector: Pairs = ()
    unroll: Pairs = ()
    pack: tuple[Packing, ...] = ()
    space: tuple[tuple[int, str], ...] = ()
    stream: bool = False
    mma: tuple[int, ...] = field(default=())

    @staticmethod
    def of(op: Operation) -> Schedule:
        """The schedule of a kernel (a launch or a function); an empty one where there is none.

        PassError when that of a function, which no verifier knows, has no meaning.
        """
        found = op.properties.get(SCHEDULE)
        if found is None and SCHEDULE in op.attributes:
            found = op.attributes[SCHEDULE]
            wrong = problem(found) if isinstance(found, DictAttr) else f"that is {found}; it is a dictionary"
            if wrong is not None:
                raise PassError(f"'{op.name}' op has a schedule {wrong}", op.location)
        return Schedule.from_attribute(found) if isinstance(found, DictAttr) else Schedule()

    @staticmethod
    def from_attribute(attribute: DictAttr) -> Schedule:
        """The schedule that an attribute of a function states."""
        entries = attribute.entries
        stream = entries.get("stream")
        return Schedule(
            loops=_pairs(entries.get("loops")),
            map=tuple(e.value for e in _elements(entries.get("map")) if isinstance(e, StringAttr)),
            split=_pairs(entries.get("split")),
            chain=_pairs(entries.get("chain")),
            vector=_pairs(entries.get("vector")),
            unroll=_pairs(entries.get("unroll")),
            pack=tuple(Packing.of(e) for e in _elements(entries.get("pack"))),
            space=tuple(
                (pair[0].value, pair[1].value)
                for e in _elements(entries.get("space"))
                if len(pair := _elements(e)) == 2
                and isinstance(pair[0], IntegerAttr)
                and isinstance(pair[1], StringAttr)
            ),
            stream=isinstance(stream, IntegerAttr) and bool(stream.value),
            mma=tuple(e.value for e in _elements(entries.get("mma")) if isinstance(e, IntegerAttr)),
        )

    def attribute(self) -> DictAttr:
        """As it stands in IR; what is not asked for is left out."""
        entries: dict[str, Attribute] = {}
        for name, pairs in (
            ("loops", self.loops),
            ("split", self.split),
            ("chain", self.chain),
            ("vector", self.vector),
            ("unroll", self.unroll),
        ):
            if pairs:
                entries[name] = ArrayAttr([ArrayAttr([_number(a), _number(n)]) for a, n in pairs])
        if self.map:
            entries["map"] = ArrayAttr([StringAttr(m) for m in self.map])
        if self.pack:
            entries["pack"] = ArrayAttr([p.attribute() for p in self.pack])
        if self.space:
            entries["space"] = ArrayAttr([ArrayAttr([_number(a), StringAttr(s)]) for a, s in self.space])
        if self.stream:
            entries["stream"] = IntegerAttr(1, I1)
        if self.mma:
            entries["mma"] = ArrayAttr([_number(n) for n in self.mma])
        return DictAttr(entries)

    def renumbered(self, number: Callable[[int], int | None]) -> Schedule:
        """The same with other numbers of axes; what is asked of an axis that has none (None) is dropped."""

        def moved(pairs: Pairs) -> Pairs:
            return tuple((new, n) for a, n in pairs if (new := number(a)) is not None)

        kept = [i for i, (axis, _) in enumerate(self.loops) if number(axis) is not None]
        return replace(
            self,
            loops=moved(self.loops),
            map=tuple(self.map[i] for i in kept if i < len(self.map)),
            split=moved(self.split),
            chain=moved(self.chain),
            vector=moved(self.vector),
            unroll=moved(self.unroll),
        )


def _number(value: int) -> IntegerAttr:
    return IntegerAttr(value, I64)


def _elements(attribute: Attribute | None) -> tuple[Attribute, ...]:
    return tuple(attribute.elements) if isinstance(attribute, ArrayAttr) else ()


def _pairs(attribute: Attribute | None) -> Pairs:
    found: list[tuple[int, int]] = []
    for element in _elements(attribute):
        parts: Sequence[Attribute] = _elements(element)
        if len(parts) == 2 and isinstance(parts[0], IntegerAttr) and isinstance(parts[1], IntegerAttr):
            found.append((parts[0].value, parts[1].value))
    return tuple(found)

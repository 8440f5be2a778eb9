"""The launch: a set of points and the body that runs for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...attributes import ArrayAttr, Attribute, DictAttr, IntegerAttr, key_text
from ...builder import Builder
from ...definition import INDEX_, ISOLATED, SHAPED, attr, integers, make, region, variadic_operand, variadic_result
from ...effects import ANYTHING, effect_kind
from ...interfaces import CustomForm
from ...location import Location
from ...operations import Block, Region
from ...support import mixed
from ...support.mixed import Extent
from ...types import I64, INDEX, FloatType, IndexType, IntegerType, MemRefType, ShapedType, TensorType, Type
from ...values import BlockArgument, Value
from .accesses import Accumulate, Load, Store
from .base import LaunchLike, Yield
from .checks import check_extents, check_region, is_in_launch, join_types
from .coverage import covers
from .schedule_verifier import verify_schedule
from .text import index_arguments, parse_attributes, parse_axes, write_attributes

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer


class Launch(LaunchLike, CustomForm):
    """`%y = kernel.launch (%i, %j) in (64, %n) ins(%x : T) outs(%y : T, %z = %old : T) {..}`: a body for every point.

    The arguments of the body are the axes, the ins and the outs.  Outs are written only: an out starts undefined, or as
    a copy of its init; `inits` numbers the outs that have one.  On tensors the results are the outs.  On buffers there
    are no results, `outs_` holds all outs, and an out that `inits` numbers starts as it is.
    """

    name = "kernel.launch"
    traits = frozenset({ISOLATED})
    reads = ("ins",)
    writes = ("outs_",)
    extents_ = variadic_operand(INDEX_)
    ins = variadic_operand()
    outs_ = variadic_operand(SHAPED)
    outs = variadic_result()
    body = region()
    extents = integers()
    inits = integers(default=())
    schedule = attr(DictAttr, optional=True)

    @property
    def on_buffers(self) -> bool:
        """Whether ins and outs are memrefs: the form after bufferize."""
        return not self.results

    def init(self, out: int) -> Value | None:
        """The value that an out starts from: its init on tensors, itself on buffers; None when undefined."""
        if out not in self.inits:
            return None
        return self.outs_[out if self.on_buffers else self.inits.index(out)]

    def effects(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """The memrefs read and written: none on tensors."""
        written = [v for v in self.outs_ if isinstance(v.type, MemRefType)]
        read = [v for v in self.ins if isinstance(v.type, MemRefType)]
        if written:
            read += [v for i in self.inits if (v := self.init(i)) is not None]
        return tuple(read), tuple(written)

    def infer(self) -> Sequence[Type]:
        types = [a.type for a in self.out_arguments]
        return [] if any(isinstance(t, MemRefType) for t in types) else types

    def verify_(self) -> None:
        """Rules 1, 2, 3 and 7 for the launch as a whole."""
        check_extents(self)
        if is_in_launch(self):
            raise self.error("cannot stand in another launch")
        if len(self.body.blocks) != 1 or len(self.body.block.arguments) < self.rank + len(self.ins):
            raise self.error(
                f"needs a body of one block with {self.rank} axes, {len(self.ins)} ins and the outs as arguments"
            )
        outs = [a.type for a in self.out_arguments]
        expected = [*[INDEX] * self.rank, *(v.type for v in self.ins), *outs]
        check_region(self, "body", self.body, expected, [])
        _check_outs(self, outs)
        memory = MemRefType if self.on_buffers else TensorType
        for i, value in enumerate(self.ins):
            if not isinstance(value.type, memory | FloatType | IntegerType | IndexType):
                raise self.error(f"has an in number {i} of type {value.type} beside {memory.__name__} outs")
        for i, argument in enumerate(self.in_arguments):
            if isinstance(argument.type, ShapedType):
                _check_read_only(self, f"in number {i}", argument)
        for i, argument in enumerate(self.out_arguments):
            _check_written(self, i, argument)
        for inner in self.walk():
            if effect_kind(type(inner)) == ANYTHING:
                raise inner.error("may have effects, so it cannot stand in a launch, whose points come in any order")
        verify_schedule(self)

    @classmethod
    def parse(cls, p: Parser) -> Launch:
        """`(%i) in (64) ins(..) outs(..) schedule {..} attributes {..} {..}`.

        `ins`, `schedule` and `attributes` may be absent.
        """
        names, static, dynamic = parse_axes(p)
        arguments = index_arguments(names)
        ins: list[Value] = []
        buffers: list[Value] = []
        starts: dict[int, Value] = {}
        types: list[Type] = []

        def argument(is_out: bool) -> None:
            name = p.value_name()
            given = p.value_name() if p.accept("=") else None
            into = p.value_name() if is_out and given is None and p.accept("into") else None
            p.expect(":")
            type = p.type()
            arguments.append((name, type))
            if not is_out:
                ins.append(p.resolve(given or name, type))
                return
            if isinstance(type, MemRefType):
                buffers.append(p.resolve(given or into or name, type))
            if given is not None:
                starts[len(types)] = p.resolve(given, type)
            types.append(type)

        if p.accept("ins"):
            p.list("(", lambda: argument(False), ")")
        p.expect("outs")
        p.list("(", lambda: argument(True), ")")
        if buffers and len(buffers) != len(types):
            p.error("outs must be all tensors or all buffers")
        schedule = DictAttr(p.attribute_dict()) if p.accept("schedule") else None
        attributes = parse_attributes(p)
        body = p.region(arguments, isolated=True, terminator=Yield)
        op = make(
            cls,
            (dynamic, ins, buffers or list(starts.values())),
            [] if buffers else types,
            [body],
            (),
            {"extents": static, "inits": tuple(starts) or None, "schedule": schedule},
        )
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        outer = {v: w.names[v] for v in self.operands}
        extents = ", ".join(outer[e] if isinstance(e, Value) else str(e) for e in self.bounds)
        with w.isolated():
            shared = [*zip(self.in_arguments, self.ins)]
            if self.on_buffers:
                shared += zip(self.out_arguments, self.outs_)
            for argument, value in shared:
                w.adopt_name(argument, outer[value])
            w.fresh_names([*self.axes, *self.out_arguments])
            w.write("(")
            w.values(self.axes)
            w.write(f") in ({extents})")
            if self.ins:
                pairs = zip(self.in_arguments, self.ins)
                w.write(f" ins({', '.join(_named(w, a, outer[v], '=') for a, v in pairs)})")
            texts: list[str] = []
            for i, argument in enumerate(self.out_arguments):
                start = self.init(i)
                if start is not None:
                    texts.append(f"{w.names[argument]} = {outer[start]} : {argument.type}")
                elif self.on_buffers:
                    texts.append(_named(w, argument, outer[self.outs_[i]], "into"))
                else:
                    texts.append(f"{w.names[argument]} : {argument.type}")
            w.write(f" outs({', '.join(texts)})")
            if self.schedule is not None:
                w.write(f" schedule {_plain(self.schedule)}")
            write_attributes(w, self)
            w.write(" ")
            w.region(self.body, hide_terminator=True)

    @classmethod
    def build(
        cls,
        b: Builder,
        extents: Sequence[Extent],
        ins: Sequence[Value],
        outs: Sequence[Type | Value],
        inits: Mapping[int, Value] | None = None,
        *,
        names: Sequence[str] = (),
        schedule: Attribute | None = None,
        location: Location | None = None,
    ) -> Launch:
        """A launch with an empty body, to be filled and ended with `kernel.yield`.

        `outs` are the types of the outs, with `inits` from out number to value; or, on buffers, the memrefs, of which
        `inits` names those that start as they are.  `names` are wished for the axes.
        """
        static, dynamic = mixed.split(extents)
        buffers = [o for o in outs if isinstance(o, Value)]
        start = dict(sorted((inits or {}).items()))
        types = [o.type if isinstance(o, Value) else o for o in outs]
        block = Block([*[INDEX] * len(static), *(v.type for v in ins), *types])
        for argument, name in zip(block.arguments, [*names, *[None] * (len(static) - len(names))]):
            argument.name = name
        for argument, value in zip(block.arguments[len(static) :], ins):
            argument.name = value.name
        for argument, out in zip(block.arguments[len(static) + len(ins) :], outs):
            argument.name = out.name if isinstance(out, Value) else None
        return b.create(
            cls,
            dynamic,
            ins,
            buffers or list(start.values()),
            results=[] if buffers else types,
            regions=[Region([block])],
            location=location,
            extents=static,
            inits=tuple(start) or None,
            schedule=schedule,
        )


def _check_outs(op: Launch, outs: Sequence[Type]) -> None:
    inits = op.inits
    if list(inits) != sorted(set(inits)) or any(not 0 <= i < len(outs) for i in inits):
        raise op.error(f"has inits {list(inits)}, which must be ascending numbers of its {len(outs)} outs")
    if not outs:
        raise op.error("has no outs, so it does nothing")
    if op.results:
        given = [r.type for r in op.results]
        if given != list(outs):
            raise op.error(f"has results ({join_types(given)}) but outs ({join_types(outs)})")
        wanted = [outs[i] for i in inits]
    else:
        wanted = list(outs)
        if not all(isinstance(t, MemRefType) for t in outs):
            raise op.error("has no results, so its outs must be memrefs")
    starts = [v.type for v in op.outs_]
    if starts != wanted:
        raise op.error(f"expects inits or buffers of types ({join_types(wanted)}), got ({join_types(starts)})")


def _check_read_only(op: Launch, what: str, argument: Value) -> None:
    for user in argument.users:
        if not isinstance(user, Load):
            raise op.error(f"has the {what} used by '{user.name}'; an in is read by kernel.load only")


def _check_written(op: Launch, number: int, argument: BlockArgument) -> None:
    stores: list[Store] = []
    accumulates: list[Accumulate] = []
    for user in argument.users:
        if isinstance(user, Store) and user.value is not argument:
            stores.append(user)
        elif isinstance(user, Accumulate) and argument not in user.values:
            accumulates.append(user)
        else:
            raise op.error(f"has out number {number} used by '{user.name}'; an out is written only")
    if stores and accumulates:
        raise op.error(f"both stores to and accumulates into out number {number}")
    type = argument.type
    assert isinstance(type, ShapedType)
    if number in op.inits or accumulates:
        return
    if not stores:
        raise op.error(f"never writes out number {number}, which has no init")
    if all(len(s.subscripts) == type.rank for s in stores) and not covers(stores, type.shape):
        raise op.error(
            f"does not provably store each element of out number {number}, {type}, once; "
            f"give it an init: outs(%y = %x : {type})"
        )


def _named(w: Printer, argument: Value, given: str, word: str) -> str:
    name = w.names[argument]
    return f"{name} : {argument.type}" if name == given else f"{name} {word} {given} : {argument.type}"


def _plain(attribute: Attribute) -> str:
    """An attribute whose i64 integers stand without their type, which text takes for granted."""
    if isinstance(attribute, IntegerAttr) and attribute.type is I64:
        return str(attribute.value)
    if isinstance(attribute, ArrayAttr):
        return f"[{', '.join(map(_plain, attribute.elements))}]"
    if isinstance(attribute, DictAttr):
        return "{" + ", ".join(f"{key_text(k)} = {_plain(v)}" for k, v in attribute.entries.items()) + "}"
    return str(attribute)

"""The custom form of the kernel ops.

    %y = kernel.launch (%i) in (%n) ins(%x : tensor<?x64xf32, ["n"]>) outs(%y : tensor<?xf32, ["n"]>) {
      %s = kernel.reduce (%k) in (64) by arith.addf {
        %0 = kernel.load %x[%i, %k]
        kernel.yield %0
      }
      kernel.store %s, %y[%i]
    }

Types stand in the header alone.  A body is isolated, so an in may have its operand's name there; `%a = %x : T` gives
it another one.  An out is `%y : T`, which starts undefined, or `%z = %old : T`, which starts as its init.  On buffers
`%y : memref<..>` names the buffer itself, `%y into %b : memref<..>` gives it another name, and `%y = %b : memref<..>`
says that it starts as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ...attributes import ArrayAttr, Attribute, DenseAttr, DictAttr, IntegerAttr, dict_text, key_text
from ...definition import make
from ...interfaces import MonoidOp
from ...operations import Block, Operation, Region
from ...support import mixed
from ...types import I1, I64, INDEX, MemRefType, ShapedType, Type, element_type
from ...values import Value
from .ops import (
    Accumulate,
    Axes,
    Fold,
    Launch,
    Load,
    Local,
    Loop,
    Monoidal,
    Reduce,
    Scan,
    Store,
    Sweep,
    Yield,
    combine_block,
    operator_class,
    scalar_type,
)

if TYPE_CHECKING:
    from ...parser import Parser, ValueName
    from ...printer import Printer

A = TypeVar("A", bound=Axes)


# Parsing.


def _axes(p: Parser) -> tuple[list[ValueName], list[int], list[Value]]:
    """`(%i, %j) in (64, %n)`: the names of the axes, the extents and the dynamic ones."""
    names = p.list("(", p.value_name, ")")
    p.expect("in")
    start = p.i
    entries = mixed.parse(p, "(", ")")
    if len(entries) != len(names):
        p.error(f"{len(names)} axes but {len(entries)} extents", start)
    static, dynamic = mixed.split(entries)
    return names, static, dynamic


def _attributes(p: Parser) -> dict[str, Attribute]:
    """`attributes {..}`, if it stands here."""
    return p.attribute_dict() if p.accept("attributes") else {}


def _indices(names: Sequence[ValueName]) -> list[tuple[ValueName, Type]]:
    return [(n, INDEX) for n in names]


def parse_launch(cls: type[Launch], p: Parser) -> Launch:
    """`(%i) in (64) ins(..) outs(..) schedule {..} attributes {..} {..}`; ins, schedule, attributes may be absent."""
    names, static, dynamic = _axes(p)
    arguments = _indices(names)
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
    attributes = _attributes(p)
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


def parse_load(cls: type[Load], p: Parser) -> Load:
    """`%x[%i, %j] else 0.0 : i1`; the type only where a bool is loaded from a byte."""
    source = p.operand()
    start = p.i
    map, indices = p.affine_subscripts()
    if not isinstance(source.type, ShapedType):
        p.error(f"expected a tensor or memref, got a value of type {source.type}", start - 1)
    type = scalar_type(source.type)
    fill = None
    if p.accept("else"):
        # A bool in a byte: the type, which says so, comes last.
        fill = _number(p, I1 if p.at("true") or p.at("false") else type)
    attributes = p.optional_attr_dict()
    if p.accept(":"):
        type = p.type()
    op = make(cls, (source, indices), [type], (), (), {"map": map, "fill": fill})
    op.attributes = attributes
    return op


def _number(p: Parser, type: Type) -> Attribute:
    return p.attribute(type) if p.at_identifier() else p.number_attr(type)


def parse_store(cls: type[Store], p: Parser) -> Store:
    """`%v, %y[%i, %j]`."""
    value = p.operand()
    p.expect(",")
    dest = p.operand()
    map, indices = p.affine_subscripts()
    op = make(cls, (value, dest, indices), [], (), (), {"map": map})
    op.attributes = p.optional_attr_dict()
    return op


def parse_accumulate(cls: type[Accumulate], p: Parser) -> Accumulate:
    """`%v, %y[%j] by f`, or `(%v, %k), (%m[%i], %at[%i]) from (..) combine (..) {..}`."""
    dests: list[Value] = []
    places: list[tuple[Any, list[Value]]] = []

    def dest() -> None:
        dests.append(p.operand())
        start = p.i
        places.append(p.affine_subscripts())
        if places[-1] != places[0]:
            p.error("all outs of one accumulate must have the same subscripts", start)

    if p.at("("):
        values = p.list("(", p.operand, ")")
        p.expect(",")
        p.list("(", dest, ")")
    else:
        values = [p.operand()]
        p.expect(",")
        dest()
    map, indices = places[0]
    operators, identity = _by(p, [v.type for v in values])
    combine = _combine(p, operators, identity)
    groups = (values, dests, indices)
    op = make(cls, groups, [], [combine], (), {"map": map, "identity": ArrayAttr(identity)})
    op.attributes = p.optional_attr_dict()
    return op


def _by(p: Parser, types: Sequence[Type] | None) -> tuple[list[Any], list[Attribute]]:
    """`by f` or `from (..)`: the ops (with the identities of `types`, once known) or none and the identities."""
    if p.accept("from"):
        return [], p.list("(", lambda: _identity(p), ")")
    p.expect("by")
    start = p.i
    names = p.list("(", p.identifier, ")") if p.at("(") else [p.identifier()]
    operators = [p.checked(operator_class, n, at=start) for n in names]
    return operators, [] if types is None else _identities(p, operators, types, start)


def _identities(p: Parser, operators: Sequence[Any], types: Sequence[Type], start: int) -> list[Attribute]:
    if len(operators) != len(types):
        p.error(f"{len(operators)} monoid ops for elements of {len(types)} components", start)
    return [p.checked(f.identity, t, at=start) for f, t in zip(operators, types)]


def _identity(p: Parser) -> Attribute:
    """`0.0 : f32`, or `0.0 : tensor<8xf32>` for a local with all elements equal."""
    if p.at_identifier():
        return p.attribute()
    start = p.i
    p.accept("-")
    p.i += 1
    p.expect(":")
    type = p.type()
    end = p.i
    p.i = start
    found = p.number_attr(element_type(type))
    p.i = end
    return p.checked(DenseAttr.splat, type, found, at=start) if isinstance(type, ShapedType) else found


def _combine(p: Parser, operators: Sequence[Any], identity: Sequence[Attribute]) -> Region:
    """The combine region: of the ops, or as the text has it."""
    types: list[Type] = [getattr(a, "type") for a in identity]  # noqa: B009 (numeric attributes have one)
    if operators:
        return Region([combine_block(operators, types)])
    p.expect("combine")
    start = p.i
    names = p.list("(", p.value_name, ")")
    if len(names) != 2 * len(types):
        p.error(f"combine takes {2 * len(types)} arguments, {len(types)} for each element, got {len(names)}", start)
    return p.region(list(zip(names, [*types, *types])))


def _fold(cls: type[A], p: Parser, **properties: Any) -> A:
    """`(%k) in (64) by f {..}` or `(%k) in (64) from (..) {..} combine (..) {..}`, then perhaps `do (..) {..}`."""
    names, static, dynamic = _axes(p)
    operators, identity = _by(p, None)
    start = p.i
    attributes = _attributes(p)
    body = p.region(_indices(names))
    last = body.block.last
    if operators:
        types = [v.type for v in last.operands] if isinstance(last, Yield) else []
        identity = _identities(p, operators, types, start)
    regions = [body, _combine(p, operators, identity)]
    if issubclass(cls, Scan):
        p.expect("do")
        start = p.i
        seen = p.list("(", p.value_name, ")")
        types = [getattr(a, "type") for a in identity]  # noqa: B009 (numeric attributes have one)
        if len(seen) != 2 * len(types):
            p.error(f"do takes {2 * len(types)} arguments, before and after the step, got {len(seen)}", start)
        regions.append(p.region([*_indices(names), *zip(seen, [*types, *types])], terminator=Yield))
    properties |= {"extents": static, "identity": ArrayAttr(identity)}
    op = make(cls, (dynamic,), None, regions, (), properties)
    op.attributes = attributes
    return op


def parse_reduce(cls: type[Reduce], p: Parser) -> Reduce:
    """`(%k) in (64) by f {..}`, after `tree` where the fold is the halving tree."""
    return _fold(cls, p, tree=p.accept("tree"))


def parse_scan(cls: type[Scan], p: Parser) -> Scan:
    """`(%k) in (64) by f {..} do (%before, %after) {..}`."""
    return _fold(cls, p)


def parse_sweep(cls: type[Sweep], p: Parser) -> Sweep:
    """`(%j) in (64) {..}`."""
    names, static, dynamic = _axes(p)
    attributes = _attributes(p)
    op = make(cls, (dynamic,), [], [p.region(_indices(names), terminator=Yield)], (), {"extents": static})
    op.attributes = attributes
    return op


def parse_local(cls: type[Local], p: Parser) -> Local:
    """`(%k) in (64) : tensor<64xf32> {..}`."""
    names, static, dynamic = _axes(p)
    p.expect(":")
    type = p.type()
    attributes = _attributes(p)
    op = make(cls, (dynamic,), [type], [p.region(_indices(names))], (), {"extents": static})
    op.attributes = attributes
    return op


def parse_yield(cls: type[Yield], p: Parser) -> Yield:
    """`%a, %b`, or nothing."""
    values: list[Value] = []
    if p.at_value():
        values.append(p.operand())
        while p.accept(","):
            values.append(p.operand())
    op = cls(values)
    op.attributes = p.optional_attr_dict()
    return op


# Printing.


def _write_axes(w: Printer, axes: Sequence[Value], op: Axes) -> None:
    w.write("(")
    w.values(axes)
    w.write(") in ")
    mixed.write(w, op.bounds, "(", ")")


def _write_attributes(w: Printer, op: Operation) -> None:
    if op.attributes:
        w.write(f" attributes {dict_text(op.attributes)}")


def _separated(w: Printer, items: Sequence[Any], write: Callable[[Any], None]) -> None:
    for i, item in enumerate(items):
        w.write(", " if i else "")
        write(item)


def print_launch(op: Launch, w: Printer) -> None:
    """As `parse_launch` reads it."""
    outer = {v: w.names[v] for v in op.operands}
    extents = ", ".join(outer[e] if isinstance(e, Value) else str(e) for e in op.bounds)
    with w.isolated():
        shared = [*zip(op.in_arguments, op.ins)]
        if op.on_buffers:
            shared += zip(op.out_arguments, op.outs_)
        for argument, value in shared:
            w.adopt_name(argument, outer[value])
        w.fresh_names([*op.axes, *op.out_arguments])
        w.write("(")
        w.values(op.axes)
        w.write(f") in ({extents})")
        if op.ins:
            pairs = zip(op.in_arguments, op.ins)
            w.write(f" ins({', '.join(_named(w, a, outer[v], '=') for a, v in pairs)})")
        texts: list[str] = []
        for i, argument in enumerate(op.out_arguments):
            start = op.init(i)
            if start is not None:
                texts.append(f"{w.names[argument]} = {outer[start]} : {argument.type}")
            elif op.on_buffers:
                texts.append(_named(w, argument, outer[op.outs_[i]], "into"))
            else:
                texts.append(f"{w.names[argument]} : {argument.type}")
        w.write(f" outs({', '.join(texts)})")
        if op.schedule is not None:
            w.write(f" schedule {_plain(op.schedule)}")
        _write_attributes(w, op)
        w.write(" ")
        w.region(op.body, hide_terminator=True)


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


def print_load(op: Load, w: Printer) -> None:
    """As `parse_load` reads it."""
    w.value(op.source)
    w.subscripts(op.map, op.indices)
    if op.fill is not None:
        w.write(" else ")
        w.attribute(op.fill, with_type=False)
    w.attr_dict(op, elided=("map", "fill"))
    if op.result.type is not scalar_type(op.source.type):
        w.write(f" : {op.result.type}")


def print_store(op: Store, w: Printer) -> None:
    """As `parse_store` reads it."""
    w.value(op.value)
    w.write(", ")
    w.value(op.dest)
    w.subscripts(op.map, op.indices)
    w.attr_dict(op, elided=("map",))


def print_accumulate(op: Accumulate, w: Printer) -> None:
    """As `parse_accumulate` reads it."""

    def dest(value: Value) -> None:
        w.value(value)
        w.subscripts(op.map, op.indices)

    if len(op.values) == 1:
        w.value(op.values[0])
        w.write(", ")
        dest(op.dests[0])
    else:
        w.write("(")
        w.values(op.values)
        w.write("), (")
        _separated(w, op.dests, dest)
        w.write(")")
    short = _write_by(w, op)
    if not short:
        _write_combine(w, op)
    w.attr_dict(op, elided=("map", "identity"))


def _write_by(w: Printer, op: Monoidal) -> bool:
    """Write ` by f` where it says all of the monoid, else ` from (..)`; whether it did."""
    operators = op.operators
    types = op.identity_types
    if operators is not None and all(issubclass(f, MonoidOp) for f in operators):
        found: list[Any] = list(operators)
        if all(f.identity(t) is a for f, t, a in zip(found, types, op.identity)):
            names = ", ".join(f.name for f in found)
            w.write(f" by {names}" if len(found) == 1 else f" by ({names})")
            return True
    w.write(f" from ({', '.join(map(_identity_text, op.identity))})")
    return False


def _identity_text(attribute: Attribute) -> str:
    if isinstance(attribute, DenseAttr) and attribute.is_splat:
        return f"{str(attribute.scalar()).partition(' : ')[0]} : {attribute.type}"
    return str(attribute)


def _write_combine(w: Printer, op: Monoidal) -> None:
    block: Block = op.combine_region.block
    with w.scope():
        w.fresh_names(block.arguments)
        w.write(" combine (")
        w.values(block.arguments)
        w.write(") ")
        w.region(op.combine_region)


@contextmanager
def _loop(op: Loop, w: Printer) -> Generator[None]:
    """The axes of an inner loop, whose names end with it."""
    with w.scope():
        w.fresh_names(op.axes)
        _write_axes(w, op.axes, op)
        yield


def _write_fold(op: Fold, w: Printer) -> None:
    short = _write_by(w, op)
    _write_attributes(w, op)
    w.write(" ")
    w.region(op.body)
    if not short:
        _write_combine(w, op)


def print_reduce(op: Reduce, w: Printer) -> None:
    """As `parse_reduce` reads it."""
    if op.tree:
        w.write("tree ")
    with _loop(op, w):
        _write_fold(op, w)


def print_scan(op: Scan, w: Printer) -> None:
    """As `parse_scan` reads it."""
    with _loop(op, w):
        _write_fold(op, w)
        arguments = op.do.block.arguments
        for axis, again in zip(op.axes, arguments):
            w.names[again] = w.names[axis]
        seen = arguments[op.rank :]
        w.fresh_names(seen)
        w.write(" do (")
        w.values(seen)
        w.write(") ")
        w.region(op.do, hide_terminator=True)


def print_sweep(op: Sweep, w: Printer) -> None:
    """As `parse_sweep` reads it."""
    with _loop(op, w):
        _write_attributes(w, op)
        w.write(" ")
        w.region(op.body, hide_terminator=True)


def print_local(op: Local, w: Printer) -> None:
    """As `parse_local` reads it."""
    with _loop(op, w):
        w.write(" : ")
        w.type(op.result.type)
        _write_attributes(w, op)
        w.write(" ")
        w.region(op.body)


def print_yield(op: Yield, w: Printer) -> None:
    """As `parse_yield` reads it."""
    if op.values:
        w.values(op.values)
    w.attr_dict(op)

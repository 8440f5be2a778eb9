"""What the custom forms of the kernel ops share.

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

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...attributes import Attribute, DenseAttr, dict_text
from ...definition import Op
from ...interfaces import MonoidOp
from ...operations import Block, Operation, Region
from ...support import mixed
from ...types import INDEX, ShapedType, Type, element_type
from ...values import Value
from .base import Axes, Loop, Monoidal, combine_block, identity_of, operator_class, types_of

if TYPE_CHECKING:
    from ...parser import Parser, ValueName
    from ...printer import Printer


def parse_axes(p: Parser) -> tuple[list[ValueName], list[int], list[Value]]:
    """`(%i, %j) in (64, %n)`: the names of the axes, the extents and the dynamic ones."""
    names = p.list("(", p.value_name, ")")
    p.expect("in")
    start = p.i
    entries = mixed.parse(p, "(", ")")
    if len(entries) != len(names):
        p.error(f"{len(names)} axes but {len(entries)} extents", start)
    static, dynamic = mixed.split(entries)
    return names, static, dynamic


def parse_attributes(p: Parser) -> dict[str, Attribute]:
    """`attributes {..}`, if it stands here."""
    return p.attribute_dict() if p.accept("attributes") else {}


def index_arguments(names: Sequence[ValueName]) -> list[tuple[ValueName, Type]]:
    """The axes as arguments of a body."""
    return [(n, INDEX) for n in names]


def parse_by(p: Parser, types: Sequence[Type] | None) -> tuple[list[type[Op]], list[Attribute]]:
    """`by f` or `from (..)`: the ops (with the identities of `types`, once known) or none and the identities."""
    if p.accept("from"):
        return [], p.list("(", lambda: _identity(p), ")")
    p.expect("by")
    start = p.i
    names = p.list("(", p.identifier, ")") if p.at("(") else [p.identifier()]
    operators = [p.checked(operator_class, n, at=start) for n in names]
    return operators, [] if types is None else parse_identities(p, operators, types, start)


def parse_identities(p: Parser, operators: Sequence[type[Op]], types: Sequence[Type], start: int) -> list[Attribute]:
    """The identities of as many ops for elements of these types, whose text stands at `start`."""
    if len(operators) != len(types):
        p.error(f"{len(operators)} monoid ops for elements of {len(types)} components", start)
    return [p.checked(identity_of, f, t, at=start) for f, t in zip(operators, types)]


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


def parse_combine(p: Parser, operators: Sequence[type[Op]], identity: Sequence[Attribute]) -> Region:
    """The combine region: of the ops, or as the text has it."""
    types = types_of(identity)
    if operators:
        return Region([combine_block(operators, types)])
    p.expect("combine")
    start = p.i
    names = p.list("(", p.value_name, ")")
    if len(names) != 2 * len(types):
        p.error(f"combine takes {2 * len(types)} arguments, {len(types)} for each element, got {len(names)}", start)
    return p.region(list(zip(names, [*types, *types])))


def write_axes(w: Printer, axes: Sequence[Value], op: Axes) -> None:
    """As `parse_axes` reads it."""
    w.write("(")
    w.values(axes)
    w.write(") in ")
    mixed.write(w, op.bounds, "(", ")")


def write_attributes(w: Printer, op: Operation) -> None:
    """As `parse_attributes` reads it."""
    if op.attributes:
        w.write(f" attributes {dict_text(op.attributes)}")


def write_by(w: Printer, op: Monoidal) -> bool:
    """Write ` by f` where it says all of the monoid, else ` from (..)`; whether it did."""
    operators = op.operators
    types = op.identity_types
    if operators is not None and all(issubclass(f, MonoidOp) for f in operators):
        if all(identity_of(f, t) is a for f, t, a in zip(operators, types, op.identity)):
            names = ", ".join(f.name for f in operators)
            w.write(f" by {names}" if len(operators) == 1 else f" by ({names})")
            return True
    w.write(f" from ({', '.join(map(_identity_text, op.identity))})")
    return False


def _identity_text(attribute: Attribute) -> str:
    if isinstance(attribute, DenseAttr) and attribute.is_splat:
        return f"{str(attribute.scalar()).partition(' : ')[0]} : {attribute.type}"
    return str(attribute)


def write_combine(w: Printer, op: Monoidal) -> None:
    """As `parse_combine` reads it."""
    block: Block = op.combine_region.block
    with w.scope():
        w.fresh_names(block.arguments)
        w.write(" combine (")
        w.values(block.arguments)
        w.write(") ")
        w.region(op.combine_region)


@contextmanager
def loop_scope(op: Loop, w: Printer) -> Generator[None]:
    """The axes of an inner loop, whose names end with it."""
    with w.scope():
        w.fresh_names(op.axes)
        write_axes(w, op.axes, op)
        yield

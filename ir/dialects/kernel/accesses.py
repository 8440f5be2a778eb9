"""Loads, stores and accumulates: how a body reads the ins and writes the outs of its launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...affine import AffineConstant, AffineDim, AffineExpr, AffineMap
from ...attributes import ArrayAttr, Attribute, FloatAttr, IntegerAttr
from ...definition import INDEX_, PURE, SHAPED, array, attr, make, operand, region, result, variadic_operand
from ...interfaces import ConditionallySpeculatable, CustomForm
from ...operations import Region
from ...types import DYNAMIC, I1, ShapedType, Type
from ...values import BlockArgument, Value
from .base import Access, Axes, LaunchLike, Monoidal, holds, is_launch_argument, is_local, scalar_type
from .checks import check_place, verify_monoid
from .text import parse_by, parse_combine, write_by, write_combine

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer


class Load(Access, ConditionallySpeculatable, CustomForm):
    """`%v = kernel.load %t[%i + %k, %c] else 0.0`: an element of an in or a local; outside the bounds the fill."""

    name = "kernel.load"
    traits = frozenset({PURE})
    source = operand(SHAPED)
    indices = variadic_operand(INDEX_)
    fill = attr(optional=True)
    result = result()

    def infer(self) -> Sequence[Type]:
        found = scalar_type(self.source.type)
        if self.results and holds(self.source.type, self.results[0].type):
            return [self.results[0].type]
        return [found]

    def verify_(self) -> None:
        """Rules 1, 2 and 6."""
        _check_map(self, self.indices, self.source)
        element = scalar_type(self.source.type)
        found = self.result.type
        if not holds(self.source.type, found):
            raise self.error(f"loads {found} from {self.source.type}, whose elements are {element}")
        source = self.source
        if not is_local(source) and not is_launch_argument(source):
            raise self.error("needs an in of the launch or a local as its source")
        fill = self.fill
        if fill is None:
            _check_bounds(self, self.indices, source)
        elif not isinstance(fill, FloatAttr | IntegerAttr) or fill.type is not found:
            raise self.error(f"has the fill {fill} for elements of type {found}")

    def is_speculatable(self) -> bool:
        """Whether it is in bounds even where a loop around it has no steps: guarded, or of whole axes and constants."""
        type = self.source.type
        if self.fill is not None or not isinstance(type, ShapedType):
            return self.fill is not None
        return all(
            _extent_of_axis(s, self.indices) is not None or (isinstance(s, AffineConstant) and 0 <= s.value < size)
            for s, size in zip(self.subscripts, type.shape, strict=True)
        )

    @classmethod
    def parse(cls, p: Parser) -> Load:
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

    def print(self, w: Printer) -> None:
        w.value(self.source)
        w.subscripts(self.map, self.indices)
        if self.fill is not None:
            w.write(" else ")
            w.attribute(self.fill, with_type=False)
        w.attr_dict(self, elided=("map", "fill"))
        if self.result.type is not scalar_type(self.source.type):
            w.write(f" : {self.result.type}")


class Store(Access, CustomForm):
    """`kernel.store %v, %y[%i, %j]`: writes an element of an out."""

    name = "kernel.store"
    writes = ("dest",)
    value = operand()
    dest = operand(SHAPED)
    indices = variadic_operand(INDEX_)

    def verify_(self) -> None:
        """Rules 1, 4 and 6."""
        _check_dest(self, self.indices, self.dest, self.value)

    @classmethod
    def parse(cls, p: Parser) -> Store:
        """`%v, %y[%i, %j]`."""
        value = p.operand()
        p.expect(",")
        dest = p.operand()
        map, indices = p.affine_subscripts()
        op = make(cls, (value, dest, indices), [], (), (), {"map": map})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.value(self.value)
        w.write(", ")
        w.value(self.dest)
        w.subscripts(self.map, self.indices)
        w.attr_dict(self, elided=("map",))


class Accumulate(Access, Monoidal, CustomForm):
    """`kernel.accumulate %v, %y[%j] by arith.addf`: `y[j] = combine(y[j], v)`, over all points and steps in order.

    An out starts from the identity, or from its init; it is visible after the launch.  A tuple,
    `(%v, %k), (%m[%i], %at[%i])`, uses the same subscripts in all outs.
    """

    name = "kernel.accumulate"
    writes = ("dests",)
    values = variadic_operand()
    dests = variadic_operand(SHAPED)
    indices = variadic_operand(INDEX_)
    identity = array()
    combine = region()

    @property
    def combine_region(self) -> Region:
        return self.combine

    def verify_(self) -> None:
        """Rules 1, 4, 5 and 6."""
        if not self.values or len(self.values) != len(self.dests):
            raise self.error(f"has {len(self.values)} values for {len(self.dests)} outs")
        for value, dest in zip(self.values, self.dests):
            _check_dest(self, self.indices, dest, value)
        verify_monoid(self, [v.type for v in self.values])

    @classmethod
    def parse(cls, p: Parser) -> Accumulate:
        """`%v, %y[%j] by f`, or `(%v, %k), (%m[%i], %at[%i]) from (..) combine (..) {..}`."""
        dests: list[Value] = []
        places: list[tuple[AffineMap, list[Value]]] = []

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
        operators, identity = parse_by(p, [v.type for v in values])
        combine = parse_combine(p, operators, identity)
        groups = (values, dests, indices)
        op = make(cls, groups, [], [combine], (), {"map": map, "identity": ArrayAttr(identity)})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        def dest(value: Value) -> None:
            w.value(value)
            w.subscripts(self.map, self.indices)

        if len(self.values) == 1:
            w.value(self.values[0])
            w.write(", ")
            dest(self.dests[0])
        else:
            w.write("(")
            w.values(self.values)
            w.write("), (")
            for i, value in enumerate(self.dests):
                w.write(", " if i else "")
                dest(value)
            w.write(")")
        short = write_by(w, self)
        if not short:
            write_combine(w, self)
        w.attr_dict(self, elided=("map", "identity"))


def _check_map(op: Access, indices: Sequence[Value], memory: Value) -> None:
    type = memory.type
    map = op.map
    if not isinstance(type, ShapedType):
        raise op.error(f"needs a tensor or memref, got {type}")
    if map.num_symbols or map.num_dims != len(indices):
        raise op.error(f"has {len(indices)} indices for the map {map}")
    if len(map.results) != type.rank:
        raise op.error(f"has {len(map.results)} subscripts for {type} of rank {type.rank}")


def _extent_of_axis(subscript: AffineExpr, indices: Sequence[Value]) -> int | None:
    """The extent of the axis that is a subscript by itself, in the form of a shape; None where none is."""
    axis = indices[subscript.index] if isinstance(subscript, AffineDim) else None
    loop = axis.owner.parent_op if isinstance(axis, BlockArgument) else None
    if not isinstance(axis, BlockArgument) or not isinstance(loop, Axes) or axis.index >= loop.rank:
        return None
    return loop.extents[axis.index]


def _check_bounds(op: Access, indices: Sequence[Value], memory: Value) -> None:
    """Rule 6: whole axes and constants."""
    type = memory.type
    assert isinstance(type, ShapedType)
    for d, (subscript, size) in enumerate(zip(op.subscripts, type.shape)):
        extent = None if size == DYNAMIC else _extent_of_axis(subscript, indices)
        if extent is not None and extent != DYNAMIC and extent > size:
            hint = "; give the load an `else`" if isinstance(op, Load) else ""
            raise op.error(f"has an axis of extent {extent} as subscript {d} of {type}, which has {size} places{hint}")


def _check_dest(op: Store | Accumulate, indices: Sequence[Value], dest: Value, value: Value) -> None:
    _check_map(op, indices, dest)
    if not holds(dest.type, value.type):
        raise op.error(f"writes {value.type} to {dest.type}, whose elements are {scalar_type(dest.type)}")
    launch = dest.owner.parent_op if isinstance(dest, BlockArgument) else None
    if not isinstance(launch, LaunchLike) or dest not in launch.out_arguments:
        raise op.error("needs an out of the launch as its destination")
    _check_bounds(op, indices, dest)
    check_place(op)


def _number(p: Parser, type: Type) -> Attribute:
    return p.attribute(type) if p.at_identifier() else p.number_attr(type)

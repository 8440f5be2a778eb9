"""Loops inside a body: reduce, scan, sweep, and local, an array private to the point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from ...attributes import ArrayAttr
from ...definition import array, flag, make, region, result, variadic_result
from ...interfaces import CustomForm
from ...operations import Region
from ...types import INDEX, ShapedType, TensorType, Type
from .accesses import Load
from .base import Loop, Monoidal, Yield, scalar_type, types_of
from .checks import check_extents, check_inside, check_place, check_region, verify_monoid
from .text import (
    index_arguments,
    loop_scope,
    parse_attributes,
    parse_axes,
    parse_by,
    parse_combine,
    parse_identities,
    write_attributes,
    write_by,
    write_combine,
)

if TYPE_CHECKING:
    from ...parser import Parser, ValueName
    from ...printer import Printer

    Arguments = list[tuple[ValueName, Type]]

F = TypeVar("F", bound="Fold")


class Fold(Loop, Monoidal):
    """What reduce and scan share: a fold of a monoid over axes."""

    identity = array()
    combine = region()
    outs = variadic_result()

    @property
    def combine_region(self) -> Region:
        return self.combine

    def infer(self) -> Sequence[Type]:
        return self.identity_types

    def verify_(self) -> None:
        """Rules 1, 5 and 7 for reduce and scan."""
        check_inside(self)
        check_extents(self)
        types = [r.type for r in self.results]
        for type in types:
            if isinstance(type, ShapedType) and not (isinstance(type, TensorType) and type.is_static):
                raise self.error(f"folds elements of type {type}; a row must have static extents")
        check_region(self, "body", self.body, [INDEX] * self.rank, types)
        verify_monoid(self, types)


class Reduce(Fold, CustomForm):
    """`%s = kernel.reduce (%k) in (64) by f {.. kernel.yield %e}`: the elements folded in order, from the identity.

    The regions are body(axes), which yields an element, and combine(a.., b..).  With `tree` the fold is the halving
    tree instead: element i is combined with element i + h, h being half of the number rounded up, until one is left.
    """

    name = "kernel.reduce"
    tree = flag()

    @classmethod
    def parse(cls, p: Parser) -> Reduce:
        """`(%k) in (64) by f {..}`, after `tree` where the fold is the halving tree."""
        return _fold(cls, p, tree=p.accept("tree"))

    def print(self, w: Printer) -> None:
        if self.tree:
            w.write("tree ")
        with loop_scope(self, w):
            _write_fold(self, w)


class Scan(Fold, CustomForm):
    """`%t = kernel.scan (%k) in (64) by f {.. kernel.yield %e} do (%before, %after) {..}`: the fold, seen at each step.

    The arguments of `do` are the axes and the fold before and after the step's element; it may store.
    """

    name = "kernel.scan"
    do = region()

    def may_write_in(self, region: Region) -> bool:
        return region is self.do

    def verify_(self) -> None:
        super().verify_()
        element = self.identity_types
        check_region(self, "do region", self.do, [*[INDEX] * self.rank, *element, *element], [])

    @classmethod
    def parse(cls, p: Parser) -> Scan:
        """`(%k) in (64) by f {..} do (%before, %after) {..}`."""
        return _fold(cls, p, _do)

    def print(self, w: Printer) -> None:
        with loop_scope(self, w):
            _write_fold(self, w)
            arguments = self.do.block.arguments
            for axis, again in zip(self.axes, arguments):
                w.names[again] = w.names[axis]
            seen = arguments[self.rank :]
            w.fresh_names(seen)
            w.write(" do (")
            w.values(seen)
            w.write(") ")
            w.region(self.do, hide_terminator=True)


class Sweep(Loop, CustomForm):
    """`kernel.sweep (%j) in (64) {..}`: an inner loop that stores; its steps are independent."""

    name = "kernel.sweep"

    def may_write_in(self, region: Region) -> bool:
        return True

    def verify_(self) -> None:
        """Rules 1 and 7, and that a sweep stands where it may store."""
        check_inside(self)
        check_extents(self)
        check_region(self, "body", self.body, [INDEX] * self.rank, [])
        check_place(self)

    @classmethod
    def parse(cls, p: Parser) -> Sweep:
        """`(%j) in (64) {..}`."""
        names, static, dynamic = parse_axes(p)
        attributes = parse_attributes(p)
        op = make(cls, (dynamic,), [], [p.region(index_arguments(names), terminator=Yield)], (), {"extents": static})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        with loop_scope(self, w):
            write_attributes(w, self)
            w.write(" ")
            w.region(self.body, hide_terminator=True)


class Local(Loop, CustomForm):
    """`%e = kernel.local (%k) in (64) : tensor<64xf32> {.. kernel.yield %v}`: a pure array, private to the point."""

    name = "kernel.local"
    result = result()

    def verify_(self) -> None:
        """Rules 1, 2 and 7."""
        check_inside(self)
        check_extents(self)
        type = self.result.type
        if not isinstance(type, TensorType):
            raise self.error(f"needs a tensor as its result, got {type}")
        if type.shape != self.extents:
            raise self.error(f"has extents {list(self.extents)} but the result {type}")
        if scalar_type(type) is not type.element:
            raise self.error(f"needs signless elements, got {type}")
        check_region(self, "body", self.body, [INDEX] * self.rank, [type.element])
        for user in self.result.users:
            if not (isinstance(user, Load) or user.name in ("kernel.yield", "scf.yield")):
                raise self.error(f"is used by '{user.name}'; a local is read by kernel.load, or yielded")

    @classmethod
    def parse(cls, p: Parser) -> Local:
        """`(%k) in (64) : tensor<64xf32> {..}`."""
        names, static, dynamic = parse_axes(p)
        p.expect(":")
        type = p.type()
        attributes = parse_attributes(p)
        op = make(cls, (dynamic,), [type], [p.region(index_arguments(names))], (), {"extents": static})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        with loop_scope(self, w):
            w.write(" : ")
            w.type(self.result.type)
            write_attributes(w, self)
            w.write(" ")
            w.region(self.body)


def _fold(
    cls: type[F],
    p: Parser,
    rest: Callable[[Parser, Arguments, list[Type]], Region] | None = None,
    *,
    tree: bool | None = None,
) -> F:
    """`(%k) in (64) by f {..}` or `(%k) in (64) from (..) {..} combine (..) {..}`, then a last region if there is one.

    `rest` reads that, from the axes and the types of an element.
    """
    names, static, dynamic = parse_axes(p)
    operators, identity = parse_by(p, None)
    start = p.i
    attributes = parse_attributes(p)
    body = p.region(index_arguments(names))
    last = body.block.last
    if operators:
        types = [v.type for v in last.operands] if isinstance(last, Yield) else []
        identity = parse_identities(p, operators, types, start)
    regions = [body, parse_combine(p, operators, identity)]
    if rest is not None:
        regions.append(rest(p, index_arguments(names), types_of(identity)))
    properties = {"extents": static, "identity": ArrayAttr(identity), **({} if tree is None else {"tree": tree})}
    op = make(cls, (dynamic,), None, regions, (), properties)
    op.attributes = attributes
    return op


def _do(p: Parser, axes: Arguments, element: list[Type]) -> Region:
    """`do (%before, %after) {..}`."""
    p.expect("do")
    start = p.i
    seen = p.list("(", p.value_name, ")")
    if len(seen) != 2 * len(element):
        p.error(f"do takes {2 * len(element)} arguments, before and after the step, got {len(seen)}", start)
    return p.region([*axes, *zip(seen, [*element, *element])], terminator=Yield)


def _write_fold(op: Fold, w: Printer) -> None:
    short = write_by(w, op)
    write_attributes(w, op)
    w.write(" ")
    w.region(op.body)
    if not short:
        write_combine(w, op)

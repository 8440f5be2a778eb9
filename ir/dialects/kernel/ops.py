"""The ops of the kernel level.

A launch is a set of points; its body is the scalar program of one point.  Inside it, loads read, stores and
accumulates write, and reduce, scan, sweep and local run over inner axes.  Every region is a single block that ends in
`kernel.yield`.

The extents of axes are a property of integers in which `DYNAMIC` marks the places of the index operands `extents_`.
The axes are the first arguments of a body.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...affine import AffineExpr
from ...attributes import Attribute, DictAttr
from ...builder import Builder
from ...definition import (
    INDEX_,
    ISOLATED,
    PURE,
    RECURSIVE_EFFECTS,
    SHAPED,
    TERMINATOR,
    Op,
    affine_map,
    array,
    attr,
    flag,
    integers,
    operand,
    region,
    result,
    variadic_operand,
    variadic_result,
)
from ...interfaces import CustomForm, MonoidOp
from ...location import Location
from ...operations import Block, Region
from ...support import mixed
from ...types import I1, I8, INDEX, IntegerType, MemRefType, TensorType, Type, element_type
from ...values import BlockArgument, Value

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer

Extent = int | Value
"""A known extent, or an index value that holds it."""


def scalar_type(type: Type) -> Type:
    """The type of a loaded element: as in memory but without a sign, which ends at the load."""
    element = element_type(type)
    return IntegerType(element.width) if isinstance(element, IntegerType) else element


def holds(memory: Type, scalar: Type) -> bool:
    """Whether elements of `memory` are scalars of a type; buffers keep a bool in a byte."""
    element = scalar_type(memory)
    return element is scalar or (element is I8 and scalar is I1 and isinstance(memory, MemRefType))


class Yield(Op, CustomForm):
    """Ends a region and gives its values to the op around it."""

    name = "kernel.yield"
    traits = frozenset({PURE, TERMINATOR})
    cost = 0
    values = variadic_operand()

    @classmethod
    def parse(cls, p: Parser) -> Yield:
        from . import text

        return text.parse_yield(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_yield(self, w)


class Axes(Op):
    """What launch and the inner loops share: extents and, for each, an axis.  They declare the fields themselves."""

    if TYPE_CHECKING:
        extents_ = variadic_operand(INDEX_)
        extents = integers()
        body = region()

    @property
    def bounds(self) -> list[Extent]:
        """The extent of every axis."""
        return mixed.merge(self.extents, self.extents_)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)

    @property
    def axes(self) -> list[BlockArgument]:
        """The index values of a point, inside the body."""
        return self.body.block.arguments[: self.rank]


class Launch(Axes, CustomForm):
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
    def in_arguments(self) -> list[BlockArgument]:
        """The ins, inside the body."""
        return self.body.block.arguments[self.rank : self.rank + len(self.ins)]

    @property
    def out_arguments(self) -> list[BlockArgument]:
        """The outs, inside the body."""
        return self.body.block.arguments[self.rank + len(self.ins) :]

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
        from . import verifier

        verifier.verify_launch(self)

    @classmethod
    def parse(cls, p: Parser) -> Launch:
        from . import text

        return text.parse_launch(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_launch(self, w)

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


class Access(Op):
    """What load, store and accumulate share: subscripts, as an affine map of index operands."""

    map = affine_map()

    @property
    def subscripts(self) -> tuple[AffineExpr, ...]:
        """One expression for each axis of the memory; `d0` is the first of `indices`."""
        return self.map.results


class Load(Access, CustomForm):
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
        from . import verifier

        verifier.verify_load(self)

    @classmethod
    def parse(cls, p: Parser) -> Load:
        from . import text

        return text.parse_load(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_load(self, w)


class Store(Access, CustomForm):
    """`kernel.store %v, %y[%i, %j]`: writes an element of an out."""

    name = "kernel.store"
    writes = ("dest",)
    value = operand()
    dest = operand(SHAPED)
    indices = variadic_operand(INDEX_)

    def verify_(self) -> None:
        from . import verifier

        verifier.verify_store(self)

    @classmethod
    def parse(cls, p: Parser) -> Store:
        from . import text

        return text.parse_store(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_store(self, w)


class Monoidal(Op):
    """What accumulate, reduce and scan share: `identity` and the region `combine(a.., b..)`, a monoid on tuples."""

    closed_regions = ("combine",)
    identity = array()

    @property
    @abstractmethod
    def combine_region(self) -> Region:
        """The region that combines two elements."""

    @property
    def identity_types(self) -> list[Type]:
        """The types of an element."""
        return [getattr(a, "type") for a in self.identity]  # noqa: B009 (numeric attributes have one)

    @property
    def operators(self) -> list[type[Op]] | None:
        """The ops that combine each component, where that is all the monoid does; the identity may be any."""
        block = self.combine_region.block
        count = len(self.identity)
        arguments = block.arguments
        found: list[type[Op]] = []
        op = block.first
        for i in range(count):
            plain = isinstance(op, Op) and len(op.results) == 1 and not op.attributes and not op.regions
            if not plain or not isinstance(op, Op) or any(_is_set(v) for v in op.properties.values()):
                return None
            if op.operands != (arguments[i], arguments[count + i]):
                return None
            found.append(type(op))
            op = op.next
        if not isinstance(op, Yield) or [v.defining_op for v in op.values] != list(block)[:count]:
            return None
        return found


def _is_set(attribute: Attribute) -> bool:
    return not str(attribute).endswith("<none>")


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
        from . import verifier

        verifier.verify_accumulate(self)

    @classmethod
    def parse(cls, p: Parser) -> Accumulate:
        from . import text

        return text.parse_accumulate(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_accumulate(self, w)


class Loop(Axes):
    """An inner loop."""

    traits = frozenset({RECURSIVE_EFFECTS})
    extents_ = variadic_operand(INDEX_)
    body = region()
    extents = integers()


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
        from . import verifier

        verifier.verify_fold(self)


class Reduce(Fold, CustomForm):
    """`%s = kernel.reduce (%k) in (64) by f {.. kernel.yield %e}`: the elements folded in order, from the identity.

    The regions are body(axes), which yields an element, and combine(a.., b..).  With `tree` the fold is the halving
    tree instead: element i is combined with element i + h, h being half of the number rounded up, until one is left.
    """

    name = "kernel.reduce"
    tree = flag()

    @classmethod
    def parse(cls, p: Parser) -> Reduce:
        from . import text

        return text.parse_reduce(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_reduce(self, w)


class Scan(Fold, CustomForm):
    """`%t = kernel.scan (%k) in (64) by f {.. kernel.yield %e} do (%before, %after) {..}`: the fold, seen at each step.

    The arguments of `do` are the axes and the fold before and after the step's element; it may store.
    """

    name = "kernel.scan"
    do = region()

    @classmethod
    def parse(cls, p: Parser) -> Scan:
        from . import text

        return text.parse_scan(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_scan(self, w)


class Sweep(Loop, CustomForm):
    """`kernel.sweep (%j) in (64) {..}`: an inner loop that stores; its steps are independent."""

    name = "kernel.sweep"

    def verify_(self) -> None:
        from . import verifier

        verifier.verify_sweep(self)

    @classmethod
    def parse(cls, p: Parser) -> Sweep:
        from . import text

        return text.parse_sweep(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_sweep(self, w)


class Local(Loop, CustomForm):
    """`%e = kernel.local (%k) in (64) : tensor<64xf32> {.. kernel.yield %v}`: a pure array, private to the point."""

    name = "kernel.local"
    result = result()

    def verify_(self) -> None:
        from . import verifier

        verifier.verify_local(self)

    @classmethod
    def parse(cls, p: Parser) -> Local:
        from . import text

        return text.parse_local(cls, p)

    def print(self, w: Printer) -> None:
        from . import text

        text.print_local(self, w)


def loop_body(extents: Sequence[Extent], names: Sequence[str] = ()) -> Block:
    """An empty body for an inner loop over `extents`."""
    block = Block([INDEX] * len(extents))
    for argument, name in zip(block.arguments, names):
        argument.name = name
    return block


def combine_block(operators: Sequence[type[Op]], types: Sequence[Type]) -> Block:
    """The combine region's block for a monoid of one op for each component."""
    block = Block([*types, *types])
    b = Builder(block)
    count = len(types)
    arguments = block.arguments
    b.create(Yield, [b.value(f, arguments[i], arguments[count + i]) for i, f in enumerate(operators)])
    return block


def operator_class(name: str) -> Any:
    """The monoid op of a name: its class, with `identity(type)`; ValueError when it is none."""
    from ... import registry

    found = registry.lookup(name)
    if found is None or not issubclass(found, MonoidOp):
        raise ValueError(f"'{name}' is not a monoid with a known identity")
    return found


def same_extents(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two lists of extents are equal, values by identity."""
    return len(a) == len(b) and all(x is y or (isinstance(x, int) and x == y) for x, y in zip(a, b))


def is_local(value: Value) -> bool:
    """Whether a tensor value is an array private to a point, not an argument of a launch."""
    if not isinstance(value.type, TensorType):
        return False
    return not (isinstance(value, BlockArgument) and isinstance(value.owner.parent_op, Launch))

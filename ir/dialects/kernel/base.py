"""What the ops of the kernel level share: axes, subscripts, monoids, and the yield that ends their regions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...affine import AffineExpr
from ...attributes import Attribute
from ...builder import Builder
from ...definition import (
    INDEX_,
    LOOP,
    PURE,
    RECURSIVE_EFFECTS,
    TERMINATOR,
    Op,
    affine_map,
    array,
    integers,
    region,
    variadic_operand,
)
from ...interfaces import CustomForm, MonoidOp
from ...operations import Block, Region
from ...support import mixed
from ...support.mixed import Extent
from ...types import I1, I8, INDEX, IntegerType, MemRefType, TensorType, Type, element_type
from ...values import BlockArgument, Value

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer


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
        values: list[Value] = []
        if p.at_value():
            values.append(p.operand())
            while p.accept(","):
                values.append(p.operand())
        op = cls(values)
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        if self.values:
            w.values(self.values)
        w.attr_dict(self)


class Axes(Op):
    """What launch and the inner loops share: extents and, for each, an axis.  They declare the fields themselves."""

    if TYPE_CHECKING:
        extents_ = variadic_operand(INDEX_)
        extents = integers()
        body = region()

    bounds = mixed.Entries("extents", "extents_", "extents")
    """The extent of every axis."""

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.extents)

    @property
    def axes(self) -> list[BlockArgument]:
        """The index values of a point, inside the body."""
        return self.body.block.arguments[: self.rank]

    def may_write_in(self, region: Region) -> bool:
        """Whether stores and accumulates may stand in a region of this op."""
        return False


class LaunchLike(Axes):
    """What the ops in a body know of the launch around them: its ins and outs."""

    if TYPE_CHECKING:
        ins = variadic_operand()

    @property
    def in_arguments(self) -> list[BlockArgument]:
        """The ins, inside the body."""
        return self.body.block.arguments[self.rank : self.rank + len(self.ins)]

    @property
    def out_arguments(self) -> list[BlockArgument]:
        """The outs, inside the body."""
        return self.body.block.arguments[self.rank + len(self.ins) :]

    def may_write_in(self, region: Region) -> bool:
        return True


def is_launch_argument(value: Value) -> bool:
    """Whether a value is an argument of the body of a launch."""
    return isinstance(value, BlockArgument) and isinstance(value.owner.parent_op, LaunchLike)


class Access(Op):
    """What load, store and accumulate share: subscripts, as an affine map of index operands."""

    map = affine_map()

    @property
    def subscripts(self) -> tuple[AffineExpr, ...]:
        """One expression for each axis of the memory; `d0` is the first of `indices`."""
        return self.map.results


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
        return types_of(self.identity)

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


class Loop(Axes):
    """An inner loop."""

    traits = frozenset({RECURSIVE_EFFECTS, LOOP})
    extents_ = variadic_operand(INDEX_)
    body = region()
    extents = integers()


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


def operator_class(name: str) -> type[Op]:
    """The monoid op of a name: a class with the interface `MonoidOp`; ValueError when it is none."""
    from ... import registry  # late

    found = registry.lookup(name)
    if found is None or not issubclass(found, MonoidOp):
        raise ValueError(f"'{name}' is not a monoid with a known identity")
    return found


def identity_of(operator: type[Op], type: Type) -> Attribute:
    """The identity of a monoid op as a constant of a type."""
    assert issubclass(operator, MonoidOp)
    return operator.identity(type)


def types_of(identity: Sequence[Attribute]) -> list[Type]:
    """The types of numeric attributes."""
    return [getattr(a, "type") for a in identity]  # noqa: B009 (numeric attributes have one)


def same_extents(a: Sequence[Extent], b: Sequence[Extent]) -> bool:
    """Whether two lists of extents are equal, values by identity."""
    return len(a) == len(b) and all(x is y or (isinstance(x, int) and x == y) for x, y in zip(a, b))


def is_local(value: Value) -> bool:
    """Whether a tensor value is an array private to a point, not an argument of a launch."""
    return isinstance(value.type, TensorType) and not is_launch_argument(value)

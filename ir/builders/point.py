"""What a tensor-level op means at one point of its result: the interface that op definitions are written against.

An op's `point(self, k)` reads its operands through `k.load`, folds over axes of its own through `k.reduce`, and returns
the scalar (or one for each result) that stands at the point `k.axes`.  Who builds kernels implements `PointBuilder`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..attributes import ArrayAttr, Attribute
from ..dialects import arith
from ..dialects.kernel import Reduce, Yield, combine_block, identity_of, loop_body, operator_class
from ..operations import Block, Region
from ..support import mixed
from ..support.mixed import Extent
from ..types import Type
from ..values import Value
from .scalar import ScalarBuilder
from .subscripts import AffineSubscript

Combine = Callable[..., Value | Sequence[Value]]
Monoid = str | Sequence[str] | tuple[Sequence[Attribute], Combine]
"""The name of a monoid op, one for each component, or identities and a function `combine(*a, *b)`."""


class PointBuilder(ScalarBuilder, ABC):
    """One point of an op's result, and a builder of the scalar code for it."""

    axes: list[AffineSubscript]
    """One subscript for each axis of the result."""

    @abstractmethod
    def load(self, operand: int, subscripts: Sequence[AffineSubscript | int], fill: float | None = None) -> Value:
        """The element of an operand; `fill` where the subscripts lie outside (None: they never do)."""

    @abstractmethod
    def extent(self, operand: int, axis: int) -> Extent:
        """The extent of an operand's axis, an index value where it is dynamic."""

    @abstractmethod
    def outside(self, value: int | Value) -> AffineSubscript | int:
        """A number, or an index value of the program around, as a subscript."""

    @abstractmethod
    def extent_of(self, value: Value, axis: int) -> AffineSubscript | int:
        """The extent of a tensor of the program around, as a subscript."""

    def linear(
        self, outer: AffineSubscript | int, extent: AffineSubscript | int, inner: AffineSubscript | int
    ) -> AffineSubscript:
        """outer * extent + inner, the position of an element below two subscripts."""
        if isinstance(extent, int):
            return AffineSubscript.of(outer) * extent + inner
        return AffineSubscript.of(self.mul(self.index_value(outer), self.index_value(extent))) + inner

    def divided(
        self, position: AffineSubscript | int, extent: AffineSubscript | int
    ) -> tuple[AffineSubscript, AffineSubscript]:
        """Quotient and remainder by an extent that is not known: the two subscripts of an element at a position."""
        # Where nothing is there, a guarded load still asks.
        value = self.index_value(position)
        divisor = self.value_of(arith.MaxSI, self.index_value(extent), self.index_constant(1))
        outer = self.floordiv(value, divisor)
        return AffineSubscript.of(outer), AffineSubscript.of(self.sub(value, self.mul(outer, divisor)))

    def index(self, value: Value) -> AffineSubscript:
        """A computed index value as a subscript."""
        return AffineSubscript.of(value)

    def index_value(self, index: AffineSubscript | int) -> Value:
        """A subscript as an index value."""
        return AffineSubscript.of(index).value(self)

    def value(self, *arguments: Any, **properties: Any) -> Any:
        """A subscript as an index value, `k.value(i)`; or, as on every builder, the single result of a new op."""
        if isinstance(arguments[0], AffineSubscript | int):
            return self.index_value(arguments[0])
        return super().value(*arguments, **properties)

    def reduce(
        self,
        extents: Sequence[Extent],
        by: Monoid,
        body: Callable[[list[AffineSubscript]], Value | Sequence[Value]],
        names: Sequence[str] = (),
    ) -> list[Value]:
        """The fold of `body(subscripts)`, an element or several, over axes of these extents."""
        block = loop_body(extents, names)
        with self.at(block):
            elements = _several(body([AffineSubscript.of(a) for a in block.arguments]))
            self.create(Yield, elements)
        types = [v.type for v in elements]
        identity, combined = self._monoid(by, types)
        static, dynamic = mixed.split(extents)
        op = self.create(
            Reduce, dynamic, regions=[Region([block]), Region([combined])], extents=static, identity=identity
        )
        return list(op.results)

    def _monoid(self, by: Monoid, types: Sequence[Type]) -> tuple[Attribute, Block]:
        if isinstance(by, tuple) and len(by) == 2 and callable(by[1]):
            block = Block([*types, *types])
            with self.at(block):
                self.create(Yield, _several(by[1](*block.arguments)))
            return ArrayAttr(by[0]), block  # pyright: ignore[reportArgumentType]
        names = [by] if isinstance(by, str) else by
        operators = [operator_class(str(n)) for n in names]
        identity = ArrayAttr([identity_of(f, t) for f, t in zip(operators, types, strict=True)])
        return identity, combine_block(operators, types)


def _several(values: Value | Sequence[Value]) -> list[Value]:
    return [values] if isinstance(values, Value) else list(values)

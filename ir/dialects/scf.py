"""Structured control flow: loops and conditionals with regions, upstream's `scf`.

`scf.forall` is a set of points in any order, and its `mapping` says which GPU blocks or threads run them; `scf.for` is
a loop in order that carries values; `scf.if` and `scf.while` choose.  All of them have the effects of their bodies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..attributes import Attribute, IntegerAttr
from ..builder import Builder
from ..definition import (
    BOOL,
    INDEX_,
    NO_TERMINATOR,
    PURE,
    RECURSIVE_EFFECTS,
    TERMINATOR,
    FoldResult,
    Op,
    TypeConstraint,
    array,
    integers,
    operand,
    region,
    variadic_operand,
    variadic_result,
)
from ..operations import Block, Operation, Region
from ..types import INDEX, IndexType, IntegerType, Type
from ..values import BlockArgument, Value
from . import mixed

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

COUNTER = TypeConstraint(
    "a signless integer or index", lambda t: isinstance(t, IndexType) or (isinstance(t, IntegerType) and not t.signedness)
)


class Yield(Op):
    """Ends a body and gives its values to the op around it."""

    name = "scf.yield"
    traits = frozenset({PURE, TERMINATOR})
    values = variadic_operand()


class Condition(Op):
    """Ends the first region of `scf.while`: go on with `values` in the second, or leave with them as the results."""

    name = "scf.condition"
    traits = frozenset({PURE, TERMINATOR})
    condition = operand(BOOL)
    values = variadic_operand()


class InParallel(Op):
    """Ends the body of `scf.forall`; its block is empty."""

    name = "scf.forall.in_parallel"
    traits = frozenset({PURE, TERMINATOR, NO_TERMINATOR})
    body = region()


class Forall(Op):
    """`scf.forall (%i, %j) in (64, %n) {..} {mapping = [#gpu.block<x>]}`: a body for every point, in any order."""

    name = "scf.forall"
    traits = frozenset({RECURSIVE_EFFECTS})
    lower_values = variadic_operand(INDEX_)
    upper_values = variadic_operand(INDEX_)
    step_values = variadic_operand(INDEX_)
    outputs = variadic_operand()
    staticLowerBound = integers()
    staticUpperBound = integers()
    staticStep = integers()
    mapping = array(optional=True)
    body = region()

    @property
    def lower(self) -> list[mixed.Entry]:
        """The first point."""
        return mixed.merge(self.staticLowerBound, self.lower_values)

    @property
    def upper(self) -> list[mixed.Entry]:
        """The bounds, exclusive."""
        return mixed.merge(self.staticUpperBound, self.upper_values)

    @property
    def step(self) -> list[mixed.Entry]:
        """The distances of points."""
        return mixed.merge(self.staticStep, self.step_values)

    @property
    def axes(self) -> list[BlockArgument]:
        """The point, inside the body."""
        return self.body.block.arguments

    @property
    def is_normalized(self) -> bool:
        """Whether every axis counts from 0 by 1."""
        return not any(self.staticLowerBound) and all(s == 1 for s in self.staticStep)

    @classmethod
    def build(
        cls,
        b: Builder,
        upper: Sequence[mixed.Entry],
        lower: Sequence[mixed.Entry] | None = None,
        step: Sequence[mixed.Entry] | None = None,
        mapping: Sequence[Attribute] | None = None,
        names: Sequence[str] = (),
    ) -> Forall:
        """A forall with a body that holds only its terminator; build before `loop.body.block.last`."""
        rank = len(upper)
        static_lower, lower_values = mixed.split([0] * rank if lower is None else lower)
        static_upper, upper_values = mixed.split(upper)
        static_step, step_values = mixed.split([1] * rank if step is None else step)
        body = Block([INDEX] * rank)
        for argument, name in zip(body.arguments, names):
            argument.name = name
        body.append(in_parallel())
        return b.create(
            cls,
            lower_values,
            upper_values,
            step_values,
            [],
            results=[],
            regions=[Region([body])],
            staticLowerBound=static_lower,
            staticUpperBound=static_upper,
            staticStep=static_step,
            mapping=mapping,
        )


def in_parallel() -> InParallel:
    """A detached terminator of forall."""
    return InParallel(regions=[Region([Block()])])


class For(Op):
    """`%r = scf.for %i = %lo to %hi step %s iter_args(%a = %init) -> (f32) {.. scf.yield %next : f32}`.

    The body's arguments are the counter and the carried values; the results are the values last yielded.
    """

    name = "scf.for"
    traits = frozenset({RECURSIVE_EFFECTS})
    lower = operand(COUNTER)
    upper = operand(COUNTER)
    step = operand(COUNTER)
    inits = variadic_operand()
    values = variadic_result()
    body = region()

    @property
    def counter(self) -> BlockArgument:
        """The loop's variable."""
        return self.body.block.arguments[0]

    @property
    def carried(self) -> list[BlockArgument]:
        """The carried values at the start of a trip."""
        return self.body.block.arguments[1:]

    @property
    def trips(self) -> int | None:
        """The number of trips, when bounds and step are constants."""
        bounds = mixed.known(self.lower), mixed.known(self.upper), mixed.known(self.step)
        lower, upper, step = bounds
        if lower is None or upper is None or step is None or step <= 0:
            return None
        return max(0, -(-(upper - lower) // step))

    def infer(self) -> Sequence[Type]:
        return [v.type for v in self.inits]

    @classmethod
    def build(
        cls, b: Builder, lower: Value, upper: Value, step: Value, inits: Sequence[Value] = (), name: str | None = None
    ) -> For:
        """A loop whose body has arguments and no ops yet: the caller adds them and a `scf.yield`."""
        body = Block([lower.type, *(v.type for v in inits)])
        body.arguments[0].name = name
        return b.create(cls, lower, upper, step, inits, regions=[Region([body])])


class If(Op):
    """`%r = scf.if %c -> (f32) {..} else {..}`: one of two bodies; the second is empty when there is no else."""

    name = "scf.if"
    traits = frozenset({RECURSIVE_EFFECTS})
    condition = operand(BOOL)
    values = variadic_result()
    then = region()
    otherwise = region(single_block=False)

    @classmethod
    def build(cls, b: Builder, condition: Value, results: Sequence[Type] = (), otherwise: bool | None = None) -> If:
        """A conditional with empty blocks (an else block when there are results or `otherwise` says so)."""
        has_else = bool(results) if otherwise is None else otherwise
        regions = [Region([Block()]), Region([Block()] if has_else else [])]
        return b.create(cls, condition, results=results, regions=regions)


class While(Op):
    """`scf.while (%a = %init) : (T) -> U {.. scf.condition(%c) %u : U} do {^bb0(%u: U): .. scf.yield %a : T}`."""

    name = "scf.while"
    traits = frozenset({RECURSIVE_EFFECTS})
    inits = variadic_operand()
    values = variadic_result()
    before = region()
    after = region()

    @classmethod
    def build(cls, b: Builder, inits: Sequence[Value], results: Sequence[Type] | None = None) -> While:
        """A loop whose blocks have arguments and no ops yet."""
        types = [v.type for v in inits]
        leaving = types if results is None else list(results)
        return b.create(cls, inits, results=leaving, regions=[Region([Block(types)]), Region([Block(leaving)])])

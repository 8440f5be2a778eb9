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
    LOOP,
    NO_TERMINATOR,
    OPERAND_SIZES,
    PURE,
    RECURSIVE_EFFECTS,
    TERMINATOR,
    FoldResult,
    Op,
    TypeConstraint,
    array,
    integers,
    make,
    operand,
    region,
    variadic_operand,
    variadic_result,
)
from ..interfaces import CustomForm
from ..location import UNKNOWN, Location
from ..operations import Block, Region
from ..support import mixed
from ..types import DYNAMIC, INDEX, FunctionType, IndexType, IntegerType, Type
from ..values import BlockArgument, Value

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer

COUNTER = TypeConstraint(
    "a signless integer or index",
    lambda t: isinstance(t, IndexType) or (isinstance(t, IntegerType) and not t.signedness),
)


class Yield(Op):
    """Ends a body and gives its values to the op around it."""

    name = "scf.yield"
    traits = frozenset({PURE, TERMINATOR})
    values = variadic_operand()
    assembly = "attr-dict ($values^ `:` type($values))?"

    def verify_(self) -> None:
        if not isinstance(self.parent_op, For | If | While):
            raise self.error("must stand in scf.for, scf.if or scf.while")


class Condition(Op):
    """Ends the first region of `scf.while`: go on with `values` in the second, or leave with them as the results."""

    name = "scf.condition"
    traits = frozenset({PURE, TERMINATOR})
    condition = operand(BOOL)
    values = variadic_operand()
    assembly = "`(` $condition `)` attr-dict ($values^ `:` type($values))?"

    def verify_(self) -> None:
        parent = self.parent_op
        if not isinstance(parent, While) or self.parent_region is not parent.before:
            raise self.error("must end the first region of scf.while")


class InParallel(Op):
    """Ends the body of `scf.forall`; its block is empty."""

    name = "scf.forall.in_parallel"
    traits = frozenset({PURE, TERMINATOR, NO_TERMINATOR})
    body = region(bare=True)
    assembly = "$body attr-dict"

    def verify_(self) -> None:
        if not isinstance(self.parent_op, Forall):
            raise self.error("must end the body of scf.forall")
        if self.body.block.first is not None:
            raise self.error("must be empty: a forall over buffers has no results to put together")


class Forall(Op, CustomForm):
    """`scf.forall (%i, %j) in (64, %n) {..} {mapping = [#gpu.block<x>]}`: a body for every point, in any order."""

    name = "scf.forall"
    traits = frozenset({RECURSIVE_EFFECTS, LOOP})
    lower_values = variadic_operand(INDEX_)
    upper_values = variadic_operand(INDEX_)
    step_values = variadic_operand(INDEX_)
    outputs = variadic_operand()
    staticLowerBound = integers()
    staticUpperBound = integers()
    staticStep = integers()
    mapping = array(optional=True)
    body = region()
    lower = mixed.Entries("staticLowerBound", "lower_values", "lower bounds")
    """The first point."""
    upper = mixed.Entries("staticUpperBound", "upper_values", "upper bounds")
    """The bounds, exclusive."""
    step = mixed.Entries("staticStep", "step_values", "steps")
    """The distances of points."""

    @property
    def axes(self) -> list[BlockArgument]:
        """The point, inside the body."""
        return self.body.block.arguments

    @property
    def is_normalized(self) -> bool:
        """Whether every axis counts from 0 by 1."""
        return not any(self.staticLowerBound) and all(s == 1 for s in self.staticStep)

    def verify_(self) -> None:
        rank = len(self.staticUpperBound)
        for entries in (Forall.lower, Forall.upper, Forall.step):
            count = len(entries.fixed(self))
            if count != rank:
                raise self.error(f"has {rank} upper bounds but {count} {entries.what}")
            entries.check(self)
        for step in self.staticStep:
            if step <= 0 and step != DYNAMIC:
                raise self.error(f"needs positive steps, got {step}")
        if self.outputs or self.results:
            raise self.error("has shared outputs, which exist on tensors only; nablair's forall stores to buffers")
        if self.mapping is not None and len(self.mapping) != rank:
            raise self.error(f"has {rank} axes but a mapping of {len(self.mapping)} entries")
        check_arguments(self, self.body.block, [INDEX] * rank)
        if not isinstance(self.body.block.last, InParallel):
            raise self.error("must end in scf.forall.in_parallel")

    @classmethod
    def parse(cls, p: Parser) -> Forall:
        names = p.list("(", p.value_name, ")")
        lower: list[mixed.Extent] = [0] * len(names)
        step: list[mixed.Extent] = [1] * len(names)
        if p.accept("in"):
            upper = mixed.parse(p, "(", ")")
        else:
            p.expect("=")
            lower = mixed.parse(p, "(", ")")
            p.expect("to")
            upper = mixed.parse(p, "(", ")")
            p.expect("step")
            step = mixed.parse(p, "(", ")")
        if not len(names) == len(lower) == len(upper) == len(step):
            p.error(f"{len(names)} axes but {len(lower)} lower bounds, {len(upper)} upper bounds and {len(step)} steps")
        if p.at("shared_outs"):
            p.error("scf.forall has shared outputs on tensors only, which nablair does not use")
        body = p.region([(n, INDEX) for n in names])
        if not isinstance(body.block.last, InParallel):
            body.block.append(in_parallel())
        attributes = p.optional_attr_dict()
        op = _forall(lower, upper, step, body)
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        with w.scope():
            w.fresh_names(self.axes)
            w.write("(")
            w.values(self.axes)
            w.write(")")
            if self.is_normalized:
                w.write(" in ")
            else:
                w.write(" = ")
                mixed.write(w, self.lower, "(", ")")
                w.write(" to ")
            mixed.write(w, self.upper, "(", ")")
            if not self.is_normalized:
                w.write(" step ")
                mixed.write(w, self.step, "(", ")")
            w.write(" ")
            w.region(self.body, hide_terminator=True)
        w.attr_dict(self, elided=("staticLowerBound", "staticUpperBound", "staticStep", OPERAND_SIZES))

    @classmethod
    def build(
        cls,
        b: Builder,
        upper: Sequence[mixed.Extent],
        lower: Sequence[mixed.Extent] | None = None,
        step: Sequence[mixed.Extent] | None = None,
        mapping: Sequence[Attribute] | None = None,
        names: Sequence[str] = (),
    ) -> Forall:
        """A forall with a body that holds only its terminator; build before `loop.body.block.last`."""
        rank = len(upper)
        body = Block([INDEX] * rank)
        for argument, name in zip(body.arguments, names):
            argument.name = name
        body.append(in_parallel())
        first = [0] * rank if lower is None else lower
        steps = [1] * rank if step is None else step
        return b.insert(_forall(first, upper, steps, Region([body]), mapping, b.location))


def _forall(
    lower: Sequence[mixed.Extent],
    upper: Sequence[mixed.Extent],
    step: Sequence[mixed.Extent],
    body: Region,
    mapping: Sequence[Attribute] | None = None,
    location: Location = UNKNOWN,
) -> Forall:
    """A forall of these bounds that stands in no block yet."""
    static_lower, lower_values = mixed.split(lower)
    static_upper, upper_values = mixed.split(upper)
    static_step, step_values = mixed.split(step)
    properties = {
        "staticLowerBound": static_lower,
        "staticUpperBound": static_upper,
        "staticStep": static_step,
        "mapping": mapping,
    }
    groups = (lower_values, upper_values, step_values, ())
    return make(Forall, groups, [], [body], (), properties, location=location)


def in_parallel() -> InParallel:
    """A detached terminator of forall."""
    return InParallel(regions=[Region([Block()])])


def check_arguments(op: Op, block: Block, types: Sequence[Type]) -> None:
    """Raise unless the block's arguments have these types."""
    given = [a.type for a in block.arguments]
    if given != list(types):
        raise op.error(f"expects a body with arguments ({_join(types)}), got ({_join(given)})")


def check_yields(op: Op, body: Region, types: Sequence[Type]) -> None:
    """Raise unless the body ends in a `scf.yield` of values of these types."""
    last = body.block.last
    if not isinstance(last, Yield):
        raise op.error("must end each body in scf.yield")
    given = [v.type for v in last.values]
    if given != list(types):
        raise op.error(f"must yield ({_join(types)}), got ({_join(given)})")


def _join(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types))


def _bindings(p: Parser) -> tuple[list[Any], list[Value]]:
    """`(%a = %x, %b = %y)`: the names and the values."""
    pairs: list[tuple[Any, Value]] = []

    def pair() -> None:
        name = p.value_name()
        p.expect("=")
        pairs.append((name, p.operand()))

    p.list("(", pair, ")")
    return [n for n, _ in pairs], [v for _, v in pairs]


def _write_bindings(w: Printer, arguments: Sequence[Value], values: Sequence[Value]) -> None:
    w.write("(")
    for i, (argument, value) in enumerate(zip(arguments, values, strict=True)):
        w.write(", " if i else "")
        w.value(argument)
        w.write(" = ")
        w.value(value)
    w.write(")")


def _results(p: Parser) -> list[Type]:
    """`-> T` or `-> (T, T)`, or nothing."""
    if not p.accept("->"):
        return []
    return p.list("(", p.type, ")") if p.at("(") else [p.type()]


class For(Op, CustomForm):
    """`%r = scf.for %i = %lo to %hi step %s iter_args(%a = %init) -> (f32) {.. scf.yield %next : f32}`.

    The body's arguments are the counter and the carried values; the results are the values last yielded.
    """

    name = "scf.for"
    traits = frozenset({RECURSIVE_EFFECTS, LOOP})
    lower = operand(COUNTER)
    upper = operand(COUNTER)
    step = operand(COUNTER)
    inits = variadic_operand()
    values = variadic_result()
    body = region()

    @property
    def counter(self) -> BlockArgument:
        """The induction variable, the first argument of the body."""
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

    def verify_(self) -> None:
        counter = self.lower.type
        if self.upper.type is not counter or self.step.type is not counter:
            given = _join([counter, self.upper.type, self.step.type])
            raise self.error(f"bounds and step must have one type, got {given}")
        types = [v.type for v in self.inits]
        check_arguments(self, self.body.block, [counter, *types])
        check_yields(self, self.body, types)

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        lower, upper = constants[0], constants[1]
        if isinstance(lower, IntegerAttr) and isinstance(upper, IntegerAttr) and lower.value >= upper.value:
            return self.inits
        return None

    @classmethod
    def parse(cls, p: Parser) -> For:
        counter = p.value_name()
        p.expect("=")
        lower = p.operand()
        p.expect("to")
        upper = p.operand()
        p.expect("step")
        step = p.operand()
        names: list[Any] = []
        inits: list[Value] = []
        if p.accept("iter_args"):
            names, inits = _bindings(p)
            results = _results(p)
            expected = [v.type for v in inits]
            if results != expected:
                p.error(f"result types ({_join(results)}) differ from those of iter_args ({_join(expected)})")
        if p.accept(":") and p.type() is not lower.type:
            p.error(f"the counter's type must be that of the bounds, {lower.type}")
        arguments = [(counter, lower.type), *zip(names, (v.type for v in inits), strict=True)]
        body = p.region(arguments, terminator=None if inits else Yield)
        op = make(cls, (lower, upper, step, inits), None, [body], (), {})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        with w.scope():
            w.fresh_names(self.body.block.arguments)
            w.value(self.counter)
            for word, value in ((" = ", self.lower), (" to ", self.upper), (" step ", self.step)):
                w.write(word)
                w.value(value)
            if self.inits:
                w.write(" iter_args")
                _write_bindings(w, self.carried, self.inits)
                w.write(f" -> ({_join([v.type for v in self.inits])})")
            if self.lower.type is not INDEX:
                w.write(f" : {self.lower.type}")
            w.write(" ")
            w.region(self.body, hide_terminator=not self.inits)
        w.attr_dict(self)

    @classmethod
    def build(
        cls, b: Builder, lower: Value, upper: Value, step: Value, inits: Sequence[Value] = (), name: str | None = None
    ) -> For:
        """A loop whose body has arguments and no ops yet: the caller adds them and a `scf.yield`."""
        body = Block([lower.type, *(v.type for v in inits)])
        body.arguments[0].name = name
        return b.create(cls, lower, upper, step, inits, regions=[Region([body])])


class If(Op, CustomForm):
    """`%r = scf.if %c -> (f32) {..} else {..}`: one of two bodies; the second is empty when there is no else."""

    name = "scf.if"
    traits = frozenset({RECURSIVE_EFFECTS})
    condition = operand(BOOL)
    values = variadic_result()
    then = region()
    otherwise = region(single_block=False)

    def verify_(self) -> None:
        types = [r.type for r in self.results]
        check_arguments(self, self.then.block, [])
        check_yields(self, self.then, types)
        blocks = self.otherwise.blocks
        if len(blocks) > 1:
            raise self.error("has more than one block in its else region")
        if blocks:
            check_arguments(self, blocks[0], [])
            check_yields(self, self.otherwise, types)
        elif types:
            raise self.error(f"has results ({_join(types)}) and so must have an else region")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        """The yielded values, when the branch taken holds nothing else."""
        condition = constants[0]
        if not isinstance(condition, IntegerAttr):
            return None
        branch = self.then if condition.value else self.otherwise
        if not branch.blocks:
            return ()
        last = branch.block.first
        return last.values if isinstance(last, Yield) else None

    def inline(self, branch: Region) -> None:
        """Replace the op by the body of one of its regions; for a condition that is known."""
        if not branch.blocks:
            self.erase()
            return
        last = branch.block.terminator
        for inner in branch.block:
            if inner is not last:
                inner.move_before(self)
        self.replace_by(last.operands)

    @classmethod
    def parse(cls, p: Parser) -> If:
        condition = p.operand()
        results = _results(p)
        terminator = None if results else Yield
        then = p.region(terminator=terminator)
        otherwise = p.region(terminator=terminator) if p.accept("else") else Region()
        op = make(cls, (condition,), results, [then, otherwise], (), {})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.value(self.condition)
        if self.results:
            w.write(f" -> ({_join([r.type for r in self.results])})")
        w.write(" ")
        w.region(self.then, hide_terminator=not self.results)
        if self.otherwise.blocks:
            w.write(" else ")
            w.region(self.otherwise, hide_terminator=not self.results)
        w.attr_dict(self)

    @classmethod
    def build(cls, b: Builder, condition: Value, results: Sequence[Type] = (), otherwise: bool | None = None) -> If:
        """A conditional with empty blocks (an else block when there are results or `otherwise` says so)."""
        has_else = bool(results) if otherwise is None else otherwise
        regions = [Region([Block()]), Region([Block()] if has_else else [])]
        return b.create(cls, condition, results=results, regions=regions)


class While(Op, CustomForm):
    """`scf.while (%a = %init) : (T) -> U {.. scf.condition(%c) %u : U} do {^bb0(%u: U): .. scf.yield %a : T}`."""

    name = "scf.while"
    traits = frozenset({RECURSIVE_EFFECTS, LOOP})
    inits = variadic_operand()
    values = variadic_result()
    before = region()
    after = region()

    def verify_(self) -> None:
        inits, leaving = [v.type for v in self.inits], [r.type for r in self.results]
        check_arguments(self, self.before.block, inits)
        check_arguments(self, self.after.block, leaving)
        last = self.before.block.last
        if not isinstance(last, Condition):
            raise self.error("must end its first region in scf.condition")
        given = [v.type for v in last.values]
        if given != leaving:
            raise self.error(f"has results ({_join(leaving)}) but scf.condition gives ({_join(given)})")
        check_yields(self, self.after, inits)

    @classmethod
    def parse(cls, p: Parser) -> While:
        names, inits = _bindings(p) if p.at("(") else ([], [])
        p.expect(":")
        signature = p.type()
        if not isinstance(signature, FunctionType) or list(signature.inputs) != [v.type for v in inits]:
            p.error(f"expects a type ({_join([v.type for v in inits])}) -> .., got {signature}")
        before = p.region(list(zip(names, signature.inputs, strict=True)))
        p.expect("do")
        after = p.region()
        op = make(cls, (inits,), signature.results, [before, after], (), {})
        if p.accept("attributes"):
            op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        with w.scope():
            arguments = self.before.block.arguments
            if arguments:
                w.fresh_names(arguments)
                _write_bindings(w, arguments, self.inits)
                w.write(" ")
            w.write(f": {FunctionType([v.type for v in self.inits], [r.type for r in self.results])} ")
            w.region(self.before)
        w.write(" do ")
        w.region(self.after, arguments=True)
        if self.attributes:
            w.write(" attributes")
            w.attr_dict(self)

    @classmethod
    def build(cls, b: Builder, inits: Sequence[Value], results: Sequence[Type] | None = None) -> While:
        """A loop whose blocks have arguments and no ops yet."""
        types = [v.type for v in inits]
        leaving = types if results is None else list(results)
        return b.create(cls, inits, results=leaving, regions=[Region([Block(types)]), Region([Block(leaving)])])

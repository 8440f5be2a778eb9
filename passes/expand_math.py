"""expand-math: transcendental functions become arithmetic, once for all targets.

In: `math` ops and `arith.remf` on scalars and vectors of floats. Out: the same values from the primitives that every
target has: the rest of `arith`, and of `math` fma, sqrt, roundeven, floor, ceil, trunc, absf and copysign. An op of
another dialect that says what it is in scalars (`ExpandsToScalars`) becomes that first.

    %y = math.exp2 %x : vector<16xf32>

becomes

    %low = arith.constant dense<-151.0> : vector<16xf32>
    ..
    %shifted = arith.addf %clamped, %shifter : vector<16xf32>
    ..
    %y = arith.mulf %scaled, %second : vector<16xf32>

Each function is a program of `math_expansions`, straight-line but for the loop of `remf`, written over an abstract
builder and run here on one that inserts ops. Half-precision floats are computed in f32 and rounded. A target that has
an instruction of its own for a function lists it in `keep`; `functions` restricts the pass to some.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..ir.attributes import constant_attr
from ..ir.builder import Builder
from ..ir.builders.scalar import ScalarBuilder
from ..ir.definition import Op
from ..ir.diagnostics import PassError
from ..ir.dialects import arith, math, scf, vector
from ..ir.interfaces import ExpandsToScalars
from ..ir.operations import Block, Operation
from ..ir.types import (
    F32,
    F64,
    I32,
    I64,
    FloatType,
    Type,
    VectorType,
    bit_width,
    element_type,
    with_element,
)
from ..ir.values import Value
from .manager import Pass
from .math_expansions import EXPANSIONS, Expansion
from .registry import suggest

FLOATS = {32: F32, 64: F64}
INTEGERS = {32: I32, 64: I64}
FUNCTIONS = {name.partition(".")[2]: name for name in EXPANSIONS}
"""The ops by the names that options use."""


class OpBuilder:
    """Inserts the primitives of `MathBuilder` as ops; equal constants of a block are made once."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.constants: dict[tuple[str, Type], Value] = {}

    def move_before(self, op: Operation) -> None:
        """Insert before `op`, with its location. Ops must come in the order of their block."""
        block: Block | None = self.builder.block
        self.builder = Builder.before_op(op)
        if self.builder.block is not block:
            self.constants = {}

    def width(self, x: Value) -> int:
        """The width in bits of a value's element type."""
        return bit_width(x.type)

    def as_float(self, x: Value, width: int | None = None) -> Type:
        """The type of x with float elements of the width, by default the same."""
        return with_element(x.type, FLOATS[width or self.width(x)])

    def as_int(self, x: Value, width: int | None = None) -> Type:
        """The type of x with integer elements of the width, by default the same."""
        return with_element(x.type, INTEGERS[width or self.width(x)])

    def shared_constant(self, value: float, type: Type) -> Value:
        """A constant of the type, scalar or splat; told apart by its text, which keeps -0.0 and NaN."""
        key = repr(value), type
        found = self.constants.get(key)
        if found is None:
            found = self.constants[key] = self.builder.value(arith.Constant, value=constant_attr(value, type))
        return found

    def constant(self, value: float, like: Value) -> Value:
        return self.shared_constant(float(value), like.type)

    def iconstant(self, value: int, like: Value) -> Value:
        half = 1 << self.width(like) - 1
        return self.shared_constant((value + half) % (2 * half) - half, self.as_int(like))

    def make(self, cls: type[Op], *operands: Value, **keywords: Any) -> Value:
        """One op's result."""
        return self.builder.value(cls, *operands, **keywords)

    def add(self, a: Value, b: Value) -> Value:
        return self.make(arith.AddF, a, b)

    def sub(self, a: Value, b: Value) -> Value:
        return self.make(arith.SubF, a, b)

    def mul(self, a: Value, b: Value) -> Value:
        return self.make(arith.MulF, a, b)

    def div(self, a: Value, b: Value) -> Value:
        return self.make(arith.DivF, a, b)

    def neg(self, a: Value) -> Value:
        return self.make(arith.NegF, a)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        return self.make(math.Fma, a, b, c)

    def sqrt(self, a: Value) -> Value:
        return self.make(math.Sqrt, a)

    def round_even(self, a: Value) -> Value:
        return self.make(math.RoundEven, a)

    def abs(self, a: Value) -> Value:
        return self.make(math.AbsF, a)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        return self.make(math.CopySign, magnitude, sign)

    def cmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self.make(arith.CmpF, a, b, predicate=predicate)

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        return self.make(arith.CmpI, a, b, predicate=predicate)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        return self.make(arith.Select, condition, a, b)

    def repeat_while(self, condition: Callable[[Value], Value], step: Callable[[Value], Value], start: Value) -> Value:
        loop = scf.While.build(self.builder, [start])
        outside, constants = self.builder, self.constants
        for region, part in ((loop.before, condition), (loop.after, step)):
            self.builder, self.constants = Builder(region.block, location=outside.location), dict(constants)
            (carried,) = region.block.arguments
            made = part(carried)
            if part is step:
                self.builder.create(scf.Yield, [made])
            else:
                self.builder.create(scf.Condition, self.any_lane(made), [carried])
        self.builder, self.constants = outside, constants
        return loop.results[0]

    def any_lane(self, truth: Value) -> Value:
        """Whether a truth value, of one lane or of many, holds anywhere."""
        if not isinstance(truth.type, VectorType):
            return truth
        return self.builder.value(vector.Reduction, truth, None, kind="or")

    def bitcast_to_int(self, a: Value) -> Value:
        return self.make(arith.Bitcast, a, results=[self.as_int(a)])

    def bitcast_to_float(self, a: Value) -> Value:
        return self.make(arith.Bitcast, a, results=[self.as_float(a)])

    def iadd(self, a: Value, b: Value) -> Value:
        return self.make(arith.AddI, a, b)

    def isub(self, a: Value, b: Value) -> Value:
        return self.make(arith.SubI, a, b)

    def iand(self, a: Value, b: Value) -> Value:
        return self.make(arith.AndI, a, b)

    def ior(self, a: Value, b: Value) -> Value:
        return self.make(arith.OrI, a, b)

    def ixor(self, a: Value, b: Value) -> Value:
        return self.make(arith.XOrI, a, b)

    def shl(self, a: Value, count: int) -> Value:
        return self.make(arith.ShLI, a, self.iconstant(count, a))

    def shr_s(self, a: Value, count: int) -> Value:
        return self.make(arith.ShRSI, a, self.iconstant(count, a))

    def shr_u(self, a: Value, count: int) -> Value:
        return self.make(arith.ShRUI, a, self.iconstant(count, a))

    def int_to_float(self, a: Value) -> Value:
        return self.make(arith.SIToFP, a, results=[self.as_float(a)])

    def extend(self, a: Value) -> Value:
        return self.make(arith.ExtF, a, results=[self.as_float(a, 64)])

    def truncate(self, a: Value) -> Value:
        return self.make(arith.TruncF, a, results=[self.as_float(a, 32)])

    def truncate_int(self, a: Value) -> Value:
        return self.make(arith.TruncI, a, results=[self.as_int(a, 32)])

    def expand(self, expansion: Expansion, op: Operation) -> Value:
        """The value of the function that `op` applies, built before it."""
        self.move_before(op)
        element = element_type(op.results[0].type)
        operands: Sequence[Value] = op.operands
        if not isinstance(element, FloatType) or element.width >= 32:
            return expansion.program(self, *operands)
        wide = [self.make(arith.ExtF, x, results=[self.as_float(x, 32)]) for x in operands]
        return self.make(arith.TruncF, expansion.program(self, *wide), results=[op.results[0].type])


@dataclass
class ExpandMath(Pass):
    """Replace transcendental functions by arithmetic."""

    name: ClassVar[str] = "expand-math"
    functions: tuple[str, ...] = ()
    """The functions to expand (`exp`, `powf`, ..); none named: all."""
    keep: tuple[str, ...] = ()
    """Functions to leave alone, because the target has them."""

    def run(self, op: Operation) -> None:
        for function in (*self.functions, *self.keep):
            if function not in FUNCTIONS:
                known = list(FUNCTIONS)
                raise PassError(f"expand-math knows no function '{function}'; {suggest(function, known)}")
        wanted = [f for f in self.functions or FUNCTIONS if f not in self.keep]
        chosen = {FUNCTIONS[f]: EXPANSIONS[FUNCTIONS[f]] for f in wanted}
        self.expand_scalars(op)
        builder = OpBuilder()
        for found in op.walk():
            expansion = chosen.get(found.name)
            if expansion is not None:
                found.replace_by([builder.expand(expansion, found)])
                self.count("expanded")

    def expand_scalars(self, op: Operation) -> None:
        """Put the compositions of scalars in the place of the ops that have one; a composition may use such ops."""
        pending: list[Operation] = [found for found in op.walk() if isinstance(found, ExpandsToScalars)]
        while pending:
            found = pending.pop()
            if not isinstance(found, ExpandsToScalars):
                continue
            before = found.prev
            value = found.expand_scalar(ScalarBuilder(before=found, location=found.location))
            (result,) = found.results
            if value.type is not result.type:
                message = f"'{found.name}' op expands to a {value.type}, and gives a {result.type}"
                raise PassError(message, found.location)
            made = found.prev
            while made is not before:
                assert made is not None
                pending.append(made)
                made = made.prev
            found.replace_by([value])
            self.count("expanded")

"""A program under construction: its values, what they compute, and the keeping of ops that compute something sound."""

from __future__ import annotations

import math
import random as stdlib_random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.diagnostics import Error
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func, Return
from nablair.ir.numeric import dtype
from nablair.ir.types import BF16, F16, F32, F64, I1, I32, I64, FloatType, TensorType

MAX_SIZE = 64.0
"""The largest magnitude of a float value."""
EXTENTS = (2, 3, 4, 5, 7, 16, 17, 19)
MAX_ELEMENTS = 1500
SMALL_EXTENTS = (2, 3, 4, 5, 7)
SMALL_ELEMENTS = 150
"""For what runs point by point."""

Shape = tuple[int, ...]
Random = stdlib_random.Random
Step = Callable[["Growth"], None]


def random_array(random: Random, type: Any) -> Any:
    """Small numbers of few digits: sums of products of them are far from overflow and rarely cancel to nothing."""
    source = np.random.default_rng(random.randrange(1 << 30))
    if type.element is I1:
        return source.integers(0, 2, type.shape).astype(bool)
    if isinstance(type.element, FloatType):
        return (source.integers(-16, 17, type.shape) / 8).astype(dtype(type))
    return source.integers(-9, 10, type.shape).astype(dtype(type))


@dataclass(eq=False)
class Grown:
    """A value of the program and what it computes on the program's inputs."""

    value: Any
    array: Any
    exact: bool

    @property
    def type(self) -> TensorType:
        """The tensor type."""
        return self.value.type

    @property
    def element(self) -> Any:
        """The element type."""
        return self.type.element

    @property
    def shape(self) -> Shape:
        """The extents."""
        return self.type.shape

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return isinstance(self.element, FloatType)

    @property
    def is_integer(self) -> bool:
        """Whether the elements are integers (not i1)."""
        return not self.is_float and self.element is not I1

    def least(self) -> float:
        """The smallest element; 1 of nothing."""
        return float(self.array.min()) if self.array.size else 1.0

    def greatest(self) -> float:
        """The largest element; 1 of nothing."""
        return float(self.array.max()) if self.array.size else 1.0


@dataclass
class Growth:
    """A program under construction."""

    random: Random
    gradient: bool
    start: Any = None
    small: bool = False
    values: list[Grown] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        random = self.random
        extents: list[int] = random.sample(SMALL_EXTENTS if self.small else EXTENTS, 3)
        if random.random() < 0.04:
            extents[random.randrange(3)] = 0
        self.extents = extents
        element = self.start or random.choices((F32, F64, F16, BF16), (12, 2, 1, 1))[0]
        types = [TensorType(self.shape(), element) for _ in range(random.randint(1, 3))]
        if random.random() < 0.4:
            types.append(TensorType(self.shape(), random.choice((I32, I64, I1))))
        self.main = Func.of("main", types, [])
        self.b = TensorBuilder(self.main.entry)
        for argument in self.main.arguments:
            self.arrays.append(random_array(random, argument.type))
            self.values.append(Grown(argument, self.arrays[-1], True))

    @property
    def most(self) -> int:
        """The most elements of a value."""
        return SMALL_ELEMENTS if self.small else MAX_ELEMENTS

    @property
    def is_narrow(self) -> bool:
        """Whether it starts from floats of 16 bits."""
        return self.values[0].element in (F16, BF16)

    def shape(self) -> Shape:
        """A shape of the program's extents, some of them 1."""
        a, b, c = self.extents
        pool = ((a, b), (b,), (a, 1), (1, b), (c, a, b), (c, 1, b), (), (b, c), (a, b, c), (1,), (c, b))
        shape = self.random.choices(pool, (6, 3, 2, 2, 3, 2, 1, 2, 2, 1, 1))[0]
        return shape if math.prod(shape) <= self.most else shape[:2]

    def grow(self, count: int, table: Sequence[tuple[Step, float]]) -> None:
        """Add `count` ops, or fewer where steps fail, by steps from a table with their weights."""
        steps, weights = zip(*table, strict=True)
        for _ in range(2 * count):
            if sum(1 for _ in self.main.entry) >= count:
                break
            step: Step = self.random.choices(steps, weights)[0]
            step(self)

    def finish(self) -> Module:
        """The module: it returns values that nothing else uses, the last one among them."""
        made = self.values[len(self.arrays) :] or self.values
        pool = [v for v in made if v.is_float] or [v for v in self.values if v.is_float] if self.gradient else made
        loose = [v for v in pool if not v.value.uses] or pool[-1:]
        returned = loose[-self.random.randint(1, 4) :]
        if self.random.random() < 0.1:
            returned.append(self.random.choice(pool))
        self.b.create(Return, [v.value for v in returned])
        self.main.update_type()
        return Module.of([self.main])

    # Choosing operands.

    def pick(self, fits: Callable[[Grown], bool]) -> Grown | None:
        """A value, more often a late one."""
        found = [v for v in self.values if fits(v)]
        if not found:
            return None
        late = self.random.random() < 0.6
        return self.random.choice(found[-3:] if late else found)

    def float(self, exact: bool = False) -> Grown | None:
        """A float value; an exact one if told."""
        return self.pick(lambda v: v.is_float and (v.exact or not exact))

    def partner(self, x: Grown, exact: bool = False) -> Any:
        """What broadcasts against x: another value, or a number as an exact constant."""
        if self.random.random() < 0.25:
            return self.number(x)

        def fits(v: Grown) -> bool:
            return v.element is x.element and broadcastable(v.shape, x.shape) and (v.exact or not exact)

        return self.pick(fits) or self.number(x)

    def number(self, x: Grown) -> Grown:
        """A constant of x's element type."""
        value = self.random.choice((0.5, -1.5, 2.0, 0.25, 1.0, 0.0)) if x.is_float else self.random.randint(-3, 5)
        return self.constant(value, x.element)

    def constant(self, value: float, element: Any) -> Grown:
        """A 0-d constant."""
        made = self.b.constant(value, element)
        return Grown(made, self.evaluate(made), True)

    def positive(self, x: Grown) -> Grown | None:
        """|x| + 0.5, unless x is positive already."""
        if x.least() >= 0.25:
            return x
        size = self.keep(self.b.abs(x.value), x.exact)
        return size and self.keep(self.b.add(size.value, 0.5), False)

    # Keeping results.

    def evaluate(self, value: Any) -> Any:
        """What a value computes."""
        for known in self.values:
            if known.value is value:
                return known.array
        op = value.defining_op
        with np.errstate(all="ignore"):
            results = op.evaluate(*map(self.evaluate, op.operands))
        return results[value.index] if isinstance(results, tuple | list) else results

    def keep(self, made: Any, exact: bool) -> Grown | None:
        """Keep the results of an op where all are well; the first of them."""
        values = made if isinstance(made, tuple) else (made,)
        grown = [Grown(v, np.asarray(self.evaluate(v)), exact) for v in values]
        for g in grown:
            wrong = g.is_float and not (np.isfinite(g.array).all() and bool((np.abs(g.array) <= MAX_SIZE).all()))
            if wrong or g.array.size > self.most:
                values[0].defining_op.erase()
                return None
        self.values += grown
        return grown[0]

    def attempt(self, exact: bool, build: Callable[..., Any], *operands: Grown | None, **properties: Any) -> None:
        """Build an op on values and keep it; nothing where an operand is missing or the op refuses."""
        if any(o is None for o in operands):
            return
        try:
            made = build(*(o.value for o in operands if o is not None), **properties)
        except Error:
            return
        self.keep(made, exact and all(o.exact for o in operands if o is not None))


def broadcastable(a: Shape, b: Shape) -> bool:
    """Whether two shapes broadcast, to at most MAX_ELEMENTS."""
    try:
        return math.prod(np.broadcast_shapes(a, b)) <= MAX_ELEMENTS
    except ValueError:
        return False

"""Random tensor-level programs: modules with @main, and arrays to run it on.

    program = grow(random.Random(7))                  # the same program for the same seed
    @given(programs())                                # or drawn, and shrunk, by Hypothesis

A program grows op by op.  Every value is computed as soon as it is made, so that an op is only kept where its result is
finite and of moderate size: no NaN or infinity hides what later ops do.  What is sensitive to the last bit (comparisons,
rounding, indexing) is fed exact values only: inputs, constants, and exact ops of such.

Some programs are gradients: the derivative of a grown function, by the pass `autodiff`.
"""

from __future__ import annotations

import math
import random as stdlib_random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nablair.ir.attributes import StringAttr
from nablair.ir.diagnostics import Error
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.elementwise.cast import is_exact
from nablair.ir.dialects.elementwise.family import Elementwise
from nablair.ir.dialects.func import Func, Return
from nablair.ir.dialects.shapes import tensor_type
from nablair.ir.dialects.tensor_builder import TensorBuilder
from nablair.ir.interpreter.bounds import Bounds
from nablair.ir.numeric import dtype
from nablair.ir.types import BF16, F16, F32, F64, I1, I32, I64, FloatType, TensorType
from nablair.passes.manager import PassManager

MAX_OPS = 30
MAX_SIZE = 64.0
"""The largest magnitude of a float value."""
EXTENTS = (2, 3, 4, 5, 7, 16, 17, 19)
MAX_ELEMENTS = 1500
SMALL_EXTENTS = (2, 3, 4, 5, 7)
SMALL_ELEMENTS = 150
"""For what runs point by point."""
USEFUL = 2.0**-5
"""A bound that is a larger part of the result's magnitude than this says too little."""

Shape = tuple[int, ...]
Random = stdlib_random.Random


@dataclass
class Program:
    """A module whose @main takes `arrays`."""

    module: Module
    arrays: list[Any]
    gradient: bool

    @property
    def main(self) -> Func:
        """The function."""
        main = self.module.symbol("main")
        assert isinstance(main, Func)
        return main

    @cached_property
    def bounds(self) -> tuple[list[Any], list[Any]]:
        """The results in float64 and how far each element of a correct result may lie from them."""
        module = self.module.clone()
        assert isinstance(module, Module)
        PassManager.parse("inline,decompose").run(module)
        return Bounds(module).call("main", self.arrays)

    @property
    def is_useful(self) -> bool:
        """Whether the bounds are small against the results."""
        for value, error in zip(*self.bounds, strict=True):
            if value.size and value.dtype.kind == "f":
                scale = max(1e-2, float(np.max(np.abs(value))))
                if not (np.isfinite(value).all() and float(np.max(error)) <= USEFUL * scale):
                    return False
            elif value.size and np.any(error > 0):
                return False
        return True

    @cached_property
    def traits(self) -> set[str]:
        """Which of "reductions", "broadcasts", "multi-use" and "gradients" the program has."""
        found = {"gradients"} if self.gradient else set[str]()
        for op in self.main.entry:
            if op.name.startswith("linalg.") and op.name not in ("linalg.take", "linalg.take_along_axis"):
                found.add("reductions")
            if op.name == "array.broadcast" or (
                isinstance(op, Elementwise) and any(v.type.shape != op.result.type.shape for v in op.operands)  # type: ignore[union-attr]
            ):
                found.add("broadcasts")
            if any(sum(r.uses.values()) > 1 for r in op.results):
                found.add("multi-use")
        return found

    def __repr__(self) -> str:
        arrays = ", ".join(f"{a.dtype}{list(a.shape)}" for a in self.arrays)
        return f"Program on ({arrays}):\n{self.module}"


def programs(small: bool = False) -> st.SearchStrategy[Program]:
    """Programs, drawn by Hypothesis."""
    return st.randoms(use_true_random=False).map(lambda random: grow(random, small=small))


def grow(
    random: Random,
    gradient: bool | None = None,
    element: Any = None,
    *,
    differentiate: bool = True,
    small: bool = False,
) -> Program:
    """A program; a gradient in two of five cases unless told.

    `element`: that of all floats; without `differentiate` the function that a gradient would be made of; `small`: of
    few elements."""
    if gradient is None:
        gradient = random.random() < 0.4
    growth = Growth(random, gradient, element, small)
    # A derivative is some three times as long as its function; few digits are soon used up.
    limit = MAX_OPS // 3 if growth.is_narrow else MAX_OPS // 2 if gradient else MAX_OPS
    growth.grow(random.randint(1, limit))
    program = Program(growth.finish(), growth.arrays, False)
    if not (gradient and differentiate):
        return program
    floats = [i for i, a in enumerate(program.arrays) if a.dtype.kind not in "biu"]
    return differentiated(program, random, sorted(random.sample(floats, random.randint(1, len(floats)))))


def differentiated(program: Program, random: Random, wrt: Sequence[int]) -> Program:
    """The gradient of a program with respect to some of its float inputs, itself a program."""
    source = program.main
    PassManager.parse(f"autodiff{{function=main wrt={','.join(map(str, wrt))}}}").run(program.module)
    source.erase()
    made = program.module.symbol("main_vjp")
    assert isinstance(made, Func)
    made.properties["sym_name"] = StringAttr("main")
    seeds = [random_array(random, a.type) for a in made.arguments[len(program.arrays) :]]
    return Program(program.module, [*program.arrays, *seeds], True)


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
        extents = random.sample(SMALL_EXTENTS if self.small else EXTENTS, 3)
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

    def grow(self, count: int) -> None:
        """Add `count` ops, or fewer where steps fail."""
        steps, weights = zip(*STEPS, strict=True)
        for _ in range(2 * count):
            if sum(1 for _ in self.main.entry) >= count:
                break
            step: Callable[[Growth], None] = self.random.choices(steps, weights)[0]
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


# Steps: each adds an op, or a few, or nothing.


def smooth(g: Growth) -> None:
    name = g.random.choice(("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "erf", "sin", "cos", "tanh", "sigmoid"))
    x = g.float()
    if x is None or (name in ("exp", "expm1") and x.greatest() > 4):
        return
    if name in ("log", "sqrt", "rsqrt") or (name == "log1p" and x.least() < -0.75):
        x = g.positive(x)
    g.attempt(False, getattr(g.b, name), x)


def gelu(g: Growth) -> None:
    g.attempt(False, g.b.gelu, g.float(), approximate=g.random.choice(("none", "tanh")))


def exact_unary(g: Growth) -> None:
    g.attempt(True, getattr(g.b, g.random.choice(("neg", "abs", "relu"))), g.float())


def rounding(g: Growth) -> None:
    name = g.random.choice(("floor", "ceil", "trunc", "round", "sign"))
    g.attempt(True, getattr(g.b, name), g.float(exact=True))


def arithmetic(g: Growth) -> None:
    x = g.float()
    if x is not None:
        pair = [x, g.partner(x)]
        g.random.shuffle(pair)
        g.attempt(False, getattr(g.b, g.random.choice(("add", "sub", "mul", "mul"))), *pair)


def extremum(g: Growth) -> None:
    # Where values tie the derivative asks whether they are equal.
    x = g.float(exact=g.gradient)
    if x is not None:
        g.attempt(True, getattr(g.b, g.random.choice(("maximum", "minimum"))), x, g.partner(x, exact=g.gradient))


def division(g: Growth) -> None:
    x = g.float()
    if x is not None:
        g.attempt(False, g.b.div, x, g.positive(g.partner(x)))


def clip(g: Growth) -> None:
    x = g.float()
    if x is not None:
        g.attempt(True, g.b.clip, x, g.constant(-1.25, x.element), g.constant(1.5, x.element))


COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "greater_or_nan")


def condition(g: Growth) -> None:
    x = g.pick(lambda v: v.exact and v.element is not I1)
    if x is not None:
        names = COMPARISONS if x.is_float else COMPARISONS[:-1]
        g.attempt(True, getattr(g.b, g.random.choice(names)), x, g.partner(x, exact=True))


def logic(g: Growth) -> None:
    x = g.pick(lambda v: v.element is I1)
    if x is None:
        return
    name = g.random.choice(("logical_and", "logical_or", "logical_xor", "logical_not"))
    others = () if name == "logical_not" else (g.pick(lambda v: v.element is I1 and broadcastable(v.shape, x.shape)),)
    g.attempt(True, getattr(g.b, name), x, *others)


def choice(g: Growth) -> None:
    x = g.float()
    if x is None:
        return
    y = g.partner(x)
    if not any(v.element is I1 for v in g.values):
        condition(g)
    shape = np.broadcast_shapes(x.shape, y.shape)
    g.attempt(True, g.b.where, g.pick(lambda v: v.element is I1 and broadcastable(v.shape, shape)), x, y)


def cast(g: Growth) -> None:
    x = g.pick(lambda v: v.is_float or v.exact)
    if x is None or g.start is not None:
        return
    floats = [t for t in (F32, F32, F64, F16, BF16) if t is not x.element]
    targets = [*floats, I32] if x.exact and x.is_float else floats
    to = g.random.choice(targets)
    g.attempt(to is I32 or is_exact(x.element, to), g.b.cast, x, to=to)


def integers(g: Growth) -> None:
    x = g.pick(lambda v: v.is_integer)
    if x is None:
        return
    name = g.random.choice(("add", "sub", "mul", "floor_divide", "remainder", "maximum", "minimum", "neg", "abs"))
    others = () if name in ("neg", "abs") else (g.partner(x),)
    g.attempt(True, getattr(g.b, name), x, *others)


def transpose(g: Growth) -> None:
    x = g.pick(lambda v: len(v.shape) > 1)
    if x is not None:
        order = list(range(len(x.shape)))
        g.random.shuffle(order)
        g.attempt(True, g.b.transpose, x, permutation=order)


def reshape(g: Growth) -> None:
    x = g.pick(lambda v: v.array.size > 0)
    if x is None:
        return
    dims: list[int] = list(x.shape)
    ways = ["unit", "flat"] + (["join"] if len(dims) > 1 else []) + (["split"] if dims else [])
    match g.random.choice(ways):
        case "flat":
            dims = [math.prod(dims)]
        case "join":
            at = g.random.randrange(len(dims) - 1)
            dims[at : at + 2] = [dims[at] * dims[at + 1]]
        case "split":
            at = g.random.randrange(len(dims))
            factor = g.random.choice([d for d in range(1, dims[at] + 1) if dims[at] % d == 0])
            dims[at : at + 1] = [factor, dims[at] // factor]
        case _:
            if 1 in dims and g.random.random() < 0.5:
                dims.remove(1)
            else:
                dims.insert(g.random.randint(0, len(dims)), 1)
    if len(dims) <= 5:
        g.attempt(True, g.b.reshape, x, dims=dims)


def part(g: Growth) -> None:
    """A slice: on each axis the whole, a part, every other element, or all in reverse."""
    x = g.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    limits: list[tuple[int, int, int]] = []
    for extent in x.shape:
        start = g.random.randint(0, extent // 2)
        stop = g.random.randint((extent + 1) // 2, extent)
        ways = [(0, extent, 1), (0, extent, 1), (start, stop, 1), (start, extent, 2)]
        limits.append(g.random.choice([*ways, (extent - 1, -1, -1), (extent - 1, -1, -2)] if extent else ways[:1]))
    starts, stops, steps = map(list, zip(*limits, strict=True))
    g.attempt(True, g.b.slice, x, starts=starts, stops=stops, steps=steps)


def repeat(g: Growth) -> None:
    x = g.pick(lambda v: len(v.shape) < 4)
    if x is None:
        return
    dims = [g.random.choice(g.extents) if d == 1 and g.random.random() < 0.5 else d for d in x.shape]
    at = g.random.randint(0, len(dims))
    dims.insert(at, g.random.choice(g.extents))
    if math.prod(dims) <= g.most:
        axes = [i for i in range(len(dims)) if i != at]
        g.attempt(True, g.b.broadcast, x, dims=dims, axes=axes)


def concat(g: Growth) -> None:
    x = g.pick(lambda v: len(v.shape) > 0)
    if x is None:
        return
    axis = g.random.randrange(len(x.shape))

    def fits(v: Grown) -> bool:
        same = v.element is x.element and len(v.shape) == len(x.shape)
        return same and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape, strict=True)))

    parts = [x, *(g.pick(fits) for _ in range(g.random.randint(1, 2)))]
    g.attempt(True, lambda *values, axis: g.b.concat(list(values), axis=axis), *parts, axis=axis)


def pad(g: Growth) -> None:
    x = g.pick(lambda v: len(v.shape) > 0 and v.element is not I1)
    if x is None:
        return

    def margins() -> list[int]:
        return [g.random.choice((0, 0, 1, 2)) for _ in x.shape]

    gaps = margins() if g.random.random() < 0.4 else [0] * len(x.shape)
    number = g.b.number(g.random.choice((0.0, 0.5)) if x.is_float else 3, x.value)
    g.attempt(True, g.b.pad, x, low=margins(), high=margins(), interior=gaps if any(gaps) else None, value=number)


def reduction(g: Growth) -> None:
    name = g.random.choice(("sum", "sum", "mean", "max", "min"))
    extreme = name in ("max", "min")
    fits: Callable[[Grown], bool] = lambda v: len(v.shape) > 0 and (  # noqa: E731
        (v.exact or not g.gradient) if extreme else v.is_float or (name == "sum" and v.element is not F16)
    )
    x = g.pick(fits)
    if x is None:
        return
    axes = sorted(g.random.sample(range(len(x.shape)), g.random.randint(1, len(x.shape))))
    exact = extreme or not x.is_float
    g.attempt(exact, getattr(g.b, f"reduce_{name}"), x, axes=axes, keepdims=g.random.random() < 0.4)


def place(g: Growth) -> None:
    x = g.pick(lambda v: v.exact and len(v.shape) > 0 and v.element is not I1)
    if x is not None:
        axis = g.random.randrange(len(x.shape))
        g.attempt(True, getattr(g.b, g.random.choice(("argmax", "argmin"))), x, axis=axis)


def matmul(g: Growth) -> None:
    x = g.pick(lambda v: v.is_float and len(v.shape) > 0)
    if x is None:
        return
    if len(x.shape) > 1 and g.random.random() < 0.4:
        order = [*range(len(x.shape) - 2), len(x.shape) - 1, len(x.shape) - 2]
        g.attempt(True, g.b.transpose, x, permutation=order)

    def fits(v: Grown) -> bool:
        if v.element is not x.element or not v.shape:
            return False
        contracted = v.shape[-2 if len(v.shape) > 1 else -1]
        return contracted == x.shape[-1] and broadcastable(v.shape[:-2], x.shape[:-2])

    g.attempt(False, g.b.matmul, x, g.pick(fits))


def take(g: Growth) -> None:
    indices = g.pick(lambda v: v.is_integer and len(v.shape) < 3)
    x = g.pick(lambda v: v.is_float and len(v.shape) > 0)
    if x is None:
        return
    axis = g.random.randrange(len(x.shape))
    if indices is None:
        count = g.random.choice(g.extents)
        chosen = np.random.default_rng(g.random.randrange(1 << 30)).integers(-2, 5, (count,))
        indices = g.keep(g.b.constant(chosen), True)
    g.attempt(True, g.b.take, x, indices, axis=axis)


def constant_array(g: Growth) -> None:
    type = TensorType(g.shape(), g.random.choice([v.element for v in g.values if v.is_float]))
    if g.random.random() < 0.3:
        g.keep(g.b.iota(tensor_type(type.shape, I64), axis=g.random.randrange(max(1, len(type.shape)))), True) if (
            type.shape
        ) else None
    else:
        g.keep(g.b.constant(random_array(g.random, type), type), True)


def softmax(g: Growth) -> None:
    # Its derivative passes through a maximum, which asks for equality.
    x = g.pick(lambda v: v.is_float and len(v.shape) > 0 and (v.exact or not g.gradient))
    if x is not None:
        name = g.random.choice(("softmax", "log_softmax"))
        g.attempt(False, getattr(g.b, name), x, axis=g.random.randrange(len(x.shape)))


def layer_norm(g: Growth) -> None:
    x = g.pick(lambda v: v.is_float and len(v.shape) > 0)
    if x is None:
        return
    axis = g.random.randrange(len(x.shape))
    # Rows that differ little are divided by little.
    if x.array.size == 0 or float(np.var(x.array.astype("f8"), axis=axis).min()) < 0.01:
        return
    weight = g.pick(lambda v: v.element is x.element and v.shape == (x.shape[axis],))
    rest = [weight] if weight is not None and g.random.random() < 0.6 else []
    g.attempt(False, g.b.layer_norm, x, *rest, axis=axis)


def loss(g: Growth) -> None:
    x = g.float()
    if x is None:
        return
    reduce = g.random.choice(("mean", "sum", "none"))
    target = g.pick(lambda v: v.element is x.element and v.shape == x.shape)
    g.attempt(False, getattr(g.b, g.random.choice(("mse", "bce_with_logits", "smooth_l1"))), x, target, reduction=reduce)


def cross_entropy(g: Growth) -> None:
    x = g.pick(lambda v: v.is_float and len(v.shape) > 1 and v.shape[-1] > 0 and (v.exact or not g.gradient))
    if x is None:
        return
    classes = np.random.default_rng(g.random.randrange(1 << 30)).integers(0, x.shape[-1], x.shape[:-1])
    reduce = g.random.choice(("mean", "sum", "none"))
    g.attempt(False, g.b.cross_entropy, x, g.keep(g.b.constant(classes), True), reduction=reduce)


STEPS: Sequence[tuple[Callable[[Growth], None], float]] = (
    (arithmetic, 12),
    (smooth, 8),
    (exact_unary, 4),
    (extremum, 3),
    (division, 3),
    (gelu, 1),
    (clip, 1.5),
    (rounding, 1),
    (condition, 2),
    (logic, 1.5),
    (choice, 3),
    (cast, 2),
    (integers, 2),
    (transpose, 3),
    (reshape, 3),
    (part, 3),
    (repeat, 2),
    (concat, 2),
    (pad, 2),
    (reduction, 7),
    (place, 1),
    (matmul, 4),
    (take, 2),
    (constant_array, 1.5),
    (softmax, 2),
    (layer_norm, 1.5),
    (loss, 1.5),
    (cross_entropy, 1),
)
"""Every step and how often it is tried."""

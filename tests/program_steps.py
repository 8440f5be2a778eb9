"""How programs grow: each step adds an op, or a few, or nothing where no operand fits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from program_growth import Grown, Growth, Step, broadcastable, random_array

from nablair.ir.definition import OPS
from nablair.ir.dialect import DIALECTS
from nablair.ir.dialects import elementwise as e
from nablair.ir.dialects.elementwise import BinaryArithmetic, Comparison, Elementwise, Logical, Unary, UnaryFloat
from nablair.ir.dialects.elementwise.cast import is_exact
from nablair.ir.dialects.elementwise.rounding import Rounding
from nablair.ir.interfaces import NoDerivative
from nablair.ir.operations import Operation
from nablair.ir.support.shapes import tensor_type
from nablair.ir.support.tensor_op import NUMBER
from nablair.ir.types import BF16, F16, F32, F64, I1, I32, I64, TensorType

T = TypeVar("T", bound=Elementwise)


def family(base: type[T], *but: type[Operation]) -> list[type[T]]:
    """The elementwise ops of a family that take no properties, in the order of their names."""
    DIALECTS["elementwise"].load()
    ours = [c for n, c in sorted(OPS.items()) if n.startswith("elementwise.") and issubclass(c, base)]
    return [c for c in ours if not issubclass(c, but) and not c.definition.properties]


SMOOTH = family(UnaryFloat, Rounding)
EXACT_UNARY = [c for c in family(Unary, UnaryFloat, NoDerivative) if c.accepts is NUMBER]
ROUNDING = [*family(Rounding), e.Sign]
ARITHMETIC = [c for c in family(BinaryArithmetic) if c.accepts is NUMBER]
EXTREMA = [e.Maximum, e.Minimum]
COMPARISONS = family(Comparison)
CONNECTIVES = [*family(Logical), e.LogicalNot]
INTEGERS = [*ARITHMETIC, e.FloorDivide, e.Remainder, *EXTREMA, *[c for c in EXACT_UNARY if c is not e.Relu]]


def smooth(g: Growth) -> None:
    op = g.random.choice(SMOOTH)
    least = op.samples[0].low
    x = g.float()
    if x is None or (least < -1 and math.isinf(op.slope) and x.greatest() > 4):
        return
    if least > 0 or (least > -1 and x.least() < -0.75):
        x = g.positive(x)
    g.attempt(False, partial(g.b.apply, op), x)


def gelu(g: Growth) -> None:
    g.attempt(False, g.b.gelu, g.float(), approximate=g.random.choice(("none", "tanh")))


def exact_unary(g: Growth) -> None:
    g.attempt(True, partial(g.b.apply, g.random.choice(EXACT_UNARY)), g.float())


def rounding(g: Growth) -> None:
    g.attempt(True, partial(g.b.apply, g.random.choice(ROUNDING)), g.float(exact=True))


def arithmetic(g: Growth) -> None:
    x = g.float()
    if x is not None:
        pair = [x, g.partner(x)]
        g.random.shuffle(pair)
        g.attempt(False, partial(g.b.apply, g.random.choice([*ARITHMETIC, e.Mul])), *pair)


def extremum(g: Growth) -> None:
    # Where values tie the derivative asks whether they are equal.
    x = g.float(exact=g.gradient)
    if x is not None:
        g.attempt(True, partial(g.b.apply, g.random.choice(EXTREMA)), x, g.partner(x, exact=g.gradient))


def division(g: Growth) -> None:
    x = g.float()
    if x is not None:
        g.attempt(False, g.b.div, x, g.positive(g.partner(x)))


def clip(g: Growth) -> None:
    x = g.float()
    if x is not None:
        g.attempt(True, g.b.clip, x, g.constant(-1.25, x.element), g.constant(1.5, x.element))


def condition(g: Growth) -> None:
    x = g.pick(lambda v: v.exact and v.element is not I1)
    if x is not None:
        op = g.random.choice([c for c in COMPARISONS if x.element in c.accepts])
        g.attempt(True, partial(g.b.apply, op), x, g.partner(x, exact=True))


def logic(g: Growth) -> None:
    x = g.pick(lambda v: v.element is I1)
    if x is None:
        return
    op = g.random.choice(CONNECTIVES)
    count = len(op.definition.operands) - 1
    shape = x.shape
    others = [g.pick(lambda v: v.element is I1 and broadcastable(v.shape, shape)) for _ in range(count)]
    g.attempt(True, partial(g.b.apply, op), x, *others)


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
    op = g.random.choice(INTEGERS)
    others = [g.partner(x) for _ in op.definition.operands[1:]]
    g.attempt(True, partial(g.b.apply, op), x, *others)


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

    def fits(v: Grown) -> bool:
        return len(v.shape) > 0 and ((v.exact or not g.gradient) if extreme else v.is_float or name == "sum")

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
    g.attempt(True, g.b.take, x, indices, axis=axis, missing="zero")


def constant_array(g: Growth) -> None:
    type = TensorType(g.shape(), g.random.choice([v.element for v in g.values if v.is_float]))
    if type.shape and g.random.random() < 0.3:
        g.keep(g.b.iota(tensor_type(type.shape, I64), axis=g.random.randrange(len(type.shape))), True)
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
    build = getattr(g.b, g.random.choice(("mse", "bce_with_logits", "smooth_l1")))
    target = g.pick(lambda v: v.element is x.element and v.shape == x.shape)
    g.attempt(False, build, x, target, reduction=g.random.choice(("mean", "sum", "none")))


def cross_entropy(g: Growth) -> None:
    x = g.pick(lambda v: v.is_float and len(v.shape) > 1 and v.shape[-1] > 0 and (v.exact or not g.gradient))
    if x is None:
        return
    classes = np.random.default_rng(g.random.randrange(1 << 30)).integers(0, x.shape[-1], x.shape[:-1])
    reduce = g.random.choice(("mean", "sum", "none"))
    g.attempt(False, g.b.cross_entropy, x, g.keep(g.b.constant(classes), True), reduction=reduce)


STEPS: Sequence[tuple[Step, float]] = (
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

FOLDS: Sequence[tuple[Step, float]] = (
    (reduction, 2),
    (softmax, 2),
    (layer_norm, 1),
    (pad, 4),
    (part, 1),
    (arithmetic, 2),
)
"""Folds that are read beside their places, which few programs of all steps are."""

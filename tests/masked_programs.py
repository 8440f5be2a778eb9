"""Programs drawn from a seed whose gradients pass branches that are not taken, each beside its safe formula.

An argument has elements at which a function is singular.  What is computed from them, through changes of shape, folds,
products and gathers, is dropped: by a `where` with a condition of any shape that broadcasts, by relu, maximum or clip
where it is minus infinity, by the maximum over an axis, or because nothing reads it.  Which places those are is found
by computing the same with NaN at the singular elements.  In the safe formula the argument has harmless elements there,
and conditions stand in place of extremes; whatever is done about masks, its gradient is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nablair import autograd as ag
from nablair.ir.interpreter.machine import Interpreter

Step = Callable[[Any, Sequence[Any]], Any]
"""From a value and the constants of the program to a value."""

SINGULAR: list[tuple[Callable[[Any], Any], tuple[float, ...]]] = [
    (ag.sqrt, (0.0, -1.0)),
    (ag.log, (0.0, -1.0)),
    (ag.rsqrt, (0.0, -1.0)),
    (lambda t: 1.0 / t, (0.0,)),
    (lambda t: t**0.5, (0.0, -1.0)),
    (lambda t: t**-1.0, (0.0,)),
    (lambda t: ag.log1p(t - 1.0), (0.0,)),
    (lambda t: t / (t * t), (0.0,)),
    (lambda t: ag.sqrt(t * t), (0.0,)),
    (lambda t: t * ag.sqrt(t), (0.0,)),
    (lambda t: ag.exp(t) * 0.1, (1e4,)),
    (lambda t: ag.softplus(ag.log(t)), (0.0,)),
    (lambda t: t * 0.5, (np.inf, np.nan)),
]


@dataclass
class Program:
    """`function(constants)(t, w)` is a scalar; at `safe` it is what `formula` is at `singular`."""

    safe: np.ndarray
    singular: np.ndarray
    w: np.ndarray
    constants: list[Any] = field(default_factory=list[Any])
    steps: list[tuple[Step, Step]] = field(default_factory=list[tuple[Step, Step]])
    text: list[str] = field(default_factory=list[str])

    def call(self, t: Any, w: Any, constants: Sequence[Any], formula: bool = False) -> Any:
        """The value after all steps; `formula`: of the safe formula."""
        held = [w, *constants]
        for step, harmless in self.steps:
            t = (harmless if formula else step)(t, held)
        return t

    def value(self, t: np.ndarray) -> np.ndarray:
        """The safe formula in the reference interpreter."""
        return np.asarray(interpreted(lambda *a: self.call(*a, formula=True), t, self.w, self.constants)[0])

    def constant(self, array: Any) -> int:
        """Where a new constant stands among those that a step gets."""
        self.constants.append(array)
        return len(self.constants)


def interpreted(function: Callable[..., Any], *arguments: Any) -> list[Any]:
    """The results of a function, traced, by the reference meaning."""
    module = ag.jit(function).lower(*arguments).module
    arrays: list[Any] = []
    for argument in arguments:
        arrays += argument if isinstance(argument, list) else [argument]
    with np.errstate(all="ignore"):
        return Interpreter(module).call("main", arrays)


def draw(seed: int) -> Program:
    """The program of a seed."""
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(2, 4, random.integers(1, 4)))
    safe = random.uniform(0.5, 2.0, shape)
    extreme = random.random() < 0.3
    function, values = (ag.log, (0.0,)) if extreme else SINGULAR[random.integers(len(SINGULAR))]
    at = random.random(shape) < random.choice([0.15, 0.4])
    at.flat[random.integers(at.size)] = True
    program = Program(safe, np.where(at, random.choice(values, shape), safe), random.uniform(0.5, 1.5, 3))
    poisoned = np.where(at, np.nan, safe)
    _add(program, f"singular {SINGULAR.index((function, values)) if not extreme else 'log'}", lambda y, c: function(y))
    table = LINEAR if extreme else STEPS
    if not np.isfinite(values).all():  # elements of an argument that nothing reads count as finite
        table = [step for step in table if step not in (part, gathered)]
    for _ in range(random.integers(0, 4)):
        _step(program, random, table)
    dead = np.isnan(program.value(poisoned))
    _drop(program, random, dead, extreme)
    for _ in range(random.integers(0, 3)):
        _step(program, random, STEPS)
    if random.random() < 0.3:
        _condition(program, random, random.random(program.value(safe).shape) < 0.5)
        if random.random() < 0.5:
            _step(program, random, STEPS)
    weights = program.constant(random.uniform(0.5, 1.5, program.value(safe).shape))
    _add(program, "sum", lambda y, c: ag.sum(y * c[weights]))
    return program


def _add(program: Program, text: str, step: Step, harmless: Step | None = None) -> None:
    program.steps.append((step, harmless or step))
    program.text.append(text)


def _drop(program: Program, random: Any, dead: np.ndarray, extreme: bool) -> None:
    """Drop the dead places, by extremes or by a condition."""
    if not extreme or (not dead.any() and random.random() < 0.5):
        _condition(program, random, dead)
        return
    live = program.value(program.safe)
    floor = float(np.median(live[~dead])) + 0.0123 if (~dead).any() else 0.0
    kind = random.integers(4)
    if kind == 3 and dead.ndim and not dead.all(axis=0).any():
        kept = program.constant(~dead)
        _add(
            program,
            "max over an axis",
            lambda y, c: ag.max(y, axis=0),
            lambda y, c: ag.max(ag.where(c[kept], y, -1e30), axis=0),
        )
        return
    floor = 0.0 if kind == 0 else floor
    kept = program.constant(~dead & (live > floor))
    tools: list[Step] = [
        lambda y, c: ag.relu(y),
        lambda y, c: ag.maximum(y, floor),
        lambda y, c: ag.clip(y, floor, 1e6),
        lambda y, c: -ag.minimum(-y, -floor),
    ]
    _add(program, f"extreme {kind}", tools[kind], lambda y, c: ag.where(c[kept], y, floor))


def _condition(program: Program, random: Any, dead: np.ndarray) -> None:
    """where(condition, y, other) with a condition that may have fewer axes, or axes of extent 1."""
    shape = [1 if random.random() < 0.3 else n for n in dead.shape]
    repeated = tuple(i for i, (n, m) in enumerate(zip(shape, dead.shape, strict=True)) if n != m)
    condition = ~dead.any(axis=repeated, keepdims=True) & (random.random(shape) < 0.8)
    while condition.ndim and condition.shape[0] == 1 and random.random() < 0.5:
        condition = condition[0]
    held, other = program.constant(condition), float(random.uniform(0.5, 1.0))
    if random.random() < 0.5:
        _add(program, f"where {condition.shape}", lambda y, c: ag.where(c[held], y, other))
    else:
        _add(program, f"where not {condition.shape}", lambda y, c: ag.where(ag.logical_not(c[held]), other, y))


def _step(
    program: Program, random: Any, table: Sequence[Callable[[Program, Any, tuple[int, ...]], Step | None]]
) -> None:
    """A drawn step that fits the shape."""
    shape = program.value(program.safe).shape
    while True:
        make = table[random.integers(len(table))]
        step = make(program, random, shape)
        if step is not None:
            _add(program, make.__name__, step)
            return


# Steps.  Each takes the shape of the value and gives None where it does not fit.


def elementwise(program: Program, random: Any, shape: tuple[int, ...]) -> Step:
    functions: list[Callable[[Any], Any]] = [
        ag.tanh, ag.sigmoid, ag.gelu, ag.silu, ag.softplus, ag.abs, lambda y: ag.exp(y * 0.1), lambda y: y * y + 0.5,
        lambda y: ag.sqrt(y * y + 1.0), lambda y: 1.0 / (y * y + 1.0), lambda y: ag.elu(y), ag.expm1, ag.relu,
        lambda y: ag.clip(y, -0.7, 1.3), lambda y: ag.maximum(y, 0.7), lambda y: ag.pow(ag.abs(y) + 0.1, 1.5),
        lambda y: ag.astype(ag.astype(y, ag.float32), ag.float64), ag.leaky_relu, lambda y: y**0.0 + y,
    ]  # fmt: skip
    function = functions[random.integers(len(functions))]
    return lambda y, c: function(y)


def scaled(program: Program, random: Any, shape: tuple[int, ...]) -> Step:
    own = [1 if random.random() < 0.4 else n for n in shape]
    held = program.constant(random.uniform(0.5, 1.5, own[random.integers(len(own) + 1) :]))
    return lambda y, c: y * c[held]


def by_parameter(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    tools: list[Step] = [
        lambda y, c: y * c[0], lambda y, c: y / c[0], lambda y, c: ag.maximum(y, c[0]), lambda y, c: c[0] - y,
        lambda y, c: ag.where(c[0] > 1.0, y, c[0]), lambda y, c: ag.concat([y, y * 0.0 + c[0]], axis=-1),
    ]  # fmt: skip
    return tools[random.integers(len(tools))] if shape and shape[-1] in (1, 3) else None


def widened(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    return (lambda y, c: ag.broadcast_to(y, (2, *shape))) if len(shape) < 3 else None


def outer(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    return (lambda y, c: ag.reshape(y, (*shape, 1)) * c[0]) if len(shape) < 3 else None


def reshaped(program: Program, random: Any, shape: tuple[int, ...]) -> Step:
    size = int(np.prod(shape))
    wanted = [(size,), (1, size), (*shape, 1), (size // 2, 2) if size % 2 == 0 else (size, 1)]
    target = wanted[random.integers(len(wanted))]
    return lambda y, c: ag.reshape(y, target)


def transposed(program: Program, random: Any, shape: tuple[int, ...]) -> Step:
    order = tuple(int(i) for i in random.permutation(len(shape)))
    return lambda y, c: ag.permute_dims(y, order)


def part(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    tools: list[Step] = [
        lambda y, c: y[1:], lambda y, c: y[::-1], lambda y, c: y[::2], lambda y, c: y[..., :1], lambda y, c: y[0],
        lambda y, c: ag.roll(y, 1), lambda y, c: ag.flip(y),
    ]  # fmt: skip
    return tools[random.integers(len(tools))] if shape and min(shape) > 1 else None


def joined(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    tools: list[Step] = [
        lambda y, c: ag.concat([y, y * 2.0]),
        lambda y, c: ag.stack([y, 1.0 + y]),
        lambda y, c: ag.pad(y, [(1, 0)] * len(shape), constant_values=0.5),
    ]
    return tools[random.integers(len(tools))] if 0 < len(shape) < 3 else None


def gathered(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    if not shape:
        return None
    axis = int(random.integers(len(shape)))
    if random.random() < 0.5:
        at = program.constant(random.integers(-shape[axis], shape[axis], (2, 2)[: 1 + (len(shape) < 3)]))
        return lambda y, c: ag.take(y, c[at], axis=axis)
    own = tuple(2 if i == axis else n for i, n in enumerate(shape))
    along = program.constant(random.integers(0, shape[axis], own))
    return lambda y, c: ag.take_along_axis(y, c[along], axis=axis)


def scattered(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    if not shape:
        return None
    base = program.constant(random.uniform(0.5, 1.0, (4, *shape[1:])))
    if random.random() < 0.5:
        at = program.constant(random.integers(0, 4, shape[0]))
        return lambda y, c: ag.index_add(c[base], c[at], y)
    along = program.constant(random.integers(0, 4, shape))
    return lambda y, c: ag.scatter_add(c[base], c[along], y)


def folded(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    if not shape:
        return None
    tools: list[Any] = [ag.sum, ag.mean, ag.prod, ag.max, ag.min, ag.logsumexp]
    function, keepdims = tools[random.integers(len(tools))], bool(random.random() < 0.5)
    axis = tuple(i for i in range(len(shape)) if random.random() < 0.5) or (0,)
    return lambda y, c: function(y, axis=axis, keepdims=keepdims)


def summed(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    return (lambda y, c: ag.sum(y, axis=0)) if shape else None


def normalised(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    if not shape:
        return None
    axis = int(random.integers(len(shape)))
    weight, bias = (program.constant(random.uniform(0.5, 1.5, shape[axis])) for _ in range(2))
    tools: list[Step] = [
        lambda y, c: ag.softmax(y, axis=axis),
        lambda y, c: ag.log_softmax(y, axis=axis),
        lambda y, c: ag.layer_norm(y, axis=axis, eps=0.1),
        lambda y, c: ag.layer_norm(y, c[weight], c[bias], axis=axis, eps=0.1),
    ]
    return tools[random.integers(len(tools))]


def multiplied(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    """A product of matrices with a constant, from either side, of one axis up to three, or with the parameter."""
    if not shape:
        return None
    kind = random.integers(5)
    if kind == 0 and shape[-1] == 3:
        return lambda y, c: y @ c[0]
    if kind == 1 and shape[-1] == 3:
        return lambda y, c: y @ (ag.reshape(c[0], (3, 1)) * ag.reshape(c[0], (1, 3)))
    if kind == 2 and len(shape) > 1:
        left = program.constant(random.uniform(0.2, 1.0, (2, shape[-2])))
        return lambda y, c: c[left] @ y
    if kind == 3 and 1 < len(shape) < 3:
        return lambda y, c: y @ ag.permute_dims(y, (1, 0))
    right = program.constant(random.uniform(0.2, 1.0, (*shape[-1:], 2)))
    return lambda y, c: y @ c[right]


def lost(program: Program, random: Any, shape: tuple[int, ...]) -> Step | None:
    """A loss of each row, or of each element."""
    if len(shape) < 2:
        return None
    reduction = str(random.choice(["none", "mean", "sum"]))
    classes = program.constant(random.integers(0, shape[-1], shape[:-1]))
    target = program.constant(random.uniform(0.1, 0.9, shape))
    tools: list[Step] = [
        lambda y, c: ag.cross_entropy(y, c[classes], reduction=reduction),
        lambda y, c: ag.bce_with_logits(y, c[target], reduction=reduction),
        lambda y, c: ag.smooth_l1_loss(y, c[target], reduction=reduction),
        lambda y, c: ag.mse_loss(y, c[target], reduction=reduction),
    ]
    return tools[random.integers(len(tools))]


LINEAR = [scaled, widened, outer, reshaped, transposed, part, gathered, summed]
"""Steps that keep what is minus infinity so; and by positive numbers only."""
STEPS = [
    *LINEAR, elementwise, elementwise, elementwise, by_parameter, joined, scattered, folded, folded, normalised,
    multiplied, multiplied, lost,
]  # fmt: skip

"""Programs in which most values are used several times, at any distance: the order of launches stays one in which each
stands behind what it needs, and the program computes what it did."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

from nablair import autograd as ag
from nablair.ir.attribute_names import TARGET
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.target import DEFAULTS
from nablair.passes.manager import PassManager

STEPS: list[tuple[float, Callable[[Any, Any], Any]]] = [
    (4, lambda a, b: (a + b) * 0.5),
    (3, lambda a, b: ag.tanh(a) * b),
    (1, lambda a, b: ag.permute_dims(a, (1, 0)) - b),
    (0.5, lambda a, b: a - ag.mean(b, axis=0, keepdims=True)),
    (0.5, lambda a, b: a - ag.mean(b, axis=1, keepdims=True)),
    (1, lambda a, b: ag.where(a > b, a, 0.5 * b)),
    (1, lambda a, b: ag.concat([a[:3], b[3:]], axis=0)),
    (0.5, lambda a, b: 0.1 * (a @ b)),
]
"""Steps of a program, and how often they are drawn."""


def drawn(seed: int, count: int, window: int) -> Any:
    """A function of so many steps over values drawn from the last `window`."""

    def function(x: Any) -> Any:
        rng = random.Random(seed)
        known = [x, x * 0.5]
        while len(known) < count:
            (step,) = rng.choices([s for _, s in STEPS], [w for w, _ in STEPS])
            known.append(step(rng.choice(known[-window:]), rng.choice(known[-window:])))
        return known[-1] + known[-2], ag.sum(known[rng.randrange(count)])

    return function


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("count", "window"), [(60, 60), (150, 20), (300, 20)])
def test_shared_values_at_any_distance(target: str, count: int, window: int) -> None:
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    for seed in range(cases(2)):
        text = ag.jit(drawn(seed, count, window)).lower(ag.asarray(x)).as_text()
        module = parse_module(text)
        module.attributes[TARGET] = DEFAULTS[target].attribute()
        PassManager.parse("kernel").run(module)  # verified after every pass
        before, after = Interpreter(parse_module(text)), Interpreter(module)
        (name,) = [f.sym_name for f in module.functions()]
        for found, expected in zip(after.call(name, [x]), before.call(name, [x]), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)

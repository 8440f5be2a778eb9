"""`.grad` of handles that a compiled function sets, adds to and reads: as the function itself, or refused."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

from ..fuzzing import cases

F32 = np.float32

STEPS = [
    "p.grad = None",
    "p.grad = p.detach() * 3",
    "p.grad = known",
    "p.grad = p.grad * 2 if p.grad is not None else None",
    "ag.sum(p * p * x).backward()",
    "with ag.no_grad(): p -= 0.125",
    "if p.grad is not None: y = y + p.grad",
    "y = y * 2 + p.detach()",
]
CHANGES = ["p.grad = None", "p.grad = ag.asarray([5.0, 7.0])", "p.grad = known", "p.grad = p.detach() * 1", "pass"]


class Side:
    """A parameter, a gradient, and a function that takes the parameter from outside or as an argument."""

    def __init__(self, steps: list[str], is_argument: bool) -> None:
        self.names: dict[str, Any] = {"ag": ag, "known": ag.asarray([2.0, 3.0])}
        self.names["p"] = ag.Tensor([1.0, -2.0], requires_grad=True)
        body = "".join(f"\n    {s}" for s in ["y = x * 1", *steps, "return y"])
        head = "def f(p, x):" if is_argument else "def f(x):\n    global p"
        exec(head + body, self.names)
        self.is_argument = is_argument
        self.call = self.names["f"]

    def outcome(self, x: Any) -> Any:
        """The result and the gradient, or the error."""
        p = self.names["p"]
        try:
            result = self.call(p, x) if self.is_argument else self.call(x)
        except nablair.Error as error:
            return error
        return result.tolist(), p.tolist(), None if p.grad is None else p.grad.tolist()


@pytest.mark.parametrize("is_argument", [False, True])
@pytest.mark.parametrize("start", range(2))
def test_gradients_are_those_of_the_function_itself(start: int, is_argument: bool) -> None:
    refused = 0
    for seed in range(start * cases(12), (start + 1) * cases(12)):
        r = Random(seed)
        steps = [r.choice(STEPS) for _ in range(r.randint(1, 4))]
        plain, compiled = Side(steps, is_argument), Side(steps, is_argument)
        compiled.call = ag.jit(compiled.call)
        x = ag.asarray(np.array([2.0, 0.5], F32))
        for change in ["pass", *[r.choice(CHANGES) for _ in range(3)]]:
            for side in (plain, compiled):
                exec(change, side.names)
            outcomes = [(plain.outcome(x), compiled.outcome(x)) for _ in range(r.choice([1, 2, 9]))]
            errors = [b for _, b in outcomes if isinstance(b, nablair.Error)]
            if errors:
                refused += 1
                assert "grad" in str(errors[0]), f"seed {seed}: {steps}"
                break
            assert all(a == b for a, b in outcomes), f"seed {seed}: {steps}, after {change}: {outcomes}"
    assert refused <= cases(8)


def test_a_gradient_that_an_argument_has_is_not_read_as_none() -> None:
    f = ag.jit(lambda p: p * 1 if p.grad is None else p * 2)
    p = ag.Tensor([1.0], requires_grad=True)
    for _ in range(10):
        assert f(p).tolist() == [1.0]
    p.grad = ag.asarray([1.0])
    with pytest.raises(nablair.Error, match=r"reads \.grad of an argument"):
        f(p)

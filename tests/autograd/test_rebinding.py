"""Parameters that are bound to other values between recording and `backward`.

Programs are drawn: terms of a loss (of which some need the old value for their gradient), changes of the parameter, and
terms recorded after each change.  The gradient is the sum of those that `grad` gives of each term at the value that it
was recorded with, or an error where one of them needs a value that is gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag

Function = Callable[[Any], Any]

A = np.random.default_rng(0).uniform(-1, 1, (4, 3)).astype(np.float32)

FREE: dict[str, Function] = {
    "scaled": lambda w: ag.sum(w * 3.0),
    "shifted": lambda w: ag.sum(2.0 - w),
    "relu": lambda w: ag.sum(ag.relu(w * 2.0 - 1.0)),
    "exp": lambda w: ag.sum(ag.exp(w)),
    "tanh": lambda w: ag.mean(ag.tanh(w)),
    "slice": lambda w: ag.sum(w[::2] * 5.0),
    "product": lambda w: ag.sum(ag.reshape(w, (1, 4)) @ A),
    "where": lambda w: ag.sum(ag.where(A[:, 0] > 0, w, 0.0)),
    "square of a sum": lambda w: ag.sum(w) ** 2,
}
NEEDING: dict[str, Function] = {
    "square": lambda w: ag.sum(w * w),
    "cube": lambda w: ag.sum(w**3),
    "sine": lambda w: ag.sum(ag.sin(w)),
    "product with itself": lambda w: ag.sum(ag.reshape(w, (4, 1)) * ag.reshape(w, (1, 4))),
    "view": lambda w: ag.sum(ag.log(w[1:])),
}
TERMS = FREE | NEEDING


def subtract(w: Any) -> None:
    with ag.no_grad():
        w -= 0.25


def assign(w: Any) -> None:
    with ag.no_grad():
        w[...] = 1.5


def assign_part(w: Any) -> None:
    with ag.no_grad():
        w[1] = 0.75


def optimize(w: Any) -> None:
    before = w.grad
    w.grad = ag.ones(4)
    ag.optim.SGD([w], lr=0.125).step()
    w.grad = before


CHANGES: dict[str, Callable[[Any], None]] = {
    "subtract": subtract, "assign": assign, "assign a part": assign_part, "optimizer": optimize,
}  # fmt: skip


def after(value: Any, change: str) -> Any:
    """The value that a change leaves."""
    new = value.copy()
    if change == "subtract":
        new -= 0.25
    elif change == "assign":
        new[...] = 1.5
    elif change == "assign a part":
        new[1] = 0.75
    else:
        new -= 0.125
    return new


def program(rng: random.Random) -> list[tuple[list[str], str | None]]:
    """Rounds: the terms recorded, and the change after them; nothing changes after the last round but sometimes."""
    rounds: list[tuple[list[str], str | None]] = []
    for _ in range(rng.randint(1, 3)):
        pool = TERMS if rng.random() < 0.35 else FREE
        rounds.append((rng.sample(sorted(pool), rng.randint(1, 3)), rng.choice(sorted(CHANGES))))
    if rng.random() < 0.5:
        rounds.append((rng.sample(sorted(TERMS), 2), None))
    return rounds


def run(w: Any, rounds: list[tuple[list[str], str | None]], compiled: bool) -> None:
    total: Any = 0.0
    for terms, change in rounds:
        for name in terms:
            function = ag.jit(TERMS[name]) if compiled else TERMS[name]
            total = total + function(w)
        if change is not None:
            CHANGES[change](w)
    total.backward()


MODES: dict[str, Callable[[Any, Any], None]] = {
    "eager": lambda w, rounds: run(w, rounds, False),
    "jitted terms": lambda w, rounds: run(w, rounds, True),
    "jitted": lambda w, rounds: ag.jit(lambda w: run(w, rounds, False))(w),
    "captured": lambda w, rounds: ag.jit(lambda: run(w, rounds, False))(),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(cases(3)))
def test_gradients_of_what_was_recorded(seed: int, mode: str) -> None:
    rounds = program(random.Random(seed))
    value = np.random.default_rng(seed).uniform(0.5, 1.5, 4).astype(np.float32)
    w = ag.Tensor(value, requires_grad=True)
    expected, now = np.zeros(4), value
    for terms, change in rounds:
        for name in terms:
            expected += ag.grad(TERMS[name])(ag.asarray(now)).numpy()
        now = now if change is None else after(now, change)
    if any(name in NEEDING for terms, change in rounds if change is not None for name in terms):
        with pytest.raises(nablair.Error, match=r"backward: a Tensor of shape \(4,\) was changed in place"):
            MODES[mode](w, rounds)
        return
    MODES[mode](w, rounds)
    assert w.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(w.detach().numpy(), now, rtol=1e-6)
    assert w.requires_grad


@pytest.mark.parametrize("device", ["opencl:0", "ptx-sim"])
def test_on_devices(device: str) -> None:
    w = ag.Tensor([2.0], device=device, requires_grad=True)
    y = ag.sum(w * 3.0)
    subtract(w)
    y.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [3.0]


def test_two_losses_add_up_and_toggles_lose_nothing() -> None:
    w = ag.Tensor([2.0, 1.0], requires_grad=True)
    first, second = ag.sum(w * 3.0), ag.sum(w * w)
    w.requires_grad = False
    w.requires_grad = True
    first.backward()
    second.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [7.0, 5.0]


@pytest.mark.parametrize("jitted", [False, True])
def test_steps_in_one_function_are_steps(jitted: bool) -> None:
    def descend(w: Any, unused: Any) -> Any:
        for _ in range(3):
            w.grad = None
            ag.sum(w * w).backward()
            with ag.no_grad():
                w -= 0.25 * ag.asarray(w.grad)
        return unused.grad

    w, unused = ag.Tensor([4.0, -8.0], requires_grad=True), ag.Tensor([1.0], requires_grad=True)
    assert (ag.jit(descend) if jitted else descend)(w, unused) is None
    assert w.detach().tolist() == [0.5, -1.0]
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, -4.0]


def test_a_parameter_that_is_gone_needs_no_gradient() -> None:
    w, v = ag.Tensor([2.0], requires_grad=True), ag.Tensor([3.0], requires_grad=True)
    y = ag.sum(w * w * v)
    subtract(w)
    del w
    y.backward()
    assert v.grad is not None
    assert v.grad.tolist() == [4.0]


ARGNUMS: list[Any] = [0, 1, -1, (0,), (0, 0), (0, 1, 0), (1, -1), [1, 0], (), np.int64(1)]


@pytest.mark.parametrize("argnums", ARGNUMS, ids=str)
@pytest.mark.parametrize("jitted", [False, True])
def test_every_argnum_gets_its_gradient(argnums: Any, jitted: bool) -> None:
    function = ag.grad(lambda x, y: ag.sum(x["a"] * x["a"] * y), argnums=argnums)
    x, y = {"a": ag.asarray([2.0, 3.0])}, ag.asarray([5.0, 7.0])
    found = (ag.jit(function) if jitted else function)(x, y)
    expected = [{"a": [20.0, 42.0]}, [4.0, 9.0]]
    wanted = [argnums] if isinstance(argnums, int | np.integer) else argnums
    plain = [{"a": f["a"].tolist()} if isinstance(f, dict) else f.tolist() for f in (
        [found] if isinstance(argnums, int | np.integer) else found
    )]  # fmt: skip
    assert plain == [expected[n] for n in wanted]


@pytest.mark.parametrize("argnums", [2, -3, (0, 2), True, "0", None, 0.5, (0, "x"), (0, True)], ids=str)
@pytest.mark.parametrize("transform", [ag.grad, ag.value_and_grad])
def test_argnums_that_there_are_not(argnums: Any, transform: Any) -> None:
    with pytest.raises(nablair.Error, match=rf"^(.|\n)*{transform.__name__}: argnums"):
        transform(lambda x, y: x * y, argnums=argnums)(2.0, 3.0)


@pytest.mark.parametrize("jitted", [False, True])
def test_arguments_are_changed_and_copies_are_not(jitted: bool) -> None:
    def change(x: Any, y: Any) -> Any:
        z = +y
        z += 10
        x += y
        x[0] = 7
        return z

    x, y = ag.asarray([1.0, 2.0]), ag.asarray([3.0, 4.0])
    z = (ag.jit(change) if jitted else change)(x, y)
    assert [x.tolist(), y.tolist(), z.tolist()] == [[7.0, 6.0], [3.0, 4.0], [13.0, 14.0]]

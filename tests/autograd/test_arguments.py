"""Every public function, called with arguments that it cannot take: a result, or an error that names the function."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

import nablair
from nablair import autograd as ag

X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Odd:
    """An object that is nothing."""

    def __repr__(self) -> str:
        raise RuntimeError("no text")


BAD: list[Any] = [
    None, "abc", "", b"x", True, -1, 7, 2**70, -(2**70), 0.5, float("nan"), float("inf"), 1j, [], (), [[]], [1, [2, 3]],
    [None], ["a"], {}, {1, 2}, {"a": 1}, object(), Odd(), len, range(3), (0, 0), (0, 5), (-9,), (1.5,), [True],
    slice(2), ...,
    np.float64(1.5), np.int64(-7), np.array([1.5, 2.5]), np.array(["a"]), np.array([1j]),
    np.array([None]), np.zeros((0, 3), np.float32), np.ones((2, 3, 4), np.int8), np.datetime64("2020-01-01"),
    "opencl:x",
    "cpu:9", "float33",
    ag.float16, np.dtype("complex64"), ag.ones((2, 3)), ag.ones((3, 2), dtype=ag.int32), ag.ones(()),
    ag.asarray([True, False]), (2, 3), (2**40, 2**40), (-1, -1), ("n", 2), [X, X[:1]], [X, None], (X, "b"),
]  # fmt: skip
"""What no function, or not every one, takes."""

GOOD: dict[str, tuple[Any, ...]] = {
    "broadcast_shapes": ((2, 3), (3,)), "concat": ([X, X],), "stack": ([X, X],), "result_type": (ag.int8, 1),
    "arange": (3,), "linspace": (0.0, 1.0, 3), "eye": (3,), "full": ((2, 3), 1.0), "zeros": ((2, 3),),
    "ones": ((2, 3),), "empty": ((2, 3),), "full_like": (X, 1.0), "astype": (X, "int32"), "to_device": (X, "cpu"),
    "reshape": (X, (3, 2)), "permute_dims": (X, (1, 0)), "moveaxis": (X, 0, 1), "broadcast_to": (X, (2, 2, 3)),
    "squeeze": (X[:1], 0), "roll": (X, 1), "pad": (X, 1), "matmul": (X, X.T), "tensordot": (X, X),
    "outer": (X[0], X[1]),
    "take": (X, [0, 1]), "take_along_axis": (X, [[0], [1]]), "gather": (X, [[0], [1]]), "one_hot": ([0, 1], 3),
    "index_add": (X, [0], X[:1]), "scatter_add": (X, [[0]], X[:1, :1]), "where": (X > 1, X, 0.0),
    "cross_entropy": (X, [0, 1]), "logical_and": (X > 1, X > 2), "logical_or": (X > 1, X > 2),
    "logical_xor": (X > 1, X > 2), "logical_not": (X > 1,), "grad": (lambda x: ag.sum(x),),
    "value_and_grad": (lambda x: ag.sum(x),), "vjp": (ag.square, X), "jit": (lambda x: x,), "asarray": (X,),
    "fused_weighted_bce_smooth_l1_loss": (X, X, X, X),
}  # fmt: skip
NO_FUNCTIONS = {"bool", "devices", "eager_stats", "no_grad"}


def functions() -> dict[str, Callable[..., Any]]:
    """The public functions, and the class that is called as one."""
    found = {n: getattr(ag, n) for n in ag.__all__ if n not in NO_FUNCTIONS}
    return {n: f for n, f in found.items() if inspect.isfunction(f) or f is ag.Tensor}


def call(rng: random.Random, name: str, function: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """Arguments of which one or two are bad."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p for p in parameters if p.kind is not p.KEYWORD_ONLY and p.default is p.empty]
    given = list(GOOD.get(name, [X] * max(len(positional), 1)))
    keywords: dict[str, Any] = {}
    options = [p for p in parameters if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY]
    for _ in range(rng.choice([1, 1, 2])):
        if options and rng.random() < 0.5:
            keywords[rng.choice(options).name] = rng.choice(BAD)
        elif given:
            given[rng.randrange(len(given))] = rng.choice(BAD)
    taken = inspect.signature(function)
    try:
        taken.bind(*given, **keywords)
    except TypeError:
        return given, {}
    return given, keywords


def force(result: Any) -> None:
    for part in result if isinstance(result, list | tuple) else [result]:
        if isinstance(part, ag.Tensor) and (part.size or 0) < 10**6:
            part.numpy()


@pytest.mark.parametrize("name", functions())
def test_a_result_or_an_error_that_names_the_function(name: str) -> None:
    function = functions()[name]
    rng = random.Random(name)
    for _ in range(cases(6)):
        given, keywords = call(rng, name, function)
        try:
            force(function(*given, **keywords))
        except nablair.Error as error:
            known = name.replace("gather", "take_along_axis")
            named = error.message.partition(":")[0].rpartition(".")[2]
            assert known in named or "a Tensor" in error.message, f"{error.message}: {given} {keywords}"
        except MemoryError:
            pass

"""A compiled function is never stale: what it reads from outside may change between calls in any way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

from ..fuzzing import cases
from .outside_programs import Program

F32 = np.float32


def outcome(function: Any, x: Any) -> Any:
    """The result, or the error of the function itself."""
    try:
        return function(x)
    except nablair.Error as error:
        return error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        return type(error)


def check(seed: int, refusals: list[str]) -> None:
    program = Program(seed)
    f = program.module.f
    loss = lambda x: ag.sum(f(x))  # noqa: E731
    pairs = [(f, ag.jit(f)), (ag.grad(loss), ag.jit(ag.grad(loss)))]
    x = ag.asarray(np.array([1.25, -2.0], F32))
    for statement in ["", "", *program.changes, ""]:
        program.change(statement)
        for plain, compiled in pairs:
            for _ in range(2):
                expected: Any = outcome(plain, x)
                found: Any = outcome(compiled, x)
                about = f"seed {seed}, after {statement!r}:\n{program.source}"
                failures = [isinstance(v, type | nablair.Error) for v in (expected, found)]
                if any(failures):
                    # What fails by itself fails compiled; what does not may be refused, by an error of ours.
                    assert isinstance(found, nablair.Error) or all(failures), about
                    if not failures[0]:
                        refusals.append(f"{about}: {found}")
                    continue
                assert found.dtype is expected.dtype and found.shape == expected.shape, about
                np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, err_msg=about)
                zeros = found.numpy() == 0
                np.testing.assert_array_equal(
                    np.signbit(found.numpy()[zeros]), np.signbit(expected.numpy()[zeros]), err_msg=about
                )


@pytest.mark.parametrize("start", range(4))
def test_drawn_functions_are_never_stale(start: int) -> None:
    count = cases(6)
    refusals: list[str] = []
    for seed in range(start * count, (start + 1) * count):
        check(seed, refusals)
    assert len(refusals) <= count, refusals

"""Each mutant is found by the checks of generated programs on a fixed set of them, which the code as it is passes."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
from mutants import MUTANTS, Mutant
from program_checks import KERNEL, LOOPS, TENSOR, assert_bounded, check_derivative, check_passes, useful_programs
from program_steps import FOLDS
from programs import Program, grow

from nablair.ir.diagnostics import Error
from nablair.runtime.compile import clear_cache, compile_function

PROGRAMS = {"tensor": 40, "kernel": 60, "loops": 30, "cpu": 15, "derivatives": 150}
"""How many programs each check is given to find a mutant."""


@cache
def fixed_programs(check: str) -> list[Program]:
    """The programs of a check; its mutants never see them grow."""
    found = useful_programs(range(PROGRAMS[check]), lambda random: grow(random, small=check != "kernel"))
    if check == "kernel":
        found += useful_programs(range(PROGRAMS[check] // 3), lambda random: grow(random, gradient=False, steps=FOLDS))
    return found


def passes(stages: Any, start: str) -> Callable[[str], Callable[[int], None]]:
    """A check of passes on the program of a number."""
    return lambda name: lambda i: void(check_passes(fixed_programs(name)[i], random.Random(i), stages, start))


def void(_: object) -> None:
    """Forget a result."""


def on_cpu(name: str) -> Callable[[int], None]:
    """The CPU's results on the program of a number."""

    def check(i: int) -> None:
        clear_cache()
        program = fixed_programs(name)[i]
        found = compile_function(program.module, "main", "cpu").run([np.array(a, order="C") for a in program.arrays])
        assert_bounded(found, program, "cpu")

    return check


CHECKS: dict[str, Callable[[str], Callable[[int], None]]] = {
    "tensor": passes(TENSOR, ""),
    "kernel": passes(KERNEL, "tensor"),
    "loops": passes(LOOPS, "kernel,bufferize"),
    "cpu": on_cpu,
    "derivatives": lambda name: lambda i: void(check_derivative(i)),
}
"""Name -> the check of the program of a number."""


def count(check: str) -> int:
    """How many programs a check has."""
    return PROGRAMS[check] if check == "derivatives" else len(fixed_programs(check))


@pytest.mark.parametrize("check", list(CHECKS))
def test_the_code_as_it_is_passes(check: str) -> None:
    run = CHECKS[check](check)
    for i in range(count(check)):
        run(i)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.fault.replace(" ", "-"))
def test_a_mutant_is_found(mutant: Mutant) -> None:
    run = CHECKS[mutant.check](mutant.check)
    programs = count(mutant.check)
    with mutant.active():
        for i in range(programs):
            try:
                run(i)
            except (AssertionError, Error):
                break
        else:
            pytest.fail(f"none of {programs} programs shows that {mutant.fault}")
    clear_cache()

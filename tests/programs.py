"""Random tensor-level programs: modules with @main, and arrays to run it on.

    program = grow(random.Random(7))                  # the same program for the same seed
    @given(programs())                                # or drawn, and shrunk, by Hypothesis

A program grows op by op.  Every value is computed as soon as it is made, so that an op is only kept where its result is
finite and of moderate size: no NaN or infinity hides what later ops do.  What is sensitive to the last bit (such as
comparisons, rounding, indexing) is fed exact values only: inputs, constants, and exact ops of such.

Some programs are gradients: the derivative of a grown function, by the pass `autodiff`.
"""

from __future__ import annotations

import random as stdlib_random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st
from program_growth import Growth, Step, random_array
from program_steps import STEPS

from nablair.ir.attributes import StringAttr
from nablair.ir.definition import Op
from nablair.ir.diagnostics import Error
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.elementwise.family import Elementwise
from nablair.ir.dialects.func import Func
from nablair.ir.interpreter.bounds import Bounds
from nablair.ir.support.shapes import tensor_type
from nablair.ir.support.tensor_op import type_of_tensor
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager

MAX_OPS = 30
USEFUL = 2.0**-5
"""A bound that is a larger part of the result's magnitude than this says too little."""

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
                isinstance(op, Elementwise)
                and any(type_of_tensor(v).shape != type_of_tensor(op.result).shape for v in op.operands)
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
    steps: Sequence[tuple[Step, float]] = STEPS,
) -> Program:
    """A program; a gradient in two of five cases unless told.

    `element`: that of all floats; without `differentiate` the function that a gradient would be made of; `small`: of
    few elements; `steps`: what it is made of."""
    if gradient is None:
        gradient = random.random() < 0.4
    growth = Growth(random, gradient, element, small)
    # A derivative is some three times as long as its function; few digits are soon used up.
    limit = MAX_OPS // 3 if growth.is_narrow else MAX_OPS // 2 if gradient else MAX_OPS
    growth.grow(random.randint(1, limit), steps)
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


def symbolic(program: Program, extent: int, name: str = "n") -> Program | None:
    """The program for any size of an extent: where the inputs have the extent, their types have a symbol, and result
    types are inferred anew.  None where an op needs to know the size."""
    sizes = [tuple(name if d == extent else d for d in a.shape) for a in program.arrays]
    elements = [type_of_tensor(a).element for a in program.main.arguments]
    main = Func.of("main", [tensor_type(s, e) for s, e in zip(sizes, elements, strict=True)], [])
    table: dict[Any, Any] = dict(zip(program.main.arguments, main.arguments, strict=True))
    try:
        for op in program.main.entry:
            twin = op.clone(table)
            main.entry.append(twin)
            if isinstance(twin, Op) and twin.infers:
                for result, type in zip(twin.results, twin.infer(), strict=True):
                    result.type = type
        main.update_type()
        module = Module.of([main])
        verify(module)
    except Error:
        return None
    return Program(module, program.arrays, program.gradient)

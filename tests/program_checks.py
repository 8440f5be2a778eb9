"""What holds for every generated program: the checks of the property tests, and of the mutants that they must find.

Each check takes a program (tests/programs.py) and raises AssertionError, or an error of the package, when it fails.
"""

from __future__ import annotations

import random as stdlib_random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fuzzing import cases
from hypothesis import HealthCheck, settings
from programs import Program, Random, differentiated, grow

from nablair.ir.attribute_names import TARGET
from nablair.ir.attributes import ArrayAttr, DictAttr, IntegerAttr
from nablair.ir.dialects import kernel, linalg, scf
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.elementwise import ComposedFloat
from nablair.ir.dialects.func import Func
from nablair.ir.dialects.linalg.indexing import Adding
from nablair.ir.digest import digest
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.numeric import dtype
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.target import Target
from nablair.ir.types import F64, I64, MemRefType, element_type
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager
from nablair.passes.registry import pass_names

EXACT, BOUNDED = "exact", "bounded"


def tries(count: int) -> settings:
    """The settings of a property of this many programs: making one takes its time, and some are turned away."""
    expected = HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much
    return settings(max_examples=cases(count), deadline=None, suppress_health_check=expected)


TENSOR = (
    ("inline", EXACT),
    ("canonicalize", EXACT),
    ("cse", EXACT),
    ("decompose", BOUNDED),
    ("canonicalize", EXACT),
    ("cse", EXACT),
    ("dce", EXACT),
)
KERNEL = (
    ("lower-to-kernels", BOUNDED),
    ("fuse", EXACT),
    ("dce", EXACT),
    ("plan", EXACT),
    ("split-reduce", BOUNDED),
    ("bufferize", EXACT),
)
LOOPS = (
    ("lower-to-loops{contract=false}", EXACT),
    *((name, EXACT) for name in ("collapse", "block-reduction", "tile", "pack", "vectorize", "unroll-jam", "rebase")),
    ("canonicalize", EXACT),
    ("cse", EXACT),
    ("expand-math", BOUNDED),
    ("canonicalize", EXACT),
    ("cse", EXACT),
    ("promote", EXACT),
    ("parallel", EXACT),
    ("dce", EXACT),
)
"""Passes in the order of the pipelines, and whether each keeps every bit, or only stays within the error bounds."""

REASSOCIATING = (linalg.ReduceSum, linalg.ReduceMean, linalg.Matmul, Adding)
"""Sums, whose terms may be added in another order."""


# Running.


def run(module: Module, program: Program, **settings: Any) -> list[Any]:
    """The results of @main; of the same dtypes whether it works on tensors or on buffers."""
    main = module.symbol("main")
    assert isinstance(main, Func)
    types = [a.type for a in main.arguments]
    interpreter = Interpreter(module, **settings)
    if not any(isinstance(t, MemRefType) for t in types):
        return interpreter.call("main", program.arrays)
    buffers = [as_buffer(a, t) for a, t in zip(program.arrays, types, strict=False)]
    outputs = [garbage(t) for t in types[len(buffers) :]]
    interpreter.call("main", [*buffers, *outputs])
    for given, array in zip(buffers, program.arrays, strict=True):
        assert given.tobytes() == np.ascontiguousarray(array).tobytes(), "an input was written"
    wanted = [dtype(t) for t in program.main.type.results]
    return [o.astype(bool) if w.kind == "b" else o.view(w) for o, w in zip(outputs, wanted, strict=True)]


def as_buffer(array: Any, type: Any) -> Any:
    """An input as the memory of its buffer type."""
    array = np.array(array, order="C")
    return array.astype(np.int8) if array.dtype == bool else array.view(dtype(type))


def garbage(type: Any) -> Any:
    """Memory that nobody has written, to be noticed when it shows."""
    array = np.empty(type.shape, dtype(type))
    array.view(np.uint8).fill(0x7B) if array.ndim else array.reshape(1).view(np.uint8).fill(0x7B)
    return array


def assert_same(found: Sequence[Any], expected: Sequence[Any], what: str) -> None:
    """Equal bit for bit; a NaN equals a NaN."""
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape, f"{what}: result {number} is {a.dtype}{a.shape}"
        if np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes():
            continue
        wrong = (a != b) & ~((a != a) & (b != b)) if a.dtype.kind not in "biu" else a != b
        if a.dtype.kind not in "biu":
            wrong |= (a == b) & (np.signbit(a) != np.signbit(b))
        assert not wrong.any(), f"{what}: result {number} differs at {np.argwhere(wrong)[:4].tolist()}"


def assert_bounded(found: Sequence[Any], program: Program, what: str) -> None:
    """Within the error bounds of the exact results; integers and bools equal."""
    values, errors = program.bounds
    for number, (a, value, error) in enumerate(zip(found, values, errors, strict=True)):
        a = np.asarray(a)
        assert a.shape == np.shape(value), f"{what}: result {number} has the shape {a.shape}, not {np.shape(value)}"
        if a.dtype.kind in "biu":
            assert (a == value).all(), f"{what}: result {number} differs"
            continue
        away = np.abs(a.astype(np.float64) - value)
        wrong = ~(away <= error)
        if wrong.any():
            at = tuple(np.argwhere(wrong)[0])
            raise AssertionError(
                f"{what}: result {number} at {[int(i) for i in at]} is {a[at]}, not {value[at]} +- {error[at]}"
            )


# Passes.


def check_text(module: Module, what: str) -> None:
    """Printed, parsed and printed again it is the same, in both forms, and it says the same."""
    expected = digest(module)
    for generic in (False, True):
        text = print_op(module, generic=generic)
        again = parse_module(text)
        assert print_op(again, generic=generic) == text, f"{what}: the text changes when it is parsed and printed"
        assert digest(again) == expected, f"{what}: the text says something else"


def check_passes(program: Program, random: Random, stages: Sequence[tuple[str, str]], start: str = "") -> Module:
    """Run `start`, then `stages` one by one; the module that results.

    After each the module is valid, reads back from its text and means the same."""
    module = program.module.clone()
    assert isinstance(module, Module)
    module.attributes[TARGET] = random_target(random).attribute()
    if start:
        PassManager.parse(start).run(module)
    before = run(module, program)
    assert_bounded(before, program, start or "the program")
    for text, promise in stages:
        name = text.partition("{")[0]
        if name not in pass_names():
            continue
        known = print_op(module)
        promise = EXACT if name == "lower-to-kernels" and is_exact_at_a_point(module) else promise
        PassManager.parse(text, restore=False).run(module)
        if print_op(module) == known:
            continue
        verify(module)
        check_text(module, text)
        after = run(module, program)
        if promise is EXACT and not (name == "fuse" and raises_a_reduce(module)):
            assert_same(after, before, text)
        else:
            assert_bounded(after, program, text)
        before = after
        if name == "lower-to-loops":
            schedule_kernels(module, random)
    return module


def raises_a_reduce(module: Module) -> bool:
    """Whether fusion made a sum over several axes a sum of sums, so that its order is another."""
    return any(isinstance(op, kernel.Accumulate) for op in module.walk())


def is_exact_at_a_point(module: Module) -> bool:
    """Whether every op's scalar form rounds just as its reference does: that of a composed one rounds between parts."""
    return not any(isinstance(op, ComposedFloat) or _sums_floats(op) for op in module.walk())


def _sums_floats(op: Any) -> bool:
    return isinstance(op, REASSOCIATING) and dtype(element_type(op.operands[0].type)).kind not in "biu"


def check_orders(program: Program, random: Random, start: str = "") -> None:
    """The passes that only clean up may run in any order, any number of times."""
    module = program.module.clone()
    assert isinstance(module, Module)
    if start:
        PassManager.parse(start).run(module)
    expected = run(module, program)
    order = random.choices(("canonicalize", "cse", "dce"), k=5)
    PassManager.parse(",".join(order)).run(module)
    assert_same(run(module, program), expected, f"{start}, then {order}")


def random_target(random: Random) -> Target:
    """A device with small numbers, so that small programs reach every way to fuse."""
    return Target(
        rows=random.choice((1, 4, 16)),
        local_bytes=random.choice((32, 256, 256 << 10)),
        grain=random.choice((1, 2, 4, 64)),
    )


def schedule_kernels(module: Module, random: Random) -> None:
    """Give three of four kernels a schedule: blocks, lanes and copies for axes that may have them."""
    for function in module.regions[0].block:
        if not isinstance(function, Func) or "nablair.kernel" not in function.attributes:
            continue
        if random.random() < 0.25:
            continue
        parallel: list[int] = []
        ordered: list[int] = []
        for op in function.walk():
            number = op.attributes.get("axis")
            if isinstance(number, IntegerAttr):
                (parallel if isinstance(op, scf.Forall) else ordered).append(number.value)
        entries: dict[str, Any] = {}
        if parallel and random.random() < 0.8:
            entries["vector"] = [
                (parallel[-1] if random.random() < 0.7 else random.choice(parallel), random.choice((2, 4, 8)))
            ]
        if parallel and random.random() < 0.5:
            axes = sorted(set(random.choices(parallel, k=2)))
            entries["unroll"] = [(a, random.choice((2, 3, 4))) for a in axes]
        if parallel and random.random() < 0.5:
            axes = sorted(set(random.choices([*parallel, *ordered], k=2)))
            entries["loops"] = [(a, random.choice((2, 3, 8))) for a in axes]
        function.attributes["schedule"] = DictAttr({k: _pairs(v) for k, v in entries.items()})


def _pairs(pairs: Sequence[tuple[int, int]]) -> ArrayAttr:
    return ArrayAttr([ArrayAttr([IntegerAttr(n, I64) for n in pair]) for pair in pairs])


# Derivatives.

STEP = 1e-5


def check_derivative(seed: int) -> bool:
    """The gradient of a grown float64 function, along one direction, against differences; False where the function has
    a corner there, so that there is nothing to compare."""
    random = stdlib_random.Random(seed)
    function = grow(random, True, F64, differentiate=False)
    noise = np.random.default_rng(seed)
    floats = [i for i, a in enumerate(function.arrays) if a.dtype.kind == "f"]
    # Corners lie at round numbers, so the point does not.
    point = [a + noise.uniform(-0.04, 0.04, a.shape) if i in floats else a for i, a in enumerate(function.arrays)]
    ways = [noise.uniform(-1.0, 1.0, a.shape) if i in floats else None for i, a in enumerate(point)]
    interpreter = Interpreter(function.module)
    results = interpreter.call("main", point)
    seeds = [noise.uniform(-1.0, 1.0, r.shape) for r in results]

    def along(t: float) -> float:
        moved = [a if w is None else a + t * w for a, w in zip(point, ways, strict=True)]
        values = interpreter.call("main", moved)
        return float(sum(np.sum(s * v) for s, v in zip(seeds, values, strict=True)))

    here, ahead, behind = along(0.0), along(STEP), along(-STEP)
    slope = (ahead - behind) / (2 * STEP)
    bend = (ahead - here) / STEP - (here - behind) / STEP
    wide = (along(2 * STEP) - along(-2 * STEP)) / (4 * STEP)
    scale = 1.0 + abs(slope)
    if not (abs(bend) <= 0.02 * scale and abs(wide - slope) <= 1e-5 * scale):
        return False
    gradient = differentiated(function, random, floats)
    verify(gradient.module)
    found = Interpreter(gradient.module).call("main", [*point, *seeds])[len(results) :]
    parts = [float(np.sum(w * g)) for w, g in zip([ways[i] for i in floats], found, strict=True)]
    tolerance = 1e-5 * (scale + sum(map(abs, parts)))
    assert abs(sum(parts) - slope) <= tolerance, f"the gradient says {sum(parts)}, differences say {slope}"
    return True


def useful_programs(seeds: Sequence[int], grower: Callable[[Random], Program] = grow) -> list[Program]:
    """The programs of these seeds whose error bounds say something."""
    return [p for p in (grower(stdlib_random.Random(seed)) for seed in seeds) if p.is_useful]

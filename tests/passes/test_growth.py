"""How the work of the passes grows with a program, in calls of Python functions: a count that no other load changes.

The programs are those of `benchmarks/bench_growth.py`, which measures seconds at larger sizes.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from fuzzing import FACTOR

import nablair
from nablair import autograd as ag
from nablair.ir.attribute_names import TARGET
from nablair.ir.operations import Operation
from nablair.ir.parser import parse_module
from nablair.ir.target import DEFAULTS
from nablair.passes.manager import PassManager
from nablair.passes.pipelines import PIPELINES

sys.path.append(str(Path(nablair.__file__).resolve().parent / "benchmarks"))
FAMILIES: dict[str, Any] = importlib.import_module("bench_growth").FAMILIES

FEW = 0.02
"""The share of all calls below which the growth of a function says nothing."""


def module_of(family: str, size: int, target: str) -> Operation:
    """The traced program, for a kind of device."""
    function, arrays = FAMILIES[family][0](size)
    module = parse_module(ag.jit(function).lower(*map(ag.asarray, arrays)).as_text())
    module.attributes[TARGET] = DEFAULTS[target].attribute()
    return module


def calls(family: str, size: int, target: str) -> Counter[CodeType]:
    """How often each function is called when a program goes through the passes of a target."""
    module = module_of(family, size, target)
    manager = PassManager.parse(f"loop-{target}", verify_each=False)
    counts: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            counts[frame.f_code] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        manager.run(module)
    finally:
        sys.setprofile(before)
    return counts


# Sizes from which what one launch may hold no longer changes how a program is cut into launches.
CASES = [
    ("launches of layers", "cpu", 24),
    ("launches of layers", "cuda", 60),
    ("softmaxes", "cpu", 6),
    ("softmaxes", "opencl", 8),
    ("softmaxes", "cuda", 8),
    ("doublings", "cpu", 20),
    ("doublings", "cuda", 20),
]
LONG = [
    ("mixed ops", "cpu", 400),
    ("mixed ops", "cuda", 400),
    ("layer norms, gradients", "cpu", 16),
    ("layer norms, gradients", "opencl", 24),
    ("readers of one value", "cpu", 160),
    ("readers of one value", "cuda", 160),
]


@pytest.mark.parametrize(
    ("family", "target", "size"), [*CASES, *(LONG if FACTOR > 1 else ())], ids=lambda v: str(v).replace(" ", "-")
)
def test_twice_the_program_is_twice_the_work(family: str, target: str, size: int) -> None:
    calls(family, 2, target)  # modules load, and what is kept by class or type is made
    small, large = calls(family, size, target), calls(family, 2 * size, target)
    exponent = math.log2(large.total() / small.total())
    assert exponent < 1.2, f"{small.total()} calls become {large.total()}: exponent {exponent:.2f}"
    for code, count in large.items():
        if count > FEW * large.total():
            growth = math.log2(count / max(1, small[code]))
            assert growth < 1.5, f"{code.co_qualname}: {small[code]} calls become {count}"


@pytest.mark.parametrize("family", ["mixed ops", "softmaxes", "layer norms, gradients", "launches of layers"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_fusion_makes_no_program_larger(family: str, target: str) -> None:
    """Values that many need are not computed again for each of them, however they are shared."""
    module = module_of(family, {"mixed ops": 250, "softmaxes": 24, "launches of layers": 48}.get(family, 8), target)
    before_fuse, _, _ = PIPELINES["kernel"].partition(",fuse")
    PassManager.parse(before_fuse, verify_each=False).run(module)
    before = len(list(module.walk()))
    PassManager.parse("fuse", verify_each=False).run(module)
    assert len(list(module.walk())) <= before

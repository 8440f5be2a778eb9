"""The clean-up passes keep what random programs mean, leave valid IR, and find nothing more to do a second time."""

from __future__ import annotations

import pytest
from scalar_programs import module, results

from nablair.passes.manager import PassManager

SEEDS = range(25)
PIPELINES = ("canonicalize", "cse", "dce", "licm", "inline", "inline,canonicalize,licm,cse,canonicalize,dce")


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("seed", SEEDS)
def test_meaning_is_kept(pipeline: str, seed: int):
    op = module(seed)
    expected = [results(op, k) for k in range(3)]
    PassManager.parse(pipeline).run(op)
    assert [results(op, k) for k in range(3)] == expected


@pytest.mark.parametrize("name", ["canonicalize", "cse", "dce", "licm"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_run_finds_nothing(name: str, seed: int):
    op = module(seed)
    PassManager.parse(name).run(op)
    once = str(op)
    PassManager.parse(name).run(op)
    assert str(op) == once


def test_passes_do_something():
    op = module(3, 100)
    before = sum(1 for _ in op.walk())
    counts = {}
    for name in ("inline", "licm", "canonicalize", "cse", "dce"):
        manager = PassManager.parse(name)
        manager.run(op)
        counts[name] = sum(next(manager.all_passes()).statistics.values())
    assert all(counts[name] for name in ("inline", "licm", "canonicalize", "cse"))
    assert sum(1 for _ in op.walk()) < before

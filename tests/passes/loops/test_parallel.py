"""parallel: tasks on worker threads give the bits that one thread gives."""

from __future__ import annotations

from typing import Any

import kernel_programs as programs
import numpy as np
import pytest
from loop_stages import lowered, parsed, random

from nablair.ir.dialects import scf
from nablair.ir.dialects.func import Func
from nablair.passes.loops.parallel import WORKER
from nablair.passes.pipelines import PIPELINES
from nablair.runtime.devices import get_device

SHAPES = {
    "chain": (programs.chain(256, 300), [(256, 300), (300,), (256, 300)]),
    "softmax": (programs.softmax(300, 200), [(300, 200)]),
    "columns": (programs.softmax(300, 200, axis=0), [(300, 200)]),
    "squares": (programs.squares(256, 520), [(256, 520), (256, 520)]),
    "sum": (programs.reduced("reduce_sum", 512, 300, 0, 1), [(512, 300)]),
    "product": (programs.matmul(200, 130, 420, epilogue=True), [(200, 420), (420, 130), (130,)]),
    "symbolic": (programs.matmul("m", "n", "k"), [(200, 420), (420, 130), (130,)]),
}


def compiled(text: str, pipeline: str) -> tuple[Any, int]:
    """Native code of a program, and how many loops over tasks it has."""
    cpu: Any = get_device("cpu")
    module = parsed(text, cpu.target)
    function = module.symbol("main")
    assert isinstance(function, Func)
    loops = lowered(module, pipeline)
    tasks = sum(WORKER in op.attributes for op in loops.walk() if isinstance(op, scf.Forall))
    return cpu.build(loops, "main", function.type.inputs, function.type.results), tasks


@pytest.mark.parametrize("name", SHAPES)
def test_threads_change_no_bit(name: str) -> None:
    text, shapes = SHAPES[name]
    arrays = [random(*shape, seed=i) for i, shape in enumerate(shapes)]
    whole = PIPELINES["loop-cpu"]
    alone, none = compiled(text, whole.removesuffix(",parallel"))
    shared, tasks = compiled(text, whole)
    assert none == 0 and tasks > 0
    expected = alone.run(arrays)
    for _ in range(3):
        for found, wanted in zip(shared.run(arrays), expected, strict=True):
            assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()


def test_small_kernels_stay_on_one_thread() -> None:
    assert compiled(programs.chain(4, 30), PIPELINES["loop-cpu"])[1] == 0

"""vectorize and unroll-jam: which loops they take, what stays and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nablair.ir.dialects import memref, scf, vector
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.passes.manager import PassManager

KERNEL = "attributes {nablair.kernel, schedule = {vector = [[0, 4]], unroll = [[0, 2]]}}"


def run(text: str, pipeline: str) -> tuple[Any, dict[str, int]]:
    """The module after a pipeline, and what the passes counted."""
    module = parse_module(text)
    manager = PassManager.parse(pipeline)
    manager.run(module)
    counted = {k: v for p in manager.all_passes() for k, v in p.statistics.items()}
    return module, counted


def loop(body: str, arguments: str, extent: str = "10") -> str:
    points = f"scf.forall (%i) in ({extent}) {{\n{body}\n}} {{axis = 0 : i64}}"
    return f"func.func @main({arguments}) {KERNEL} {{\n{points}\nreturn\n}}"


def has(module: Any, *classes: type) -> bool:
    return any(isinstance(op, classes) for op in module.walk())


@pytest.mark.parametrize(
    ("body", "arguments", "reason"),
    [
        (
            "%0 = memref.load %x[%i] : memref<10xf32>\nmemref.store %0, %y[] : memref<f32>",
            "%x: memref<10xf32>, %y: memref<f32>",
            "all lanes store to one place",
        ),
        (
            "%b = memref.alloca() : memref<10xf32>\nmemref.copy %x, %b : memref<10xf32> to memref<10xf32>",
            "%x: memref<10xf32>, %y: memref<f32>",
            "memory is allocated inside",
        ),
        (
            "%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n"
            "scf.for %k = %c0 to %i step %c1 {\nmemref.store %v, %x[%i] : memref<10xf32>\n}",
            "%x: memref<10xf32>, %v: f32",
            "the bounds of an inner loop differ from lane to lane",
        ),
    ],
)
def test_what_stays_scalar_says_why(body: str, arguments: str, reason: str) -> None:
    module, counted = run(loop(body, arguments), "vectorize")
    assert counted == {f"not vectorized: {reason}": 1}
    assert not has(module, vector.Load, vector.Store)


def test_a_kernel_without_a_schedule_stays() -> None:
    text = loop("memref.store %v, %x[%i] : memref<10xf32>", "%x: memref<10xf32>, %v: f32").replace(
        ", schedule = {vector = [[0, 4]], unroll = [[0, 2]]}", ""
    )
    module, counted = run(text, "vectorize,unroll-jam")
    assert counted == {}
    assert str(module) == str(parse_module(text))


@pytest.mark.parametrize("place", ["%i * 2", "9 - %i"])
def test_strides_gather(place: str) -> None:
    factor = "%c2 = arith.constant 2 : index\n%p = arith.muli %i, %c2 : index"
    if place == "9 - %i":
        factor = "%c9 = arith.constant 9 : index\n%p = arith.subi %c9, %i : index"
    body = f"{factor}\n%0 = memref.load %x[%p] : memref<20xf32>\nmemref.store %0, %y[%i] : memref<10xf32>"
    module, _ = run(loop(body, "%x: memref<20xf32>, %y: memref<10xf32>"), "vectorize,canonicalize")
    assert has(module, vector.Gather)
    x, y = np.arange(20, dtype=np.float32), np.zeros(10, np.float32)
    Interpreter(module).call("main", [x, y])
    assert y.tolist() == (x[:20:2] if place == "%i * 2" else x[9::-1]).tolist()


def test_an_index_as_a_value() -> None:
    body = "%0 = arith.index_cast %i : index to i64\nmemref.store %0, %y[%i] : memref<10xi64>"
    module, _ = run(loop(body, "%y: memref<10xi64>"), "vectorize,unroll-jam,canonicalize")
    y = np.zeros(10, np.int64)
    Interpreter(module).call("main", [y])
    assert y.tolist() == list(range(10))


def test_a_guarded_load_of_one_place_is_masked_too() -> None:
    """No lane may load where none has passed the test."""
    body = (
        "%c5 = arith.constant 5 : index\n%c9 = arith.constant 9 : index\n%in = arith.cmpi sgt, %i, %c9 : index\n"
        "%f = arith.constant 0.0 : f32\n%0 = scf.if %in -> (f32) {\n%1 = memref.load %x[%c5] : memref<5xf32>\n"
        "scf.yield %1 : f32\n} else {\nscf.yield %f : f32\n}\nmemref.store %0, %y[%i] : memref<10xf32>"
    )
    module, counted = run(loop(body, "%x: memref<5xf32>, %y: memref<10xf32>"), "vectorize,canonicalize")
    assert counted["vectorized"] == 1
    y = np.ones(10, np.float32)
    Interpreter(module).call("main", [np.ones(5, np.float32), y])
    assert not y.any()


def test_copies_stand_whole_one_behind_the_other() -> None:
    """The order of copies is a contract: it keeps the accumulators of a tile in registers."""
    body = (
        "%0 = memref.load %x[%i] : memref<10xf32>\n%1 = arith.mulf %0, %0 : f32\n"
        "memref.store %1, %y[%i] : memref<10xf32>"
    )
    text = loop(body, "%x: memref<10xf32>, %y: memref<10xf32>").replace("vector = [[0, 4]], ", "")
    module, _ = run(text, "unroll-jam")
    (inner,) = [op for op in module.walk() if isinstance(op, scf.Forall)]
    names = [
        op.name for op in inner.body.block if isinstance(op, memref.Load | memref.Store) or op.name == "arith.mulf"
    ]
    assert names == ["memref.load", "arith.mulf", "memref.store"] * 2

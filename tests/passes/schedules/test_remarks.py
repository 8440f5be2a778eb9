"""Schedules: what has no meaning is an error, what cannot be done is said, and leaves nothing behind."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import kernel_programs as kernels
import numpy as np
import pytest
from fuzzing import cases
from loop_stages import SMALL, lowered, on_buffers, parsed, random
from programs import grow

from nablair.ir.attribute_names import TARGET
from nablair.ir.diagnostics import Error, Remark, VerifyError
from nablair.ir.dialects import kernel
from nablair.ir.dialects.kernel.schedule_verifier import KEYS
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.target import DEFAULTS, Target
from nablair.ir.verifier import verify
from nablair.passes.instrument import Remarks
from nablair.passes.manager import Instrumentation, Pass, PassManager
from nablair.passes.schedules.schedule import Packing, Schedule

PROGRAM = """func.func @main(%x: tensor<4x8xf32>, %n: f32) -> tensor<4xf32> {
  %y = kernel.launch (%i) in (4) ins(%x : tensor<4x8xf32>, %n : f32) outs(%y : tensor<4xf32>) schedule SCHEDULE {
    %s = kernel.reduce (%k) in (8) by arith.addf {
      %0 = kernel.load %x[%i, %k]
      kernel.yield %0
    }
    kernel.store %s, %y[%i]
  }
  return %y : tensor<4xf32>
}"""


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        ("{vectors = [[0, 4]]}", "unknown key 'vectors'; there are chain, loops, map, mma, pack"),
        ("{vector = [[2, 4]]}", "'vector' names the axis 2; the kernel has the axes 0 to 1"),
        ("{unroll = [[-1, 4]]}", "'unroll' names the axis -1"),
        ("{split = [[1, 0]]}", "'split' gives the axis 1 the number 0; the least is 1"),
        ("{chain = [[1, -8]]}", "'chain' gives the axis 1 the number -8"),
        ("{vector = [[0, 4], [0, 8]]}", "'vector' names the axis 0 twice"),
        ("{loops = [[0, 4], 3]}", "'loops' has the entry 3"),
        ("{loops = 4}", "'loops' is 4"),
        ('{loops = [[0, 4]], map = ["worker", ""]}', "'map' has 2 entries for 1 loops"),
        ('{loops = [[0, 4]], map = ["workers"]}', "'map' has the unknown name \\\"workers\\\""),
        ("{pack = [{at = 0}]}", "'pack' names no operand"),
        ("{pack = [{operand = 1, at = 0}]}", "'pack' names the operand 1, which is not an array among the 2 ins"),
        ("{pack = [{operand = 7, at = 0}]}", "'pack' names the operand 7"),
        ("{pack = [{operand = 0, at = 1}]}", "'pack' stands inside 1 block loops, of which there are 0"),
        ("{pack = [{operand = 0, at = 0, width = 3}]}", "'pack' has the unknown key 'width'"),
        ("{pack = [{operand = 0, at = 0, stages = 0}]}", "'pack' has stages = 0"),
        ('{space = [[0, "out"]]}', "'space' names the local 0, of which there are 0"),
        ("{stream = 3}", "'stream' is 3"),
        ("{mma = [16, 8]}", "'mma' is"),
    ],
)
def test_what_has_no_meaning_is_an_error(schedule: str, message: str) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(parse_module(PROGRAM.replace("SCHEDULE", schedule)))
    assert message.replace("\\", "") in str(caught.value).replace(" : i64", "")


def test_schedules_that_have_a_meaning_are_kept() -> None:
    for schedule in (
        '{loops = [[0, 2], [1, 4], [0, 1]], map = ["", "block.x"], pack = [{operand = 0, at = 3, pad = 4}]}',
        "{chain = [[1, 4]], split = [[1, 4]], stream = true, unroll = [[0, 1]], vector = [[0, 99]], mma = [16, 8, 16]}",
    ):
        verify(parse_module(PROGRAM.replace("SCHEDULE", schedule)))


class Heard(Instrumentation):
    """The remarks of a pipeline."""

    def __init__(self) -> None:
        self.remarks: list[Remark] = []

    def remark(self, pass_: Pass, remark: Remark) -> None:
        self.remarks.append(remark)


PIPELINE = "plan,split-reduce,bufferize,lower-to-loops{contract=false},apply-schedule"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Schedule(split=((0, 4),)), "pass 'split-reduce' did not apply split = [[0, 4]]: no accumulate"),
        (Schedule(split=((1, 16),)), "split = [[1, 16]]: its 10 elements are not one for each lane"),
        (Schedule(chain=((0, 4),)), "chain = [[0, 4]]: no accumulate"),
        (Schedule(loops=((0, 2),), map=("worker",)), 'loops = [[0, 2]], map = ["worker"]: the axis is not the first'),
        (Schedule(vector=((1, 4),)), "pass 'vectorize' did not apply vector = [[1, 4]]: there is no loop"),
        (Schedule(unroll=((1, 4),)), "pass 'unroll-jam' did not apply unroll = [[1, 4]]: there is no loop"),
        (Schedule(loops=((1, 16),)), "loops = [[1, 16]]: "),
        (
            Schedule(loops=((1, 16),), pack=(Packing(0, 1),)),
            "pack = [{at = 1, operand = 0}]: there are not 1 block loops",
        ),
        (Schedule(stream=True), "did not apply stream: no pass does it yet"),
        (Schedule(loops=((0, 2), (0, 1)), map=("", "thread.x")), "did not apply map: only the first block loop"),
    ],
)
def test_what_cannot_be_done_is_said(schedule: Schedule, message: str) -> None:
    module = lowered(parsed(kernels.reduced("reduce_sum", 3, 10, 1), SMALL), "kernel")
    launch = next(op for op in module.walk() if isinstance(op, kernel.Launch))
    launch.properties["schedule"] = schedule.attribute()
    heard = Heard()
    x = random(3, 10)
    (expected,) = Interpreter(module).call("main", [x])
    PassManager.parse(PIPELINE, instrumentations=[heard], warn=False).run(module)
    assert any(message in r.message.replace(" : i64", "") for r in heard.remarks), [r.message for r in heard.remarks]
    assert {r.severity for r in heard.remarks} == {"warning"}
    (found,) = on_buffers(module, [x], [(3,)])
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_warnings_reach_those_who_ask_for_nothing() -> None:
    module = parse_module(PROGRAM.replace("SCHEDULE", "{split = [[1, 64]]}"))
    with pytest.warns(UserWarning, match="did not apply split"):
        PassManager.parse("plan,split-reduce").run(module.clone())
    shown = io.StringIO()
    PassManager.parse("plan,split-reduce", instrumentations=[Remarks(False, stream=shown)], warn=False).run(module)
    assert shown.getvalue().startswith("warning: pass 'split-reduce' did not apply split = [[1, 64]]") or (
        ": warning: pass 'split-reduce'" in shown.getvalue()
    )


def drawn(rng: Random, axes: int, ins: int) -> Schedule:
    """Any schedule that has a meaning."""

    def pairs(sizes: list[int], most: int = 3) -> Any:
        chosen = rng.sample(range(axes), rng.randint(0, min(most, axes)))
        return tuple((axis, rng.choice(sizes)) for axis in chosen)

    loops = tuple((rng.randrange(axes), rng.choice([1, 2, 3, 4, 8])) for _ in range(rng.randint(0, 3)))
    packs = tuple(
        Packing(rng.randrange(ins), rng.randint(0, len(loops)), panel=rng.choice([0, 4]), pad=rng.choice([0, 4]))
        for _ in range(rng.randint(0, 2) if ins else 0)
    )
    runners = ("worker",) if loops and rng.random() < 0.3 else ()
    sizes = [1, 2, 4, 8]
    return Schedule(loops, runners, pairs(sizes), pairs([1, 2, 3, 8]), pairs(sizes), pairs([1, 2, 3, 4]), packs)


TEXTS = [
    kernels.squares(9, 7),
    kernels.reduced("reduce_sum", 11, 6, 0),
    kernels.reduced("reduce_sum", 5, 70, 1),
    kernels.softmax(5, 9, 1),
    kernels.softmax(5, 9, 0),
    kernels.matmul(7, 9, 5),
]


def test_drawn_schedules_are_done_or_said() -> None:
    """Whatever a schedule asks, the program that comes out is valid and means what it meant; and to the bit, from the
    place on where the order of sums is decided."""
    for seed in range(cases(30)):
        rng = Random(seed)
        module = lowered(parsed(rng.choice(TEXTS), SMALL), "kernel")
        launches = [op for op in module.walk() if isinstance(op, kernel.Launch)]
        for launch in launches:
            axes = sum(o.rank for o in launch.walk() if isinstance(o, kernel.Axes))
            launch.properties["schedule"] = drawn(rng, axes, len(launch.ins)).attribute()
        verify(module)
        function: Any = module.symbol("main")
        arrays = [random(*type.shape, seed=i) for i, type in enumerate(function.type.inputs)]
        expected = Interpreter(module).call("main", arrays)
        PassManager.parse("plan,split-reduce", warn=False).run(module)
        split = Interpreter(module).call("main", arrays)
        for one, other in zip(split, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        PassManager.parse("bufferize,lower-to-loops{contract=false},apply-schedule", warn=False).run(module)
        bits = on_buffers(module, arrays, [s.shape for s in split])
        for one, other in zip(bits, split, strict=True):
            assert one.tobytes() == other.tobytes(), (seed, launches)


def test_planned_schedules_are_followed() -> None:
    """What is chosen can be done, but for a few forms: accumulates at computed places, operands read twice."""
    said: list[str] = []
    count = cases(40)
    for seed in range(count):
        program = grow(Random(seed))
        for pipeline, target in (("loop-cpu", Target()), ("loop-opencl", DEFAULTS["opencl"])):
            module = program.module.clone()
            module.attributes[TARGET] = target.attribute()
            heard = Heard()
            PassManager.parse(pipeline, instrumentations=[heard], restore=False, verify_each=False).run(module)
            assert all(r.severity == "remark" for r in heard.remarks)
            said += [r.message for r in heard.remarks]
    assert len(said) <= count // 10, said


def test_schedules_of_functions_are_checked_where_they_are_read() -> None:
    module = parse_module(
        "func.func private @k(%x: memref<4xf32>) attributes {nablair.kernel, schedule = {vectors = [[0, 4]]}} {\n"
        "  return\n}"
    )
    with pytest.raises(Error, match="unknown key 'vectors'"):
        PassManager.parse("vectorize").run(module)
    assert "vector" in KEYS

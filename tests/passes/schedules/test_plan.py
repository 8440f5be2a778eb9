"""plan: schedules follow from axes, accesses and the target's numbers."""

from __future__ import annotations

import kernel_programs as programs
import pytest
from loop_stages import lowered, parsed

from nablair.ir.dialects.kernel import Launch
from nablair.ir.target import Target
from nablair.passes.schedules.schedule import Packing, Schedule

WIDE = Target(vector_bits=512, vector_registers=32)


def schedule(text: str, target: Target = WIDE) -> Schedule:
    """The schedule of the first kernel of a program."""
    module = lowered(parsed(text, target), "kernel,plan")
    return Schedule.of(next(op for op in module.walk() if isinstance(op, Launch)))


@pytest.mark.parametrize(("bits", "lanes"), [(512, 16), (256, 8), (128, 4)])
def test_lanes_fill_the_vectors_of_the_target(bits: int, lanes: int) -> None:
    assert schedule(programs.chain(64, 64), Target(vector_bits=bits)).vector == ((1, lanes),)


def test_devices_that_are_no_cpu_get_no_schedule() -> None:
    assert schedule(programs.chain(64, 64), Target(kind="cuda")) == Schedule()


def test_rows_are_split_and_swept() -> None:
    found = schedule(programs.softmax(32, 512))
    assert found.split == ((1, 64), (3, 64))
    assert [axis for axis, _ in found.vector] == [1, 2, 3, 4]


def test_columns_are_vectorized_across() -> None:
    found = schedule(programs.reduced("reduce_sum", 64, 512, 0))
    assert found.split == ()
    assert found.vector == ((0, 16),)


@pytest.mark.parametrize(("bits", "rows", "columns"), [(512, 14, 32), (256, 6, 16)])
def test_products_get_a_register_tile(bits: int, rows: int, columns: int) -> None:
    registers = 32 if bits == 512 else 16
    target = Target(vector_bits=bits, vector_registers=registers)
    found = schedule(programs.matmul(512, 512, 512), target)
    assert found.loops[1:] == ((0, rows), (1, columns))
    # Accumulators, the vectors of one factor and a broadcast stay in registers.
    vectors = columns // (bits // 32)
    assert rows * vectors + vectors + 1 <= registers
    assert found.pack == (Packing(1, 1, panel=columns), Packing(0, 2, pad=16))


def test_small_products_are_not_blocked_or_packed() -> None:
    found = schedule(programs.matmul(64, 64, 64))
    assert found.loops == ((0, 14), (1, 32))
    assert found.pack == ()


def test_a_transposed_second_factor_is_packed() -> None:
    assert schedule(programs.matmul(64, 64, 64, "NT")).pack == (Packing(1, 0, panel=32),)


def test_large_folds_are_cut_for_workers() -> None:
    found = schedule(programs.reduced("reduce_sum", 4096, 1024, 0, 1))
    assert found.loops == ((0, 128),)
    assert found.map == ("worker",)
    assert schedule(programs.reduced("reduce_sum", 64, 64, 0, 1)).map == ()


def test_schedules_survive_their_text() -> None:
    full = Schedule(
        loops=((2, 256), (0, 14)),
        map=("worker", ""),
        split=((1, 64),),
        vector=((1, 16),),
        unroll=((1, 2),),
        pack=(Packing(1, 1, panel=32), Packing(0, 2, pad=16, space="workgroup", stages=2)),
        space=((0, "out"),),
        stream=True,
        mma=(16, 8, 16),
    )
    assert Schedule.from_attribute(full.attribute()) == full
    assert Schedule.from_attribute(Schedule().attribute()) == Schedule()

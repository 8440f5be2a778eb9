"""How accesses move through memory, against the subscripts themselves at neighbouring points."""

import random

import numpy as np
import pytest
from fuzzing import cases

from nablair.ir.dialects import kernel
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify
from nablair.passes.analysis.launch import LaunchAnalysis, Movement, accumulates_along, bare, movement, widest_bits

SIZE = 6


def drawn(rng: random.Random) -> tuple[kernel.Launch, list[list[int]]]:
    """A launch over three axes that loads at drawn subscripts, and their coefficients: three axes and a constant."""
    rank = rng.randrange(1, 4)
    rows = [[rng.choice([0, 0, 0, 1, 1, -1, 2]) for _ in range(3)] + [rng.randrange(-2, 3)] for _ in range(rank)]
    axes = ["%i", "%j", "%k"]
    texts = [" + ".join([f"{n} * {a}" for n, a in zip(row, axes, strict=False)] + [str(row[3])]) for row in rows]
    shape = "x".join(["4"] * rank)
    module = parse_module(f"""
        func.func @f(%x: tensor<{shape}xf32>) -> tensor<{SIZE}x{SIZE}x{SIZE}xf32> {{
          %r = kernel.launch (%i, %j, %k) in ({SIZE}, {SIZE}, {SIZE}) ins(%x : tensor<{shape}xf32>)
              outs(%y : tensor<{SIZE}x{SIZE}x{SIZE}xf32>) {{
            %v = kernel.load %x[{", ".join(texts)}] else 0.0
            kernel.store %v, %y[%i, %j, %k]
          }}
          return %r : tensor<{SIZE}x{SIZE}x{SIZE}xf32>
        }}
    """)
    verify(module)
    (launch,) = [op for op in module.walk() if isinstance(op, kernel.Launch)]
    return launch, rows


def test_movement_is_what_the_subscripts_do_from_one_point_to_the_next() -> None:
    seen: set[Movement] = set()
    for seed in range(cases(150)):
        launch, rows = drawn(random.Random(seed))
        analysis = LaunchAnalysis.of(launch)
        (load,) = [a for a in analysis.accesses if isinstance(a, kernel.Load)]
        assert [axis.size for axis in analysis.domain] == [SIZE] * 3
        for axis in analysis.domain:
            step = np.array([row[axis.number] for row in rows])
            found = movement(load, axis.value)
            seen.add(found)
            if not step.any():
                assert found is Movement.INVARIANT
            elif step[-1] == 1 and not step[:-1].any():
                assert found is Movement.UNIT_STRIDE
            else:
                assert found is Movement.STRIDED
        plain = all(sorted(row[:3]) == [0, 0, 1] and row[3] == 0 for row in rows)
        assert (bare(load) is not None) == plain
        if plain:
            assert bare(load) == [analysis.domain[row.index(1)].value for row in rows]
    assert seen == set(Movement)


def test_computed_indices_move_with_what_they_are_computed_from() -> None:
    module = parse_module("""
        func.func @f(%x: tensor<4x4xf32>, %n: index) -> tensor<4x4xf32> {
          %r = kernel.launch (%i, %j) in (4, 4) ins(%x : tensor<4x4xf32>, %m = %n : index)
              outs(%y : tensor<4x4xf32>) {
            %p = arith.muli %i, %m : index
            %q = arith.remui %j, %m : index
            %v = kernel.load %x[%p, %j] else 0.0
            %w = kernel.load %x[%i, %q] else 0.0
            %s = arith.addf %v, %w : f32
            kernel.store %s, %y[%i, %j]
          }
          return %r : tensor<4x4xf32>
        }
    """)
    (launch,) = [op for op in module.walk() if isinstance(op, kernel.Launch)]
    analysis = LaunchAnalysis.of(launch)
    first, second, store = analysis.accesses
    i, j = (axis.value for axis in analysis.domain)
    assert [movement(a, i) for a in (first, second, store)] == [Movement.STRIDED] * 3
    assert [movement(a, j) for a in (first, second, store)] == [
        Movement.UNIT_STRIDE,
        Movement.STRIDED,
        Movement.UNIT_STRIDE,
    ]


@pytest.mark.parametrize(("place", "along"), [("%i", "j"), ("%j", "i"), ("0", "ij")])
def test_an_accumulate_adds_along_the_axes_that_its_subscripts_leave_out(place: str, along: str) -> None:
    module = parse_module(f"""
        func.func @f(%x: tensor<4x4xf64>) -> tensor<4xf64> {{
          %r = kernel.launch (%i, %j) in (4, 4) ins(%x : tensor<4x4xf64>) outs(%y : tensor<4xf64>) {{
            %v = kernel.load %x[%i, %j]
            kernel.accumulate %v, %y[{place}] by arith.addf
          }}
          return %r : tensor<4xf64>
        }}
    """)
    (launch,) = [op for op in module.walk() if isinstance(op, kernel.Launch)]
    analysis = LaunchAnalysis.of(launch)
    assert [axis.value.name for axis in analysis.accumulated] == list(along)
    (op,) = [a for a in analysis.accesses if isinstance(a, kernel.Accumulate)]
    assert [accumulates_along(op, axis.value) for axis in analysis.domain] == ["i" in along, "j" in along]
    assert widest_bits(launch) == 64

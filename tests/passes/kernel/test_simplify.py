"""Simplification of launches: what has effects, or may have some, is neither merged nor moved nor dropped."""

from __future__ import annotations

from random import Random
from typing import ClassVar

import pytest
from fuzzing import cases

from nablair.ir.definition import FLOAT, PURE, Op, operand, result
from nablair.ir.diagnostics import VerifyError
from nablair.ir.dialects import kernel
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify
from nablair.passes.kernel.simplify import simplify_launch


class Draw(Op):
    """Says nothing of its effects, so that each may give another number."""

    name = "simplifytest.draw"
    x = operand(FLOAT)
    y = result(FLOAT)
    assembly = "$x attr-dict `:` type($y)"


class Same(Op):
    """Has no effects."""

    name = "simplifytest.same"
    traits: ClassVar = frozenset({PURE})
    x = operand(FLOAT)
    y = result(FLOAT)
    assembly = "$x attr-dict `:` type($y)"


def text(random: Random) -> str:
    """A launch with ops that draw and ops that do not, used or not, in loops or not."""
    lines: list[str] = []
    known = ["%v"]

    def ops(indent: str, local: list[str]) -> None:
        for _ in range(random.randint(1, 5)):
            name = f"%t{len(lines)}"
            lines.append(
                f"{indent}{name} = simplifytest.{random.choice(['draw', 'same'])} {random.choice(local)} : f32"
            )
            local.append(name)

    ops("    ", known)
    for _ in range(random.randint(0, 2)):
        inner = [*known]
        lines.append("    kernel.sweep (%j) in (4) {")
        ops("      ", inner)
        if random.random() < 0.7:
            lines.append(f"      kernel.store {random.choice(inner)}, %z[%i, %j]")
        lines.append("    }")
    lines.append(f"    kernel.store {random.choice(known)}, %y[%i]")
    body = "\n".join(lines)
    return f"""func.func @main(%x: tensor<3xf32>, %w: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3x4xf32>) {{
  %y, %z = kernel.launch (%i) in (3) ins(%x : tensor<3xf32>) outs(%y : tensor<3xf32>, %z = %w : tensor<3x4xf32>) {{
    %v = kernel.load %x[%i]
{body}
  }}
  return %y, %z : tensor<3xf32>, tensor<3x4xf32>
}}"""


def homes(launch: kernel.Launch) -> list[list[str]]:
    """The names of the ops around each op that draws, in order."""
    return [[around.name for around in op.ancestors()] for op in launch.walk() if isinstance(op, Draw)]


@pytest.mark.parametrize("seed", range(cases(30)))
def test_ops_that_may_have_effects_stay(seed: int) -> None:
    module = parse_module(text(Random(seed)))
    (launch,) = (op for op in module.walk() if isinstance(op, kernel.Launch))
    before = homes(launch)
    if before:
        # No pass gets to see such a launch from the front-end or from text.
        with pytest.raises(VerifyError, match="may have effects, so it cannot stand in a launch"):
            verify(module)
    simplify_launch(launch)
    assert homes(launch) == before


def test_the_others_are_merged_moved_and_dropped() -> None:
    module = parse_module(
        """func.func @main(%x: tensor<3xf32>) -> tensor<3x4xf32> {
  %z = kernel.launch (%i) in (3) ins(%x : tensor<3xf32>) outs(%z : tensor<3x4xf32>) {
    kernel.sweep (%j) in (4) {
      %v = kernel.load %x[%i]
      %a = simplifytest.same %v : f32
      %b = simplifytest.same %v : f32
      %c = simplifytest.same %b : f32
      %d = simplifytest.same %a : f32
      kernel.store %d, %z[%i, %j]
    }
  }
  return %z : tensor<3x4xf32>
}"""
    )
    (launch,) = (op for op in module.walk() if isinstance(op, kernel.Launch))
    simplify_launch(launch)
    same = [op for op in launch.walk() if isinstance(op, Same)]
    assert len(same) == 2 and all(op.parent_op is launch for op in same)

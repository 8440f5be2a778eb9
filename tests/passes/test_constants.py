"""Numbers that passes have for themselves: each says what it is, and why it is no number of a target."""

from __future__ import annotations

import ast
from pathlib import Path

import nablair.passes

ROOT = Path(nablair.passes.__file__).parent
MATHEMATICS = "math_expansions"
"""Where numbers are those of functions, with their sources beside them."""


def is_number(node: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    return all(
        isinstance(n, ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Tuple | ast.expr_context)
        or (isinstance(n, ast.Constant) and isinstance(n.value, int | float) and not isinstance(n.value, bool))
        for n in ast.walk(node)
    )


def test_every_number_of_a_pass_says_what_it_is():
    silent: list[str] = []
    found = 0
    for path in sorted(ROOT.rglob("*.py")):
        if MATHEMATICS in path.parts:
            continue
        body = ast.parse(path.read_text()).body
        for here, following in zip(body, [*body[1:], None]):
            value = here.value if isinstance(here, ast.Assign | ast.AnnAssign) else None
            if value is None or not is_number(value):
                continue
            found += 1
            said = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            if not said:
                silent.append(f"{path.relative_to(ROOT)}:{here.lineno}")
    assert not silent, f"no docstring behind the numbers at {', '.join(silent)}"
    assert found > 15

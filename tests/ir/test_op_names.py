"""An op's name stands in one place: its class.

For every elementwise op of ours this counts the places where its name stands as a string, outside of text: what says
something of an op by its name (a table, a list, a comparison) must be found and changed when an op is added or called
otherwise, and what is forgotten is silent.  Counted are, in the rooms that know the tensor level and in what the tests
share,

    "elementwise.tanh"    as a whole string, anywhere
    "tanh"                as a key, an element, a default, an argument or what something is compared with

Not counted are uses: the method `b.tanh(x)`, the function `ag.tanh`, the class `elementwise.Tanh`; texts of IR and
docstrings; tests of single ops; and other vocabularies that have the word too: scalar ops and their functions below
the tensor level, the instructions of targets, what NumPy calls a function.
"""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

from nablair.ir.definition import OPS
from nablair.ir.dialect import DIALECTS

ROOT = Path(__file__).resolve().parents[2]
DIALECTS["elementwise"].load()
NAMES = [name for name in OPS if name.startswith("elementwise.")]
CLASSES = ROOT / "ir/dialects/elementwise"

BELOW = [  # which know scalar ops, vectors and buffers; a name here is that of `math`, `arith` or `vector`
    "ir/dialects/arith", "ir/dialects/math.py", "ir/dialects/vector", "ir/builders/scalar.py",
    "ir/support/combining.py", "ir/support/reference.py", "ir/interpreter/lanes.py", "ir/numeric.py", "lowering",
    "runtime", "passes/lower_to_loops.py", "passes/math_expansions", "tests/hostile_programs.py",
    "tests/scalar_programs.py", "tests/masked_programs.py",
]  # fmt: skip
OTHERS = {
    "autograd/exports.py": {"where", "clip"},  # NumPy's names of its own functions
    "autograd/functions/promotion.py": {"cast"},  # a method of the builder itself, used
    "autograd/functions/elementwise.py": {"tanh"},  # a form of gelu
    "tests/program_steps.py": {"tanh"},
    "autograd/functions/__init__.py": {"cast"},  # a name of Python
    "tools/stubs.py": {"cast"},  # a name of Python
}


def sources() -> list[Path]:
    rooms = ["ir", "passes", "lowering", "runtime", "autograd", "tools"]
    inner = [p for room in rooms for p in (ROOT / room).rglob("*.py")]
    shared = [p for p in (ROOT / "tests").glob("*.py") if not p.name.startswith("test_")]
    return [*inner, *shared, *ROOT.glob("*.py")]


def strings(path: Path) -> list[tuple[int, str]]:
    """The strings of a source that are no docstrings, and their lines."""
    tree = ast.parse(path.read_text())
    loose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in loose)
    return [(n.lineno, n.value) for n in found if isinstance(n.value, str)]


def sites() -> dict[str, list[str]]:
    """Where the names of ops stand outside of their classes."""
    found: dict[str, list[str]] = {name: [] for name in NAMES}
    short = {name.partition(".")[2]: name for name in NAMES}
    for path in sources():
        place = path.relative_to(ROOT).as_posix()
        if path.is_relative_to(CLASSES):
            continue
        is_below = any(place == b or place.startswith(f"{b}/") for b in BELOW)
        for line, text in strings(path):
            counts = text in short and not is_below and text not in OTHERS.get(place, ())
            name = text if text in found else short[text] if counts else None
            if name is not None:
                found[name].append(f"{place}:{line}")
    return found


SITES = sites()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_in_the_class_alone(name: str) -> None:
    assert SITES[name] == []


def test_each_class_names_itself_once() -> None:
    counts = Counter(text for path in CLASSES.glob("*.py") for _, text in strings(path) if text in OPS)
    assert counts == Counter(NAMES)

"""The package as a whole: what importing it costs, and that its lazy names are there."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nablair

ROOT = Path(nablair.__file__).parent
ROOMS = ("ir", "passes", "lowering", "runtime", "autograd", "tools")

HEAVY = {"llvmlite", "matplotlib", "ml_dtypes", "numpy", "pyopencl", "scipy"}


def modules_after(statement: str) -> set[str]:
    """The names in `sys.modules` of a fresh interpreter that has run `statement`."""
    script = f"{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("room", ["nablair", "nablair.ir", "nablair.passes", "nablair.lowering", "nablair.tools"])
def test_importing_a_room_loads_no_dependency(room: str) -> None:
    assert not modules_after(f"import {room}") & HEAVY


def test_import_nablair_loads_no_room() -> None:
    assert not {name for name in modules_after("import nablair") if name.startswith("nablair.")}


@pytest.mark.parametrize("name", nablair.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(nablair, name).__name__.rpartition(".")[2] == name


def test_every_error_derives_from_the_root() -> None:
    errors = [getattr(nablair, name) for name in nablair.__all__ if name.endswith("Error")]
    assert errors
    assert all(issubclass(error, nablair.Error) for error in errors)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'nablair' has no attribute 'tensors'"):
        nablair.tensors  # noqa: B018


def imports_in_functions(source: str) -> Iterator[str]:
    """The lines that import modules of ours inside functions."""
    lines = source.splitlines()
    pending: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while pending:
        node, inside = pending.pop()
        if inside and isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("nablair")):
            yield lines[node.lineno - 1]
        inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        pending += [(child, inside) for child in ast.iter_child_nodes(node)]


def test_imports_in_functions_are_marked_as_late() -> None:
    found = 0
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for line in imports_in_functions(path.read_text()):
                found += 1
                assert "# late" in line, f"{path}: {line.strip()}"
    assert found > 50


def test_the_contract_of_no_circles_holds_for_all() -> None:
    """import-linter checks it; nothing is left out."""
    text = (ROOT / "pyproject.toml").read_text()
    (contract,) = [part for part in text.split("[[tool.importlinter.contracts]]") if "acyclic_siblings" in part]
    assert "skip_descendants" not in contract
    assert "ignore_imports" not in text

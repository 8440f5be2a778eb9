"""The package as a whole: what importing it costs, and that its lazy names are there."""

import json
import subprocess
import sys

import pytest

import nablair

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

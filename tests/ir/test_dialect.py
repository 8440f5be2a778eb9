"""The manifest of dialects, and what follows from a row of it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from nablair.ir import dialect as manifest
from nablair.ir.builder import Builder
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.definition import OPS
from nablair.ir.diagnostics import Error
from nablair.ir.dialect import DIALECTS, Dialect, dialect_of
from nablair.ir.dialects import builtin, elementwise, func
from nablair.ir.dialects.elementwise.family import UnaryFloat
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.printer import print_op
from nablair.ir.types import F64, TensorType

ROOT = Path(manifest.__file__).parent


@pytest.mark.parametrize("row", list(DIALECTS.values()), ids=lambda row: row.name)
def test_a_row_names_modules_that_are_there(row: Dialect) -> None:
    row.load()
    assert any(dialect_of(name) is row for name in OPS)
    if row.rewrites:
        assert import_module(row.rewrites).RULES
    if row.meaning:
        import_module(row.meaning)


def test_every_module_of_a_dialect_has_its_row() -> None:
    """A rewrite table or a module of ops that no row names would never be asked."""
    defining = {name.partition(".")[0] for name, cls in OPS.items() if cls.__module__.startswith("nablair.")}
    assert defining == set(DIALECTS)
    tables = {f"nablair.passes.rewrites.{path.stem}" for path in (ROOT.parent / "passes/rewrites").glob("*.py")}
    ruled = {name for name in tables if hasattr(import_module(name), "RULES")}
    assert {row.rewrites for row in DIALECTS.values() if row.rewrites} == ruled


def test_reading_the_manifest_imports_no_dialect() -> None:
    code = "import sys, nablair.ir.dialect; print([m for m in sys.modules if '.dialects' in m or m == 'numpy'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_registered_dialect_is_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DIALECTS, "manifesttest", DIALECTS["elementwise"])  # so that it is taken out again
    with pytest.raises(Error, match=r"dialect 'manifesttest' already, whose ops .*\.elementwise defines"):
        manifest.register(Dialect("manifesttest", "tensor", ops=__name__))
    del DIALECTS["manifesttest"]
    monkeypatch.setitem(OPS, "manifesttest.thrice", elementwise.Neg)
    monkeypatch.setitem(OPS, "manifesttest.tanh", elementwise.Neg)
    manifest.register(Dialect("manifesttest", "tensor", ops=__name__, foreign="nb_manifesttest"))

    class Thrice(UnaryFloat):
        name = "manifesttest.thrice"

        def formula(self, x: object) -> object:
            return 3.0 * np.asarray(x)

    class Tanh(Thrice):
        name = "manifesttest.tanh"

    type = TensorType((2,), F64)
    module = builtin.Module.of()
    function = func.Func.of("f", [type], [type, type])
    module.block.append(function)
    b = TensorBuilder(function.entry)
    thrice, tanh = getattr(b, "thrice")(function.arguments[0]), b.tanh(function.arguments[0])  # noqa: B009
    Builder(function.entry).create(func.Return, [thrice, tanh])
    assert isinstance(thrice.defining_op, Thrice)
    assert isinstance(tanh.defining_op, elementwise.Tanh)  # the method is that of the first op of a name
    found = Interpreter(module).call("f", [np.array([1.0, 2.0])])
    np.testing.assert_array_equal(found, [[3.0, 6.0], np.tanh([1.0, 2.0])])
    assert '"nb_manifesttest.thrice"' in print_op(module, compat=True)

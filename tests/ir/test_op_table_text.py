"""The text of every tensor-level op, of the kernel it lowers to, and what the real mlir-opt says to both."""

import shutil
import subprocess

import pytest
from op_table import ROWS, Row

from nablair.ir.dialects.builtin import Module
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager

TOOL = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")


def levels(row: Row) -> list[Module]:
    """The op's module, and its kernels where it becomes some."""
    element = row.elements[0]
    module = row.module(element)
    kernels = row.module(element)
    PassManager.parse("decompose,lower-to-kernels").run(kernels)
    return [module, kernels]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_text_is_a_fixpoint(row: Row) -> None:
    for module in levels(row):
        verify(module)
        custom, generic = print_op(module), print_op(module, generic=True)
        from_custom, from_generic = parse_module(custom), parse_module(generic)
        verify(from_custom)
        assert print_op(from_custom) == custom
        assert print_op(from_custom, generic=True, keep_names=False) == print_op(module, generic=True, keep_names=False)
        assert print_op(from_generic, generic=True) == generic
        assert print_op(from_generic, keep_names=False) == print_op(module, keep_names=False)


@pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed (Debian: mlir-19-tools)")
def test_mlir_opt_accepts_them_all() -> None:
    """One run for all rows: each module is one of the file's parts."""
    assert TOOL is not None
    texts = [print_op(module, compat=True, locations=True) for row in ROWS for module in levels(row)]
    command = [TOOL, "--allow-unregistered-dialect", "--split-input-file", "-o", "/dev/null"]
    run = subprocess.run(command, input="\n// -----\n".join(texts), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:2000]

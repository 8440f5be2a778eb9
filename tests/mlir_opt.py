"""The real mlir-opt as a judge of text: what it takes, and its own generic form of it."""

import shutil
import subprocess

import pytest

from nablair.ir.operations import Operation
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify

TOOL = "mlir-opt-19"


def mlir_opt(text: str, *flags: str) -> str:
    """What mlir-opt prints for a text; the test fails when it refuses it and is skipped when it is not installed."""
    if shutil.which(TOOL) is None:
        pytest.skip(f"{TOOL} is not installed")
    run = subprocess.run([TOOL, *flags], input=text, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stderr}\n{text}"
    return run.stdout


def parse(text: str) -> Operation:
    """A verified module."""
    module = parse_module(text)
    verify(module)
    return module


def check_forms(text: str) -> Operation:
    """Both forms survive parsing, and mlir-opt takes both, as the same program as it takes the text for.

    It reads its own dialects' ops as registered, so their verifiers run.
    """
    module = parse(text)
    custom, generic = print_op(module), print_op(module, generic=True)
    for form in (custom, generic):
        again = parse(form)
        assert print_op(again) == custom
        assert print_op(again, generic=True) == generic
    theirs = mlir_opt(text, "--mlir-print-op-generic")
    assert mlir_opt(custom, "--mlir-print-op-generic") == theirs
    assert mlir_opt(generic, "--mlir-print-op-generic") == theirs
    for form in (theirs, mlir_opt(text)):
        assert mlir_opt(print_op(parse(form)), "--mlir-print-op-generic") == theirs
    return module

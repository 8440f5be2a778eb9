"""Runs every `.mlir` file below tests/filecheck that has RUN lines.

    // RUN: ir-opt %s --canonicalize | FileCheck %s
    // RUN: not ir-opt %s 2>&1 | FileCheck %s --check-prefix=ERROR
    // RUN: ir-opt %s --split-input-file --verify-diagnostics

`%s` is the file; `not` expects exit status 1; `2>&1` adds stderr to what is checked.  A command without FileCheck must
just succeed.  Tools run inside this process.
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest
from file_check import Mismatch, check

FOLDER = Path(__file__).parent / "filecheck"
RUN = re.compile(r"//\s*RUN:\s*(.*)$", re.MULTILINE)
CASES = sorted(path for path in FOLDER.rglob("*.mlir") if RUN.search(path.read_text()))


def run_line(command: str, path: Path) -> None:
    """One RUN line."""
    words = [word.replace("%s", str(path)) for word in shlex.split(command)]
    tool, checker = (words[: words.index("|")], words[words.index("|") + 1 :]) if "|" in words else (words, [])
    expected = int(tool[0] == "not")
    tool = tool[expected:]
    both = "2>&1" in tool
    arguments = [word for word in tool[1:] if word != "2>&1"]
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(out if both else errors):
        status = import_module(f"nablair.tools.{tool[0].replace('-', '_')}").main(arguments)
    assert status == expected, f"{command}: exit status {status}\n{errors.getvalue()}{out.getvalue() if both else ''}"
    if checker:
        prefix = next((w.partition("=")[2] for w in checker if w.startswith("--check-prefix=")), "CHECK")
        check(out.getvalue(), Path(checker[1]).read_text(), str(path.relative_to(FOLDER)), prefix)


@pytest.mark.parametrize("path", CASES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_file(path: Path):
    for command in RUN.findall(path.read_text()):
        run_line(command, path)


TEXT = "func @a {\n  %0 = x.one\n  %1 = x.two %0, %0\n}\nfunc @b {\n  %7 = x.one\n  x.end\n}\n"


@pytest.mark.parametrize(
    "checks",
    [
        "// CHECK: x.one\n// CHECK-NEXT: x.two",
        "// CHECK: %[[X:.*]] = x.one\n// CHECK: x.two %[[X]], %[[X]]",
        "// CHECK: x.{{one|three}}\n// CHECK-NOT: x.one\n// CHECK-SAME: {{$}}",
        "// CHECK-LABEL: @b\n// CHECK-NEXT: %[[X:[0-9]]]\n// CHECK-SAME: =   x.one\n// CHECK-NOT: x.two",
        "// CHECK-DAG: x.two\n// CHECK-DAG: x.one\n// CHECK: @b",
        "// CHECK: x.two %[[X:.*]], %[[X]]",
    ],
)
def test_text_that_is_as_checked(checks: str):
    check(TEXT, checks.replace("{{$}}", ""))


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ("// CHECK: x.three", "-:1: CHECK: x.three\nnot found"),
        (
            "// CHECK: x.one\n// CHECK-NEXT: x.one",
            "not on the next line; the output goes on:\n  |   %1 = x.two|not on the next",
        ),
        ("// CHECK-LABEL: @a\n// CHECK: x.end\n// CHECK-LABEL: @b", "CHECK: x.end\nnot found"),
        ("// CHECK-LABEL: @a\n// CHECK-NOT: x.two\n// CHECK-LABEL: @b", "must not be there"),
        ("// CHECK: x.one\n// CHECK-SAME: x.two", "not on the same line"),
        ("// CHECK: %[[X:.*]] = x.one\n// CHECK: x.two %[[X]], %9", "not found"),
        ("// CHECK: %[[Y]]", "used before it is captured"),
        ("nothing", "there are no CHECK lines"),
    ],
)
def test_text_that_is_not(checks: str, message: str):
    with pytest.raises(Mismatch, match=message):
        check(TEXT, checks)


def test_there_are_cases():
    assert CASES

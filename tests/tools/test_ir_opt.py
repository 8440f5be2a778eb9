"""ir-opt: flags, diagnostics, dumps, lists, exit status; in this process, and once as a command."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import nablair
from nablair.tools.ir_opt import main

TEXT = """func.func @main(%x: i32) -> i32 {
  %0 = arith.constant 2 : i32
  %1 = arith.addi %0, %x : i32
  %2 = arith.addi %1, %0 : i32
  return %2 : i32
}
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "in.mlir"
    path.write_text(TEXT)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """A function that runs the tool: `(status, stdout, stderr)`."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "other.mlir"
    path.write_text(text)
    return str(path)


def test_without_passes_it_prints_what_it_reads(run, file):
    status, out, err = run(file)
    assert (status, err) == (0, "")
    assert "arith.addi %1, %0 : i32" in out and out.startswith("module {")


@pytest.mark.parametrize(
    "flags",
    [
        ["--canonicalize"],
        ["-canonicalize", "--cse"],
        ["--canonicalize=max-iterations=3 test-convergence=true"],
        ["--pass", "canonicalize"],
        ["--pass=canonicalize{max-iterations=3}", "--pass", "cse"],
        ["-p", "canonicalize"],
        ["--pass-pipeline=builtin.module(func.func(canonicalize))"],
        ["--cleanup"],
    ],
)
def test_ways_to_name_passes(run, file, flags):
    status, out, err = run(file, *flags)
    assert (status, err) == (0, "")
    assert "arith.constant 4 : i32" in out


def test_passes_run_in_the_order_of_the_flags(run, file):
    _, _, err = run(file, "--cse", "--pass=dce", "--canonicalize", "--dump-pass-pipeline")
    assert "builtin.module(cse,dce,canonicalize)" in err


def test_stdin_and_output_file(run, tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    target = tmp_path / "out.mlir"
    assert run("-", "-o", str(target)) == (0, "", "")
    assert "arith.addi" in target.read_text()


def test_forms(run, file):
    assert '"arith.addi"(%1, %0)' in run(file, "--mlir-print-op-generic")[1]
    assert "loc(" in run(file, "--mlir-print-debuginfo")[1]


def test_compat_renames_our_linalg(run, tmp_path):
    text = """func.func @f(%x: tensor<4xf32>) -> tensor<f32> {
      %0 = linalg.reduce_sum %x {axes = [0]} : tensor<4xf32> -> tensor<f32>
      return %0 : tensor<f32>
    }"""
    assert '"nb_linalg.reduce_sum"' in run(write(tmp_path, text), "--mlir-compat")[1]


def test_an_error_shows_line_and_caret(run, tmp_path):
    path = write(tmp_path, TEXT.replace("%1, %0 : i32", "%1, %9 : i32"))
    status, out, err = run(path, "--canonicalize")
    assert (status, out) == (1, "")
    assert err.startswith(f"{path}:4:") and ": error: " in err
    line, caret = err.splitlines()[1:3]
    assert line.strip().startswith("%2 = arith.addi") and caret.strip() == "^"
    assert "Traceback" not in err


def test_errors_from_stdin_show_the_line_too(run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"func.func @f() {\n  nonsense.op\n  return\n}\n")))
    status, _, err = run()
    assert status == 1 and err.startswith("-:2:") and "nonsense.op" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--canonicalise"], "unknown flag '--canonicalise'; did you mean '--canonicalize'?"),
        (["-p", "nope"], "unknown pass 'nope'"),
        (["-p", "cse", "--dce"], "not both"),
        (["--emit=tpu"], "--emit is one of mlir, llvm"),
        (["--show-op", "arith.adf"], "no op 'arith.adf'; did you mean arith.addf"),
        (["--show-op", "relu"], "no op 'relu'; did you mean elementwise.relu?"),
        (["--show-op", "nothing"], "no op 'nothing'; see --list-dialects"),
        (["--load-plugin=no_such_plugin"], "cannot load the plugin 'no_such_plugin'"),
        (["-o", "/nonexistent/x"], "cannot write '/nonexistent/x'"),
        (["-p"], "--pass-pipeline needs a value"),
        (["--verify-each=maybe", "--cse"], "--verify-each takes true or false"),
    ],
)
def test_bad_command_lines(run, file, flags, message):
    status, _, err = run(file, *flags)
    assert status == 1 and err.startswith("error: ") and message in err


def test_a_missing_file(run):
    assert run("/nonexistent.mlir") == (1, "", "error: cannot open '/nonexistent.mlir': No such file or directory\n")


def test_dumps_go_to_stderr(run, file):
    _, out, err = run(file, "--canonicalize", "--cse", "--mlir-print-ir-after-all", "--mlir-print-ir-before=cse")
    banners = [line for line in err.splitlines() if line.startswith("// -----//")]
    assert banners == [
        "// -----// IR Dump After Canonicalize (canonicalize) //----- //",
        "// -----// IR Dump Before CommonSubexpressionElimination (cse) //----- //",
        "// -----// IR Dump After CommonSubexpressionElimination (cse) //----- //",
    ]
    assert "IR Dump" not in out


def test_after_change_shows_the_first_state_and_changes_only(run, file):
    _, _, err = run(file, "--cse", "--canonicalize", "--dce", "--mlir-print-ir-after-change")
    banners = [line for line in err.splitlines() if line.startswith("// -----//")]
    assert [b.split("IR Dump ")[1].split(" //")[0] for b in banners] == [
        "Initial State",
        "After Canonicalize (canonicalize)",
    ]


def test_function_dumps_name_the_function(run, file):
    _, _, err = run(file, "-p", "func.func(cse)", "--mlir-print-ir-after=cse")
    assert "(cse) ('func.func' operation: @main) //----- //" in err


def test_reports(run, file):
    _, _, err = run(file, "--canonicalize", "--mlir-timing", "--mlir-pass-statistics")
    assert "... Execution time report ..." in err and "(100.0%)  Total" in err
    assert "(S)" in err and "arith.addi: (x + c) + d -> x + (c + d)" in err
    assert all(line == line.rstrip() for line in err.splitlines())


def test_rewrites_are_traced(run, file):
    _, _, err = run(file, "--canonicalize", "--trace-rewrites")
    assert "// arith.addi: (x + c) + d -> x + (c + d)" in err


def test_split_input_keeps_places(run, tmp_path):
    path = write(
        tmp_path, TEXT + "// -----\n" + TEXT.replace("%x :", "%x :").replace("arith.addi %1, %0", "arith.addi %1, %8")
    )
    status, out, err = run(path, "--split-input-file")
    assert status == 1 and f"{path}:{len(TEXT.splitlines()) + 1 + 4}:" in err
    assert out.count("func.func") == 1
    path = write(tmp_path, TEXT + "// -----\n" + TEXT)
    assert run(path, "--split-input-file")[1].count("// -----\n") == 1


def test_expected_diagnostics(run, tmp_path):
    bad = TEXT.replace("%1, %0 : i32", "%1, %9 : i32 // expected-error {{%9}}")
    assert run(write(tmp_path, bad), "--verify-diagnostics")[::2] == (0, "")
    status, _, err = run(write(tmp_path, bad.replace("{{%9}}", "{{%7}}")), "--verify-diagnostics")
    assert status == 1 and "unexpected error: " in err and 'expected error "%7" was not produced' in err
    status, _, err = run(write(tmp_path, TEXT + "// expected-error@-1 {{x}}\n"), "--verify-diagnostics")
    assert status == 1 and 'expected error "x" was not produced' in err
    by_regex = TEXT.replace("%1, %0 : i32", "%1, %9 : i32 // expected-error-re {{%[0-9]}}")
    assert run(write(tmp_path, by_regex), "--verify-diagnostics")[0] == 0


def test_unregistered_ops(run, tmp_path):
    path = write(tmp_path, '"foo.bar"() : () -> ()\n')
    assert run(path)[0] == 1
    assert '"foo.bar"() : () -> ()' in run(path, "--allow-unregistered-dialect")[1]


PLUGIN = """
from dataclasses import dataclass
from typing import ClassVar
from nablair.passes.manager import Pass

@dataclass
class Boom(Pass):
    '''Raises.'''
    name: ClassVar = "plugin-boom"
    how: str = "loudly"
    def run(self, op):
        raise RuntimeError(self.how)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Iterator[str]:
    from nablair.passes.registry import PASS_CLASSES

    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN)
    yield str(path)
    PASS_CLASSES.pop("plugin-boom", None)


def test_a_plugin_brings_a_pass_whose_fault_is_reported(run, file, plugin, tmp_path):
    reproducer = tmp_path / "crash.mlir"
    flags = ["--load-plugin", plugin, "--cse", "--plugin-boom=how=quietly"]
    status, out, err = run(file, *flags, f"--mlir-pass-pipeline-crash-reproducer={reproducer}")
    assert (status, out) == (1, "")
    assert "pass 'plugin-boom{how=quietly}' failed on builtin.module: RuntimeError: quietly" in err
    assert "Traceback" not in err and str(reproducer) in err
    text = reproducer.read_text()
    assert "--pass-pipeline='builtin.module(cse,plugin-boom{how=quietly})'" in text and "func.func @main" in text
    assert run(str(reproducer))[0] == 0


DIALECT_PLUGIN = """
import sys
from nablair.ir.definition import FLOAT, PURE, SAME_TYPE, Op, operand, result
from nablair.ir.dialect import Dialect, register
from nablair.ir.rewrite_rules import captures, table, term

register(Dialect("plugged", "loop", ops=__name__, rewrites=__name__))

class Twice(Op):
    name = "plugged.twice"
    traits = frozenset({PURE, SAME_TYPE})
    x = operand(FLOAT)
    result = result(FLOAT)
    assembly = "$x attr-dict `:` type($result)"

(x,) = captures("x")
RULES = table((term(Twice)(term(Twice)(x)), x, "twice(twice(x)) -> x"),)
"""


TWICE = """func.func @f(%x: f32) -> f32 {
  %0 = plugged.twice %x : f32
  %1 = plugged.twice %0 : f32
  return %1 : f32
}"""


@pytest.fixture
def unplugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After the test, what plugins registered is taken out again."""
    from nablair.ir.definition import OPS
    from nablair.ir.dialect import DIALECTS

    tables: list[dict[str, Any]] = [OPS, DIALECTS, sys.modules]
    before = [set(table) for table in tables]
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for table, known in zip(tables, before, strict=True):
        for key in [key for key in table if key not in known and "plug" in key]:
            del table[key]


@pytest.mark.usefixtures("unplugged")
@pytest.mark.parametrize("by", ["name", "path"])
def test_a_plugin_brings_a_dialect_with_rules(run, tmp_path, by: str, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / f"plugged_by_{by}.py"
    file.write_text(DIALECT_PLUGIN.replace("plugged", f"plugged_by_{by}"))
    if by == "name":
        monkeypatch.syspath_prepend(tmp_path)
    plugin = file.stem if by == "name" else str(file)
    path = write(tmp_path, TWICE.replace("plugged", f"plugged_by_{by}"))
    status, out, err = run(path, f"--load-plugin={plugin}", "--canonicalize")
    assert (status, err) == (0, "") and "return %x : f32" in out
    assert "twice(twice(x)) -> x" in run(f"--load-plugin={plugin}", "--show-op", f"plugged_by_{by}.twice")[1]


@pytest.mark.usefixtures("unplugged")
def test_plugins_import_the_files_beside_them(run, tmp_path):
    for place in ("here", "there"):
        (tmp_path / place).mkdir()
        parts = tmp_path / place / f"parts_plugged_{place}.py"
        parts.write_text(DIALECT_PLUGIN.replace("plugged", f"plugged_{place}"))
        (tmp_path / place / "plug.py").write_text(f"import parts_plugged_{place}\nplace = '{place}'\n")
    here, there = (str(tmp_path / place / "plug.py") for place in ("here", "there"))
    for place in ("here", "there"):
        path = write(tmp_path, TWICE.replace("plugged", f"plugged_{place}"))
        status, out, err = run(path, f"--load-plugin={here},{there}", "--canonicalize")
        assert (status, err) == (0, "") and "return %x : f32" in out
    # Two files of one name are two modules, each loaded once.
    assert [sys.modules[name].place for name in ("nablair_plugin_plug", "nablair_plugin_plug_2")] == ["here", "there"]
    assert "nablair_plugin_plug_3" not in sys.modules


def test_lists(run, plugin):
    assert "cse  " in run("--list-passes")[1] and "max-iterations=10" in run("--list-passes")[1]
    assert "plugin-boom" in run("--load-plugin", plugin, "--list-passes")[1]
    assert "arith.addf" in run("--list-dialects")[1]
    assert "cleanup" in run("--list-pipelines")[1]
    assert "arith.subi: x - x -> 0" in run("--list-patterns")[1]
    assert "--verify-each" in run("--help")[1]
    assert run("--version")[1] == f"nablair {nablair.__version__}\n"


def test_show_op(run):
    status, out, _ = run("--show-op", "arith.subi")
    assert status == 0
    for part in ("lhs: a signless integer", "traits: Elementwise, Pure", "assembly: ", "defines: fold", "x - x -> 0"):
        assert part in out


def test_target_text(run, file):
    assert "define" in run(file, "--emit=llvm")[1]


def test_an_internal_error_has_no_traceback_unless_asked(run, file, monkeypatch: pytest.MonkeyPatch):
    from nablair.ir import printer

    def fail(*words: object, **keywords: object) -> str:
        raise KeyError("lost")

    monkeypatch.setattr(printer, "print_op", fail)
    status, _, err = run(file)
    assert status == 1 and err.startswith("error: internal error: KeyError: 'lost'") and "Traceback" not in err
    assert "Traceback" in run(file, "--traceback")[2]


@pytest.mark.parametrize("tool", ["ir-opt", "ir-run"])
def test_a_fault_in_a_pass_can_be_found_again(run, file, plugin, tmp_path, monkeypatch, capsys, tool):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    if tool == "ir-opt":
        command, words = run, [file, "--load-plugin", plugin, "--plugin-boom=how=quietly"]
    else:
        from nablair.tools.ir_run import main as run_main

        def command(*words: str) -> tuple[int, str, str]:
            status = run_main(words)
            captured = capsys.readouterr()
            return status, captured.out, captured.err

        words = [file, "--load-plugin", plugin, "-p", "plugin-boom{how=quietly}"]
    status, out, err = command(*words)
    assert (status, out) == (1, "") and "Traceback" not in err
    lines = Path(plugin).read_text().splitlines()
    raised = 1 + next(i for i, line in enumerate(lines) if "raise RuntimeError" in line)
    assert f"{plugin}:{raised}:1: note: raised here" in err
    again = re.search("to reproduce: ir-opt (.*)", err)
    assert again is not None
    status, _, err = run(*shlex.split(again[1]))
    assert status == 1 and f'File "{plugin}", line {raised}, in run' in err and "RuntimeError: quietly" in err


def test_a_plugin_that_fails_itself(run, file, tmp_path):
    path = tmp_path / "faulty.py"
    path.write_text("\n1 / 0\n")
    status, _, err = run(file, "--load-plugin", str(path))
    assert status == 1 and f"cannot load the plugin '{path}': ZeroDivisionError" in err and f"{path}:2:1: note" in err
    assert "Traceback" not in err and "Traceback" in run(file, "--load-plugin", str(path), "--traceback")[2]


def test_the_command_starts_without_numpy(file):
    code = "import sys; from nablair.tools.ir_opt import main; s = main(sys.argv[1:]); print('numpy' in sys.modules, s)"
    done = subprocess.run(
        [sys.executable, "-c", code, file, "--canonicalize", "-o", os.devnull], capture_output=True, text=True
    )
    assert done.stdout == "False 0\n", done.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--emit=llvm"], "--emit=llvm takes the loop level, and 'elementwise.exp' is above it; add -p loop-cpu"),
        (["--emit=ptx"], "--emit=ptx takes the loop level, and 'elementwise.exp' is above it; add -p loop-cuda"),
        (["-p", "loop-cpu", "--emit=opencl"], "the module has no gpu.module; use -p loop-opencl"),
    ],
)
def test_target_text_of_the_wrong_level_names_the_pipeline(tmp_path, capsys, flags, message):
    source = tmp_path / "exp.mlir"
    source.write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = elementwise.exp %x : tensor<4xf32>\n"
        "  return %y : tensor<4xf32>\n}\n"
    )
    assert main([str(source), *flags]) == 1
    out, err = capsys.readouterr()
    assert out == "" and message in err and "Traceback" not in err


def test_a_former_name_of_a_pass_is_an_alias(run, file):
    _, now, _ = run(file, "-p", "lower-to-kernels")
    for words in (["-p", "lower-broadcast"], ["--lower-broadcast"]):
        assert run(file, *words)[:2] == (0, now)
    _, _, err = run(file, "-p", "lower-broadcast", "--dump-pass-pipeline", "--mlir-print-ir-after=lower-broadcast")
    assert "lower-to-kernels" in err and "After LowerToKernels" in err and "lower-broadcast" not in err
    for listing in ("--help", "--list-passes"):
        assert re.search(r"lower-broadcast +another name of (--)?lower-to-kernels", run(listing)[1], re.IGNORECASE)
    _, _, err = run(file, "-p", "cse", "--mlir-print-ir-after=csee")
    assert "unknown pass 'csee'; did you mean 'cse'?" in err

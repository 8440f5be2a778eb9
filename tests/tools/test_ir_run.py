"""ir-run: arguments, levels, results, buffers, errors."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from nablair.tools.ir_run import main

TENSORS = """func.func @main(%x: tensor<?x4xf32, ["n"]>, %y: tensor<4xf32>) -> tensor<?x4xf32, ["n"]> {
  %0 = elementwise.add %x, %y : tensor<?x4xf32, ["n"]>, tensor<4xf32> -> tensor<?x4xf32, ["n"]>
  %1 = elementwise.relu %0 : tensor<?x4xf32, ["n"]>
  return %1 : tensor<?x4xf32, ["n"]>
}
"""
LOOPS = """func.func private @helper(%x: i32) -> i32 {
  return %x : i32
}
func.func @scale(%m: memref<4xf32>, %f: f32, %flag: i1) -> i32 {
  %0 = arith.constant 0 : index
  %4 = arith.constant 4 : index
  %1 = arith.constant 1 : index
  scf.for %i = %0 to %4 step %1 {
    %a = memref.load %m[%i] : memref<4xf32>
    %b = arith.mulf %a, %f : f32
    memref.store %b, %m[%i] : memref<4xf32>
  }
  %c = arith.constant 7 : i32
  return %c : i32
}
"""

COMPUTED = """func.func @main(%x: tensor<?xf32, ["n"]>, %n: index, %y: tensor<?xf32, ["n - 1"]>)
    -> tensor<?xf32, ["n - 1"]> {
  return %y : tensor<?xf32, ["n - 1"]>
}
"""


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A function that runs the tool on a text: `(status, stdout, stderr)`."""

    def run(text: str, *words: str) -> tuple[int, str, str]:
        path = tmp_path / "in.mlir"
        path.write_text(text)
        status = main([str(path), *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


def numbers(text: str) -> list[float]:
    return [float(n) for n in re.findall(r"-?\d+\.\d*(?:e[+-]\d+)?", text.partition("=")[2])]


def test_files_and_results(run, tmp_path):
    x = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", np.ones(4, np.float32))
    status, out, err = run(TENSORS, "--args", str(tmp_path / "x.npy"), str(tmp_path / "y.npy"))
    assert (status, err) == (0, "")
    assert out.startswith('result 0 : tensor<?x4xf32, ["n"]> =')
    assert numbers(out) == np.maximum(x + 1, 0).ravel().tolist()


@pytest.mark.parametrize("flags", [["-p", "kernel"], ["--level=cpu"]])
def test_levels_agree(run, flags):
    plain = run(TENSORS, "--args", "random", "--size", "n=3", "--seed=5")
    other = run(TENSORS, "--args", "random", "--size", "n=3", "--seed=5", *flags)
    assert plain[0] == other[0] == 0, other[2]
    assert plain[1] == other[1] and len(numbers(plain[1])) == 12


@pytest.mark.parametrize("level", ["interp", "cpu"])
def test_sizes_that_are_computed_and_sizes_that_are_arguments(run, level):
    status, out, err = run(COMPUTED, "--args", "random", "--size", "n=4", "--level", level)
    assert status == 0, err
    assert len(numbers(out)) == 3


def test_scalars_buffers_and_the_only_public_function(run):
    status, out, _ = run(LOOPS, "--args", "random", "2.0", "1", "--check")
    assert status == 0
    assert "result 0 : i32 = 7" in out and "argument 0 : memref<4xf32> = [" in out


def test_an_entry_is_chosen(run):
    status, out, _ = run(LOOPS, "--entry", "helper", "--args", "-5")
    assert (status, out) == (0, "result 0 : i32 = -5\n")


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        (
            TENSORS,
            ["--args", "random", "1", "2"],
            'takes 2 arguments (tensor<?x4xf32, ["n"]>, tensor<4xf32>); --args gives 3',
        ),
        (TENSORS, [], "--args gives 0"),
        (TENSORS, ["--entry=nope"], "there is no function '@nope'; --entry is one of: main"),
        (TENSORS, ["--args", "x.npy", "random"], "cannot read 'x.npy'"),
        (TENSORS, ["--args", "what", "random"], "argument 0: 'what' is no .npy file, no number"),
        (TENSORS, ["--args", "random", "--size", "n"], "--size takes NAME=NUMBER"),
        (TENSORS, ["--args", "random", "--size", "n=-1"], "with a number from 0 on, not 'n=-1'"),
        (TENSORS, ["--args", "random", "--size", "m=3"], "there is no size 'm'; those of the arguments are: n"),
        (LOOPS, ["--entry=helper", "--args", "random", "--size", "n=3"], "no size 'n'; the arguments have none"),
        (COMPUTED, ["--args", "random", "--size", "n=0"], 'tensor<?xf32, ["n - 1"]> has no array of shape (-1,)'),
        (TENSORS, ["--args", "random", "--seed=x"], "--seed takes a number from 0 on, not 'x'"),
        (TENSORS, ["--args", "random", "--level=abacus"], "abacus"),
        (TENSORS, ["--flop"], "unknown flag '--flop'"),
        (TENSORS, ["--args", "random", "--unsafe"], "--unsafe is for devices"),
        (TENSORS, ["--args", "random", "--check", "--level=cpu"], "--check is the interpreter's"),
        ("nonsense", [], ":1:1: error: "),
    ],
)
def test_errors(run, text, flags, message):
    status, out, err = run(text, *flags)
    assert (status, out) == (1, "") and message in err and "Traceback" not in err


@pytest.mark.parametrize("type", ["memref<4xi24>", "i7", "memref<4xmemref<4xf32>>"])
@pytest.mark.parametrize("flags", [[], ["--level=cpu"]])
def test_arguments_that_numpy_lacks_are_refused(run, type, flags):
    status, out, err = run(f"func.func @main(%x: {type}) {{\n  return\n}}\n", "--args", "random", *flags)
    assert (status, out, err) == (1, "", f"error: no NumPy dtype for {type}\n")


def test_a_file_among_the_arguments_is_hinted_at(capsys):
    assert main(["--args", "random", "in.mlir"]) == 1
    assert "got none; a file comes before --args" in capsys.readouterr().err


@pytest.mark.parametrize("type", ["i8", "tensor<i8>"])
@pytest.mark.parametrize("number", ["300", "-129", "99999999999999999999999", "npy"])
@pytest.mark.parametrize("flags", [[], ["--level=cpu"]])
def test_integers_that_do_not_fit_are_refused(run, tmp_path, type, number, flags):
    if number == "npy":
        number = str(tmp_path / "n.npy")
        np.save(number, np.int64(300))
    status, out, err = run(f"func.func @main(%x: {type}) {{\n  return\n}}\n", "--args", number, *flags)
    assert (status, out) == (1, "") and err == f"error: argument 0: {type} holds -128 to 127, '{number}' does not fit\n"


def test_files_that_are_no_arrays(run, tmp_path):
    path = tmp_path / "empty.npy"
    path.touch()
    status, _, err = run("func.func @main(%x: i8) {\n  return\n}\n", "--args", str(path))
    assert status == 1 and "cannot read" in err and "internal" not in err
    np.save(path, np.float32(2.5))
    status, _, err = run("func.func @main(%x: i8) {\n  return\n}\n", "--args", str(path))
    assert status == 1 and "needs dtype int8" in err


@pytest.mark.parametrize("size", [10**14, 10**20])
def test_random_arrays_beyond_memory(run, size):
    text = 'func.func @main(%x: tensor<?xf32, ["n"]>) {\n  return\n}\n'
    status, _, err = run(text, "--args", "random", "--size", f"n={size}")
    assert status == 1 and "no memory" in err and "internal" not in err


def test_an_array_of_another_kind_is_refused(run, tmp_path):
    np.save(tmp_path / "z.npy", np.ones(4, np.complex64))
    status, _, err = run(TENSORS, "--args", "random", str(tmp_path / "z.npy"))
    assert status == 1 and "needs dtype float32" in err
    status, _, err = run(LOOPS, "--entry=helper", "--args", str(tmp_path / "z.npy"))
    assert status == 1 and "i32 is one number" in err and "has the shape (4,)" in err

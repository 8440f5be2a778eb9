"""Bad input ends in one clear error: what was wrong, at which place of the user's own text, and no traceback.

In IR text: `file:line:col: error: ..`, the line, a caret below the fault, notes, exit status 1.  At the front-end: a
`nablair.Error` that is also the exception a Python user expects, with the line of the user's program.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nablair import autograd as ag
from nablair.autograd.context import TraceError
from nablair.ir.diagnostics import DeviceError, DTypeError, Error, ShapeError, SubscriptError
from nablair.tools.ir_opt import main


@dataclass(frozen=True)
class Text:
    """A faulty text (`§` marks where the fault is said to be and is no part of it), flags, and what is said."""

    text: str
    message: str
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def body(lines: str, arguments: str = "%x: i32") -> str:
    """A function with these ops."""
    return f"func.func @main({arguments}) -> i32 {{\n{lines}\n  return %x : i32\n}}\n"


TENSORS = "%x: i32, %t: tensor<4x3xf32>, %u: tensor<5x2xf32>"

TEXTS = {
    "syntax": Text(body("  %0 = arith.addi %x, %x §i32"), "expected ':', found 'i32'"),
    "end of text": Text("func.func @main() {\n§", "expected an operation or '}', found the end of the text"),
    "unknown op": Text(
        body("  %0 = §foo.bar %x : i32"),
        "unregistered operation 'foo.bar'; --allow-unregistered-dialect accepts it in generic form",
    ),
    "unknown op in a known dialect": Text(
        body('  %0 = §"arith.addd"(%x, %x) : (i32, i32) -> i32'),
        "unknown operation 'arith.addd' in the dialect 'arith'; did you mean 'arith.addi'?",
        ("--allow-unregistered-dialect",),
    ),
    "type mismatch": Text(
        body("  %0 = arith.addi %x, §%f : i32", "%x: i32, %f: f32"),
        "use of value '%f' expects type i32, but it has type f32",
        notes=("1:26: note: prior definition here",),
    ),
    "type mismatch in generic form": Text(
        body('  %0 = §"arith.addi"(%x, %x) : (i32, i32) -> i64'),
        "'arith.addi' op requires one type for all operands and results, got (i32, i32) -> (i64)",
    ),
    "shapes that do not broadcast": Text(
        body("  %0 = §elementwise.add %t, %u : tensor<4x3xf32>, tensor<5x2xf32> -> tensor<4x3xf32>", TENSORS),
        "elementwise.add: shapes (4, 3) and (5, 2) do not broadcast",
    ),
    "shapes that do not multiply": Text(
        body("  %0 = §linalg.matmul %t, %u : tensor<4x3xf32>, tensor<5x2xf32> -> tensor<4x2xf32>", TENSORS),
        "linalg.matmul: shapes (4, 3) and (5, 2) do not multiply",
    ),
    "undefined value": Text(body("  %0 = arith.addi %x, §%nope : i32"), "use of undefined value '%nope'"),
    "use before the definition": Text(
        body("  %0 = §arith.addi %x, %1 : i32\n  %1 = arith.addi %x, %x : i32"),
        "'arith.addi' op operand #1 ('rhs') of type i32 does not dominate this use",
        notes=("3:8: note: the operand is defined here",),
    ),
    "use outside of a region": Text(
        body(
            "  scf.if %c {\n    %1 = arith.addi %x, %x : i32\n  }\n  %2 = arith.addi §%1, %x : i32", "%x: i32, %c: i1"
        ),
        "use of undefined value '%1'",
    ),
    "an op that uses itself": Text(
        body("  %0 = §arith.addi %x, %0 : i32"),
        "'arith.addi' op operand #1 ('rhs') of type i32 does not dominate this use",
        notes=("2:8: note: the operand is defined here",),
    ),
    "redefinition": Text(
        body("  %0 = arith.addi %x, %x : i32\n  §%0 = arith.addi %x, %x : i32"),
        "redefinition of value '%0'",
        notes=("2:3: note: prior definition here",),
    ),
    "attribute of a wrong kind": Text(
        body('  %0 = linalg.softmax %t {axis = §"a"} : tensor<4x3xf32>', TENSORS),
        "'axis' must be an integer of type i64, got \"a\"",
    ),
    "attribute out of range": Text(
        body("  %0 = §linalg.softmax %t {axis = 3} : tensor<4x3xf32>", TENSORS),
        "linalg.softmax: axis 3 is out of range for 2 dimensions",
    ),
    "attribute missing": Text(
        body("  %0 = §linalg.softmax %t : tensor<4x3xf32>", TENSORS),
        "'linalg.softmax' op requires the property 'axis' (an integer of type i64)",
    ),
    "wrong terminator": Text(
        "func.func @main(%x: i32) -> i32 {\n  §scf.yield %x : i32\n}\n",
        "'scf.yield' op must stand in scf.for, scf.if or scf.while",
    ),
    "no terminator": Text(
        "func.func @main(%x: i32) -> i32 {\n  %0 = §arith.addi %x, %x : i32\n}\n",
        "'arith.addi' op ends a block of 'func.func', but is not a terminator",
        notes=("1:1: note: 'func.func' op stands here",),
    ),
    "wrong number of regions": Text(
        body('  §"scf.if"(%c) ({\n  }) : (i1) -> ()', "%x: i32, %c: i1"), "'scf.if' op expects 2 regions, got 1"
    ),
    "types of a return": Text(
        "func.func @main(%x: i32) -> i64 {\n  §return %x : i32\n}\n",
        "'func.return' op returns (i32), but @main has the results (i64)",
    ),
    "symbol not found": Text(
        body("  %0 = §func.call @nope(%x) : (i32) -> i32"), "'func.call' op calls @nope, which does not exist"
    ),
    "symbol defined twice": Text(
        "func.func private @a()\n§func.func private @a()\n",
        "'func.func' op redefines the symbol @a",
        notes=("1:1: note: prior definition here",),
    ),
    "nested regions": Text(
        '"a.b"() ({' * 5001 + "}) : () -> ()" * 5001,
        "regions nested more than 5000 deep",
        ("--allow-unregistered-dialect",),
    ),
    "nested attributes": Text(
        f'"a.b"() {{a = {"[" * 5000}{"]" * 5000}}} : () -> ()',
        "nested more than 100 deep",
        ("--allow-unregistered-dialect",),
    ),
    "an out that is not filled": Text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
        "  %y = §kernel.launch (%i) in (3) ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {\n"
        "    %0 = kernel.load %x[%i]\n    kernel.store %0, %y[%i]\n  }\n  return %y : tensor<4xf32>\n}\n",
        "'kernel.launch' op does not provably store each element of out number 0, tensor<4xf32>, once; "
        "give it an init: outs(%y = %x : tensor<4xf32>)",
    ),
    "no derivative": Text(
        f"§{body('')}",
        "autodiff: argument 0 of '@main' is i32; only float tensors can be differentiated",
        ("-p", "autodiff"),
        ("note: in pass 'autodiff'",),
    ),
    "no emission": Text(
        body("  %0 = §math.exp %f : f32", "%x: i32, %f: f32"),
        "the llvm target has no emission for 'math.exp'",
        ("--emit=llvm",),
    ),
}


def run(path: Path, text: str, flags: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """What ir-opt says of a faulty text; exit status 1, nothing on stdout, no traceback."""
    path.write_text(text)
    assert main([str(path), *flags]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err and "internal error" not in captured.err
    return captured.err


@pytest.mark.parametrize("name", TEXTS)
def test_text(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = TEXTS[name]
    before, mark, after = case.text.partition("§")
    text = before + after
    path = tmp_path / "in.mlir"
    found = run(path, text, case.flags, capsys).splitlines()
    head = re.fullmatch(rf"{re.escape(str(path))}:(\d+):(\d+): error: (.*)", found[0])
    assert head is not None and head[3] == case.message, found[0]
    if mark:
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        assert (int(head[1]), int(head[2])) == (line, column)
        source = text.split("\n")[line - 1]
        if source.strip():
            assert found[1:3] == [f"  {source}", f"  {' ' * (column - 1)}^"]
    else:
        assert len(found[1]) < 200 and found[2].endswith("^")  # a line of 50,000 characters is not shown whole
    for note in case.notes:
        assert any(line.endswith(note) for line in found), found


PIPELINES = {
    "cse,foo": "unknown pass 'foo'; known: autodiff, ",
    "fuse{max-opz=3}": "pass 'fuse' has no option 'max-opz'; did you mean 'max-ops'? known: max-ops, max-loops",
    "fuse{max-ops=abc}": "option 'max-ops' of pass 'fuse' takes an integer; got 'abc'",
    "fuse{max-ops=3": "expected '}' to close the options at column 15 of the pass pipeline 'fuse{max-ops=3'",
    "decompose{ops=foo.bar}": "pass 'decompose': no op 'foo.bar' has an expansion; some that have: ",
    "autodiff{function=f}": "autodiff: the module has no function '@f' with a body",
}


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipeline(pipeline: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = run(tmp_path / "in.mlir", body(""), ("-p", pipeline), capsys).split("\n")[0]
    message = PIPELINES[pipeline]
    assert f"error: {message}" in first and (message.endswith((", ", ": ")) or first.endswith(message))


def array(*shape: int, dtype: Any = np.float32) -> ag.Tensor:
    return ag.asarray(np.ones(shape, dtype))


# The functions below hold one fault each, in the line that says so.


def shapes_of_add() -> Any:
    return array(2, 3) + array(4, 5)  # fault


def shapes_of_matmul() -> Any:
    return array(2, 3) @ array(4, 5)  # fault


def shapes_in_jit() -> Any:
    def f(x: Any, y: Any) -> Any:
        z = x * 2
        return z + y  # fault

    return ag.jit(f)(array(2, 3), array(4, 5))


def dtypes_without_a_common_one() -> Any:
    return array(3, dtype=np.uint64) + array(3, dtype=np.int64)  # fault


def unknown_dtype() -> Any:
    return ag.astype(array(3), "float99")  # fault


def floats_for_a_connective() -> Any:
    return ag.logical_and(array(3), array(3))  # fault


def value_while_tracing() -> Any:
    def f(x: Any) -> Any:
        return x * float(ag.sum(x))  # fault

    return ag.jit(f)(array(3))


def array_while_tracing() -> Any:
    def f(x: Any) -> Any:
        return np.sort(x.numpy())  # fault

    return ag.jit(f)(array(3))


def branch_while_tracing() -> Any:
    def f(x: Any) -> Any:
        if ag.sum(x) > 0:  # fault
            return x
        return -x

    return ag.jit(f)(array(3))


def branch_in_grad() -> Any:
    def f(x: Any) -> Any:
        return ag.sum(x) if ag.sum(x) > 0 else -ag.sum(x)  # fault

    return ag.grad(f)(array(3))


def value_after_tracing() -> Any:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        kept.append(x * 2)
        return ag.sum(x)

    ag.grad(f)(array(3))
    return kept[0].numpy()  # fault


def axis_out_of_range() -> Any:
    return ag.sum(array(2, 3), axis=2)  # fault


def axis_that_is_none() -> Any:
    return ag.softmax(array(2, 3), axis="rows")  # type: ignore[arg-type]  # fault


def reshape_that_does_not_fit() -> Any:
    return ag.reshape(array(2, 3), (4,))  # fault


def broadcast_that_does_not_fit() -> Any:
    return ag.broadcast_to(array(2, 3), (5, 5))  # fault


def concat_that_does_not_fit() -> Any:
    return ag.concat([array(2, 3), array(4, 5)])  # fault


def maximum_of_nothing() -> Any:
    return ag.max(array(0, 3), axis=0)  # fault


def gradient_of_a_matrix() -> Any:
    return ag.grad(lambda x: x * 2)(array(2, 3))  # fault


def gradient_of_integers() -> Any:
    return ag.grad(lambda x: ag.sum(x))(array(3, dtype=np.int32))  # fault


def gradient_of_no_argument() -> Any:
    return ag.grad(lambda x: ag.sum(x), argnums=3)(array(3))  # fault


def backward_of_a_vector() -> Any:
    x = ag.Tensor([1.0, 2.0], requires_grad=True)
    return (x * 2).backward()  # fault


def index_out_of_range() -> Any:
    return array(2, 3)[5]  # fault


def too_many_subscripts() -> Any:
    return array(2, 3)[0, 0, 0]  # fault


def floats_as_indices() -> Any:
    return ag.take(array(2, 3), array(2), axis=0)  # fault


def unknown_device() -> Any:
    return ag.asarray([1.0], device="tpu")  # fault


def unknown_device_of_jit() -> Any:
    return ag.jit(lambda x: x + 1, device="tpu")(array(3))  # fault


def donated_tensor() -> Any:
    x = array(1000)
    ag.jit(lambda x: x + 1, donate_argnames=("x",))(x)
    return x.numpy()  # fault


def static_list() -> Any:
    f = ag.jit(lambda x, n: x * n[0], static_argnames=("n",))
    return f(array(3), [2])  # fault


def static_name_that_is_none() -> Any:
    return ag.jit(lambda x: x, static_argnames=("n",))  # fault


def out_of_another_shape() -> Any:
    f = ag.jit(lambda x: x + 1)
    return f(array(2, 3), out=np.empty((3, 3), np.float32))  # fault


FRONT_END: dict[Callable[[], Any], tuple[tuple[type[Exception], ...], str]] = {
    shapes_of_add: ((ShapeError, ValueError), "elementwise.add: shapes (2, 3) and (4, 5) do not broadcast"),
    shapes_of_matmul: ((ShapeError, ValueError), "linalg.matmul: shapes (2, 3) and (4, 5) do not multiply"),
    shapes_in_jit: ((ShapeError, ValueError), "elementwise.add: shapes (2, 3) and (4, 5) do not broadcast"),
    dtypes_without_a_common_one: (
        (DTypeError, TypeError),
        "no integer dtype holds the values of int64 and uint64; cast one of them with ag.astype",
    ),
    unknown_dtype: (
        (DTypeError, TypeError),
        "astype: no dtype for 'float99'; there are: bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
        "float16, bfloat16, float32, float64",
    ),
    floats_for_a_connective: ((DTypeError, TypeError), "logical_and: needs bools, got float32; compare with 0 first"),
    value_while_tracing: (
        (TraceError,),
        "the value of a Tensor cannot be read while a function is traced (float()): go on with the Tensor itself, "
        "choose between values with ag.where(condition, a, b), or return it from the function",
    ),
    array_while_tracing: (
        (TraceError,),
        "the value of a Tensor cannot be read while a function is traced (numpy()); return it from the function",
    ),
    branch_while_tracing: (
        (TraceError,),
        "a Tensor has no truth value while a function is traced (`if`, `while`, `and`, `bool()`): write "
        "ag.where(condition, a, b), or name the argument in static_argnames",
    ),
    branch_in_grad: (
        (TraceError,),
        "a Tensor has no truth value while a function is traced (`if`, `while`, `and`, `bool()`): write "
        "ag.where(condition, a, b), or name the argument in static_argnames",
    ),
    value_after_tracing: (
        (TraceError,),
        "a Tensor of a traced function is read after the function ended; return it instead of storing it",
    ),
    axis_out_of_range: ((ShapeError, ValueError), "sum: axis 2 is out of range for 2 dimensions"),
    axis_that_is_none: ((DTypeError, TypeError), "softmax: axis must be an integer, got 'rows'"),
    reshape_that_does_not_fit: ((ShapeError, ValueError), "reshape: shape (2, 3) cannot become (4,)"),
    broadcast_that_does_not_fit: (
        (ShapeError, ValueError),
        "broadcast_to: shape (2, 3) does not broadcast to (5, 5)",
    ),
    concat_that_does_not_fit: ((ShapeError, ValueError), "array.concat: shapes (2, 3) and (4, 5) differ off axis 0"),
    maximum_of_nothing: (
        (ShapeError, ValueError),
        "max: linalg.reduce_max: no value for the empty axes [0] of shape (0, 3)",
    ),
    gradient_of_a_matrix: ((ShapeError, ValueError), "grad: the function must return a 0-d Tensor, got shape (2, 3)"),
    gradient_of_integers: ((DTypeError, TypeError), "grad: what is differentiated must be of floats, got int32"),
    gradient_of_no_argument: ((Error,), "grad: argnums has 3, but the call has 1 positional arguments"),
    backward_of_a_vector: (
        (ShapeError, ValueError),
        "backward: a Tensor of shape (2,) needs the gradient to start from",
    ),
    index_out_of_range: ((SubscriptError, IndexError), "getitem: index 5 is out of range for axis 0 of shape (2, 3)"),
    too_many_subscripts: ((SubscriptError, IndexError), "getitem: too many subscripts for shape (2, 3)"),
    floats_as_indices: (
        (DTypeError, TypeError),
        "take: the indices must be integers, got float32",
    ),
    unknown_device: ((DeviceError, RuntimeError), "asarray: unknown device 'tpu'; there are: cpu, "),
    unknown_device_of_jit: ((DeviceError, RuntimeError), "jit: unknown device 'tpu'; there are: cpu, "),
    donated_tensor: ((Error,), "the Tensor was donated to a compiled call, which may have overwritten it"),
    static_list: ((Error,), "a static argument must be hashable, got [2]"),
    static_name_that_is_none: ((Error,), "jit: the function has no parameter 'n'"),
    out_of_another_shape: ((ShapeError, ValueError), "out= has the shape (3, 3), the result (2, 3)"),
}


@pytest.mark.parametrize("fault", FRONT_END, ids=lambda f: f.__name__)
def test_front_end(fault: Callable[[], Any]) -> None:
    classes, message = FRONT_END[fault]
    with pytest.raises(Error) as caught:
        fault()
    error = caught.value
    assert all(isinstance(error, c) for c in classes)
    assert error.message == message or (message.endswith(", ") and error.message.startswith(message))
    place = error.location.file_position() if error.location is not None else None
    assert place is not None and place.file == __file__
    source = linecache.getline(place.file, place.line)
    assert "# fault" in source
    first, shown, caret = str(error).split("\n")
    assert first == f"{__file__}:{place.line}:{place.column}: error: {error.message}"
    assert shown.strip() == source.strip()
    assert caret.index("^") == len(shown) - len(shown.lstrip())
    # What is wrong is found when the op is recorded, not by a pass later on.
    assert not any("passes" in Path(str(entry.path)).parts for entry in caught.traceback)


def test_the_session_goes_on_after_an_error() -> None:
    """Nothing of a failed trace or call is left behind."""
    for fault in FRONT_END:
        with pytest.raises(Error):
            fault()
    np.testing.assert_array_equal((array(2, 3) + array(3)).numpy(), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(ag.grad(lambda x: ag.sum(x * x))(array(3)).numpy(), np.full(3, 2.0))

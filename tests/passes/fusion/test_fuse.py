"""fuse: what becomes one launch, how it looks inside, and that it means the same."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nablair.ir.attribute_names import TARGET
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.dialects import kernel
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func, Return
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.target import Target
from nablair.ir.types import F32, TensorType
from nablair.ir.verifier import verify
from nablair.passes.kernel import structure
from nablair.passes.manager import PassManager

KERNEL = "inline,canonicalize,cse,decompose,canonicalize,cse,lower-to-kernels,fuse,dce"


def launches(module: Module) -> list[kernel.Launch]:
    return [op for op in module.walk() if isinstance(op, kernel.Launch)]


def inside(launch: kernel.Launch) -> Counter[str]:
    """How often each kernel op stands in a launch."""
    return Counter(op.name.removeprefix("kernel.") for op in launch.walk() if op.name.startswith("kernel."))


def arrays(module: Module) -> list[Any]:
    """Inputs for @main: small numbers that add without rounding, classes below 9."""
    rng = np.random.default_rng(7)
    function = module.symbol("main")
    assert isinstance(function, Func)
    found: list[Any] = []
    for type in function.type.inputs:
        assert isinstance(type, TensorType)
        if str(type.element) == "i64":
            found.append(rng.integers(0, 9, type.shape))
        else:
            found.append(rng.integers(-8, 8, type.shape).astype("f4") / 4)
    return found


def fused(text: str, target: Target | None = None) -> Module:
    """The module after fuse, checked to mean what it meant."""
    module = parse_module(text)
    if target is not None:
        module.attributes[TARGET] = target.attribute()
    inputs = arrays(module)
    before = Interpreter(module).call("main", inputs)
    PassManager.parse(KERNEL).run(module)
    verify(module)
    after = Interpreter(module).call("main", inputs)
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(old, new, rtol=2e-6, atol=2e-6)
    return module


def only(module: Module) -> kernel.Launch:
    (launch,) = launches(module)
    return launch


def function(arguments: str, results: str, body: str, returned: str) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n  return {returned} : {results}\n}}"


M = "tensor<32x64xf32>"
ROW, COLUMN = "tensor<64xf32>", "tensor<32xf32>"


def softmax(axis: int) -> str:
    return function(f"%x: {M}", M, f"  %y = linalg.softmax %x {{axis = {axis}}} : {M}", "%y")


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_is_one_launch_with_exp_kept_in_a_local(axis: int) -> None:
    launch = only(fused(softmax(axis)))
    assert launch.extents == ((64,) if axis == 0 else (32,))
    counts = inside(launch)
    assert (counts["reduce"], counts["local"], counts["sweep"], counts["store"]) == (2, 1, 1, 1)


def test_softmax_of_rows_beyond_the_local_budget_stays_one_launch() -> None:
    launch = only(fused(softmax(1), Target(local_bytes=64)))
    (local,) = [op for op in launch.walk() if isinstance(op, kernel.Local)]
    assert str(local.attributes["space"]) == '"out"'


BACKWARD = function(
    f"%a: {M}, %b: {ROW}, %c: {M}, %dy: {M}",
    f"{M}, {ROW}, {M}",
    f"""
  %zero = array.constant dense<0.0> : tensor<f32>
  %one = array.constant dense<1.0> : tensor<f32>
  %s = elementwise.add %a, %b : {M}, {ROW} -> {M}
  %z = elementwise.mul %s, %c : {M}
  %r = elementwise.relu %z : {M}
  %y = elementwise.tanh %r : {M}
  %yy = elementwise.mul %y, %y : {M}
  %u = elementwise.sub %one, %yy : tensor<f32>, {M} -> {M}
  %v = elementwise.mul %dy, %u : {M}
  %p = elementwise.greater_or_nan %z, %zero : {M}, tensor<f32> -> tensor<32x64xi1>
  %dz = elementwise.where %p, %v, %zero : tensor<32x64xi1>, {M}, tensor<f32> -> {M}
  %da = elementwise.mul %dz, %c : {M}
  %db = linalg.reduce_sum %da {{axes = [0]}} : {M} -> {ROW}
  %dc = elementwise.mul %dz, %s : {M}""",
    "%da, %db, %dc",
)


def test_backward_of_a_chain_is_one_launch_without_a_column_walk() -> None:
    launch = only(fused(BACKWARD))
    counts = inside(launch)
    assert launch.extents == (32, 64)
    assert (counts["load"], counts["store"], counts["accumulate"], counts["reduce"]) == (4, 2, 1, 0)


LAYER_NORM = function(
    f"%x: {M}, %g: {ROW}, %b: {ROW}",
    f"{M}, {COLUMN}, {COLUMN}",
    "  %y, %m, %r = linalg.layer_norm %x weight %g bias %b {axis = 1} : "
    f"({M}, {ROW}, {ROW}) -> ({M}, {COLUMN}, {COLUMN})",
    "%y, %m, %r",
)


def test_layer_norm_is_one_launch() -> None:
    launch = only(fused(LAYER_NORM))
    counts = inside(launch)
    assert launch.extents == (32,)
    assert (counts["reduce"], counts["local"], counts["sweep"], counts["store"]) == (2, 0, 1, 3)


def gradient(text: str, wrt: str, entry: str = "main") -> str:
    """The module with only the differentiated function, as @main."""
    module = parse_module(text)
    PassManager.parse(f"autodiff{{function={entry} wrt={wrt}}}").run(module)
    source = module.symbol(entry)
    assert source is not None
    source.erase()
    return str(module).replace(f"@{entry}_vjp", "@main")


def test_layer_norm_backward_is_one_launch_that_accumulates_in_its_sweep() -> None:
    text = function(
        f"%x: {M}, %g: {ROW}, %b: {ROW}",
        M,
        "  %y, %m, %r = linalg.layer_norm %x weight %g bias %b {axis = 1} : "
        f"({M}, {ROW}, {ROW}) -> ({M}, {COLUMN}, {COLUMN})",
        "%y",
    )
    launch = only(fused(gradient(text, "0,1,2")))
    assert launch.extents == (32,)
    assert inside(launch)["accumulate"] == 2


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_larger_than_a_cache_stay_one_launch(axis: int) -> None:
    """2 MiB a row (or column): softmax, layer norm and its backward all the same."""
    shape = (64, 524288) if axis == 1 else (524288, 64)
    big = f"tensor<{shape[0]}x{shape[1]}xf32>"
    row = f"tensor<{shape[axis]}xf32>"
    other = f"tensor<{shape[1 - axis]}xf32>"
    soft = function(f"%x: {big}", big, f"  %y = linalg.softmax %x {{axis = {axis}}} : {big}", "%y")
    norm = function(
        f"%x: {big}, %g: {row}, %b: {row}",
        big,
        f"  %y, %m, %r = linalg.layer_norm %x weight %g bias %b {{axis = {axis}}} : "
        f"({big}, {row}, {row}) -> ({big}, {other}, {other})",
        "%y",
    )
    for text in (soft, norm, gradient(norm, "0,1,2")):
        module = parse_module(text)
        PassManager.parse(KERNEL).run(module)
        assert len(launches(module)) == 1


def test_forward_and_backward_of_a_chain_are_one_launch() -> None:
    text = function(
        f"%a: {M}, %b: {ROW}, %c: {M}",
        M,
        f"""
  %s = elementwise.add %a, %b : {M}, {ROW} -> {M}
  %z = elementwise.mul %s, %c : {M}
  %r = elementwise.relu %z : {M}
  %y = elementwise.tanh %r : {M}""",
        "%y",
    )
    launch = only(fused(gradient(text, "0,1,2")))
    counts = inside(launch)
    assert launch.extents == (32, 64)
    assert (counts["load"], counts["store"], counts["accumulate"]) == (4, 3, 1)


def test_bias_and_activation_ride_on_a_matmul() -> None:
    text = function(
        "%x: tensor<28x8xf32>, %w: tensor<8x64xf32>, %b: tensor<64xf32>",
        "tensor<28x64xf32>",
        """
  %h = linalg.matmul %x, %w : tensor<28x8xf32>, tensor<8x64xf32> -> tensor<28x64xf32>
  %s = elementwise.add %h, %b : tensor<28x64xf32>, tensor<64xf32> -> tensor<28x64xf32>
  %y = elementwise.gelu %s : tensor<28x64xf32>""",
        "%y",
    )
    launch = only(fused(text))
    assert launch.extents == (28, 64)
    assert inside(launch)["reduce"] == 1


ATTENTION = function(
    "%q: tensor<16x8xf32>, %k: tensor<24x8xf32>, %v: tensor<24x8xf32>",
    "tensor<16x8xf32>",
    """
  %c = array.constant dense<0.25> : tensor<f32>
  %t = array.transpose %k {permutation = [1, 0]} : tensor<24x8xf32> -> tensor<8x24xf32>
  %s = linalg.matmul %q, %t : tensor<16x8xf32>, tensor<8x24xf32> -> tensor<16x24xf32>
  %x = elementwise.mul %s, %c : tensor<16x24xf32>, tensor<f32> -> tensor<16x24xf32>
  %p = linalg.softmax %x {axis = 1} : tensor<16x24xf32>
  %y = linalg.matmul %p, %v : tensor<16x24xf32>, tensor<24x8xf32> -> tensor<16x8xf32>""",
    "%y",
)


def test_attention_is_one_launch_with_two_local_rows() -> None:
    launch = only(fused(ATTENTION))
    counts = inside(launch)
    assert launch.extents == (16,)
    assert (counts["local"], counts["reduce"], counts["sweep"]) == (2, 4, 1)


def test_backward_of_attention_folds_each_product_once() -> None:
    """The scores' cotangents are read by a sum and by the softmax's derivative: they are kept in a row of their own."""
    module = fused(gradient(ATTENTION, "0,1,2"))
    first, *others = launches(module)
    assert (first.extents, len(others)) == ((16,), 2)
    folds = [op for op in first.walk() if isinstance(op, kernel.Reduce)]
    inner = [op for op in folds if not isinstance(op.parent_op, kernel.Launch)]
    assert sorted(op.extents for op in inner) == [(8,), (8,), (24,)]


def test_two_large_layers_stay_two_launches() -> None:
    """Joining them would read the second weights again for every few rows."""
    n = "tensor<512x512xf32>"
    body = f"""
  %h = linalg.matmul %x, %w : {n}, {n} -> {n}
  %r = elementwise.relu %h : {n}
  %y = linalg.matmul %r, %u : {n}, {n} -> {n}"""
    module = parse_module(function(f"%x: {n}, %w: {n}, %u: {n}", n, body, "%y"))
    PassManager.parse(KERNEL).run(module)
    assert len(launches(module)) == 2


def test_cross_entropy_is_one_launch() -> None:
    text = function(
        "%x: tensor<8x10xf32>, %c: tensor<8xi64>",
        "tensor<f32>, tensor<8xf32>",
        "  %l, %m = loss.cross_entropy %x, %c : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)",
        "%l, %m",
    )
    launch = only(fused(text))
    counts = inside(launch)
    assert launch.extents == (8,)
    assert (counts["reduce"], counts["store"], counts["accumulate"]) == (2, 1, 1)


def test_a_computed_subscript_reads_a_row_that_the_launch_keeps() -> None:
    """The logit of a row's class, chosen from logits that are never a tensor."""
    text = function(
        "%a: tensor<8x6xf32>, %b: tensor<6x10xf32>, %c: tensor<8xi64>",
        "tensor<f32>",
        """
  %x = linalg.matmul %a, %b : tensor<8x6xf32>, tensor<6x10xf32> -> tensor<8x10xf32>
  %l, %m = loss.cross_entropy %x, %c : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)""",
        "%l",
    )
    launch = only(fused(text))
    counts = inside(launch)
    assert launch.extents == (8,)
    assert (counts["local"], counts["reduce"], counts["store"], counts["accumulate"]) == (1, 3, 0, 1)


def test_a_value_with_several_users_is_computed_once_in_one_launch() -> None:
    body = f"""
  %y = elementwise.mul %a, %a : {M}
  %s = linalg.softmax %y {{axis = 1}} : {M}
  %z = elementwise.add %y, %s : {M}"""
    only(fused(function(f"%a: {M}", M, body, "%z")))


def test_column_sums_beside_their_users_are_one_launch() -> None:
    body = f"""
  %x = elementwise.exp %a : {M}
  %c = linalg.reduce_sum %x {{axes = [0]}} : {M} -> {ROW}
  %y = elementwise.div %x, %c : {M}, {ROW} -> {M}"""
    only(fused(function(f"%a: {M}", M, body, "%y")))


def test_a_path_through_a_third_op_keeps_launches_apart() -> None:
    """The function call between them cannot move into a launch."""
    text = (
        function(
            f"%a: {M}",
            M,
            f"""
  %x = elementwise.exp %a : {M}
  %o = func.call @other(%x) : ({M}) -> {M}
  %y = elementwise.mul %x, %o : {M}""",
            "%y",
        )
        + f"\nfunc.func private @other({M}) -> {M}"
    )
    module = parse_module(text)
    PassManager.parse("lower-to-kernels,fuse").run(module)
    names = [op.name for op in module.walk() if op.name in ("kernel.launch", "func.call")]
    assert names == ["kernel.launch", "func.call", "kernel.launch"]


def test_the_limit_on_scalar_ops_holds() -> None:
    text = function(
        f"%x: {M}", M, "\n".join([f"  %x{i + 1} = elementwise.tanh %x{i or ''} : {M}" for i in range(40)]), "%x40"
    ).replace("%x0", "%x")
    module = parse_module(text)
    PassManager.parse("lower-to-kernels,fuse{max-ops=16}").run(module)
    assert len(launches(module)) == 3


UNARY = ("exp", "tanh", "relu", "neg", "abs", "sigmoid")
BINARY = ("add", "mul", "sub", "maximum")
SHAPES = ((4, 6), (6,), (1, 6), (4, 1))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_generated_elementwise_chains_are_one_launch_with_minimal_memory_traffic(data: st.DataObject) -> None:
    """One load for each input that is used and one store for the output, at every point."""
    count = data.draw(st.integers(1, 4))
    shapes = [SHAPES[0], *(data.draw(st.sampled_from(SHAPES)) for _ in range(count - 1))]
    main = Func.of("main", [TensorType(s, F32) for s in shapes], [])
    b = TensorBuilder(main.entry)
    value = main.arguments[0]
    for _ in range(data.draw(st.integers(1, 12))):
        if data.draw(st.booleans()):
            value = getattr(b, data.draw(st.sampled_from(UNARY)))(value)
        else:
            value = getattr(b, data.draw(st.sampled_from(BINARY)))(value, data.draw(st.sampled_from(main.arguments)))
    b.create(Return, [value])
    main.update_type()
    module = Module.of([main])
    used = sum(bool(a.uses) for a in main.arguments)
    PassManager.parse("canonicalize,cse,lower-to-kernels,fuse,dce").run(module)
    if not any(op.name.startswith("elementwise") or op.name == "kernel.launch" for op in module.walk()):
        return  # the chain folded away
    launch = only(module)
    counts = inside(launch)
    assert counts["load"] <= used
    assert counts["load"] == len(launch.ins)
    assert counts["store"] == 1


def softmaxes(count: int) -> str:
    """softmax(2 x), so many times."""
    lines = ["%two = array.constant dense<2.0> : tensor<f32>"]
    last = "%x"
    for i in range(count):
        lines.append(f"%d{i} = elementwise.mul {last}, %two : tensor<8x16xf32>, tensor<f32> -> tensor<8x16xf32>")
        lines.append(f"%s{i} = linalg.softmax %d{i} {{axis = 1}} : tensor<8x16xf32>")
        last = f"%s{i}"
    body = "\n  ".join([*lines, f"return {last} : tensor<8x16xf32>"])
    return f"func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {{\n  {body}\n}}"


def test_long_chains_of_folds_take_time_in_proportion() -> None:
    """Counted in calls of Python, which do not depend on the machine."""

    def calls(count: int) -> int:
        module, made = parse_module(softmaxes(count)), 0

        def note(frame: object, event: str, argument: object) -> None:
            nonlocal made
            made += event == "call"

        sys.setprofile(note)
        try:
            PassManager.parse(KERNEL).run(module)
        finally:
            sys.setprofile(None)
        loops = [sum(isinstance(o, structure.LOOPS) for o in launch.walk()) for launch in launches(module)]
        assert max(loops) <= 24
        return made

    calls(1)
    assert calls(20) < 2.4 * calls(10)

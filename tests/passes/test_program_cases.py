"""Programs that once came out wrong, found by generating programs, each made small: they pass every check."""

from __future__ import annotations

import random

import numpy as np
import pytest
from program_checks import KERNEL, LOOPS, TENSOR, assert_bounded, check_passes
from program_growth import random_array
from programs import Program

from nablair.ir.dialects.func import Func
from nablair.ir.parser import parse_module
from nablair.runtime.compile import compile_function


def function(arguments: str, results: str, body: str, returned: str) -> str:
    return f"func.func @main({arguments}) -> ({results}) {{\n{body}\n  return {returned} : {results}\n}}"


CASES: dict[str, str] = {
    "a constant made by a rule has the type of the one it replaces": function(
        "%x: tensor<4x5xf16>",
        "tensor<4x5xf16>",
        """
  %half = array.constant dense<0.5> : tensor<f16>
  %y = elementwise.div %x, %half : tensor<4x5xf16>, tensor<f16> -> tensor<4x5xf16>""",
        "%y",
    ),
    "constants of unsigned integers have no sign in kernels": function(
        "%x: tensor<3xui16>",
        "tensor<3xui16>, tensor<3xui16>",
        """
  %seven = array.constant dense<7> : tensor<ui16>
  %q = elementwise.floor_divide %x, %seven : tensor<3xui16>, tensor<ui16> -> tensor<3xui16>
  %r = elementwise.remainder %x, %seven : tensor<3xui16>, tensor<ui16> -> tensor<3xui16>""",
        "%q, %r",
    ),
    "constants stay in combine regions": function(
        "%x: tensor<3xf32>",
        "tensor<i64>, tensor<f32>",
        """
  %a = elementwise.abs %x : tensor<3xf32>
  %at = linalg.argmax %a {axis = 0} : tensor<3xf32> -> tensor<i64>
  %s = linalg.reduce_sum %a {axes = [0]} : tensor<3xf32> -> tensor<f32>""",
        "%at, %s",
    ),
    "an axis of one element is padded": function(
        "%x: tensor<3x1xf32>",
        "tensor<3x4xf32>",
        "  %y = array.pad %x {low = [0, 1], high = [0, 2], value = 0.5 : f32} : tensor<3x1xf32> -> tensor<3x4xf32>",
        "%y",
    ),
    "a part of a tensor is padded and joined": function(
        "%x: tensor<5x4xf32>",
        "tensor<5x4xf32>, tensor<4x4xf32>",
        """
  %p = array.slice %x {starts = [1, 0], stops = [3, 4], steps = [1, 1]} : tensor<5x4xf32> -> tensor<2x4xf32>
  %y = array.pad %p {low = [1, 0], high = [2, 0], value = 0.0 : f32} : tensor<2x4xf32> -> tensor<5x4xf32>
  %z = array.concat %p, %p {axis = 0} : tensor<2x4xf32>, tensor<2x4xf32> -> tensor<4x4xf32>""",
        "%y, %z",
    ),
    "nothing is read from an empty tensor": function(
        "%x: tensor<0x4xf32>, %y: tensor<0x4x2xf32>",
        "tensor<2xf32>",
        """
  %r = array.reshape %x : tensor<0x4xf32> -> tensor<0x1x4xf32>
  %m = linalg.matmul %r, %y : tensor<0x1x4xf32>, tensor<0x4x2xf32> -> tensor<0x1x2xf32>
  %s = linalg.reduce_sum %m {axes = [0]} : tensor<0x1x2xf32> -> tensor<1x2xf32>
  %v = array.reshape %s : tensor<1x2xf32> -> tensor<2xf32>""",
        "%v",
    ),
    "bools are repeated and padded": function(
        "%p: tensor<2x3xi1>, %x: tensor<3xf32>",
        "tensor<4x2x3xi1>, tensor<4x3xi1>",
        """
  %q = array.broadcast %p {axes = [1, 2]} : tensor<2x3xi1> -> tensor<4x2x3xi1>
  %r = array.concat %p, %p {axis = 0} : tensor<2x3xi1>, tensor<2x3xi1> -> tensor<4x3xi1>""",
        "%q, %r",
    ),
    "bfloat16 is computed with": function(
        "%x: tensor<3x17xbf16>",
        "tensor<3x17xbf16>, tensor<3xbf16>",
        """
  %y = elementwise.mul %x, %x : tensor<3x17xbf16>
  %z = elementwise.neg %y : tensor<3x17xbf16>
  %m = linalg.reduce_min %z {axes = [1]} : tensor<3x17xbf16> -> tensor<3xbf16>
  %w = elementwise.add %z, %x : tensor<3x17xbf16>""",
        "%w, %m",
    ),
    "a loop that cannot be vectorized runs once": function(
        "%x: tensor<17xf32>, %d: tensor<f32>",
        "tensor<f32>, tensor<17xf32>",
        """
  %r = elementwise.round %x : tensor<17xf32>
  %c = array.reshape %x : tensor<17xf32> -> tensor<17x1xf32>
  %y = elementwise.mul %d, %r : tensor<f32>, tensor<17xf32> -> tensor<17xf32>
  %s = linalg.matmul %x, %r : tensor<17xf32>, tensor<17xf32> -> tensor<f32>""",
        "%s, %y",
    ),
    "bools are folded with an accumulate": function(
        "%x: tensor<16x4x3xf32>, %y: tensor<3xf32>",
        "tensor<16x4x3xf32>, tensor<3xi1>",
        """
  %d = elementwise.mul %x, %y : tensor<16x4x3xf32>, tensor<3xf32> -> tensor<16x4x3xf32>
  %p = elementwise.less %x, %y : tensor<16x4x3xf32>, tensor<3xf32> -> tensor<16x4x3xi1>
  %any = linalg.reduce_max %p {axes = [0, 1]} : tensor<16x4x3xi1> -> tensor<3xi1>""",
        "%d, %any",
    ),
    "an empty constant": function(
        "%x: tensor<4xf32>",
        "tensor<0x3xf32>, tensor<4xf32>",
        """
  %e = array.constant dense<> : tensor<0x3xf32>
  %y = elementwise.add %x, %x : tensor<4xf32>""",
        "%e, %y",
    ),
}
"""What once failed -> a program of it."""


def program(text: str) -> Program:
    """The program and its inputs."""
    module = parse_module(text)
    main = module.symbol("main")
    assert isinstance(main, Func)
    source = random.Random(3)
    return Program(module, [random_array(source, a.type) for a in main.arguments], False)


@pytest.mark.parametrize("case", CASES)
def test_passes(case: str) -> None:
    source = program(CASES[case])
    for seed in range(3):
        check_passes(source, random.Random(seed), TENSOR)
        check_passes(source, random.Random(seed), KERNEL, "tensor")
        check_passes(source, random.Random(seed), LOOPS, "kernel,plan,split-reduce,bufferize")


@pytest.mark.parametrize("device", ["cpu", "ptx-sim"])
@pytest.mark.parametrize("case", CASES)
def test_devices(case: str, device: str) -> None:
    source = program(CASES[case])
    found = compile_function(source.module, "main", device).run([np.array(a, order="C") for a in source.arrays])
    assert_bounded(found, source, device)

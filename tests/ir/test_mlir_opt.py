"""The real mlir-opt accepts what we print, and we read what it prints."""

import random
import shutil
import subprocess

import pytest
from text_samples import GENERIC, KERNEL, LOOP, SAMPLES

from nablair.ir.attributes import DenseAttr, FloatAttr
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import BF16, F16, F32, F64, FloatType, TensorType

TOOL = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")
pytestmark = pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed (Debian: mlir-19-tools)")


def mlir_opt(text: str, *flags: str) -> str:
    """What the tool prints for a text; its complaint fails the test."""
    assert TOOL is not None
    run = subprocess.run([TOOL, *flags], input=text, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("name", SAMPLES)
def test_generic_form_goes_through_and_comes_back(name: str) -> None:
    module = parse_module(SAMPLES[name], "s.mlir", allow_unregistered=True)
    bare = print_op(module, keep_names=False)  # the tool writes out defaults, which custom form leaves out
    text = mlir_opt(print_op(module, compat=True), "--allow-unregistered-dialect", "--mlir-print-op-generic")
    again = parse_module(text.replace('"nb_linalg.', '"linalg.'), allow_unregistered=True)
    assert print_op(again, keep_names=False) == bare


@pytest.mark.parametrize("flags", [(), ("--mlir-print-op-generic",), ("--mlir-print-debuginfo",)])
def test_loop_level_is_registered_there(flags: tuple[str, ...]) -> None:
    """Custom form, generic form and locations of the loop level, without unregistered dialects."""
    module = parse_module(LOOP, "s.mlir")
    bare = print_op(module, keep_names=False)
    for text in (print_op(module), print_op(module, generic=True), print_op(module, locations=True)):
        assert print_op(parse_module(mlir_opt(text, *flags)), keep_names=False) == bare


def test_locations_survive_the_tool() -> None:
    module = parse_module(LOOP, "s.mlir")
    text = mlir_opt(print_op(module, locations=True), "--mlir-print-debuginfo", "--mlir-print-op-generic")
    again = parse_module(text)
    assert [op.location for op in again.walk()] == [op.location for op in module.walk()]


def test_names_are_numbered_through_in_kernels() -> None:
    text = print_op(parse_module(KERNEL), generic=True)
    assert mlir_opt(text, "--allow-unregistered-dialect")


def test_aliases_of_the_tool_are_read() -> None:
    text = mlir_opt(GENERIC, "--allow-unregistered-dialect", "--mlir-print-debuginfo")
    assert "#loc" in text
    parse_module(text, allow_unregistered=True)


@pytest.mark.parametrize("type", [F16, BF16, F32, F64])
def test_floats_survive_the_tool(type: FloatType) -> None:
    rng = random.Random(3)
    width = type.width
    top = ((1 << type.exponent_bits) - 1) << type.mantissa_bits
    bits = [0, 1, top, top | 1, top - 1, 1 << (width - 1), top | 1 << (width - 1)]
    bits += [rng.getrandbits(width) for _ in range(300)]
    attributes = [FloatAttr.from_bits(b, type) for b in bits]
    lists = DenseAttr(TensorType([len(bits)], type), b"".join(b.to_bytes(width // 8, "little") for b in bits))
    values = ", ".join(map(str, attributes))
    text = mlir_opt(f'"x.a"() {{values = [{values}], list = {lists}}} : () -> ()', "--allow-unregistered-dialect")
    op = parse_module(text, allow_unregistered=True).block.first
    assert list(op.attributes["values"].elements) == attributes
    assert op.attributes["list"] is lists


def test_strings_and_symbols_survive_the_tool() -> None:
    text = r'"x.a"() {a = "q\22 \\ \0A \C3\A9 \FF", b = @s::@"a b", "odd key" = 1 : i8, c} : () -> ()'
    module = parse_module(text, allow_unregistered=True)
    again = parse_module(mlir_opt(print_op(module), "--allow-unregistered-dialect"), allow_unregistered=True)
    assert again.block.first.attributes == module.block.first.attributes

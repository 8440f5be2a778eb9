"""The real mlir-opt reads every stage of whole programs, and so do we.

What holds ops of our own dialects goes through with `--allow-unregistered-dialect`, in the generic form that
`--mlir-compat` prints; from lower-to-loops on, a module holds registered dialects only, and its custom and generic
forms pass without any flag.  All texts of one kind go through one process.
"""

from __future__ import annotations

import shutil
import subprocess
from functools import cache

import kernel_programs
import pytest
from level_sources import function, parsed, source

from nablair.ir.attribute_names import TARGET
from nablair.ir.attributes import StringAttr
from nablair.ir.dialects.builtin import Module
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.target import Target
from nablair.passes.manager import PassManager

TOOL = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")
needs_tool = pytest.mark.skipif(TOOL is None, reason="mlir-opt is not installed (Debian: mlir-19-tools)")

SEPARATOR = "// -----\n"
TARGETS = {
    "cpu": Target(kind="cpu", vector_bits=512),
    "opencl": Target(kind="opencl"),
    "cuda": Target(kind="cuda"),
}
OWN = ('"elementwise.', '"linalg.', '"array.', '"loss.', '"kernel.')


def perceptron() -> Module:
    """The gradients of a classifier's loss with respect to two layers."""
    arguments = {
        "x": "tensor<32x20xf32>",
        "c": "tensor<32xi64>",
        "w": "tensor<20x48xf32>",
        "b": "tensor<48xf32>",
        "u": "tensor<48x10xf32>",
    }
    body = """
  %h = linalg.matmul %x, %w : tensor<32x20xf32>, tensor<20x48xf32> -> tensor<32x48xf32>
  %s = elementwise.add %h, %b : tensor<32x48xf32>, tensor<48xf32> -> tensor<32x48xf32>
  %r = elementwise.relu %s : tensor<32x48xf32>
  %y = linalg.matmul %r, %u : tensor<32x48xf32>, tensor<48x10xf32> -> tensor<32x10xf32>
  %l, %m = loss.cross_entropy %y, %c : (tensor<32x10xf32>, tensor<32xi64>) -> (tensor<f32>, tensor<32xf32>)"""
    module = parsed(function(arguments, {"l": "tensor<f32>"}, body))
    PassManager.parse("autodiff{function=main wrt=2,3,4}").run(module)
    before, gradient = module.symbol("main"), module.symbol("main_vjp")
    assert before is not None and gradient is not None
    before.erase()
    gradient.properties["sym_name"] = StringAttr("main")
    return module


PROGRAMS = {
    "chain": lambda: source("b"),
    "chain gradient": lambda: source("c"),
    "softmax": lambda: source("d"),
    "layer norm": lambda: source("e"),
    "layer norm gradient": lambda: source("e1"),
    "matmul with epilogue": lambda: source("f"),
    "loss": lambda: source("h"),
    "argmax": lambda: source("i"),
    "scatter": lambda: source("k1"),
    "attention": lambda: source("m1"),
    "symbolic chain": lambda: parsed(kernel_programs.chain("n", 40)),
    "symbolic softmax": lambda: parsed(kernel_programs.softmax("n", "m")),
    "classifier gradient": perceptron,
}


def is_loop_level(text: str) -> bool:
    """Whether a module in generic form is free of our own ops."""
    return not any(prefix in text for prefix in OWN)


@cache
def stages(name: str) -> tuple[Module, ...]:
    """The program after every pass for every target, equal modules once."""
    found: dict[str, Module] = {}
    for kind, target in TARGETS.items():
        module = PROGRAMS[name]()
        module.attributes[TARGET] = target.attribute()
        found.setdefault(print_op(module), module.clone())  # pyright: ignore[reportArgumentType]
        for part in PassManager.parse(f"loop-{kind}").all_passes():
            PassManager.parse(str(part), verify_each=False, restore=False).run(module)
            found.setdefault(print_op(module), module.clone())  # pyright: ignore[reportArgumentType]
    return tuple(found.values())


@cache
def levels() -> tuple[list[Module], list[Module]]:
    """Stages with ops of our own, and those of registered dialects only."""
    mixed: list[Module] = []
    loops: list[Module] = []
    for name in PROGRAMS:
        for module in stages(name):
            (loops if is_loop_level(print_op(module, generic=True)) else mixed).append(module)
    return mixed, loops


def mlir_opt(parts: list[str], *flags: str) -> list[str]:
    """What mlir-opt prints for each text; the test fails with its words and the text that it refuses."""
    assert TOOL is not None
    command = [TOOL, "--split-input-file", *flags]
    joined = ("\n" + SEPARATOR).join(parts)
    run = subprocess.run(command, input=joined, capture_output=True, text=True, check=False)
    if run.returncode:
        for part in parts:
            alone = subprocess.run([TOOL, *flags], input=part, capture_output=True, text=True, check=False)
            assert alone.returncode == 0, f"{alone.stderr}\n{part}"
    assert run.returncode == 0, run.stderr[:2000]
    return run.stdout.split(SEPARATOR)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_stage_is_a_fixpoint(name: str) -> None:
    for module in stages(name):
        custom, generic = print_op(module), print_op(module, generic=True)
        again = parse_module(custom)
        assert print_op(again) == custom
        assert print_op(again, generic=True, keep_names=False) == print_op(module, generic=True, keep_names=False)
        assert print_op(parse_module(generic), generic=True) == generic


def test_stages_reach_loop_level_on_every_target() -> None:
    mixed, loops = levels()
    assert len(mixed) > 3 * len(PROGRAMS) and len(loops) > 6 * len(PROGRAMS)
    whole = "".join(map(print_op, loops))
    assert all(op in whole for op in ("gpu.launch_func", "vector.maskedload", "scf.forall", "math.fma", "memref.load"))


def bare(module: Module) -> str:
    """A module without value names and without its own attributes, which mlir-opt sorts."""
    copy = module.clone()
    copy.attributes.clear()
    return print_op(copy, keep_names=False)


def read_back(text: str) -> str:
    """What we read from mlir-opt's text."""
    return bare(parsed(text.replace('"nb_linalg.', '"linalg.')))


@needs_tool
def test_mlir_opt_reads_tensor_and_kernel_level() -> None:
    mixed, _ = levels()
    texts = [print_op(module, compat=True) for module in mixed]
    found = mlir_opt(texts, "--allow-unregistered-dialect", "--mlir-print-op-generic")
    assert len(found) == len(mixed)
    for module, theirs in zip(mixed, found, strict=True):
        assert read_back(theirs) == bare(module)


@needs_tool
def test_mlir_opt_verifies_loop_level_as_registered_dialects() -> None:
    _, loops = levels()
    custom, generic = mlir_opt(list(map(print_op, loops))), mlir_opt([print_op(m, generic=True) for m in loops])
    # mlir-opt makes the same text of both forms, so that one of them says what it has read.
    assert custom == generic and len(custom) == len(loops)
    for module, theirs in zip(loops, custom, strict=True):
        assert read_back(theirs) == bare(module)

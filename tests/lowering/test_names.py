"""Symbols of the IR as names of the targets: any text, words of the target and of the C library, each its own name."""

from __future__ import annotations

from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest
from fuzzing import cases

from nablair.ir.location import quote
from nablair.ir.parser import parse_module
from nablair.lowering.names import CALLED, function_name, kernel_name, kernel_names, spelled
from nablair.lowering.opencl.emit import emit_module as opencl_text
from nablair.lowering.ptx.emit import emit_module as ptx_text
from nablair.runtime.compile import compile_function
from nablair.runtime.devices import get_device
from nablair.runtime.devices.opencl import count as opencl_count

pytestmark = pytest.mark.fuzz

STRANGE = [
    "main", "a b", 'a"b', "a\\b", "a'b", "a;}", "é", "\udcff", "\n", "\t", "", "a.b", "a-b", "a$b", "_", "__a", "0",
    "1a", "a::b", "%x", "@x", "%s%n",
    "malloc", "free", "exit", "memcpy", "fmodf", "sqrt", "powl", "Py_None", "llvm.sqrt.f32",
    "nablair.parallel", "task0", "nb.task0", "entry", "main.entry", "float", "kernel", "__kernel", "if", "while", "int",
    "half", "uchar4", "NAN", "INFINITY", "barrier", "fma", "max", "get_global_id", "round_bf16", "mov", "ld", "ret",
    "tid", "ntid", "b32", "nb_", "nb_a", "nbx_a", "nbm_a_sa", "a_k0", "main_k0", "float_k1", "_x20", "a_x20b", "a__b",
    "p1", "v9", "n2", "loop1", "L1", "restrict", "x" * 300,
]  # fmt: skip


def any_names() -> list[str]:
    """The names above, and some of any characters."""
    random = Random(7)
    alphabet = "abx_0 9.$\\\"'\n\0é\udc80@%"
    drawn = ["".join(random.choices(alphabet, k=random.randrange(1, 9))) for _ in range(cases(300))]
    return list(dict.fromkeys(STRANGE + drawn))


@pytest.mark.parametrize("name", [function_name, kernel_name, spelled])
def test_names_are_identifiers_and_differ(name: Any) -> None:
    symbols = any_names()
    found = {symbol: name(symbol) for symbol in symbols}
    assert len(set(found.values())) == len(symbols)
    for symbol, text in found.items():
        if symbol or name is not spelled:
            assert text.isascii() and text.replace("_", "a").isalnum(), symbol
        if name is not spelled:
            assert text[0].isalpha()


def test_names_that_mean_something_are_not_taken() -> None:
    for symbol in (*CALLED, "__divti3", "_start", "PyErr_SetString"):
        assert function_name(symbol) != symbol
    for symbol in ("float", "barrier", "max", "mov", "fma", "main", "int4", "round_half", "printf"):
        assert kernel_name(symbol) != symbol
    assert function_name("main") == "main"
    assert kernel_name("main_k0") == "main_k0"


DEVICES = ["cpu", "ptx-sim", *(["opencl"] if opencl_count() else [])]


def program(symbol: str, other: str) -> Any:
    """x + 1 by a function that calls another one, at tensor level."""
    return parse_module(
        f"""func.func @{quote(symbol)}(%x: tensor<5xf32>) -> tensor<5xf32> {{
          %c = array.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
          %0 = elementwise.add %x, %c : tensor<5xf32>
          %1 = elementwise.sqrt %0 : tensor<5xf32>
          return %1 : tensor<5xf32>
        }}
        func.func private @{quote(other)}(%x: tensor<5xf32>) -> tensor<5xf32> {{
          %0 = elementwise.exp %x : tensor<5xf32>
          return %0 : tensor<5xf32>
        }}"""
    )


@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_any_name_run(device: str) -> None:
    names = [n for n in any_names() if n]
    x = np.arange(5, dtype=np.float32)
    expected = np.sqrt(x + np.arange(1, 6, dtype=np.float32))
    random = Random(device)
    chosen = (
        random.sample(names, cases({"cpu": 12, "ptx-sim": 12, "opencl": 3}[device])) + ["malloc", 'a"b', "float"][:2]
    )
    for symbol in chosen:
        (found,) = compile_function(
            program(symbol, random.choice([n for n in names if n != symbol])), symbol, device
        ).run([x])
        assert np.allclose(found, expected, rtol=1e-6), symbol


KERNELS = """gpu.module @{outer} {{
  gpu.func @{name}(%m: memref<4xi32>) kernel {{
    %i = gpu.thread_id x
    %c = arith.constant {value} : i32
    %p = arith.index_cast %i : index to i32
    %s = arith.addi %p, %c : i32
    memref.store %s, %m[%i] : memref<4xi32>
    gpu.return
  }}
}}
"""


def kernels(names: list[tuple[str, str]]) -> Any:
    """A module of kernels, each of which stores its number, and a function that launches the last one."""
    text = "".join(
        KERNELS.format(outer=quote(outer), name=quote(name), value=10 * i) for i, (outer, name) in enumerate(names)
    )
    outer, name = names[-1]
    return parse_module(
        text
        + f"""func.func @main(%m: memref<4xi32>) {{
          %c1 = arith.constant 1 : index
          %c4 = arith.constant 4 : index
          gpu.launch_func @{quote(outer)}::@{quote(name)} blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1)
              args(%m : memref<4xi32>)
          return
        }}"""
    )


def test_kernels_of_any_name_run() -> None:
    """One name may stand in several modules."""
    from nablair.ir.types import I32, TensorType

    random = Random(3)
    names = [n for n in any_names() if n]
    device: Any = get_device("ptx-sim")
    for _ in range(cases(6)):
        inner = random.sample(names, 2)
        outer = random.sample(names, 3)
        module = kernels([(outer[0], inner[0]), (outer[1], inner[1]), (outer[2], inner[0])])
        assert len(set(kernel_names(module).values())) == 3
        executable = device.build(module, "main", (), (TensorType([4], I32),))
        (found,) = executable.run([])
        assert found.tolist() == [20, 21, 22, 23]
        assert opencl_text(module).count("__kernel") == ptx_text(module).count(".entry") == 3


def test_two_symbols_never_share_a_name() -> None:
    close = ["a b", "a_x20b", "a__x20b", "nbx_a_x20b", "nb_a", "nb_nb_a", "a", "nbx_a", "nb_nbx_a"]
    for a, b in combinations(close, 2):
        assert function_name(a) != function_name(b)
        assert kernel_name(a) != kernel_name(b)

"""Conversions and extremes of numbers are the same in the interpreter and on every device: exact, then rounded once."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from fuzzing import cases

from nablair.ir.float_bits import bits_to_float, float_to_bits
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.types import BF16, F16, F32, F64, FloatType
from nablair.ir.verifier import verify
from nablair.runtime.compile import compile_function
from nablair.runtime.devices.opencl import count as opencl_count

pytestmark = pytest.mark.fuzz

FLOATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
INTEGERS = ("i8", "i16", "i32", "i64")
DEVICES = ["interpreter", "cpu", "ptx-sim", *(["opencl"] if opencl_count() else [])]
DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip


def program(body: str, ins: dict[str, str], outs: dict[str, str], count: int) -> Any:
    """A function of one launch over `count` points."""

    def group(types: dict[str, str]) -> str:
        return ", ".join(f"%{n} : tensor<{count}x{t}>" for n, t in types.items())

    loads = "\n".join(f"%{n}_in = kernel.load %{n}[%i]" for n in ins)
    results = ", ".join(f"tensor<{count}x{t}>" for t in outs.values())
    names = ", ".join("%" + n for n in outs)
    module = parse_module(
        f"""func.func @main({group(ins).replace(" :", ":")}) -> ({results}) {{
          {names} = kernel.launch (%i) in ({count}) ins({group(ins)}) outs({group(outs)}) {{
            {loads}
            {body}
          }}
          return {names} : {results}
        }}"""
    )
    verify(module)
    return module


def run(module: Any, arrays: list[Any], device: str) -> list[Any]:
    """The results of @main."""
    if device == "interpreter":
        return list(Interpreter(module).call("main", [a.copy() for a in arrays]))
    return list(compile_function(module, "main", device).run(arrays))


@cache
def float_values(name: str) -> Any:
    """Values at the edges of a type and of the integers, and between them."""
    type = FLOATS[name]
    random = np.random.default_rng(1)
    top = (1 << type.width - 1) - 1
    inf = ((1 << type.exponent_bits) - 1) << type.mantissa_bits
    bits = [0, 1, 2, inf - 1, inf, inf + 1, inf | 1 << (type.mantissa_bits - 1), top]
    numbers = [
        s * (2.0**k + d) for k in (0, 7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1, -0.5, 0, 0.5, 1) for s in (1, -1)
    ]
    bits += [float_to_bits(v, type) for v in numbers]
    bits += [int(b) for b in random.integers(0, top, cases(40))]
    signs = [b | 1 << (type.width - 1) for b in bits if not b >> (type.width - 1)]
    return np.array([*bits, *signs], f"u{type.width // 8}").view(DTYPES[name])


def integer_values(name: str) -> Any:
    """Integers at powers of two, beside the halves between floats, and any."""
    random = np.random.default_rng(2)
    width = int(name[1:])
    numbers = {0, 1, -1, 4097, 1000}
    for k in range(1, width):
        for precision in (8, 11, 24, 53):
            tie = (1 << k) + (1 << max(k - precision, 0))
            numbers |= (
                {(1 << k) + d for d in (-1, 0, 1)} | {tie + d for d in (-1, 0, 1)} | {-tie + d for d in (-1, 0, 1)}
            )
    numbers |= {int(n) for n in random.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1, cases(40), endpoint=True)}
    return np.array(
        sorted({((n & ((1 << width) - 1)) ^ 1 << (width - 1)) - (1 << (width - 1)) for n in numbers}), DTYPES[name]
    )


def rounded(number: int, type: FloatType) -> int:
    """The bits of an integer rounded once, to nearest even, worked out in integers."""
    sign, number = (1 << (type.width - 1) if number < 0 else 0), abs(number)
    if not number:
        return 0
    extra = number.bit_length() - 1 - type.mantissa_bits
    if extra > 0:
        rest, number = number & ((1 << extra) - 1), number >> extra
        number += rest > 1 << (extra - 1) or (rest == 1 << (extra - 1) and number & 1)
        number <<= extra
    limit = (1 << type.exponent_bits) - 1
    exponent = number.bit_length() - 1 + (limit >> 1)
    if exponent >= limit:
        return sign | limit << type.mantissa_bits
    shift = number.bit_length() - 1 - type.mantissa_bits
    mantissa = number >> shift if shift > 0 else number << -shift
    return sign | exponent << type.mantissa_bits | mantissa & ((1 << type.mantissa_bits) - 1)


def same_bits(found: Any, expected: Any, message: str) -> None:
    """Equal bit for bit, one NaN being like another."""
    found, expected = np.asarray(found), np.asarray(expected)
    view = f"u{expected.dtype.itemsize}"
    wrong = found.view(view) != expected.view(view)
    if expected.dtype.kind not in "iub":
        with np.errstate(invalid="ignore"):
            wrong &= (found == found) | (expected == expected)
    assert not wrong.any(), f"{message} at {np.flatnonzero(wrong)[:5]}: {found[wrong][:5]}, not {expected[wrong][:5]}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_floats(source: str, device: str) -> None:
    x = integer_values(source)
    outs = {f"{op}_{t}": t for op in ("sitofp", "uitofp") for t in FLOATS}
    lines = [
        f"%v_{n} = arith.{n.split('_')[0]} %x_in : {source} to {t}\nkernel.store %v_{n}, %{n}[%i]"
        for n, t in outs.items()
    ]
    found = run(program("\n".join(lines), {"x": source}, outs, len(x)), [x], device)
    for (name, target), array in zip(outs.items(), found, strict=True):
        numbers = x.view(f"u{x.itemsize}") if name.startswith("u") else x
        bits = np.array([rounded(int(n), FLOATS[target]) for n in numbers], f"u{FLOATS[target].width // 8}")
        same_bits(array, bits.view(DTYPES[target]), f"{source} by {name}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_integers(source: str, device: str) -> None:
    x = float_values(source)
    outs = {f"{op}_{t}": t for op in ("fptosi", "fptoui") for t in INTEGERS}
    lines = [
        f"%v_{n} = arith.{n.split('_')[0]} %x_in : {source} to {t}\nkernel.store %v_{n}, %{n}[%i]"
        for n, t in outs.items()
    ]
    found = run(program("\n".join(lines), {"x": source}, outs, len(x)), [x], device)
    for (name, target), array in zip(outs.items(), found, strict=True):
        width = int(target[1:])
        low, high = (0, (1 << width) - 1) if "ui" in name else (-(1 << (width - 1)), (1 << (width - 1)) - 1)
        expected: list[int] = []
        for bits in x.view(f"u{x.itemsize}"):
            value = bits_to_float(int(bits), FLOATS[source])
            expected.append(
                0
                if value != value
                else high
                if value == np.inf
                else low
                if value == -np.inf
                else min(max(int(Fraction(value)), low), high)
            )
        same_bits(
            array, np.array([e & ((1 << width) - 1) for e in expected], f"u{width // 8}").view(DTYPES[target]), name
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", FLOATS)
def test_floats_to_floats(source: str, device: str) -> None:
    x = float_values(source)
    width = FLOATS[source].width
    outs = {f"{'extf' if t.width > width else 'truncf'}_{n}": n for n, t in FLOATS.items() if t.width != width}
    lines = [
        f"%v_{n} = arith.{n.split('_')[0]} %x_in : {source} to {t}\nkernel.store %v_{n}, %{n}[%i]"
        for n, t in outs.items()
    ]
    found = run(program("\n".join(lines), {"x": source}, outs, len(x)), [x], device)
    for (name, target), array in zip(outs.items(), found, strict=True):
        values = [bits_to_float(int(b), FLOATS[source]) for b in x.view(f"u{x.itemsize}")]
        bits = np.array([float_to_bits(v, FLOATS[target]) for v in values], f"u{FLOATS[target].width // 8}")
        same_bits(array, bits.view(DTYPES[target]), f"{source} by {name}")


def extremum(name: str, a: float, b: float) -> float:
    """IEEE 754-2019, 9.6: -0 is less than +0; maximum and minimum keep NaN, the others prefer a number."""
    if a != a or b != b:
        return float("nan") if name.endswith("imumf") or (a != a and b != b) else b if a != a else a
    pick = max if name.startswith("max") else min
    return pick(a, b, key=lambda v: (v, np.copysign(1.0, v)))


EXTREMA = ("maximumf", "minimumf", "maxnumf", "minnumf")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", FLOATS)
def test_extremes_of_floats(source: str, device: str) -> None:
    values = float_values(source)
    picked = values[[0, 1, 4, 5, 6, 8, 9, 40, *(len(values) // 2 + i for i in (0, 1, 4, 5, 6, 8))]]
    a, b = (m.reshape(-1).copy() for m in np.meshgrid(picked, picked))
    outs = {n: source for n in EXTREMA}
    lines = [f"%v_{n} = arith.{n} %a_in, %b_in : {source}\nkernel.store %v_{n}, %{n}[%i]" for n in outs]
    found = run(program("\n".join(lines), {"a": source, "b": source}, outs, len(a)), [a, b], device)
    for name, array in zip(outs, found, strict=True):
        pairs = zip(
            *([bits_to_float(int(n), FLOATS[source]) for n in v.view(f"u{v.itemsize}")] for v in (a, b)), strict=True
        )
        bits = [float_to_bits(extremum(name, *p), FLOATS[source]) for p in pairs]
        same_bits(array, np.array(bits, f"u{a.itemsize}").view(DTYPES[source]), f"{name} of {source}")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("source", FLOATS)
def test_bits_pass_through(source: str, device: str) -> None:
    """Loads, stores, choices, bit casts and constants keep every bit, also of a NaN that signals."""
    type = FLOATS[source]
    x = float_values(source)
    integer = f"i{type.width}"
    nan = f"0x{(((1 << type.exponent_bits) - 1) << type.mantissa_bits) + 5:X}"
    outs = {"copied": source, "chosen": source, "bits": integer, "back": source, "constant": source}
    body = f"""
      %k = arith.constant {nan} : {source}
      kernel.store %x_in, %copied[%i]
      %same = arith.cmpi eq, %n_in, %n_in : {integer}
      %v0 = arith.select %same, %x_in, %k : {source}
      kernel.store %v0, %chosen[%i]
      %v1 = arith.bitcast %x_in : {source} to {integer}
      kernel.store %v1, %bits[%i]
      %v2 = arith.bitcast %n_in : {integer} to {source}
      kernel.store %v2, %back[%i]
      kernel.store %k, %constant[%i]"""
    numbers = x.view(DTYPES[integer])
    found = run(program(body, {"x": source, "n": integer}, outs, len(x)), [x, numbers], device)
    for name, array in zip(outs, found, strict=True):
        bits = np.full(len(x), int(nan, 16), numbers.dtype) if name == "constant" else numbers
        wrong = np.asarray(array).view(numbers.dtype) != bits
        assert not wrong.any(), f"{name}: {np.asarray(array).view(f'u{x.itemsize}')[wrong][:4]} {bits[wrong][:4]}"

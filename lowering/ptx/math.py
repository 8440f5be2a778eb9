"""Emission of `math`: only functions that PTX has exactly.  The others were expanded before."""

from __future__ import annotations

from typing import Any

from ...ir.types import F16, F64
from .arith import as_single, from_single, signed
from .function import Function, emits
from .registers import is_narrow_float, register_class

ROUNDING = {"math.roundeven": "rni", "math.floor": "rmi", "math.ceil": "rpi", "math.trunc": "rzi"}


@emits(*ROUNDING)
def _round(f: Function, op: Any) -> None:
    type = op.result.type
    kind = "f64" if type is F64 else "f32"
    value = as_single(f, op.operand) if is_narrow_float(type) else f.held(op.operand)
    result = f.value(kind, f"cvt.{ROUNDING[op.name]}.{kind}.{kind}", value)
    f.bind(op.result, from_single(f, result, type) if is_narrow_float(type) else result)


@emits("math.sqrt", "math.absf")
def _function(f: Function, op: Any) -> None:
    type = op.result.type
    instruction = "sqrt.rn" if op.name == "math.sqrt" else "abs"
    if is_narrow_float(type):
        f.bind(op.result, from_single(f, f.value("f32", f"{instruction}.f32", as_single(f, op.operand)), type))
    else:
        f.set(op.result, f"{instruction}.{register_class(type)}", f.held(op.operand))


@emits("math.copysign")
def _copysign(f: Function, op: Any) -> None:
    type = op.result.type
    if is_narrow_float(type):
        magnitude, sign = as_single(f, op.lhs), as_single(f, op.rhs)
        f.bind(op.result, from_single(f, f.value("f32", "copysign.f32", sign, magnitude), type))
    else:
        # PTX takes the sign from the first operand.
        f.set(op.result, f"copysign.{register_class(type)}", f.held(op.rhs), f.held(op.lhs))


@emits("math.fma")
def _fma(f: Function, op: Any) -> None:
    type = op.result.type
    if is_narrow_float(type):
        f.set(op.result, f"fma.rn.{'f16' if type is F16 else 'bf16'}", *(f.held(v) for v in op.operands))
    else:
        f.set(op.result, f"fma.rn.{register_class(type)}", *f.operands(op))


@emits("math.absi")
def _absi(f: Function, op: Any) -> None:
    type = op.result.type
    kind = register_class(type)
    if kind == "pred":
        f.bind(op.result, f.of(op.operand))
    else:
        f.set(op.result, f"abs.s{kind[1:]}", f.in_register(signed(f, op.operand), type))

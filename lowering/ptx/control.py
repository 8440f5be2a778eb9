"""Emission of `scf`: structured control flow as labels and predicated branches.

Loops test at the bottom, behind a guard that constant bounds make unnecessary.  A counter whose bounds are small
constants lives in 32 bits.
"""

from __future__ import annotations

from typing import Any

from ...ir.dialects import memref
from ...ir.types import IndexType
from ..emission import check_step
from .function import Function, emits
from .registers import is_immediate, register_class

NARROW = 1 << 31


@emits("scf.for")
def _for(f: Function, op: Any) -> None:
    check_step(op)
    carried = [f.variable(a.type) for a in op.carried]
    f.assign(carried, op.inits)
    for argument, register in zip(op.carried, carried, strict=True):
        f.bind(argument, register)
    low, high, step = f.of(op.lower), f.of(op.upper), f.of(op.step)
    known = all(is_immediate(v) for v in (low, high, step))
    is_index = isinstance(op.lower.type, IndexType)
    narrow = is_index and known and int(low) >= 0 and int(high) + int(step) < NARROW
    kind = "b32" if narrow else register_class(op.lower.type)
    bits = kind[1:]
    counter = f.register(kind)
    body, done = f.fresh_label("loop"), f.fresh_label("end")
    f.line(f"mov.{kind} {counter}, {low}")
    if not (known and int(low) < int(high)):
        enters = f.value("pred", f"setp.lt.s{bits}", counter, high)
        f.line(f"@!{enters} bra {done}")
    f.label(body)
    if narrow:
        f.narrow[op.counter] = counter
        if any(not isinstance(u, memref.Load | memref.Store) for u in op.counter.users):
            f.bind(op.counter, f.value("b64", "cvt.u64.u32", counter))
        else:
            f.bind(op.counter, counter)
    else:
        f.bind(op.counter, counter)
    last = f.block(op.body.block)
    f.assign(carried, last.operands)
    f.line(f"add.s{bits} {counter}, {counter}, {step}")
    again = f.value("pred", f"setp.lt.s{bits}", counter, high)
    f.line(f"@{again} bra {body}")
    f.label(done)
    for result, register in zip(op.results, carried, strict=True):
        f.bind(result, register)


@emits("scf.if")
def _if(f: Function, op: Any) -> None:
    results = [f.variable(r.type) for r in op.results]
    condition = f.held(op.condition)
    has_else = bool(op.otherwise.blocks)
    done = f.fresh_label("end")
    otherwise = f.fresh_label("else") if has_else else done
    f.line(f"@!{condition} bra {otherwise}")
    f.assign(results, f.block(op.then.block).operands)
    if has_else:
        f.line(f"bra {done}")
        f.label(otherwise)
        f.assign(results, f.block(op.otherwise.block).operands)
    f.label(done)
    for result, register in zip(op.results, results, strict=True):
        f.bind(result, register)


@emits("scf.while")
def _while(f: Function, op: Any) -> None:
    arguments = op.before.block.arguments
    carried = [f.variable(a.type) for a in arguments]
    results = [f.variable(r.type) for r in op.results]
    f.assign(carried, op.inits)
    for argument, register in zip(arguments, carried, strict=True):
        f.bind(argument, register)
    head, done = f.fresh_label("loop"), f.fresh_label("end")
    f.label(head)
    condition, *passed = f.block(op.before.block).operands
    test = f.held(condition)
    f.assign(results, passed)
    f.line(f"@!{test} bra {done}")
    for argument, register in zip(op.after.block.arguments, results, strict=True):
        f.bind(argument, register)
    f.assign(carried, f.block(op.after.block).operands)
    f.line(f"bra {head}")
    f.label(done)
    for result, register in zip(op.results, results, strict=True):
        f.bind(result, register)

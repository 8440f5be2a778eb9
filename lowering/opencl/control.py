"""Emission of `scf`: structured control flow is structured in C too; carried values are variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.types import IndexType
from ...ir.values import Value
from ..emission import check_step
from .function import Function, emits
from .types import signed


def declare(f: Function, type: Any, init: str | None = None) -> str:
    """A variable that changes; its name."""
    name = f.fresh("c")
    f.line(f"{f.type_of(type)} {name}{'' if init is None else f' = {init}'};")
    return name


def assign(f: Function, variables: Sequence[str], values: Sequence[Value]) -> None:
    """Give variables their next values, all at once: one that another one takes over is kept first."""
    texts = [f.of(v) for v in values]
    for i, (value, text) in enumerate(zip(values, texts, strict=True)):
        if text in variables[:i]:
            kept = f.fresh()
            f.line(f"const {f.type_of(value.type)} {kept} = {text};")
            texts[i] = kept
    for variable, text in zip(variables, texts, strict=True):
        if variable != text:
            f.line(f"{variable} = {text};")


@emits("scf.for")
def _for(f: Function, op: Any) -> None:
    check_step(op)
    variables = [declare(f, a.type, f.of(v)) for a, v in zip(op.carried, op.inits, strict=True)]
    for argument, name in zip(op.carried, variables, strict=True):
        f.bind(argument, name)
    type = op.lower.type
    counter = f.fresh("i")
    f.bind(op.counter, counter)
    low, high, step = f.of(op.lower), f.of(op.upper), f.of(op.step)
    sign = "" if isinstance(type, IndexType) else f"({signed(type)})"
    test = f"{sign}{counter} < {sign}{high}"
    with f.nested(f"for ({f.type_of(type)} {counter} = {low}; {test}; {counter} += {step})"):
        last = f.block(op.body.block)
        assign(f, variables, last.operands)
    for result, name in zip(op.results, variables, strict=True):
        f.bind(result, name)


@emits("scf.if")
def _if(f: Function, op: Any) -> None:
    variables = [declare(f, r.type) for r in op.results]
    with f.nested(f"if ({f.of(op.condition)})"):
        assign(f, variables, f.block(op.then.block).operands)
    if op.otherwise.blocks:
        f.lines[-1] += " else {"
        f.depth += 1
        assign(f, variables, f.block(op.otherwise.block).operands)
        f.depth -= 1
        f.line("}")
    for result, name in zip(op.results, variables, strict=True):
        f.bind(result, name)


@emits("scf.while")
def _while(f: Function, op: Any) -> None:
    carried = op.before.block.arguments
    variables = [declare(f, a.type, f.of(v)) for a, v in zip(carried, op.inits, strict=True)]
    results = [declare(f, r.type) for r in op.results]
    for argument, name in zip(carried, variables, strict=True):
        f.bind(argument, name)
    with f.nested("for (;;)"):
        condition, *passed = f.block(op.before.block).operands
        assign(f, results, passed)
        f.line(f"if (!{f.of(condition)}) break;")
        for argument, name in zip(op.after.block.arguments, results, strict=True):
            f.bind(argument, name)
        assign(f, variables, f.block(op.after.block).operands)
    for result, name in zip(op.results, results, strict=True):
        f.bind(result, name)

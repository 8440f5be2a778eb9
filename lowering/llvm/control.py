"""Emission of `scf` and `func`: structured control flow as blocks.

Loops test at the bottom, behind a guard that constant bounds make unnecessary: one branch a trip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.attribute_names import WORKER
from ...ir.diagnostics import LoweringError
from ...ir.types import DYNAMIC, IndexType, MemRefType
from ...ir.values import Value
from ..emission import check_step
from .failure import returned
from .function import Buffer, Function, emits
from .memory import entries
from .parallel import emit_tasks
from .types import llvm_type


def counted_loop(
    f: Function,
    counter: Value,
    bounds: tuple[int | str, int | str, int | str],
    text: str,
    carried: Sequence[tuple[Value, str]],
    body: Callable[[], Sequence[str]],
) -> list[str]:
    """Emit a loop; `carried` are (argument, initial operand), `body` emits a trip and returns the next operands.

    The results: what the carried values are after the loop."""
    low, high, step = bounds
    number = f.fresh()
    before = f.current
    start, end, done = f"body{number}", f"latch{number}", f"done{number}"
    certain = isinstance(low, int) and isinstance(high, int) and low < high
    if certain:
        f.line(f"br label %{start}")
    else:
        enters = f.value(f"icmp slt {text} {low}, {high}")
        f.line(f"br i1 {enters}, label %{start}, label %{done}")
    f.label(start)
    trip = f"%i{number}"
    following = f"%n{number}"
    f.line(f"{trip} = phi {text} [ {low}, %{before} ], [ {following}, %{end} ]")
    f.bind(counter, trip)
    places: list[int] = []
    for argument, _ in carried:
        f.bind(argument, f"%{f.fresh('c')}")
        places.append(len(f.lines))
        f.lines.append("")
    with f.scope():
        nexts = list(body())
    f.line(f"br label %{end}")
    f.label(end)
    for place, (argument, init), new in zip(places, carried, nexts, strict=True):
        kind = llvm_type(argument.type)
        f.lines[place] = f"  {f.of(argument)} = phi {kind} [ {init}, %{before} ], [ {new}, %{end} ]"
    f.line(f"{following} = add nsw {text} {trip}, {step}")
    again = f.value(f"icmp slt {text} {following}, {high}")
    f.line(f"br i1 {again}, label %{start}, label %{done}")
    f.label(done)
    if certain:
        return nexts
    return [
        f.value(f"phi {llvm_type(a.type)} [ {init}, %{before} ], [ {new}, %{end} ]")
        for (a, init), new in zip(carried, nexts, strict=True)
    ]


@emits("scf.for")
def _for(f: Function, op: Any) -> None:
    check_step(op)
    type = op.lower.type
    low, high, step = (f.index(v) if isinstance(type, IndexType) else f.of(v) for v in (op.lower, op.upper, op.step))
    carried = [(a, f.of(v)) for a, v in zip(op.carried, op.inits, strict=True)]

    def body() -> list[str]:
        return [f.of(v) for v in f.block(op.body.block).operands]

    results = counted_loop(f, op.counter, (low, high, step), llvm_type(type), carried, body)
    for result, text in zip(op.results, results, strict=True):
        f.bind(result, text)


@emits("scf.forall")
def _forall(f: Function, op: Any) -> None:
    """Points in row-major order, on the calling thread; those of a loop over tasks on any."""
    if WORKER in op.attributes:
        emit_tasks(f, op)
        return
    bounds = list(zip(entries(f, op.lower), entries(f, op.upper), entries(f, op.step), strict=True))

    def nest(depth: int) -> list[str]:
        if depth == len(bounds):
            f.block(op.body.block)
        else:
            counted_loop(f, op.axes[depth], bounds[depth], "i64", (), lambda: nest(depth + 1))
        return []

    nest(0)


@emits("scf.if")
def _if(f: Function, op: Any) -> None:
    number = f.fresh()
    then, otherwise, done = f"then{number}", f"else{number}", f"end{number}"
    has_else = bool(op.otherwise.blocks)
    f.line(f"br i1 {f.of(op.condition)}, label %{then}, label %{otherwise if has_else else done}")
    ends: list[tuple[str, list[str]]] = []
    for label, region in ((then, op.then), (otherwise, op.otherwise)):
        if not region.blocks:
            continue
        f.label(label)
        with f.scope():
            values = [f.of(v) for v in f.block(region.block).operands]
        ends.append((f.current, values))
        f.line(f"br label %{done}")
    f.label(done)
    for i, result in enumerate(op.results):
        sources = ", ".join(f"[ {values[i]}, %{block} ]" for block, values in ends)
        f.bind(result, f.value(f"phi {llvm_type(result.type)} {sources}"))


@emits("scf.while")
def _while(f: Function, op: Any) -> None:
    number = f.fresh()
    head, body, done = f"head{number}", f"body{number}", f"done{number}"
    before = f.current
    f.line(f"br label %{head}")
    f.label(head)
    places: list[int] = []
    for argument in op.before.block.arguments:
        f.bind(argument, f"%{f.fresh('c')}")
        places.append(len(f.lines))
        f.lines.append("")
    with f.scope():
        condition = f.block(op.before.block)
    test, *passed = [f.of(v) for v in condition.operands]
    f.line(f"br i1 {test}, label %{body}, label %{done}")
    f.label(body)
    for argument, text in zip(op.after.block.arguments, passed, strict=True):
        f.bind(argument, text)
    with f.scope():
        nexts = [f.of(v) for v in f.block(op.after.block).operands]
    end = f.current
    f.line(f"br label %{head}")
    for place, argument, init, new in zip(places, op.before.block.arguments, op.inits, nexts, strict=True):
        f.lines[place] = (
            f"  {f.of(argument)} = phi {llvm_type(argument.type)} [ {f.of(init)}, %{before} ], [ {new}, %{end} ]"
        )
    f.label(done)
    for result, text in zip(op.results, passed, strict=True):
        f.bind(result, text)


@emits("cf.assert")
def _assert(f: Function, op: Any) -> None:
    f.require(f.of(op.arg), str(f.facts.statuses[op]))


# Functions.


def expanded(f: Function, value: Value) -> list[tuple[str, str]]:
    """A value as arguments of a call: a buffer is its address, then its dynamic extents."""
    if not isinstance(value.type, MemRefType):
        return [(llvm_type(value.type), f.of(value))]
    buffer = f.buffers[value]
    sizes = [("i64", str(s)) for s, d in zip(buffer.sizes, value.type.shape, strict=True) if d == DYNAMIC]
    return [("ptr", buffer.pointer), *sizes]


@emits("func.call")
def _call(f: Function, op: Any) -> None:
    if op.callee in f.facts.undefined:
        raise LoweringError(f"calls '@{op.callee}', which this module does not define", op.location)
    arguments = ", ".join(f"{t} {v}" for a in op.operands for t, v in expanded(f, a))
    type = llvm_type(op.results[0].type) if op.results else "void"
    if op.callee in f.facts.fallible:
        status = called = f.value(f"call {returned(type, True)} {f.symbols[op.callee]}({arguments})")
        if op.results:
            status = f.value(f"extractvalue {returned(type, True)} {called}, 1")
        f.require(f.value(f"icmp eq i32 {status}, 0"), status)
        if op.results:
            f.bind(op.results[0], f.value(f"extractvalue {returned(type, True)} {called}, 0"))
    elif not op.results:
        f.line(f"call void {f.symbols[op.callee]}({arguments})")
    else:
        f.bind(op.results[0], f.value(f"call {type} {f.symbols[op.callee]}({arguments})"))


@emits("memref.get_global")
def _get_global(f: Function, op: Any) -> None:
    type = op.result.type
    strides = f.row_major(type.shape)
    f.buffers[op.result] = Buffer(f.symbols[op.symbol], type.shape, strides)

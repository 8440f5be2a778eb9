"""Emission of loops over tasks: the body becomes a function, and a call hands its points to the workers.

    scf.forall (%t) in (32) {..} {nablair.worker}
        becomes
    store ..values that the body uses.. in %context
    call void @"nablair.parallel"(ptr @task1, ptr %context, i64 32)

    define internal void @task1(ptr %context, i64 %task): loads the values and calls @task1.body with them

One task alone runs at once, without the workers.
"""

from __future__ import annotations

from typing import Any

from ...ir.captures import captured
from ...ir.operations import Operation
from ...ir.values import Value
from .failure import can_fail, leaving, returned
from .function import Buffer, Function
from .memory import entries
from .types import llvm_type

PARALLEL = '"nablair.parallel"'


def emit_tasks(f: Function, op: Any) -> None:
    """Emit a forall whose points are tasks."""
    (tasks,) = entries(f, op.upper)
    name = f"nb.task{len(f.declarations)}"  # no name of a module has a dot
    f.declarations[name] = ""
    passed = _captured(f, op)
    types = [t for _, t in passed]
    parameters = ", ".join(f"{t} %q{i}" for i, t in enumerate(types))
    arguments = ", ".join(f"{t} %v{i}" for i, t in enumerate(types))
    fails = can_fail(op, f.facts.fallible)
    result = returned("void", fails)
    g = Function(f.declarations, f.facts, leaving("void") if fails else None, f.symbols)
    local = {text: f"%q{i}" for i, (text, _) in enumerate(passed)}
    _bind(f, g, op, local)
    g.bind(op.axes[0], "%task")
    g.block(op.body.block)
    structure = "{ " + ", ".join([*types, "i32"] if fails else types) + " }"
    wrapper = [f"define internal void @{name}(ptr %context, i64 %task) #0 {{"]
    for i, type in enumerate(types):
        wrapper.append(f"  %p{i} = getelementptr {structure}, ptr %context, i32 0, i32 {i}")
        wrapper.append(f"  %v{i} = load {type}, ptr %p{i}")
    separator = ", " if types else ""
    call = f"call {result} @{name}.body({arguments}{separator}i64 %task)"
    if fails:
        wrapper += [
            f"  %status = {call}",
            "  %bad = icmp ne i32 %status, 0",
            "  br i1 %bad, label %failed, label %done",
            "failed:",
            f"  %place = getelementptr {structure}, ptr %context, i32 0, i32 {len(types)}",
            "  store atomic i32 %status, ptr %place monotonic, align 4",
            "  br label %done",
            "done:",
        ]
    else:
        wrapper.append(f"  {call}")
    wrapper += ["  ret void", "}"]
    head = f"define internal {result} @{name}.body({parameters}{separator}i64 %task) #0 {{"
    body = [head, "entry:", *g.entry, *g.lines, "  ret i32 0" if fails else "  ret void", *g.failures.blocks, "}"]
    f.declarations[name] = "\n".join([*wrapper, *body])
    context = f"%context{f.fresh()}"
    f.entry.append(f"  {context} = alloca {structure}, align 64")
    for i, (text, type) in enumerate(passed):
        place = f.value(f"getelementptr {structure}, ptr {context}, i32 0, i32 {i}")
        f.line(f"store {type} {text}, ptr {place}")
    outcome = ""
    if fails:
        outcome = f.value(f"getelementptr {structure}, ptr {context}, i32 0, i32 {len(types)}")
        f.line(f"store i32 0, ptr {outcome}")
    f.declare(PARALLEL, "void", ["ptr", "ptr", "i64"])
    number = f.fresh()
    many = f.value(f"icmp sgt i64 {tasks}, 1")
    f.line(f"br i1 {many}, label %many{number}, label %few{number}")
    f.label(f"many{number}")
    f.line(f"call void @{PARALLEL}(ptr @{name}, ptr {context}, i64 {tasks})")
    f.line(f"br label %done{number}")
    f.label(f"few{number}")
    one = f.value(f"icmp eq i64 {tasks}, 1")
    f.line(f"br i1 {one}, label %one{number}, label %done{number}")
    f.label(f"one{number}")
    f.line(f"call void @{name}(ptr {context}, i64 0)")
    f.line(f"br label %done{number}")
    f.label(f"done{number}")
    if fails:
        status = f.value(f"load i32, ptr {outcome}")
        f.require(f.value(f"icmp eq i32 {status}, 0"), status)


def _parts(f: Function, value: Value) -> list[tuple[str, str]]:
    """What a value is in the function around: names with their types; numbers and globals need no passing."""
    buffer = f.buffers.get(value)
    if buffer is None:
        return [(f.of(value), llvm_type(value.type))]
    return [(buffer.pointer, "ptr"), *((str(e), "i64") for e in (*buffer.sizes, *buffer.strides))]


def _captured(f: Function, op: Operation) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for value in captured(op, operands=False):
        for text, type in _parts(f, value):
            if text.startswith("%"):
                found[text, type] = None
    return list(found)


def _bind(f: Function, g: Function, op: Operation, local: dict[str, str]) -> None:
    """Say what the values from outside are inside."""
    for value in captured(op, operands=False):
        buffer = f.buffers.get(value)
        if buffer is None:
            g.bind(value, local.get(f.of(value), f.of(value)))
            continue
        sizes, strides = (
            tuple(local.get(e, e) if isinstance(e, str) else e for e in part) for part in (buffer.sizes, buffer.strides)
        )
        g.buffers[value] = Buffer(local.get(buffer.pointer, buffer.pointer), sizes, strides)

"""Loop level to LLVM IR text.

In: a `builtin.module` of functions over memrefs at loop level, after expand-math, with `vector` ops of the host's
width.  Out: LLVM IR text, one instruction or intrinsic for each op; it relies on no LLVM pass pipeline.

    memref.load %x[%i, %j] : memref<?x64xf32>
        becomes
    %1 = mul i64 %i, 64
    %2 = add i64 %1, %j
    %3 = getelementptr inbounds float, ptr %x, i64 %2
    %4 = load float, ptr %3, align 4

A function takes each memref as the address of its first element, followed by an i64 for each dynamic extent; the buffer
is contiguous and row-major.  Functions named by the attribute `nablair.noalias` take buffers that do not overlap.
A function that can fail returns a status (failure.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...ir.attribute_names import NO_ALIAS
from ...ir.diagnostics import LoweringError
from ...ir.dialects import func, memref
from ...ir.operations import Operation
from ...ir.types import DYNAMIC, MemRefType
from ..names import function_name
from . import arith, control, memory, vector
from .failure import Facts, facts_of, leaving, returned
from .function import Function
from .types import literal, llvm_type

EMISSIONS = (arith, control, memory, vector)
"""The modules that register the emission of ops when they are imported."""

RUNTIME_SYMBOLS = frozenset(
    ["aligned_alloc", "free", "memcpy", "memmove", "memset", "bcmp", "nablair.parallel"]
    + [f + s for f in ("ceil", "floor", "fma", "fmod", "rint", "roundeven", "sqrt", "trunc") for s in ("", "f")]
    + ["__extendhfsf2", "__truncsfhf2", "__truncdfhf2", "__gnu_f2h_ieee", "__gnu_h2f_ieee"]
    + ["__divti3", "__modti3", "__udivti3", "__umodti3", "__multi3"]
)
"""All that compiled code may leave open: what the emission calls, and what LLVM makes of its instructions on processors
that lack some."""

ATTRIBUTES = 'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}'
MOST_CONSTANTS = 1 << 24
"""Elements of a constant that is not all zeros: each stands in the text."""


def emit_module(module: Operation, vector_bits: int = 512) -> str:
    """The text of an LLVM module; LoweringError for an op or type that the target does not know."""
    declarations: dict[str, str] = {}
    facts = facts_of(module)
    symbols = _symbols(module)
    parts: list[str] = []
    for op in module.regions[0].blocks[0]:
        if isinstance(op, func.Func):
            # A declaration gives nothing: its call would reach whatever a library of the process has by that name.
            if op.body.blocks:
                parts.append(_function(op, declarations, facts, symbols))
        elif isinstance(op, memref.Global):
            parts.append(_global(op, symbols))
        else:
            raise LoweringError(f"the llvm target has no emission for '{op.name}' in a module", op.location)
    tail = [*declarations.values(), ATTRIBUTES.format(bits=vector_bits), "!0 = !{i32 1}"]
    return "\n".join(parts + tail) + "\n"


def _symbols(module: Operation) -> dict[str, str]:
    """The texts of the functions and globals of a module."""
    found: dict[str, str] = {}
    for op in module.regions[0].blocks[0]:
        if isinstance(op, func.Func | memref.Global):
            found[op.sym_name] = f'@"{function_name(op.sym_name)}"'
    return found


def _function(op: Any, declarations: dict[str, str], facts: Facts, symbols: Mapping[str, str]) -> str:
    results = op.function_type.results
    if len(results) > 1:
        message = f"function '{op.sym_name}' returns {len(results)} values; one is what LLVM has"
        raise LoweringError(message, op.location)
    type = llvm_type(results[0]) if results else "void"
    fails = op.sym_name in facts.fallible
    f = Function(declarations, facts, leaving(type) if fails else None, symbols)
    block = op.body.block
    noalias = "noalias " if NO_ALIAS in op.attributes else ""
    parameters: list[str] = []
    for number, argument in enumerate(block.arguments):
        name = f"%p{number}"
        if isinstance(argument.type, MemRefType):
            parameters.append(f"ptr {noalias}{name}")
            dynamic = [f"{name}.{i}" for i in range(argument.type.shape.count(DYNAMIC))]
            parameters += [f"i64 {d}" for d in dynamic]
            f.buffers[argument] = f.buffer_of(argument.type, name, dynamic)
        else:
            parameters.append(f"{llvm_type(argument.type)} {name}")
            f.bind(argument, name)
    last = f.block(block)
    result = returned(type, fails)
    if not fails:
        f.line(f"ret {f.typed(last.operands[0])}" if last.operands else "ret void")
    elif last.operands:
        value = f.value(f"insertvalue {result} {{ {type} undef, i32 0 }}, {f.typed(last.operands[0])}, 0")
        f.line(f"ret {result} {value}")
    else:
        f.line("ret i32 0")
    linkage = "internal " if op.properties.get("sym_visibility") is not None else ""
    head = f"define {linkage}{result} {symbols[op.sym_name]}({', '.join(parameters)}) #0 {{"
    return "\n".join([head, "entry:", *f.entry, *f.lines, *f.failures.blocks, "}"])


def _global(op: Any, symbols: Mapping[str, str]) -> str:
    value = op.initial_value
    type = op.type
    text = f"[{max(1, type.num_elements)} x {llvm_type(type.element)}]"
    if value is None:
        return f"{symbols[op.sym_name]} = internal global {text} zeroinitializer, align 64"
    if type.num_elements > MOST_CONSTANTS and any(value.bits()):
        message = f"'@{op.sym_name}' is a constant of {type.num_elements} elements, of {MOST_CONSTANTS}; fill a buffer"
        raise LoweringError(message, op.location)
    body = literal(value) if type.num_elements else "zeroinitializer"
    if body == "zeroinitializer":
        # Not `constant`: zeros that could be written take no room in the object.
        return f"{symbols[op.sym_name]} = internal global {text} zeroinitializer, align 64"
    if body.startswith("<"):
        body = "[" + body[1:-1] + "]"
    return f"{symbols[op.sym_name]} = internal constant {text} {body}, align 64"

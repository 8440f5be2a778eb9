"""Loop level to PTX text.

In: a `builtin.module` with kernels in `gpu.module`s, after map-gpu and expand-math.  Out: one PTX module with an
`.entry` for each, virtual registers for values, and branches for structured control flow.

    memref.load %x[%i, %j] : memref<100x64xf32>          // %i, %j from 32-bit numbers in %r4, %r5
        becomes
    mul.lo.s32 %r6, %r4, 64;
    add.s32 %r7, %r6, %r5;
    mad.wide.s32 %rd3, %r7, 4, %rd1;
    ld.global.nc.f32 %f1, [%rd3];

The text is for PTX 7.0 and sm_80, which all later devices take; the assembler allocates registers, schedules and
removes what is not needed.  A kernel takes each memref as an address followed by an `.u64` for each dynamic extent.
"""

from __future__ import annotations

from typing import Any

from ...ir.attribute_names import NO_ALIAS, READ_ONLY
from ...ir.diagnostics import LoweringError
from ...ir.dialects import gpu
from ...ir.operations import Operation
from ...ir.types import DYNAMIC, MemRefType, element_bytes
from ..names import kernel_names
from . import arith, control, math, memory
from . import gpu as gpu_emission
from .function import Function
from .registers import PREFIXES, register_class

EMISSIONS = (arith, control, math, memory, gpu_emission)
"""The modules that register the emission of ops when they are imported."""

HEAD = ".version 7.0\n.target sm_80\n.address_size 64"


def emit_module(module: Operation, prefix: str = "") -> str:
    """The text of a PTX module; LoweringError for an op or type that the target does not know.

    `prefix` goes before the kernels' names.
    """
    return emit_modules([(module, prefix)])


def emit_modules(modules: list[tuple[Operation, str]]) -> str:
    """The kernels of several modules, each with a prefix of its own, in one PTX module."""
    kernels = [
        _kernel(function, prefix + names[outer.sym_name, function.sym_name])
        for module, prefix in modules
        for names in [kernel_names(module)]
        for outer in module.regions[0].block
        if isinstance(outer, gpu.Module)
        for function in outer.body.block
        if isinstance(function, gpu.Func)
    ]
    return "\n\n".join([HEAD, *kernels]) + "\n"


def _kernel(op: gpu.Func, name: str) -> str:
    f = Function(name)
    readonly = getattr(op.attributes.get(READ_ONLY), "values", ()) if NO_ALIAS in op.attributes else ()
    parameters: list[str] = []

    def parameter(kind: str, target: str) -> str:
        symbol = f"{name}_p{len(parameters)}"
        parameters.append(f"\t.param .{kind} {symbol}")
        return f.value(target, f"ld.param.{kind}", f"[{symbol}]")

    for number, argument in enumerate(op.parameters):
        if isinstance(argument.type, MemRefType):
            generic = parameter("u64", "b64")
            pointer = f.value("b64", "cvta.to.global.u64", generic)
            dynamic = [parameter("u64", "b64") for _ in range(argument.type.shape.count(DYNAMIC))]
            constant = number in readonly
            f.buffers[argument] = f.buffer_of(argument.type, pointer, "global", dynamic, constant)
        else:
            kind = register_class(argument.type)
            size = element_bytes(argument.type)
            loaded = kind if kind in ("f32", "f64") else f"u{size * 8}"
            if kind == "pred":
                f.bind(argument, f.value("pred", "setp.ne.u32", parameter("u8", "b32"), "0"))
            else:
                f.bind(argument, parameter(loaded, kind))
    for argument in op.workgroup:
        memory.declare_array(f, argument, "shared")
    for argument in op.private:
        memory.declare_array(f, argument, "local")
    if len(op.body.blocks) != 1:
        raise LoweringError(f"kernel '{op.sym_name}' is not structured: it has several blocks", op.location)
    f.block(op.body.entry)
    f.line("ret")
    size: Any = op.known_block_size
    threads = f"\n.reqntid {', '.join(map(str, size))}" if size is not None else ""
    registers = [f"\t.reg .{kind} %{PREFIXES[kind]}<{count}>;" for kind, count in f.counts.items() if count]
    head = f".visible .entry {name}(\n" + ",\n".join(parameters) + f"\n){threads}\n{{"
    return "\n".join([head, *registers, *f.arrays, *f.lines, "}"])

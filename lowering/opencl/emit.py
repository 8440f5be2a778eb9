"""Loop level to OpenCL C 1.2.

In: a `builtin.module` with kernels in `gpu.module`s, after map-gpu and expand-math.  Out: one program with a `__kernel`
for each, a statement for each op.

    gpu.func @main_k0(%x : memref<?x64xf32>, ..) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
      %0 = memref.load %x[%i, %j] : memref<?x64xf32>
        becomes
    __kernel __attribute__((reqd_work_group_size(256, 1, 1)))
    void main_k0(__global const float* restrict p1, const long n2, ..) {
      const float v9 = p1[v7 * 64 + v8];

Names depend on the IR alone, so equal IR gives equal text.  A kernel takes each memref as a pointer followed by a
`long` for each dynamic extent.  Helper functions, pragmas and extensions appear only where they are used.
"""

from __future__ import annotations

from typing import Any

from ...ir.attribute_names import NO_ALIAS, READ_ONLY
from ...ir.diagnostics import LoweringError
from ...ir.dialects import gpu
from ...ir.operations import Operation
from ...ir.types import DYNAMIC, F64, MemRefType
from ..names import kernel_names
from . import arith, control, math, memory
from . import gpu as gpu_emission
from .function import Function, Program
from .types import memory_type

EMISSIONS = (arith, control, math, memory, gpu_emission)
"""The modules that register the emission of ops when they are imported."""


def emit_module(module: Operation, prefix: str = "") -> str:
    """The text of a program; LoweringError for an op or type that the target does not know.

    `prefix` goes before the kernels' names, so that programs can be put together.
    """
    return emit_modules([(module, prefix)])


def emit_modules(modules: list[tuple[Operation, str]]) -> str:
    """The kernels of several modules, each with a prefix of its own, in one program."""
    program = Program()
    kernels = [
        _kernel(function, program, prefix + names[outer.sym_name, function.sym_name])
        for module, prefix in modules
        for names in [kernel_names(module)]
        for outer in module.regions[0].block
        if isinstance(outer, gpu.Module)
        for function in outer.body.block
        if isinstance(function, gpu.Func)
    ]
    head: list[str] = []
    if program.double:
        head.append("#pragma OPENCL EXTENSION cl_khr_fp64 : enable")
    if program.floats:
        head.append("#pragma OPENCL FP_CONTRACT OFF")
    return "\n\n".join(part for part in ("\n".join(head), *program.helpers.values(), *kernels) if part) + "\n"


def _kernel(op: gpu.Func, program: Program, kernel: str) -> str:
    f = Function(program)
    readonly = getattr(op.attributes.get(READ_ONLY), "values", ())
    restrict = " restrict" if NO_ALIAS in op.attributes else ""
    parameters: list[str] = []
    for number, argument in enumerate(op.parameters):
        if isinstance(argument.type, MemRefType):
            name = f.fresh("p")
            if argument.type.element is F64:
                program.double = True
            constant = "const " if number in readonly else ""
            parameters.append(f"__global {constant}{memory_type(argument.type.element)}*{restrict} {name}")
            dynamic = [f.fresh("n") for _ in range(argument.type.shape.count(DYNAMIC))]
            parameters += [f"const long {d}" for d in dynamic]
            f.buffers[argument] = f.buffer_of(argument.type, name, "__global", dynamic)
        else:
            name = f.fresh("n")
            parameters.append(f"const {f.type_of(argument.type)} {name}")
            f.bind(argument, name)
    for argument in op.workgroup:
        memory.declare_array(f, argument, "__local")
    for argument in op.private:
        memory.declare_array(f, argument, "__private")
    if len(op.body.blocks) != 1:
        raise LoweringError(f"kernel '{op.sym_name}' is not structured: it has several blocks", op.location)
    f.block(op.body.entry)
    size: Any = op.known_block_size
    attribute = f" __attribute__((reqd_work_group_size({', '.join(map(str, size))})))" if size is not None else ""
    head = f"__kernel{attribute}\nvoid {kernel}({', '.join(parameters)}) {{"
    return "\n".join([head, *f.head, *f.lines, "}"])

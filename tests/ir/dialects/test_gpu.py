"""gpu: both forms as mlir-opt takes them, verifier messages, builders."""

import re

import pytest
from find import every, first
from mlir_opt import check_forms, parse

from nablair.ir.builder import Builder
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import gpu
from nablair.ir.effects import is_pure
from nablair.ir.operations import Block
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import F32, INDEX, MemRefType
from nablair.ir.verifier import verify

SHARED = "memref<256xf32, #gpu.address_space<workgroup>>"
OWN = "memref<4xf32, #gpu.address_space<private>>"
KERNEL = f"""
module attributes {{gpu.container_module}} {{
  gpu.module @k {{
    gpu.func @a(%x : memref<64xf32>, %n: index) workgroup(%s : {SHARED}, %t : {SHARED}) private(%p : {OWN}) kernel
        attributes {{known_block_size = array<i32: 64, 1, 1>, known_grid_size = array<i32: 2, 1, 1>, tuned = 1}} {{
      %b = gpu.block_id x
      %i = gpu.thread_id y
      %g = gpu.grid_dim z
      %d = gpu.block_dim x
      %u = gpu.thread_id x upper_bound 256
      gpu.barrier
      %f = arith.constant 1.0 : f32
      %o = arith.constant 1 : i32
      %w = arith.constant 32 : i32
      %q, %v = gpu.shuffle down %f, %o, %w : f32
      %q2, %v2 = gpu.shuffle xor %f, %o, %w : f32
      gpu.return
    }}
    gpu.func @twice(%x : f32) -> f32 {{
      %y = arith.addf %x, %x : f32
      gpu.return %y : f32
    }}
    gpu.func @pair(%x : f32) -> (f32, f32) {{
      gpu.return %x, %x : f32, f32
    }}
    gpu.func @nothing() kernel {{
      gpu.return
    }}
  }}
  gpu.module @empty [#nvvm.target] {{
  }}
  func.func @main(%x : memref<64xf32>, %n: index, %bytes: i32) {{
    %c1 = arith.constant 1 : index
    gpu.launch_func @k::@a blocks in (%n, %c1, %c1) threads in (%n, %c1, %c1)
      args(%x : memref<64xf32>, %n : index) {{id = 1 : i64}}
    gpu.launch_func @k::@nothing blocks in (%n, %c1, %c1) threads in (%n, %c1, %c1) dynamic_shared_memory_size %bytes
    return
  }}
}}
"""


def test_forms():
    check_forms(KERNEL)


def test_generic_form_has_the_symbol_outside_of_the_properties():
    text = print_op(parse(KERNEL), generic=True)
    assert '"gpu.func"() <{function_type = (f32) -> f32}>' in text
    assert '{sym_name = "twice", workgroup_attributions = 0 : i64}' in text
    assert '"gpu.module_end"() : () -> ()' in text


def test_kernel_in_parts():
    module = parse(KERNEL)
    kernel, twice = every(module, gpu.Func)[:2]
    assert kernel.is_kernel and not twice.is_kernel
    assert [a.name for a in kernel.parameters] == ["x", "n"]
    assert [a.name for a in kernel.workgroup] == ["s", "t"] and [a.name for a in kernel.private] == ["p"]
    assert kernel.known_block_size == (64, 1, 1)
    launch = first(module, gpu.LaunchFunc)
    assert [v.name for v in launch.grid] == ["n", "c1", "c1"] and launch.shared_size is None
    assert [v.name for v in launch.arguments] == ["x", "n"]


def in_kernel(body, header="kernel"):
    return f"gpu.module @k {{ gpu.func @a(%x : f32, %i : i32, %n : index) {header} {{ {body} gpu.return }} }}"


def launch(text):
    return (
        "module attributes {gpu.container_module} { gpu.module @k { gpu.func @a() kernel { gpu.return } }\n"
        f"func.func @f(%n: index, %i: i32, %x: f32) {{ {text}\n return }} }}"
    )


ERRORS = {
    "return": ("gpu.module @k { gpu.func @a() -> f32 { gpu.return } }", "must return (f32) from @a, got ()"),
    "results of a kernel": (
        "gpu.module @k { gpu.func @a(%x : f32) -> f32 kernel { gpu.return %x : f32 } }",
        "is a kernel and so cannot return values",
    ),
    "space": (
        in_kernel("", "workgroup(%s : memref<4xf32>) kernel"),
        "needs workgroup buffers in the memory space #gpu.address_space<workgroup>, got memref<4xf32>",
    ),
    "dimension": (in_kernel("%t = gpu.thread_id w"), "expected a dimension x, y or z, got w"),
    "shuffle mode": (
        in_kernel("%a, %b = gpu.shuffle left %x, %i, %i : f32"),
        "expected one of xor, up, down, idx, got left",
    ),
    "shuffle offset": (
        in_kernel("%a, %b = gpu.shuffle up %x, %n, %i : f32"),
        "needs an offset and a width of type i32",
    ),
    "shuffle type": (
        in_kernel("%a, %b = gpu.shuffle up %n, %i, %i : index"),
        "moves values of type i32, i64, f32 or f64, got index",
    ),
    "kernel name": (
        launch("gpu.launch_func @a blocks in (%n, %n, %n) threads in (%n, %n, %n)"),
        "form @module::@function",
    ),
    "three sizes": (
        launch("gpu.launch_func @k::@a blocks in (%n, %n) threads in (%n, %n, %n)"),
        "three sizes for the grid",
    ),
    "size types": (
        launch("gpu.launch_func @k::@a blocks in (%n, %n, %i) threads in (%n, %n, %n)"),
        "needs six sizes of one integer type",
    ),
    "no such kernel": (
        launch("gpu.launch_func @k::@b blocks in (%n, %n, %n) threads in (%n, %n, %n)"),
        "names @k::@b, which is not a kernel of this module",
    ),
    "arguments": (
        launch("gpu.launch_func @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n) args(%x : f32)"),
        "gives (f32) to @k::@a, which takes ()",
    ),
    "container": (
        "func.func @f(%n: index) { gpu.launch_func @k::@a blocks in (%n, %n, %n) threads in (%n, %n, %n)\n return }",
        "needs the attribute 'gpu.container_module' on the module around it",
    ),
    "module end": ('"gpu.module"() <{sym_name = "k"}> ({^bb0: gpu.barrier}) : () -> ()', "must end in gpu.module_end"),
    "function type": (
        '"gpu.module"() <{sym_name = "k"}> ({ "gpu.func"() <{function_type = (f32) -> ()}> '
        '({ ^bb0(%x: i32): gpu.return }) {sym_name = "a", workgroup_attributions = 0 : i64} : () -> ()\n'
        "gpu.module_end }) : () -> ()",
        "has the type (f32) -> () but a body with arguments (i32)",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    text, message = ERRORS[name]
    with pytest.raises(Error, match=re.escape(message)):
        verify(parse_module(text))


def test_builders_make_what_verifies():
    module = parse_module(
        "module attributes {gpu.container_module} { func.func @main(%x: memref<64xf32>, %n: index) { return } }"
    )
    main = module.regions[0].block.first
    x, n = main.regions[0].entry.arguments
    kernels = gpu.Module.build(Builder.before_op(main), "kernels")
    shared = MemRefType((64,), F32, None, gpu.WORKGROUP)
    kernel = gpu.Func.build(
        Builder(kernels.body.block, kernels.body.block.last),
        "scale",
        [x.type, INDEX],
        workgroup=[shared],
        known_block_size=[64, 1, 1],
    )
    b = Builder(kernel.body.entry)
    thread = b.create(gpu.ThreadId, dimension="x")
    b.create(gpu.Barrier)
    b.create(gpu.Return, [])
    launch = gpu.LaunchFunc.build(
        Builder.before_op(main.regions[0].entry.last), "kernels", "scale", [n] * 3, [n] * 3, [x, n]
    )
    verify(module)
    check_forms(str(module))
    assert thread.dimension == "x" and thread.upper_bound is None
    assert str(launch.kernel) == "@kernels::@scale" and launch.block == (n, n, n)
    assert str(kernel.workgroup[0].type) == "memref<64xf32, #gpu.address_space<workgroup>>"


def test_a_barrier_may_do_anything():
    assert not is_pure(gpu.Barrier())
    block = Block()
    assert is_pure(Builder(block).create(gpu.BlockId, dimension="z"))

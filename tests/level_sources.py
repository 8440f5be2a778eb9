"""Tensor-level sources of the kernel programs in filecheck/kernels, under the same names.

Each is what a front-end would write down; gradients are the output of `autodiff` on the forward program.
"""

from __future__ import annotations

from nablair.ir.attributes import StringAttr
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func
from nablair.ir.parser import parse_module
from nablair.passes.manager import PassManager


def function(arguments: dict[str, str], results: dict[str, str], body: str) -> str:
    """A function @main; both dictionaries map value names to types."""
    taken = ", ".join(f"%{name}: {type}" for name, type in arguments.items())
    given = ", ".join(f"%{name}" for name in results)
    types = ", ".join(results.values())
    return f"func.func @main({taken}) -> ({types}) {{\n{body}\n  return {given} : {types}\n}}"


SQUARE, ROW = "tensor<64x64xf32>", "tensor<64xf32>"
TALL, COLUMN = "tensor<32x64xf32>", "tensor<32xf32>"

CHAIN = f"""
  %s = elementwise.add %a, %b : {SQUARE}, {ROW} -> {SQUARE}
  %z = elementwise.mul %s, %c : {SQUARE}
  %r = elementwise.relu %z : {SQUARE}
  %y = elementwise.tanh %r : {SQUARE}"""

SYMBOLIC = 'tensor<?x64xf32, ["n"]>'

FORWARD: dict[str, str] = {
    "a": function(
        {"x": SQUARE},
        {"y": SQUARE},
        f"""
  %half = array.constant dense<0.5> : tensor<f32>
  %one = array.constant dense<1.0> : tensor<f32>
  %1 = elementwise.mul %x, %half : {SQUARE}, tensor<f32> -> {SQUARE}
  %2 = elementwise.relu %1 : {SQUARE}
  %y = elementwise.add %2, %one : {SQUARE}, tensor<f32> -> {SQUARE}""",
    ),
    "b": function({"a": SQUARE, "b": ROW, "c": SQUARE}, {"y": SQUARE}, CHAIN),
    "d": function({"x": TALL}, {"y": TALL}, f"  %y = linalg.softmax %x {{axis = 1}} : {TALL}"),
    "d1": function({"x": TALL}, {"y": TALL}, f"  %y = linalg.softmax %x {{axis = 0}} : {TALL}"),
    "e": function(
        {"x": TALL, "g": ROW, "b": ROW},
        {"y": TALL, "mean": COLUMN, "rstd": COLUMN},
        f"""
  %y, %mean, %rstd = linalg.layer_norm %x weight %g bias %b {{axis = 1}}
      : ({TALL}, {ROW}, {ROW}) -> ({TALL}, {COLUMN}, {COLUMN})""",
    ),
    "f": function(
        {"a": "tensor<28x8xbf16>", "b": "tensor<8x64xbf16>", "bias": ROW},
        {"y": "tensor<28x64xf32>"},
        """
  %h = linalg.matmul %a, %b {preferred_element_type = f32} : tensor<28x8xbf16>, tensor<8x64xbf16> -> tensor<28x64xf32>
  %s = elementwise.add %h, %bias : tensor<28x64xf32>, tensor<64xf32> -> tensor<28x64xf32>
  %y = elementwise.gelu %s : tensor<28x64xf32>""",
    ),
    "g": function(
        {
            "x": "tensor<32x16xf32>",
            "dy": "tensor<32x24xf32>",
            "w": "tensor<16x24xf32>",
            "v": "tensor<16x24xf32>",
            "lr": "tensor<f32>",
        },
        {"wn": "tensor<16x24xf32>", "vn": "tensor<16x24xf32>"},
        """
  %mu = array.constant dense<0.9> : tensor<f32>
  %t = array.transpose %x {permutation = [1, 0]} : tensor<32x16xf32> -> tensor<16x32xf32>
  %dw = linalg.matmul %t, %dy : tensor<16x32xf32>, tensor<32x24xf32> -> tensor<16x24xf32>
  %m = elementwise.mul %v, %mu : tensor<16x24xf32>, tensor<f32> -> tensor<16x24xf32>
  %vn = elementwise.add %m, %dw : tensor<16x24xf32>
  %u = elementwise.mul %vn, %lr : tensor<16x24xf32>, tensor<f32> -> tensor<16x24xf32>
  %wn = elementwise.sub %w, %u : tensor<16x24xf32>""",
    ),
    "h": function(
        {"x": "tensor<8x10xf32>", "cls": "tensor<8xi64>"},
        {"loss": "tensor<f32>", "lse": "tensor<8xf32>"},
        """
  %loss, %lse = loss.cross_entropy %x, %cls
      : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)""",
    ),
    "i": function(
        {"x": "tensor<8x10xf32>"},
        {"y": "tensor<8xi64>"},
        "  %y = linalg.argmax %x {axis = 1} : tensor<8x10xf32> -> tensor<8xi64>",
    ),
    "k": function(
        {"t": "tensor<32x8xf32>", "idx": "tensor<16xi64>"},
        {"y": "tensor<16x8xf32>"},
        """
  %r = linalg.take %t, %idx {axis = 0} : tensor<32x8xf32>, tensor<16xi64> -> tensor<16x8xf32>
  %y = elementwise.tanh %r : tensor<16x8xf32>""",
    ),
    "k1": function(
        {"dy": "tensor<16x8xf32>", "idx": "tensor<16xi64>"},
        {"dt": "tensor<32x8xf32>"},
        """
  %zero = array.constant dense<0.0> : tensor<32x8xf32>
  %dt = linalg.index_add %zero, %idx, %dy {axis = 0}
      : tensor<32x8xf32>, tensor<16xi64>, tensor<16x8xf32> -> tensor<32x8xf32>""",
    ),
    "m1": function(
        {"q": "tensor<16x8xf32>", "k": "tensor<24x8xf32>", "v": "tensor<24x8xf32>"},
        {"y": "tensor<16x8xf32>"},
        """
  %c = array.constant dense<0.353553385> : tensor<f32>
  %t = array.transpose %k {permutation = [1, 0]} : tensor<24x8xf32> -> tensor<8x24xf32>
  %s = linalg.matmul %q, %t : tensor<16x8xf32>, tensor<8x24xf32> -> tensor<16x24xf32>
  %x = elementwise.mul %s, %c : tensor<16x24xf32>, tensor<f32> -> tensor<16x24xf32>
  %p = linalg.softmax %x {axis = 1} : tensor<16x24xf32>
  %y = linalg.matmul %p, %v : tensor<16x24xf32>, tensor<24x8xf32> -> tensor<16x8xf32>""",
    ),
    "n": function(
        {"n": "index", "x": SYMBOLIC, "z": SYMBOLIC},
        {"y": SYMBOLIC},
        f"  %y = elementwise.mul %x, %z : {SYMBOLIC}",
    ),
}

LAYER_NORM = f"""
  %y, %mean, %rstd = linalg.layer_norm %x weight %g bias %b {{axis = 1}}
      : ({TALL}, {ROW}, {ROW}) -> ({TALL}, {COLUMN}, {COLUMN})"""

GRADIENTS: dict[str, tuple[str, str]] = {
    "c": (FORWARD["b"], "autodiff{function=main wrt=0,1,2}"),
    "e1": (
        function({"x": TALL, "g": ROW, "b": ROW}, {"y": TALL}, LAYER_NORM),
        "autodiff{function=main wrt=0,1,2 split}",
    ),
    "h1": (
        function(
            {"x": "tensor<8x10xf32>", "cls": "tensor<8xi64>"},
            {"l": "tensor<f32>"},
            """
  %l, %lse = loss.cross_entropy %x, %cls
      : (tensor<8x10xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>)""",
        ),
        "autodiff{function=main wrt=0 split}",
    ),
}
"""The program whose derivative it is, and the pass that makes it."""

SOURCES = [*FORWARD, *GRADIENTS]


def source(name: str) -> Module:
    """The tensor-level program, as @main."""
    if name in FORWARD:
        return parsed(FORWARD[name])
    text, derive = GRADIENTS[name]
    module = parsed(text)
    PassManager.parse(derive).run(module)
    functions = {str(op.sym_name): op for op in module.block if isinstance(op, Func)}
    made = functions.pop("main_bwd" if "split" in derive else "main_vjp")
    for other in functions.values():
        other.erase()
    if "split" not in derive:
        # The results of the program itself stand before its gradients.
        kept = made.returns.operands[len(made.returns.operands) - 3 :]
        made.returns.set_operands(kept)
        made.update_type()
    made.properties["sym_name"] = StringAttr("main")
    return module


def parsed(text: str) -> Module:
    """A module."""
    module = parse_module(text)
    assert isinstance(module, Module)
    return module

"""Printing: names, scopes, generic form to the letter, locations, compatible dialect names."""

from nablair.ir.attributes import DictAttr, IntegerAttr, StringAttr
from nablair.ir.builder import Builder
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Call, Func, Return
from nablair.ir.location import FileLoc
from nablair.ir.operations import Block, Operation, Region, UnregisteredOp
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import F32, I32, FunctionType


def module(text: str) -> Module:
    found = parse_module(text, "p.mlir", allow_unregistered=True)
    assert isinstance(found, Module)
    return found


def op(name: str, operands: object = (), types: object = (), regions: object = ()) -> Operation:
    return UnregisteredOp(name, operands, types, None, None, regions)


def test_generic_form_to_the_letter() -> None:
    text = """\
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{a.b}], function_type = (i32) -> i32, sym_name = "f"}> ({
  ^bb0(%x: i32):
    %0:2 = "x.pair"(%x, %x)[^bb1] <{p = 1 : i8}> ({
      "x.in"() : () -> ()
    }, {
    }) {q = @s} : (i32, i32) -> (i32, f32)
    "x.br"(%0#1)[^bb1] : (f32) -> ()
  ^bb1:
    "func.return"(%0#0) : (i32) -> ()
  }) : () -> ()
}) : () -> ()"""
    found = module(text.replace("\n    }, {\n    })", "\n    }, {})"))
    assert print_op(found, generic=True) == text.replace("\n    }, {\n    })", "\n    }, {})")


def test_a_function_result_type_needs_parentheses() -> None:
    found = op("x.a", (), [FunctionType([I32], [F32])])
    assert print_op(found) == '%0 = "x.a"() : () -> ((i32) -> f32)'
    assert print_op(op("x.b", (), [I32, F32])) == '%0:2 = "x.b"() : () -> (i32, f32)'


def test_wished_names_become_unique() -> None:
    block = Block([I32, I32, F32])
    for argument, wish in zip(block.arguments, ("x", "x", "x_0")):
        argument.name = wish
    body = op("x.a", (), [I32, I32])
    for result, wish in zip(body.results, ("x", "1 bad name!")):
        result.name = wish
    block.append(body)
    text = print_op(op("x.r", (), (), [Region([block])]))
    assert "^bb0(%x: i32, %x_0: i32, %x_0_0: f32):" in text
    assert '%x_1, %_1_bad_name_ = "x.a"()' in text
    assert print_op(parse_module(text, allow_unregistered=True).block.first) == text


def test_names_are_free_again_after_a_region() -> None:
    text = print_op(
        module(
            """
            "x.r"() ({
              %0 = "x.a"() : () -> i32
              %v = "x.a"() : () -> i32
            }, {
              %0 = "x.a"() : () -> i32
              %v = "x.a"() : () -> i32
            }) : () -> ()
            %0 = "x.a"() : () -> i32
            """
        )
    )
    assert text.count("%0 = ") == 3
    assert text.count("%v = ") == 2


def test_a_name_given_before_its_definition_is_not_given_twice() -> None:
    text = """
    func.func @f(%c: i1) {
      "x.br"()[^bb2] : () -> ()
    ^bb1:
      "x.r"() ({
        "x.use"(%late) : (i32) -> ()
      }) : () -> ()
      %other = "x.a"() : () -> i32
      "x.use"(%other) : (i32) -> ()
      return
    ^bb2:
      %late = "x.a"() : () -> i32
      "x.br"()[^bb1] : () -> ()
    }
    """
    found = module(text)
    for inner in found.walk():
        for result in inner.results:
            result.name = None
    printed = print_op(found)
    assert print_op(parse_module(printed, allow_unregistered=True)) == printed


def test_generic_form_numbers_through_kernels() -> None:
    text = """
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = kernel.launch (%i) in (4) ins(%x : tensor<4xf32>) outs(%y : tensor<4xf32>) {
        %0 = kernel.load %x[%i]
        kernel.store %0, %y[%i]
      }
      return %y : tensor<4xf32>
    }
    """
    found = module(text)
    assert "kernel.load %x[%i]" in print_op(found)
    generic = print_op(found, generic=True)
    assert "^bb0(%i: index, %x_0: tensor<4xf32>" in generic


def test_locations_and_compatible_names() -> None:
    found = module('%0 = "x.a"() : () -> i32\n"x.b"() : () -> () loc("f":1:2)')
    assert found.block.last is not None
    text = print_op(found, locations=True)
    assert '"x.a"() : () -> i32 loc("p.mlir":1:6)' in text
    assert '"x.b"() : () -> () loc("f":1:2)' in text
    tensor = module(
        "func.func @f(%x: tensor<4xf32>) -> tensor<f32> {\n"
        "%0 = linalg.reduce_sum %x {axes = [0]} : tensor<4xf32> -> tensor<f32>\n"
        "return %0 : tensor<f32>\n}"
    )
    assert '"nb_linalg.reduce_sum"' in print_op(tensor, compat=True)
    assert '"linalg.reduce_sum"' in print_op(tensor, generic=True)


def test_functions() -> None:
    text = """\
module @m attributes {a.b = 1 : i64} {
  func.func private @ext(i32, tensor<4xf32> {a.read}) -> (f32 {a.b = "c"})
  func.func public @two(%x: i32 {a.b = 1 : i64}, %f: (i32) -> i32) -> (i32, i32) attributes {a.c} {
    %0:2 = func.call @two(%x, %f) : (i32, (i32) -> i32) -> (i32, i32)
    return %0#0, %0#1 : i32, i32
  }
  func.func @higher(%f: (i32) -> i32) -> ((i32) -> i32) {
    return {a.tag} %f : (i32) -> i32
  }
  func.func @"odd name"() {
    return
  }
}"""
    assert print_op(module(text)) == text


def test_a_builder_prints_what_it_built() -> None:
    top = Module.of()
    function = Func.of("f", [F32], [F32])
    top.block.append(function)
    builder = Builder(function.entry, location=FileLoc("user.py", 7, 1))
    function.arguments[0].name = "x"
    call = builder.create(Call, function.arguments, results=[F32], callee="f")
    call.attributes["tag"] = DictAttr({"k": StringAttr("v"), "n": IntegerAttr(1, I32)})
    builder.create(Return, call.results)
    assert print_op(top) == (
        "module {\n"
        "  func.func @f(%x: f32) -> f32 {\n"
        '    %0 = func.call @f(%x) {tag = {k = "v", n = 1 : i32}} : (f32) -> f32\n'
        "    return %0 : f32\n"
        "  }\n"
        "}"
    )
    assert str(call) == '%0 = func.call @f(%x) {tag = {k = "v", n = 1 : i32}} : (f32) -> f32'

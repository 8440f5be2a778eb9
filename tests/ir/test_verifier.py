"""Each invariant has a text or a structure that breaks it, and the error says where and what."""

import re

import pytest

from nablair.ir.attributes import DenseArrayAttr, IntegerAttr, StringAttr
from nablair.ir.definition import (
    FLOAT_LIKE,
    SAME_TYPE,
    TERMINATOR,
    Op,
    affine_map,
    enumeration,
    integer,
    operand,
    optional_operand,
    region,
    result,
    successor,
    variadic_operand,
)
from nablair.ir.diagnostics import ShapeError, VerifyError
from nablair.ir.dialects.builtin import Module
from nablair.ir.interfaces import Branches
from nablair.ir.location import FileLoc
from nablair.ir.operations import Block, Operation, Region, UnregisteredOp
from nablair.ir.parser import parse_module
from nablair.ir.types import F32, I32, I64
from nablair.ir.values import Value
from nablair.ir.verifier import verify


class Typed(Op):
    name = "verifytest.typed"
    x = operand(FLOAT_LIKE)
    axis = integer()
    mode = enumeration("a", "b", default="a")
    map = affine_map()
    result = result()

    def infer(self) -> list[object]:
        if self.axis > 5:
            raise ShapeError(f"axis {self.axis} is too large")
        if self.axis < 0:
            return [[][self.axis]]
        return [self.x.type]

    def verify_(self) -> None:
        if self.axis == 3:
            raise self.error("does not like axis 3")


class Same(Op):
    name = "verifytest.same"
    traits = frozenset({SAME_TYPE})
    lhs = operand()
    rhs = operand()
    result = result()


class Loose(Op):
    name = "verifytest.loose"
    maybe = optional_operand()
    many = variadic_operand()


class Body(Op):
    name = "verifytest.body"
    body = region()


class End(Op):
    name = "verifytest.end"
    traits = frozenset({TERMINATOR})


class Jump(Op, Branches):
    name = "verifytest.jump"
    traits = frozenset({TERMINATOR})
    values = variadic_operand()
    target = successor()

    def successor_operands(self, index: int) -> tuple[Value, ...]:
        return self.values


VALUES = """
%f = "x.value"() : () -> f32
%i = "x.value"() : () -> i32
"""
TYPED = "axis = 1 : i64, map = affine_map<() -> ()>"


def typed(properties: str, result: str = "f32") -> str:
    return f'%0 = "verifytest.typed"(%f) <{{{properties}}}> : (f32) -> {result}'


def fails(text: str, message: str, line: int = 0) -> VerifyError:
    module = parse_module(text, "v.mlir", allow_unregistered=True)
    with pytest.raises(VerifyError, match=message) as caught:
        verify(module)
    if line:
        place = caught.value.location
        assert isinstance(place, FileLoc)
        assert place.line == line
    return caught.value


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (f'%0 = "verifytest.typed"(%i) <{{{TYPED}}}> : (i32) -> i32', "operand 'x' must be a float or a vector or"),
        (f'"verifytest.typed"(%f) <{{{TYPED}}}> : (f32) -> ()', "expects 1 result, got 0"),
        (f'%0 = "verifytest.typed"(%f, %f) <{{{TYPED}}}> : (f32, f32) -> f32', "expects 1 operand, got 2"),
        ('%0 = "verifytest.typed"(%f) : (f32) -> f32', "requires the property 'axis' \\(an integer of type i64\\)"),
        (typed(TYPED.replace("i64", "i32")), "'axis' must be an integer"),
        (typed(TYPED.replace("1 : i64", "unit")), "'axis' must be"),
        (typed(TYPED + ", mode = 2"), "'mode' must be one of a, b"),
        (typed(TYPED + ", mode = -1"), "'mode' must be one of a, b"),
        (typed(TYPED + ", wrong = 2"), "has no property 'wrong'"),
        (typed(TYPED, "f64"), "type \\(f64\\), but its operands give \\(f32\\)"),
        (typed(TYPED.replace("1", "3")), "does not like axis 3"),
        (typed(TYPED.replace("1", "6")), "axis 6 is too large"),
        (typed(TYPED.replace("1", "-1")), "malformed"),
        ('%0 = "verifytest.same"(%f, %i) : (f32, i32) -> f32', "one type for all .* got \\(f32, i32"),
        ('"verifytest.loose"(%f) : (f32) -> ()', "requires the property 'operandSegmentSizes'"),
        ('"verifytest.loose"(%f) {operandSegmentSizes = array<i32: 1, 1>} : (f32) -> ()', "adds up to 2"),
        ('"verifytest.loose"(%f) {operandSegmentSizes = array<i32: 2, -1>} : (f32) -> ()', "has 2 values for 'maybe'"),
        ('"verifytest.loose"(%f) {operandSegmentSizes = array<i64: 1, 0>} : (f32) -> ()', "as array<i32>"),
        ('"verifytest.body"() : () -> ()', "expects 1 region, got 0"),
        ('"verifytest.body"() ({}) : () -> ()', "exactly one block"),
        ('"verifytest.body"() ({ ^bb0: }) : () -> ()', "empty block"),
        (
            '"verifytest.body"() ({ %1 = "verifytest.same"(%f, %f) : (f32, f32) -> f32 }) : () -> ()',
            "is not a terminator",
        ),
        (
            '"verifytest.body"() ({ "verifytest.end"() : () -> ()\n"verifytest.end"() : () -> () }) : () -> ()',
            "does not end its block",
        ),
        ('%0 = "verifytest.same"(%0, %f) : (f32, f32) -> f32', "operand #0 \\('lhs'\\) of type f32 does not dominate"),
        ('%0 = "x.a"(%1) : (i32) -> i32\n%1 = "x.a"(%0) : (i32) -> i32', "operand #0 of type i32 does not dominate"),
        ("func.func @f()", "must be private"),
        ("func.func private @f()\nfunc.func private @f()", "redefines the symbol @f"),
        ("func.func @f() -> i32 { return }", "returns \\(\\), but @f has the results \\(i32\\)"),
        ("func.func @f() { func.call @g() : () -> ()\nreturn }", "calls @g, which does not exist"),
        (
            "func.func private @g(i32)\nfunc.func @f() { func.call @g() : () -> ()\nreturn }",
            "has the type \\(\\) -> \\(\\), but @g has the type \\(i32\\) -> \\(\\)",
        ),
        ("module attributes {bad} {}", "dialect's prefix"),
    ],
)
def test_texts_that_do_not_verify(op: str, message: str) -> None:
    fails(VALUES + op, message)


def body(text: str) -> str:
    return f"func.func @f(%c: i32) {{\n{text}\n}}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"verifytest.jump"(%c)[^a] : (i32) -> ()\n^a:\nreturn', "passes \\(i32\\) to successor 0, which takes \\(\\)"),
        ('"verifytest.jump"()[^a] : () -> ()\n^a(%x: i32):\nreturn', "passes \\(\\) to successor 0"),
        ('^e:\n"x.br"()[^e] : () -> ()', "redefinition|entry block"),
        ('"x.br"()[^a] : () -> ()\n"x.a"() : () -> ()\n^a:\nreturn', "does not end its block"),
        (
            '"x.cond"()[^a, ^b] : () -> ()\n^a:\n%v = "x.v"() : () -> i32\n"x.br"()[^b] : () -> ()\n'
            '^b:\n"x.u"(%v) : (i32) -> ()\nreturn',
            "does not dominate",
        ),
        (
            '"x.cond"()[^a, ^b] : () -> ()\n^a(%v: i32):\nreturn\n'
            '^b:\n"x.r"() ({\n"x.u"(%v) : (i32) -> ()\n}) : () -> ()\nreturn',
            "does not dominate",
        ),
        ('"x.r"() ({\n"x.u"(%v) : (i32) -> ()\n}) : () -> ()\n%v = "x.v"() : () -> i32\nreturn', "does not dominate"),
    ],
)
def test_control_flow_that_does_not_verify(text: str, message: str) -> None:
    if "^e" in text:  # a label on the entry block of a function is no text; build the branch instead
        module = parse_module(body("return"))
        entry = module.block.first.body.entry
        entry.last.erase()
        entry.append(UnregisteredOp("x.br", (), (), None, None, (), [entry]))
        with pytest.raises(VerifyError, match="entry block"):
            verify(module)
        return
    fails(body(text), message)


def test_control_flow_that_verifies() -> None:
    loop = """
    %v = "x.v"() : () -> i32
    "verifytest.jump"(%v)[^head] : (i32) -> ()
  ^exit:
    "x.u"(%v, %h, %n) : (i32, i32, i32) -> ()
    return
  ^head(%h: i32):
    %n = "x.n"(%h) : (i32) -> i32
    "x.cond"(%n)[^body, ^exit] : (i32) -> ()
  ^body:
    "x.r"() ({
      "x.u"(%n, %v, %h) : (i32, i32, i32) -> ()
    }) : () -> ()
    "verifytest.jump"(%n)[^head] : (i32) -> ()
  ^dead:
    "x.u"(%n) : (i32) -> ()
    "x.br"()[^exit] : () -> ()
    """
    verify(parse_module(body(loop), allow_unregistered=True))


def test_isolation() -> None:
    module = parse_module('%v = "x.v"() : () -> i32\nfunc.func @f() {\nreturn\n}', allow_unregistered=True)
    value = module.block.first.results[0]
    inner = UnregisteredOp("x.u", [value])
    entry = module.block.last.body.entry
    entry.insert_before(inner, entry.last)
    with pytest.raises(VerifyError, match="isolated from above") as caught:
        verify(module)
    assert caught.value.notes


def test_a_diagnostic_in_full() -> None:
    text = """\
func.func @f(%x: i32) {
  %f = "x.v"(%x) : (i32) -> i32
  %0 = "verifytest.same"(%f, %f) : (i32, i32) -> f32
  return
}"""
    error = fails(text, "one type", 3)
    assert error.render({"v.mlir": text}).split("\n") == [
        "v.mlir:3:8: error: 'verifytest.same' op requires one type for all operands and results, "
        "got (i32, i32) -> (f32)",
        '    %0 = "verifytest.same"(%f, %f) : (i32, i32) -> f32',
        "         ^",
    ]
    early = fails('%1 = "x.a"(%0) : (i32) -> i32\n%0 = "x.b"() : () -> i32', "does not dominate", 1)
    assert [n.message for n in early.notes] == ["the operand is defined here"]
    assert early.notes[0].location == FileLoc("v.mlir", 2, 6)
    wrong = fails(VALUES + f'%0 = "verifytest.typed"(%i) <{{{TYPED}}}> : (i32) -> i32', "must be a float")
    assert wrong.notes[0].location == FileLoc("v.mlir", 3, 6)


def built() -> tuple[Module, list[Operation]]:
    module = parse_module(
        '%a = "x.a"() : () -> i32\n%b = "x.b"(%a) : (i32) -> i32\n"x.c"(%a, %b, %a) : (i32, i32, i32) -> ()',
        allow_unregistered=True,
    )
    return module, list(module.block)


def test_broken_structures_are_found() -> None:
    module, (a, b, c) = built()
    verify(module)
    a.results[0].use_list = {b: 1, c: 1}
    with pytest.raises(VerifyError, match="records 1 uses by this op, not 2"):
        verify(module)

    module, (a, b, c) = built()
    a.results[0].add_use(a)
    with pytest.raises(VerifyError, match=r"records a use by 'x\.a', which does not use it"):
        verify(module)

    module, (a, b, c) = built()
    a.results[0].remove_use(b)
    with pytest.raises(VerifyError, match="records 0 uses"):
        verify(module)

    module, (a, b, c) = built()
    b.next = None
    with pytest.raises(VerifyError, match="another last op"):
        verify(module)

    module, (a, b, c) = built()
    c.prev = a
    with pytest.raises(VerifyError, match="links are wrong"):
        verify(module)

    module, (a, b, c) = built()
    a.detach()
    with pytest.raises(VerifyError, match="not defined in this IR"):
        verify(module)

    module, (a, b, c) = built()
    a.move_after(b)
    with pytest.raises(VerifyError, match="does not dominate"):
        verify(module)

    module, (a, b, c) = built()
    b.results[0].owner = a
    with pytest.raises(VerifyError, match=r"belongs to 'x\.a'"):
        verify(module)


def test_order_is_renumbered_after_insertion() -> None:
    module, (_, b, _) = built()
    early = UnregisteredOp("x.early", (), [I32])
    module.block.insert_before(early, b)
    b.set_operand(0, early.results[0])
    verify(module)
    early.move_after(b)
    with pytest.raises(VerifyError, match="does not dominate"):
        verify(module)


def test_part_of_a_module_verifies_alone() -> None:
    module = parse_module(
        '%a = "x.a"() : () -> i32\n"x.r"() ({\n"x.u"(%a) : (i32) -> ()\n}) : () -> ()', allow_unregistered=True
    )
    verify(module.block.last)
    verify(module.block.last.regions[0].block.first)
    function = parse_module("func.func @f() {\nreturn\n}").block.first
    verify(function)
    lone = UnregisteredOp("x.lone", (), (), None, None, [Region([Block([F32])])])
    verify(lone)


def test_inference_is_checked_again_after_a_change() -> None:
    text = VALUES + typed(TYPED)
    module = parse_module(text, allow_unregistered=True)
    verify(module)
    verify(module)
    op = module.block.last
    op.properties["axis"] = IntegerAttr(6, I64)
    with pytest.raises(VerifyError, match="too large"):
        verify(module)
    op.properties["axis"] = IntegerAttr(1, I64)
    op.results[0].type = I32
    with pytest.raises(VerifyError, match=re.escape("type (i32), but its operands give (f32)")):
        verify(module)


def test_segment_sizes_may_be_right() -> None:
    op = Loose([], (), {"operandSegmentSizes": DenseArrayAttr([0, 0], I32)})
    verify(op)
    op.properties["tag"] = StringAttr("x")
    with pytest.raises(VerifyError, match="no property 'tag'"):
        verify(op)


def test_globals_exist_and_have_the_type() -> None:
    text = """
    memref.global "private" constant @w : memref<2xf32> = dense<[1.0, 2.0]>
    func.func @f() {
      %0 = memref.get_global @w : memref<2xf32>
      return
    }
    """
    verify(parse_module(text))
    fails(text.replace("get_global @w", "get_global @v"), "names @v, which is not a memref.global", 4)
    wrong = text.replace("get_global @w : memref<2xf32>", "get_global @w : memref<3xf32>")
    fails(wrong, "@w has the type memref<2xf32>")
    fails(text.replace("get_global @w", "get_global @f"), "names @f, which is not a memref.global")

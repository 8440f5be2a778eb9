"""Parsing of operations, blocks and regions, and the text of its errors."""

import pytest

from nablair.ir.attributes import IntegerAttr, StringAttr, UnitAttr
from nablair.ir.builder import Builder
from nablair.ir.definition import (
    MANY,
    SAME_TYPE,
    TERMINATOR,
    Op,
    enumeration,
    flag,
    integer,
    integers,
    operand,
    optional_operand,
    region,
    result,
    string,
    successor,
    variadic_operand,
    variadic_result,
)
from nablair.ir.diagnostics import ParseError
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func
from nablair.ir.interfaces import Branches
from nablair.ir.location import UNKNOWN, CallSiteLoc, FileLoc, FusedLoc, NameLoc
from nablair.ir.operations import Operation, UnregisteredOp
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import F32, I32, I64
from nablair.ir.values import Value
from nablair.ir.verifier import verify


class Everything(Op):
    """One of each kind of field."""

    name = "parsetest.everything"
    first = operand()
    maybe = optional_operand()
    rest = variadic_operand()
    out = variadic_result()
    mode = enumeration("slow", "fast", default="slow")
    axis = integer(default=0)
    axes = integers(default=())
    label = string(optional=True)
    strict = flag()
    body = region()
    assembly = (
        "$mode $first (`or` $maybe^)? (`with` `(` $rest^ `:` type($rest) `)`)? (`strict` $strict^)? (`label` $label^)? "
        "$body attr-dict `:` type($first) `,` type($maybe) `->` type($out)"
    )


class Jump(Op, Branches):
    name = "parsetest.jump"
    traits = frozenset({TERMINATOR})
    values = variadic_operand()
    target = successor()
    assembly = "$target (`(` $values^ `:` type($values) `)`)? attr-dict"

    def successor_operands(self, index: int) -> tuple[Value, ...]:
        return self.values


class End(Op):
    name = "parsetest.end"
    traits = frozenset({TERMINATOR})
    assembly = "attr-dict"


class Implied(Op):
    """Its region ends in `parsetest.end`, which the text may leave out."""

    name = "parsetest.block"
    implied_terminator = End
    body = region()
    assembly = "$body attr-dict"


class Same(Op):
    name = "parsetest.same"
    traits = frozenset({SAME_TYPE})
    lhs = operand()
    rhs = operand()
    result = result()
    assembly = "$lhs `,` $rhs attr-dict `:` type($result)"


class Signed(Op):
    name = "parsetest.signed"
    inputs = variadic_operand()
    outputs = variadic_result()
    assembly = "$inputs attr-dict `:` signature"


def first_op(text: str) -> Operation:
    op = parse_module(text, "t.mlir", allow_unregistered=True).block.first
    assert op is not None
    return op


def fails(text: str, message: str, line: int = 0, column: int = 0) -> ParseError:
    with pytest.raises(ParseError, match=message) as caught:
        parse_module(text, "t.mlir", allow_unregistered=True)
    if line:
        place = caught.value.location
        assert isinstance(place, FileLoc)
        assert (place.line, place.column) == (line, column)
    return caught.value


def test_a_text_without_a_module_gets_one() -> None:
    module = parse_module('"x.a"() : () -> ()\n"x.b"() : () -> ()', allow_unregistered=True)
    assert isinstance(module, Module)
    assert [op.name for op in module.block] == ["x.a", "x.b"]
    named = parse_module("module @top attributes {a.b = 1} { }")
    assert named.sym_name == "top"
    assert named.attributes == {"a.b": IntegerAttr(1, I64)}
    assert isinstance(parse_module("").block.first, type(None))


def test_generic_form_in_full() -> None:
    op = first_op(
        """
        %a = "x.a"() : () -> i32
        %r:2 = "x.op"(%a, %a) <{p = 1 : i32}> ({
          "x.in"() : () -> ()
        }, {}) {q, r = "s"} : (i32, i32) -> (f32, i32)
        """
    ).next
    assert isinstance(op, UnregisteredOp)
    assert op.properties == {"p": IntegerAttr(1, I32)}
    assert op.attributes == {"q": UnitAttr(), "r": StringAttr("s")}
    assert [r.type for r in op.results] == [F32, I32]
    assert [len(r.blocks) for r in op.regions] == [1, 0]
    assert op.operands[0].uses == {op: 2}


def test_inherent_attributes_move_to_properties() -> None:
    text = '%0 = "arith.constant"() {value = 1 : i32, extra} : () -> i32'
    op = first_op(text)
    assert set(op.properties) == {"value"}
    assert set(op.attributes) == {"extra"}


def test_results_may_be_named_in_several_ways() -> None:
    module = parse_module(
        """
        %a, %b:2, %c = "x.a"() : () -> (i32, f32, f32, index)
        "x.use"(%a, %b#0, %b, %b#1, %c) : (i32, f32, f32, f32, index) -> ()
        "x.none"() : () -> i32
        """,
        allow_unregistered=True,
    )
    first, use, _ = module.block
    assert [first.results.index(v) for v in use.operands] == [0, 1, 1, 2, 3]


def test_names_are_kept_as_wishes() -> None:
    op = first_op('%long.name-1 = "x.a"() : () -> i32')
    assert op.results[0].name == "long.name-1"
    assert first_op('%7 = "x.a"() : () -> i32').results[0].name is None


def test_forward_references() -> None:
    module = parse_module(
        '"x.use"(%late, %late) : (i32, i32) -> ()\n%late = "x.def"() : () -> i32', allow_unregistered=True
    )
    use, definition = module.block
    assert use.operands == definition.results * 2
    assert definition.results[0].uses == {use: 2}
    fails('"x.use"(%late) : (i32) -> ()\n%late = "x.def"() : () -> f32', "definition of value '%late'", 2, 1)
    fails('"x.use"(%never) : (i32) -> ()', "undefined value '%never'", 1, 9)


def test_scopes() -> None:
    fails('%a = "x.a"() : () -> i32\n%a = "x.a"() : () -> i32', "redefinition of value '%a'", 2, 1)
    inner = '%a = "x.a"() : () -> i32\n"x.r"() ({\n%a = "x.a"() : () -> i32\n}) : () -> ()'
    error = fails(inner, "redefinition", 3, 1)
    assert error.notes[0].message == "prior definition here"
    parse_module(
        '"x.r"() ({\n%a = "x.a"() : () -> i32\n}, {\n%a = "x.a"() : () -> i32\n}) : () -> ()', allow_unregistered=True
    )
    fails('"x.r"() ({\n%a = "x.a"() : () -> i32\n}) : () -> ()\n"x.u"(%a) : (i32) -> ()', "undefined value '%a'", 4, 7)
    isolated = "func.func @f(%a: i32) { return }\nfunc.func @g(%a: i32) { return }"
    parse_module(isolated)
    fails('%a = "x.a"() : () -> i32\nfunc.func @f() { "x.u"(%a) : (i32) -> ()\n return }', "undefined value '%a'")


def test_blocks() -> None:
    text = """
    func.func @f(%c: i32) {
      parsetest.jump ^late(%c : i32)
    ^other:
      return
    ^late(%x: i32):
      parsetest.jump ^other
    }
    """
    module = parse_module(text)
    verify(module)
    function = module.block.first
    assert isinstance(function, Func)
    entry, other, late = function.body.blocks
    assert entry.terminator.successors == (late,)
    assert late.terminator.successors == (other,)
    assert print_op(parse_module(print_op(module))) == print_op(module)
    fails(text.replace("^other:", "^late:"), "redefinition of block '\\^late'")
    fails(text.replace("^other:", "^more:"), "undefined block '\\^other'")
    fails(text.replace("(%c : i32)", "(%c : f32)"), "expects type f32, but it has type i32")


def test_assembly_with_every_kind_of_field() -> None:
    text = """
    %a = "x.a"() : () -> i32
    %b = "x.a"() : () -> f32
    %r:2 = parsetest.everything fast %a or %b with (%a, %b : i32, f32) strict label "l" {
      "x.end"() : () -> ()
    } {axes = [1, 2], axis = 7, extra} : i32, f32 -> f32, i32
    """
    module = parse_module(text, allow_unregistered=True)
    op = module.block.last
    assert isinstance(op, Everything)
    assert (op.mode, op.axis, op.axes, op.label, op.strict) == ("fast", 7, (1, 2), "l", True)
    assert op.maybe is op.rest[1]
    assert [v.type for v in op.rest] == [I32, F32]
    assert set(op.attributes) == {"extra"}
    verify(module)
    printed = print_op(module)
    assert print_op(parse_module(printed, allow_unregistered=True)) == printed
    again = parse_module(print_op(module, generic=True), allow_unregistered=True)
    assert print_op(again) == printed


def test_an_implied_terminator_may_be_left_out() -> None:
    short = parse_module("parsetest.block {\n}")
    full = parse_module("parsetest.block {\n  parsetest.end\n}")
    tagged = parse_module("parsetest.block {\n  parsetest.end {a.tag}\n}")
    verify(short)
    assert print_op(short) == print_op(full) == "module {\n  parsetest.block {}\n}"
    assert "parsetest.end {a.tag}" in print_op(tagged)
    assert isinstance(full.block.first.body.block.last, End)
    labelled = parse_module("parsetest.block {\n^bb0(%x: i32):\n  parsetest.end\n}")
    assert "^bb0(%x: i32):" in print_op(labelled)
    assert print_op(parse_module(print_op(labelled))) == print_op(labelled)


def test_same_type_resolves_operands() -> None:
    op = first_op('%a = "x.a"() : () -> i32\n%b = parsetest.same %a, %a : i32').next
    assert op is not None
    assert op.results[0].type is I32
    fails('%a = "x.a"() : () -> i32\n%b = parsetest.same %a, %a : f32', "expects type f32, but it has type i32", 2, 21)


@pytest.mark.parametrize("text", ["%a, %a : i32", "%a, %b : i32, f32 -> i32", "%a : i32 -> (i32, f32)", ": i32"])
def test_signatures(text: str) -> None:
    source = '%a = "x.a"() : () -> i32\n%b = "x.a"() : () -> f32\n'
    results = "%r:2" if "(i32, f32)" in text else "%r"
    module = parse_module(f"{source}{results} = parsetest.signed {text}", allow_unregistered=True)
    printed = print_op(module)
    assert print_op(parse_module(printed, allow_unregistered=True)) == printed
    assert f"parsetest.signed {text}\n" in printed


def test_aliases() -> None:
    module = parse_module(
        """
        #map = affine_map<(d0) -> (d0 + 1)>
        #pair = [#map, 2]
        !t = tensor<4xf32, #map>
        #where = loc("f":1:2)
        %0 = "x.a"() {m = #pair} : () -> !t loc(#where)
        "x.b"() : () -> () loc(#late)
        #late = loc(fused["a", #where])
        """,
        allow_unregistered=True,
    )
    first, second = module.block
    assert str(first.attributes["m"]) == "[affine_map<(d0) -> (d0 + 1)>, 2 : i64]"
    assert str(first.results[0].type) == "tensor<4xf32, affine_map<(d0) -> (d0 + 1)>>"
    assert first.location == FileLoc("f", 1, 2)
    assert second.location == FusedLoc((NameLoc("a"), FileLoc("f", 1, 2)))
    fails("#a = 1\n#a = 2", "redefinition of the alias", 2, 1)
    fails('"x.a"() {m = #a} : () -> ()\n#a = 1', "undefined attribute alias")
    fails('"x.a"() : () -> () loc(#a)', "undefined location alias")


def test_locations() -> None:
    def location(text: str) -> object:
        return first_op(f'"x.a"() : () -> () loc({text})').location

    assert location("unknown") is UNKNOWN
    assert location('"f.py":3:4') == FileLoc("f.py", 3, 4)
    assert location('"n"("f":1:2)') == NameLoc("n", FileLoc("f", 1, 2))
    assert location('callsite("a" at "b")') == CallSiteLoc(NameLoc("a"), NameLoc("b"))
    assert location('fused<"meta">["a", "b"]') == FusedLoc((NameLoc("a"), NameLoc("b")))
    assert first_op('\n  %0 = "x.a"() : () -> i32').location == FileLoc("t.mlir", 2, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"x.a"', "expected '\\('"),
        ('"x.a"() : () ->', "expected a type"),
        ('"x.a"(%0) : () -> ()', "1 operands, but 0 operand types"),
        ('%0 = "x.a"() : () -> i32\n"x.b"(%0) : (i32, i32) -> ()', "more operand types"),
        ('%0 = "x.a"() : () -> i32\n"x.b"(%0) : (f32) -> ()', "expects type f32"),
        ('%0 = "x.a"() : () -> ()', "defines 0 results, but 1 names"),
        ('%0:0 = "x.a"() : () -> ()', "positive number"),
        ("%0 =", "no operation|expected an operation"),
        ("x.a", "no custom form"),
        ("arith.nothing", "unknown operation 'arith.nothing' in the dialect 'arith'"),
        ('"arith.nothing"() : () -> ()', "unknown operation"),
        ("arith.addo", "did you mean 'arith.add[if]'"),
        ("%0 = linalg.reduce_summ", "did you mean 'linalg.reduce_sum'"),
        ("func.func @f() {", "expected an operation or '}'"),
        ("func.func @f(%a: i32, f32) { return }", "have names"),
        ("func.func @f(%a: i32)", "no names"),
        ("func.func @f(i32) { return }", "needs names"),
        ("module {", "expected an operation or '}'"),
        ("}", "expected an operation"),
        ('"x.a"() {a = 1, a = 2} : () -> ()', "duplicate key"),
        ('"x.a"()[^bb1] : () -> ()', "undefined block"),
        ('"x.a"() ({ ^: }) : () -> ()', "block's name"),
    ],
)
def test_errors(text: str, message: str) -> None:
    fails(text, message)


def test_unregistered_ops_need_a_flag() -> None:
    with pytest.raises(ParseError, match="--allow-unregistered-dialect"):
        parse_module('"x.a"() : () -> ()')
    with pytest.raises(ParseError, match=r"did you mean 'elementwise\.add'"):
        parse_module('"elementwize.add"() : () -> ()')


def test_a_diagnostic_in_full() -> None:
    text = "func.func @f(%a: i32) -> f32 {\n  return %a : f32\n}"
    error = fails(text, "use of value")
    assert error.render({"t.mlir": text}).split("\n") == [
        "t.mlir:2:10: error: use of value '%a' expects type f32, but it has type i32",
        "    return %a : f32",
        "           ^",
        "t.mlir:1:14: note: prior definition here",
        "  func.func @f(%a: i32) -> f32 {",
        "               ^",
    ]


@pytest.mark.parametrize(
    "text",
    [
        '"x.a"() ({\n' * 2000 + "}) : () -> ()\n" * 2000,
        "func.func @f(%c: i1) {\n" + "scf.if %c {\n" * 2000 + "}" * 2000 + "\nreturn }",
        "func.func @f(%c: index) {\n"
        + "".join(f"scf.for %i{n} = %c to %c step %c {{\n" for n in range(2000))
        + "}" * 2000
        + "\nreturn }",
    ],
)
def test_two_thousand_nested_regions(text: str) -> None:
    module = parse_module(text, allow_unregistered=True)
    verify(module)
    printed = print_op(module)
    assert print_op(module.clone()) == printed
    assert print_op(parse_module(printed, allow_unregistered=True)) == printed


@pytest.mark.parametrize(
    "text",
    [
        '"x.a"() ({\n' * 20000,
        "module {" * 20000,
        '"x.a"() {a = ' + "[" * 20000,
        '"x.a"() {a = ' + "{a = " * 20000,
        '"x.a"() {a = dense<' + "[" * 20000,
        '"x.a"() {a = affine_map<(d0) -> (' + "(" * 20000,
        '"x.a"() {a = affine_map<(d0) -> (' + "-" * 20000,
        '"x.a"() {a = affine_map<(d0) -> (d0' + " mod 3" * 20000,
        '"x.a"() : () -> ' + "tensor<" * 20000,
        '"x.a"() : () -> (' + "() -> (" * 20000,
        '"x.a"() : () -> () loc(' + "fused[" * 20000,
    ],
)
def test_absurd_nesting_is_a_diagnostic(text: str) -> None:
    fails(text, "deep|too long")


def test_a_builder_and_the_parser_make_the_same() -> None:
    module = Module.of()
    function = Func.of("f", [I32], [I32])
    module.block.append(function)
    builder = Builder(function.entry)
    (x,) = function.arguments
    builder.create(Same, x, x)
    assert [f.arity for f in Signed.definition.operands] == [MANY]
    same = parse_module("func.func @f(%x: i32) -> i32 {\n%y = parsetest.same %x, %x : i32\n}")
    assert print_op(module, keep_names=False) == print_op(same, keep_names=False)

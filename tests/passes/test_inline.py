"""inline: limits and graphs of calls.  Forms are in tests/filecheck/inline."""

from __future__ import annotations

from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify
from nablair.passes.inline import Inline


def chain(length: int, calls: int = 1) -> str:
    """@f0 .. @f<length>, each calling the one before."""
    parts = ["func.func private @f0(%x: i32) -> i32 {\n %0 = arith.addi %x, %x : i32\n return %0 : i32\n}"]
    for k in range(1, length + 1):
        value, lines = "%x", []
        for c in range(calls):
            lines.append(f" %{c} = call @f{k - 1}({value}) : (i32) -> i32")
            value = f"%{c}"
        visibility = "" if k == length else "private "
        parts.append(
            f"func.func {visibility}@f{k}(%x: i32) -> i32 {{\n" + "\n".join(lines) + f"\n return {value} : i32\n}}"
        )
    return "\n".join(reversed(parts))


def test_a_chain_of_calls_without_recursion_in_python():
    module = parse_module(chain(2000))
    inline = Inline()
    inline.run(module)
    verify(module)
    assert inline.statistics == {"inlined": 2000, "removed": 2000}
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "arith.addi", "func.return"]


def test_growth_is_bounded():
    module = parse_module(chain(30, calls=2))
    Inline(max_ops=1000).run(module)
    verify(module)
    assert sum(1 for _ in module.walk()) < 30 * 1000
    assert any(op.name == "func.call" for op in module.walk())


def test_a_function_that_calls_itself_stays():
    text = """func.func @f(%x: i32) -> i32 {
      %0 = call @f(%x) : (i32) -> i32
      return %0 : i32
    }"""
    module = parse_module(text)
    before = str(module)
    Inline().run(module)
    assert str(module) == before


def test_a_private_function_that_is_still_referred_to_stays():
    text = """func.func private @f(%x: i32) -> i32 {
      return %x : i32
    }
    func.func @g(%x: i32) -> i32 attributes {nablair.uses = [@f]} {
      %0 = call @f(%x) : (i32) -> i32
      return %0 : i32
    }"""
    module = parse_module(text)
    Inline().run(module)
    assert module.symbol("f") is not None and not any(op.name == "func.call" for op in module.walk())


def test_calls_inside_regions_are_inlined():
    text = """func.func private @f(%x: i32) -> i32 {
      %0 = arith.muli %x, %x : i32
      return %0 : i32
    }
    func.func @g(%c: i1, %x: i32) -> i32 {
      %0 = scf.if %c -> (i32) {
        %1 = func.call @f(%x) : (i32) -> i32
        scf.yield %1 : i32
      } else {
        scf.yield %x : i32
      }
      return %0 : i32
    }"""
    module = parse_module(text)
    Inline().run(module)
    verify(module)
    assert "arith.muli" in str(module) and "@f" not in str(module)

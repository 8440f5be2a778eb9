"""The mutable structure: uses, lists, walking, cloning, fields of definitions."""

import gc
import itertools
import math
import os
import random as stdlib_random
import subprocess
import sys

import pytest
from fuzzing import cases

from nablair.ir.definition import (
    SAME_TYPE,
    Op,
    enumeration,
    flag,
    integer,
    make,
    operand,
    optional_operand,
    result,
    variadic_operand,
)
from nablair.ir.digest import digest
from nablair.ir.operations import Block, Operation, Region, UnregisteredOp
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import F32, I32
from nablair.ir.values import Value
from nablair.ir.verifier import verify


class Pair(Op):
    name = "optest.pair"
    lhs = operand()
    rhs = operand()
    weight = integer(default=3)
    mode = enumeration("a", "b", default="a")
    strict = flag()
    result = result()


class Triple(Pair):
    """Inherits the fields and has one more, which makes the segments variadic."""

    name = "optest.triple"
    rest = variadic_operand()


class Loose(Op):
    name = "optest.loose"
    maybe = optional_operand()
    many = variadic_operand()
    last = operand()


class Same(Op):
    name = "optest.same"
    traits = frozenset({SAME_TYPE})
    x = operand()
    result = result()


def value(type: object = I32) -> Operation:
    return UnregisteredOp("x.value", (), [type])


def test_uses_follow_operands() -> None:
    a, b = value(), value()
    x, y = a.results[0], b.results[0]
    user = UnregisteredOp("x.use", [x, x, y])
    assert x.uses == {user: 2}
    assert y.uses == {user: 1}
    user.set_operand(0, y)
    assert x.uses == {user: 1}
    assert y.uses == {user: 2}
    x.replace_by(y)
    assert x.uses == {}
    assert user.operands == (y, y, y)
    user.set_operands([])
    assert y.uses == {}


def test_blocks_are_linked_lists() -> None:
    block = Block()
    ops = [value() for _ in range(4)]
    for op in ops[:3]:
        block.append(op)
    block.insert_before(ops[3], ops[1])
    assert list(block) == [ops[0], ops[3], ops[1], ops[2]]
    assert ops[3].is_before(ops[1])
    ops[0].move_after(ops[2])
    assert list(block) == [ops[3], ops[1], ops[2], ops[0]]
    ops[1].detach()
    assert list(block) == [ops[3], ops[2], ops[0]]
    assert block.first is ops[3]
    assert block.last is ops[0]
    assert ops[2].is_before(ops[0])
    assert len(block) == 3


def test_erasing_needs_unused_results() -> None:
    a = value()
    user = UnregisteredOp("x.use", a.results)
    block = Block()
    block.append(a)
    block.append(user)
    with pytest.raises(ValueError, match=r"used by x\.use"):
        a.erase()
    user.erase()
    a.erase()
    assert list(block) == []


def test_walk_is_in_text_order_and_bears_erasure() -> None:
    module = parse_module(
        '"x.a"() ({ "x.b"() ({ "x.c"() : () -> () }) : () -> ()\n"x.d"() : () -> () }) : () -> ()\n"x.e"() : () -> ()',
        allow_unregistered=True,
    )
    assert [op.name for op in module.walk()] == ["builtin.module", "x.a", "x.b", "x.c", "x.d", "x.e"]
    for op in module.walk():
        if op.name in ("x.b", "x.e"):
            op.erase()
    assert [op.name for op in module.walk()] == ["builtin.module", "x.a", "x.d"]


def test_clones_are_apart() -> None:
    module = parse_module(
        """
        func.func @f(%c: i1) -> i32 {
          %a = "x.a"() : () -> i32
          "x.br"()[^late] : () -> ()
        ^early:
          %r = "x.r"(%v) ({
            "x.in"(%a, %v) : (i32, i32) -> ()
          }) : (i32) -> i32
          return %r : i32
        ^late:
          %v = "x.v"(%a) : (i32) -> i32
          "x.br"()[^early] : () -> ()
        }
        """,
        allow_unregistered=True,
    )
    verify(module)
    text = print_op(module)
    copy = module.clone()
    verify(copy)
    assert print_op(copy) == text
    originals = set(module.walk())
    for op in copy.walk():
        assert op not in originals
        assert all(v.defining_op not in originals for v in op.operands)
        assert all(s.parent is op.parent_region for s in op.successors)
    copy.drop_references()
    verify(module)
    assert gc.isenabled()


def test_a_clone_maps_outer_values() -> None:
    a, b = value(), value()
    user = UnregisteredOp("x.use", a.results, [I32])
    copy = user.clone({a.results[0]: b.results[0]})
    assert copy.operands == b.results
    table: dict[Value, Value] = {}
    user.clone(table)
    assert set(table) == {user.results[0]}
    region = Region([Block([I32])])
    region.block.append(UnregisteredOp("x.in", region.block.arguments))
    twin = region.clone()
    assert twin.block.first is not region.block.first
    assert twin.block.first is not None
    assert twin.block.first.operands == tuple(twin.block.arguments)


def test_fields_read_operands_by_name() -> None:
    x, y, z = (value().results[0] for _ in range(3))
    pair = make(Pair, [x, y], [I32], (), (), {"mode": "b", "strict": True})
    assert (pair.lhs, pair.rhs, pair.weight, pair.mode, pair.strict) == (x, y, 3, "b", True)
    triple = make(Triple, [x, y, [z, z]], [F32], (), (), {})
    assert (triple.lhs, triple.rhs, triple.rest) == (x, y, (z, z))
    assert (pair.lhs, pair.rhs) == (x, y), "a subclass with more fields leaves its base alone"
    loose = make(Loose, [None, [x, y], z], (), (), (), {})
    assert (loose.maybe, loose.many, loose.last) == (None, (x, y), z)
    full = make(Loose, [x, [], z], (), (), (), {})
    assert (full.maybe, full.many, full.last) == (x, (), z)
    assert list(loose.named_operands()) == [("many", x), ("many", y), ("last", z)]


def test_construction_refuses_what_the_class_does_not_have() -> None:
    x = value().results[0]
    with pytest.raises(TypeError, match="takes 2 operands"):
        make(Pair, [x], [I32], (), (), {})
    with pytest.raises(TypeError, match="no property 'wrong'"):
        make(Pair, [x, x], [I32], (), (), {"wrong": 1})
    with pytest.raises(TypeError, match="needs the operand 'lhs'"):
        make(Pair, [None, x], [I32], (), (), {})
    with pytest.raises(ValueError, match="none of a, b"):
        make(Pair, [x, x], [I32], (), (), {"mode": "c"})
    assert make(Same, [x], None, (), (), {}).result.type is I32


def test_the_digest_ignores_names_and_locations() -> None:
    text = "func.func @f(%x: i32) -> i32 {\n  %y = arith.addi %x, %x : i32\n  return %y : i32\n}"
    other = text.replace("%x", "%arg").replace("%y", "%0").replace("\n", "\n\n")
    assert digest(parse_module(text, "a")) == digest(parse_module(other, "b"))
    assert digest(parse_module(text)) != digest(parse_module(text.replace("addi", "muli")))
    assert digest(parse_module(text)) != digest(parse_module(text.replace("@f", "@g")))
    assert digest(parse_module(text)) != digest(parse_module(text.replace("i32", "i64")))


def test_the_digest_is_the_same_in_every_process() -> None:
    program = (
        "from nablair.ir.parser import parse_module\n"
        "from nablair.ir.digest import digest\n"
        "print(digest(parse_module('func.func private @f(i32 {a.b = {y = 1, x = 2}})')))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(found.pop().strip()) == 64


@pytest.mark.parametrize("place", ["front", "end", "middle", "after one", "before one", "anywhere", "moved"])
def test_order_holds_wherever_ops_are_inserted_and_insertions_renumber_few(place: str) -> None:
    """Every insertion leaves the numbers of the block rising; on average it changes a few of them, not all."""
    random = stdlib_random.Random(place)
    count = 200
    for _ in range(cases(2)):
        block = Block()
        ops = [UnregisteredOp("test.op") for _ in range(4)]
        for op in ops:
            block.append(op)
        fixed, changed = ops[1], 0
        for _ in range(count):
            before = {op: op.order for op in ops}
            if place == "moved":
                op = ops.pop(random.randrange(len(ops)))
                op.detach()
                del before[op]
            else:
                op = UnregisteredOp("test.op")
            at = {
                "front": 0,
                "end": len(ops),
                "middle": len(ops) // 2,
                "after one": ops.index(fixed) + 1 if fixed in ops else 0,
                "before one": ops.index(fixed) if fixed in ops else 0,
            }.get(place, random.randrange(len(ops)))
            if at == len(ops):
                block.append(op)
            else:
                block.insert_before(op, ops[at])
            ops.insert(at, op)
            assert list(block) == ops
            assert all(a.order < b.order and a.is_before(b) for a, b in itertools.pairwise(ops))
            changed += sum(op.order != order for op, order in before.items())
        assert changed <= 4 * count * math.log2(count)


def test_uses_equal_a_count_over_all_operands_after_any_change() -> None:
    """The use list has three forms; drawn changes take values through all of them, forward and back."""
    for seed in range(cases(20)):
        rng = stdlib_random.Random(seed)
        block = Block([F32] * 3)
        ops: list[Operation] = []
        for _ in range(40):
            values = [*block.arguments, *(r for op in ops for r in op.results)]
            change = rng.randrange(4) if ops else 0
            if change == 0:
                op = UnregisteredOp("t.op", rng.choices(values, k=rng.randrange(4)), [F32] * rng.randrange(3))
                block.append(op)
                ops.append(op)
            elif change == 1:
                rng.choice(ops).set_operands(rng.choices(values, k=rng.randrange(4)))
            elif change == 2:
                old, new = rng.sample(values, 2)
                old.replace_by(new)
            else:
                removable = [op for op in ops if not any(r.uses for r in op.results)]
                if removable:
                    op = rng.choice(removable)
                    op.erase()
                    ops.remove(op)
            for value in [*block.arguments, *(r for op in ops for r in op.results)]:
                expected = {op: n for op in ops if (n := sum(v is value for v in op.operands))}
                assert dict(value.uses) == expected
                assert set(value.users) == set(expected)
                assert len(value.users) == value.num_users == len(expected)
                assert value.num_uses == sum(expected.values())


def test_ops_and_values_have_no_dictionary() -> None:
    module = parse_module("func.func @f(%a: f32) -> f32 {\n%0 = arith.addf %a, %a : f32\nreturn %0 : f32\n}")
    for op in [*module.walk(), Pair([module.block.first.body.block.arguments[0]] * 2)]:
        assert not hasattr(op, "__dict__"), op.name
        assert not any(hasattr(value, "__dict__") for value in op.results)
        with pytest.raises(AttributeError, match="surprise"):
            op.surprise = 1

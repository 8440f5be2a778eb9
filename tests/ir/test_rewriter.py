"""The greedy rewriter: folds, dead ops, constants, operand order, rules as a table, bounds."""

from __future__ import annotations

from typing import Any

import pytest

from nablair.ir.attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from nablair.ir.builder import Builder
from nablair.ir.definition import (
    COMMUTATIVE,
    CONSTANT,
    ISOLATED,
    PURE,
    RECURSIVE_EFFECTS,
    SAME_TYPE,
    Op,
    attr,
    integers,
    operand,
    region,
    result,
    variadic_operand,
)
from nablair.ir.diagnostics import PassError
from nablair.ir.location import FileLoc, FusedLoc
from nablair.ir.operations import Block, Operation, Region
from nablair.ir.rewrite_rules import captures, compute, constants, rule, table, term
from nablair.ir.rewriter import CHANGED, CONSTANT_OPS, Rewriter, rewrite_greedily
from nablair.ir.types import F32, I32, FloatType, IntegerType, TensorType, Type


class Constant(Op):
    name = "test_rewriter.constant"
    traits = frozenset({PURE, CONSTANT})
    value = attr()
    result = result()


class Add(Op):
    name = "test_rewriter.add"
    traits = frozenset({PURE, COMMUTATIVE, SAME_TYPE})
    lhs = operand()
    rhs = operand()
    result = result()

    def fold(self, constants):
        if isinstance(constants[0], IntegerAttr) and isinstance(constants[1], IntegerAttr):
            return IntegerAttr(constants[0].value + constants[1].value, constants[0].type)
        return None


class Sub(Op):
    name = "test_rewriter.sub"
    traits = frozenset({PURE, SAME_TYPE})
    lhs = operand()
    rhs = operand()
    result = result()


class Mul(Op):
    name = "test_rewriter.mul"
    traits = frozenset({PURE, COMMUTATIVE, SAME_TYPE})
    lhs = operand()
    rhs = operand()
    result = result()


class Broadcast(Op):
    """An addition whose result may have another type than its left operand."""

    name = "test_rewriter.broadcast_add"
    traits = frozenset({PURE})
    lhs = operand()
    rhs = operand()
    result = result()


class Permute(Op):
    name = "test_rewriter.permute"
    traits = frozenset({PURE, SAME_TYPE})
    x = operand()
    result = result()
    axes = integers()


class Use(Op):
    """Has effects that nobody knows."""

    name = "test_rewriter.use"
    values = variadic_operand()


class Loop(Op):
    name = "test_rewriter.loop"
    traits = frozenset({RECURSIVE_EFFECTS})
    body = region()


class Reduce(Op):
    name = "test_rewriter.reduce"
    closed_regions = ("combine",)
    body = region()
    combine = region()


class Function(Op):
    name = "test_rewriter.func"
    traits = frozenset({ISOLATED})
    body = region()


class WrongFold(Op):
    name = "test_rewriter.wrong_fold"
    traits = frozenset({PURE})
    x = operand()
    result = result()

    def fold(self, constants):
        return self.x


@pytest.fixture(autouse=True)
def constants_of_the_test(monkeypatch: pytest.MonkeyPatch):
    for kind in (IntegerType, FloatType, TensorType):
        monkeypatch.setitem(CONSTANT_OPS, kind, "test_rewriter.constant")


def function(*types: Type) -> tuple[Any, Builder, list[Any]]:
    block = Block(types)
    op = Function(regions=[Region([block])])
    return op, Builder(block), list(block.arguments)


def const(b: Builder, value: float, type: Any = I32) -> Any:
    attribute: Attribute = IntegerAttr(int(value), type) if isinstance(type, IntegerType) else FloatAttr(value, type)
    return b.create(Constant, results=[type], value=attribute).result


def names(op: Operation) -> list[str]:
    return [inner.name.partition(".")[2] for inner in op.walk()][1:]


x, y, p, q = captures("x y p q")
c, d = constants("c d")
add, sub, mul, permute = term(Add), term(Sub), term(Mul), term(Permute)


def test_a_fold_makes_one_constant_at_the_start_of_the_function():
    f, b, (a,) = function(I32)
    mid = b.value(Add, a, a)
    one = const(b, 1)
    two = b.value(Add, one, one)
    again = b.value(Add, const(b, 1), const(b, 1))
    b.create(Use, [mid, two, again])
    outcome = rewrite_greedily(f)
    assert outcome.converged and outcome.changed
    assert names(f) == ["constant", "add", "use"]
    use = f.body.block.last
    assert use.operands[1] is use.operands[2]
    assert use.operands[1].owner.value is IntegerAttr(2, I32)


def test_constants_of_nested_regions_move_to_the_isolated_one_around():
    f, b, _ = function()
    inner = Block()
    b.create(Loop, regions=[Region([inner])])
    nested = Builder(inner)
    nested.create(Use, [const(nested, 1)])
    b.create(Use, [const(b, 1), const(b, 2)])
    rewrite_greedily(f)
    assert names(f) == ["constant", "constant", "loop", "use", "use"]


def test_constants_stay_in_a_closed_region():
    f, b, _ = function()
    body, combine = Block(), Block()
    b.create(Reduce, regions=[Region([body]), Region([combine])])
    for block in (body, combine):
        nested = Builder(block)
        nested.create(Use, [nested.value(Add, const(nested, 1), const(nested, 1))])
    rewrite_greedily(f)
    assert names(f) == ["constant", "reduce", "use", "constant", "use"]


def test_a_dead_chain_and_a_dead_loop_go():
    f, b, (a,) = function(I32)
    value = a
    for _ in range(50):
        value = b.value(Add, value, a)
    inner = Block()
    b.create(Loop, regions=[Region([inner])])
    Builder(inner).value(Add, a, a)
    assert rewrite_greedily(f).converged
    assert names(f) == []
    assert not a.uses


def test_a_loop_with_effects_stays():
    f, b, (a,) = function(I32)
    inner = Block()
    b.create(Loop, regions=[Region([inner])])
    Builder(inner).create(Use, [a])
    rewrite_greedily(f)
    assert names(f) == ["loop", "use"]


def test_the_constant_of_a_commutative_op_goes_right():
    f, b, (a,) = function(I32)
    one = const(b, 1)
    b.create(Use, [b.value(Add, one, a), b.value(Sub, one, a)])
    rewrite_greedily(f)
    added, subtracted = (v.owner for v in f.body.block.last.operands)
    assert added.operands == (a, one) and subtracted.operands == (one, a)


def test_rows_match_numbers_captures_and_repeats():
    rules = table((add(x, 0), x, "x + 0 -> x"), (sub(x, x), 0, "x - x -> 0"), (mul(x, 2), add(x, x), "twice"))
    f, b, (a, other) = function(I32, I32)
    b.create(
        Use, [b.value(Add, const(b, 0), a), b.value(Sub, a, a), b.value(Sub, a, other), b.value(Mul, a, const(b, 2))]
    )
    outcome = rewrite_greedily(f, rules)
    first, second, third, fourth = f.body.block.last.operands
    assert first is a and second.owner.value is IntegerAttr(0, I32)
    assert third.owner.name == Sub.name and fourth.owner.operands == (a, a)
    assert outcome.fired["test_rewriter.add: x + 0 -> x"] == 1


def test_zero_is_not_minus_zero():
    rules = table((add(x, -0.0), x, "x + -0 -> x"))
    f, b, (a,) = function(F32)
    b.create(Use, [b.value(Add, a, const(b, 0.0, F32)), b.value(Add, a, const(b, -0.0, F32))])
    rewrite_greedily(f, rules)
    plus, minus = f.body.block.last.operands
    assert plus.owner.name == Add.name and minus is a


def test_a_splat_is_its_number():
    tensor = TensorType((4,), I32)
    f, b, (a,) = function(tensor)
    zero = b.create(Constant, results=[tensor], value=DenseAttr.splat(tensor, 0)).result
    b.create(Use, [b.value(Add, a, zero)])
    rewrite_greedily(f, table((add(x, 0), x, "x + 0 -> x")))
    assert f.body.block.last.operands == (a,)


def test_computed_constants_properties_and_conditions():
    rules = table(
        (add(add(x, c), d), add(x, compute(lambda m, n: m.value + n.value, c, d)), "one constant"),
        (
            permute(permute(x, axes=p), axes=q),
            permute(x, axes=compute(lambda m, n: [m[i] for i in n], p, q)),
            "one permutation",
        ),
        (permute(x, axes=p), x, "identity", compute(lambda order: list(order) == sorted(order), p)),
    )
    f, b, (a,) = function(I32)
    chain = a
    for k in range(10):
        chain = b.value(Add, chain, const(b, k))
    turned = b.value(Permute, b.value(Permute, a, axes=[1, 2, 0]), axes=[1, 2, 0])
    back = b.value(Permute, turned, axes=[1, 2, 0])
    b.create(Use, [chain, turned, back])
    assert rewrite_greedily(f, rules).converged
    total, turned, back = f.body.block.last.operands
    assert total.owner.lhs is a and total.owner.rhs.owner.value.value == 45
    assert turned.owner.axes == (2, 0, 1) and back is a


@pytest.mark.parametrize("swapped", [False, True])
def test_ops_of_commutative_operands_match_in_either_order(swapped: bool):
    rules = table((sub(add(x, y), x), y, "x + y - x -> y"), (add(mul(x, y), x), y, "just for the test"))
    f, b, (m, n) = function(I32, I32)
    product = b.value(Mul, n, m) if swapped else b.value(Mul, m, n)
    added = b.value(Add, m, product) if swapped else b.value(Add, product, m)
    b.create(Use, [b.value(Sub, b.value(Add, n, m), m), added])
    rewrite_greedily(f, rules)
    assert f.body.block.last.operands == (n, n)


def test_a_row_that_would_change_the_type_does_not_apply():
    small, big = TensorType((1,), I32), TensorType((4,), I32)
    f, b, (a,) = function(small)
    zero = b.create(Constant, results=[big], value=DenseAttr.splat(big, 0)).result
    b.create(Use, [b.create(Broadcast, a, zero, results=[big]).result])
    outcome = rewrite_greedily(f, table((term(Broadcast)(x, 0), x, "x + 0 -> x")))
    assert names(f) == ["constant", "broadcast_add", "use"] and not outcome.changed


def test_a_row_that_gives_up_late_leaves_nothing_behind():
    f, b, (a,) = function(I32)
    b.create(Use, [b.value(Mul, a, a)])

    @rule(Mul, "gives up")
    def give_up(op: Mul, rewriter: Rewriter):
        rewriter.value(Add, op.lhs, rewriter.number(7, I32))

    outcome = rewrite_greedily(f, [give_up])
    assert outcome.converged and not outcome.changed
    assert names(f) == ["mul", "use"]


def test_replacements_fuse_locations():
    f, b, (a,) = function(I32)
    b.location = FileLoc("f", 1, 1)
    inner = b.value(Permute, a, axes=[1, 0, 2])
    b.location = FileLoc("f", 2, 1)
    b.create(Use, [b.value(Permute, inner, axes=[0, 2, 1])])
    rewrite_greedily(f, table((permute(permute(x, axes=p), axes=q), permute(x, axes=p), "drop one")))
    assert f.body.block.last.operands[0].owner.location == FusedLoc([FileLoc("f", 2, 1), FileLoc("f", 1, 1)])


def test_a_rule_may_change_its_op_in_place():
    f, b, (a,) = function(I32)
    b.create(Use, [a, a])

    @rule(Use, "once each")
    def once(op: Use, rewriter: Rewriter):
        unique = list(dict.fromkeys(op.operands))
        if len(unique) == len(op.operands):
            return None
        op.set_operands(unique)
        return CHANGED

    assert rewrite_greedily(f, [once]).fired == {str(once): 1}
    assert f.body.block.last.operands == (a,)


def test_a_rule_may_inline_a_region():
    f, b, (a,) = function(I32)
    inner = Block()
    b.create(Loop, regions=[Region([inner])])
    nested = Builder(inner)
    nested.create(Use, [nested.value(Add, nested.value(Add, a, const(nested, 0)), const(nested, 1))])
    nested.create(Use, [])

    @rule(Loop, "once")
    def once(op: Loop, rewriter: Rewriter):
        return rewriter.inline_block(op.body.block, op, [])

    outcome = rewrite_greedily(f, [once, *table((add(x, 0), x, "x + 0 -> x"))])
    assert outcome.converged
    assert names(f) == ["constant", "add", "use"]
    assert f.body.block.last.operands[0].owner.lhs is a


def test_rules_that_undo_each_other_are_named():
    rules = table(
        (add(x, y), sub(x, y), "there"),
        (sub(x, y), add(x, y), "back"),
        (mul(x, 1), x, "x * 1 -> x"),
    )
    f, b, (a,) = function(I32)
    b.create(Use, [b.value(Mul, b.value(Add, a, a), const(b, 1))])
    outcome = rewrite_greedily(f, rules)
    assert not outcome.converged
    assert set(outcome.cycling) == {"test_rewriter.add: there", "test_rewriter.sub: back"}
    assert "test_rewriter.sub: back" in str(outcome)


def test_rules_that_grow_without_end_are_stopped():
    f, b, (a,) = function(I32)
    b.create(Use, [b.value(Add, a, a)])
    outcome = rewrite_greedily(f, table((add(x, y), add(add(y, x), add(x, y)), "grow")))
    assert not outcome.converged and outcome.cycling == ["test_rewriter.add: grow"]


def test_a_long_chain_of_rewrites_is_no_cycle():
    f, b, (a,) = function(I32)
    value = a
    for k in range(2000):
        value = b.value(Add, value, const(b, k))
    b.create(Use, [value])
    outcome = rewrite_greedily(
        f, table((add(add(x, c), d), add(x, compute(lambda m, n: m.value + n.value, c, d)), "one"))
    )
    assert outcome.converged and names(f) == ["constant", "add", "use"]


def test_wrong_folds_and_rules_are_reported():
    f, b, (a,) = function(I32)
    b.create(Use, [b.create(WrongFold, a, results=[F32]).result])
    with pytest.raises(
        PassError, match=r"the fold of test_rewriter.wrong_fold gave a value of type i32 for .* type f32"
    ):
        rewrite_greedily(f)
    f, b, (a,) = function(I32)
    b.create(Use, [b.value(Add, a, a)])
    with pytest.raises(PassError, match=r"the rule 'test_rewriter.add: none' gave 0 values for 1 results"):
        rewrite_greedily(f, [rule(Add, "none")(lambda op, rewriter: [])])


def test_rewrites_can_be_traced():
    f, b, (a,) = function(I32)
    b.create(Use, [b.value(Add, a, const(b, 0))])
    seen = []
    rewrite_greedily(
        f, table((add(x, 0), x, "x + 0 -> x")), trace=lambda name, op, values: seen.append((name, op.name, values))
    )
    assert seen == [("test_rewriter.add: x + 0 -> x", "test_rewriter.add", [a])]


def test_a_row_with_an_unknown_property_is_refused():
    with pytest.raises(TypeError, match="has no property 'axs'"):
        permute(x, axs=p)

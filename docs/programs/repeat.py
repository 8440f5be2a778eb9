"""A plugin's dialect: an op with a region, its meaning, its lowering and a rule.

ir-opt --load-plugin docs/programs/repeat.py docs/programs/repeat.mlir -p kernel
"""

from nablair.ir.definition import (
    RECURSIVE_EFFECTS,
    TENSOR,
    TERMINATOR,
    Op,
    integer,
    operand,
    region,
    result,
)
from nablair.ir.dialect import Dialect, register
from nablair.ir.interfaces import Expands
from nablair.ir.interpreter.machine import handler
from nablair.ir.rewrite_rules import rule
from nablair.ir.support.tensor_op import TensorOp
from nablair.ir.values import Value

register(Dialect("repeat", "tensor", ops=__name__, rewrites=__name__, meaning=__name__))


class Yield(Op):
    """The value that a body gives."""

    name = "repeat.yield"
    traits = frozenset({TERMINATOR})
    value = operand(TENSOR)
    assembly = "$value attr-dict `:` type($value)"


class Times(TensorOp, Expands):
    """What becomes of x when the body is applied `count` times, each time to what it gave before."""

    name = "repeat.times"
    traits = frozenset({RECURSIVE_EFFECTS})
    x = operand(TENSOR)
    count = integer()
    body = region()
    result = result(TENSOR)
    assembly = "$x $body attr-dict `:` type($result)"

    def infer(self):
        return [self.x.type]

    def verify_(self):
        block = self.body.block
        given = [v.type for v in (*block.arguments, *block.terminator.operands)]
        if given != [self.x.type, self.x.type]:
            raise self.error(f"needs a body from {self.x.type} to the same type")
        if self.count < 0:
            raise self.error(f"needs a count of 0 or more, got {self.count}")

    def expand(self, b):
        """The body, once for each time."""
        value, block = self.x, self.body.block
        for _ in range(self.count):
            table: dict[Value, Value] = {block.arguments[0]: value}
            for op in block:
                if op is not block.terminator:
                    b.insert(op.clone(table))
            (end,) = block.terminator.operands
            value = table.get(end, end)
        return value


@handler("repeat.times")
def times(machine, op, env):
    """What the interpreter does."""
    values = [env[op.x]]
    for _ in range(op.count):
        values = machine.run(op.body, values, env)
    return values


@rule(Times, "x, not once repeated -> x")
def never(op, rewriter):
    return [op.x] if op.count == 0 else None


RULES = (never,)

"""A plugin's monoid, and a reduction by it.

ir-run --load-plugin docs/programs/either.py docs/programs/either.mlir --args random
"""

import numpy as np

from nablair.ir.attributes import constant_attr
from nablair.ir.definition import COMMUTATIVE, ELEMENTWISE, FLOAT_LIKE, PURE, SAME_TYPE, Op, operand, result
from nablair.ir.dialects.linalg.reduction import Reduction
from nablair.ir.interfaces import Evaluates, ExpandsToScalars, HasVjp, MonoidOp
from nablair.ir.support.tensor_op import FLOATS


class Either(Op, MonoidOp, Evaluates, ExpandsToScalars):
    """lhs + rhs - lhs * rhs: the probability that one of two independent events happens."""

    name = "chance.either"
    traits = frozenset({PURE, SAME_TYPE, COMMUTATIVE, ELEMENTWISE})
    lhs = operand(FLOAT_LIKE)
    rhs = operand(FLOAT_LIKE)
    result = result(FLOAT_LIKE)
    assembly = "$lhs `,` $rhs attr-dict `:` type($result)"

    @classmethod
    def identity(cls, type):
        return constant_attr(0.0, type)

    def evaluate(self, lhs, rhs):
        return lhs + rhs - lhs * rhs

    def expand_scalar(self, b):
        return b.sub(b.add(self.lhs, self.rhs), b.mul(self.lhs, self.rhs))


class ReduceEither(Reduction, HasVjp):
    """The probability that at least one of independent events happens, over axes; below 1 for the derivative."""

    name = "chance.reduce_either"
    accepts = FLOATS

    def kind(self):
        return "chance.either"

    def formula(self, x, **keywords):
        return 1.0 - np.prod(1.0 - x, **keywords)

    def vjp(self, b, ct):
        none = self.spread(b, b.sub(1.0, self.result))
        yield b.mul(self.spread(b, ct), b.div(none, b.sub(1.0, self.x)))

"""Which integers a value of type `index` can be, from loop bounds, constants and arithmetic.

Intervals are of Python integers; one that does not fit 64 bits says nothing, for then the value may have wrapped.
"""

from __future__ import annotations

from ...ir.dialects import arith, scf
from ...ir.support.mixed import Extent
from ...ir.types import IntegerType
from ...ir.values import BlockArgument, Value

Range = tuple[int, int]
"""The least and the greatest value, both possible."""
ALL: Range = (-(1 << 63), (1 << 63) - 1)
"""All integers of 64 bits: what is said of a value of which nothing is known."""


class Ranges:
    """The ranges of values of one function, each computed once."""

    def __init__(self) -> None:
        self._known: dict[Value, Range] = {}

    def of(self, value: Extent) -> Range:
        """The range of an integer value, signed."""
        if isinstance(value, int):
            return value, value
        found = self._known.get(value)
        if found is None:
            # A value that is asked for while it is computed (it cannot be in SSA form) may be anything.
            self._known[value] = ALL
            low, high = self._compute(value)
            found = self._known[value] = (low, high) if ALL[0] <= low and high <= ALL[1] else ALL
        return found

    def _compute(self, value: Value) -> Range:
        if isinstance(value, BlockArgument):
            return self._counter(value)
        op = value.defining_op
        assert op is not None
        if isinstance(op, arith.Constant):
            number = getattr(op.properties["value"], "value", None)
            return (int(number), int(number)) if isinstance(number, int) else ALL
        if isinstance(op, arith.AddI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            return self._fits(value, (a + c, b + d))
        if isinstance(op, arith.SubI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            return self._fits(value, (a - d, b - c))
        if isinstance(op, arith.MulI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            corners = (a * c, a * d, b * c, b * d)
            return self._fits(value, (min(corners), max(corners)))
        if isinstance(op, arith.MinSI | arith.MaxSI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            choose = min if isinstance(op, arith.MinSI) else max
            return choose(a, c), choose(b, d)
        if isinstance(op, arith.RemUI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            return (0, min(d - 1, b) if a >= 0 else d - 1) if c > 0 else ALL
        if isinstance(op, arith.DivUI):
            (a, b), (c, d) = self.of(op.lhs), self.of(op.rhs)
            return (a // d, b // c) if a >= 0 and c > 0 else ALL
        if isinstance(op, arith.Select):
            (a, b), (c, d) = self.of(op.true_value), self.of(op.false_value)
            return min(a, c), max(b, d)
        if type(op) in (arith.IndexCast, arith.ExtSI):
            return self._fits(value, self.of(op.operands[0]))
        return self._of_type(value)

    @staticmethod
    def _of_type(value: Value) -> Range:
        if isinstance(value.type, IntegerType) and value.type.width <= 64:
            half = 1 << value.type.width - 1
            return (-half, half - 1)
        return ALL

    def _fits(self, value: Value, found: Range) -> Range:
        """A range as it is if arithmetic of the value's type cannot have wrapped, else any value of the type."""
        low, high = self._of_type(value)
        return found if low <= found[0] and found[1] <= high else (low, high)

    def _counter(self, argument: BlockArgument) -> Range:
        """The counter of a loop runs between its bounds."""
        owner = argument.owner.parent
        loop = owner.parent if owner is not None else None
        if isinstance(loop, scf.For) and argument.index == 0:
            low, high = self.of(loop.lower)[0], self.of(loop.upper)[1] - 1
        elif isinstance(loop, scf.Forall) and argument.index < len(loop.lower):
            low, high = self.of(loop.lower[argument.index])[0], self.of(loop.upper[argument.index])[1] - 1
        else:
            return self._of_type(argument)
        # A body that never runs needs no proof.
        return (low, max(low, high))

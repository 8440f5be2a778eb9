"""`vector.reduction`: all lanes of a vector combined to a scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...definition import PURE, VECTOR, Op, make, operand, optional_operand, result
from ...interfaces import CustomForm, Evaluates
from ...support.combining import combiner
from ...support.dialect_properties import FAST_MATH_FLAGS, DialectEnumeration, fast_math
from ...types import FloatType, Type, element_type
from ..memref.views import expect_type
from .checks import vector_type

if TYPE_CHECKING:
    from ...arrays import Array
    from ...parser import Parser
    from ...printer import Printer


REDUCTIONS = (
    "add", "mul", "minui", "minsi", "minnumf", "maxui", "maxsi", "maxnumf", "and", "or", "xor", "maximumf", "minimumf",
)  # fmt: skip


def flags_text(flags: frozenset[str]) -> str:
    """`fastmath<reassoc,contract>`."""
    return f"fastmath<{','.join(f for f in FAST_MATH_FLAGS if f in flags)}>"


class Reduction(Op, Evaluates, CustomForm):
    """`vector.reduction <add>, %v, %acc fastmath<reassoc> : vector<16xf32> into f32`: all lanes to one.

    The order is first to last from `acc`; with `reassoc` it is the halving tree: lane i with lane i + n/2, and so on.
    """

    name = "vector.reduction"
    traits = frozenset({PURE})
    vector = operand(VECTOR)
    acc = optional_operand()
    result = result()
    kind = DialectEnumeration("vector", "kind<{}>", REDUCTIONS)
    fastmath = fast_math()

    def evaluate(self, vector: Array, acc: Array | None = None) -> Array:
        """An array to its fold, rounded at each step."""
        import numpy as np

        combine = combiner(self.kind, vector_type(self.vector.type).element)
        with np.errstate(all="ignore"):
            if "reassoc" in self.fastmath:
                while len(vector) > 1:
                    half = (len(vector) + 1) // 2
                    pairs = len(vector) - half
                    vector = np.concatenate([combine(vector[:pairs], vector[half:]), vector[pairs:half]])
                return vector[0] if acc is None else combine(vector[0], acc)
            lanes = iter(vector)
            folded = next(lanes) if acc is None else acc
            for lane in lanes:
                folded = combine(folded, lane)
            return folded

    def infer(self) -> Sequence[Type]:
        return [element_type(self.vector.type)]

    def verify_(self) -> None:
        vector, kind = vector_type(self.vector.type), self.kind
        if vector.rank != 1:
            raise self.error(f"reduces vectors of one axis, got {vector}")
        if self.acc is not None and self.acc.type is not vector.element:
            raise self.error(f"needs an accumulator of type {vector.element}, got {self.acc.type}")
        floats = isinstance(vector.element, FloatType)
        if kind not in ("add", "mul") and floats != kind.endswith("f"):
            raise self.error(f"<{kind}> reduces {'floats' if kind.endswith('f') else 'integers'}, got {vector}")

    @classmethod
    def parse(cls, p: Parser) -> Reduction:
        p.expect("<")
        start = p.i
        kind = p.checked(cls.definition.properties["kind"].encode, p.identifier(), at=start)
        p.expect(">")
        p.expect(",")
        vector = p.operand()
        acc = p.operand() if p.accept(",") else None
        flags = p.list("<", p.identifier, ">") if p.accept("fastmath") else None
        attributes = p.optional_attr_dict()
        p.expect(":")
        expect_type(p, vector)
        p.expect("into")
        properties = {"kind": kind, "fastmath": flags}
        op = make(cls, (vector, acc), [p.type()], (), (), properties)
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(f"<{self.kind}>, ")
        w.values(self.operands)
        if self.fastmath:
            w.write(f" {flags_text(self.fastmath)}")
        w.attr_dict(self, elided=("kind", "fastmath"))
        w.write(f" : {self.vector.type} into {self.result.type}")

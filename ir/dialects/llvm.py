"""The one op of upstream's `llvm` dialect that the loop level needs: instructions that have no other name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..attributes import StringAttr
from ..definition import Op, attr, make, string, variadic_operand, variadic_result
from ..interfaces import CustomForm
from ..types import FunctionType

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer


class CallIntrinsic(Op, CustomForm):
    """`%r = llvm.call_intrinsic "llvm.x86.avx512bf16.dpbf16ps.512"(%acc, %a, %b) : (..) -> ..`.

    It declares no effects, hence counts as reading and writing everything.
    """

    name = "llvm.call_intrinsic"
    arguments = variadic_operand()
    values = variadic_result()
    intrin = string()
    fastmathFlags = attr(optional=True)

    def verify_(self) -> None:
        if not self.intrin.startswith("llvm."):
            raise self.error(f"needs the name of an intrinsic, which starts with 'llvm.', got '{self.intrin}'")
        if len(self.results) > 1:
            raise self.error("has at most one result")

    @classmethod
    def parse(cls, p: Parser) -> CallIntrinsic:
        name = StringAttr(p.string())
        arguments = p.list("(", p.operand, ")")
        p.expect(":")
        signature = p.type()
        if not isinstance(signature, FunctionType) or list(signature.inputs) != [v.type for v in arguments]:
            p.error("the type does not fit the operands")
        op = make(cls, (arguments,), signature.results, (), (), {"intrin": name})
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        w.attribute(self.properties["intrin"])
        w.write("(")
        w.values(self.arguments)
        w.write(")")
        w.write(f" : {FunctionType([v.type for v in self.arguments], [r.type for r in self.results])}")
        w.attr_dict(self, elided=("intrin",))

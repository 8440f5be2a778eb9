"""The dialect `builtin`: the module, root of all IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..attributes import Attribute, StringAttr
from ..definition import ISOLATED, NO_TERMINATOR, SYMBOL, SYMBOL_TABLE, Op, region, string
from ..interfaces import CustomForm
from ..operations import Block, Operation, Region

if TYPE_CHECKING:
    from ..parser import Parser
    from ..printer import Printer


class Module(Op, CustomForm):
    """`module @name attributes {..} {..}`: a table of symbols; one block, without a terminator.

    Its discardable attributes carry a dialect's prefix (`nablair.target`), as MLIR demands.
    """

    name = "builtin.module"
    traits = frozenset({ISOLATED, NO_TERMINATOR, SYMBOL, SYMBOL_TABLE})
    sym_name = string(optional=True)
    sym_visibility = string(optional=True)
    body = region(bare=True)

    @classmethod
    def of(cls, ops: Sequence[Operation] = (), attributes: Mapping[str, Attribute] | None = None) -> Module:
        """A module with these ops."""
        block = Block()
        for op in ops:
            block.append(op)
        return cls((), (), None, attributes, [Region([block])])

    @property
    def block(self) -> Block:
        """The module's only block."""
        return self.body.block

    def symbol(self, name: str) -> Operation | None:
        """The op of the module that has this symbol."""
        wanted = StringAttr(name)
        for op in self.block:
            if op.properties.get("sym_name") is wanted:
                return op
        return None

    def functions(self) -> Iterator[Operation]:
        """The functions of the module, in order."""
        return (op for op in self.block if op.name == "func.func")

    def verify_(self) -> None:
        for key in self.attributes:
            if "." not in key:
                raise self.error(f"attribute '{key}' needs a dialect's prefix")

    @classmethod
    def parse(cls, p: Parser) -> Module:
        properties: dict[str, Attribute] = {}
        name = p.optional_symbol()
        if name is not None:
            properties["sym_name"] = StringAttr(name)
        attributes = p.optional_attr_dict() if p.accept("attributes") else {}
        return cls((), (), properties, attributes, [p.region(isolated=True)])

    def print(self, w: Printer) -> None:
        if self.sym_name is not None:
            w.symbol(self.sym_name)
            w.write(" ")
        if self.attributes or self.sym_visibility is not None:
            w.write("attributes")
            w.attr_dict(self, elided=("sym_name",))
            w.write(" ")
        with w.isolated():
            w.region(self.body)

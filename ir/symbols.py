"""Symbols: names of ops in the nearest enclosing symbol table, and references to them."""

from __future__ import annotations

from .attributes import Attribute, StringAttr, SymbolRefAttr
from .definition import SYMBOL, SYMBOL_TABLE
from .operations import Operation


def symbol_name(op: Operation) -> str | None:
    """The symbol that an op defines, or None."""
    found = op.properties.get("sym_name")
    return found.value if isinstance(found, StringAttr) and SYMBOL in op.traits else None


class SymbolTables:
    """Lookups of symbols; the ops of each table are read once, so use an object only while symbols stay."""

    def __init__(self) -> None:
        self._tables: dict[Operation, dict[str, Operation]] = {}

    def table(self, op: Operation) -> dict[str, Operation]:
        """The symbols directly in a symbol table."""
        found = self._tables.get(op)
        if found is None:
            found = self._tables[op] = {}
            for region in op.regions:
                for block in region.blocks:
                    for inner in block:
                        name = symbol_name(inner)
                        if name is not None:
                            found.setdefault(name, inner)
        return found

    def lookup(self, user: Operation, reference: Attribute | str) -> Operation | None:
        """The op that a reference in `user` means: the root in the nearest table outwards that has it, then inwards."""
        if isinstance(reference, str):
            reference = SymbolRefAttr(reference)
        if not isinstance(reference, SymbolRefAttr):
            return None
        op: Operation | None = user
        while op is not None:
            if SYMBOL_TABLE in op.traits and (found := self.table(op).get(reference.root)) is not None:
                for name in reference.nested:
                    inner = self.table(found).get(name) if SYMBOL_TABLE in found.traits else None
                    if inner is None:
                        return None
                    found = inner
                return found
            op = op.parent_op
        return None

"""Constant arrays of a module, and the buffers that name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...attributes import DenseAttr, symbol_text
from ...definition import (
    MEMREF,
    PURE,
    SYMBOL,
    Op,
    attr,
    flag,
    integer,
    make,
    result,
    string,
    symbol_ref,
    type_,
)
from ...interfaces import CustomForm, VerifiesSymbols
from ...types import I64, MemRefType, TensorType

if TYPE_CHECKING:
    from ...parser import Parser
    from ...printer import Printer
    from ...symbols import SymbolTables


class Global(Op, CustomForm):
    """`memref.global "private" constant @weights : memref<4xf32> = dense<..>`: an array that lives with the module."""

    name = "memref.global"
    traits = frozenset({SYMBOL})
    sym_name = string()
    sym_visibility = string(optional=True)
    type = type_()
    initial_value = attr(DenseAttr)
    constant = flag()
    alignment = integer(I64, optional=True)

    def verify_(self) -> None:
        type, value = self.type, self.initial_value
        if not isinstance(type, MemRefType) or not type.is_static:
            raise self.error(f"needs a memref type with static extents, got {type}")
        expected = TensorType(type.shape, type.element)
        if value.type is not expected:
            raise self.error(f"needs an initial value of type {expected}, got {value.type}")

    @classmethod
    def parse(cls, p: Parser) -> Global:
        visibility = p.string() if p.tokens[p.i][:1] == '"' else None
        constant = p.accept("constant")
        name = p.symbol()
        p.expect(":")
        type = p.type()
        p.expect("=")
        if not isinstance(type, MemRefType):
            p.error(f"expected a memref type, got {type}")
        value = p.attribute(TensorType(type.shape, type.element))
        properties = {
            "sym_name": name,
            "sym_visibility": visibility,
            "type": type,
            "initial_value": value,
            "constant": constant,
        }
        op = make(cls, (), [], (), (), properties)
        op.attributes = p.optional_attr_dict()
        return op

    def print(self, w: Printer) -> None:
        if self.sym_visibility is not None:
            w.write(f'"{self.sym_visibility}" ')
        w.write(f"{'constant ' if self.constant else ''}{symbol_text(self.sym_name)} : {self.type} = ")
        w.attribute(self.initial_value, with_type=False)
        w.attr_dict(self, elided=("sym_name", "sym_visibility", "type", "initial_value", "constant"))


class GetGlobal(Op, VerifiesSymbols, CustomForm):
    """`memref.get_global @weights : memref<4xf32>`: the buffer of a global."""

    name = "memref.get_global"
    traits = frozenset({PURE})
    result = result(MEMREF)

    @property
    def symbol(self) -> str:
        """The name of the global."""
        return _SYMBOL.__get__(self)

    def verify_symbols(self, tables: SymbolTables) -> None:
        """The global exists and has the type of the result."""
        target = tables.lookup(self, self.properties["name"])
        if not isinstance(target, Global):
            raise self.error(f"names {self.properties['name']}, which is not a memref.global")
        if self.result.type is not target.type:
            raise self.error(f"gives {self.result.type}, but {self.properties['name']} has the type {target.type}")

    @classmethod
    def parse(cls, p: Parser) -> GetGlobal:
        symbol = p.symbol()
        attributes = p.optional_attr_dict()
        p.expect(":")
        op = make(cls, (), [p.type()], (), (), {"name": symbol})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(symbol_text(self.symbol))
        w.attr_dict(self, elided=("name",))
        w.write(f" : {self.result.type}")


# Upstream's property is called `name`, which on an op class is the op's own name; so it is declared beside the class.
_SYMBOL = symbol_ref()
_SYMBOL.name = "name"
GetGlobal.definition.properties["name"] = _SYMBOL

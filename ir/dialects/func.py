"""The dialect `func`: functions, calls and returns, as upstream MLIR defines them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..attributes import ArrayAttr, Attribute, DictAttr, StringAttr, TypeAttr
from ..definition import (
    ISOLATED,
    PURE,
    SYMBOL,
    TERMINATOR,
    Op,
    array,
    region,
    string,
    symbol_ref,
    type_,
    variadic_operand,
    variadic_result,
)
from ..interfaces import CustomForm, VerifiesSymbols
from ..operations import Block, Region
from ..types import FunctionType, Type
from ..values import BlockArgument

if TYPE_CHECKING:
    from ..parser import Parser, ValueName
    from ..printer import Printer
    from ..symbols import SymbolTables

_HEADER = ("sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs")


class Func(Op, CustomForm):
    """`func.func @name(%x: T {attrs}) -> (T {attrs}) attributes {..} {..}`; without a body it is a declaration."""

    name = "func.func"
    traits = frozenset({ISOLATED, SYMBOL})
    sym_name = string()
    function_type = type_()
    sym_visibility = string(optional=True)
    arg_attrs = array(optional=True)
    res_attrs = array(optional=True)
    body = region(single_block=False)

    @classmethod
    def of(cls, name: str, inputs: Sequence[Type], results: Sequence[Type], visibility: str | None = None) -> Func:
        """A function with an entry block that is still empty."""
        properties: dict[str, Attribute] = {
            "sym_name": StringAttr(name),
            "function_type": TypeAttr(FunctionType(inputs, results)),
        }
        if visibility is not None:
            properties["sym_visibility"] = StringAttr(visibility)
        return cls((), (), properties, None, [Region([Block(inputs)])])

    @property
    def type(self) -> FunctionType:
        """The function's type."""
        found = self.function_type
        assert isinstance(found, FunctionType)
        return found

    @property
    def entry(self) -> Block:
        """The first block of the body."""
        return self.body.entry

    @property
    def arguments(self) -> list[BlockArgument]:
        """The arguments of the entry block."""
        return self.body.entry.arguments

    @property
    def is_declaration(self) -> bool:
        """Whether the function has no body."""
        return not self.body.blocks

    @property
    def returns(self) -> Return:
        """The `func.return` of a function with one block."""
        last = self.body.block.last
        if not isinstance(last, Return):
            raise self.error("does not end in func.return")
        return last

    def update_type(self) -> None:
        """Make `function_type` follow the arguments and the returned values."""
        inputs = [a.type for a in self.arguments]
        results = [v.type for v in self.returns.operands]
        self.properties["function_type"] = TypeAttr(FunctionType(inputs, results))

    def verify_(self) -> None:
        type = self.function_type
        if not isinstance(type, FunctionType):
            raise self.error(f"needs a function type, got {type}")
        if self.sym_visibility not in (None, "public", "private", "nested"):
            raise self.error(f"unknown visibility '{self.sym_visibility}'")
        for what, attributes, count in (
            ("arguments", self.arg_attrs, len(type.inputs)),
            ("results", self.res_attrs, len(type.results)),
        ):
            if attributes is None:
                continue
            if len(attributes) != count or not all(isinstance(a, DictAttr) for a in attributes):
                raise self.error(f"needs one dictionary of attributes for each of its {count} {what}")
        if self.is_declaration:
            if self.sym_visibility in (None, "public"):
                raise self.error("is a declaration, which must be private")
            return
        given = tuple(a.type for a in self.arguments)
        if given != type.inputs:
            raise self.error(f"has the type {type}, but its entry block takes ({', '.join(map(str, given))})")

    @classmethod
    def parse(cls, p: Parser) -> Func:
        properties: dict[str, Attribute] = {}
        for word in ("private", "public", "nested"):
            if p.accept(word):
                properties["sym_visibility"] = StringAttr(word)
        properties["sym_name"] = StringAttr(p.symbol())
        names: list[ValueName] = []
        inputs: list[Type] = []
        inputs_attrs: list[DictAttr] = []

        def argument() -> None:
            start = p.i
            if p.at_value():
                if len(names) < len(inputs):
                    p.error("either all arguments have names or none has")
                names.append(p.value_name())
                p.expect(":")
            elif names:
                p.error("either all arguments have names or none has", start)
            inputs.append(p.type())
            inputs_attrs.append(DictAttr(p.attribute_dict() if p.at("{") else {}))
            if p.at("loc"):
                p.location_attr()

        p.list("(", argument, ")")
        results: list[Type] = []
        results_attrs: list[DictAttr] = []

        def output() -> None:
            results.append(p.type())
            results_attrs.append(DictAttr(p.attribute_dict() if p.at("{") else {}))

        if p.accept("->"):
            if p.at("("):
                p.list("(", output, ")")
            else:
                results.append(p.type())
        properties["function_type"] = TypeAttr(FunctionType(inputs, results))
        if any(a.entries for a in inputs_attrs):
            properties["arg_attrs"] = ArrayAttr(inputs_attrs)
        if any(a.entries for a in results_attrs):
            properties["res_attrs"] = ArrayAttr(results_attrs)
        attributes = p.attribute_dict() if p.accept("attributes") else {}
        if not p.at("{"):
            if names:
                p.error("a declaration's arguments have no names", names[0].place)
            return cls((), (), properties, attributes, [Region()])
        if len(names) != len(inputs):
            p.error("a function with a body needs names for its arguments")
        return cls((), (), properties, attributes, [p.region(list(zip(names, inputs)), isolated=True)])

    def print(self, w: Printer) -> None:
        if self.sym_visibility is not None:
            w.write(f"{self.sym_visibility} ")
        w.symbol(self.sym_name)
        type = self.type
        with w.isolated():
            declared = self.is_declaration
            values: Sequence[BlockArgument | None] = [None] * len(type.inputs) if declared else self.arguments
            w.write("(")
            for i, (value, input) in enumerate(zip(values, type.inputs)):
                w.write(", " if i else "")
                if value is not None:
                    w.fresh_names([value])
                    w.value(value)
                    w.write(": ")
                w.type(input)
                w.write(_attributes(self.arg_attrs, i))
            w.write(")")
            if type.results:
                attributed = self.res_attrs is not None and any(str(a) != "{}" for a in self.res_attrs)
                if len(type.results) == 1 and not attributed and not isinstance(type.results[0], FunctionType):
                    w.write(f" -> {type.results[0]}")
                else:
                    pieces = [f"{t}{_attributes(self.res_attrs, i)}" for i, t in enumerate(type.results)]
                    w.write(f" -> ({', '.join(pieces)})")
            rest = {k: v for k, v in self.properties.items() if k not in _HEADER} | self.attributes
            if rest:
                w.write(f" attributes {DictAttr(rest)}")
            if not declared:
                w.write(" ")
                w.region(self.body)


def _attributes(all: Sequence[Attribute] | None, index: int) -> str:
    """` {..}` of one argument or result."""
    if all is None or not isinstance(found := all[index], DictAttr) or not found.entries:
        return ""
    return f" {found}"


class Return(Op):
    """Leaves the function with the values of its results."""

    name = "func.return"
    traits = frozenset({PURE, TERMINATOR})
    values = variadic_operand()
    assembly = "attr-dict ($values^ `:` type($values))?"

    def verify_(self) -> None:
        parent = self.parent_op
        if not isinstance(parent, Func):
            raise self.error("must stand in a func.func")
        expected = parent.type.results
        given = tuple(v.type for v in self.operands)
        if given != expected:
            raise self.error(
                f"returns ({', '.join(map(str, given))}), but @{parent.sym_name} has the results "
                f"({', '.join(map(str, expected))})"
            )


class Call(Op, VerifiesSymbols):
    """`%r = func.call @f(%x) : (T) -> T`."""

    name = "func.call"
    traits = frozenset()
    inputs = variadic_operand()
    results_ = variadic_result()
    callee = symbol_ref()
    assembly = "$callee `(` $inputs `)` attr-dict `:` functional-type(operands, results)"

    def verify_symbols(self, tables: SymbolTables) -> None:
        """The callee exists and has the types of the call."""
        target = tables.lookup(self, self.properties["callee"])
        if target is None:
            raise self.error(f"calls {self.properties['callee']}, which does not exist")
        if not isinstance(target, Func):
            raise self.error(f"calls {self.properties['callee']}, which is not a function but a '{target.name}'")
        given = FunctionType([v.type for v in self.operands], [v.type for v in self.results])
        if given is not target.type:
            raise self.error(f"has the type {given}, but {self.properties['callee']} has the type {target.type}")

"""Compiles an assembly string into the Python function that parses the op's custom form.

The function works on the parser's tokens directly: an operand costs one comparison and one look into the table of
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .assembly_format import AttrDict, Group, Literal, TypeOf, Types, Variable, flat, parse_format
from .attributes import UNIT, ArrayAttr, Attribute, DenseArrayAttr, StringAttr, SymbolRefAttr, UnitAttr
from .definition import (
    BOOL,
    INDEX_,
    ISOLATED,
    MANY,
    ONE,
    OPERAND_SIZES,
    SAME_TYPE,
    Enumeration,
    Field,
    Op,
    OperandField,
    Property,
    RegionField,
    SuccessorField,
)
from .lexer import tokenize
from .property_text import parse_property
from .types import I1, I32, INDEX, Type

if TYPE_CHECKING:
    from .operations import Operation
    from .parser import Parser


_FIRST: dict[type[Attribute], str] = {SymbolRefAttr: "@", StringAttr: '"', DenseArrayAttr: "[", ArrayAttr: "["}
"""What the text of an attribute of a class begins with."""


class ParserSource:
    """Writes `parse(p)` for a class.

    Local variables: `n<k>` the token number (or list of them) of operand field k, `t<k>` and `r<k>` types of operand
    and result fields, `region<k>`, `block<k>`, `props`, `attrs`; `i` is the position, put into `p.i` around calls.
    """

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.definition = cls.definition
        self.elements = parse_format(cls)
        self.lines: list[str] = []
        self.names: dict[str, Any] = {
            "cls": cls,
            "DenseArrayAttr": DenseArrayAttr,
            "I32": I32,
            "INDEX": INDEX,
            "I1": I1,
            "UNIT": UNIT,
            "parse_property": parse_property,
            "signature": _parse_signature,
            "resolve_loose": _resolve_loose,
        }
        self.depth = 1
        self.typed: dict[tuple[str, int], bool] = {}
        for element in flat(self.elements):
            if isinstance(element, TypeOf):
                self.typed[self.kind_of(element.field), element.field.index] = True
        self.types = next((e.kind for e in flat(self.elements) if isinstance(e, Types)), "")

    def kind_of(self, field: Field) -> str:
        return "operand" if isinstance(field, OperandField) else "result"

    def emit(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def call(self, target: str, expression: str) -> None:
        """`target = expression` with the position handed over."""
        self.emit("p.i = i")
        self.emit(f"{target} = {expression}" if target else expression)
        self.emit("i = p.i")

    def compile(self) -> Callable[[Parser], Operation]:
        emit = self.emit
        emit("tokens = p.tokens; i = p.i; types = p.types; values = p.values; props = {}; attrs = None")
        for field in self.definition.operands:
            if field.arity != ONE:
                emit(f"n{field.index} = []; t{field.index} = []")
        for field in self.definition.results:
            if field.arity != ONE:
                emit(f"r{field.index} = []")
        for element in self.elements:
            self.element(element)
        emit("p.i = i")
        self.finish()
        source = "def parse(p):\n" + "\n".join(self.lines)
        exec(compile(source, f"<assembly of {self.cls.name}>", "exec"), self.names)
        return self.names["parse"]

    def element(self, element: Any) -> None:
        emit = self.emit
        match element:
            case Literal(text):
                for token in tokenize(text)[0]:
                    if token:
                        emit(f"if tokens[i] != {token!r}: p.i = i; p.unexpected({repr(token)!r})")
                        emit("i += 1")
            case Variable(field):
                self.variable(field)
            case TypeOf(field):
                prefix = "t" if isinstance(field, OperandField) else "r"
                self.type_of(f"{prefix}{field.index}", field)
            case AttrDict():
                emit("if tokens[i] == '{':")
                self.depth += 1
                self.call("attrs", "p.optional_attr_dict()")
                self.depth -= 1
            case Types(kind):
                names = self.flat_names()
                if kind == "signature":
                    counts = len(self.definition.results)
                    loose = any(f.arity != ONE for f in self.definition.results)
                    self.call("ts, rs", f"signature(p, len({names}), {'p.result_count' if loose else counts})")
                elif kind == "type(operands)":
                    self.call("ts", f"p.types_list() if {names} else []")
                elif kind == "type(results)":
                    self.call("rs", "p.types_list()")
                else:
                    self.call("ft", "p.function_type()")
                    emit("ts = ft.inputs; rs = ft.results")
            case Group(elements, anchor):
                emit(f"if {self.starts(elements[0])}:")
                self.depth += 1
                for inner in elements:
                    self.element(inner)
                if isinstance(anchor, Property) and anchor.kind is UnitAttr:
                    emit(f"props[{anchor.name!r}] = UNIT")
                self.depth -= 1
            case _:
                raise TypeError(f"unknown element {element!r}")

    def starts(self, element: Any) -> str:
        """The condition that an optional group is there, from its first element."""
        match element:
            case Literal(text):
                return f"tokens[i] == {tokenize(text)[0][0]!r}"
            case Variable(OperandField()):
                return "tokens[i][:1] == '%'"
            case Variable(RegionField()):
                return "tokens[i] == '{'"
            case Variable(SuccessorField()):
                return "tokens[i][:1] == '^'"
            case Variable(Enumeration() as enumeration):
                return f"tokens[i] in {enumeration.names!r}"
            case Variable(field) if isinstance(field, Property):
                first = _FIRST.get(field.kind)
                return "tokens[i] and tokens[i] not in '{:,)'" if first is None else f"tokens[i][:1] == {first!r}"
            case TypeOf():
                return "p.at_type()"
            case _:
                raise TypeError(f"{self.cls.name}: a group of assembly cannot start with {element!r}")

    def variable(self, field: Any) -> None:
        emit = self.emit
        if isinstance(field, OperandField):
            k = field.index
            if field.arity == ONE:
                emit("if tokens[i][:1] != '%': p.i = i; p.unexpected('a value')")
                emit(f"n{k} = i; i += 1")
            elif field.arity == MANY:
                emit("while tokens[i][:1] == '%':")
                emit(f"    n{k}.append(i); i += 1")
                emit("    if tokens[i] == ',' and tokens[i + 1][:1] == '%': i += 1")
                emit("    else: break")
            else:
                emit(f"if tokens[i][:1] == '%': n{k}.append(i); i += 1")
        elif isinstance(field, RegionField):
            terminator = self.cls.implied_terminator
            self.names["terminator"] = terminator
            self.call(
                f"region{field.index}", f"p.region(isolated={ISOLATED in self.cls.traits}, terminator=terminator)"
            )
        elif isinstance(field, SuccessorField):
            self.call(f"block{field.index}", "p.successor()")
        elif isinstance(field, Property):
            if field.kind is UnitAttr:
                return
            self.names[f"property_{field.name}"] = field
            if field.kind is SymbolRefAttr:
                self.call(f"props[{field.name!r}]", "p.symbol_ref()")
            else:
                self.call(f"props[{field.name!r}]", f"parse_property(p, property_{field.name})")
        else:
            raise TypeError(f"{self.cls.name}: assembly cannot print '{field.name}'")

    def type_of(self, target: str, field: Field) -> None:
        emit = self.emit
        if field.arity == ONE:
            self.one_type(target)
            return
        if isinstance(field, OperandField):
            emit(f"for _ in n{field.index}:")
            self.depth += 1
            emit(f"if {target}:")
            emit("    if tokens[i] != ',': p.i = i; p.error('fewer types than operands')")
            emit("    i += 1")
        else:
            emit("while True:")
            self.depth += 1
        self.one_type("_t")
        emit(f"{target}.append(_t)")
        if not isinstance(field, OperandField):
            emit("if tokens[i] != ',': break")
            emit("i += 1")
        self.depth -= 1

    def one_type(self, target: str) -> None:
        self.emit(f"{target} = types.get(tokens[i])")
        self.emit(f"if {target} is None:")
        self.depth += 1
        self.call(target, "p.type()")
        self.depth -= 1
        self.emit("else: i += 1")

    def flat_names(self) -> str:
        fields = self.definition.operands
        return "[" + ", ".join(f"n{f.index}" if f.arity == ONE else f"*n{f.index}" for f in fields) + "]"

    def finish(self) -> None:
        """Resolve operands and results and make the op."""
        emit, definition = self.emit, self.definition
        given = [(kind, k) for kind, k in self.typed]
        known = ""
        if len(given) == 1 or (given and SAME_TYPE in self.cls.traits):
            kind, k = given[0]
            fields: list[Any] = definition.operands if kind == "operand" else definition.results
            name = f"{'t' if kind == 'operand' else 'r'}{k}"
            known = name if fields[k].arity == ONE else f"({name}[0] if {name} else None)"
        same = SAME_TYPE in self.cls.traits
        if self.types and self.types != "type(results)":
            emit(f"names = {self.flat_names()}")
            emit("if len(names) != len(ts): p.error(f'{len(names)} operands, but {len(ts)} types')")
            emit("operands = [p.resolve_token(tokens[n], n, t) for n, t in zip(names, ts)]")
        else:
            if self.types:
                known = "(rs[0] if rs else None)"
            parts: list[str] = []
            for field in definition.operands:
                parts.append(self.operand(field, known, same))
            emit(f"operands = ({', '.join(parts)}{',' if parts else ''})")
        if sum(f.arity != ONE for f in definition.operands) > 1:
            sizes = ", ".join("1" if f.arity == ONE else f"len(n{f.index})" for f in definition.operands)
            emit(f"props[{OPERAND_SIZES!r}] = DenseArrayAttr(({sizes},), I32)")
        infers = False
        if self.types and self.types != "type(operands)":
            results = "rs"
        else:
            pieces: list[str] = []
            for field in definition.results:
                if ("result", field.index) in self.typed:
                    pieces.append(f"r{field.index}" if field.arity == ONE else f"*r{field.index}")
                elif same and known:
                    pieces.append(known)
                elif same and self.types:
                    pieces.append("ts[0]")
                elif field.constraint is INDEX_ and field.arity == ONE:
                    pieces.append("INDEX")
                elif field.constraint is BOOL and field.arity == ONE:
                    pieces.append("I1")
                elif self.cls.infers:
                    infers = True
                else:
                    raise TypeError(f"{self.cls.name}: assembly does not give the type of '{field.name}'")
            results = f"({', '.join(pieces)}{',' if pieces else ''})"
        if infers:
            results = "()"
        regions = self.tuple_of("region", definition.regions)
        blocks = self.tuple_of("block", definition.successors)
        emit(f"op = cls(operands, {results}, props, attrs, {regions}, {blocks})")
        if infers:
            if any(not p.optional for p in definition.properties.values()):
                emit("if attrs: p.move_properties(op)")
                emit("p.check_properties(op)")
            elif definition.properties:
                emit("if attrs: p.move_properties(op)")
            emit("p.infer(op)")
        emit("return op")

    def tuple_of(self, prefix: str, fields: list[Any]) -> str:
        mentioned = {id(e.field) for e in flat(self.elements) if isinstance(e, Variable)}
        for field in fields:
            if id(field) not in mentioned:
                raise TypeError(f"{self.cls.name}: assembly does not mention '{field.name}'")
        return "(" + "".join(f"{prefix}{f.index}, " for f in fields) + ")"

    def operand(self, field: OperandField, known: str, same: bool) -> str:
        """The expression of an operand field's values, for use in the operands' tuple."""
        k = field.index
        mentioned = any(isinstance(e, Variable) and e.field is field for e in flat(self.elements))
        if not mentioned:
            raise TypeError(f"{self.cls.name}: assembly does not mention '{field.name}'")
        strict = ""
        if ("operand", k) in self.typed:
            strict = f"t{k}"
        elif field.constraint is INDEX_:
            strict = "INDEX"
        elif field.constraint is BOOL:
            strict = "I1"
        elif same and known:
            strict = known
        if field.arity == ONE:
            self.emit(f"v{k} = values.get(tokens[n{k}])")
            if strict:
                self.emit(f"if v{k} is None or v{k}.type is not {strict}:")
                self.emit(f"    v{k} = p.resolve_token(tokens[n{k}], n{k}, {strict})")
            else:
                self.emit(f"if v{k} is None: v{k} = resolve_loose(p, n{k}, {known or None})")
            return f"v{k}"
        if strict == f"t{k}":
            self.emit(f"v{k} = [p.resolve_token(tokens[n], n, t) for n, t in zip(n{k}, t{k})]")
        elif strict:
            self.emit(f"v{k} = [p.resolve_token(tokens[n], n, {strict}) for n in n{k}]")
        else:
            self.emit(f"v{k} = [resolve_loose(p, n, {known or None}) for n in n{k}]")
        return f"*v{k}"


def _resolve_loose(p: Parser, n: int, type: Type | None) -> Any:
    """A value whose type the text does not give; a name that is not defined yet is taken to have the type `type`."""
    token = p.tokens[n]
    found = p.values.get(token)
    if found is None and (token not in p.scope.forward):
        found = p.resolve_token(token, n, None if token.partition("#")[0] in p.values else type)
    return found if found is not None else p.resolve_token(token, n)


def _parse_signature(p: Parser, operands: int, results: int) -> tuple[list[Type], list[Type]]:
    """`T`, or `T, T -> T`: the types of operands and results."""
    start = p.i
    if p.tokens[p.i] == "->":
        types: list[Type] = []
    else:
        types = p.types_list()
    if p.accept("->"):
        return types, p.result_types()
    if (len(types) == 1 and operands != 0) or (len(types) == 1 and results):
        return types * operands, types * results
    p.error("expected one type for all, or operand types '->' result types", start)

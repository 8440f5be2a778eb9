"""Custom forms from `assembly` strings: one string gives both the parser and the printer of an op.

The string follows MLIR's declarative format:

    "$lhs `,` $rhs attr-dict `:` type($result)"

`$name` stands for an operand, property, region or successor, backquotes for literal text, `type(..)` for types,
`( .. $anchor^ .. )?` for a part that is there when its anchor is, `functional-type(operands, results)` for `(T) -> T`,
and `signature` for `T` when all types are one, else `T, T -> T`.

Each class's string is compiled once, when the op is first met, into two Python functions that work on the parser's
tokens and the printer's pieces directly.  Types that the text does not give follow from the operand's constraint, from
the trait SAME_TYPE, from the only type that is given, or from `infer`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from .attributes import (
    UNIT,
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DenseAttr,
    DialectAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
    dict_text,
    key_text,
)
from .definition import (
    BOOL,
    INDEX_,
    ISOLATED,
    MANY,
    ONE,
    OPERAND_SIZES,
    RESULT_SIZES,
    SAME_TYPE,
    Enumeration,
    Field,
    Op,
    OperandField,
    Property,
    RegionField,
    ResultField,
    SuccessorField,
)
from .lexer import DIGITS
from .types import I1, I32, INDEX, FloatType, IndexType, IntegerType, Type

if TYPE_CHECKING:
    from .operations import Operation
    from .parser import Parser
    from .printer import Printer

# Properties in their short spelling.


def parse_property(p: Parser, declared: Property[Any]) -> Attribute:
    """A property's value: the short spelling of its kind, or the whole attribute."""
    token = p.tokens[p.i]
    kind = declared.kind
    start = p.i
    if isinstance(declared, Enumeration) and p.at_identifier():
        return p.checked(declared.encode, p.identifier(), at=start)
    if token == "<" and (short := getattr(declared, "parse_short", None)) is not None:
        return p.checked(short, p.balanced()[1:-1], at=start)
    type = declared.type
    if kind is DenseArrayAttr and token == "[" and isinstance(type, IntegerType | FloatType):
        return DenseArrayAttr(p.list("[", lambda: p.number_attr(type).value, "]"), type)
    if type is not None and kind is not DenseArrayAttr and (token[:1] in DIGITS or token == "-"):
        found: Attribute = p.number_attr(type)
        if p.accept(":"):
            at = p.i
            if p.type() is not type:
                p.error(f"expected {declared.description}", at)
        return found
    found = p.attribute()
    if not isinstance(found, kind):
        if isinstance(found, ArrayAttr) and kind is DenseArrayAttr:
            p.error(f"expected {declared.description}", start)
        p.error(f"'{declared.name}' must be {declared.description}, got {found}", start)
    return found


def property_text(declared: Property[Any], attribute: Attribute) -> str:
    """The short spelling of a property's value."""
    if isinstance(declared, Enumeration) and isinstance(attribute, IntegerAttr):
        if 0 <= attribute.value < len(declared.names) and declared.encode(declared.names[attribute.value]) is attribute:
            return declared.names[attribute.value]
    if isinstance(attribute, DialectAttr) and (short := getattr(declared, "short", None)) is not None:
        return short(attribute)
    if isinstance(attribute, DenseArrayAttr) and attribute.element is declared.type:
        return f"[{str(attribute).partition(': ')[2][:-1]}]"
    if declared.type is not None and isinstance(attribute, IntegerAttr | FloatAttr) and attribute.type is declared.type:
        return str(attribute).partition(" : ")[0]
    return str(attribute)


def attr_dict_text(op: Operation, elided: frozenset[str] = frozenset()) -> str:
    """` {..}`: discardable attributes and the properties that are not elided, in short spelling; "" when none."""
    parts: list[str] = []
    if isinstance(op, Op):
        declared = op.definition.properties
        for key, value in op.properties.items():
            if key in elided or key == OPERAND_SIZES or key == RESULT_SIZES:
                continue
            found = declared.get(key)
            text = str(value) if found is None else property_text(found, value)
            parts.append(key_text(key) if value is UNIT else f"{key_text(key)} = {text}")
    parts += [key_text(k) if v is UNIT else f"{key_text(k)} = {v}" for k, v in op.attributes.items()]
    return f" {{{', '.join(parts)}}}" if parts else ""


# The format string as elements.


class Literal(NamedTuple):
    """Text that stands as it is."""

    text: str


class Variable(NamedTuple):
    """`$name`: an operand, property, region or successor."""

    field: Field | Property[Any]


class TypeOf(NamedTuple):
    """`type($name)`."""

    field: Field


class Types(NamedTuple):
    """`signature`, `functional-type(..)`, `type(operands)` or `type(results)`."""

    kind: str


class AttrDict(NamedTuple):
    """`attr-dict`."""


class Group(NamedTuple):
    """`( elements )?`, there when the anchor is."""

    elements: tuple[Any, ...]
    anchor: Field | Property[Any]


_FORMAT = re.compile(
    r"\s*(?:`(?P<literal>[^`]*)`|(?P<anchor>type\(\s*\$\w+\s*\)\^|\$\w+\^)|\$(?P<name>\w+)|type\(\s*\$(?P<type>\w+)\s*\)"
    r"|(?P<types>functional-type\(\s*operands\s*,\s*results\s*\)|type\(\s*operands\s*\)|type\(\s*results\s*\)|signature)"
    r"|(?P<dict>attr-dict)|(?P<open>\()|(?P<close>\)\?))"
)


def parse_format(cls: type[Op]) -> list[Any]:
    """The elements of a class's assembly string; TypeError where the string is wrong."""
    text = cls.assembly or ""
    definition = cls.definition
    fields: dict[str, Any] = {f.name: f for kind in definition.lists() for f in kind} | definition.properties
    position = 0
    stack: list[list[Any]] = [[]]
    anchors: list[Any] = []

    def field(name: str) -> Any:
        if name not in fields:
            raise TypeError(f"{cls.name}: assembly names '{name}', which the op does not have")
        return fields[name]

    while position < len(text.rstrip()):
        match = _FORMAT.match(text, position)
        if match is None:
            raise TypeError(f"{cls.name}: assembly is wrong at {text[position:]!r}")
        position = match.end()
        kind, value = match.lastgroup, match[match.lastgroup or 0]
        top = stack[-1]
        if kind == "literal":
            top.append(Literal(value))
        elif kind == "name":
            top.append(Variable(field(value)))
        elif kind == "type":
            top.append(TypeOf(field(value)))
        elif kind == "types":
            top.append(Types(value.replace(" ", "")))
        elif kind == "dict":
            top.append(AttrDict())
        elif kind == "anchor":
            found = field(value.strip("type()$^ ") if value.startswith("type") else value[1:-1])
            top.append(TypeOf(found) if value.startswith("type") else Variable(found))
            anchors.append(found)
        elif kind == "open":
            stack.append([])
        else:
            if len(stack) < 2 or not anchors:
                raise TypeError(f"{cls.name}: an optional group of assembly needs one anchor")
            elements = tuple(stack.pop())
            stack[-1].append(Group(elements, anchors.pop()))
    if len(stack) != 1:
        raise TypeError(f"{cls.name}: assembly has an open group")
    return stack[0]


def _flat(elements: list[Any] | tuple[Any, ...]) -> list[Any]:
    out: list[Any] = []
    for element in elements:
        out += _flat(element.elements) if isinstance(element, Group) else [element]
    return out


# The parser of a form, as Python source.


class _ParserSource:
    """Writes `parse(p)` for a class.

    Local variables: `n<k>` the token number (or list of them) of operand field k, `t<k>` and `r<k>` types of operand and
    result fields, `region<k>`, `block<k>`, `props`, `attrs`; `i` is the position, put into `p.i` around calls.
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
            "parse_symbol": lambda p: p.symbol_ref(),
            "signature": _parse_signature,
            "resolve_loose": _resolve_loose,
        }
        self.depth = 1
        self.typed: dict[tuple[str, int], bool] = {}
        for element in _flat(self.elements):
            if isinstance(element, TypeOf):
                self.typed[self.kind_of(element.field), element.field.index] = True
        self.types = next((e.kind for e in _flat(self.elements) if isinstance(e, Types)), "")

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
                from .lexer import tokenize

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
                from .lexer import tokenize

                return f"tokens[i] == {tokenize(text)[0][0]!r}"
            case Variable(OperandField()):
                return "tokens[i][:1] == '%'"
            case Variable(RegionField()):
                return "tokens[i] == '{'"
            case Variable(SuccessorField()):
                return "tokens[i][:1] == '^'"
            case Variable(Property() as declared):
                if isinstance(declared, Enumeration):
                    return f"tokens[i] in {declared.names!r}"
                first = {SymbolRefAttr: "@", StringAttr: '"', DenseArrayAttr: "[", ArrayAttr: "["}.get(declared.kind)
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
            terminator = getattr(self.cls, "implied_terminator", None)
            self.names["terminator"] = terminator
            self.call(f"region{field.index}", f"p.region(isolated={ISOLATED in self.cls.traits}, terminator=terminator)")
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
        mentioned = {id(e.field) for e in _flat(self.elements) if isinstance(e, Variable)}
        for field in fields:
            if id(field) not in mentioned:
                raise TypeError(f"{self.cls.name}: assembly does not mention '{field.name}'")
        return "(" + "".join(f"{prefix}{f.index}, " for f in fields) + ")"

    def operand(self, field: OperandField, known: str, same: bool) -> str:
        """The expression of an operand field's values, for use in the operands' tuple."""
        k = field.index
        mentioned = any(isinstance(e, Variable) and e.field is field for e in _flat(self.elements))
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
                self.emit(f"if v{k} is None or v{k}.type is not {strict}: v{k} = p.resolve_token(tokens[n{k}], n{k}, {strict})")
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
    if len(types) == 1 and operands != 0 or len(types) == 1 and results:
        return types * operands, types * results
    p.error("expected one type for all, or operand types '->' result types", start)


# The printer of a form, as Python source.

_CLOSERS = frozenset(">)}],")
_OPENERS = frozenset("<([{")


class _PrinterSource:
    """Writes `print_(op, w)` for a class: f-strings appended to the printer's pieces."""

    def __init__(self, cls: type[Op]) -> None:
        self.cls = cls
        self.elements = parse_format(cls)
        self.lines: list[str] = []
        self.pending: list[str] = []
        self.depth = 1
        self.punctuation = False  # the last element was punctuation: an opening bracket stands apart from it
        self.glued = False  # no space before whatever comes next
        self.names: dict[str, Any] = {
            "dict_text": dict_text,
            "attr_dict_text": attr_dict_text,
            "property_text": property_text,
            "signature": _signature_text,
            "result_text": _result_text,
            "UNIT": UNIT,
        }
        mentioned = [e.field for e in _flat(self.elements) if isinstance(e, Variable)]
        self.elided = frozenset(f.name for f in mentioned if isinstance(f, Property))
        self.names["elided"] = self.elided

    def compile(self) -> Callable[[Operation, Printer], None]:
        for element in self.elements:
            self.element(element)
        self.flush()
        source = "def print_(op, w):\n    out = w.out; names = w.names\n" + "\n".join(self.lines)
        if not self.lines:
            source += "    return"
        exec(compile(source, f"<assembly of {self.cls.name}>", "exec"), self.names)
        return self.names["print_"]

    def emit(self, text: str) -> None:
        self.flush()
        self.lines.append("    " * self.depth + text)

    def flush(self) -> None:
        if self.pending:
            self.lines.append("    " * self.depth + f'out.append(f"{"".join(self.pending)}")')
            self.pending = []

    def text(self, text: str) -> None:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("{", "{{").replace("}", "}}")
        self.pending.append(escaped)

    def code(self, expression: str) -> None:
        self.pending.append("{" + expression + "}")

    def space(self) -> None:
        if not self.glued:
            self.text(" ")
        self.glued = self.punctuation = False

    def access(self, field: Field) -> str:
        """The expression of an operand or result field's only value."""
        group = "operands" if isinstance(field, OperandField) else "results"
        if not field.segments:
            return f"op.{group}[{field.index}]"
        self.names[f"field_{field.name}"] = field
        return f"field_{field.name}.of(op)[0]"

    def values(self, field: Field) -> str:
        self.names[f"field_{field.name}"] = field
        return f"field_{field.name}.of(op)"

    def element(self, element: Any) -> None:
        match element:
            case Literal(text):
                self.literal(text)
            case Variable(field):
                self.variable(field)
            case TypeOf(field):
                if field.arity == ONE:
                    self.space()
                    self.code(f"{self.access(field)}.type._text")
                else:
                    self.space()
                    self.code(f"', '.join([v.type._text for v in {self.values(field)}])")
            case AttrDict():
                properties = set(self.cls.definition.properties) - self.elided
                if properties:
                    self.emit("text = attr_dict_text(op, elided)")
                else:
                    self.emit("text = ' ' + dict_text(op.attributes) if op.attributes else ''")
                self.code("text")
                self.glued = self.punctuation = False
            case Types(kind):
                self.space()
                if kind == "signature":
                    self.code("signature(op)")
                elif kind == "type(operands)":
                    self.code("', '.join([v.type._text for v in op.operands])")
                elif kind == "type(results)":
                    self.code("', '.join([v.type._text for v in op.results])")
                else:
                    self.code("'(' + ', '.join([v.type._text for v in op.operands]) + ') -> ' + result_text(op)")
            case Group(elements, anchor):
                self.group(elements, anchor)
            case _:
                raise TypeError(f"unknown element {element!r}")

    def group(self, elements: tuple[Any, ...], anchor: Field | Property[Any]) -> None:
        if isinstance(anchor, Property):
            name = anchor.name
            self.names[f"property_{name}"] = anchor
            condition = f"{name!r} in op.properties"
            if anchor.default is not None and anchor.kind is not UnitAttr:
                self.names[f"default_{name}"] = anchor.to_attribute(anchor.default)
                condition += f" and op.properties[{name!r}] is not default_{name}"
        elif isinstance(anchor, RegionField):
            condition = f"op.regions[{anchor.index}].blocks"
        else:
            condition = self.values(anchor)
        glued, punctuation = self.glued, self.punctuation
        self.emit(f"if {condition}:")
        self.depth += 1
        for inner in elements:
            self.element(inner)
        self.flush()
        self.depth -= 1
        if elements and isinstance(elements[-1], Literal) and elements[-1].text[:1] in _OPENERS:
            raise TypeError(f"{self.cls.name}: a group of assembly ends with an opening bracket")
        self.glued, self.punctuation = glued, punctuation

    def literal(self, text: str) -> None:
        if not text.strip():  # `` glues, ` ` is a space
            self.glued = True
            self.text(text)
            return
        closing = text in _CLOSERS
        opening = text in _OPENERS and not self.punctuation
        if not (self.glued or closing or opening):
            self.text(" ")
        self.text(text)
        self.glued = text[-1] in _OPENERS
        self.punctuation = not (text[0].isalnum() or text[0] == "_")

    def variable(self, field: Any) -> None:
        if isinstance(field, OperandField):
            self.space()
            if field.arity == ONE:
                self.code(f"names[{self.access(field)}]")
            else:
                self.code(f"', '.join([names[v] for v in {self.values(field)}])")
        elif isinstance(field, RegionField):
            self.space()
            hide = getattr(self.cls, "implied_terminator", None) is not None
            self.emit(f"w.region(op.regions[{field.index}], arguments=True, hide_terminator={hide})")
        elif isinstance(field, SuccessorField):
            self.space()
            self.code(f"w.block_name(op.successors[{field.index}])")
        elif isinstance(field, Property) and field.kind is not UnitAttr:
            self.space()
            self.names[f"property_{field.name}"] = field
            found = f"op.properties[{field.name!r}]"
            if field.default is not None:
                self.names[f"default_{field.name}"] = field.to_attribute(field.default)
                found = f"op.properties.get({field.name!r}, default_{field.name})"
            self.code(f"property_text(property_{field.name}, {found})")


def _signature_text(op: Operation) -> str:
    operands = [v.type for v in op.operands]
    results = [v.type for v in op.results]
    first = (operands or results or [None])[0]
    if first is not None and all(t is first for t in operands) and all(t is first for t in results) and results:
        return str(first)
    return f"{', '.join(map(str, operands))} -> {_result_text(op)}".lstrip()


def _result_text(op: Operation) -> str:
    results = [str(v.type) for v in op.results]
    return results[0] if len(results) == 1 and not results[0].startswith("(") else f"({', '.join(results)})"


# What the parser and the printer ask for.

_PRINTERS: dict[type[Operation], Callable[[Any, Any], None] | None] = {}


def custom_parser(cls: type[Op]) -> Callable[[Parser], Operation] | None:
    """The function that parses a class's custom form; None when it has none."""
    own = getattr(cls, "parse", None)
    if own is not None:
        return own
    return None if cls.assembly is None else _ParserSource(cls).compile()


def custom_printer(cls: type[Operation]) -> Callable[[Any, Any], None] | None:
    """The function `(op, printer)` that prints a class's custom form behind its name; None when it has none."""
    if cls in _PRINTERS:
        return _PRINTERS[cls]
    found: Callable[[Any, Any], None] | None = None
    if issubclass(cls, Op):
        found = getattr(cls, "print", None)
        if found is None and cls.assembly is not None:
            found = _PrinterSource(cls).compile()
    _PRINTERS[cls] = found
    return found


ISOLATED_FOR_MLIR = frozenset(("builtin.module", "func.func", "gpu.module", "gpu.func"))
"""Isolated ops whose regions may reuse outer names in generic form too; mlir-opt does not know that ours are isolated."""


def is_isolated(cls: type[Op]) -> bool:
    """Whether the regions of a class have names of their own in generic form."""
    return ISOLATED in cls.traits and cls.name in ISOLATED_FOR_MLIR

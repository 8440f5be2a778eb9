"""Parsing of attributes and types, with the aliases of a file.

Every spelling of MLIR that the IR here can hold is accepted; what it cannot hold is an error at its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .affine import AffineMap
from .attributes import (
    UNIT,
    AffineMapAttr,
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    DialectAttr,
    DictAttr,
    FloatAttr,
    IntegerAttr,
    StridedLayoutAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
)
from .dense_text import parse_dense
from .float_bits import decimal_to_bits
from .lexer import DIGITS, Lexer
from .location_parser import LocationParser
from .types import (
    BF16,
    DYNAMIC,
    F16,
    F32,
    F64,
    I1,
    I64,
    INDEX,
    NONE,
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    OpaqueType,
    ShapedType,
    TensorType,
    Type,
    VectorType,
)

_DIMS = re.compile(r"\s*((?:(?:[0-9]+|\?)\s*x\s*)*)", re.ASCII)
_INTEGER_TYPE = re.compile(r"([su]?)i([1-9][0-9]*)")
_SIMPLE_SHAPED = re.compile(r"[a-z]+<((?:(?:[0-9]+|\?)x)*)([a-z]\w*)>", re.ASCII)
_BRACKETS = re.compile(r'->|"(?:[^"\\\n]|\\.)*+"|[<>()\[\]{}]')
_CLOSING = {"<": ">", "(": ")", "[": "]", "{": "}"}
_SIMPLE_TYPES: dict[str, Type] = {
    str(t): t for t in (F16, BF16, F32, F64, INDEX, NONE, *(IntegerType(w) for w in (1, 8, 16, 32, 64)))
}


class AttributeParser(LocationParser):
    """The parser of attributes and types, above that of affine maps."""

    def __init__(self, text: str, filename: str = "-") -> None:
        super().__init__(text, filename)
        self.types: dict[str, Type] = dict(_SIMPLE_TYPES)
        self.attribute_aliases: dict[str, Attribute] = {}
        self.type_aliases: dict[str, Type] = {}

    def balanced(self) -> str:
        """The raw text of a bracketed body that starts at the current `<`, brackets included."""
        start = self.starts[self.i]
        open: list[str] = []
        for match in _BRACKETS.finditer(self.text, start):
            token = match.group()
            if token in _CLOSING:
                open.append(_CLOSING[token])
            elif len(token) == 1:
                if not open or open.pop() != token:
                    break
                if not open:
                    self.skip_to(match.end())
                    return self.text[start : match.end()]
        self.error("unbalanced brackets")

    # Types.

    def type(self) -> Type:
        """Parse a type; ParseError where none stands."""
        token = self.tokens[self.i]
        found = self.types.get(token)
        if found is not None:
            self.i += 1
            return found
        self.enter()
        found = self._type(token)
        self.leave()
        return found

    def optional_type(self) -> Type | None:
        """A type, if one starts here."""
        token = self.tokens[self.i]
        if token in self.types or token[:1] in ("!", "(") or self.names_type(token):
            return self.type()
        return None

    def names_type(self, token: str) -> bool:
        """Whether a token is, or starts, a shaped or integer type."""
        head = token.partition("<")[0]
        return head in _SHAPED or _INTEGER_TYPE.fullmatch(head) is not None

    def _type(self, token: str) -> Type:
        start = self.i
        if token == "(":
            return self.function_type()
        if token[:1] == "!":
            return self._dialect_type(token)
        head, bracket, _ = token.partition("<")
        if head in _SHAPED:
            if bracket:
                simple = _SIMPLE_SHAPED.fullmatch(token)
                if simple is not None and simple[2] in self.types:
                    dims = self._extents(simple[1].split("x")[:-1])
                    found = self.checked(_SHAPED[head], dims, self.types[simple[2]], at=start)
                    self.i += 1
                    self.types[token] = found
                    return found
                # One token for the whole type: split it, so that its parts can be read.
                self._split_shaped(head)
                found = self._shaped(head, start)
                self.types[token] = found
                return found
            return self._shaped(head, start)
        integer = _INTEGER_TYPE.fullmatch(token)
        if integer is None:
            self.unexpected("a type")
        self.i += 1
        found = self.checked(lambda: IntegerType(int(integer[2][:20]), integer[1]), at=start)
        self.types[token] = found
        return found

    def _split_shaped(self, head: str) -> None:
        """Replace a one-token shaped type by the tokens of its parts."""
        i, start = self.i, self.starts[self.i]
        token = self.tokens[i]
        inner = Lexer(token[len(head) :])
        count = len(inner.tokens)
        while not inner.tokens[count - 1]:
            count -= 1
        base = start + len(head)
        self.tokens[i : i + 1] = [head, *inner.tokens[:count]]
        self.starts[i : i + 1] = [start, *(base + s for s in inner.starts[:count])]

    def dimensions(self) -> tuple[int, ...]:
        """`4x?x`: extents before an element type; the token that follows an `x` is cut free of it."""
        match = _DIMS.match(self.text, self.starts[self.i])
        assert match is not None
        body = match[1]
        if not body:
            return ()
        end = match.end(1)
        starts, tokens = self.starts, self.tokens
        while starts[self.i] + len(tokens[self.i]) <= end and tokens[self.i]:
            self.i += 1
        if starts[self.i] < end:
            tokens[self.i] = tokens[self.i][end - starts[self.i] :]
            starts[self.i] = end
        return self._extents([p.strip() for p in body.split("x")[:-1]])

    def _extents(self, parts: list[str]) -> tuple[int, ...]:
        if any(len(p) > 20 for p in parts):
            self.error("extent too large")
        dims = tuple([DYNAMIC if p == "?" else int(p) for p in parts])
        if any(d >= 1 << 63 for d in dims):
            self.error("extent too large")
        return dims

    def _shaped(self, head: str, start: int) -> Type:
        self.i += 1
        self.expect("<")
        dims = self.dimensions()
        element = self.type()
        if isinstance(element, FunctionType | OpaqueType | ShapedType) and head != "tensor":
            if not (head == "memref" and isinstance(element, VectorType | MemRefType | OpaqueType)):
                self.error(f"{element} is not an element type of a {head}", start)
        rest: list[Attribute] = []
        while self.accept(","):
            rest.append(self.attribute())
        self.expect(">")
        if head == "vector":
            if rest:
                self.error("a vector type has only a shape and an element type", start)
            return self.checked(VectorType, dims, element, at=start)
        if head == "tensor":
            if len(rest) > 1:
                self.error("a tensor type has one encoding", start)
            return self.checked(TensorType, dims, element, *rest, at=start)
        layout: Attribute | None = None
        if rest and isinstance(rest[0], StridedLayoutAttr | AffineMapAttr):
            layout = rest.pop(0)
            if isinstance(layout, StridedLayoutAttr) and len(layout.strides) != len(dims):
                self.error(f"expected {len(dims)} strides, got {len(layout.strides)}", start)
            if isinstance(layout, AffineMapAttr) and layout.map is AffineMap.identity(len(dims)):
                layout = None
        if len(rest) > 1:
            self.error("expected a layout and a memory space", start)
        return self.checked(MemRefType, dims, element, layout, *rest, at=start)

    def function_type(self) -> FunctionType:
        """`(inputs) -> results`."""
        inputs = self.list("(", self.type, ")")
        self.expect("->")
        return FunctionType(inputs, self.result_types())

    def result_types(self) -> list[Type]:
        """What follows an arrow: one type, or several in parentheses."""
        if self.tokens[self.i] == "(":
            return self.list("(", self.type, ")")
        return [self.type()]

    def types_list(self) -> list[Type]:
        """Types separated by commas, at least one."""
        found = [self.type()]
        while self.accept(","):
            found.append(self.type())
        return found

    def _dialect_type(self, token: str) -> Type:
        self.i += 1
        name = token[1:]
        bracket = self.tokens[self.i] == "<" and self.starts[self.i] == self.starts[self.i - 1] + len(token)
        dialect, dot, body = name.partition(".")
        if not dot and not bracket:
            found = self.type_aliases.get(name)
            if found is None:
                self.error(f"undefined type alias '!{name}'", self.i - 1)
            return found
        return OpaqueType(dialect, body + (self.balanced() if bracket else ""))

    # Attributes.

    def attribute(self, type: Type | None = None) -> Attribute:
        """Any attribute; a number without a type of its own has the type `type`, if one is given."""
        self.enter()
        found = self._attribute(type)
        self.leave()
        return found

    def _attribute(self, type: Type | None) -> Attribute:
        token = self.tokens[self.i]
        first = token[:1]
        if first in DIGITS or first == "-":
            return self.number_attr(type)
        if first == "@":
            return self.symbol_ref()
        if first == '"':
            found = StringAttr(self.string())
            if type is None and self.tokens[self.i] == ":" and self.optional_string_type():
                self.error("typed strings are not supported")
            return found
        if first == "#":
            return self._dialect_attribute(token)
        if token == "[":
            return ArrayAttr(self.list("[", self.attribute, "]"))
        if token == "{":
            return DictAttr(self.attribute_dict())
        keyword = _KEYWORDS.get(token)
        if keyword is not None:
            return keyword(self, type)
        found_type = self.optional_type()
        if found_type is None:
            self.unexpected("an attribute")
        return TypeAttr(found_type)

    def optional_string_type(self) -> bool:
        """Whether `: type` with a type that only a typed string can have follows."""
        return self.tokens[self.i + 1][:1] == "!"

    def number_attr(self, type: Type | None = None) -> FloatAttr | IntegerAttr:
        """A number literal: of `type` when given, else of the type behind its colon (default i64 or f64)."""
        start = self.i
        negative = self.accept("-")
        token = self.tokens[self.i]
        if token[:1] not in DIGITS or not token:
            self.unexpected("a number")
        self.i += 1
        if type is None and self.accept(":"):
            type = self.type()
        return self.number_value(token, negative, type or (F64 if "." in token else I64), start)

    def number_value(self, token: str, negative: bool, type: Type, start: int) -> FloatAttr | IntegerAttr:
        """The attribute of a number token, checked against its type."""
        hexadecimal = token.startswith("0x")
        if isinstance(type, FloatType):
            if hexadecimal:
                bits = int(token, 16)
                if negative:
                    self.error("a float in hexadecimal takes no sign", start)
                if bits >> type.width:
                    self.error(f"{token} has more bits than {type}", start)
                return FloatAttr.from_bits(bits, type)
            if "." not in token:
                self.error(f"integer literal for a value of type {type}; write '{token}.0'", start)
            return FloatAttr.from_bits(decimal_to_bits("-" + token if negative else token, type), type)
        if isinstance(type, IntegerType | IndexType):
            if "." in token:
                self.error(f"float literal for a value of type {type}", start)
            value = self.to_integer(token)
            if negative:
                value = -value
            width = 64 if isinstance(type, IndexType) else type.width
            unsigned = isinstance(type, IntegerType) and type.signedness == "u"
            signed = isinstance(type, IndexType) or type.signedness == "s"
            low = 0 if unsigned else -(1 << (width - 1))
            high = 1 << (width - 1 if signed and not hexadecimal else width)
            if not low <= value < high:
                self.error(f"{value} does not fit into {type}", start)
            return IntegerAttr(value, type)
        self.error(f"a number cannot have the type {type}", start)

    def symbol_ref(self) -> SymbolRefAttr:
        """`@root::@nested`."""
        root = self.symbol()
        nested: list[str] = []
        while self.accept("::"):
            nested.append(self.symbol())
        return SymbolRefAttr(root, nested)

    def attribute_key(self) -> str:
        """The name of an entry of a dictionary: an identifier, a keyword or a string."""
        token = self.tokens[self.i]
        return self.string() if token[:1] == '"' else self.identifier()

    def attribute_dict(self, value: Callable[[str], Attribute] | None = None) -> dict[str, Attribute]:
        """`{key = value, flag}`; `value(key)` parses what follows a key's `=` (default: any attribute)."""
        entries: dict[str, Attribute] = {}

        def entry() -> None:
            start = self.i
            key = self.attribute_key()
            if key in entries:
                self.error(f"duplicate key '{key}' in a dictionary", start)
            if not key:
                self.error("an attribute needs a name", start)
            if not self.accept("="):
                entries[key] = UNIT
            else:
                entries[key] = self.attribute() if value is None else value(key)

        self.list("{", entry, "}")
        return entries

    def _dialect_attribute(self, token: str) -> Attribute:
        self.i += 1
        name = token[1:]
        if not name:
            self.error("expected an attribute's name after '#'", self.i - 1)
        bracket = self.tokens[self.i] == "<" and self.starts[self.i] == self.starts[self.i - 1] + len(token)
        dialect, dot, body = name.partition(".")
        if not dot and not bracket:
            found = self.attribute_aliases.get(name)
            if found is None:
                self.error(f"undefined attribute alias '#{name}'", self.i - 1)
            return found
        return DialectAttr(dialect, body + (self.balanced() if bracket else ""))

    def _boolean(self, type: Type | None) -> Attribute:
        value = self.tokens[self.i] == "true"
        if type is not None and type is not I1:
            self.error(f"a bool cannot have the type {type}")
        self.i += 1
        if type is None and self.tokens[self.i] == ":" and self.tokens[self.i + 1] == "i1":
            self.i += 2
        return IntegerAttr(value, I1)

    def _unit(self, type: Type | None) -> Attribute:
        self.i += 1
        return UNIT

    def _affine_map(self, type: Type | None) -> Attribute:
        self.i += 1
        self.expect("<")
        found = self.affine_map()
        self.expect(">")
        return AffineMapAttr(found)

    def _strided(self, type: Type | None) -> Attribute:
        self.i += 1
        self.expect("<")
        strides = self.list("[", self._stride, "]")
        offset = 0
        if self.accept(","):
            self.expect("offset")
            self.expect(":")
            offset = self._stride()
        self.expect(">")
        return StridedLayoutAttr(strides, offset)

    def _stride(self) -> int:
        return DYNAMIC if self.accept("?") else self.integer()

    def _dense_array(self, type: Type | None) -> Attribute:
        self.i += 1
        self.expect("<")
        start = self.i
        element = self.type()
        if not isinstance(element, IntegerType | FloatType):
            self.error(f"{element} is not an element type of a dense array", start)
        values: list[int] = []
        if self.accept(":"):
            values = self.list("", lambda: self.element_bits(element), "")
        self.expect(">")
        return DenseArrayAttr.from_bits(values, element)

    def element_bits(self, element: IntegerType | FloatType) -> int:
        """A literal in a dense array: the bits of a float, else the integer."""
        if element is I1 and self.tokens[self.i] in ("true", "false"):
            self.i += 1
            return int(self.tokens[self.i - 1] == "true")
        found = self.number_attr(element)
        return found.bits if isinstance(found, FloatAttr) else found.value

    def _dense(self, type: Type | None) -> Attribute:
        start = self.i
        self.i += 1
        self.expect("<")
        body = parse_dense(self)
        self.expect(">")
        if type is None:
            self.expect(":")
            type = self.type()
        if not isinstance(type, TensorType | VectorType):
            self.error(f"a dense attribute cannot have the type {type}", start)
        if not type.is_static:
            self.error(f"a dense attribute needs a static shape, not {type}", start)
        return body(self, type, start)

    def _refused(self, type: Type | None) -> Attribute:
        self.error(f"attributes of the kind '{self.tokens[self.i]}' are not supported")


_SHAPED: Final[dict[str, type[ShapedType]]] = {"tensor": TensorType, "memref": MemRefType, "vector": VectorType}
_KEYWORDS: Final[dict[str, Callable[[AttributeParser, Type | None], Attribute]]] = {
    "true": AttributeParser._boolean,  # pyright: ignore[reportPrivateUsage]
    "false": AttributeParser._boolean,  # pyright: ignore[reportPrivateUsage]
    "unit": AttributeParser._unit,  # pyright: ignore[reportPrivateUsage]
    "dense": AttributeParser._dense,  # pyright: ignore[reportPrivateUsage]
    "array": AttributeParser._dense_array,  # pyright: ignore[reportPrivateUsage]
    "affine_map": AttributeParser._affine_map,  # pyright: ignore[reportPrivateUsage]
    "strided": AttributeParser._strided,  # pyright: ignore[reportPrivateUsage]
    **dict.fromkeys(
        ("affine_set", "sparse", "dense_resource", "distinct", "opaque"),
        AttributeParser._refused,  # pyright: ignore[reportPrivateUsage]
    ),
}

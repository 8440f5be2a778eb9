"""Names of values: scopes, references before the definition, subscripts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .affine import AffineExpr, AffineMap, dim
from .attribute_parser import AttributeParser
from .types import INDEX, Type
from .values import Value


class ValueName(NamedTuple):
    """A value's name in the text, as it stands there (`%x`, `%x#1`), and its token's number."""

    text: str
    place: int


class Scope:
    """The names that one isolated region, and all in it that is not isolated, sees."""

    __slots__ = ("forward", "places", "values")

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.places: dict[str, int] = {}
        self.forward: dict[str, tuple[Value, int]] = {}


class ValueParser(AttributeParser):
    """The parser of SSA values: their names, uses and scopes."""

    def __init__(self, text: str, filename: str = "-") -> None:
        super().__init__(text, filename)
        self.scope = Scope()
        self.values = self.scope.values
        self.defined: list[str] = []

    def at_value(self) -> bool:
        """Whether a value's name stands here."""
        return self.tokens[self.i][:1] == "%"

    def value_name(self) -> ValueName:
        """`%x` or `%x#1`."""
        i = self.i
        token = self.tokens[i]
        if token[:1] != "%" or len(token) < 2:
            self.unexpected("a value")
        self.i = i + 1
        return ValueName(token, i)

    def resolve(self, name: ValueName, type: Type | None = None) -> Value:
        """The value of a name; with `type` it must have that type, and may be defined later."""
        return self.resolve_token(name[0], name[1], type)

    def resolve_token(self, text: str, index: int, type: Type | None = None) -> Value:
        """`resolve` for a token and its number."""
        value = self.values.get(text)
        if value is None and text.endswith("#0"):
            text = text[:-2]
            value = self.values.get(text)
        if value is None:
            value = self._forward(text, index, type)
        if type is not None and value.type is not type:
            place = self.scope.places.get(text)
            if place is None:
                place = self.scope.forward[text][1] if text in self.scope.forward else index
            self.error(
                f"use of value '{text}' expects type {type}, but it has type {value.type}",
                index,
                "prior definition here",
                place,
            )
        return value

    def known(self, name: ValueName) -> Value | None:
        """The value of a name if its definition has been read."""
        found = self.values.get(name[0])
        return self.values.get(name[0][:-2]) if found is None and name[0].endswith("#0") else found

    def _forward(self, text: str, index: int, type: Type | None) -> Value:
        found = self.scope.forward.get(text)
        if found is not None:
            return found[0]
        if type is None:
            base, mark, number = text.partition("#")
            if mark and base in self.values:
                self.error(f"'{base}' has no result number {number}", index, "defined here", self.scope.places[base])
            self.error(f"use of undefined value '{text}'", index)
        value = Value(type)
        self.scope.forward[text] = value, index
        return value

    def operand(self, type: Type | None = None) -> Value:
        """`value_name` and `resolve` in one."""
        return self.resolve(self.value_name(), type)

    def operands(self, names: Sequence[ValueName], types: Sequence[Type]) -> list[Value]:
        """Resolve several names; as many types are needed."""
        if len(names) != len(types):
            self.error(f"{len(names)} operands, but {len(types)} types", names[0].place if names else None)
        return [self.resolve(n, t) for n, t in zip(names, types)]

    def define(self, text: str, index: int, value: Value) -> None:
        """Give a value its name."""
        values = self.values
        if text in values:
            self.error(f"redefinition of value '{text}'", index, "prior definition here", self.scope.places[text])
        values[text] = value
        self.scope.places[text] = index
        self.defined.append(text)
        if text[1] not in "0123456789":
            value.name = text[1:]
        if self.scope.forward:
            found = self.scope.forward.pop(text, None)
            if found is not None:
                placeholder, place = found
                if placeholder.type is not value.type:
                    self.error(
                        f"definition of value '{text}' has type {value.type}, but its use expects {placeholder.type}",
                        index,
                        "prior use here",
                        place,
                    )
                for user in list(placeholder.users):
                    user.set_operands([value if v is placeholder else v for v in user.operands])

    def affine_subscripts(self) -> tuple[AffineMap, list[Value]]:
        """`[%i + 2 * %k - 1, %c]`: the map over the distinct index values, and the values."""
        values: dict[Value, AffineExpr] = {}

        def atom() -> AffineExpr:
            value = self.operand(INDEX)
            found = values.get(value)
            if found is None:
                found = values[value] = dim(len(values))
            return found

        results = self.list("[", lambda: self.affine_expr(atom), "]")
        return AffineMap(len(values), 0, results), list(values)

    def block_argument(self) -> tuple[str, int, Type]:
        """`%x: T`, perhaps with a location: the name, its token's number, the type."""
        text, index = self.value_name()
        self.expect(":")
        type = self.type()
        if self.at("loc"):
            self.location_attr()
        return text, index, type

    def typed_argument(self) -> tuple[ValueName, Type]:
        """`%x: T`, perhaps with a location, as a custom form declares arguments of its region."""
        text, index, type = self.block_argument()
        return ValueName(text, index), type

"""Parsing of affine maps and expressions, and the guard against absurd nesting that all of the parser shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from . import affine
from .affine import AffineExpr, AffineMap
from .lexer import DIGITS, IDENTIFIER_START, Lexer

MAX_DEPTH: Final = 100
"""Attributes, types, locations and affine expressions nested deeper than this are refused."""


class AffineParser(Lexer):
    """Adds affine maps to the lexer."""

    def __init__(self, text: str, filename: str = "-") -> None:
        super().__init__(text, filename)
        self.depth = 0

    def enter(self) -> None:
        """Count one level of nesting; `leave` ends it."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.error(f"nested more than {MAX_DEPTH} deep")

    def leave(self) -> None:
        """End a level of nesting."""
        self.depth -= 1

    def checked(self, make: Callable[..., Any], *args: Any, at: int) -> Any:
        """`make(*args)`, with its complaint as an error at the token `at`."""
        try:
            return make(*args)
        except (ValueError, ZeroDivisionError, OverflowError) as e:
            message = str(e)
        self.error(message, at)

    def affine_map(self) -> AffineMap:
        """`(d0, d1)[s0] -> (d0 + s0, d1)`."""
        names: dict[str, AffineExpr] = {}

        def declare(make: Callable[[int], AffineExpr]) -> Callable[[], None]:
            count = iter(range(1 << 30))

            def one() -> None:
                name = self.identifier()
                if name in names:
                    self.error(f"'{name}' is declared twice", self.i - 1)
                names[name] = make(next(count))

            return one

        dims = len(self.list("(", declare(affine.dim), ")"))
        symbols = len(self.list("[", declare(affine.symbol), "]")) if self.at("[") else 0
        self.expect("->")

        def atom() -> AffineExpr:
            name = self.identifier()
            found = names.get(name)
            if found is None:
                self.error(f"'{name}' is neither a dimension nor a symbol of the map", self.i - 1)
            return found

        return AffineMap(dims, symbols, self.list("(", lambda: self.affine_expr(atom), ")"))

    def affine_expr(self, atom: Callable[[], AffineExpr]) -> AffineExpr:
        """A sum of products; `atom` parses a name."""
        self.enter()
        value = self._product(atom)
        terms = 0
        while self.tokens[self.i] in ("+", "-"):
            start = self.i
            self.i += 1
            right = self._product(atom)
            value = self.checked(_AFFINE_OPERATIONS[self.tokens[start]], value, right, at=start)
            terms += 1
            if terms > 1000:
                self.error("affine expression too long")
        self.leave()
        return value

    def _product(self, atom: Callable[[], AffineExpr]) -> AffineExpr:
        value = self._factor(atom)
        factors = 0
        while True:
            start = self.i
            kind = self.tokens[start]
            if kind in ("+", "-") or kind not in _AFFINE_OPERATIONS:
                return value
            self.i += 1
            right = self._factor(atom)
            if (value.dims() and right.dims()) if kind == "*" else right.dims():
                self.error(f"not affine: one side of '{kind}' must be a constant or a symbol", start)
            value = self.checked(_AFFINE_OPERATIONS[kind], value, right, at=start)
            factors += 1
            if factors > MAX_DEPTH:
                self.error("affine expression too long")

    def _factor(self, atom: Callable[[], AffineExpr]) -> AffineExpr:
        token = self.tokens[self.i]
        if token == "(":
            self.i += 1
            value = self.affine_expr(atom)
            self.expect(")")
            return value
        if token == "-":
            self.enter()
            self.i += 1
            value = -self._factor(atom)
            self.leave()
            return value
        if token[:1] in DIGITS and token:
            return affine.constant(self.integer())
        if token[:1] in IDENTIFIER_START or token[:1] == "%":
            return atom()
        self.unexpected("an affine expression")


_AFFINE_OPERATIONS: Final[dict[str, Callable[[AffineExpr, AffineExpr], AffineExpr]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,  # pyright: ignore[reportArgumentType]
    "ceildiv": lambda a, b: a.ceildiv(b),  # pyright: ignore[reportArgumentType]
    "mod": lambda a, b: a % b,  # pyright: ignore[reportArgumentType]
}

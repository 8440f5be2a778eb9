"""Sizes that are computed from others: the extent of a tensor as an expression over symbols.

    "n"                     the size named n
    "n - 1", "2 * n + m"    a polynomial
    "floordiv(n, 2)"        a quotient, rounded down
    "max(n - 3, 0)"         the larger one

An extent is an int, or the text of such an expression, as in `tensor<?xf32, ["n - 1"]>`.  The text is canonical: what
the functions here give for equal polynomials is the same text, so two extents are equal where their texts are.  Sums
start with what is added, the constant comes last; choices are written with `max(.., 0)`, remainders with `floordiv`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from ..dialects import arith
from ..types import INDEX
from ..values import Value
from .scalar import ScalarBuilder

if TYPE_CHECKING:
    from ..builder import Builder

Size = int | str
"""An extent: a number, or the canonical text of an expression."""

Terms = dict[tuple[str, ...], int]
"""A polynomial: products of atoms (symbols, quotients, choices), sorted, with their factors; () is the constant."""

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+)|(?P<name>[A-Za-z_][\w.$]*)|(?P<sign>[-+*(),]))")
_FUNCTIONS = ("floordiv", "max")


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[tuple[tuple[str, ...], int], ...]:
    """The polynomial that a text is; a text that is not an expression is a symbol."""
    try:
        return tuple(_Reader(text).read().items())
    except SyntaxError:
        return (((text,), 1),)


class _Reader:
    """Reads the text of an expression."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        place = 0
        while text[place:].strip():
            match = _TOKEN.match(text, place)
            if match is None:
                raise SyntaxError(text)
            self.tokens.append(match.group().strip())
            place = match.end()
        self.at = 0

    def read(self) -> Terms:
        """The whole text."""
        found = self.sum()
        if self.at != len(self.tokens):
            raise SyntaxError(self.tokens)
        return found

    def take(self, *wanted: str) -> str | None:
        """The next token, if it is one of these."""
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def sum(self) -> Terms:
        total = _scaled(self.product(), -1) if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            total = _added(total, self.product(), 1 if sign == "+" else -1)
        return total

    def product(self) -> Terms:
        total = self.atom()
        while self.take("*"):
            total = _multiplied(total, self.atom())
        return total

    def atom(self) -> Terms:
        if self.at == len(self.tokens):
            raise SyntaxError("end")
        token = self.tokens[self.at]
        self.at += 1
        if token.isdigit():
            return {(): int(token)} if int(token) else {}
        if token == "(":
            found = self.sum()
        elif token in _FUNCTIONS and self.take("("):
            first = self.sum()
            if self.take(",") is None:
                raise SyntaxError(token)
            second = self.sum()
            found = _quotient(first, second) if token == "floordiv" else _largest(first, second)
        elif token[0].isalpha() or token[0] == "_":
            return {(token,): 1}
        else:
            raise SyntaxError(token)
        if self.take(")") is None:
            raise SyntaxError(token)
        return found


def _terms(size: Size) -> Terms:
    if isinstance(size, int):
        return {(): size} if size else {}
    return dict(_parsed(str(size)))


def _text(terms: Terms) -> Size:
    if not terms or set(terms) == {()}:
        return terms.get((), 0)
    out = ""
    for atoms, factor in sorted(terms.items(), key=_order):
        body = " * ".join(atoms)
        part = body if abs(factor) == 1 and atoms else f"{abs(factor)} * {body}" if atoms else str(abs(factor))
        sign = "-" if factor < 0 else "+"
        out = f"{out} {sign} {part}" if out else part if factor > 0 else f"-{part}"
    return out


def _order(term: tuple[tuple[str, ...], int]) -> tuple[bool, bool, int, tuple[str, ...]]:
    """What is added before what is taken away, the constant last, products before their factors."""
    atoms, factor = term
    return not atoms, factor < 0, -len(atoms), atoms


def _scaled(a: Terms, factor: int) -> Terms:
    return {atoms: n * factor for atoms, n in a.items()} if factor else {}


def _added(a: Terms, b: Terms, factor: int = 1) -> Terms:
    out = dict(a)
    for atoms, n in b.items():
        out[atoms] = out.get(atoms, 0) + n * factor
    return {atoms: n for atoms, n in out.items() if n}


def _multiplied(a: Terms, b: Terms) -> Terms:
    out: Terms = {}
    for one, n in a.items():
        for other, m in b.items():
            key = tuple(sorted((*one, *other)))
            out[key] = out.get(key, 0) + n * m
    return {atoms: n for atoms, n in out.items() if n}


def _quotient(a: Terms, b: Terms) -> Terms:
    if set(b) == {()}:
        divisor = b[()]
        whole = {atoms: n // divisor for atoms, n in a.items() if n % divisor == 0}
        rest = {atoms: n for atoms, n in a.items() if n % divisor}
        if set(rest) <= {()}:
            return _added(whole, {(): rest.get((), 0) // divisor})
        if whole:
            return _added(whole, _quotient(rest, b))
    elif len(b) == 1:
        # An exact quotient of products: `n * m` by `n`.
        ((atoms, factor),) = b.items()
        exact = [(_without(one, atoms), n) for one, n in a.items()]
        if all(one is not None and n % factor == 0 for one, n in exact):
            return {one: n // factor for one, n in exact if one is not None}
    if not b:
        raise ZeroDivisionError("a size divided by 0")
    return {(f"floordiv({_text(a)}, {_text(b)})",): 1}


def _without(atoms: tuple[str, ...], some: tuple[str, ...]) -> tuple[str, ...] | None:
    """A product without some of its factors; None where it has not all of them."""
    rest = list(atoms)
    for atom in some:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _largest(a: Terms, b: Terms) -> Terms:
    difference = _added(a, b, -1)
    if set(difference) <= {()}:
        return a if difference.get((), 0) >= 0 else b
    # max(-d, 0) = max(d, 0) - d: one of the two is written.
    first = min(difference, key=lambda atoms: (-len(atoms), atoms))
    if difference[first] < 0:
        difference = _scaled(difference, -1)
        return _added(a, {(f"max({_text(difference)}, 0)",): 1})
    return _added(b, {(f"max({_text(difference)}, 0)",): 1})


def plus(*sizes: Size) -> Size:
    """The sum."""
    total: Terms = {}
    for size in sizes:
        total = _added(total, _terms(size))
    return _text(total)


def minus(a: Size, b: Size) -> Size:
    """a - b."""
    return _text(_added(_terms(a), _terms(b), -1))


def times(*sizes: Size) -> Size:
    """The product."""
    total: Terms = {(): 1}
    for size in sizes:
        total = _multiplied(total, _terms(size))
    return _text(total)


def quotient(a: Size, b: Size) -> Size:
    """a divided by b, rounded down; ZeroDivisionError for the number 0."""
    return _text(_quotient(_terms(a), _terms(b)))


def largest(a: Size, b: Size) -> Size:
    """The larger one."""
    return _text(_largest(_terms(a), _terms(b)))


def smallest(a: Size, b: Size) -> Size:
    """The smaller one."""
    return minus(plus(a, b), largest(a, b))


def is_symbol(size: Size) -> bool:
    """Whether an extent is a symbol by itself, not computed from others."""
    return isinstance(size, str) and _parsed(str(size)) == (((str(size),), 1),) and not _is_call(size)


def _is_call(atom: str) -> bool:
    return atom.endswith(")") and atom.startswith(_FUNCTIONS)


def _arguments(atom: str) -> tuple[str, Size, Size]:
    """The function and the operands of an atom that is a call."""
    name, _, rest = atom.partition("(")
    depth = 0
    for place, letter in enumerate(rest):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            return name, _text(_terms(rest[:place])), _text(_terms(rest[place + 1 : -1].strip()))
    raise AssertionError(atom)


def symbols(size: Size) -> frozenset[str]:
    """The symbols that an extent is computed from."""
    found: set[str] = set()
    for atoms in _terms(size):
        for atom in atoms:
            if _is_call(atom):
                _, a, b = _arguments(atom)
                found |= symbols(a) | symbols(b)
            else:
                found.add(atom)
    return frozenset(found)


def evaluate(size: Size, known: Mapping[str, int]) -> int:
    """The number that an extent is for these sizes of symbols; KeyError for one that is not known."""
    if isinstance(size, int):
        return size
    if size in known:
        return known[size]
    total = 0
    for atoms, factor in _terms(size).items():
        for atom in atoms:
            if _is_call(atom):
                name, a, b = _arguments(atom)
                left, right = evaluate(a, known), evaluate(b, known)
                factor *= left // right if name == "floordiv" else max(left, right)
            else:
                factor *= known[atom]
        total += factor
    return total


def contradiction(sizes: Mapping[str, int]) -> str | None:
    """Which of these extents, computed from others, is not what they give: `'n + 1' is 3, but n is 5`; None when all
    agree.  An extent over symbols that are not known is taken as it is."""
    for size, number in sizes.items():
        if is_symbol(size):
            continue
        known = {name: sizes[name] for name in sorted(symbols(size)) if name in sizes}
        if len(known) < len(symbols(size)):
            continue
        try:
            agrees = evaluate(size, known) == number
        except ZeroDivisionError:
            agrees = False
        if not agrees:
            return f"'{size}' is {number}, but {' and '.join(f'{name} is {n}' for name, n in known.items())}"
    return None


def lower_bound(size: Size, least: int) -> int | None:
    """A number that an extent is never below when no symbol is below `least` (>= 0); None where none is found."""
    terms = _terms(size)
    for atoms, factor in terms.items():
        if factor < 0 and len(atoms) == 1 and atoms[0].startswith("max("):
            # The larger one is one of the two.
            rest = {a: n for a, n in terms.items() if a != atoms}
            choices = [lower_bound(_text(_added(rest, _terms(c), factor)), least) for c in _arguments(atoms[0])[1:]]
            known = [c for c in choices if c is not None]
            return min(known) if len(known) == 2 else None
    total = 0
    for atoms, factor in terms.items():
        if not atoms:
            total += factor
            continue
        if factor < 0:
            return None
        for atom in atoms:
            bound = least
            if _is_call(atom):
                name, a, b = _arguments(atom)
                bound = 0
                below = lower_bound(a, least)
                if name == "floordiv" and isinstance(b, int) and b > 0:
                    if below is None:
                        return None
                    bound = below // b
                elif name == "max":
                    bound = max(below or 0, 0)
                else:
                    return None
            if bound < 0:
                return None
            factor *= bound
        total += factor
    return total


def compute(b: Builder, size: Size, find: Callable[[str], Value]) -> Value:
    """An extent as an index value: scalar ops where `b` stands, on the values of the symbols."""
    scalars = ScalarBuilder(b.block, b.before, b.location)
    if isinstance(size, int):
        return scalars.index_constant(size)

    def of_atom(atom: str) -> Value:
        if not _is_call(atom):
            return find(atom)
        name, left, right = _arguments(atom)
        x, y = compute(b, left, find), compute(b, right, find)
        return scalars.floordiv(x, y) if name == "floordiv" else scalars.value_of(arith.MaxSI, x, y)

    def of_term(atoms: Iterable[str]) -> Value:
        first, *rest = map(of_atom, atoms)
        for value in rest:
            first = scalars.mul(first, value)
        return first

    total: Value | None = None
    offset = 0
    for atoms, factor in sorted(_terms(size).items(), key=_order):
        if not atoms:
            offset = factor
            continue
        part = of_term(atoms)
        part = part if abs(factor) == 1 else scalars.mul(part, abs(factor))
        if total is None:
            total = part if factor > 0 else scalars.sub(0, part)
        else:
            total = scalars.add(total, part) if factor > 0 else scalars.sub(total, part)
    assert total is not None and total.type is INDEX
    return scalars.add(total, offset) if offset > 0 else scalars.sub(total, -offset) if offset < 0 else total

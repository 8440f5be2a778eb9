"""Affine expressions and maps over dimensions `d0, d1, ..` and symbols `s0, ..`.

Expressions are interned and kept simplified: sums are flat and sorted by their first dimension, constants come last,
products have their constant on the right.  So equal expressions, written the usual way, are the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from .diagnostics import ShapeError

if TYPE_CHECKING:
    from .arrays import Array

_E = TypeVar("_E", bound="AffineExpr")
_N = TypeVar("_N", int, "Array")


class _NameOf(Protocol):
    def __getitem__(self, index: int, /) -> str: ...


class AffineExpr:
    """An integer expression; build with `dim`, `symbol`, `constant` and `+ - * // %`."""

    __slots__ = ("_text",)
    _interned: ClassVar[dict[tuple[object, ...], AffineExpr]] = {}
    _text: str

    def __add__(self, other: AffineExpr | int) -> AffineExpr:
        return _sum(((self, 1), (_wrap(other), 1)))

    __radd__ = __add__

    def __sub__(self, other: AffineExpr | int) -> AffineExpr:
        return _sum(((self, 1), (_wrap(other), -1)))

    def __rsub__(self, other: int) -> AffineExpr:
        return _sum(((_wrap(other), 1), (self, -1)))

    def __neg__(self) -> AffineExpr:
        return _sum(((self, -1),))

    def __mul__(self, other: AffineExpr | int) -> AffineExpr:
        right = _wrap(other)
        if isinstance(right, AffineConstant):
            return _sum(((self, right.value),))
        if isinstance(self, AffineConstant):
            return _sum(((right, self.value),))
        return _binary("*", self, right)

    __rmul__ = __mul__

    def __floordiv__(self, other: AffineExpr | int) -> AffineExpr:
        return _divide("floordiv", self, _wrap(other))

    def __mod__(self, other: AffineExpr | int) -> AffineExpr:
        return _divide("mod", self, _wrap(other))

    def ceildiv(self, other: AffineExpr | int) -> AffineExpr:
        """The quotient rounded up."""
        return _divide("ceildiv", self, _wrap(other))

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        match self:
            case AffineDim():
                return dim, (self.index,)
            case AffineSymbol():
                return symbol, (self.index,)
            case AffineConstant():
                return constant, (self.value,)
            case AffineSum():
                return _sum, (((constant(self.offset), 1), *self.terms),)
            case AffineBinary():
                return _binary, (self.kind, self.left, self.right)
            case _:
                raise TypeError(f"not an affine expression: {self!r}")

    def __copy__(self: _E) -> _E:
        return self

    def __deepcopy__(self: _E, memo: object) -> _E:
        return self

    def evaluate(self, dims: Sequence[_N], symbols: Sequence[_N] = ()) -> _N | int:
        """The value for integers (or integer arrays) in place of the dimensions and symbols."""
        match self:
            case AffineDim():
                return dims[self.index]
            case AffineSymbol():
                return symbols[self.index]
            case AffineConstant():
                return self.value
            case AffineSum():
                total: _N | int = self.offset
                for term, factor in self.terms:
                    total = total + term.evaluate(dims, symbols) * factor
                return total
            case AffineBinary():
                return _OPERATIONS[self.kind](self.left.evaluate(dims, symbols), self.right.evaluate(dims, symbols))
            case _:
                raise TypeError(f"not an affine expression: {self!r}")

    def replace(self, dims: Mapping[int, AffineExpr], symbols: Mapping[int, AffineExpr] | None = None) -> AffineExpr:
        """The expression with dimensions (and symbols) replaced; those not named stay."""
        match self:
            case AffineDim():
                return dims.get(self.index, self)
            case AffineSymbol():
                return (symbols or {}).get(self.index, self)
            case AffineSum():
                parts = [(term.replace(dims, symbols), factor) for term, factor in self.terms]
                return _sum((*parts, (constant(self.offset), 1)))
            case AffineBinary():
                left, right = self.left.replace(dims, symbols), self.right.replace(dims, symbols)
                return left * right if self.kind == "*" else _divide(self.kind, left, right)
            case _:
                return self

    def linear(self) -> tuple[dict[int, int], int] | None:
        """`({dimension: factor}, offset)` when the expression is a linear form over dimensions alone, else None."""
        match self:
            case AffineDim():
                return {self.index: 1}, 0
            case AffineConstant():
                return {}, self.value
            case AffineSum() if all(isinstance(term, AffineDim) for term, _ in self.terms):
                return {term.index: factor for term, factor in self.terms if isinstance(term, AffineDim)}, self.offset
            case _:
                return None

    def dims(self) -> frozenset[int]:
        """The dimensions that occur."""
        match self:
            case AffineDim():
                return frozenset((self.index,))
            case AffineSum():
                return frozenset[int]().union(*(term.dims() for term, _ in self.terms))
            case AffineBinary():
                return self.left.dims() | self.right.dims()
            case _:
                return frozenset()

    def format(self, dims: _NameOf, symbols: _NameOf = ()) -> str:
        """Text with names in place of `d0` and `s0`."""
        match self:
            case AffineDim():
                return dims[self.index]
            case AffineSymbol():
                return symbols[self.index] if symbols else self._text
            case AffineSum():
                out = ""
                for term, factor in self.terms:
                    text = term.format(dims, symbols)
                    sign = "" if not out else " - " if factor < 0 else " + "
                    if out:
                        factor = abs(factor)
                    if factor == -1 and not out:
                        out = f"-{_group(term, text)}"
                    else:
                        out += sign + (text if factor == 1 else f"{_group(term, text)} * {factor}")
                return out + (f" - {-self.offset}" if self.offset < 0 else f" + {self.offset}" if self.offset else "")
            case AffineBinary():
                left = _group(self.left, self.left.format(dims, symbols))
                right = _group(self.right, self.right.format(dims, symbols))
                return f"{left} {self.kind} {right}"
            case _:
                return self._text


def _group(expr: AffineExpr, text: str) -> str:
    return f"({text})" if isinstance(expr, AffineSum | AffineBinary) else text


class AffineDim(AffineExpr):
    """`d<index>`."""

    __slots__ = ("index",)
    index: int


class AffineSymbol(AffineExpr):
    """`s<index>`."""

    __slots__ = ("index",)
    index: int


class AffineConstant(AffineExpr):
    """An integer."""

    __slots__ = ("value",)
    value: int


class AffineSum(AffineExpr):
    """A sum of terms times constant factors, plus an offset."""

    __slots__ = ("offset", "terms")
    terms: tuple[tuple[AffineExpr, int], ...]
    offset: int


class AffineBinary(AffineExpr):
    """`left kind right` with kind `*` (of two non-constants), `floordiv`, `ceildiv` or `mod`."""

    __slots__ = ("kind", "left", "right")
    kind: str
    left: AffineExpr
    right: AffineExpr


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "*": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "ceildiv": lambda a, b: -(-a // b),
}


def _intern(cls: type[_E], key: tuple[object, ...], **fields: object) -> _E:
    expr = object.__new__(cls)
    for name, value in fields.items():
        setattr(expr, name, value)
    if "_text" not in fields:
        expr._text = expr.format(_NAMES_D, _NAMES_S)  # pyright: ignore[reportPrivateUsage]
    first = _cache.setdefault(key, expr)  # another thread may have been faster
    assert isinstance(first, cls)
    return first


_cache = AffineExpr._interned  # pyright: ignore[reportPrivateUsage]


def dim(index: int) -> AffineExpr:
    """The dimension `d<index>`."""
    key = ("d", index)
    return _cache.get(key) or _intern(AffineDim, key, index=index, _text=f"d{index}")


def symbol(index: int) -> AffineExpr:
    """The symbol `s<index>`."""
    key = ("s", index)
    return _cache.get(key) or _intern(AffineSymbol, key, index=index, _text=f"s{index}")


def constant(value: int) -> AffineExpr:
    """An integer constant; ShapeError beyond 64 bits."""
    key = ("c", value)
    _in_range(value)
    return _cache.get(key) or _intern(AffineConstant, key, value=value, _text=str(value))


def _in_range(value: int) -> None:
    if not -(1 << 63) < value < 1 << 63:
        raise ShapeError(f"{value} in an affine expression does not fit into 64 bits")


def _wrap(value: AffineExpr | int) -> AffineExpr:
    return value if isinstance(value, AffineExpr) else constant(value)


def _order(expr: AffineExpr) -> tuple[int, int, str]:
    if isinstance(expr, AffineDim):
        return (0, expr.index, "")
    if isinstance(expr, AffineSymbol):
        return (2, expr.index, "")
    return (1, min(expr.dims(), default=0), str(expr))


def _sum(parts: Sequence[tuple[AffineExpr, int]]) -> AffineExpr:
    factors: dict[AffineExpr, int] = {}
    offset = 0
    for expr, factor in parts:
        if isinstance(expr, AffineConstant):
            offset += expr.value * factor
        elif isinstance(expr, AffineSum):
            offset += expr.offset * factor
            for term, inner in expr.terms:
                factors[term] = factors.get(term, 0) + inner * factor
        else:
            factors[expr] = factors.get(expr, 0) + factor
    terms = tuple(sorted(((t, f) for t, f in factors.items() if f), key=lambda item: _order(item[0])))
    if not terms:
        return constant(offset)
    if len(terms) == 1 and terms[0][1] == 1 and not offset:
        return terms[0][0]
    key = ("+", terms, offset)
    found = _cache.get(key)
    if found is None:
        _in_range(offset)
        for _, factor in terms:
            _in_range(factor)
        found = _intern(AffineSum, key, terms=terms, offset=offset)
    return found


class _Names:
    """`d0, d1, ..` without end."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def __getitem__(self, index: int) -> str:
        return f"{self.prefix}{index}"


_NAMES_D, _NAMES_S = _Names("d"), _Names("s")


def _binary(kind: str, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    key = (kind, left, right)
    found = _cache.get(key)
    if found is None:
        found = _intern(AffineBinary, key, kind=kind, left=left, right=right)
    return found


def _divide(kind: str, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    if isinstance(right, AffineConstant):
        divisor = right.value
        if divisor == 0:
            raise ZeroDivisionError(f"{left} {kind} 0")
        if isinstance(left, AffineConstant):
            return constant(_OPERATIONS[kind](left.value, divisor))
        if divisor == 1:
            return constant(0) if kind == "mod" else left
        if isinstance(left, AffineSum) and left.offset % divisor == 0 and all(f % divisor == 0 for _, f in left.terms):
            if kind == "mod":
                return constant(0)
            return _sum([*((t, f // divisor) for t, f in left.terms), (constant(left.offset // divisor), 1)])
    return _binary(kind, left, right)


class AffineMap:
    """`(d0, d1)[s0] -> (results)`; interned like expressions."""

    __slots__ = ("_text", "num_dims", "num_symbols", "results")
    _interned: ClassVar[dict[tuple[object, ...], AffineMap]] = {}
    num_dims: int
    num_symbols: int
    results: tuple[AffineExpr, ...]
    _text: str

    def __new__(cls, num_dims: int, num_symbols: int, results: Sequence[AffineExpr]) -> AffineMap:
        key = (num_dims, num_symbols, tuple(results))
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.num_dims, found.num_symbols, found.results = key
            left = ", ".join(f"d{i}" for i in range(num_dims))
            middle = f"[{', '.join(f's{i}' for i in range(num_symbols))}]" if num_symbols else ""
            found._text = f"({left}){middle} -> ({', '.join(map(str, results))})"
            found = cls._interned.setdefault(key, found)
        return found

    @staticmethod
    def identity(rank: int) -> AffineMap:
        """`(d0, .., dn) -> (d0, .., dn)`."""
        return AffineMap(rank, 0, [dim(i) for i in range(rank)])

    def compose(self, inner: AffineMap) -> AffineMap:
        """`self(inner(x))`: inner's results become self's dimensions.  Symbols are not supported."""
        if self.num_dims != len(inner.results) or self.num_symbols or inner.num_symbols:
            raise ValueError(f"cannot compose {self} with {inner}")
        table = dict(enumerate(inner.results))
        return AffineMap(inner.num_dims, 0, [r.replace(table) for r in self.results])

    def evaluate(self, dims: Sequence[_N], symbols: Sequence[_N] = ()) -> tuple[_N | int, ...]:
        """The results for integers (or integer arrays)."""
        return tuple(r.evaluate(dims, symbols) for r in self.results)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __reduce__(self) -> tuple[object, ...]:
        return AffineMap, (self.num_dims, self.num_symbols, self.results)

    def __copy__(self) -> AffineMap:
        return self

    def __deepcopy__(self, memo: object) -> AffineMap:
        return self

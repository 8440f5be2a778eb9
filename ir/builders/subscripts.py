"""Subscripts of loads and stores in kernels: affine expressions over index values, and arithmetic on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..affine import AffineBinary, AffineConstant, AffineDim, AffineExpr, AffineMap, AffineSum, constant, dim
from ..dialects import arith
from ..support.mixed import Extent
from ..types import I1
from ..values import Value
from .scalar import ScalarBuilder


class AffineSubscript:
    """A subscript: an affine expression over index values; `expr`'s `d0` is `values[0]`."""

    __slots__ = ("expr", "values")

    def __init__(self, expr: AffineExpr, values: Sequence[Value] = ()) -> None:
        self.expr = expr
        self.values = tuple(values)

    @staticmethod
    def of(value: AffineSubscript | Value | int) -> AffineSubscript:
        """An index value or an integer as a subscript."""
        if isinstance(value, AffineSubscript):
            return value
        return AffineSubscript(constant(value)) if isinstance(value, int) else AffineSubscript(dim(0), (value,))

    def _joined(
        self, other: AffineSubscript | int, combine: Callable[[AffineExpr, AffineExpr], AffineExpr]
    ) -> AffineSubscript:
        right = AffineSubscript.of(other)
        (left_expr, right_expr), values = rename((self, right))
        return AffineSubscript(combine(left_expr, right_expr), values).reduced()

    def reduced(self) -> AffineSubscript:
        """The same without values that the expression does not use."""
        used = sorted(self.expr.dims())
        if len(used) == len(self.values):
            return self
        return AffineSubscript(
            self.expr.replace({d: dim(i) for i, d in enumerate(used)}), [self.values[d] for d in used]
        )

    def replaced(self, placed: Mapping[Value, AffineSubscript]) -> AffineSubscript:
        """The same with index values replaced by subscripts."""
        if not any(v in placed for v in self.values):
            return self
        exprs, values = rename([placed.get(v) or AffineSubscript.of(v) for v in self.values])
        return AffineSubscript(self.expr.replace(dict(enumerate(exprs))), values).reduced()

    def value(self, b: ScalarBuilder) -> Value:
        """The subscript as an index value, computed where the builder stands."""
        return _materialize(b, self.expr, self.values)

    def __add__(self, other: AffineSubscript | int) -> AffineSubscript:
        return self._joined(other, lambda a, b: a + b)

    __radd__ = __add__

    def __sub__(self, other: AffineSubscript | int) -> AffineSubscript:
        return self._joined(other, lambda a, b: a - b)

    def __rsub__(self, other: int) -> AffineSubscript:
        return AffineSubscript.of(other) - self

    def __neg__(self) -> AffineSubscript:
        return AffineSubscript.of(0) - self

    def __mul__(self, other: AffineSubscript | int) -> AffineSubscript:
        if not (isinstance(self.expr, AffineConstant) or isinstance(AffineSubscript.of(other).expr, AffineConstant)):
            raise TypeError("a subscript times a subscript is not affine; multiply the index values with `mul`")
        return self._joined(other, lambda a, b: a * b)

    __rmul__ = __mul__

    def __floordiv__(self, other: AffineSubscript | int) -> AffineSubscript:
        return self._joined(_divisor(other), lambda a, b: a // b)

    def __mod__(self, other: AffineSubscript | int) -> AffineSubscript:
        return self._joined(_divisor(other), lambda a, b: a % b)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineSubscript) and self.expr is other.expr and self.values == other.values

    def __hash__(self) -> int:
        return hash((self.expr, self.values))

    def __repr__(self) -> str:
        return self.expr.format([f"%{v.name or '?'}" for v in self.values])


def _divisor(value: AffineSubscript | int) -> AffineSubscript:
    divisor = AffineSubscript.of(value)
    if not isinstance(divisor.expr, AffineConstant):
        raise TypeError("a subscript divided by a subscript is not affine; divide the index values with `floordiv`")
    return divisor


def rename(subscripts: Sequence[AffineSubscript | int]) -> tuple[list[AffineExpr], list[Value]]:
    """Expressions over one common list of values, without repeats."""
    places: dict[Value, int] = {}
    out: list[AffineExpr] = []
    for subscript in map(AffineSubscript.of, subscripts):
        table = {i: dim(places.setdefault(v, len(places))) for i, v in enumerate(subscript.values)}
        out.append(subscript.expr.replace(table))
    return out, list(places)


def access(subscripts: Sequence[AffineSubscript | int]) -> tuple[AffineMap, list[Value]]:
    """The map and the index operands of a kernel load or store."""
    exprs, values = rename(subscripts)
    return AffineMap(len(values), 0, exprs), values


def inside(b: ScalarBuilder, at: Sequence[Value], bounds: Sequence[Extent]) -> Value:
    """Whether all index values lie inside the bounds (i1)."""
    found: Value | None = None
    for index, extent in zip(at, bounds, strict=True):
        for predicate, limit in (("sge", 0), ("slt", extent)):
            test = b.cmp(predicate, index, limit)
            found = test if found is None else b.and_(found, test)
    return b.constant(True, I1) if found is None else found


def _materialize(b: ScalarBuilder, expr: AffineExpr, values: Sequence[Value]) -> Value:
    """A subscript's expression over index values as scalar ops."""
    match expr:
        case AffineDim():
            return values[expr.index]
        case AffineConstant():
            return b.index_constant(expr.value)
        case AffineSum():
            total: Value | None = None
            for term, factor in expr.terms:
                part = _materialize(b, term, values)
                if total is not None and factor == -1:
                    total = b.sub(total, part)
                    continue
                scaled = part if factor == 1 else b.mul(part, factor)
                total = scaled if total is None else b.add(total, scaled)
            assert total is not None
            return b.add(total, expr.offset) if expr.offset else total
        case AffineBinary():
            left, right = (_materialize(b, e, values) for e in (expr.left, expr.right))
            if expr.kind == "*":
                return b.mul(left, right)
            if expr.kind == "ceildiv":
                return b.value_of(arith.CeilDivSI, left, right)
            quotient = b.floordiv(left, right)
            return quotient if expr.kind == "floordiv" else b.sub(left, b.mul(quotient, right))
        case _:
            raise TypeError(f"not a subscript: {expr}")

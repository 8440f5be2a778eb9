"""Constraints on the types of operands and results, with the words that messages use for them."""

from __future__ import annotations

from collections.abc import Callable

from .types import (
    FloatType,
    FunctionType,
    IndexType,
    IntegerType,
    MemRefType,
    ShapedType,
    TensorType,
    Type,
    VectorType,
)


class TypeConstraint:
    """A set of types with a description for messages; membership is remembered, types being interned."""

    __slots__ = ("_known", "description", "predicate")

    def __init__(self, description: str, predicate: Callable[[Type], bool]) -> None:
        self.description = description
        self.predicate = predicate
        self._known: dict[Type, bool] = {}

    def __contains__(self, type: Type) -> bool:
        known = self._known.get(type)
        if known is None:
            known = self._known[type] = self.predicate(type)
        return known


def like(description: str, scalar: Callable[[Type], bool]) -> TypeConstraint:
    """Scalars for which `scalar` holds, and vectors and tensors of them."""
    return TypeConstraint(
        f"{description} or a vector or tensor of it",
        lambda t: scalar(t.element) if isinstance(t, VectorType | TensorType) else scalar(t),
    )


def _is_bool(type: Type) -> bool:
    return isinstance(type, IntegerType) and type.width == 1


def _is_signless(type: Type) -> bool:
    return isinstance(type, IntegerType) and not type.signedness


ANY = TypeConstraint("any type", lambda t: True)
FLOAT = TypeConstraint("a float", lambda t: isinstance(t, FloatType))
INTEGER = TypeConstraint("an integer", lambda t: isinstance(t, IntegerType))
SIGNLESS = TypeConstraint("a signless integer", _is_signless)
BOOL = TypeConstraint("i1", _is_bool)
INDEX_ = TypeConstraint("index", lambda t: isinstance(t, IndexType))
FLOAT_LIKE = like("a float", lambda t: isinstance(t, FloatType))
SIGNLESS_LIKE = like("a signless integer or index", lambda t: _is_signless(t) or isinstance(t, IndexType))
BOOL_LIKE = like("i1", _is_bool)
TENSOR = TypeConstraint("a tensor", lambda t: isinstance(t, TensorType))
MEMREF = TypeConstraint("a memref", lambda t: isinstance(t, MemRefType))
VECTOR = TypeConstraint("a vector", lambda t: isinstance(t, VectorType))
SHAPED = TypeConstraint("a tensor, memref or vector", lambda t: isinstance(t, ShapedType))
SCALAR = TypeConstraint("a scalar", lambda t: isinstance(t, FloatType | IntegerType | IndexType))
FUNCTION = TypeConstraint("a function type", lambda t: isinstance(t, FunctionType))

"""Properties of op classes: inherent attributes, read and given as Python values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, TypeVar, overload

from .affine import AffineMap
from .attributes import (
    UNIT,
    AffineMapAttr,
    ArrayAttr,
    Attribute,
    DenseArrayAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    TypeAttr,
    UnitAttr,
)
from .operations import Operation
from .types import I64, FloatType, IndexType, IntegerType, Type

T = TypeVar("T")


class Property(Generic[T]):
    """An inherent attribute, read and given as the Python value that it stands for.

    `kind` is the attribute class that the verifier demands, `encode` and `decode` translate.  A property with a
    default, or an optional one (read as None), may be absent.
    """

    __slots__ = ("decode", "default", "description", "encode", "kind", "name", "optional", "type")

    def __init__(
        self,
        kind: type[Attribute],
        encode: Callable[[Any], Attribute],
        decode: Callable[[Any], T],
        description: str,
        default: Any = None,
        optional: bool = False,
        type: Type | None = None,
    ) -> None:
        self.type = type
        """The only type of the number (or of the elements), where the text need not repeat it."""
        self.kind = kind
        self.encode = encode
        self.decode = decode
        self.description = description
        self.default = default
        self.optional = optional or default is not None
        self.name = ""

    def __get__(self, op: Operation, owner: object = None) -> T:
        found = op.properties.get(self.name)
        return self.default if found is None else self.decode(found)

    def to_attribute(self, value: Any) -> Attribute:
        """The attribute for a Python value; attributes pass through."""
        return value if isinstance(value, Attribute) else self.encode(value)


def attr(kind: type[Attribute] = Attribute, optional: bool = False, default: Any = None) -> Property[Any]:
    """Any attribute of a class, read as it is."""

    def refuse(value: Any) -> Attribute:
        raise TypeError(f"expected {kind.__name__}, got {value!r}")

    return Property(kind, refuse, lambda a: a, kind.__name__, default, optional)


@overload
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, optional: Literal[False] = False
) -> Property[int]: ...
@overload
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, *, optional: Literal[True]
) -> Property[int | None]: ...
def integer(
    type: IntegerType | IndexType = I64, default: int | None = None, optional: bool = False
) -> Property[int] | Property[int | None]:
    """An integer of a fixed type."""
    return Property(
        IntegerAttr,
        lambda v: IntegerAttr(v, type),
        lambda a: a.value,
        f"an integer of type {type}",
        default,
        optional,
        type,
    )


def number(type: FloatType, default: float | None = None) -> Property[float]:
    """A float of a fixed type."""
    return Property(
        FloatAttr, lambda v: FloatAttr(v, type), lambda a: a.value, f"a float of type {type}", default, False, type
    )


@overload
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, optional: Literal[False] = False
) -> Property[tuple[int, ...]]: ...
@overload
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, *, optional: Literal[True]
) -> Property[tuple[int, ...] | None]: ...
def integers(
    default: Sequence[int] | None = None, element: IntegerType = I64, optional: bool = False
) -> Property[tuple[int, ...]] | Property[tuple[int, ...] | None]:
    """`array<i64: ..>`, read as a tuple of ints."""
    fixed = None if default is None else tuple(default)
    return Property(
        DenseArrayAttr,
        lambda v: DenseArrayAttr(v, element),
        lambda a: a.values,
        f"array<{element}>",
        fixed,
        optional,
        element,
    )


@overload
def string(default: str | None = None, optional: Literal[False] = False) -> Property[str]: ...
@overload
def string(default: str | None = None, *, optional: Literal[True]) -> Property[str | None]: ...
def string(default: str | None = None, optional: bool = False) -> Property[str] | Property[str | None]:
    """A string."""
    return Property(StringAttr, StringAttr, lambda a: a.value, "a string", default, optional)


def type_(optional: bool = False) -> Property[Any]:
    """A type, read as the type itself."""
    return Property(TypeAttr, TypeAttr, lambda a: a.type, "a type", None, optional)


def symbol_ref() -> Property[str]:
    """`@name`, read as the name."""
    return Property(SymbolRefAttr, SymbolRefAttr, lambda a: a.root, "a symbol")


def affine_map() -> Property[AffineMap]:
    """An affine map."""
    return Property(AffineMapAttr, AffineMapAttr, lambda a: a.map, "an affine map")


@overload
def array(
    optional: Literal[False] = False, default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...]]: ...
@overload
def array(
    optional: Literal[True], default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...] | None]: ...
def array(
    optional: bool = False, default: Sequence[Attribute] | None = None
) -> Property[tuple[Attribute, ...]] | Property[tuple[Attribute, ...] | None]:
    """`[..]`, read as a tuple of attributes."""
    return Property(
        ArrayAttr, ArrayAttr, lambda a: a.elements, "an array", None if default is None else tuple(default), optional
    )


def boolean(default: bool | None = None) -> Property[bool]:
    """`true` or `false`."""
    return Property(
        IntegerAttr, lambda v: IntegerAttr(bool(v), IntegerType(1)), lambda a: bool(a.value), "a bool", default
    )


def flag() -> Property[bool]:
    """A unit attribute, present or not, read as a bool."""
    return Property(UnitAttr, lambda v: UNIT, lambda a: True, "unit", False, optional=True)


class Enumeration(Property[str]):
    """One of `names`, stored as its position (an integer attribute) and written as a bare word in custom form."""

    __slots__ = ("names",)

    names: tuple[str, ...]

    def __init__(self, names: Sequence[str], type: IntegerType, default: str | None) -> None:
        self.names = tuple(names)
        positions = {n: i for i, n in enumerate(self.names)}

        def encode(value: Any) -> Attribute:
            if value not in positions:
                raise ValueError(f"{value!r} is none of {', '.join(self.names)}")
            return IntegerAttr(positions[value], type)

        description = f"one of {', '.join(self.names)}"

        def decode(attribute: Any) -> str:
            position: int = attribute.value
            return self.names[position]

        super().__init__(IntegerAttr, encode, decode, description, default, False, type)


def enumeration(*names: str, type: IntegerType = I64, default: str | None = None) -> Enumeration:
    """An enumeration; reads as the name."""
    return Enumeration(names, type, default)

"""Types of IR values.  Every type is interned: two equal types are the same object, so `is` compares them.

`str(type)` is the type's text in MLIR's syntax.  A new object enters its table complete, and with `setdefault`: of two
threads that make the same type at once, both get the one that came first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

if TYPE_CHECKING:
    from .attributes import Attribute

DYNAMIC: Final = -(1 << 63)
"""A dimension, stride or offset that is known only at run time (`?`), with MLIR's own value."""

_T = TypeVar("_T", bound="Type")


class Type:
    """Base of all types."""

    __slots__ = ("_key", "_text")
    _interned: ClassVar[dict[Any, Any]]
    _key: tuple[object, ...]
    _text: str

    def __init_subclass__(cls) -> None:
        cls._interned = {}

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __copy__(self: _T) -> _T:
        return self

    def __deepcopy__(self: _T, memo: object) -> _T:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._key


class FloatType(Type):
    """An IEEE binary format, or bfloat16: `f16`, `bf16`, `f32`, `f64`."""

    __slots__ = ("exponent_bits", "mantissa_bits", "name", "width")
    _FORMATS: ClassVar[dict[str, tuple[int, int]]] = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
    name: str
    width: int
    exponent_bits: int
    mantissa_bits: int

    def __new__(cls, name: str) -> FloatType:
        found = cls._interned.get(name)
        if found is None:
            found = object.__new__(cls)
            found.name = found._text = name
            found._key = (name,)
            found.exponent_bits, found.mantissa_bits = cls._FORMATS[name]
            found.width = 1 + found.exponent_bits + found.mantissa_bits
            found = cls._interned.setdefault(name, found)
        return found

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return (2.0 - 2.0**-self.mantissa_bits) * 2.0 ** ((1 << (self.exponent_bits - 1)) - 1)

    @property
    def smallest(self) -> float:
        """The smallest positive number, which is denormal."""
        return 2.0 ** (2 - (1 << (self.exponent_bits - 1)) - self.mantissa_bits)


class IntegerType(Type):
    """An integer of `width` bits; `signedness` is "" (signless), "s" or "u"."""

    __slots__ = ("signedness", "width")
    width: int
    signedness: str

    def __new__(cls, width: int, signedness: str = "") -> IntegerType:
        key = (width, signedness)
        found = cls._interned.get(key)
        if found is None:
            if width < 1 or width > (1 << 24) or signedness not in ("", "s", "u"):
                raise ValueError(f"no such integer type: {signedness}i{width}")
            found = object.__new__(cls)
            found.width, found.signedness = key
            found._key = key
            found._text = f"{signedness}i{width}"
            found = cls._interned.setdefault(key, found)
        return found


class IndexType(Type):
    """`index`: a size or subscript; 64 bits wide on every target of ours."""

    __slots__ = ()

    def __new__(cls) -> IndexType:
        found = cls._interned.get(())
        if found is None:
            found = object.__new__(cls)
            found._key = ()
            found._text = "index"
            found = cls._interned.setdefault((), found)
        return found


class NoneType(Type):
    """`none`: no value."""

    __slots__ = ()

    def __new__(cls) -> NoneType:
        found = cls._interned.get(())
        if found is None:
            found = object.__new__(cls)
            found._key = ()
            found._text = "none"
            found = cls._interned.setdefault((), found)
        return found


class FunctionType(Type):
    """`(inputs) -> results`."""

    __slots__ = ("inputs", "results")
    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __new__(cls, inputs: Sequence[Type], results: Sequence[Type]) -> FunctionType:
        key = (tuple(inputs), tuple(results))
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.inputs, found.results = key
            found._key = key
            right = ", ".join(map(str, found.results))
            if len(found.results) != 1 or isinstance(found.results[0], FunctionType):
                right = f"({right})"
            found._text = f"({', '.join(map(str, found.inputs))}) -> {right}"
            found = cls._interned.setdefault(key, found)
        return found


class ShapedType(Type):
    """A type with a shape of extents (`DYNAMIC` where unknown) and an element type."""

    __slots__ = ("element", "rank", "shape")
    shape: tuple[int, ...]
    element: Type
    rank: int

    @property
    def is_static(self) -> bool:
        """Whether every extent is known."""
        return DYNAMIC not in self.shape

    @property
    def num_elements(self) -> int:
        """The number of elements; ValueError when an extent is dynamic."""
        if DYNAMIC in self.shape:
            raise ValueError(f"{self} has dynamic extents")
        return math.prod(self.shape)

    def _dims(self) -> str:
        return "".join(("?" if d == DYNAMIC else str(d)) + "x" for d in self.shape)


def _checked_shape(shape: Sequence[int]) -> tuple[int, ...]:
    dims = tuple(shape)
    if any(d < 0 and d != DYNAMIC for d in dims):
        raise ValueError(f"negative extent in shape {dims}")
    if math.prod([max(d, 1) for d in dims]) >= 1 << 63:
        raise ValueError(f"shape {dims} has more elements than 64 bits count")
    return dims


class TensorType(ShapedType):
    """`tensor<4x?xf32, encoding>`.  The encoding of ours is an array of the names of the dynamic extents, in order."""

    __slots__ = ("encoding", "symbols")
    encoding: Attribute | None
    symbols: tuple[str | None, ...]

    def __new__(cls, shape: Sequence[int], element: Type, encoding: Attribute | None = None) -> TensorType:
        key = (tuple(shape), element, encoding)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.shape = _checked_shape(shape)
            found.rank = len(found.shape)
            found.element = element
            found.encoding = encoding
            found._key = key
            found.symbols = _symbols(found.shape, encoding)
            tail = "" if encoding is None else f", {encoding}"
            found._text = f"tensor<{found._dims()}{element}{tail}>"
            found = cls._interned.setdefault(key, found)
        return found

    @property
    def dims(self) -> tuple[int | str, ...]:
        """The extents with the names of the dynamic ones: `(64, "n")`; `"?"` where one has no name."""
        return tuple(s or "?" if d == DYNAMIC else d for d, s in zip(self.shape, self.symbols, strict=True))


def _symbols(shape: tuple[int, ...], encoding: Attribute | None) -> tuple[str | None, ...]:
    """For each axis the symbol of its extent, None where it is static or unnamed."""
    names = [getattr(a, "value", None) for a in getattr(encoding, "elements", ())]
    if len(names) != shape.count(DYNAMIC) or not all(isinstance(n, str) for n in names):
        return (None,) * len(shape)
    rest = iter(names)
    return tuple(next(rest) if d == DYNAMIC else None for d in shape)


class MemRefType(ShapedType):
    """`memref<4x?xf32, layout, space>`; no layout means row-major and contiguous."""

    __slots__ = ("layout", "space")
    layout: Attribute | None
    space: Attribute | None

    def __new__(
        cls, shape: Sequence[int], element: Type, layout: Attribute | None = None, space: Attribute | None = None
    ) -> MemRefType:
        key = (tuple(shape), element, layout, space)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.shape = _checked_shape(shape)
            found.rank = len(found.shape)
            found.element = element
            found.layout = layout
            found.space = space
            found._key = key
            tail = "" if layout is None else f", {layout}"
            if space is not None:
                tail += f", {str(space).removesuffix(' : i64')}"
            found._text = f"memref<{found._dims()}{element}{tail}>"
            found = cls._interned.setdefault(key, found)
        return found


class VectorType(ShapedType):
    """`vector<16xf32>`; every extent is static."""

    __slots__ = ()

    def __new__(cls, shape: Sequence[int], element: Type) -> VectorType:
        key = (tuple(shape), element)
        found = cls._interned.get(key)
        if found is None:
            if any(d < 1 for d in key[0]):
                raise ValueError(f"vector extents must be positive: {key[0]}")
            found = object.__new__(cls)
            found.shape = _checked_shape(shape)
            found.rank = len(key[0])
            found.element = element
            found._key = key
            found._text = f"vector<{found._dims()}{element}>"
            found = cls._interned.setdefault(key, found)
        return found


class OpaqueType(Type):
    """`!dialect.body` or `!dialect<body>`: a type of a dialect that is not known here, kept as text."""

    __slots__ = ("body", "dialect")
    dialect: str
    body: str

    def __new__(cls, dialect: str, body: str) -> OpaqueType:
        key = (dialect, body)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.dialect, found.body = found._key = key
            found._text = f"!{dialect}{body}" if body.startswith("<") else f"!{dialect}.{body}"
            found = cls._interned.setdefault(key, found)
        return found


F16, BF16, F32, F64 = (FloatType(n) for n in ("f16", "bf16", "f32", "f64"))
I1, I8, I16, I32, I64 = (IntegerType(w) for w in (1, 8, 16, 32, 64))
UI8, UI16, UI32, UI64 = (IntegerType(w, "u") for w in (8, 16, 32, 64))
INDEX = IndexType()
NONE = NoneType()


def element_type(type: Type) -> Type:
    """The element type of a shaped type, else the type itself."""
    return type.element if isinstance(type, ShapedType) else type


def bit_width(type: Type) -> int:
    """The bits of an integer, float or index, or of the elements of a shaped type; an index has 64."""
    element = element_type(type)
    return element.width if isinstance(element, IntegerType | FloatType) else 64


def element_bytes(type: Type) -> int:
    """The bytes of such a number in memory, where an i1 takes one."""
    return max(1, bit_width(type) // 8)


def signless(type: Type) -> Type:
    """A tensor's element type as scalars have it: without a sign."""
    return IntegerType(type.width) if isinstance(type, IntegerType) else type


def is_unsigned(type: Type) -> bool:
    """Whether the integers of a tensor's element type count from zero; bools do."""
    return isinstance(type, IntegerType) and (type.signedness == "u" or type.width == 1)


def with_element(type: Type, element: Type) -> Type:
    """`type` with its element type replaced: a tensor stays a tensor, a scalar becomes `element`."""
    if isinstance(type, TensorType):
        return TensorType(type.shape, element, type.encoding)
    if isinstance(type, VectorType):
        return VectorType(type.shape, element)
    if isinstance(type, MemRefType):
        return MemRefType(type.shape, element, type.layout, type.space)
    return element

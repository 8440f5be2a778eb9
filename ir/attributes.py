"""Attributes: compile-time constants on operations.  Interned like types, so `is` compares them.

`str(attribute)` is the attribute's text in MLIR's syntax, with its type where the text alone does not tell it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from .affine import AffineMap
from .location import quote
from .types import (
    DYNAMIC,
    F64,
    I1,
    I64,
    FloatType,
    IndexType,
    IntegerType,
    ShapedType,
    Type,
)

_A = TypeVar("_A", bound="Attribute")


class Attribute:
    """Base of all attributes."""

    __slots__ = ("_key", "_text")
    _interned: ClassVar[dict[Any, Any]]
    _key: tuple[Any, ...]
    _text: str

    def __init_subclass__(cls) -> None:
        cls._interned = {}

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __copy__(self: _A) -> _A:
        return self

    def __deepcopy__(self: _A, memo: object) -> _A:
        return self

    def __reduce__(self) -> Any:
        return _rebuild, (type(self), self._key)


def _rebuild(cls: Any, key: tuple[Any, ...]) -> Any:
    return cls.from_bits(*key) if cls is FloatAttr else cls(*key)


class UnitAttr(Attribute):
    """`unit`: present or absent."""

    __slots__ = ()

    def __new__(cls) -> UnitAttr:
        found = cls._interned.get(())
        if found is None:
            found = object.__new__(cls)
            found._key = ()
            found._text = "unit"
            found = cls._interned.setdefault((), found)
        return found


UNIT = UnitAttr()


class IntegerAttr(Attribute):
    """An integer with its type: `7 : i32`, `true`, `7 : index`.

    Signless and signed values are kept in the two's complement range, i1 as 0 or 1, unsigned ones as they are.
    """

    __slots__ = ("type", "value")
    value: int
    type: IntegerType | IndexType

    def __new__(cls, value: int, type: IntegerType | IndexType) -> IntegerAttr:
        value = wrap_integer(int(value), type)
        key = (value, type)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.value, found.type = found._key = key
            found._text = ("true" if value else "false") if type is I1 else f"{value} : {type}"
            found = cls._interned.setdefault(key, found)
        return found


def wrap_integer(value: int, type: Type) -> int:
    """`value` modulo the type's width, in the range that the type's attribute uses."""
    width = type.width if isinstance(type, IntegerType) else 64
    value &= (1 << width) - 1
    unsigned = type is I1 or (isinstance(type, IntegerType) and type.signedness == "u")
    return value if unsigned or value < 1 << (width - 1) else value - (1 << width)


class FloatAttr(Attribute):
    """A float with its type, kept as bits so that NaN payloads and -0.0 survive: `0.5 : f32`."""

    __slots__ = ("bits", "type", "value")
    bits: int
    type: FloatType
    value: float

    def __new__(cls, value: float, type: FloatType) -> FloatAttr:
        return cls.from_bits(float_to_bits(float(value), type), type)

    @classmethod
    def from_bits(cls, bits: int, type: FloatType) -> FloatAttr:
        """The float with this bit pattern."""
        key = (bits, type)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.bits, found.type = found._key = key
            found.value = bits_to_float(bits, type)
            found._text = f"{float_text(bits, type)} : {type}"
            found = cls._interned.setdefault(key, found)
        return found


_PACK = {16: "<e", 32: "<f", 64: "<d"}
_PACK_BITS = {16: "<H", 32: "<I", 64: "<Q"}


def float_to_bits(value: float, type: FloatType) -> int:
    """The bit pattern of `value` rounded once, to nearest even, in `type`."""
    if type is F64:
        return int(struct.unpack("<Q", struct.pack("<d", value))[0])
    wide: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    sign = (wide >> 63) << (type.width - 1)
    exponent, fraction = (wide >> 52) & 0x7FF, wide & ((1 << 52) - 1)
    top = (1 << type.exponent_bits) - 1
    mantissa = type.mantissa_bits
    if exponent == 0x7FF:
        if fraction:  # a quiet NaN with the payload's leading bits
            return sign | top << mantissa | 1 << (mantissa - 1) | fraction >> (52 - mantissa)
        return sign | top << mantissa
    if exponent:
        fraction |= 1 << 52
    scale = max(exponent, 1) - 1023 + (top >> 1)  # the biased exponent in the narrow type
    drop = 52 - mantissa + max(0, 1 - scale)
    if drop > 54:
        return sign
    kept = fraction >> drop
    rest = fraction & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    if rest > half or (rest == half and kept & 1):
        kept += 1
    # Carries run from the mantissa into the exponent, which is how rounding up to a power of two must work.
    bits = kept if scale < 1 else kept + ((scale - 1) << mantissa)
    return sign | min(bits, top << mantissa)


def bits_to_float(bits: int, type: FloatType) -> float:
    """The value of a bit pattern."""
    if type.name == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    return float(struct.unpack(_PACK[type.width], struct.pack(_PACK_BITS[type.width], bits))[0])


def float_text(bits: int, type: FloatType) -> str:
    """The shortest decimal that gives these bits back in `type`, with a dot; hex bits for infinities and NaN."""
    value = bits_to_float(bits, type)
    if not math.isfinite(value):
        return f"0x{bits:0{type.width // 4}X}"
    text = repr(value)
    if type is not F64:
        for digits in range(1, 10):
            short = f"{value:.{digits}g}"
            if float_to_bits(float(short), type) == bits:
                text = repr(float(short))
                break
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}" if exponent else mantissa


class StringAttr(Attribute):
    """`"text"`; bytes that are not UTF-8 are kept through surrogate escapes."""

    __slots__ = ("value",)
    value: str

    def __new__(cls, value: str) -> StringAttr:
        found = cls._interned.get(value)
        if found is None:
            found = object.__new__(cls)
            found.value = value
            found._key = (value,)
            found._text = quote(value)
            found = cls._interned.setdefault(value, found)
        return found


class ArrayAttr(Attribute):
    """`[a, b]`."""

    __slots__ = ("elements",)
    elements: tuple[Attribute, ...]

    def __new__(cls, elements: Iterable[Attribute]) -> ArrayAttr:
        key = tuple(elements)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.elements = key
            found._key = (key,)
            found._text = f"[{', '.join(map(str, key))}]"
            found = cls._interned.setdefault(key, found)
        return found


class DictAttr(Attribute):
    """`{key = value}`, sorted by key."""

    __slots__ = ("entries",)
    entries: dict[str, Attribute]

    def __new__(cls, entries: Mapping[str, Attribute]) -> DictAttr:
        items = tuple(sorted(entries.items()))
        found = cls._interned.get(items)
        if found is None:
            found = object.__new__(cls)
            found.entries = dict(items)
            found._key = (found.entries,)
            found._text = dict_text(found.entries)
            found = cls._interned.setdefault(items, found)
        return found


def key_text(key: str) -> str:
    """An attribute's name as it stands in text: bare where it can be, else quoted."""
    bare = key and (key[0].isalpha() or key[0] == "_") and key.isascii()
    return key if bare and all(c.isalnum() or c in "_$." for c in key) else quote(key)


def dict_text(entries: Mapping[str, Attribute]) -> str:
    """`{key = value, flag}`, sorted by key."""
    parts = [key_text(k) if v is UNIT else f"{key_text(k)} = {v}" for k, v in sorted(entries.items())]
    return "{" + ", ".join(parts) + "}"


class TypeAttr(Attribute):
    """A type as an attribute."""

    __slots__ = ("type",)
    type: Type

    def __new__(cls, type: Type) -> TypeAttr:
        found = cls._interned.get(type)
        if found is None:
            found = object.__new__(cls)
            found.type = type
            found._key = (type,)
            found._text = str(type)
            found = cls._interned.setdefault(type, found)
        return found


class SymbolRefAttr(Attribute):
    """`@root::@nested`."""

    __slots__ = ("nested", "root")
    root: str
    nested: tuple[str, ...]

    def __new__(cls, root: str, nested: Iterable[str] = ()) -> SymbolRefAttr:
        key = (root, tuple(nested))
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.root, found.nested = found._key = key
            found._text = "::".join(symbol_text(part) for part in (root, *key[1]))
            found = cls._interned.setdefault(key, found)
        return found


def symbol_text(name: str) -> str:
    """`@name`, quoted where the name is no bare identifier."""
    bare = name and (name[0].isalpha() or name[0] == "_") and name.isascii()
    return "@" + (name if bare and all(c.isalnum() or c in "_$.-" for c in name) else quote(name))


class AffineMapAttr(Attribute):
    """`affine_map<(d0) -> (d0)>`."""

    __slots__ = ("map",)
    map: AffineMap

    def __new__(cls, map: AffineMap) -> AffineMapAttr:
        found = cls._interned.get(map)
        if found is None:
            found = object.__new__(cls)
            found.map = map
            found._key = (map,)
            found._text = f"affine_map<{map}>"
            found = cls._interned.setdefault(map, found)
        return found


class StridedLayoutAttr(Attribute):
    """`strided<[s0, s1], offset: o>`: the layout of a memref view, in elements."""

    __slots__ = ("offset", "strides")
    strides: tuple[int, ...]
    offset: int

    def __new__(cls, strides: Iterable[int], offset: int = 0) -> StridedLayoutAttr:
        key = (tuple(strides), offset)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.strides, found.offset = found._key = key
            text = ", ".join("?" if s == DYNAMIC else str(s) for s in key[0])
            tail = "" if offset == 0 else f", offset: {'?' if offset == DYNAMIC else offset}"
            found._text = f"strided<[{text}]{tail}>"
            found = cls._interned.setdefault(key, found)
        return found


class DialectAttr(Attribute):
    """`#dialect.body`: an attribute of a dialect, kept as text (`#gpu.thread<x>`, `#arith.fastmath<reassoc>`).

    A body in angle brackets stands without a dot: `#gpu<dim x>`.
    """

    __slots__ = ("body", "dialect")
    dialect: str
    body: str

    def __new__(cls, dialect: str, body: str) -> DialectAttr:
        key = (dialect, body)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.dialect, found.body = found._key = key
            found._text = f"#{dialect}{body}" if body.startswith("<") else f"#{dialect}.{body}"
            found = cls._interned.setdefault(key, found)
        return found


class DenseArrayAttr(Attribute):
    """`array<i64: 1, 2>`: integers, floats or bools of one type."""

    __slots__ = ("element", "values")
    element: IntegerType | FloatType
    values: tuple[int, ...] | tuple[float, ...]

    def __new__(cls, values: Iterable[int] | Iterable[float], element: IntegerType | FloatType = I64) -> DenseArrayAttr:
        key = (tuple(values), element)
        interned = (key[0], element) if isinstance(element, IntegerType) else (tuple(map(repr, key[0])), element)
        found = cls._interned.get(interned)
        if found is None:
            found = object.__new__(cls)
            found.values, found.element = found._key = key
            if isinstance(element, IntegerType):
                texts = [("false", "true")[bool(v)] if element is I1 else str(v) for v in key[0]]
            else:
                texts = [float_text(float_to_bits(v, element), element) for v in key[0]]
            found._text = f"array<{element}: {', '.join(texts)}>" if texts else f"array<{element}>"
            found = cls._interned.setdefault(interned, found)
        return found


# Struct codes of one element in memory; i1 takes a byte, bf16 is packed through its bits.
def element_code(type: Type) -> str:
    """The `struct` code of one element of a dense attribute (bf16: of its bits)."""
    if isinstance(type, FloatType):
        return {"f16": "e", "bf16": "H", "f32": "f", "f64": "d"}[type.name]
    if isinstance(type, IndexType):
        return "q"
    if isinstance(type, IntegerType) and type.width in (1, 8, 16, 32, 64):
        code = {1: "B", 8: "b", 16: "h", 32: "i", 64: "q"}[type.width]
        return code.upper() if type.signedness == "u" else code
    raise ValueError(f"no dense storage for elements of type {type}")


class DenseAttr(Attribute):
    """`dense<..> : type`: the elements of a tensor or vector, row-major little-endian bytes (one element: a splat)."""

    __slots__ = ("data", "type")
    type: ShapedType
    data: bytes

    def __new__(cls, type: ShapedType, data: bytes) -> DenseAttr:
        size = struct.calcsize(element_code(type.element))
        total = type.num_elements
        if len(data) != size and len(data) != size * total:
            raise ValueError(f"{len(data)} bytes of data for {type}, which has {total} elements of {size} bytes")
        if total == 0:
            data = b""
        elif total > 1 and len(data) == size * total and data == data[:size] * total:
            data = data[:size]
        key = (type, data)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.type, found.data = found._key = key
            found._text = ""
            found = cls._interned.setdefault(key, found)
        return found

    @classmethod
    def from_values(cls, type: ShapedType, values: Sequence[Any]) -> DenseAttr:
        """From a flat row-major sequence of Python numbers (or one number: a splat)."""
        element = type.element
        if isinstance(element, FloatType):
            code = "<" + {16: "H", 32: "I", 64: "Q"}[element.width]
            data = b"".join(struct.pack(code, float_to_bits(float(v), element)) for v in values)
        else:
            code = "<" + element_code(element)
            data = b"".join(struct.pack(code, wrap_integer(int(v), element)) for v in values)
        return cls(type, data)

    @classmethod
    def splat(cls, type: ShapedType, value: Any) -> DenseAttr:
        """All elements equal."""
        return cls.from_values(type, [value])

    @property
    def is_splat(self) -> bool:
        """Whether one element stands for all."""
        return len(self.data) == struct.calcsize(element_code(self.type.element)) and self.type.num_elements > 0

    def bits(self) -> tuple[int, ...]:
        """The stored elements (one when a splat) as unsigned bit patterns (integers: as values)."""
        element = self.type.element
        code = {16: "H", 32: "I", 64: "Q"}[element.width] if isinstance(element, FloatType) else element_code(element)
        count = len(self.data) // struct.calcsize(code)
        return struct.unpack(f"<{count}{code}", self.data)

    def values(self) -> tuple[Any, ...]:
        """All elements, row-major, as Python numbers."""
        element = self.type.element
        stored = self.bits()
        if isinstance(element, FloatType):
            stored = tuple(bits_to_float(b, element) for b in stored)
        return stored * self.type.num_elements if self.is_splat else stored

    def scalar(self) -> Attribute:
        """The element of a splat as an attribute of the element type."""
        if not self.is_splat:
            raise ValueError(f"not a splat: {self}")
        return _scalar(self.bits()[0], self.type.element)

    def __str__(self) -> str:
        if not self._text:
            self._text = f"dense<{self._body()}> : {self.type}"
        return self._text

    def _body(self) -> str:
        element, total = self.type.element, self.type.num_elements
        if total == 0:
            return ""
        texts = [str(_scalar(b, element)).partition(" : ")[0] for b in self.bits()]
        if self.is_splat:
            return texts[0]
        if total > 256 and element is not I1:
            return f'"0x{self.data.hex().upper()}"'
        for extent in reversed(self.type.shape):
            texts = [f"[{', '.join(texts[i : i + extent])}]" for i in range(0, len(texts), extent)]
        return texts[0]

    def __repr__(self) -> str:
        return str(self)


def _scalar(bits: Any, element: Type) -> Attribute:
    if isinstance(element, FloatType):
        return FloatAttr.from_bits(bits, element)
    assert isinstance(element, IntegerType | IndexType)
    return IntegerAttr(bits, element)


def scalar_attr(value: float, type: Type) -> FloatAttr | IntegerAttr:
    """A Python number as an attribute of a scalar type."""
    if isinstance(type, FloatType):
        return FloatAttr(float(value), type)
    if isinstance(type, IntegerType | IndexType):
        return IntegerAttr(int(value), type)
    raise ValueError(f"{type} is no scalar type")


def constant_attr(value: float, type: Type) -> Attribute:
    """A Python number as a constant of `type`: a scalar attribute, or a splat for tensors and vectors."""
    return DenseAttr.splat(type, value) if isinstance(type, ShapedType) else scalar_attr(value, type)


def index_array(values: Iterable[int]) -> DenseArrayAttr:
    """`array<i64: ..>`."""
    return DenseArrayAttr(values, I64)

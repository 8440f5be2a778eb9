"""Attributes: compile-time constants on operations.  Interned like types, so `is` compares them.

`str(attribute)` is the attribute's text in MLIR's syntax, with its type where the text alone does not tell it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from .affine import AffineMap
from .float_bits import BITS_CODE, bits_to_float, float_text, float_to_bits
from .location import quote
from .types import (
    DYNAMIC,
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
    _key: tuple[object, ...]
    _text: str

    def __init_subclass__(cls) -> None:
        cls._interned = {}

    def __getattr__(self, name: str) -> str:
        # Numbers are many, and few are ever printed: their text is made when it is asked for.
        if name != "_text":
            raise AttributeError(f"'{type(self).__name__}' has no attribute '{name}'", name=name, obj=self)
        self._text = text = self.spell()
        return text

    def spell(self) -> str:
        """The text, of attributes that do not make it at once."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def __copy__(self: _A) -> _A:
        return self

    def __deepcopy__(self: _A, memo: object) -> _A:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self._key)


def _rebuild(cls: Any, key: tuple[Any, ...]) -> Attribute:
    return cls.from_bits(*key) if cls in (FloatAttr, DenseArrayAttr) else cls(*key)


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
            found = cls._interned.setdefault(key, found)
        return found

    def spell(self) -> str:
        return ("true" if self.value else "false") if self.type is I1 else f"{self.value} : {self.type}"


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
            found = cls._interned.setdefault(key, found)
        return found

    def spell(self) -> str:
        return f"{float_text(self.bits, self.type)} : {self.type}"


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
    """`@name`, quoted where the name is not a bare identifier."""
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
            for number in (*key[0], offset):
                if not DYNAMIC <= number < -DYNAMIC:
                    raise ValueError(f"{number} in a layout does not fit into 64 bits")
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
    """`array<i64: 1, 2>`: integers, floats or bools of one type, floats kept as bits.

    Integers take the range that an IntegerAttr of the type has; ValueError for others.
    """

    __slots__ = ("bits", "element", "values")
    element: IntegerType | FloatType
    values: tuple[int, ...] | tuple[float, ...]
    bits: tuple[int, ...]
    """The floats as bit patterns; integers as they are."""

    def __new__(cls, values: Iterable[int] | Iterable[float], element: IntegerType | FloatType = I64) -> DenseArrayAttr:
        if isinstance(element, FloatType):
            return cls.from_bits([float_to_bits(v, element) for v in values], element)
        return cls.from_bits(values, element)  # pyright: ignore[reportArgumentType]

    @classmethod
    def from_bits(cls, bits: Iterable[int], element: IntegerType | FloatType) -> DenseArrayAttr:
        """From bit patterns of floats, or from integers."""
        key = (tuple(bits), element)
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.bits, found.element = found._key = key
            if isinstance(element, IntegerType):
                for v in key[0]:
                    if wrap_integer(v, element) != v:
                        raise ValueError(f"{v} does not fit into {element}")
                found.values = key[0]
                texts = [("false", "true")[bool(v)] if element is I1 else str(v) for v in key[0]]
            else:
                found.values = tuple(bits_to_float(b, element) for b in key[0])
                texts = [float_text(b, element) for b in key[0]]
            found._text = f"array<{element}: {', '.join(texts)}>" if texts else f"array<{element}>"
            found = cls._interned.setdefault(key, found)
        return found


# Struct codes of one element in memory; i1 takes a byte, bf16 is packed through its bits.
_INTEGER_CODE = {1: "B", 8: "b", 16: "h", 32: "i", 64: "q"}


def element_code(type: Type) -> str:
    """The `struct` code of one element of a dense attribute (bf16: of its bits)."""
    if isinstance(type, FloatType):
        return {"f16": "e", "bf16": "H", "f32": "f", "f64": "d"}[type.name]
    if isinstance(type, IndexType):
        return "q"
    if isinstance(type, IntegerType) and type.width in _INTEGER_CODE:
        code = _INTEGER_CODE[type.width]
        return code.upper() if type.signedness == "u" else code
    raise ValueError(f"no dense storage for elements of type {type}")


def has_storage(type: Type) -> bool:
    """Whether a dense attribute may have elements of the type."""
    return isinstance(type, FloatType | IndexType) or (isinstance(type, IntegerType) and type.width in _INTEGER_CODE)


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
    def from_values(cls, type: ShapedType, values: Sequence[float]) -> DenseAttr:
        """From a flat row-major sequence of Python numbers (or one number: a splat)."""
        return cls(type, b"".join(map(_packer(type.element), values)))

    @classmethod
    def splat(cls, type: ShapedType, value: float | FloatAttr | IntegerAttr) -> DenseAttr:
        """All elements equal to a Python number, or to a scalar attribute bit for bit."""
        if isinstance(value, FloatAttr) and value.type is type.element:
            return cls(type, struct.pack("<" + BITS_CODE[value.type.width], value.bits))
        return cls.from_values(type, [value.value if isinstance(value, FloatAttr | IntegerAttr) else value])

    @property
    def is_splat(self) -> bool:
        """Whether one element stands for all."""
        return len(self.data) == struct.calcsize(element_code(self.type.element)) and self.type.num_elements > 0

    def bits(self) -> tuple[int, ...]:
        """The stored elements (one when a splat) as unsigned bit patterns (integers: as values)."""
        element = self.type.element
        code = BITS_CODE[element.width] if isinstance(element, FloatType) else element_code(element)
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


def _packer(element: Type) -> Callable[[float], bytes]:
    """The function that gives a Python number's bytes as an element of a dense attribute."""
    pack = struct.pack
    if isinstance(element, FloatType):
        code = "<" + BITS_CODE[element.width]
        return lambda v: pack(code, float_to_bits(float(v), element))
    code = "<" + element_code(element)
    return lambda v: pack(code, wrap_integer(int(v), element))


def _scalar(bits: int, element: Type) -> Attribute:
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
    raise ValueError(f"{type} is not a scalar type")


def constant_attr(value: float, type: Type) -> Attribute:
    """A Python number as a constant of `type`: a scalar attribute, or a splat for tensors and vectors."""
    return DenseAttr.splat(type, value) if isinstance(type, ShapedType) else scalar_attr(value, type)


def folded_attr(value: float, type: Type) -> Attribute | None:
    """What a fold gives for a Python number: `constant_attr`, None where constants of the type cannot be written."""
    if isinstance(type, ShapedType) and not (type.is_static and has_storage(type.element)):
        return None
    return constant_attr(value, type)


def index_array(values: Iterable[int]) -> DenseArrayAttr:
    """`array<i64: ..>`."""
    return DenseArrayAttr(values, I64)

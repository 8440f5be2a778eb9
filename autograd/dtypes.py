"""Data types and their promotion.

A `DType` is one of a few objects (`float32`, `int8`, ..), compared by identity; it equals the NumPy dtype of the same
name too.  Promotion follows the Python array API standard 2024.12, and beyond its table: an integer with a float takes
the float, float16 with bfloat16 gives float32, and uint64 with a signed integer is refused, since no dtype holds both.

Python numbers alone are weak: one takes the dtype of the operand that it meets, unless it is of a higher kind (bool,
then integers, then floats), and is a float32 or an int64 where it meets none.  Until then it keeps its value: a float
is a double, an integer has no bound.  A number must fit the dtype that it takes (`check_fits`); nothing is cut off.
Tensors, those of no axes too, and NumPy's arrays and scalars are never weak.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from ..ir.diagnostics import DTypeError, shown
from ..ir.location import called_function, caller_location
from ..ir.types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, Type


class DType:
    """An element type: `name` as in NumPy, `kind` "bool", "int", "uint" or "float", `bits`, and the IR's `element`."""

    __slots__ = ("bits", "element", "kind", "name")

    def __init__(self, name: str, kind: str, bits: int, element: Type) -> None:
        self.name = name
        self.kind = kind
        self.bits = bits
        self.element = element

    @property
    def numpy(self) -> Any:
        """The NumPy dtype (of ml_dtypes for bfloat16)."""
        return _numpy_dtype(self)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return max(self.bits // 8, 1)

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType) or other is None:
            return self is other
        try:
            return as_dtype(other) is self
        except DTypeError:
            return False

    __hash__ = object.__hash__

    def __reduce__(self) -> Any:
        return as_dtype, (self.name,)


bool_ = DType("bool", "bool", 1, I1)
int8, int16, int32, int64 = (DType(f"int{t.width}", "int", t.width, t) for t in (I8, I16, I32, I64))
uint8, uint16, uint32, uint64 = (DType(f"uint{t.width}", "uint", t.width, t) for t in (UI8, UI16, UI32, UI64))
float16, float32, float64 = (DType(f"float{t.width}", "float", t.width, t) for t in (F16, F32, F64))
bfloat16 = DType("bfloat16", "float", 16, BF16)

DTYPES: dict[str, DType] = {
    d.name: d
    for d in (
        bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64,
    )
}  # fmt: skip
"""All dtypes by name."""

_OF_ELEMENT: dict[Type, DType] = {d.element: d for d in DTYPES.values()}
_OF_PYTHON: dict[Any, DType] = {bool: bool_, int: int64, float: float32}


@cache
def _numpy_dtype(dtype: DType) -> object:
    from ..ir.numeric import dtype as of_type  # late

    return of_type(dtype.element)


def of_element(element: Type) -> DType:
    """The dtype of an IR element type."""
    return _OF_ELEMENT[element]


def as_dtype(given: object) -> DType:
    """A DType from one, its name, a Python type (bool, int, float) or a NumPy dtype; DTypeError where there is none."""
    if isinstance(given, DType):
        return given
    if isinstance(given, str) and given in DTYPES:
        return DTYPES[given]
    try:
        found = None if given is None else _OF_PYTHON.get(given) or _of_numpy(given)
    except Exception:  # what `numpy.dtype` raises depends on the object: TypeError, ValueError, SyntaxError ..
        found = None
    if found is None:
        message = f"{called_function()}: no dtype for {shown(given)}; there are: {', '.join(DTYPES)}"
        raise DTypeError(message, caller_location())
    return found


@cache
def _of_numpy(given: Any) -> DType:
    """The dtype for what `numpy.dtype` takes; TypeError where there is none."""
    import numpy as np

    found = DTYPES.get(np.dtype(given).name)
    if found is None:
        raise TypeError(given)
    return found


def of_python(kind: type) -> DType | None:
    """The dtype that numbers of a Python type (bool, int, float or a subclass) have by themselves, None for others."""
    found = _OF_PYTHON.get(kind)
    if found is None and issubclass(kind, int | float) and not hasattr(kind, "dtype"):  # NumPy's scalars have one
        return int64 if issubclass(kind, int) else float32
    return found


_KINDS = {"bool": 0, "int": 1, "uint": 1, "float": 2}


@cache
def promote(a: DType, b: DType) -> DType:
    """The dtype that holds the values of both; DTypeError where there is none."""
    if a is b:
        return a
    if _KINDS[a.kind] != _KINDS[b.kind]:
        return a if _KINDS[a.kind] > _KINDS[b.kind] else b
    if a.kind == b.kind:
        if a.bits == b.bits:  # float16 and bfloat16
            return float32
        return a if a.bits > b.bits else b
    signed, unsigned = (a, b) if a.kind == "int" else (b, a)
    if unsigned.bits < signed.bits:
        return signed
    if unsigned is uint64:
        raise DTypeError(f"no integer dtype holds the values of {signed} and uint64; cast one of them with ag.astype")
    return DTYPES[f"int{unsigned.bits * 2}"]


@cache
def promote_weak(strong: DType, weak: DType) -> DType:
    """The dtype of a strong operand with a weak one: the strong one's unless the weak one is of a higher kind."""
    return weak if _KINDS[weak.kind] > _KINDS[strong.kind] else strong


def holds_kind(dtype: DType, other: DType) -> bool:
    """Whether values of `other` are of no higher kind than those of `dtype`: bool, then integers, then floats."""
    return _KINDS[other.kind] <= _KINDS[dtype.kind]


def fits(value: float, dtype: DType) -> bool:
    """Whether a Python number can be given in `dtype`.

    Integers and bools need a whole number in their range (0 and 1 for bools).  Floats round, beyond their range to an
    infinity; only an integer that no double holds is refused.
    """
    if dtype.is_float:
        if isinstance(value, int):
            try:
                float(value)
            except OverflowError:
                return False
        return True
    if isinstance(value, float):
        if not value.is_integer():
            return False
        value = int(value)
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    high = (1 << (dtype.bits - 1)) - 1 if dtype.kind == "int" else (1 << dtype.bits) - 1
    return low <= value <= high


def check_fits(value: float, dtype: DType) -> None:
    """DTypeError, with the name of the function called, where a Python number cannot be given in `dtype`."""
    if not fits(value, dtype):
        message = f"{called_function()}: {_text(value)} does not fit {dtype}; give a dtype that holds it"
        raise DTypeError(message, caller_location())


def _text(value: float) -> str:
    """A number as text; Python refuses to write out very long integers."""
    return f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >> 128 else repr(value)


def element(value: Any, dtype: DType) -> Any:
    """A Python number as an ndarray of no axes, rounded once; DTypeError where it does not fit."""
    make = _maker(dtype)
    if type(value) is float and dtype.is_float and -60_000.0 < value < 60_000.0:
        return make(value)
    check_fits(value, dtype)
    if not dtype.is_float:
        return make(int(value))
    import numpy as np

    with np.errstate(over="ignore"):
        return make(value)


@cache
def _maker(dtype: DType) -> Callable[[Any], Any]:
    """What makes an ndarray of no axes of a number that fits."""
    import numpy as np

    from ..ir.numeric import round_to  # late

    if dtype is bfloat16:  # NumPy would round twice, by way of float32
        return lambda value: np.asarray(round_to(np.asarray(value, np.float64), dtype.numpy))
    return partial(np.array, dtype=dtype.numpy)

"""IR types and constants as NumPy sees them; what `evaluate` and the interpreter compute with.

A scalar is a NumPy scalar, a vector or tensor an array.  Signless and signed integers are two's complement, i1 is bool,
index is int64, bf16 comes from ml_dtypes.  NumPy is imported by the functions, never by this module.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeGuard

from .attributes import Attribute, DenseAttr, FloatAttr, IntegerAttr
from .diagnostics import DTypeError
from .types import FloatType, IndexType, IntegerType, ShapedType, Type

if TYPE_CHECKING:
    from .arrays import Array, DType, Scalar


@cache
def dtype(type: Type) -> DType:
    """The NumPy dtype of a scalar type, or of the elements of a shaped one; DTypeError where NumPy has none."""
    import numpy as np

    element = type.element if isinstance(type, ShapedType) else type
    if isinstance(element, FloatType):
        if element.name == "bf16":
            import ml_dtypes

            return np.dtype(ml_dtypes.bfloat16)
        return np.dtype(f"f{element.width // 8}")
    if isinstance(element, IndexType):
        return np.dtype(np.int64)
    if isinstance(element, IntegerType) and element.width == 1:
        return np.dtype(np.bool_)
    if isinstance(element, IntegerType) and element.width in (8, 16, 32, 64):
        return np.dtype(f"{'u' if element.signedness == 'u' else 'i'}{element.width // 8}")
    raise DTypeError(f"no NumPy dtype for {type}")


def constant(attribute: Attribute) -> Array:
    """The NumPy scalar or array that a constant attribute stands for; bit patterns of floats are kept."""
    import numpy as np

    if isinstance(attribute, FloatAttr):
        bits = np.array(attribute.bits, f"u{attribute.type.width // 8}")
        return bits.view(dtype(attribute.type))[()]
    if isinstance(attribute, IntegerAttr):
        return dtype(attribute.type).type(attribute.value)
    if isinstance(attribute, DenseAttr):
        type = attribute.type
        stored = np.frombuffer(attribute.data, dtype(type))
        if attribute.is_splat:
            return np.full(type.shape, stored[0])
        return stored.reshape(type.shape).copy()
    raise ValueError(f"not a numeric constant: {attribute}")


def unwrap(value: Array) -> Array:
    """An array of rank 0, as many NumPy functions return it for scalars, as the scalar."""
    return value[()]


def where(condition: Array | bool, a: Array | Scalar | float, b: Array | Scalar | float) -> Array:
    """`a` where the condition holds, else `b`, element by element; a scalar when all three are."""
    import numpy as np

    return unwrap(np.where(condition, a, b))


def round_to(value: Array, target: DType) -> Array:
    """Floats rounded once, to nearest even, to another float dtype; NaN stays NaN."""
    import numpy as np

    if value.dtype == target:
        return value
    if value.dtype == np.float64 and target.itemsize == 2 and target != np.float16:
        # bfloat16's own cast goes through float32 and would round twice.
        value = odd_float32(value)
    return value.astype(target)


def odd_float32(value: Array) -> Array:
    """Float64 rounded to odd in float32; rounding that to fewer bits is as rounding once (Boldo, Melquiond)."""
    import numpy as np

    near = value.astype(np.float32)
    wide = near.astype(np.float64)
    inexact = (wide != value) & np.isfinite(near) & ~np.isnan(value)
    even = (near.view(np.uint32) & np.uint32(1)) == 0
    toward = where(wide < value, np.float32(np.inf), np.float32(-np.inf))
    return where(inexact & even, np.nextafter(near, toward), near)


def is_bool(value: Any) -> bool:
    """Whether a NumPy value (or dtype) holds bools."""
    return getattr(value, "dtype", value).kind == "b"


def is_array(value: object) -> TypeGuard[Array]:
    """Whether a value is an array, not a scalar."""
    import numpy as np

    return isinstance(value, np.ndarray)

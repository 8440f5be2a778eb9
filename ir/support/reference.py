"""The arithmetic of the tensor ops' reference meaning.

f16, bf16 and f32 functions are computed in float64 and rounded once; float64 and integers in their own type.  `wide`
and `narrow` are the two ends of that rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..attributes import DenseAttr
from ..numeric import dtype, round_to
from ..types import BF16, F16, F32, F64, I1, IntegerType, ShapedType, TensorType, Type

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike

    from ..arrays import Array, DType


def element_of(array_dtype: DTypeLike) -> Type:
    """The element type of a NumPy dtype; ValueError where there is none."""
    import numpy as np

    array_dtype = np.dtype(array_dtype)
    if array_dtype.kind == "b":
        return I1
    if array_dtype.kind in "iu":
        return IntegerType(array_dtype.itemsize * 8, "u" if array_dtype.kind == "u" else "")
    if array_dtype.kind == "f" and array_dtype.itemsize in (2, 4, 8):
        return {2: F16, 4: F32, 8: F64}[array_dtype.itemsize]
    if array_dtype.name == "bfloat16":
        return BF16
    raise ValueError(f"no element type for the dtype {array_dtype}")


def to_attribute(array: ArrayLike, type: ShapedType | None = None) -> DenseAttr:
    """An array (or NumPy scalar) as a dense attribute, of `type` or of the tensor type that its dtype says."""
    import numpy as np

    array = np.asarray(array)
    if type is None:
        type = TensorType(array.shape, element_of(array.dtype))
    return DenseAttr(type, np.ascontiguousarray(array, dtype(type)).tobytes())


def wide(array: Array) -> Array:
    """The array in the type that its functions are computed in: float64 for floats, its own type for the rest."""
    import numpy as np

    array = np.asarray(array)
    return array if array.dtype.kind in "biu" or array.dtype == np.float64 else array.astype(np.float64)


def narrow(array: Array, target: DType) -> Array:
    """The array in the dtype `target`, floats rounded once, to nearest even."""
    import numpy as np

    return np.asarray(round_to(np.asarray(array), np.dtype(target)))


def where(condition: Array, x: Array | float, y: Array | float) -> Array:
    """`numpy.where`."""
    import numpy as np

    return np.where(condition, x, y)


def function(name: str) -> Callable[..., Array]:
    """The NumPy function of this name, or one of ours where NumPy has none."""
    import numpy as np

    def reciprocal_root(x: Array) -> Array:
        return 1.0 / np.sqrt(x)

    own: dict[str, Callable[..., Array]] = {
        "erf": np.vectorize(math.erf, otypes=[np.float64]),
        "rsqrt": reciprocal_root,
    }
    return own.get(name) or getattr(np, name)

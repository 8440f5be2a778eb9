"""The types of the arrays that ops have a meaning on: NumPy arrays of any shape and dtype, and scalars.  For type
checkers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    DType = np.dtype[Any]
    Array = np.ndarray[tuple[int, ...], DType]
    Scalar = np.generic

"""What functions take in the place of Tensors, dtypes and shapes, as types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from ..ir.arrays import Array
    from .dtypes import DType
    from .numbers import TracedNumber
    from .sizes import SymbolicSize


class SupportsArray(Protocol):
    """An object that NumPy makes an ndarray of: a Tensor, an ndarray, a NumPy scalar, an array of another library."""

    def __array__(self) -> Array:
        """The ndarray."""
        ...


class SupportsDLPack(Protocol):
    """An array of another library, by the DLPack protocol."""

    def __dlpack__(self) -> object:
        """The capsule."""
        ...


SizeLike: TypeAlias = "int | str | SymbolicSize | np.integer"
"""An extent, known, symbolic, or the name of one in a trace."""
ShapeLike: TypeAlias = "SizeLike | Sequence[SizeLike]"
"""A shape, or the extent of the only axis."""
NumberLike: TypeAlias = "bool | int | float | TracedNumber | SymbolicSize"
"""A Python number, as it is or in a trace."""
ArrayLike: TypeAlias = "SupportsArray | SupportsDLPack | NumberLike | Sequence[ArrayLike]"
"""What `asarray` takes: a Tensor, an array of any library, a number, or a sequence of these, nested alike."""
DTypeLike: TypeAlias = "DType | str | type | np.dtype[np.generic]"
"""A dtype, its name, a Python type (bool, int, float) or a NumPy dtype."""
Axis: TypeAlias = "int | tuple[int, ...] | list[int] | None"
"""An axis, several, or all."""

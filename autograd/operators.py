"""The operators of Tensors, and their methods that have the names of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from .. import autograd as ag  # whose functions need what stands here: they are found when they are called
from .array_like import ArrayLike, Axis, DTypeLike
from .numbers import TracedNumber
from .sizes import SymbolicSize

if TYPE_CHECKING:
    from ..ir.arrays import Array
    from .tensor import Tensor


class Operators:
    """What `Tensor` has beside its state; an operand that is neither an array nor a number is left to its own class."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
            """The elements as an ndarray; Tensor defines it."""
            ...

    def _update(self, new: Tensor) -> Tensor:
        """Bind the handle to a new value."""
        raise NotImplementedError

    def __add__(self, other: ArrayLike) -> Tensor:
        return ag.add(self, other) if is_operand(other) else NotImplemented

    def __radd__(self, other: ArrayLike) -> Tensor:
        return ag.add(other, self) if is_operand(other) else NotImplemented

    def __iadd__(self, other: ArrayLike) -> Tensor:
        return self._update(self.__add__(other))

    def __sub__(self, other: ArrayLike) -> Tensor:
        return ag.subtract(self, other) if is_operand(other) else NotImplemented

    def __rsub__(self, other: ArrayLike) -> Tensor:
        return ag.subtract(other, self) if is_operand(other) else NotImplemented

    def __isub__(self, other: ArrayLike) -> Tensor:
        return self._update(self.__sub__(other))

    def __mul__(self, other: ArrayLike) -> Tensor:
        return ag.multiply(self, other) if is_operand(other) else NotImplemented

    def __rmul__(self, other: ArrayLike) -> Tensor:
        return ag.multiply(other, self) if is_operand(other) else NotImplemented

    def __imul__(self, other: ArrayLike) -> Tensor:
        return self._update(self.__mul__(other))

    def __truediv__(self, other: ArrayLike) -> Tensor:
        return ag.divide(self, other) if is_operand(other) else NotImplemented

    def __rtruediv__(self, other: ArrayLike) -> Tensor:
        return ag.divide(other, self) if is_operand(other) else NotImplemented

    def __itruediv__(self, other: ArrayLike) -> Tensor:
        return self._update(self.__truediv__(other))

    def __floordiv__(self, other: ArrayLike) -> Tensor:
        return ag.floor_divide(self, other) if is_operand(other) else NotImplemented

    def __rfloordiv__(self, other: ArrayLike) -> Tensor:
        return ag.floor_divide(other, self) if is_operand(other) else NotImplemented

    def __mod__(self, other: ArrayLike) -> Tensor:
        return ag.remainder(self, other) if is_operand(other) else NotImplemented

    def __rmod__(self, other: ArrayLike) -> Tensor:
        return ag.remainder(other, self) if is_operand(other) else NotImplemented

    def __pow__(self, other: ArrayLike) -> Tensor:
        return ag.pow(self, other) if is_operand(other) else NotImplemented

    def __rpow__(self, other: ArrayLike) -> Tensor:
        return ag.pow(other, self) if is_operand(other) else NotImplemented

    def __matmul__(self, other: ArrayLike) -> Tensor:
        return ag.matmul(self, other) if is_operand(other) else NotImplemented

    def __rmatmul__(self, other: ArrayLike) -> Tensor:
        return ag.matmul(other, self) if is_operand(other) else NotImplemented

    def __neg__(self) -> Tensor:
        return ag.negative(self)

    def __pos__(self) -> Tensor:
        return ag.positive(self)

    def __abs__(self) -> Tensor:
        return ag.abs(self)

    def __invert__(self) -> Tensor:
        return ag.logical_not(self)

    def __and__(self, other: ArrayLike) -> Tensor:
        return ag.logical_and(self, other) if is_operand(other) else NotImplemented

    def __rand__(self, other: ArrayLike) -> Tensor:
        return ag.logical_and(other, self) if is_operand(other) else NotImplemented

    def __or__(self, other: ArrayLike) -> Tensor:
        return ag.logical_or(self, other) if is_operand(other) else NotImplemented

    def __ror__(self, other: ArrayLike) -> Tensor:
        return ag.logical_or(other, self) if is_operand(other) else NotImplemented

    def __xor__(self, other: ArrayLike) -> Tensor:
        return ag.logical_xor(self, other) if is_operand(other) else NotImplemented

    def __rxor__(self, other: ArrayLike) -> Tensor:
        return ag.logical_xor(other, self) if is_operand(other) else NotImplemented

    def __eq__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ag.equal(self, other) if is_operand(other) else NotImplemented

    def __ne__(self, other: object) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ag.not_equal(self, other) if is_operand(other) else NotImplemented

    def __lt__(self, other: ArrayLike) -> Tensor:
        return ag.less(self, other) if is_operand(other) else NotImplemented

    def __le__(self, other: ArrayLike) -> Tensor:
        return ag.less_equal(self, other) if is_operand(other) else NotImplemented

    def __gt__(self, other: ArrayLike) -> Tensor:
        return ag.greater(self, other) if is_operand(other) else NotImplemented

    def __ge__(self, other: ArrayLike) -> Tensor:
        return ag.greater_equal(self, other) if is_operand(other) else NotImplemented

    __hash__ = object.__hash__

    def __getitem__(self: Any, key: Any) -> Tensor:
        return ag.functions.getitem(self, key)

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        self._update(ag.functions.with_item(self, key, value))

    # Methods of the same names as functions.

    def sum(self, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
        """`ag.sum`."""
        return ag.sum(self, axis=axis, dtype=dtype, keepdims=keepdims)

    def mean(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """`ag.mean`."""
        return ag.mean(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """`ag.max`."""
        return ag.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
        """`ag.min`."""
        return ag.min(self, axis=axis, keepdims=keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        """`ag.reshape`, with the extents given one by one or as a tuple."""
        return ag.reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    def astype(self, dtype: DTypeLike) -> Tensor:
        """`ag.astype`."""
        return ag.astype(self, dtype)


def is_operand(value: object) -> TypeGuard[ArrayLike]:
    """Whether an operator takes a value, or leaves it to the value's own class."""
    # A complex number is one too: there is no dtype for it, which the function says.
    return isinstance(value, Operators | int | float | np.ndarray | np.generic | TracedNumber | SymbolicSize | complex)

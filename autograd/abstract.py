"""Abstract values: what is known of a Tensor without its elements.

They are interned: two Tensors of the same dtype, shape, device and flags share one object, so that a compiled function
checks an argument by comparing one pointer.
"""

from __future__ import annotations

from math import prod
from weakref import WeakValueDictionary

from ..ir.diagnostics import ShapeError
from ..ir.location import called_function, caller_location
from ..ir.support.shapes import Dims, shape_text, tensor_type
from ..ir.types import TensorType
from .dtypes import DType


class AbstractValue:
    """A dtype, a shape and a device; `requires_grad`: ops on it are recorded for `backward`."""

    __slots__ = ("__weakref__", "device", "dtype", "requires_grad", "shape", "size", "type")

    dtype: DType
    shape: Dims
    device: str
    requires_grad: bool
    type: TensorType
    size: int | None

    def replace(self, *, requires_grad: bool) -> AbstractValue:
        """The same with another flag."""
        return abstract_value(self.dtype, self.shape, self.device, requires_grad)

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


_interned: WeakValueDictionary[tuple[DType, Dims, str, bool], AbstractValue] = WeakValueDictionary()


def abstract_value(dtype: DType, shape: Dims, device: str = "cpu", requires_grad: bool = False) -> AbstractValue:
    """The abstract value; extents of a traced shape may be symbols."""
    key = (dtype, shape, device, requires_grad)
    found = _interned.get(key)
    if found is None:
        made = AbstractValue()
        made.dtype, made.shape, made.device, made.requires_grad = key
        made.type = tensor_type(shape, dtype.element)
        extents = [d for d in shape if isinstance(d, int)]
        made.size = prod(extents) if len(extents) == len(shape) else None
        # Another thread may have been faster: all must share the one that is in the table.
        found = _interned.setdefault(key, made)
    return found


MOST_BYTES = 1 << 62
"""What no array can have: addresses, and the products that lead to them, are 64-bit integers with a sign."""


def checked_size(dtype: DType, shape: Dims) -> Dims:
    """The shape; ShapeError, at the user's line, when no array of it could be addressed."""
    size = prod([d for d in shape if isinstance(d, int)]) * dtype.itemsize
    if size >= MOST_BYTES:
        taken = f"takes 2**{size.bit_length() - 1} bytes"
        message = f"{called_function()}: an array of shape {shape_text(shape)} and {dtype} {taken}"
        raise ShapeError(f"{message} or more; there can be none of 2**62", caller_location())
    return shape

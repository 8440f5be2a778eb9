"""What the verifiers of vector ops share."""

from __future__ import annotations

from collections.abc import Sequence

from ...definition import Op
from ...types import I1, IndexType, IntegerType, MemRefType, Type, VectorType
from ...values import Value
from ..memref.layout import strided


def vector_type(type: Type) -> VectorType:
    """`type`, which the constraints have found to be a vector."""
    assert isinstance(type, VectorType)
    return type


def check_access(op: Op, base: Value, indices: Sequence[Value], type: Type, contiguous: bool = True) -> None:
    """Raise unless a vector of `type` can be read or written at `indices` of `base`."""
    buffer, vector = base.type, vector_type(type)
    assert isinstance(buffer, MemRefType)
    if len(indices) != buffer.rank:
        raise op.error(f"needs {buffer.rank} subscripts for {buffer}, got {len(indices)}")
    if buffer.element is not vector.element:
        raise op.error(f"moves a {vector} to or from {buffer}: the element types differ")
    if vector.rank > max(buffer.rank, 1):
        raise op.error(f"moves a {vector}, which has more axes than {buffer}")
    if contiguous and buffer.rank and strided(buffer)[0][-1] != 1:
        raise op.error(f"needs a buffer whose last axis has stride 1, got {buffer}")


def check_mask(op: Op, mask: Type, vector: Type) -> None:
    """Raise unless there is a mask bit for each lane."""
    expected = VectorType(vector_type(vector).shape, I1)
    if mask is not expected:
        raise op.error(f"needs a mask of type {expected} for {vector}, got {mask}")


def check_places(op: Op, places: Type, vector: Type) -> None:
    """Raise unless there is an integer or index for each lane."""
    given = vector_type(places)
    if given.shape != vector_type(vector).shape or not isinstance(given.element, IntegerType | IndexType):
        raise op.error(f"needs a vector of integers or indices with the lanes of {vector}, got {places}")

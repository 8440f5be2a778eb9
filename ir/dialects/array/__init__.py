"""Creation, shape, slicing and joining of tensors."""

from .creation import Constant, Dim, Full, Iota
from .joining import Concat
from .shape import Broadcast, Reshape, Transpose
from .slicing import Pad, Slice

__all__ = ["Broadcast", "Concat", "Constant", "Dim", "Full", "Iota", "Pad", "Reshape", "Slice", "Transpose"]

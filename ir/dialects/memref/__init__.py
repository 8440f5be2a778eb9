"""Buffers: allocation, element access and views; upstream's `memref`."""

from .access import AtomicRmw, Copy, Load, Prefetch, Store
from .allocation import Alloc, Alloca, Dealloc
from .globals import GetGlobal, Global
from .views import Cast, CollapseShape, Dim, ExpandShape, ReinterpretCast, Subview

__all__ = [
    "Alloc",
    "Alloca",
    "AtomicRmw",
    "Cast",
    "CollapseShape",
    "Copy",
    "Dealloc",
    "Dim",
    "ExpandShape",
    "GetGlobal",
    "Global",
    "Load",
    "Prefetch",
    "ReinterpretCast",
    "Store",
    "Subview",
]

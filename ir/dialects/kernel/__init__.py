"""The kernel level: sets of points with a scalar program for each, tensors or buffers in and out.

A launch is a set of points; its body is the scalar program of one point.  Inside it, loads read, stores and
accumulates write, and reduce, scan, sweep and local run over inner axes.  Every region is a single block that ends in
`kernel.yield`.

The extents of axes are a property of integers in which `DYNAMIC` marks the places of the index operands `extents_`.
The axes are the first arguments of a body.
"""

from .accesses import Accumulate, Load, Store
from .base import (
    Access,
    Axes,
    Loop,
    Monoidal,
    Yield,
    combine_block,
    holds,
    identity_of,
    is_local,
    loop_body,
    operator_class,
    same_extents,
    scalar_type,
)
from .launch import Launch
from .loops import Fold, Local, Reduce, Scan, Sweep

__all__ = [
    "Access",
    "Accumulate",
    "Axes",
    "Fold",
    "Launch",
    "Load",
    "Local",
    "Loop",
    "Monoidal",
    "Reduce",
    "Scan",
    "Store",
    "Sweep",
    "Yield",
    "combine_block",
    "holds",
    "identity_of",
    "is_local",
    "loop_body",
    "operator_class",
    "same_extents",
    "scalar_type",
]

"""Operations on `vector<16xf32>`: memory access, masks, lanes, reductions; upstream's `vector`."""

from .access import Gather, Load, MaskedLoad, MaskedStore, Scatter, Store
from .lanes import Broadcast, Extract, ExtractStridedSlice, Insert, Shuffle, Step
from .masks import ConstantMask, CreateMask
from .reduction import Reduction

__all__ = [
    "Broadcast",
    "ConstantMask",
    "CreateMask",
    "Extract",
    "ExtractStridedSlice",
    "Gather",
    "Insert",
    "Load",
    "MaskedLoad",
    "MaskedStore",
    "Reduction",
    "Scatter",
    "Shuffle",
    "Step",
    "Store",
]

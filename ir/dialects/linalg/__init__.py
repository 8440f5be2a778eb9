"""Contractions, reductions, normalisations and indexing on tensors."""

from .contraction import Matmul
from .indexing import IndexAdd, OneHot, ScatterAdd, Take, TakeAlongAxis
from .normalization import LayerNorm, LogSoftmax, Softmax
from .reduction import Argmax, Argmin, ReduceMax, ReduceMean, ReduceMin, ReduceProduct, ReduceSum, Reduction

__all__ = [
    "Argmax",
    "Argmin",
    "IndexAdd",
    "LayerNorm",
    "LogSoftmax",
    "Matmul",
    "OneHot",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProduct",
    "ReduceSum",
    "Reduction",
    "ScatterAdd",
    "Softmax",
    "Take",
    "TakeAlongAxis",
]  # fmt: skip

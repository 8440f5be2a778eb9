"""Contractions, reductions, normalisations and indexing on tensors."""

from .contraction import Matmul
from .indexing import OneHot, ScatterAdd, ScatterAddAlongAxis, Take, TakeAlongAxis
from .normalization import LayerNorm, LogSoftmax, Softmax
from .reduction import Argmax, Argmin, ReduceMax, ReduceMean, ReduceMin, ReduceProduct, ReduceSum, Reduction

__all__ = [
    "Argmax", "Argmin", "LayerNorm", "LogSoftmax", "Matmul", "OneHot", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProduct", "ReduceSum", "Reduction", "ScatterAdd", "ScatterAddAlongAxis", "Softmax", "Take", "TakeAlongAxis",
]  # fmt: skip

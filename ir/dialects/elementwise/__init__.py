"""Elementwise operations on tensors, with NumPy broadcasting implicit in the op."""

from .activation import Gelu, Relu, Sigmoid, Silu, Softplus
from .arithmetic import Abs, Add, Div, Maximum, Minimum, Mul, Neg, Pow, Sign, Sub
from .cast import Cast
from .comparison import (
    Equal,
    EqualOrNan,
    Greater,
    GreaterEqual,
    GreaterOrNan,
    Less,
    LessEqual,
    LessOrNan,
    LogicalAnd,
    LogicalNot,
    LogicalOr,
    LogicalXor,
    NotEqual,
)
from .division import FloorDivide, Remainder
from .exponential import Erf, Exp, Expm1, Log, Log1p, Rsqrt, Sqrt
from .family import Binary, BinaryArithmetic, Comparison, ComposedFloat, Elementwise, Logical, Unary, UnaryFloat
from .gradient import StopGradient
from .normal import NormalCdf, NormalPdf
from .rounding import Ceil, Floor, Round, Trunc
from .selection import Clip, Where
from .trigonometric import Cos, Sin, Tanh

__all__ = [
    "Abs", "Add", "Binary", "BinaryArithmetic", "Cast", "Ceil", "Clip", "Comparison", "ComposedFloat", "Cos", "Div",
    "Elementwise", "Equal", "EqualOrNan", "Erf", "Exp", "Expm1", "Floor", "FloorDivide", "Gelu", "Greater",
    "GreaterEqual", "GreaterOrNan", "Less", "LessEqual", "LessOrNan", "Log", "Log1p", "Logical", "LogicalAnd",
    "LogicalNot", "LogicalOr", "LogicalXor", "Maximum", "Minimum", "Mul", "Neg", "NormalCdf", "NormalPdf", "NotEqual",
    "Pow", "Relu", "Remainder", "Round", "Rsqrt", "Sigmoid", "Sign", "Silu", "Sin", "Softplus", "Sqrt", "StopGradient",
    "Sub", "Tanh", "Trunc", "Unary", "UnaryFloat", "Where",
]  # fmt: skip

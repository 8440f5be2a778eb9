"""Written by tools/stubs.py from the op classes; `make lint` checks that it is current."""

from ..array_like import ArrayLike, Axis, DTypeLike
from ..tensor import Tensor

def abs(x: ArrayLike, /) -> Tensor:
    """|x|; the smallest integer stays itself."""

def add(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 + x2."""

def argmax(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the largest element stands, as int64: the first of equals, the first NaN where there is one."""

def argmin(x: ArrayLike, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the smallest element stands, as int64: the first of equals, the first NaN where there is one."""

def bce_with_logits(logits: ArrayLike, target: ArrayLike, reduction: str = 'mean') -> Tensor:
    """The binary cross entropy of sigmoid(logits) against target: max(x, 0) - x t + log1p(exp(-|x|))."""

def ceil(x: ArrayLike, /) -> Tensor:
    """Rounded toward plus infinity."""

def cos(x: ArrayLike, /) -> Tensor:
    """The cosine of x radians; NaN at infinities."""

def divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 / x2, of floats: x/0 is an infinity, 0/0 is NaN."""

def equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 == x2; NaN equals nothing."""

def erf(x: ArrayLike, /) -> Tensor:
    """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

def exp(x: ArrayLike, /) -> Tensor:
    """e ** x."""

def expm1(x: ArrayLike, /) -> Tensor:
    """e ** x - 1, precise near 0."""

def floor(x: ArrayLike, /) -> Tensor:
    """Rounded toward minus infinity."""

def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The quotient rounded toward minus infinity; of integers by 0 it is 0."""

def fused_weighted_bce_smooth_l1_loss(pred: ArrayLike, target: ArrayLike, heat_weight: ArrayLike, reg_weight: ArrayLike, heat_scale: float = 1.0, reg_scale: float = 1.0, beta: float = 0.05) -> Tensor:
    """A loss for detection: weighted cross entropies and smooth absolute differences, summed over all elements."""

def greater(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 > x2; false for NaN."""

def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 >= x2; false for NaN."""

def less(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 < x2; false for NaN."""

def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 <= x2; false for NaN."""

def log(x: ArrayLike, /) -> Tensor:
    """The natural logarithm: -inf at 0, NaN below."""

def log1p(x: ArrayLike, /) -> Tensor:
    """log(1 + x), precise near 0."""

def log_softmax(x: ArrayLike, /, axis: int = -1) -> Tensor:
    """The logarithm of softmax along `axis`: x - max - log(sum of exp(x - max))."""

def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """True where both operands are."""

def logical_not(x: ArrayLike, /) -> Tensor:
    """True where the operand is false."""

def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """True where at least one operand is."""

def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """True where exactly one operand is."""

def matmul(x1: ArrayLike, x2: ArrayLike, /, *, preferred_element_type: DTypeLike | None = None) -> Tensor:
    """x1 @ x2 as `numpy.matmul`: matrices in the last two axes, the axes before them broadcast; a 1-d operand is a row on the left and a column on the right, and the result lacks its axis."""

def max(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes; NaN where there is one, ShapeError of an empty axis. Of bool: any."""

def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The larger; NaN where either is NaN. Of zeros with different signs the right one."""

def mean(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over axes, of floats; of nothing NaN. float16 and bfloat16 are rounded once."""

def min(x: ArrayLike, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes; NaN where there is one, ShapeError of an empty axis. Of bool: all."""

def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """The smaller; NaN where either is NaN. Of zeros with different signs the right one."""

def mse_loss(prediction: ArrayLike, target: ArrayLike, reduction: str = 'mean') -> Tensor:
    """The squared difference; the shapes must be equal."""

def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 * x2."""

def negative(x: ArrayLike, /) -> Tensor:
    """-x; integers wrap."""

def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 != x2; NaN differs from everything."""

def prod(x: ArrayLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The product over axes; types as in the sum; of nothing 1."""

def relu(x: ArrayLike, /) -> Tensor:
    """x where it is positive, +0.0 where it is negative; NaN and -0.0 stay."""

def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 - floor(x1 / x2) * x2 without the errors of its steps, with the sign of x2; of integers by 0 it is 0."""

def round(x: ArrayLike, /) -> Tensor:
    """Rounded to nearest, halves to even."""

def rsqrt(x: ArrayLike, /) -> Tensor:
    """1 / sqrt(x): an infinity at zeros."""

def sigmoid(x: ArrayLike, /) -> Tensor:
    """1 / (1 + exp(-x)), without overflow: 1 / (1 + exp(|x|)) below 0, 1 less that above."""

def sign(x: ArrayLike, /) -> Tensor:
    """-1, 0 or 1; NaN stays itself, -0.0 becomes 0.0."""

def silu(x: ArrayLike, /) -> Tensor:
    """x sigmoid(x): -0.0 at -inf (Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units", 2018)."""

def sin(x: ArrayLike, /) -> Tensor:
    """The sine of x radians; NaN at infinities."""

def smooth_l1_loss(prediction: ArrayLike, target: ArrayLike, beta: float = 1.0, reduction: str = 'mean') -> Tensor:
    """0.5 d*d / beta where |d| < beta, else |d| - 0.5 beta, with d the difference (Girshick, 2015); |d| for beta 0."""

def softmax(x: ArrayLike, /, axis: int = -1) -> Tensor:
    """exp(x - max) over its sum, along `axis`."""

def softplus(x: ArrayLike, /) -> Tensor:
    """log(1 + exp(x)), without overflow: max(x, 0) + log1p(exp(-|x|))."""

def sqrt(x: ArrayLike, /) -> Tensor:
    """The square root: NaN below 0, -0.0 at -0.0; its derivative at 0 is inf, so that of sqrt(x * x) there is NaN."""

def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 - x2."""

def sum(x: ArrayLike, /, *, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Tensor:
    """The sum over axes: float16 and bfloat16 accumulate in float32, integers and bool sum to 64 bits; of nothing 0."""

def tanh(x: ArrayLike, /) -> Tensor:
    """The hyperbolic tangent."""

def trunc(x: ArrayLike, /) -> Tensor:
    """Rounded toward zero."""

def where(condition: ArrayLike, x1: ArrayLike, x2: ArrayLike, /) -> Tensor:
    """x1 where `condition` (bool) holds, else x2; the one that was not taken never reaches a gradient."""

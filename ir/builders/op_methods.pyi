"""Written by tools/stubs.py from the op classes; `make lint` checks that it is current."""

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from ..support.tensor_op import TensorOp
from ..types import Type

V = TypeVar("V")

class OpMethods(Generic[V]):
    def apply(self, cls: type[TensorOp], *operands: Any, **properties: Any) -> Any: ...

    def abs(self, x: V) -> V:
        """|x|; the smallest integer stays itself."""

    def add(self, lhs: V | float, rhs: V | float) -> V:
        """lhs + rhs."""

    def argmax(self, x: V, *, axis: int, keepdims: bool = ...) -> V:
        """Where the largest element stands, as i64: the first of equals, the first NaN where there is one."""

    def argmin(self, x: V, *, axis: int, keepdims: bool = ...) -> V:
        """Where the smallest element stands, as i64: the first of equals, the first NaN where there is one."""

    def bce_with_logits(self, prediction: V | float, target: V | float, *, reduction: str = ...) -> V:
        """The binary cross entropy of sigmoid(prediction) against target: max(x, 0) - x t + log1p(exp(-|x|))."""

    def ceil(self, x: V) -> V:
        """Rounded toward plus infinity."""

    def clip(self, x: V | float, min: V | float, max: V | float) -> V:
        """x limited to [min, max]: minimum(maximum(x, min), max). NaN in any operand gives NaN."""

    def cos(self, x: V) -> V:
        """The cosine of x radians; NaN at infinities."""

    def cross_entropy(self, logits: V | float, classes: V | float, *, reduction: str = ...) -> tuple[V, V]:
        """The negative log-probability, by the softmax of `logits` (.., c) over its last axis, of `classes` (..)."""

    def detection(self, prediction: V | float, target: V | float, heat_weight: V | float, reg_weight: V | float, *, heat_scale: float = ..., reg_scale: float = ..., beta: float = ...) -> V:
        """The sum over all elements of"""

    def div(self, lhs: V | float, rhs: V | float) -> V:
        """lhs / rhs, of floats: x/0 is an infinity, 0/0 is NaN."""

    def equal(self, lhs: V | float, rhs: V | float) -> V:
        """lhs == rhs; NaN equals nothing."""

    def equal_or_nan(self, lhs: V | float, rhs: V | float) -> V:
        """lhs == rhs, or either is NaN."""

    def erf(self, x: V) -> V:
        """The error function, 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x."""

    def exp(self, x: V) -> V:
        """e ** x."""

    def expm1(self, x: V) -> V:
        """e ** x - 1, precise near 0."""

    def floor(self, x: V) -> V:
        """Rounded toward minus infinity."""

    def floor_divide(self, lhs: V | float, rhs: V | float) -> V:
        """The quotient rounded toward minus infinity; of integers by 0 it is 0."""

    def gelu(self, x: V, *, approximate: str = ...) -> V:
        """x times the normal distribution function; with `approximate = tanh` 0.5 x (1 + tanh(u)), which is x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x**3) (Hendrycks and Gimpel, "Gaussian Error Linear Units", 2016). -0.0 at -inf."""

    def greater(self, lhs: V | float, rhs: V | float) -> V:
        """lhs > rhs; false for NaN."""

    def greater_equal(self, lhs: V | float, rhs: V | float) -> V:
        """lhs >= rhs; false for NaN."""

    def greater_or_nan(self, lhs: V | float, rhs: V | float) -> V:
        """lhs > rhs, or either is NaN."""

    def index_add(self, x: V | float, indices: V | float, updates: V | float, *, axis: int) -> V:
        """x with every slice of `updates` added to the slice along `axis` that `indices` names: the transpose of `take`."""

    def layer_norm(self, x: V | float, weight: V | float | None = ..., bias: V | float | None = ..., *, axis: int, eps: float = ...) -> tuple[V, V, V]:
        """y = (x - mean) * rstd * weight + bias along `axis`, with rstd = 1 / sqrt(variance + eps), the variance being the mean of the squared deviations (Ba, Kiros and Hinton, 2016)."""

    def less(self, lhs: V | float, rhs: V | float) -> V:
        """lhs < rhs; false for NaN."""

    def less_equal(self, lhs: V | float, rhs: V | float) -> V:
        """lhs <= rhs; false for NaN."""

    def less_or_nan(self, lhs: V | float, rhs: V | float) -> V:
        """lhs < rhs, or either is NaN."""

    def log(self, x: V) -> V:
        """The natural logarithm: -inf at 0, NaN below."""

    def log1p(self, x: V) -> V:
        """log(1 + x), precise near 0."""

    def log_softmax(self, x: V, *, axis: int) -> V:
        """The logarithm of softmax along `axis`: x - max - log(sum of exp(x - max))."""

    def logical_and(self, lhs: V | float, rhs: V | float) -> V:
        """True where both operands are."""

    def logical_not(self, x: V) -> V:
        """True where the operand is false."""

    def logical_or(self, lhs: V | float, rhs: V | float) -> V:
        """True where at least one operand is."""

    def logical_xor(self, lhs: V | float, rhs: V | float) -> V:
        """True where exactly one operand is."""

    def matmul(self, lhs: V | float, rhs: V | float, *, preferred_element_type: Type | None = ...) -> V:
        """lhs @ rhs as `numpy.matmul`: matrices in the last two axes, the axes before them broadcast; a 1-d operand is a row on the left and a column on the right, and the result lacks its axis."""

    def maximum(self, lhs: V | float, rhs: V | float) -> V:
        """The larger; NaN where either is NaN. Of zeros with different signs the right one."""

    def minimum(self, lhs: V | float, rhs: V | float) -> V:
        """The smaller; NaN where either is NaN. Of zeros with different signs the right one."""

    def mse(self, prediction: V | float, target: V | float, *, reduction: str = ...) -> V:
        """The squared difference; the shapes must be equal."""

    def mul(self, lhs: V | float, rhs: V | float) -> V:
        """lhs * rhs."""

    def neg(self, x: V) -> V:
        """-x; integers wrap."""

    def normal_cdf(self, x: V) -> V:
        """The distribution function: the integral of the density from -inf to x."""

    def normal_pdf(self, x: V) -> V:
        """The density, exp(-x**2 / 2) / sqrt(2 pi)."""

    def not_equal(self, lhs: V | float, rhs: V | float) -> V:
        """lhs != rhs; NaN differs from everything."""

    def one_hot(self, indices: V | float, like: V | float) -> V:
        """Which class each row has: i1 in the shape of `like`, true where the subscript along the last axis is the one that `indices`, in the shape of `like` without its last axis, names; false where that is negative or too large."""

    def pow(self, lhs: V | float, rhs: V | float) -> V:
        """lhs ** rhs. Floats follow C's pow (x ** 0 is 1)."""

    def reduce_max(self, x: V, *, axes: Sequence[int], keepdims: bool = ...) -> V:
        """The largest element over axes; NaN where there is one, ShapeError of an empty axis. Of i1: any."""

    def reduce_mean(self, x: V, *, axes: Sequence[int], keepdims: bool = ...) -> V:
        """The mean over axes, of floats; of nothing NaN. f16 and bf16 are rounded once."""

    def reduce_min(self, x: V, *, axes: Sequence[int], keepdims: bool = ...) -> V:
        """The smallest element over axes; NaN where there is one, ShapeError of an empty axis. Of i1: all."""

    def reduce_product(self, x: V, *, axes: Sequence[int], keepdims: bool = ...) -> V:
        """The product over axes; types as in the sum; of nothing 1."""

    def reduce_sum(self, x: V, *, axes: Sequence[int], keepdims: bool = ...) -> V:
        """The sum over axes: f16 and bf16 accumulate in f32, integers and i1 sum to 64 bits; of nothing 0."""

    def relu(self, x: V) -> V:
        """x where it is positive, +0.0 where it is negative; NaN and -0.0 stay."""

    def remainder(self, lhs: V | float, rhs: V | float) -> V:
        """lhs - floor(lhs / rhs) * rhs without the errors of its steps, with the sign of rhs; of integers by 0 it is 0."""

    def round(self, x: V) -> V:
        """Rounded to nearest, halves to even."""

    def rsqrt(self, x: V) -> V:
        """1 / sqrt(x): an infinity at zeros."""

    def scatter_add(self, x: V | float, indices: V | float, updates: V | float, *, axis: int) -> V:
        """x with every element of `updates` added at the place along `axis` that `indices`, of the same shape, names: the transpose of `take_along_axis`."""

    def sigmoid(self, x: V) -> V:
        """1 / (1 + exp(-x)), without overflow: 1 / (1 + exp(|x|)) below 0, 1 less that above."""

    def sign(self, x: V) -> V:
        """-1, 0 or 1; NaN stays itself, -0.0 becomes 0.0."""

    def silu(self, x: V) -> V:
        """x sigmoid(x): -0.0 at -inf (Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units", 2018)."""

    def sin(self, x: V) -> V:
        """The sine of x radians; NaN at infinities."""

    def smooth_l1(self, prediction: V | float, target: V | float, *, reduction: str = ..., beta: float = ...) -> V:
        """0.5 d*d / beta where |d| < beta, else |d| - 0.5 beta, with d the difference (Girshick, 2015); |d| for beta 0."""

    def softmax(self, x: V, *, axis: int) -> V:
        """exp(x - max) over its sum, along `axis`."""

    def softplus(self, x: V) -> V:
        """log(1 + exp(x)), without overflow: max(x, 0) + log1p(exp(-|x|))."""

    def sqrt(self, x: V) -> V:
        """The square root: NaN below 0, -0.0 at -0.0; its derivative at 0 is inf, so that of sqrt(x * x) there is NaN."""

    def stop_gradient(self, x: V) -> V:
        """x itself, with the derivative 0. It is not folded, since the result may still be differentiated."""

    def sub(self, lhs: V | float, rhs: V | float) -> V:
        """lhs - rhs."""

    def take(self, x: V | float, indices: V | float, *, axis: int, missing: str = ...) -> V:
        """The slices of x along `axis` that `indices` (any rank) name: `numpy.take`."""

    def take_along_axis(self, x: V | float, indices: V | float, *, axis: int, missing: str = ...) -> V:
        """`result[.., i, ..] = x[.., indices[.., i, ..], ..]` along `axis`: `numpy.take_along_axis`."""

    def tanh(self, x: V) -> V:
        """The hyperbolic tangent."""

    def transpose(self, x: V, *, permutation: Sequence[int]) -> V:
        """Axes in another order: axis i of the result is axis `permutation[i]` of x."""

    def trunc(self, x: V) -> V:
        """Rounded toward zero."""

    def where(self, condition: V | float, x: V | float, y: V | float) -> V:
        """x where `condition` (i1) holds, else y; the one that was not taken never reaches a gradient."""

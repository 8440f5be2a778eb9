"""Folds over axes: sums, products, extremes, their means and their places."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ...attributes import Attribute, scalar_attr
from ...cotangents import Factor
from ...definition import (
    PURE,
    TENSOR,
    Api,
    Argument,
    FoldResult,
    Sample,
    TypeConstraint,
    flag,
    integer,
    integers,
    operand,
    result,
)
from ...interfaces import BoundsErrors, Evaluates, HasVjp, IsLinear, MovesMasks, NoDerivative, PointForm, Tame
from ...numeric import dtype
from ...support.error_bounds import SUM_UNIT, Bounded, certain, exact, is_exact_kind, rounded
from ...support.reference import narrow, wide
from ...support.shapes import shape_text, tensor_type
from ...support.tensor_op import ELEMENTS, FLOATS, NUMBER, TensorOp, accumulator, sum_element, type_of_tensor
from ...types import I1, I64, FloatType, IntegerType, Type, is_unsigned
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


Axes = tuple[int, ...]


def folds(function: str, *empty: Sequence[Axes]) -> tuple[Sample, ...]:
    """Samples of a reduction over several sets of axes, and of `empty` ones: pairs of a shape and axes."""
    cases: list[tuple[Axes, Axes, bool]] = [
        ((4, 5), (1,), False),
        ((4, 5), (0,), True),
        ((2, 3, 4), (0, 2), False),
        ((2, 3, 4), (0, 1, 2), False),
        ((3, 4), (), False),
        *[(shape, axes, False) for shape, axes in empty],
    ]
    return tuple(
        [
            Sample(
                f"{function}(x, axis=axes, keepdims=keepdims)",
                (Argument(shape, -2, 2),),
                properties={"axes": axes, "keepdims": keepdims},
                note=f"{'x'.join(map(str, shape))}-over-{''.join(map(str, axes))}{'-keep' if keepdims else ''}",
            )
            for shape, axes, keepdims in cases
        ]
    )


def searches(function: str) -> tuple[Sample, ...]:
    """Samples of a search along an axis."""
    return tuple(
        [
            Sample(
                f"{function}(x, axis=axis, keepdims=keepdims)",
                (Argument((4, 3, 6), -2, 2),),
                properties={"axis": axis, "keepdims": keepdims},
                note=f"over-{axis}{'-keep' if keepdims else ''}",
            )
            for axis, keepdims in ((0, False), (2, True))
        ]
    )


class Reduction(TensorOp, PointForm, Evaluates, MovesMasks):
    """A fold of x over `axes` (distinct, in any order; none: x itself); `keepdims` leaves them with extent 1."""

    traits = frozenset({PURE})
    x = operand(TENSOR)
    axes = integers()
    keepdims = flag()
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"
    accepts: ClassVar[TypeConstraint] = NUMBER
    has_identity: ClassVar[bool] = True

    def result_element(self) -> Type:
        """The element type of the result."""
        return self.element

    @property
    def element(self) -> Type:
        """The element type of x."""
        return type_of_tensor(self.x).element

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x", elements=self.accepts)
        axes = self.checked_axes(self.axes, type.rank)
        if not self.has_identity and any(type.dims[a] == 0 for a in axes):
            raise self.shape_error(f"no value for the empty axes {list(axes)} of shape {shape_text(type.dims)}")
        dims = [1 if i in axes else d for i, d in enumerate(type.dims) if self.keepdims or i not in axes]
        return [tensor_type(dims, self.result_element())]

    @abstractmethod
    def kind(self) -> str:
        """The scalar op that folds."""

    @property
    def fold_type(self) -> Type:
        """The element type in which the fold is done."""
        return accumulator(self.result_element())

    def point(self, k: PointBuilder) -> Value:
        """A reduce over the folded axes, from loads cast to the type of the fold."""
        axes = sorted(self.axes)

        def element(inner: Sequence[AffineSubscript]) -> Value:
            return k.cast(k.load(0, self.places(k.axes, inner)), self.element, self.fold_type)

        if not axes:
            total = element([])
        else:
            (total,) = k.reduce([k.extent(0, a) for a in axes], self.kind(), element)
        return k.cast(self.finish(k, total), self.fold_type, self.result_element())

    def places(self, outer: Sequence[AffineSubscript], inner: Sequence[AffineSubscript]) -> list[AffineSubscript | int]:
        """Subscripts of x from the result's axes and the folded ones (ascending)."""
        axes, rank = sorted(self.axes), type_of_tensor(self.x).rank
        kept = iter(a for i, a in enumerate(outer) if i not in axes) if self.keepdims else iter(outer)
        return [inner[axes.index(i)] if i in axes else next(kept) for i in range(rank)]

    def finish(self, k: PointBuilder, total: Value) -> Value:
        """What is done with the fold's result."""
        return total

    @abstractmethod
    def formula(self, x: Array, **keywords: Any) -> Array:
        """The fold on a wide array."""

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        value = self.formula(wide(x), axis=tuple(self.axes), keepdims=self.keepdims)
        return narrow(value, dtype(self.result_element()))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        if not self.axes and self.x.type is self.result.type:
            return self.x
        return self.fold_constants(constants)

    def spread(self, b: TensorBuilder, value: Value) -> Value:
        """A result of a reduction at every element that it was made from."""
        type = type_of_tensor(self.x)
        kept = [i for i in range(type.rank) if i not in self.axes]
        if self.keepdims:
            value = b.reshape(value, [type.dims[i] for i in kept], b.extents([type.dims[i] for i in kept], self.x))
        return b.broadcast(value, type.dims, kept, b.extents(type.dims, self.x))

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        yield self.spread_mask(m, mask)

    def spread_mask(self, m: Masks, mask: Mask) -> Mask:
        """The mask of a reduction's result at what it was made from."""
        return mask if self.keepdims else m.inserted(mask, type_of_tensor(self.result).rank, self.axes)


class ReduceSum(Reduction, Tame, IsLinear, BoundsErrors):
    """The sum over axes: f16 and bf16 accumulate in f32, integers and i1 sum to 64 bits; of nothing 0."""

    name = "linalg.reduce_sum"
    api = Api("sum", "none", keywords=("axis", "dtype", "keepdims"))
    samples = folds("np.sum", [(0, 3), (0,)])
    accepts = ELEMENTS

    def result_element(self) -> Type:
        return sum_element(self.element)

    def kind(self) -> str:
        return "arith.addf" if isinstance(self.fold_type, FloatType) else "arith.addi"

    def formula(self, x: Array, **keywords: Any) -> Array:
        return x.sum(dtype=None if x.dtype.kind == "f" else dtype(self.result_element()), **keywords)

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        yield self.spread(b, b.cast(ct, type_of_tensor(self.x).element))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return bound_of_sum(self, x, unit)


class ReduceProduct(Reduction, HasVjp):
    """The product over axes; types as in the sum; of nothing 1."""

    name = "linalg.reduce_product"
    api = Api("prod", "none", keywords=("axis", "dtype", "keepdims"))
    samples = folds("np.prod", [(0, 3), (0,)])
    accepts = ELEMENTS

    def result_element(self) -> Type:
        return sum_element(self.element)

    def kind(self) -> str:
        return "arith.mulf" if isinstance(self.fold_type, FloatType) else "arith.muli"

    def formula(self, x: Array, **keywords: Any) -> Array:
        return x.prod(dtype=None if x.dtype.kind == "f" else dtype(self.result_element()), **keywords)

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """The product of the others, without a division: zeros, infinities and overflow are what they are, and so are
        all higher derivatives.  Axis by axis: the others along one, times the others of the products along it."""
        element = type_of_tensor(self.x).element
        x = b.cast(self.x, accumulator(element))
        partial: Value | None = None
        for axis in sorted(self.axes):
            others = _others(b, x, axis)
            partial = others if partial is None else b.mul(partial, others)
            x = b.reduce_product(x, axes=[axis], keepdims=True)
        ct = self.spread(b, b.cast(ct, accumulator(element)))
        yield b.cast(ct if partial is None else b.mul(ct, partial), element)


class ReduceMean(Reduction, Tame, IsLinear, BoundsErrors):
    """The mean over axes, of floats; of nothing NaN.  f16 and bf16 are rounded once."""

    name = "linalg.reduce_mean"
    api = Api("mean", "float", keywords=("axis", "keepdims"))
    samples = folds("np.mean")
    accepts = FLOATS

    def kind(self) -> str:
        return "arith.addf"

    def finish(self, k: PointBuilder, total: Value) -> Value:
        count: Value | None = None
        known = 1
        for axis in self.axes:
            extent = k.extent(0, axis)
            if isinstance(extent, int):
                known *= extent
            else:
                count = extent if count is None else k.mul(count, extent)
        if count is None:
            return k.div(total, k.constant(float(known), total.type))
        if known != 1:
            count = k.mul(count, k.constant(known, count.type))
        return k.div(total, k.cast(k.index_cast(count, I64), I64, self.fold_type))

    def formula(self, x: Array, **keywords: Any) -> Array:
        import numpy as np

        count = np.prod([x.shape[a] for a in self.axes], dtype=np.float64)
        return x.sum(**keywords) / count

    def transpose(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        ct = b.cast(ct, type_of_tensor(self.x).element)
        yield self.spread(b, b.mul(ct, reciprocal_count(b, self.x, self.axes, self.keepdims)))

    def bound(self, unit: float, x: Bounded) -> Bounded:
        return bound_of_sum(self, x, unit, is_mean=True)


class MinMaxReduction(Reduction, Tame, HasVjp, BoundsErrors):
    """The largest or smallest element; NaN where there is one, +0.0 above -0.0.  On i1 it is any or all.

    An empty axis has none: ShapeError."""

    accepts = ELEMENTS
    has_identity = False
    kinds: ClassVar[tuple[str, str, str, str]]  # float, signed, unsigned, i1
    largest: ClassVar[bool]

    def kind(self) -> str:
        if isinstance(self.element, FloatType):
            return self.kinds[0]
        return self.kinds[3 if self.element is I1 else 2 if is_unsigned(self.element) else 1]

    @property
    def fold_type(self) -> Type:
        return self.element

    def formula(self, x: Array, **keywords: Any) -> Array:
        import numpy as np

        found = x.max(**keywords) if self.largest else x.min(**keywords)
        if x.dtype.kind != "f":
            return found
        negative = np.signbit(x)
        if self.largest:
            sign = (negative | (x != 0)).all(**keywords)
        else:
            sign = (negative & (x == 0)).any(**keywords)
        return np.where(found == 0, np.where(sign, -0.0, 0.0), found)

    def vjp(self, b: TensorBuilder, ct: Value) -> Iterator[Value | None]:
        """The elements that equal the extreme share its cotangent evenly."""
        element = type_of_tensor(self.x).element
        hit = b.equal_or_nan(self.x, self.spread(b, self.result))
        ones = b.where(hit, b.constant(1.0, element), b.constant(0.0, element))
        count = b.reduce_sum(ones, axes=self.axes, keepdims=self.keepdims)
        share = self.spread(b, b.div(ct, b.cast(count, element)))
        yield b.where(hit, share, b.constant(0.0, element))

    def live(self, m: Masks, mask: Mask) -> Iterator[Mask]:
        """The elements that the extreme passed over are dead."""
        mask = self.spread_mask(m, mask)
        if not m.tame(self.x):
            mask = (*mask, Factor(m.b.equal_or_nan(self.x, self.spread(m.b, self.result)), soft=True))
        yield mask

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        fold, axes = np.max if self.largest else np.min, tuple(self.axes)
        value = fold(x.value, axis=axes, keepdims=self.keepdims)
        return Bounded(value, np.max(x.error, axis=axes, keepdims=self.keepdims))


class ReduceMax(MinMaxReduction):
    """The largest element over axes; NaN where there is one, ShapeError of an empty axis.  Of i1: any."""

    name = "linalg.reduce_max"
    api = Api("max", "none", keywords=("axis", "keepdims"))
    samples = folds("np.max")
    kinds = "arith.maximumf", "arith.maxsi", "arith.maxui", "arith.ori"
    largest = True


class ReduceMin(MinMaxReduction):
    """The smallest element over axes; NaN where there is one, ShapeError of an empty axis.  Of i1: all."""

    name = "linalg.reduce_min"
    api = Api("min", "none", keywords=("axis", "keepdims"))
    samples = folds("np.min")
    kinds = "arith.minimumf", "arith.minsi", "arith.minui", "arith.andi"
    largest = False


class ArgReduction(TensorOp, PointForm, Evaluates, Tame, NoDerivative, BoundsErrors):
    """Where along `axis` the extreme element stands, as i64: the first of equals; the first NaN where there is one."""

    traits = frozenset({PURE})
    x = operand(TENSOR)
    axis = integer()
    keepdims = flag()
    result = result(TENSOR)
    assembly = "$x attr-dict `:` signature"
    accepts = NUMBER
    largest: ClassVar[bool]

    def infer(self) -> Sequence[Type]:
        type = self.tensor("x")
        axis = self.checked_axis(self.axis, type.rank)
        if type.dims[axis] == 0:
            raise self.shape_error(f"axis {axis} of shape {shape_text(type.dims)} is empty")
        dims = [1 if i == axis else d for i, d in enumerate(type.dims) if self.keepdims or i != axis]
        return [tensor_type(dims, I64)]

    def point(self, k: PointBuilder) -> Value:
        """A monoid of pairs (element, place)."""
        type = type_of_tensor(self.x)
        element, axis = type.element, self.axis
        is_float = isinstance(element, FloatType)
        relation = "gt" if self.largest else "lt"
        before = ("u" if is_float or is_unsigned(element) else "s") + relation

        def pair(inner: Sequence[AffineSubscript]) -> Sequence[Value]:
            kept = iter(a for i, a in enumerate(k.axes) if i != axis) if self.keepdims else iter(k.axes)
            places = [inner[0] if i == axis else next(kept) for i in range(type.rank)]
            return [k.load(0, places), k.index_cast(k.value(inner[0]), I64)]

        def beats(a: Value, b: Value) -> Value:
            """a stands before b by its value: by the unordered comparison a NaN wins, but not against a NaN."""
            wins = k.cmp(before, a, b)
            return k.and_(wins, k.cmp("ord", b, b)) if is_float else wins

        def better(a: Value, at_a: Value, b: Value, at_b: Value) -> Sequence[Value]:
            first = k.cmp("slt", at_b, at_a)
            tie = k.and_(first, k.xor(beats(a, b), k.constant(1, I1)))
            take = k.or_(beats(b, a), tie)
            return [k.select(take, b, a), k.select(take, at_b, at_a)]

        identities = [self.last_element(element), scalar_attr((1 << 63) - 1, I64)]
        _, at = k.reduce([k.extent(0, axis)], (identities, better), pair)
        return at

    def last_element(self, element: Type) -> Attribute:
        """The element that every other stands before."""
        if isinstance(element, FloatType):
            return scalar_attr(float("-inf") if self.largest else float("inf"), element)
        assert isinstance(element, IntegerType)
        plain = IntegerType(element.width)
        if is_unsigned(element):
            return scalar_attr(0 if self.largest else -1, plain)
        lowest = -(1 << (element.width - 1))
        return scalar_attr(lowest if self.largest else ~lowest, plain)

    def evaluate(self, x: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        search = np.argmax if self.largest else np.argmin
        return np.asarray(search(wide(x), axis=self.axis, keepdims=self.keepdims), np.int64)

    def bound(self, unit: float, x: Bounded) -> Bounded:
        import numpy as np

        value = self.evaluate(x.value)
        return certain(value, np.full(value.shape, not np.any(x.error > 0)))


class Argmax(ArgReduction):
    """Where the largest element stands, as i64: the first of equals, the first NaN where there is one."""

    name = "linalg.argmax"
    api = Api("argmax", "none", keywords=("axis", "keepdims"))
    samples = searches("np.argmax")
    largest = True


class Argmin(ArgReduction):
    """Where the smallest element stands, as i64: the first of equals, the first NaN where there is one."""

    name = "linalg.argmin"
    api = Api("argmin", "none", keywords=("axis", "keepdims"))
    samples = searches("np.argmin")
    largest = False


def reciprocal_count(b: TensorBuilder, x: Value, axes: Sequence[int], keepdims: bool = False) -> Any:
    """1 / the number of elements along some axes; a number, or a tensor where an extent is dynamic."""
    type = type_of_tensor(x)
    dynamic = [a for a in axes if isinstance(type.dims[a], str)]
    count = math.prod(type.shape[a] for a in axes if a not in dynamic)
    if not dynamic:
        return 1.0 / count if count else 0.0
    return b.div(1.0, b.reduce_sum(b.full_like(1.0, x), axes=axes, keepdims=keepdims))


BLOCK = 32
"""The most elements for each of which the others are multiplied one by one."""


def _others(b: TensorBuilder, x: Value, axis: int) -> Value:
    """For each element the product of the others along an axis.  A long axis is one of blocks: the others of the block,
    times the product of the other blocks, so that n elements take about `BLOCK` n products."""
    type = type_of_tensor(x)
    extent = type.dims[axis]
    if isinstance(extent, str) or extent <= BLOCK:
        # Row i of the square has a 1 in place of element i.
        dims = (*type.dims[: axis + 1], *type.dims[axis:])
        places = [i for i in range(len(dims)) if i != axis]
        rows = b.broadcast(x, dims, places, b.extents(dims, x))
        own = [extent if i in (axis, axis + 1) else 1 for i in range(len(dims))]
        square = tensor_type(own, I64)
        extents = b.extents(own, x)
        diagonal = b.equal(b.iota(square, axis, extents), b.iota(square, axis + 1, extents))
        return b.reduce_product(b.where(diagonal, b.constant(1.0, type.element), rows), axes=[axis + 1])
    count = -(-extent // BLOCK)
    high = [count * BLOCK - extent if i == axis else 0 for i in range(type.rank)]
    padded = b.pad(x, low=[0] * type.rank, high=high, value=scalar_attr(1.0, type.element)) if any(high) else x
    blocks = b.reshape(padded, (*type.dims[:axis], count, BLOCK, *type.dims[axis + 1 :]))
    outer = _others(b, b.reduce_product(blocks, axes=[axis + 1], keepdims=True), axis)
    together = b.reshape(b.mul(_others(b, blocks, axis + 1), outer), type_of_tensor(padded).dims)
    return b.slice(together, stops=type.shape) if any(high) else together


def bound_of_sum(op: Reduction, x: Bounded, unit: float, is_mean: bool = False) -> Bounded:
    """n additions in any order: n unit roundoffs of the sum of magnitudes."""
    import numpy as np

    if is_exact_kind(x.value):
        return exact(op.evaluate(x.value))
    axes, keeps = tuple(op.axes), op.keepdims
    count = int(np.prod([x.value.shape[i] for i in axes]))
    magnitude = (abs(x.value) + x.error).sum(axis=axes, keepdims=keeps)
    value = x.value.sum(axis=axes, keepdims=keeps)
    error = x.error.sum(axis=axes, keepdims=keeps) + (count + 1) * min(unit, SUM_UNIT) * magnitude
    return rounded(value / count, error / count, unit, 2.0) if is_mean else rounded(value, error, unit, 2.0)

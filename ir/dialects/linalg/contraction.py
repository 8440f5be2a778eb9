"""Matrix products."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ...cotangents import Cotangent
from ...definition import PURE, TENSOR, Api, Argument, Sample, operand, result, type_
from ...interfaces import BoundsErrors, Evaluates, HasMaskedVjp, PointForm, Tame
from ...numeric import dtype
from ...support.error_bounds import SUM_UNIT, Bounded, exact, is_exact_kind, rounded
from ...support.reference import narrow, wide
from ...support.shapes import Dims, broadcast, shape_text, tensor_type
from ...support.tensor_op import NUMBER, TensorOp, accumulator, type_of_tensor
from ...types import BF16, F16, F32, F64, I32, UI8, FloatType, Type
from ...values import Value

if TYPE_CHECKING:
    from ...arrays import Array
    from ...builders.masks import Masks
    from ...builders.point import PointBuilder
    from ...builders.subscripts import AffineSubscript
    from ...builders.tensor import TensorBuilder
    from ...cotangents import Mask


SHAPES = (
    ((4, 3), (3, 5)),
    ((3,), (3,)),
    ((4, 3), (3,)),
    ((3,), (3, 5)),
    ((2, 1, 4, 3), (5, 3, 2)),
    ((3, 0), (0, 4)),
)
"""Of operands to try: of all ranks, broadcast, and empty."""


class Matmul(TensorOp, PointForm, Evaluates, Tame, HasMaskedVjp, BoundsErrors):
    """lhs @ rhs as `numpy.matmul`: matrices in the last two axes, the axes before them broadcast; a 1-d operand is a
    row on the left and a column on the right, and the result lacks its axis.

    f16 and bf16 accumulate in f32 and are rounded once at the end; `preferred_element_type` asks for another element
    type of the result (f32: the accumulator itself).  Integers wrap.
    """

    name = "linalg.matmul"
    api = Api("matmul", keywords=("preferred_element_type",))
    samples = (
        *[
            Sample("numpy:matmul", (Argument(a, -2, 2), Argument(b, -2, 2)), elements=(F32, F64, F16, BF16, I32, UI8))
            for a, b in SHAPES
        ],
        Sample(
            "numpy:matmul",
            (Argument((4, 3)), Argument((3, 5))),
            properties={"preferred_element_type": F32},
            elements=(F16, BF16),
            note="f32-result",
        ),
    )
    traits = frozenset({PURE})
    lhs = operand(TENSOR)
    rhs = operand(TENSOR)
    preferred_element_type = type_(optional=True)
    result = result(TENSOR)
    assembly = "$lhs `,` $rhs attr-dict `:` signature"

    def infer(self) -> Sequence[Type]:
        lhs, rhs = self.tensor("lhs", elements=NUMBER), self.tensor("rhs", elements=NUMBER)
        self.same_elements("lhs", "rhs")
        wanted = self.preferred_element_type or lhs.element
        if wanted not in NUMBER or isinstance(wanted, FloatType) is not isinstance(lhs.element, FloatType):
            raise self.dtype_error(f"cannot give elements of type {wanted} for operands of {lhs.element}")
        if lhs.rank == 0 or rhs.rank == 0:
            raise self.shape_error(f"shapes {shape_text(lhs.dims)} and {shape_text(rhs.dims)}: no operand may be 0-d")
        batch = broadcast(lhs.dims[:-2], rhs.dims[:-2])
        if batch is None or lhs.dims[-1] != rhs.dims[-2 if rhs.rank > 1 else 0]:
            raise self.shape_error(f"shapes {shape_text(lhs.dims)} and {shape_text(rhs.dims)} do not multiply")
        dims: Dims = (*batch, *lhs.dims[-2:-1], *(rhs.dims[-1:] if rhs.rank > 1 else ()))
        return [tensor_type(dims, wanted)]

    @property
    def sum_type(self) -> Type:
        """The type in which products are formed and added."""
        return accumulator(type_of_tensor(self.result).element)

    def point(self, k: PointBuilder) -> Value:
        """A sum of products over the contracted axis."""
        lhs, rhs = type_of_tensor(self.lhs), type_of_tensor(self.rhs)
        tail = (lhs.rank > 1) + (rhs.rank > 1)
        batch = k.axes[: len(k.axes) - tail]
        row = k.axes[len(batch) : len(batch) + (lhs.rank > 1)]
        column = k.axes[len(k.axes) - 1 :] if rhs.rank > 1 else []
        full = type_of_tensor(self.result).dims[: len(batch)]

        def places(dims: Dims) -> list[AffineSubscript | int]:
            """The batch subscripts of an operand with these batch extents."""
            missing = len(batch) - len(dims)
            own = zip(batch[missing:], dims, full[missing:], strict=True)
            return [0 if extent == 1 and target != 1 else axis for axis, extent, target in own]

        def product(inner: Sequence[AffineSubscript]) -> Value:
            left = k.load(0, [*places(lhs.dims[:-2]), *row, inner[0]])
            right = k.load(1, [*places(rhs.dims[:-2]), inner[0], *column])
            return k.mul(k.cast(left, lhs.element, self.sum_type), k.cast(right, rhs.element, self.sum_type))

        kind = "arith.addf" if isinstance(self.sum_type, FloatType) else "arith.addi"
        (total,) = k.reduce([k.extent(0, lhs.rank - 1)], kind, product)
        return k.cast(total, self.sum_type, type_of_tensor(self.result).element)

    def evaluate(self, lhs: Array, rhs: Array) -> Array:
        """The reference result, on NumPy arrays of the operands' shapes and dtypes."""
        import numpy as np

        element = type_of_tensor(self.result).element
        if not isinstance(element, FloatType):
            lhs, rhs = lhs.astype(dtype(element)), rhs.astype(dtype(element))
        return narrow(np.matmul(wide(lhs), wide(rhs)), dtype(element))

    def masked_vjp(self, m: Masks, incoming: Cotangent) -> Iterator[Cotangent | None]:
        """ct @ rhs^T and lhs^T @ ct, with 1-d operands as a row and a column, summed over batches that were broadcast.

        The rows of lhs and the columns of rhs to which only dead places of the product belong count as zeros."""
        b, ct = m.b, m.applied(incoming)
        lhs, rhs = type_of_tensor(self.lhs), type_of_tensor(self.rhs)
        full = type_of_tensor(ct)
        batch = full.dims[: full.rank - (lhs.rank > 1) - (rhs.rank > 1)]
        row = lhs.dims[-2] if lhs.rank > 1 else 1
        column = rhs.dims[-1] if rhs.rank > 1 else 1
        inner = lhs.dims[-1]
        left_dims = (*lhs.dims[:-2], row, inner)
        right_dims = (*rhs.dims[:-2], inner, column)
        rank = len(batch) + 2
        sources = (ct, self.lhs, self.rhs)

        def shaped(x: Value, dims: Any) -> Value:
            return b.reshape(x, dims, b.extents(dims, *sources))

        mask = m.inserted(incoming.mask, full.rank, [rank - 2] * (lhs.rank == 1) + [rank - 1] * (rhs.rank == 1))
        grad = shaped(ct, (*batch, row, column))
        left = shaped(b.cast(self.lhs, full.element), left_dims)
        right = shaped(b.cast(self.rhs, full.element), right_dims)

        def live_of(operand: Value, dims: Dims, axis: int) -> Mask:
            folded = m.folded(mask, rank, [*_extra(rank, (*batch, row, column), dims), axis], operand)
            return m.dropped(folded, rank, range(rank - len(dims)))

        rows, columns = live_of(self.lhs, left_dims, rank - 1), live_of(self.rhs, right_dims, rank - 2)
        if any(m.varies(f, rank, range(rank - 1)) for f in mask):
            left = m.select(rows, left)
        if any(m.varies(f, rank, [*range(rank - 2), rank - 1]) for f in mask):
            right = m.select(columns, right)
        lhs_live = m.dropped(rows, len(left_dims), [len(left_dims) - 2] * (lhs.rank == 1))
        rhs_live = m.dropped(columns, len(right_dims), [len(right_dims) - 1] * (rhs.rank == 1))
        yield Cotangent(_like(b, b.matmul(grad, _swapped(b, right)), self.lhs, left_dims), lhs_live)
        yield Cotangent(_like(b, b.matmul(_swapped(b, left), grad), self.rhs, right_dims), rhs_live)

    def bound(self, unit: float, lhs: Bounded, rhs: Bounded) -> Bounded:
        import numpy as np

        (a, ea), (b, eb) = lhs, rhs
        if is_exact_kind(a):
            return exact(self.evaluate(a, b))
        magnitude = np.matmul(abs(a) + ea, abs(b) + eb)
        error = np.matmul(abs(a), eb) + np.matmul(ea, abs(b)) + np.matmul(ea, eb)
        return rounded(np.matmul(a, b), error + (a.shape[-1] + 2) * min(unit, SUM_UNIT) * magnitude, unit)


def _swapped(b: TensorBuilder, x: Value) -> Value:
    """The last two axes exchanged."""
    rank = type_of_tensor(x).rank
    return b.transpose(x, permutation=[*range(rank - 2), rank - 1, rank - 2])


def _extra(rank: int, full: Dims, dims: Dims) -> list[int]:
    """The batch axes of a product along which an operand was repeated."""
    missing = rank - len(dims)
    return [i for i, d in enumerate(full[:-2]) if i < missing or (dims[i - missing] == 1 and d != 1)]


def _like(b: TensorBuilder, value: Value, operand: Value, dims: Dims) -> Value:
    """A cotangent summed to the batch extents in `dims`, in the operand's shape and element type."""
    type = type_of_tensor(value)
    extra = _extra(type.rank, type.dims, dims)
    if extra:
        value = b.reduce_sum(value, axes=extra)
    own = type_of_tensor(operand)
    return b.cast(b.reshape(value, own.dims, b.extents(own.dims, operand)), own.element)

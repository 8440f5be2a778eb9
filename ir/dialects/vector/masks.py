"""Masks: the lanes below a size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, SupportsInt

from ...attributes import Attribute, DenseAttr, IntegerAttr
from ...definition import INDEX_, PURE, VECTOR, FoldResult, Op, make, result, variadic_operand
from ...interfaces import CustomForm, Evaluates
from ...support.dialect_properties import integer_list
from ...types import I1, VectorType
from .checks import vector_type

if TYPE_CHECKING:
    from ...arrays import Array
    from ...parser import Parser
    from ...printer import Printer


def check_mask_type(op: Op, type: VectorType, sizes: int) -> None:
    """Raise unless `type` is a mask with as many axes as there are sizes."""
    if type.element is not I1:
        raise op.error(f"gives a vector of i1, not {type}")
    if sizes != type.rank:
        raise op.error(f"needs {type.rank} sizes for {type}, got {sizes}")


def mask_attr(type: VectorType, sizes: Sequence[int]) -> DenseAttr:
    """The mask with the lanes below `sizes` set."""
    bits = [1]
    for size, extent in zip(reversed(sizes), reversed(type.shape), strict=True):
        off = [0] * len(bits)
        bits = [bit for place in range(extent) for bit in (bits if place < size else off)]
    return DenseAttr.from_values(type, bits)


def mask_array(shape: Sequence[int], sizes: Sequence[SupportsInt]) -> Array:
    """The array of bool with the places below `sizes` set."""
    import numpy as np

    mask = np.zeros(shape, bool)
    mask[tuple(slice(max(0, int(size))) for size in sizes)] = True
    return mask


class CreateMask(Op, Evaluates):
    """Lanes below the size are set; a size beyond either end saturates."""

    name = "vector.create_mask"
    traits = frozenset({PURE})
    sizes = variadic_operand(INDEX_)
    result = result(VECTOR)
    assembly = "$sizes attr-dict `:` type($result)"

    def evaluate(self, *sizes: SupportsInt) -> Array:
        """Sizes to an array of bool."""
        return mask_array(vector_type(self.result.type).shape, sizes)

    def verify_(self) -> None:
        check_mask_type(self, vector_type(self.result.type), len(self.sizes))

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        sizes = [c.value for c in constants if isinstance(c, IntegerAttr)]
        return mask_attr(vector_type(self.result.type), sizes) if len(sizes) == len(constants) else None


class ConstantMask(Op, Evaluates, CustomForm):
    """`vector.create_mask` with constant sizes."""

    name = "vector.constant_mask"
    traits = frozenset({PURE})
    result = result(VECTOR)
    mask_dim_sizes = integer_list()

    def evaluate(self) -> Array:
        """An array of bool."""
        return mask_array(vector_type(self.result.type).shape, self.mask_dim_sizes)

    def verify_(self) -> None:
        type = vector_type(self.result.type)
        check_mask_type(self, type, len(self.mask_dim_sizes))
        for size, extent in zip(self.mask_dim_sizes, type.shape, strict=True):
            if not 0 <= size <= extent:
                raise self.error(f"needs sizes from 0 to the extents of {type}, got {list(self.mask_dim_sizes)}")

    def fold(self, constants: Sequence[Attribute | None]) -> FoldResult:
        return mask_attr(vector_type(self.result.type), self.mask_dim_sizes)

    @classmethod
    def parse(cls, p: Parser) -> ConstantMask:
        sizes = p.list("[", p.integer, "]")
        attributes = p.optional_attr_dict()
        p.expect(":")
        op = make(cls, (), [p.type()], (), (), {"mask_dim_sizes": sizes})
        op.attributes = attributes
        return op

    def print(self, w: Printer) -> None:
        w.write(str(list(self.mask_dim_sizes)))
        w.attr_dict(self, elided=("mask_dim_sizes",))
        w.write(f" : {self.result.type}")

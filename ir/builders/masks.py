"""Masks of cotangents: where a cotangent counts.

A mask stands beside a cotangent and says where it is live.  Where it is dead the cotangent is exactly 0, and stays so
whatever it is multiplied by: an untaken branch (of where, relu, maximum, minimum, clip, x**0, the elements that a
maximum over an axis passed over) may compute infinities and NaN, and their product with 0 would be NaN.  So elementwise
rules compute on the whole cotangent and leave the mask alone; it is applied, as a select of zeros, where cotangents are
added, before they are summed, and at the end.

A mask is a conjunction of factors, each a tensor of i1 that broadcasts to the cotangent: a condition of shape (n, 1)
stays so, and costs nothing to follow through a sum of rows.  Views move a mask; a reduction's operand is live where the
result is; what was repeated is live where one of the copies is, a row of softmax or of a product of matrices where one
of its elements is.  So:

- What is finite where it is taken has a gradient free of the branches not taken, for all their infinities and NaN.
- Infinities and NaN of what is taken stay as they are.

In a contraction a live place may share a row with dead ones.  The rows and columns that are dead altogether are
replaced by zeros before the product.  That is all that is needed: an operand that is not finite makes its whole row or
column of the product so, which is then dead altogether or taken.

A factor is soft if it comes from comparing the operand itself (relu, maximum, minimum, clip).  Such an operand is never
NaN where it is dead, and is an infinity only by overflow, or if what it is computed from is singular.  Of values that
are computed by ops alone that are `Tame` (values and derivatives finite for finite operands) soft factors are therefore
applied before a rule that is not elementwise and not followed further, which spares networks a reduction in every
layer; nor do elements of such values that a slice or gather did not read become dead.  Arguments count as finite there,
and only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..cotangents import Cotangent, Factor, Mask
from ..dialects import elementwise
from ..interfaces import Tame
from ..operations import Operation
from ..support.tensor_op import type_of_tensor
from ..types import F32
from ..values import Value
from .tensor import TensorBuilder


class Masks:
    """What is done with masks, at the place of a builder `b`."""

    def __init__(self, b: TensorBuilder) -> None:
        self.b = b
        self._tame: dict[Operation, bool] = {}

    def applied(self, ct: Cotangent) -> Value:
        """The cotangent with exact zeros where its mask does not hold."""
        return ct.value if ct.zeroed else self.select(ct.mask, ct.value)

    def select(self, mask: Mask, value: Value) -> Value:
        """A value where a mask holds, and 0 where it does not."""
        condition = self.condition(mask)
        if condition is None:
            return value
        return self.b.where(condition, value, self.b.constant(0.0, type_of_tensor(value).element))

    def condition(self, mask: Mask) -> Value | None:
        """The conjunction of the factors."""
        found: Value | None = None
        for factor in mask:
            found = factor.value if found is None else self.b.logical_and(found, factor.value)
        return found

    def tame(self, value: Value) -> bool:
        """Whether a value is computed from arguments and constants by tame ops alone."""
        op = value.defining_op
        if op is None:
            return True
        pending = [op]
        while pending:
            op = pending[-1]
            if op in self._tame:
                pending.pop()
                continue
            sources = [v.defining_op for v in op.operands]
            missing = [s for s in sources if s is not None and s not in self._tame]
            if missing and _is_tame(op):
                pending += missing
                continue
            self._tame[op] = _is_tame(op) and all(self._tame[s] for s in sources if s is not None)
        return self._tame[value.defining_op]  # pyright: ignore[reportArgumentType]

    # How masks change with shapes.  Dead and live places are moved alike; `rank` is that of the cotangent.

    def aligned(self, value: Value, rank: int) -> Value:
        """A factor with as many axes as the cotangent."""
        dims = type_of_tensor(value).dims
        return self.b.reshape(value, (*(1,) * (rank - len(dims)), *dims))

    def filled(self, value: Value, like: Value, axes: Sequence[int]) -> Value:
        """A factor with the extents of `like` along some axes."""
        type = type_of_tensor(like)
        value = self.aligned(value, type.rank)
        own = type_of_tensor(value).dims
        dims = [d if i in axes else own[i] for i, d in enumerate(type.dims)]
        if tuple(dims) == own:
            return value
        return self.b.broadcast(value, dims, range(type.rank), self.b.extents(dims, value, like))

    def inserted(self, mask: Mask, rank: int, axes: Iterable[int]) -> Mask:
        """The mask with axes of extent 1 put in, at these places of the outcome."""
        places = set(axes)

        def put(value: Value) -> Value:
            own = iter(type_of_tensor(value := self.aligned(value, rank)).dims)
            return self.b.reshape(value, [1 if i in places else next(own) for i in range(rank + len(places))])

        return tuple(Factor(put(f.value), f.soft) for f in mask)

    def dropped(self, mask: Mask, rank: int, axes: Iterable[int]) -> Mask:
        """The mask without axes, along which it has extent 1."""
        places = set(axes)

        def put(value: Value) -> Value:
            dims = type_of_tensor(value := self.aligned(value, rank)).dims
            return self.b.reshape(value, [d for i, d in enumerate(dims) if i not in places])

        return tuple(Factor(put(f.value), f.soft) for f in mask)

    def varies(self, factor: Factor, rank: int, axes: Iterable[int]) -> bool:
        """Whether a factor may differ along some axes."""
        dims = type_of_tensor(factor.value).dims
        missing = rank - len(dims)
        return any(a >= missing and dims[a - missing] != 1 for a in axes)

    def parted(self, mask: Mask, rank: int, axes: Sequence[int]) -> tuple[Mask, Mask]:
        """The factors that may differ along some axes, and those that do not."""
        moving = tuple(f for f in mask if self.varies(f, rank, axes))
        return moving, tuple(f for f in mask if f not in moving)

    def counts(self, mask: Mask, like: Value, axes: Sequence[int]) -> Value:
        """1 where a mask holds and else 0, in float32, with the extents of `like` along axes."""
        condition = self.condition(mask)
        if condition is None:
            return self.b.full_like(1.0, like, F32)
        return self.b.cast(self.filled(condition, like, axes), F32)

    def folded(self, mask: Mask, rank: int, axes: Sequence[int], source: Value) -> Mask:
        """The mask with extent 1 along axes: live where any place along them is.  Factors that do not vary there stay;
        soft ones go if `source`, which alone the mask is to guard from here, is tame."""
        moving, staying = self.parted(mask, rank, axes)
        if self.tame(source):
            moving = tuple(f for f in moving if not f.soft)
        condition = self.condition(moving)
        if condition is None:
            return staying
        condition = self.aligned(condition, rank)
        dims = type_of_tensor(condition).dims
        inner = [a for a in axes if dims[a] != 1]
        if any(dims[a] == 0 for a in inner):
            return staying  # the cotangent is an empty sum
        some = self.b.reduce_max(condition, axes=inner, keepdims=True)
        return (*staying, Factor(some, all(f.soft for f in moving)))

    def whole(self, mask: Mask, value: Value) -> Mask:
        """Live everywhere where a value is live anywhere."""
        rank = type_of_tensor(value).rank
        return self.dropped(self.folded(mask, rank, range(rank), value), rank, range(rank))

    def either(self, masks: Sequence[Mask]) -> Mask:
        """Live where one of some masks is."""
        common = tuple(f for f in masks[0] if all(f in m for m in masks[1:]))
        rests = list(dict.fromkeys(tuple(f for f in m if f not in common) for m in masks))
        if not all(rests):
            return common
        conditions = [c for rest in rests if (c := self.condition(rest)) is not None]
        if any(_is_negation(c, other) for c in conditions for other in conditions):
            return common
        total = conditions[0]
        for condition in conditions[1:]:
            total = self.b.logical_or(total, condition)
        return (*common, Factor(total, all(f.soft for rest in rests for f in rest)))


def _is_tame(op: Operation) -> bool:
    return isinstance(op, Tame) and op.is_tame()


def _is_negation(value: Value, other: Value) -> bool:
    op = value.defining_op
    return isinstance(op, elementwise.LogicalNot) and op.operands[0] is other

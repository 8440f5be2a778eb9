"""One row for each tensor-level op (and for each shape of its operands that matters): how to build it, what it means.

The rows of most ops are the samples that their classes declare (`nablair.ir.declared`); here stand those whose
operands, properties or references need code.

The table drives the tests of the reference meaning, of every device and of the derivatives:

    for row in ROWS:
        for element in row.elements:                     # IR element types
            arrays = row.arrays(element)                 # inputs, always the same ones
            module = row.module(element)                 # @main of the op on such inputs
            expected = row.reference(*wide_arrays)       # independent of nablair: NumPy and SciPy, in float64

A row is written with operands of one "free" element type, which `elements` ranges over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.special as special

from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.declared import Argument as Operand
from nablair.ir.definition import OPS
from nablair.ir.dialect import DIALECTS
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.elementwise import Elementwise
from nablair.ir.dialects.func import Func, Return
from nablair.ir.interfaces import NoDerivative
from nablair.ir.interpreter.samples import arrays, cases, reference
from nablair.ir.support.tensor_op import TensorOp
from nablair.ir.types import BF16, F16, F32, F64, I1, I8, I16, I32, I64, UI8, UI16, UI32, UI64, TensorType

FLOATS = (F32, F64, F16, BF16)
INTEGERS = (I32, I64, I8, I16, UI8, UI16, UI32, UI64)
NUMBERS = (*FLOATS, *INTEGERS)

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 100.0, -100.0, np.inf, -np.inf, np.nan)
"""Values that every float op is tested on, beside the extremes of its type."""


@dataclass(frozen=True)
class Row:
    """An op on operands.

    `reference` takes float64 (or integer) arrays and gives the result, or a tuple.  `smooth` says that the op has a
    derivative at the operands numbered in `differentiable` (all float ones by default).  `pointwise` rows take any
    values in any operand, so that special values can be put there.
    """

    name: str
    operands: tuple[Operand, ...]
    reference: Callable[..., Any]
    properties: dict[str, Any] = field(default_factory=dict)
    elements: tuple[Any, ...] = FLOATS
    smooth: bool = True
    build: Callable[..., Any] | None = None
    note: str = ""
    pointwise: bool = False

    @property
    def id(self) -> str:
        """The name of the row in test reports."""
        shapes = "-".join("x".join(map(str, o.shape)) or "scalar" for o in self.operands)
        return f"{self.name}-{self.note or shapes}"

    @property
    def differentiable(self) -> tuple[int, ...]:
        """The numbers of the operands that can have gradients."""
        return tuple(i for i, o in enumerate(self.operands) if o.element is None) if self.smooth else ()

    def arrays(self, element: Any) -> list[Any]:
        """Inputs for the free element type; the same in every run."""
        return arrays(self.operands, element, f"{self.id} {element}")

    def types(self, element: Any) -> list[TensorType]:
        """The types of the operands."""
        return [TensorType(o.shape, o.element or element) for o in self.operands]

    def apply(self, b: TensorBuilder, *values: Any) -> tuple[Any, ...]:
        """Build the op; its results."""
        if self.build is not None:
            found = self.build(b, *values)
        else:
            found = getattr(b, self.name.partition(".")[2])(*values, **self.properties)
        return found if isinstance(found, tuple) else (found,)

    def function(self, element: Any) -> Func:
        """A function @main that is the op."""
        function = Func.of("main", self.types(element), [])
        b = TensorBuilder(function.entry)
        b.create(Return, self.apply(b, *function.arguments))
        function.update_type()
        return function

    def module(self, element: Any) -> Module:
        """A module whose @main is the op."""
        return Module.of([self.function(element)])

    def expected(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """The reference's results on inputs of the row's types, not yet rounded."""
        with np.errstate(all="ignore"):
            found = self.reference(*map(wide, arrays))
        return found if isinstance(found, tuple) else (found,)


def wide(array: Any) -> Any:
    """Floats as float64."""
    return array if array.dtype.kind in "biu" else array.astype(np.float64)


def declared(dialect: str) -> list[Row]:
    """The samples of a dialect's ops."""
    DIALECTS[dialect].load()
    return [
        Row(
            cls.name,
            sample.arguments,
            reference(cls, sample),
            dict(sample.properties),
            tuple(elements),
            sample.smooth and not issubclass(cls, NoDerivative),
            note=sample.note,
            pointwise=issubclass(cls, Elementwise) and len(set(sample.arguments)) == 1,
        )
        for cls in list(OPS.values())
        if issubclass(cls, TensorOp) and cls.name.startswith(f"{dialect}.")
        for declared in cls.samples
        for sample, elements in cases(cls, declared)
    ]


def layer_norm(axis: int, weight: bool, bias: bool) -> Callable[..., Any]:
    def reference(x: Any, *rest: Any) -> Any:
        mean, variance = x.mean(axis, keepdims=True), x.var(axis, keepdims=True)
        column = [-1] + [1] * (x.ndim - axis - 1)
        rstd = 1 / np.sqrt(variance + 1e-5)
        y = (x - mean) * rstd
        if weight:
            y = y * rest[0].reshape(column)
        if bias:
            y = y + rest[-1].reshape(column)
        return y, mean.squeeze(axis), rstd.squeeze(axis)

    return reference


def reduced(losses: Any, reduction: str) -> Any:
    return losses if reduction == "none" else getattr(losses, reduction)()


def smooth_l1(d: Any, beta: float) -> Any:
    size = np.abs(d)
    return size if beta == 0 else np.where(size < beta, 0.5 * d * d / beta, size - 0.5 * beta)


def cross_entropy(reduction: str) -> Callable[..., Any]:
    def reference(x: Any, classes: Any) -> Any:
        lse = special.logsumexp(x, axis=-1)
        picked = take(x.ndim - 1, True, np.nan)(x, classes[..., None])[..., 0]
        return reduced(lse - picked, reduction), lse

    return reference


def detection(x: Any, t: Any, heat: Any, reg: Any) -> Any:
    p = np.clip(x, 1e-7, 1 - 1e-7)
    bce = -(special.xlogy(t, p) + special.xlogy(1 - t, 1 - p))
    return (2.0 * heat * bce + 0.5 * reg * smooth_l1(x - t, 0.05)).sum()


def scatter(axis: int) -> Callable[..., Any]:
    def reference(x: Any, indices: Any, updates: Any) -> Any:
        out = np.moveaxis(x.copy(), axis, 0)
        parts = np.moveaxis(updates, range(axis, axis + indices.ndim), range(indices.ndim))
        for place in np.ndindex(indices.shape):
            if -len(out) <= indices[place] < len(out):
                out[indices[place]] += parts[place]
        return np.moveaxis(out, 0, axis)

    return reference


def scatter_along(axis: int) -> Callable[..., Any]:
    def reference(x: Any, indices: Any, updates: Any) -> Any:
        out = x.copy()
        for place in np.ndindex(indices.shape):
            target = list(place)
            target[axis] = indices[place]
            if -x.shape[axis] <= indices[place] < x.shape[axis]:
                out[tuple(target)] += updates[place]
        return out

    return reference


def one_hot(indices: Any, like: Any) -> Any:
    return indices[..., None] == np.arange(like.shape[-1])


def inside(indices: Any, count: int) -> Any:
    """Indices from the front; `count` for those that lie outside."""
    signed = indices.astype(np.int64)
    return np.where((signed < -count) | (signed >= count), count, signed % count)


def take(axis: int, along: bool, missing: Any) -> Callable[..., Any]:
    def reference(x: Any, indices: Any) -> Any:
        edge = np.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), missing if x.dtype.kind == "f" else 0, x.dtype)
        longer = np.concatenate([x, edge], axis=axis)
        at = inside(indices, x.shape[axis])
        return np.take_along_axis(longer, at, axis=axis) if along else np.take(longer, at, axis=axis)

    return reference


ELEMENTWISE = declared("elementwise")

ARRAY: list[Row] = [
    Row(
        "array.transpose",
        (Operand((2, 3, 4)),),
        lambda x: x.transpose(1, 2, 0),
        {"permutation": [1, 2, 0]},
        elements=(*NUMBERS, I1),
    ),
    *[
        Row(
            "array.reshape",
            (Operand(old),),
            lambda x, new=new: x.reshape(new),
            build=lambda b, x, new=new: b.reshape(x, new),
            elements=(F32, I64, I1),
            note=f"{'x'.join(map(str, old))}-as-{'x'.join(map(str, new))}",
        )
        for old, new in (
            ((4, 6), (24,)),
            ((4, 6), (2, 2, 6)),
            ((4, 6), (8, 3)),
            ((2, 3, 4), (2, 12)),
            ((2, 6), (1, 2, 2, 1, 3)),
            ((1, 4, 1), (4,)),
            ((1,), ()),
            ((0, 3), (3, 0, 2)),
        )
    ],
    *[
        Row(
            "array.broadcast",
            (Operand(old),),
            lambda x, old=old, new=new, axes=axes: np.broadcast_to(
                x.reshape([old[axes.index(i)] if i in axes else 1 for i in range(len(new))]), new
            ),
            build=lambda b, x, new=new, axes=axes: b.broadcast(x, new, axes),
            elements=(F32, I64, I1),
            note=f"{'x'.join(map(str, old)) or 'scalar'}-to-{'x'.join(map(str, new))}",
        )
        for old, new, axes in (((5,), (4, 5), (1,)), ((4,), (4, 5), (0,)), ((4, 1), (4, 5), (0, 1)), ((), (2, 3), ()))
    ],
    *[
        Row(
            "array.slice",
            (Operand((6, 7)),),
            lambda x, where=where: x[where],
            dict(zip(("starts", "stops", "steps"), limits)),
            elements=(F32, I64, I1),
            note=note,
        )
        for note, limits, where in (
            ("box", ((1, 2), (4, 6), (1, 1)), np.s_[1:4, 2:6]),
            ("stride", ((0, 1), (6, 7), (2, 3)), np.s_[::2, 1::3]),
            ("reversed", ((5, 6), (-1, -1), (-1, -2)), np.s_[::-1, ::-2]),
            ("empty", ((2, 0), (2, 7), (1, 1)), np.s_[2:2]),
        )
    ],
    Row(
        "array.pad",
        (Operand((3, 4)),),
        lambda x: np.pad(x, ((1, 2), (0, 3)), constant_values=7),
        build=lambda b, x: b.pad(x, low=[1, 0], high=[2, 3], value=b.number(7, x)),
        elements=(F32, BF16, I64, UI8),
    ),
    Row(
        "array.pad",
        (Operand((3, 2)),),
        lambda x: np.insert(np.insert(np.pad(x, ((1, 0), (0, 0))), [2, 3], 0, axis=0), [1, 1], 0, axis=1),
        build=lambda b, x: b.pad(x, low=[1, 0], high=[0, 0], interior=[1, 2], value=b.number(0, x)),
        elements=(F32, I64),
        note="interior",
    ),
    Row(
        "array.concat",
        (Operand((2, 3)), Operand((0, 3)), Operand((4, 3)), Operand((1, 3))),
        lambda *xs: np.concatenate(xs, axis=0),
        build=lambda b, *xs: b.concat(list(xs), axis=0),
        elements=(*NUMBERS, I1),
    ),
]

LINALG: list[Row] = [
    *declared("linalg"),
    *[
        Row(
            "linalg.take",
            (Operand((4, 3, 2)), Operand(indices, low, high, element)),
            take(axis, False, np.nan if missing == "nan" else 0),
            {"axis": axis, "missing": missing},
            elements=(*FLOATS, I32, I1),
            smooth=missing == "zero",
            note=f"{'x'.join(map(str, indices)) or 'scalar'}-{element}-on-{axis}-{missing}",
        )
        for indices, axis, element, low, high, missing in (
            ((5,), 0, I64, -3, 2, "zero"),
            ((2, 2), 1, I32, -3, 2, "zero"),
            ((), 1, I8, -3, 2, "zero"),
            ((6,), 0, UI64, 0, 6, "zero"),
            ((5, 3), 0, I16, -9, 8, "nan"),
            ((9,), 2, UI8, 0, 255, "nan"),
        )
    ],
    *[
        Row(
            "linalg.take_along_axis",
            (Operand((4, 5)), Operand((4, 3), -8, 7, I64)),
            take(1, True, np.nan if missing == "nan" else 0),
            {"axis": 1, "missing": missing},
            elements=(*FLOATS, I32),
            smooth=missing == "zero",
            note=missing,
        )
        for missing in ("zero", "nan")
    ],
    *[
        Row(
            "linalg.index_add",
            (Operand((4, 3, 2)), Operand(indices, -5, 4, I64), Operand(updates)),
            scatter(axis),
            {"axis": axis},
            elements=(F32, F64, I32),
        )
        for indices, updates, axis in (((5,), (5, 3, 2), 0), ((2, 3), (4, 2, 3, 2), 1))
    ],
    Row(
        "linalg.scatter_add",
        (Operand((4, 5)), Operand((4, 6), -7, 6, I64), Operand((4, 6))),
        scatter_along(1),
        {"axis": 1},
        elements=(F32, F64, I32),
    ),
    *[
        Row(
            "linalg.one_hot",
            (Operand(shape[:-1], -shape[-1] - 2, shape[-1] + 1, element), Operand(shape)),
            one_hot,
            elements=(F32, I32),
            smooth=False,
            note=f"{'x'.join(map(str, shape))}-{element}",
        )
        for shape, element in (((5, 4), I64), ((2, 3, 4), I8), ((4,), UI64))
    ],
    Row("linalg.layer_norm", (Operand((4, 6)),), layer_norm(1, False, False), {"axis": 1}),
    Row(
        "linalg.layer_norm",
        (Operand((4, 6)), Operand((6,)), Operand((6,))),
        layer_norm(1, True, True),
        {"axis": 1},
    ),
    Row(
        "linalg.layer_norm",
        (Operand((2, 4, 3)), Operand((4,))),
        layer_norm(1, True, False),
        {"axis": 1, "eps": 1e-5},
    ),
]

LOSS: list[Row] = [
    *declared("loss"),
    *[
        Row(
            "loss.cross_entropy",
            (Operand(shape), Operand(shape[:-1], low, high, I64)),
            cross_entropy(reduction),
            {"reduction": reduction},
            smooth=high < shape[-1],
            note=f"{'x'.join(map(str, shape))}-{reduction}-{low}-to-{high}",
        )
        for shape, reduction, low, high in (
            ((5, 4), "mean", 0, 3),
            ((5, 4), "sum", 0, 3),
            ((2, 3, 4), "none", 0, 3),
            ((9, 4), "none", -8, 9),
        )
    ],
    Row(
        "loss.detection",
        (Operand((3, 4), 0.05, 0.95), Operand((3, 4), 0, 1), Operand((3, 4), 0, 2), Operand((3, 4), 0, 2)),
        detection,
        {"heat_scale": 2.0, "reg_scale": 0.5},
    ),
]

ROWS: list[Row] = [*ELEMENTWISE, *ARRAY, *LINALG, *LOSS]

"""The rows of the op table as tests of a device: modules, inputs, and what a device may answer.

A row whose kernels consist of exactly rounded operations must agree bit for bit with the interpreter at kernel level.
The others, functions and folds of floats, are compared with the interpreter at tensor level, within some units in the
last place of what went in and what came out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.special as special
from op_table import ROWS, SPECIAL, Operand, Row

from nablair.ir.dialects import arith, elementwise, kernel
from nablair.ir.dialects.builtin import Module
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.numeric import dtype
from nablair.ir.types import F32, F64, FloatType
from nablair.passes.manager import PassManager
from nablair.passes.math_expansions import EXPANSIONS
from nablair.runtime.compile import lowered_module, signature

ULPS = 24
"""Units in the last place that a function or a fold of some elements may err."""


@dataclass
class Case:
    """A row with an element type, and inputs."""

    row: Row
    element: Any
    arrays: list[Any]
    growth: float = 1.0
    """How much larger than what goes in values are on the way."""

    @property
    def id(self) -> str:
        return f"{self.row.id} {self.element}"

    @cached_property
    def module(self) -> Module:
        return self.row.module(self.element)

    def lowered(self, device: Any) -> tuple[Module, str, Any, Any]:
        """The arguments of a device's `build`."""
        return Case.of(self.module, device)

    @staticmethod
    def of(module: Module, device: Any) -> tuple[Module, str, Any, Any]:
        """The arguments of a device's `build` for any module."""
        inputs, outputs = signature(module, "main")
        return lowered_module(module, device.target, device.pipeline), "main", inputs, outputs

    def expected(self) -> tuple[list[Any], bool]:
        """What to compare with, and whether bit for bit."""
        kernels = self.module.clone()
        PassManager.parse("kernel", verify_each=False, restore=False).run(kernels)
        level = kernels if is_exact(kernels) else self.module
        return Interpreter(level).call("main", self.arrays), level is kernels

    def complaint(self, results: Sequence[Any]) -> str | None:
        """What is wrong with a device's results, if anything."""
        expected, exact = self.expected()
        scale = max([1.0, *(float(np.max(np.abs(a[np.isfinite(a)]), initial=0)) for a in map(wide, self.arrays))])
        for number, (wanted, given) in enumerate(zip(map(np.asarray, expected), results, strict=True)):
            if (wanted.dtype, wanted.shape) != (given.dtype, given.shape):
                return f"{self.id}: result {number} is {given.dtype}{given.shape}, not {wanted.dtype}{wanted.shape}"
            if wanted.dtype.kind in "biu" or exact:
                good = same_bits(wanted, given)
            else:
                good = near(wanted, given, self.growth * min(scale, 100.0))
            if not good.all():
                at = np.argwhere(~np.atleast_1d(good))[0]
                inputs = [a.reshape(-1)[:4] for a in self.arrays]
                pair = [np.atleast_1d(v)[tuple(at)] for v in (wanted, given)]
                return f"{self.id}: result {number} at {at}: {pair[0]!r} wanted, {pair[1]!r} given ({exact=}, {inputs})"
        return None


def wide(array: Any) -> Any:
    return np.asarray(array).astype(np.float64)


def same_bits(a: Any, b: Any) -> Any:
    """Equal, signs of zeros and places of NaN included."""
    if a.dtype.kind in "biu":
        return a == b
    x, y = wide(a), wide(b)
    return ((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y))


def near(wanted: Any, given: Any, scale: float) -> Any:
    """Within `ULPS` of the result or, for cancellation, of what went in; infinities and NaN in the same places."""
    unit = {np.dtype(np.float64): 2.0**-53, np.dtype(np.float32): 2.0**-24, np.dtype(np.float16): 2.0**-11}
    x, y = wide(wanted), wide(given)
    bound = ULPS * unit.get(wanted.dtype, 2.0**-8) * np.maximum(np.abs(x), scale)
    with np.errstate(invalid="ignore"):
        return (np.abs(x - y) <= bound) | (x == y) | (np.isnan(x) & np.isnan(y))


def is_exact(module: Module) -> bool:
    """Whether each op of the kernels has one right result: no expanded functions, no folds of floats by arithmetic."""
    for op in module.walk():
        if op.name in EXPANSIONS and EXPANSIONS[op.name].ulp_f32:
            return False
        if isinstance(op, kernel.Monoidal) and any(
            isinstance(inner, arith.AddF | arith.MulF) for inner in op.combine_region.block
        ):
            return False
    return True


def cases(elements: Iterable[Any], keep: Callable[[int], bool] = lambda i: True) -> list[Case]:
    """The rows that have these element types; `keep` chooses by number."""
    wanted = tuple(elements)
    found = [(row, e) for row in ROWS for e in row.elements if e in wanted]
    return [Case(row, e, row.arrays(e)) for i, (row, e) in enumerate(found) if keep(i)]


def other_elements() -> list[Any]:
    """All element types of the table but f32 and f64."""
    return [e for e in dict.fromkeys(e for row in ROWS for e in row.elements) if e not in (F32, F64)]


def special_cases(element: FloatType, count: int = 400) -> list[Case]:
    """Pointwise rows on special values, denormal and extreme ones, in all sorts of company."""
    kind = dtype(element)
    info = np.finfo(kind)
    values = np.array([*SPECIAL, info.tiny, -info.tiny, info.max, -info.max, info.smallest_subnormal], kind)
    values = np.concatenate([values, -values[-1:] * kind.type(3), np.array([1 + info.eps, 1e-3, 20.5, -20.5], kind)])
    random = np.random.default_rng(7)
    found: list[Case] = []
    for row in ROWS:
        if row.pointwise and element in row.elements and all(o.element is None for o in row.operands):
            wider = replace(row, operands=tuple(o._replace(shape=(count,)) for o in row.operands))
            found.append(Case(wider, element, [random.choice(values, count) for _ in row.operands]))
    return found


def dense(x: Any, w: Any, c: Any) -> Any:
    """A layer of a network."""
    return np.maximum(x @ w + c, 0)


LARGER: list[Row] = [
    Row("linalg.reduce_sum", (Operand((37, 1000)),), lambda x: x.sum(1), {"axes": [1]}, note="rows"),
    Row("linalg.reduce_max", (Operand((130, 100)),), lambda x: x.max(1), {"axes": [1]}, note="short rows"),
    Row("linalg.reduce_sum", (Operand((1000, 50)),), lambda x: x.sum(0), {"axes": [0]}, note="columns"),
    Row("linalg.reduce_mean", (Operand((30, 70, 9)),), lambda x: x.mean(1), {"axes": [1]}, note="middle"),
    Row("linalg.reduce_sum", (Operand((300, 200)),), np.sum, {"axes": [0, 1]}, note="all"),
    Row("linalg.argmax", (Operand((37, 1000)),), lambda x: x.argmax(1), {"axis": 1}, note="rows"),
    Row("linalg.softmax", (Operand((70, 1000)),), lambda x: special.softmax(x, 1), {"axis": 1}, note="rows"),
    Row("linalg.softmax", (Operand((65, 13000)),), lambda x: special.softmax(x, 1), {"axis": 1}, note="long rows"),
    Row("linalg.softmax", (Operand((200, 70)),), lambda x: special.softmax(x, 0), {"axis": 0}, note="columns"),
    Row("linalg.log_softmax", (Operand((64, 300)),), lambda x: special.log_softmax(x, 1), {"axis": 1}, note="rows"),
    Row("linalg.matmul", (Operand((5000,)), Operand((5000,))), np.matmul, note="dot"),
    Row("linalg.matmul", (Operand((50, 500)), Operand((500,))), np.matmul, note="matrix by vector"),
    Row("linalg.matmul", (Operand((50, 500)), Operand((500, 20))), np.matmul, note="narrow"),
    Row("linalg.matmul", (Operand((136, 200)), Operand((200, 152))), np.matmul, note="ragged"),
    Row("linalg.matmul", (Operand((128, 64)), Operand((64, 128))), np.matmul, note="whole tiles"),
    Row("linalg.matmul", (Operand((3, 40, 33)), Operand((3, 33, 50))), np.matmul, note="batch"),
    Row(
        "linalg.matmul",
        (Operand((40, 70)), Operand((50, 40))),
        lambda x, y: x.T @ y.T,
        build=lambda b, x, y: b.matmul(b.transpose(x, permutation=[1, 0]), b.transpose(y, permutation=[1, 0])),
        note="transposed",
    ),
    Row(
        "linalg.matmul",
        (Operand((40, 70)), Operand((70, 50)), Operand((50,))),
        dense,
        build=lambda b, x, w, c: b.relu(b.add(b.matmul(x, w), c)),
        note="dense",
    ),
    Row(
        "loss.mse",
        (Operand((300, 100)), Operand((300, 100))),
        lambda x, t: ((x - t) ** 2).mean(),
        {"reduction": "mean"},
        note="large",
    ),
    Row(
        elementwise.Mul.name,
        (Operand((700, 60)), Operand((60,))),
        lambda x, c: (x * c, (x * c).sum(0)),
        build=lambda b, x, c: (b.mul(x, c), b.reduce_sum(b.mul(x, c), axes=[0])),
        note="with column sums",
    ),
]
"""Shapes that are shared out over the threads of blocks."""


def larger_cases(element: Any) -> list[Case]:
    """`LARGER` with an element type; sums of many elements err in proportion to their partial sums."""
    return [Case(row, element, row.arrays(element), growth=40.0) for row in LARGER]

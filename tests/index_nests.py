"""Drawn loop nests that compute index values, with the numbers that each value takes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from nablair.ir.definition import Op
from nablair.ir.dialects import arith, scf
from nablair.ir.operations import Operation
from nablair.ir.parser import parse_module
from nablair.ir.values import Value

BINARY = ("addi", "subi", "muli", "minsi", "maxsi", "divui", "remui")


@dataclass
class Nest:
    """A nest and, for each value inside, its numbers over all points: an axis for each loop, outermost first."""

    loops: list[Operation]
    numbers: dict[Value, np.ndarray]


def drawn(rng: random.Random) -> Nest:
    """A forall around up to two loops with constant bounds, and arithmetic of the counters in the innermost one."""
    bounds = [(low := rng.randrange(-3, 4), low + rng.randrange(1, 7)) for _ in range(rng.randrange(1, 4))]
    names = [f"%i{d}" for d in range(len(bounds))]
    constants = [rng.choice([-7, -1, 0, 1, 2, 3, 8, 100]) for _ in range(3)]
    used = sorted({*constants, 1, *(n for pair in bounds for n in pair)})
    lines = ["func.func @f(%out: memref<index>) {"]
    lines += [f"%c{n if n >= 0 else f'm{-n}'} = arith.constant {n} : index" for n in used]
    spelled = {n: f"%c{n if n >= 0 else f'm{-n}'}" for n in used}
    for d, (low, high) in enumerate(bounds):
        kind = (
            f"scf.forall ({names[d]}) = ({low}) to ({high}) step (1)"
            if d == 0
            else (f"scf.for {names[d]} = {spelled[low]} to {spelled[high]} step {spelled[1]}")
        )
        lines.append(f"{kind} {{")
    values = [*names, *(spelled[n] for n in constants)]
    for i in range(8):
        name, a, b = f"%v{i}", rng.choice(values), rng.choice(values)
        if rng.random() < 0.2:
            lines.append(f"%t{i} = arith.cmpi slt, {a}, {b} : index")
            lines.append(f"{name} = arith.select %t{i}, {rng.choice(values)}, {rng.choice(values)} : index")
        else:
            lines.append(f"{name} = arith.{rng.choice(BINARY)} {a}, {b} : index")
        values.append(name)
    lines.append(f"memref.store {values[-1]}, %out[] : memref<index>")
    lines += ["}"] * len(bounds)
    lines += ["return", "}"]
    module = parse_module("\n".join(lines))
    loops: list[Operation] = [op for op in module.walk() if isinstance(op, scf.For | scf.Forall)]
    shape = [high - low for low, high in bounds]
    numbers: dict[Value, np.ndarray] = {}
    for d, (loop, (low, high)) in enumerate(zip(loops, bounds, strict=True)):
        counter = loop.regions[0].block.arguments[0]
        numbers[counter] = np.arange(low, high).reshape([-1 if i == d else 1 for i in range(len(bounds))])
    for op in module.walk():
        if isinstance(op, arith.Constant):
            numbers[op.result] = np.asarray(op.value.value)
        elif isinstance(op, Op) and len(op.results) == 1:
            with np.errstate(all="ignore"):
                numbers[op.result] = _evaluate(op, [numbers[v] for v in op.operands])
    return Nest(loops, {v: np.broadcast_to(n, shape) for v, n in numbers.items()})


def _evaluate(op: Op, operands: list[np.ndarray]) -> np.ndarray:
    """The op on numbers of 64 bits, as NumPy has it."""
    if isinstance(op, arith.CmpI):
        return operands[0] < operands[1]
    if isinstance(op, arith.Select):
        return np.where(*operands)
    a, b = operands
    if isinstance(op, arith.DivUI | arith.RemUI):
        left, right = a.astype(np.uint64), b.astype(np.uint64)
        safe = np.where(right == 0, np.uint64(1), right)
        return (left // safe if isinstance(op, arith.DivUI) else left % safe).astype(np.int64)
    return {
        "arith.addi": np.add,
        "arith.subi": np.subtract,
        "arith.muli": np.multiply,
        "arith.minsi": np.minimum,
        "arith.maxsi": np.maximum,
    }[op.name](a, b)

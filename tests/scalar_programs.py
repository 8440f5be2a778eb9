"""Random programs for tests of passes: scalar arithmetic, branches, loops and buffers, valid and free of overflow."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify

OPS = ("addi", "subi", "muli", "andi", "ori", "xori")
PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge")


class _Writer:
    """Writes ops; `values` are the i32 names in scope, `flags` the i1 names."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, depth: int) -> str:
        name = self.name()
        self.lines.append("  " * depth + f"{name} = {text}")
        return name

    def body(self, size: int, values: list[str], flags: list[str], depth: int) -> None:
        rng = self.rng
        for _ in range(size):
            kind = rng.random()
            if kind < 0.2:
                values.append(self.emit(f"arith.constant {rng.choice((-1, 0, 1, 2, 5))} : i32", depth))
            elif kind < 0.55:
                x, y = rng.choice(values), rng.choice(values)
                values.append(self.emit(f"arith.{rng.choice(OPS)} {x}, {y} : i32", depth))
            elif kind < 0.62:
                x, y = rng.choice(values), rng.choice(values)
                flags.append(self.emit(f"arith.cmpi {rng.choice(PREDICATES)}, {x}, {y} : i32", depth))
            elif kind < 0.68:
                x, y = rng.choice(values), rng.choice(values)
                values.append(self.emit(f"arith.select {rng.choice(flags)}, {x}, {y} : i32", depth))
            elif kind < 0.80:
                place, buffer = rng.choice(("%i0", "%i1")), rng.choice(("%m", "%k", "%t"))
                values.append(self.emit(f"memref.load {buffer}[{place}] : memref<4xi32>", depth))
            elif kind < 0.88:
                place, buffer = rng.choice(("%i0", "%i1")), rng.choice(("%m", "%t"))
                self.lines.append(
                    "  " * depth + f"memref.store {rng.choice(values)}, {buffer}[{place}] : memref<4xi32>"
                )
            elif depth < 4:
                values.append(self.branch(values, flags, depth) if kind < 0.94 else self.loop(values, flags, depth))

    def branch(self, values: list[str], flags: list[str], depth: int) -> str:
        name, condition = self.name(), self.rng.choice(flags)
        self.lines.append("  " * depth + f"{name} = scf.if {condition} -> (i32) {{")
        for close in ("} else {", "}"):
            inner = list(values)
            self.body(self.rng.randrange(4), inner, list(flags), depth + 1)
            self.lines.append("  " * (depth + 1) + f"scf.yield {self.rng.choice(inner)} : i32")
            self.lines.append("  " * depth + close)
        return name

    def loop(self, values: list[str], flags: list[str], depth: int) -> str:
        name, carried = self.name(), self.name()
        bounds = f"%i0 to {self.rng.choice(('%i0', '%i1', '%i3'))} step %i1"
        header = (
            f"{name} = scf.for %c{name[1:]} = {bounds} iter_args({carried} = {self.rng.choice(values)}) -> (i32) {{"
        )
        self.lines.append("  " * depth + header)
        inner = [*values, carried]
        self.body(self.rng.randrange(5), inner, list(flags), depth + 1)
        self.lines += ["  " * (depth + 1) + f"scf.yield {self.rng.choice(inner)} : i32", "  " * depth + "}"]
        return name


def source(seed: int, size: int = 40) -> str:
    """The text of a module with a function @main(i32, i32, memref, memref) -> (i32, i32) and a helper that it calls."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    head = [f"  %i{k} = arith.constant {k} : index" for k in (0, 1, 3)]
    head += ["  %t = memref.alloc() : memref<4xi32>", "  memref.store %a, %t[%i0] : memref<4xi32>"]
    head += ["  memref.store %b, %t[%i1] : memref<4xi32>", "  %f = arith.cmpi slt, %a, %b : i32"]
    values = ["%a", "%b"]
    writer.body(size, values, ["%f"], 1)
    called = writer.emit(f"func.call @helper({rng.choice(values)}) : (i32) -> i32", 1)
    writer.body(size // 4, values := [*values, called], ["%f"], 1)
    total = values[0]
    for value in values[1:]:  # so that most of it is needed
        total = writer.emit(f"arith.{rng.choice(('addi', 'xori'))} {total}, {value} : i32", 1)
    arguments = "%a: i32, %b: i32, %m: memref<4xi32>, %k: memref<4xi32> {nablair.readonly}"
    return "\n".join(
        [
            "func.func private @helper(%x: i32) -> i32 {",
            "  %c = arith.constant 3 : i32",
            "  %0 = arith.muli %c, %x : i32",
            "  return %0 : i32",
            "}",
            f"func.func @main({arguments}) -> (i32, i32) {{",
            *head,
            *writer.lines,
            f"  return {rng.choice(values)}, {total} : i32, i32",
            "}",
        ]
    )


def module(seed: int, size: int = 40) -> Any:
    """A verified module."""
    parsed = parse_module(source(seed, size))
    verify(parsed)
    return parsed


def results(op: Any, seed: int) -> list[Any]:
    """What @main gives and leaves in its buffer, for arguments drawn from a seed."""
    rng = np.random.default_rng(seed)
    a, b = (np.int32(v) for v in rng.integers(-5, 5, 2))
    buffers = [rng.integers(-9, 9, 4).astype(np.int32) for _ in range(2)]
    given = Interpreter(op).call("main", [a, b, *buffers])
    return [*map(int, given), *(buffer.tolist() for buffer in buffers)]

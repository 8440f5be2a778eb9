"""Loop-level programs whose subscripts, sizes, steps and strides are mostly right and sometimes anything.

`program(seed)` is a text, and the arguments to run it on; `main` runs many and says which one was not as the
interpreter has it: in a process of its own, for a program that writes outside may end the process.
"""

import random
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from nablair import Error, LoweringError
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.parser import parse_module
from nablair.ir.verifier import verify
from nablair.runtime.compile import compile_function

ROWS, COLUMNS, LENGTH, LANES = 5, 8, 24, 4
FAR = (-1, -7, 1 << 31, 500_000_000, -(1 << 40), 1 << 62, (1 << 63) - 1, -(1 << 63))
FAR_SIZES = (-1, -7, 0, 1000, 1 << 62)
MARGIN = 64
CANARY = -77.0

HELPER = """
func.func private @helper(%v: memref<?xf32>, %i: index, %x: f32) -> f32 {
  %old = memref.load %v[%i] : memref<?xf32>
  memref.store %x, %v[%i] : memref<?xf32>
  return %old : f32
}
"""


@dataclass
class Writer:
    """Statements under construction; `wildness` is how often a number is not in its range."""

    draw: random.Random
    wildness: float
    lines: list[str]
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%t{self.count}"

    def line(self, text: str) -> None:
        self.lines.append("  " + text)

    def value(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def number(self, low: int, high: int, far: tuple[int, ...] = FAR) -> int:
        """From low to high, or not."""
        if self.draw.random() >= self.wildness:
            return self.draw.randint(low, high)
        return self.draw.choice((low - 1, high + 1, high + self.draw.randint(1, 9), *far))

    def index(self, low: int, high: int, far: tuple[int, ...] = FAR) -> str:
        """A subscript: a constant, or what only the run knows."""
        wanted = self.number(low, high, far)
        if self.draw.random() < 0.5:
            return self.value(f"arith.constant {wanted} : index")
        # %n is 3.
        return self.value(f"arith.addi %n, {self.value(f'arith.constant {wrapped(wanted - 3)} : index')} : index")

    def use(self, value: str) -> None:
        """Let a value be seen."""
        self.line(f"memref.store {value}, %b[{self.value('arith.constant 0 : index')}] : memref<{LENGTH}xf32>")


def wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def elements(w: Writer) -> None:
    i, j, k = w.index(0, ROWS - 1), w.index(0, COLUMNS - 1), w.index(0, LENGTH - 1)
    x = w.value(f"memref.load %a[{i}, {j}] : memref<{ROWS}x{COLUMNS}xf32>")
    w.line(f"memref.store {x}, %b[{k}] : memref<{LENGTH}xf32>")


def loop(w: Writer) -> None:
    low, high, step = w.index(0, 3), w.index(1, ROWS), w.index(1, 3)
    i, c = w.name(), w.number(0, COLUMNS - ROWS)
    w.line(f"scf.for {i} = {low} to {high} step {step} {{")
    j = w.value(f"arith.addi {i}, {w.value(f'arith.constant {wrapped(c)} : index')} : index")
    x = w.value(f"memref.load %a[{i}, {j}] : memref<{ROWS}x{COLUMNS}xf32>")
    w.line(f"memref.store {x}, %b[{j}] : memref<{LENGTH}xf32>")
    w.line("}")


def forall(w: Writer) -> None:
    i, j = w.name(), w.name()
    m, n = w.draw.choice([(ROWS, COLUMNS), (ROWS, COLUMNS), (ROWS + 1, COLUMNS), (ROWS, COLUMNS + 2)])
    w.line(f"scf.forall ({i}, {j}) in ({m}, {n}) {{")
    x = w.value(f"memref.load %a[{i}, {j}] : memref<{ROWS}x{COLUMNS}xf32>")
    y = w.value(f"arith.addf {x}, %one : f32")
    w.line(f"memref.store {y}, %a[{i}, {j}] : memref<{ROWS}x{COLUMNS}xf32>")
    w.line("}")


def from_data(w: Writer) -> None:
    at = w.value(f"memref.load %k[{w.index(0, 7)}] : memref<8xi32>")
    i = w.value(f"arith.index_cast {at} : i32 to index")
    w.line(f"memref.store %one, %b[{i}] : memref<{LENGTH}xf32>")


def vectors(w: Writer) -> None:
    i, j, k = w.index(0, ROWS - 1), w.index(0, COLUMNS - LANES), w.index(0, LENGTH - LANES)
    x = w.value(f"vector.load %a[{i}, {j}] : memref<{ROWS}x{COLUMNS}xf32>, vector<{LANES}xf32>")
    lane = w.value(f"vector.extract {x}[{w.index(0, LANES - 1)}] : f32 from vector<{LANES}xf32>")
    w.use(lane)
    w.line(f"vector.store {x}, %b[{k}] : memref<{LENGTH}xf32>, vector<{LANES}xf32>")


def masked(w: Writer) -> None:
    count = w.index(0, LANES)
    i, k = w.index(0, ROWS - 1), w.index(0, LENGTH - 1)
    j = w.index(0, COLUMNS - LANES)
    mask = w.value(f"vector.create_mask {count} : vector<{LANES}xi1>")
    types = f"vector<{LANES}xi1>, vector<{LANES}xf32>"
    a = f"memref<{ROWS}x{COLUMNS}xf32>, {types} into vector<{LANES}xf32>"
    x = w.value(f"vector.maskedload %a[{i}, {j}], {mask}, %many : {a}")
    w.line(f"vector.maskedstore %b[{k}], {mask}, {x} : memref<{LENGTH}xf32>, {types}")


def lanes(w: Writer) -> None:
    i, j = w.index(0, ROWS - 1), w.index(0, COLUMNS - 1)
    places = ", ".join(str(w.number(0, 3)) for _ in range(LANES))
    vector = w.value(f"arith.constant dense<[{places}]> : vector<{LANES}xindex>")
    mask = w.value(f"vector.create_mask {w.index(0, LANES)} : vector<{LANES}xi1>")
    types = f"vector<{LANES}xindex>, vector<{LANES}xi1>, vector<{LANES}xf32>"
    a = f"memref<{ROWS}x{COLUMNS}xf32>"
    x = w.value(f"vector.gather %a[{i}, {j}] [{vector}], {mask}, %many : {a}, {types} into vector<{LANES}xf32>")
    w.line(f"vector.scatter %b[{w.index(0, LENGTH - 4)}] [{vector}], {mask}, {x} : memref<{LENGTH}xf32>, {types}")


def subview(w: Writer) -> None:
    offset, size, stride = w.index(0, 4), w.index(1, 6), w.index(1, 3)
    strided = "memref<?xf32, strided<[?], offset: ?>>"
    view = w.value(f"memref.subview %b[{offset}] [{size}] [{stride}] : memref<{LENGTH}xf32> to {strided}")
    i = w.index(0, 1)
    w.use(w.value(f"memref.load {view}[{i}] : {strided}"))
    w.line(f"memref.store %one, {view}[{i}] : {strided}")


def cast(w: Writer) -> None:
    size = w.index(6, 6, FAR_SIZES)
    made = w.value(f"memref.alloc({size}) : memref<?xf32>")
    fixed = w.value(f"memref.cast {made} : memref<?xf32> to memref<6xf32>")
    i = w.index(0, 5)
    w.line(f"memref.store %one, {fixed}[{i}] : memref<6xf32>")
    w.use(w.value(f"memref.load {made}[{i}] : memref<?xf32>"))
    w.line(f"memref.dealloc {made} : memref<?xf32>")


def expand(w: Writer) -> None:
    size = w.index(6, 6, FAR_SIZES)
    made = w.value(f"memref.alloc({size}) : memref<?xf32>")
    shape = f"[[0, 1]] output_shape [{w.index(2, 3)}, 2]"
    wide = w.value(f"memref.expand_shape {made} {shape} : memref<?xf32> into memref<?x2xf32>")
    i, j = w.index(0, 1), w.index(0, 1)
    w.line(f"memref.store %one, {wide}[{i}, {j}] : memref<?x2xf32>")
    w.use(w.value(f"memref.load {wide}[{i}, {j}] : memref<?x2xf32>"))


def reinterpret(w: Writer) -> None:
    offset, rows, stride = abs(w.number(0, 4)), abs(w.number(1, 3)), abs(w.number(1, 7))
    if max(offset, rows, stride) > 1000:
        offset, rows, stride = 7, 3, 9
    type = f"memref<{rows}x2xf32, strided<[{stride}, 1], offset: {offset}>>"
    box = f"offset: [{offset}], sizes: [{rows}, 2], strides: [{stride}, 1]"
    view = w.value(f"memref.reinterpret_cast %b to {box} : memref<{LENGTH}xf32> to {type}")
    w.line(f"memref.store %one, {view}[{w.index(0, max(rows - 1, 0))}, {w.index(0, 1)}] : {type}")


def call(w: Writer) -> None:
    made = w.value(f"memref.cast %b : memref<{LENGTH}xf32> to memref<?xf32>")
    w.use(w.value(f"func.call @helper({made}, {w.index(0, LENGTH - 1)}, %one) : (memref<?xf32>, index, f32) -> f32"))


def atomic(w: Writer) -> None:
    i = w.index(0, LENGTH - 1)
    w.use(w.value(f"memref.atomic_rmw addf %one, %b[{i}] : (f32, memref<{LENGTH}xf32>) -> f32"))


STATEMENTS = [
    elements, loop, forall, from_data, vectors, masked, lanes, subview, cast, expand, reinterpret, call, atomic,
]  # fmt: skip


def program(seed: int) -> tuple[str, list[Any]]:
    """A text, and the arguments of its @main: two arrays of floats, one of integers, and the number 3."""
    draw = random.Random(seed)
    w = Writer(draw, draw.choice((0.02, 0.1, 0.3)), [])
    w.line("%one = arith.constant 1.5 : f32")
    w.line(f"%many = arith.constant dense<2.5> : vector<{LANES}xf32>")
    for _ in range(draw.randint(1, 4)):
        draw.choice(STATEMENTS)(w)
    arguments = f"%a: memref<{ROWS}x{COLUMNS}xf32>, %b: memref<{LENGTH}xf32>, %k: memref<8xi32>, %n: index"
    text = "\n".join([HELPER, f"func.func @main({arguments}) {{", *w.lines, "  return", "}"])
    numbers = np.random.default_rng(seed)
    wild, tame = (0, LENGTH - 1, LENGTH, -1, -(1 << 31)), (0, 1, 2, 3)
    data = [draw.choice(wild if draw.random() < w.wildness else tame) for _ in range(8)]
    a = numbers.integers(0, 9, (ROWS, COLUMNS)).astype(np.float32)
    b = numbers.integers(0, 9, LENGTH).astype(np.float32)
    return text, [a, b, np.array(data, np.int32), 3]


def fenced(array: Any) -> tuple[Any, Any]:
    """A copy of an array in the middle of a larger one, and the larger one."""
    whole = np.full(array.size + 2 * MARGIN, CANARY, array.dtype)
    inner = whole[MARGIN : MARGIN + array.size].reshape(array.shape)
    inner[...] = array
    return inner, whole


def verdict(seed: int) -> str:
    """`equal`, `refused` before it ran or `stopped` while it did; an AssertionError where the two disagree."""
    text, arguments = program(seed)
    module = parse_module(text)
    try:
        verify(module)
    except Error:
        return "invalid"
    wanted = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    fault: Error | None = None
    try:
        Interpreter(module).call("main", wanted)
    except Error as error:
        fault = error
    fences = [fenced(a) for a in arguments[:3]]
    outcome = "equal"
    try:
        executable = compile_function(module, checked=True)
    except LoweringError as error:
        assert "--unsafe" in error.message or fault is not None, f"refused without reason: {error}\n{text}"
        return "refused"
    try:
        executable.run([*(inner for inner, _ in fences), np.asarray(3)])
        assert fault is None, f"not noticed: {fault}\n{text}"
        for (inner, _), right in zip(fences, wanted):
            assert inner.tobytes() == right.tobytes(), f"other results than the interpreter's\n{text}"
    except Error as error:
        assert fault is not None, f"stopped without reason: {error}\n{text}"
        outcome = "stopped"
    for inner, whole in fences:
        outside = np.concatenate([whole[:MARGIN], whole[MARGIN + inner.size :]])
        assert (outside == np.array(CANARY).astype(whole.dtype)).all(), f"writes outside\n{text}"
    return outcome


def main(first: int, count: int) -> None:
    """Run programs; print how many came to which end."""
    found: dict[str, int] = {}
    for seed in range(first, first + count):
        print(seed, file=sys.stderr, flush=True)
        try:
            outcome = verdict(seed)
        except AssertionError as fault:
            print(f"seed {seed}: {fault}")
            outcome = "wrong"
        found[outcome] = found.get(outcome, 0) + 1
    print(found)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))

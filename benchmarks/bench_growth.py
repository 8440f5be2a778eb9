"""How the time to compile grows with a program: repeated layers, folds and mixed ops, for every target's text.

    python benchmarks/bench_growth.py [--programs softmax ..] [--targets llvm opencl ptx] [--quick] [--passes 5]

Every row is a step: the trace, all passes together, the slowest passes, the text of the target, and for CPUs LLVM.
The exponent is the slope of log(processor seconds) over log(size): 1 is linear.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable
from typing import Any

import harness
import numpy as np
from bench_deep import exponent

QUICK = 3
"""Sizes of each program in a quick run."""


def layers(count: int) -> tuple[Any, list[Any]]:
    """Layers of a matrix product and tanh, with the gradient of both arguments."""
    from nablair import autograd as ag

    def function(x: Any, w: Any) -> Any:
        for _ in range(count):
            x = ag.tanh(x @ w)
        return ag.sum(x)

    return ag.value_and_grad(function, argnums=(0, 1)), [array(16, 16), array(16, 16)]


def softmaxes(count: int) -> tuple[Any, list[Any]]:
    """Softmaxes in a row."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        for _ in range(count):
            x = ag.softmax(x, axis=-1)
        return x

    return function, [array(16, 33)]


def layer_norms(count: int) -> tuple[Any, list[Any]]:
    """Layer norms in a row, with the gradient."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        for _ in range(count):
            apart = x - ag.mean(x, axis=-1, keepdims=True)
            x = apart / ag.sqrt(ag.mean(apart * apart, axis=-1, keepdims=True) + 1e-5)
        return ag.sum(x)

    return ag.value_and_grad(function), [array(16, 33)]


def mixed(count: int) -> tuple[Any, list[Any]]:
    """Ops of all kinds, drawn, each of one or two of the last few values."""
    from nablair import autograd as ag

    unary: list[Callable[[Any], Any]] = [
        ag.sin,
        ag.tanh,
        lambda v: v * 0.5,
        lambda v: v - ag.max(v, axis=-1, keepdims=True),
        lambda v: v + ag.mean(v, axis=0, keepdims=True),
        lambda v: ag.flip(v, axis=1),
    ]

    def function(x: Any) -> Any:
        draw = random.Random(count)
        values = [x]
        while len(values) < count:
            if draw.random() < 0.6:
                values.append(draw.choice(unary)(draw.choice(values[-4:])))
            else:
                values.append(0.5 * (draw.choice(values[-4:]) + draw.choice(values[-4:])))
        return sum(values[-4:])

    return function, [array(16, 16)]


def array(*shape: int) -> Any:
    """An argument."""
    return np.linspace(-1, 1, math.prod(shape), dtype=np.float32).reshape(shape)


PROGRAMS: dict[str, tuple[Callable[[int], tuple[Any, list[Any]]], tuple[int, ...]]] = {
    "layers": (layers, (60, 120, 240, 480, 960)),
    "softmax": (softmaxes, (5, 10, 20, 40, 80)),
    "layer_norm": (layer_norms, (5, 10, 20, 40)),
    "mixed": (mixed, (1_000, 2_000, 4_000)),
}
"""Name -> what makes the program of a size, and the sizes: layers, folds or ops."""


def measure(make: Callable[[int], tuple[Any, list[Any]]], size: int, target: str) -> dict[str, float]:
    """Processor seconds of each step for one program."""
    from nablair import autograd as ag
    from nablair.lowering.targets import TARGETS
    from nablair.passes.manager import Instrumentation, PassManager
    from nablair.runtime import native

    class Times(Instrumentation):
        def before(self, pass_: Any, op: Any) -> None:
            self.started = time.process_time()

        def after(self, pass_: Any, op: Any) -> None:
            name = f"  {pass_.name}"
            seconds[name] = seconds.get(name, 0.0) + time.process_time() - self.started

    seconds: dict[str, float] = {}

    def timed(name: str, step: Callable[[], Any]) -> Any:
        start = time.process_time()
        found = step()
        seconds[name] = time.process_time() - start
        return found

    function, arguments = make(size)
    arrays = [ag.asarray(a) for a in arguments]
    module = timed("trace", lambda: ag.jit(function).lower(*arrays).module).clone()
    row = TARGETS[target]
    manager = PassManager.parse(row.pipeline, verify_each=False, restore=False, instrumentations=[Times()])
    timed("passes", lambda: manager.run(module))
    text = timed("text", lambda: row.text(module))
    if target == "llvm":
        timed("LLVM", lambda: native.assembly(text, name=target))
    return seconds


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--programs", nargs="+", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--targets", nargs="+", choices=["llvm", "opencl", "ptx"], default=["llvm", "opencl", "ptx"])
    parser.add_argument("--passes", type=int, default=5, help="how many of the slowest passes to show")
    given = parser.parse_args()
    harness.restart(given.threads)
    print(harness.header(("nablair", "numpy", "llvmlite"), given.threads))
    for target in given.targets:
        for name in given.programs:
            make, sizes = PROGRAMS[name]
            if given.quick:
                sizes = tuple(size // 4 for size in sizes[:QUICK])
            measure(make, max(1, sizes[0] // 4), target)
            runs = [measure(make, size, target) for size in sizes]
            last = runs[-1]
            slowest = sorted((n for n in last if n.startswith(" ")), key=last.__getitem__, reverse=True)[: given.passes]
            print(f"\n{f'{name}, {target}':26}" + "".join(f"{size:>12,}" for size in sizes) + "    exponent")
            for step in ["trace", "passes", *slowest, "text", *(["LLVM"] if "LLVM" in last else [])]:
                times = [max(run.get(step, 0.0), 1e-9) for run in runs]
                slope = exponent(sizes, times)
                print(
                    f"{step:26}" + "".join(f"{harness.duration(t):>12}" for t in times) + f"{slope:12.2f}", flush=True
                )


if __name__ == "__main__":
    main()

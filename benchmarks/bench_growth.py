"""How compile time grows with a program: passes, emission and LLVM, for programs of many launches, folds and ops.

    python benchmarks/bench_growth.py [--only softmax] [--target cpu] [--passes 5] [--llvm] [--quick]

Each family is compiled at several sizes.  The exponent is the slope of log(seconds) over log(size): 1 is linear.
"passes" is all that nablair does from the traced module to the target's text, without LLVM; the passes that take
longest, or grow fastest, follow in lines of their own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import harness
import numpy as np

Array = np.ndarray[Any, Any]
LEAST = 0.02
"""Seconds below which the growth of a pass says nothing."""


def layers(launches: int) -> tuple[Callable[..., Any], list[Array]]:
    """tanh(x @ w) again and again, with the gradient of w: about two launches a layer."""
    from nablair import autograd as ag

    def loss(x: Any, w: Any) -> Any:
        for _ in range(launches // 3):
            x = ag.tanh(x @ w)
        return ag.sum(x)

    return ag.grad(loss, argnums=1), [np.ones((16, 16), np.float32)] * 2


def softmaxes(count: int) -> tuple[Callable[..., Any], list[Array]]:
    """softmax of softmax of .."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        for _ in range(count):
            x = ag.softmax(x, axis=-1)
        return x

    return function, [np.ones((8, 64), np.float32)]


def layer_norms(count: int) -> tuple[Callable[..., Any], list[Array]]:
    """layer_norm of layer_norm of .., with gradients."""
    from nablair import autograd as ag

    def loss(x: Any, w: Any, b: Any) -> Any:
        for _ in range(count):
            x = ag.layer_norm(x, w, b)
        return ag.sum(x * x)

    row = np.ones(64, np.float32)
    return ag.grad(loss, argnums=(0, 1, 2)), [np.ones((8, 64), np.float32), row, row]


def mixed(ops: int) -> tuple[Callable[..., Any], list[Array]]:
    """Elementwise ops, transposes, slices and folds over values drawn from the last twenty."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        random = np.random.default_rng(0)
        known = [x, x * 0.5]
        while len(known) < ops:
            a, b = (known[-1 - random.integers(min(20, len(known)))] for _ in range(2))
            kind = random.integers(12)
            if kind < 5:
                known.append((a + b) * 0.5)
            elif kind < 8:
                known.append(ag.tanh(a) * b)
            elif kind == 8:
                known.append(ag.permute_dims(a, (1, 0)) - b)
            elif kind == 9:
                known.append(a - ag.mean(b, axis=-1, keepdims=True))
            elif kind == 10:
                known.append(ag.where(a > b, a, 0.5 * b))
            else:
                known.append(ag.concat([a[:4], b[4:]], axis=0))
        return known[-1] + known[-2]

    return function, [np.ones((8, 8), np.float32)]


def doublings(count: int) -> tuple[Callable[..., Any], list[Array]]:
    """x + x again and again: 2**count paths."""

    def function(x: Any) -> Any:
        for _ in range(count):
            x = x + x
        return x

    return function, [np.ones((8, 8), np.float32)]


def readers(count: int) -> tuple[Callable[..., Any], list[Array]]:
    """Many results of one value, each a launch of its own shape."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        y = ag.exp(x)
        return [ag.sum(y[i % 8 :] * float(i), axis=0) for i in range(count)]

    return function, [np.ones((16, 8), np.float32)]


Family = Callable[[int], tuple[Callable[..., Any], list[Array]]]
"""A function and arguments for it, of a size."""
FAMILIES: dict[str, tuple[Family, tuple[int, ...]]] = {
    "launches of layers": (layers, (60, 120, 240, 480, 960)),
    "softmaxes": (softmaxes, (5, 10, 20, 40, 80)),
    "layer norms, gradients": (layer_norms, (5, 10, 20, 40)),
    "mixed ops": (mixed, (1000, 2000, 4000)),
    "doublings": (doublings, (50, 100, 200, 400)),
    "readers of one value": (readers, (50, 100, 200, 400)),
}
TEXTS = {"cpu": "llvm", "opencl": "opencl", "cuda": "ptx"}
"""The text of each kind of device."""


def compiled(module: Any, target: str, llvm: bool) -> dict[str, float]:
    """Processor seconds of each pass from a traced module to the target's text, of the text, and of LLVM."""
    from nablair.ir.attribute_names import TARGET
    from nablair.ir.target import DEFAULTS
    from nablair.lowering.targets import TARGETS
    from nablair.passes.manager import Instrumentation, PassManager

    class Clock(Instrumentation):
        """Processor time by pass."""

        def __init__(self) -> None:
            self.seconds: dict[str, float] = {}
            self.began = 0.0

        def before(self, pass_: Any, op: Any) -> None:
            self.began = time.process_time()

        def after(self, pass_: Any, op: Any) -> None:
            self.seconds[pass_.name] = self.seconds.get(pass_.name, 0.0) + time.process_time() - self.began

    clock, row = Clock(), TARGETS[TEXTS[target]]
    module = module.clone()
    module.attributes[TARGET] = DEFAULTS[target].attribute()
    manager = PassManager.parse(row.pipeline, verify_each=False, restore=False, warn=False)
    manager.instrumentations.append(clock)
    manager.run(module)
    began = time.process_time()
    text = row.text(module)
    clock.seconds["text"] = time.process_time() - began
    if llvm:
        from nablair.runtime.native import compile_object

        began = time.process_time()
        compile_object(text, name="growth")
        clock.seconds["LLVM"] = time.process_time() - began
    return clock.seconds


def measure(
    make: Callable[[int], tuple[Callable[..., Any], list[Array]]], size: int, target: str, llvm: bool
) -> dict[str, float]:
    """Processor seconds of each step for a program of a size."""
    from nablair import autograd as ag

    function, arrays = make(size)
    jitted = ag.jit(function)
    began = time.process_time()
    module = jitted.lower(*arrays).module
    seconds = {"trace": time.process_time() - began}
    return seconds | compiled(module, target, llvm)


def report(name: str, sizes: Sequence[int], rows: dict[str, list[float]], shown: int) -> None:
    """A line for the passes together, for the trace and LLVM, and for the passes that stand out."""
    own = {k: v for k, v in rows.items() if k not in ("trace", "LLVM")}
    total = [sum(v[i] for v in own.values()) for i in range(len(sizes))]
    lines = {"passes": total, **{k: rows[k] for k in ("trace", "LLVM") if k in rows}}
    dear = sorted(own, key=lambda k: -own[k][-1])[:shown]
    steep = [k for k in own if own[k][-1] > LEAST and harness.exponent(sizes, own[k]) > 1.2]
    lines |= {f"  {k}": own[k] for k in [*dear, *[k for k in steep if k not in dear]]}
    print(f"{name:26}" + "".join(f"{size:>12,}" for size in sizes) + "    exponent")
    for line, seconds in lines.items():
        slope = harness.exponent(sizes, seconds) if len(sizes) > 1 else math.nan
        print(f"  {line:24}" + "".join(f"{harness.duration(s):>12}" for s in seconds) + f"{slope:12.2f}", flush=True)


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--only", help="the families whose name holds this")
    parser.add_argument("--target", choices=TEXTS, default="cpu")
    parser.add_argument("--llvm", action="store_true", help="time LLVM too")
    parser.add_argument("--passes", type=int, default=3, help="how many of the dearest passes are shown")
    given = parser.parse_args()
    llvm: bool = given.llvm and given.target == "cpu"
    harness.restart(given.threads)
    print(harness.header(("nablair", "numpy", "llvmlite"), given.threads))
    measure(softmaxes, 2, given.target, llvm)
    for name, (make, sizes) in FAMILIES.items():
        if given.only and given.only not in name:
            continue
        used = sizes[:2] if given.quick else sizes
        rows: dict[str, list[float]] = {}
        for size in used:
            for step, seconds in measure(make, size, given.target, llvm).items():
                rows.setdefault(step, []).append(seconds)
        report(name, used, rows, given.passes)


if __name__ == "__main__":
    main()

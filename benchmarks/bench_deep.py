"""Long programs: chains of thousands of ops, traced, differentiated, compiled and run.

    python benchmarks/bench_deep.py [--sizes 2500 5000 10000 20000] [--quick]

The exponent is the slope of log(seconds) over log(ops): 1 is linear.
"""

from __future__ import annotations

import math
import time
from typing import Any

import harness
import numpy as np

SIZES = (2_500, 5_000, 10_000, 20_000)


def chain(ops: int) -> Any:
    """A function of `ops` elementwise ops, one after the other, that stays bounded."""
    from nablair import autograd as ag

    def function(x: Any) -> Any:
        y = x
        for i in range(ops // 2):
            y = ag.sin(y) if i % 50 == 49 else y * 0.999
            y = y + 0.001
        return ag.sum(y)

    return function


def measure(ops: int) -> dict[str, float]:
    """Processor seconds of a chain's trace, its gradient's trace, and the first and second run of both values."""
    from nablair import autograd as ag

    x = ag.asarray(np.linspace(-1, 1, 256, dtype=np.float32))
    function = chain(ops)
    compiled = ag.jit(ag.value_and_grad(function))
    steps: dict[str, Any] = {
        "trace": lambda: ag.jit(function).lower(x),
        "trace and differentiate": lambda: ag.jit(ag.grad(function)).lower(x),
        "first value and gradient": lambda: np.asarray(compiled(x)[1]),
        "second": lambda: np.asarray(compiled(x)[1]),
    }
    times: dict[str, float] = {}
    for name, step in steps.items():
        start = time.process_time()
        step()
        times[name] = time.process_time() - start
    return times


def main() -> None:
    parser = harness.arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    given = parser.parse_args()
    sizes: list[int] = given.sizes[:2] if given.quick else given.sizes
    harness.restart(given.threads)
    print(harness.header(("nablair", "numpy", "llvmlite"), given.threads))
    measure(100)
    rows: dict[str, list[float]] = {}
    print(f"{'ops':26}" + "".join(f"{size:>12,}" for size in sizes) + "    exponent", flush=True)
    for size in sizes:
        for name, seconds in measure(size).items():
            rows.setdefault(name, []).append(seconds)
    for name, seconds in rows.items():
        slope = harness.exponent(sizes, seconds) if len(sizes) > 1 else math.nan
        print(f"{name:26}" + "".join(f"{harness.duration(s):>12}" for s in seconds) + f"{slope:12.2f}")


if __name__ == "__main__":
    main()

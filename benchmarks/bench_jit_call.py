"""What a call costs beside the work: jit with arrays, structures, numbers and captured state, and eager ops.

    python benchmarks/bench_jit_call.py [--rounds 7] [--calls 2000]

Times are the best round's, in microseconds a call, on Tensors of 16 elements.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nablair import autograd as ag


def best(run: Callable[[], Any], calls: int, rounds: int) -> float:
    """Microseconds a call in the fastest round, after enough calls that everything is prepared."""
    for _ in range(20):
        run()
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - start) / calls * 1e6)
    return min(times)


def cases() -> dict[str, Callable[[], Any]]:
    """What is called."""
    x, y, z = (ag.asarray(np.linspace(0, 1, 16, dtype=np.float32)) for _ in range(3))
    arrays = x.numpy().copy(), y.numpy().copy(), z.numpy().copy()
    tree = {"a": x, "b": [y, z]}
    scale = 3.0
    parameter = ag.Tensor(np.ones(16, np.float32), requires_grad=True)
    optimizer = ag.optim.SGD([parameter], 0.01, momentum=0.9)

    def chain(a: Any, b: Any, c: Any) -> Any:
        return ag.tanh(ag.relu((a + b) * c))

    def step(a: Any) -> Any:
        optimizer.zero_grad()
        loss = ag.sum((parameter - a) ** 2)
        loss.backward()
        optimizer.step()
        return loss

    one, two, three = ag.jit(lambda a: a * a), ag.jit(lambda a, b: a * b), ag.jit(chain)
    pair = ag.jit(lambda a, b: (a + b, a - b))
    guarded, nested = ag.jit(lambda a: a * scale), ag.jit(lambda t: chain(t["a"], *t["b"]))
    number, trained = ag.jit(lambda a, k: a * k), ag.jit(step)
    return {
        "jit, 1 Tensor": lambda: one(x),
        "jit, 2 Tensors": lambda: two(x, y),
        "jit, 3 Tensors": lambda: three(x, y, z),
        "jit, 3 ndarrays": lambda: three(*arrays),
        "jit, 2 results": lambda: pair(x, y),
        "jit, a guarded number": lambda: guarded(x),
        "jit, a training step": lambda: trained(x),
        "jit, a dict of 3 Tensors": lambda: nested(tree),
        "jit, a Tensor and a number": lambda: number(x, 2.5),
        "numpy.multiply": lambda: np.multiply(arrays[0], arrays[1]),
        "an eager op, recorded": lambda: x * y,
        "an eager op with a number, recorded": lambda: x * 0.3,
        "an eager op, read": lambda: (x * y).numpy(),
        "an eager chain of 4, read": lambda: chain(x, y, z).numpy(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=2000)
    options = parser.parse_args()
    for name, run in cases().items():
        print(f"{name:40s} {best(run, options.calls, options.rounds):8.2f} us", flush=True)


if __name__ == "__main__":
    main()

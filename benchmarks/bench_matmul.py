"""Compiled f32 matrix products on one core, against the peak of fused multiply-adds measured in the same run.

    python benchmarks/bench_matmul.py [sizes..]

The peak is a loop of independent FMAs, as many as there are registers for.  Both are timed by turns, in processor time
of the thread, and the best of each counts, so that a machine shared with others disturbs the ratio little.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nablair.ir.dialects.builtin import Module
from nablair.ir.parser import parse_module
from nablair.runtime.compile import compile_function
from nablair.runtime.host import host_features
from nablair.runtime.native import NativeModule, compile_ir

TRIPS = 20_000
SECONDS = 0.4


def peak_text(lanes: int, chains: int) -> str:
    """A function of `chains` independent FMAs, TRIPS times."""
    vector = f"<{lanes} x float>"
    lines = [
        f"define void @peak(ptr %out) #0 {{\nentry:\n  %x = load {vector}, ptr %out, align 4\n  br label %loop\nloop:"
    ]
    lines.append("  %i = phi i64 [ 0, %entry ], [ %n, %loop ]")
    lines += [f"  %a{c} = phi {vector} [ %x, %entry ], [ %b{c}, %loop ]" for c in range(chains)]
    name = f"llvm.fma.v{lanes}f32"
    lines += [f"  %b{c} = call {vector} @{name}({vector} %x, {vector} %x, {vector} %a{c})" for c in range(chains)]
    lines += ["  %n = add i64 %i, 1", f"  %more = icmp slt i64 %n, {TRIPS}"]
    lines += ["  br i1 %more, label %loop, label %done", "done:"]
    lines += [f"  store volatile {vector} %b{c}, ptr %out, align 4" for c in range(chains)]
    lines += ["  ret void\n}", f"declare {vector} @{name}({vector}, {vector}, {vector})"]
    bits = lanes * 32
    lines.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}')
    return "\n".join(lines) + "\n"


def peak() -> tuple[Callable[[], Any], float, NativeModule]:
    """The loop, the floating-point operations of a call, and what must stay alive."""
    bits = host_features().vector_bits
    lanes, chains = bits // 32, 24 if bits == 512 else 12
    module = compile_ir(peak_text(lanes, chains), name="peak")
    buffer = (ctypes.c_float * lanes)()
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(module.address("peak"))
    return lambda: run(ctypes.addressof(buffer)), 2.0 * lanes * chains * TRIPS, module


def product(m: int, n: int, k: int) -> Module:
    """The function of two arrays."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    module = parse_module(
        f"func.func @main(%a: {a}, %b: {b}) -> {c} {{\n"
        f"  %c = linalg.matmul %a, %b : {a}, {b} -> {c}\n"
        f"  return %c : {c}\n}}"
    )
    assert isinstance(module, Module)
    return module


def entry(compiled: Any, arrays: list[Any]) -> Callable[[], Any]:
    """A call of the native code on arrays that do not change."""
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays))(compiled.native.address("main"))
    addresses = [array.ctypes.data for array in arrays]
    return lambda: run(*addresses)


def best_of(contestants: list[Callable[[], Any]]) -> list[float]:
    """The least processor seconds of a call of each, timed by turns."""
    best = [float("inf")] * len(contestants)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for i, run in enumerate(contestants):
            start = time.thread_time()
            run()
            best[i] = min(best[i], time.thread_time() - start)
    return best


def main(sizes: list[int]) -> None:
    """Print a line for each size."""
    os.environ["NABLAIR_NUM_THREADS"] = "1"
    loop, flops, _keep = peak()
    random = np.random.default_rng(0)
    for size in sizes:
        start = time.perf_counter()
        compiled = compile_function(product(size, size, size))
        latency = time.perf_counter() - start
        a, b = (random.standard_normal((size, size), dtype=np.float32) for _ in range(2))
        out = np.empty((size, size), np.float32)
        call = entry(compiled, [a, b, out])
        times = max(1, 10**7 // size**3)
        seconds, top = best_of([lambda call=call, times=times: [call() for _ in range(times)], loop])
        seconds /= times
        ours, limit = 2.0 * size**3 / seconds / 1e9, flops / top / 1e9
        error = float(np.abs(out - a.astype(np.float64) @ b).max())
        print(
            f"{size:5d}: {ours:7.1f} GFLOP/s of {limit:.1f}, {ours / limit:.0%}; largest error {error:.1e}; "
            f"compiled in {latency * 1e3:.0f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main([int(a) for a in sys.argv[1:]] or [64, 256, 512, 1024])

"""What a person waits for: import, a tool on a small file, the first result of a compiled function.

    python benchmarks/bench_startup.py [--quick]

Each figure is the median processor time of a whole process, the start of Python included; the bare start stands beside
them.  NumPy's share of a first result is its own import.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import harness

TEN_OPS = """func.func @main(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.muli %0, %b : i32
  %2 = arith.subi %1, %a : i32
  %3 = arith.xori %2, %0 : i32
  %4 = arith.andi %3, %1 : i32
  %5 = arith.ori %4, %2 : i32
  %6 = arith.addi %5, %3 : i32
  %7 = arith.muli %6, %6 : i32
  return %7 : i32
}
"""
FIRST_RESULT = """
import numpy as np
from nablair import autograd as ag
x = ag.asarray(np.ones((64, 64), np.float32))
ag.jit(lambda x: ag.tanh(x * 2.0))(x).numpy()
"""
FIRST_GRADIENT = """
import numpy as np
from nablair import autograd as ag
x = ag.asarray(np.ones((64, 64), np.float32))
ag.jit(ag.grad(lambda x: ag.sum(ag.tanh(x * 2.0))))(x).numpy()
"""


def median(command: Sequence[str], repeat: int) -> float:
    """Processor seconds of a process, its first run not counted."""
    times: list[float] = []
    for _ in range(repeat + 1):
        before = children()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(children() - before)
    return statistics.median(times[1:])


def children() -> float:
    """Processor seconds of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    given = harness.arguments(__doc__).parse_args()
    print(harness.header(("nablair", "numpy", "llvmlite")))
    repeat = 3 if given.quick else 9
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ten.mlir"
        file.write_text(TEN_OPS)
        python = sys.executable
        rows: list[tuple[str, Sequence[str]]] = [
            ("start of Python", [python, "-c", "pass"]),
            ("import nablair", [python, "-c", "import nablair"]),
            ("import numpy", [python, "-c", "import numpy"]),
            ("from nablair import autograd", [python, "-c", "from nablair import autograd"]),
            ("ir-opt on ten ops", [python, "-m", "nablair.tools.ir_opt", str(file)]),
            (
                "ir-opt --canonicalize --cse on ten ops",
                [python, "-m", "nablair.tools.ir_opt", str(file), "--canonicalize", "--cse"],
            ),
            ("first jitted result", [python, "-c", FIRST_RESULT]),
            ("first jitted gradient", [python, "-c", FIRST_GRADIENT]),
        ]
        bare = 0.0
        for title, command in rows:
            seconds = median(command, repeat)
            bare = bare or seconds
            print(
                f"{title:40} {seconds * 1000:7.1f} ms   over the bare start {(seconds - bare) * 1000:7.1f} ms",
                flush=True,
            )


if __name__ == "__main__":
    main()

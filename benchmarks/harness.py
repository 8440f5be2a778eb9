"""What the benchmarks share: contestants side by side in one process, medians, ratios, and a header with the facts.

Contestants take turns: in each round every one runs for some milliseconds, so that a busy moment of the machine meets
all of them.  Those whose libraries keep threads spinning after a call are followed by a short sleep.  Before anything
is timed each contestant runs once and its result is compared with the first one's: a ratio between two different
computations would say nothing.  Read the ratios; the times themselves belong to the machine that is printed above them.

On one processor the clock is the processor time of the whole process: that is what passes on an idle machine, and what
others do on the same machine does not count.  On several it is the time on the wall.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

REST = 0.015
"""Seconds that threads of the last contestant get to fall asleep."""
SLICE = 0.004
"""Seconds that a contestant runs in each round, at least."""
WARM_UP = 3
"""Calls before the first that counts: a function that is called again may still be prepared for that."""
FOREIGN_SETTINGS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
"""Settings that would make NumPy's OpenBLAS run with the kernels of another processor."""
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NABLAIR_NUM_THREADS",
)


class Missing(Exception):
    """A contestant that is not installed, or has no device here; the message says why."""


@dataclass
class Contestant:
    """A library's way to compute something.

    `run` computes and waits for the result; `array` turns what `run` gave into NumPy arrays; `spins` says that its
    threads go on spinning after a call.
    """

    name: str
    run: Callable[[], Any]
    array: Callable[[Any], Any] = np.asarray
    spins: bool = False


@dataclass
class Result:
    """The median seconds of each contestant, and remarks."""

    seconds: dict[str, float]
    first: dict[str, float]
    """Seconds of the first call: tracing and compiling."""
    remarks: list[str] = field(default_factory=list[str])


def restart(threads: int) -> None:
    """Run this command anew, once, without settings that distort a comparison and with `threads` for every library."""
    environment = {name: value for name, value in os.environ.items() if name not in FOREIGN_SETTINGS}
    environment |= dict.fromkeys(THREAD_SETTINGS, str(threads))
    if threads == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    if environment != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)
    processors = sorted(os.sched_getaffinity(0))
    if threads < len(processors):
        os.sched_setaffinity(0, processors[:threads])


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The flags that all benchmarks have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1, help="processors to run on (1)")
    parser.add_argument("--quick", action="store_true", help="few rounds, to see that all of it runs")
    return parser


def version(package: str) -> str:
    """The installed version of a package, or `missing`."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def processor() -> str:
    """The name of the processor."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def header(packages: Sequence[str], threads: int | None = None) -> str:
    """Date, machine, versions and threads."""
    lines = [
        f"date      {time.strftime('%Y-%m-%d')}",
        f"machine   {processor()}, {os.cpu_count()} processors, {platform.system()} {platform.machine()}",
        f"versions  Python {platform.python_version()}, " + ", ".join(f"{p} {version(p)}" for p in packages),
    ]
    if threads is not None:
        clock = "processor time" if threads == 1 else "time on the wall"
        lines.append(f"threads   {threads} for every contestant; {clock}")
    return "\n".join(lines)


def compete(
    contestants: Sequence[Contestant], *, threads: int = 1, rounds: int = 15, tolerance: float = 1e-3
) -> Result:
    """Time contestants in turns.  Results that differ from the first contestant's are remarked upon, not hidden."""
    clock = time.process_time if threads == 1 else time.perf_counter
    result = Result({}, {})
    ready: list[tuple[Contestant, int]] = []
    expected: list[np.ndarray[Any, Any]] | None = None
    for contestant in contestants:
        start = time.perf_counter()
        try:
            value = contestant.run()
            result.first[contestant.name] = time.perf_counter() - start
            arrays = flat(contestant.array(value))
        except Exception as error:
            result.remarks.append(
                f"{contestant.name} left out: {type(error).__name__}: {str(error).splitlines()[0][:100]}"
            )
            continue
        if expected is None:
            expected = arrays
        elif not agree(expected, arrays, tolerance):
            result.remarks.append(f"{contestant.name} gives other values than {contestants[0].name}")
        for _ in range(WARM_UP):
            contestant.run()
        ready.append((contestant, repetitions(contestant.run)))
    times: dict[str, list[float]] = {contestant.name: [] for contestant, _ in ready}
    for _ in range(rounds):
        for contestant, number in ready:
            run = contestant.run
            run()
            start = clock()
            for _ in range(number):
                run()
            times[contestant.name].append((clock() - start) / number)
            if contestant.spins:
                time.sleep(REST)
    result.seconds = {name: statistics.median(seconds) for name, seconds in times.items()}
    return result


def repetitions(run: Callable[[], Any]) -> int:
    """How many calls fill a slice."""
    number = 1
    while True:
        start = time.perf_counter()
        for _ in range(number):
            run()
        taken = time.perf_counter() - start
        if taken >= SLICE:
            return number
        number = max(number * 2, min(number * 100, int(number * SLICE / max(taken, 1e-9))))


def flat(value: Any) -> list[np.ndarray[Any, Any]]:
    """An array, or the arrays of a nested tuple in order."""
    if isinstance(value, tuple | list):
        return [array for part in value for array in flat(part)]
    return [np.asarray(value)]


def agree(expected: Sequence[np.ndarray[Any, Any]], found: Sequence[np.ndarray[Any, Any]], tolerance: float) -> bool:
    """Whether arrays have one shape and nearly the same values."""
    return len(expected) == len(found) and all(
        e.shape == f.shape
        and np.allclose(e, f, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(e).max(initial=0))))
        for e, f in zip(expected, found, strict=True)
    )


def exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """How seconds grow with sizes: the slope of the line of least squares through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log([max(s, 1e-6) for s in seconds]), 1)[0])


def duration(seconds: float) -> str:
    """`1.23 us`, `4.56 ms`, `7.89 s`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def table(rows: Mapping[str, Result], names: Sequence[str], base: str = "nablair") -> str:
    """A row for each workload: the base's time, and how many times as long each other contestant takes."""
    width = max(map(len, rows), default=8)
    others = [n for n in names if n != base]
    lines = [f"{'':{width}}  {base:>10}" + "".join(f"  {n:>16}" for n in others) + "   first call"]
    remarks: list[str] = []
    for name, result in rows.items():
        own = result.seconds.get(base)
        line = f"{name:{width}}  {duration(own) if own else '-':>10}"
        for other in others:
            seconds = result.seconds.get(other)
            if seconds is None:
                line += f"  {'-':>16}"
            else:
                ratio = f" ({seconds / own:.3g}x)" if own else ""
                line += f"  {duration(seconds) + ratio:>16}"
        lines.append(line + f"   {duration(result.first[base]) if base in result.first else '-':>10}")
        remarks += [f"  {name}: {remark}" for remark in result.remarks]
    return "\n".join(lines + remarks)

"""Speed of the IR core: parse, print, verify, clone and the cleanup passes, in thousand ops a second; memory of an op.

    python benchmarks/bench_ir.py [--sizes 10000 100000] [--repeat 3] [--xdsl] [--mlir-opt]

The module holds functions of a thousand arithmetic ops each, constants included; nearly all of them are used.  `--xdsl`
measures xDSL on the same text (the package must be installed), `--mlir-opt` the real tool, its start included.
"""

from __future__ import annotations

import argparse
import gc
import io
import random
import shutil
import subprocess
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

BODY = 1000
OPS = ("addi", "muli", "subi", "andi", "ori", "xori")


def source(size: int, generic: bool = False) -> str:
    """The text of a module with `size` ops, the same at every call."""
    rng = random.Random(size)
    out: list[str] = ['"builtin.module"() ({' if generic else "module {"]
    for number in range(max(1, size // BODY)):
        if generic:
            out.append(f'"func.func"() <{{function_type = (i32, i32) -> i32, sym_name = "f{number}"}}> ({{')
            out.append("^bb0(%a: i32, %b: i32):")
        else:
            out.append(f"  func.func @f{number}(%a: i32, %b: i32) -> i32 {{")
        names = ["%a", "%b"]
        for i in range(min(BODY, size) - 2):
            if i % 20 == 0:
                value = rng.randrange(100)
                if generic:
                    out.append(f'%{i} = "arith.constant"() <{{value = {value} : i32}}> : () -> i32')
                else:
                    out.append(f"    %{i} = arith.constant {value} : i32")
            else:
                op, x, y = rng.choice(OPS), names[-1], rng.choice(names[-30:])
                if generic:
                    out.append(f'%{i} = "arith.{op}"({x}, {y}) : (i32, i32) -> i32')
                else:
                    out.append(f"    %{i} = arith.{op} {x}, {y} : i32")
            names.append(f"%{i}")
        if generic:
            out.append(f'"func.return"({names[-1]}) : (i32) -> ()')
            out.append("}) : () -> ()")
        else:
            out.append(f"    return {names[-1]} : i32")
            out.append("  }")
    out.append("}) : () -> ()" if generic else "}")
    return "\n".join(out) + "\n"


def best(run: Callable[[], Any], repeat: int) -> float:
    """The least time of several runs, in seconds."""
    times: list[float] = []
    for _ in range(repeat):
        gc.collect()
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
        del result
    return min(times)


def memory(parse: Callable[[str], Any], size: int) -> float:
    """Bytes for each op that a parsed module keeps, its share of interned attributes included."""
    held = [parse(source(1000))]  # what a first parse imports and caches is not the module's
    text = source(size)
    gc.collect()
    tracemalloc.start()
    held.append(parse(text))
    gc.collect()
    found = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return found / size


def nablair(size: int, repeat: int) -> dict[str, float]:
    """Seconds for each step of this toolkit."""
    from nablair.ir.parser import parse_module
    from nablair.ir.printer import print_op
    from nablair.ir.verifier import verify

    generic, custom = source(size, generic=True), source(size)
    module = parse_module(custom)
    print(f"nablair  {size:>9,} ops  {'memory':14} {memory(parse_module, size):9.0f} bytes an op")
    times = {
        "parse generic": best(lambda: parse_module(generic), repeat),
        "parse custom": best(lambda: parse_module(custom), repeat),
        "verify": best(lambda: verify(module), repeat),
        "print": best(lambda: print_op(module), repeat),
        "print generic": best(lambda: print_op(module, generic=True), repeat),
        "clone": best(module.clone, repeat),
    }
    for name in ("cse", "dce", "canonicalize"):
        times[name] = min(pass_time(name, module) for _ in range(repeat))
    return times


def pass_time(name: str, module: Any) -> float:
    """Seconds of one pass on a copy of the module."""
    from nablair.passes.manager import PassManager

    copy = module.clone()
    manager = PassManager.parse(name, verify_each=False, restore=False)
    gc.collect()
    start = time.perf_counter()
    manager.run(copy)
    return time.perf_counter() - start


def xdsl(size: int, repeat: int) -> dict[str, float]:
    """Seconds for the same steps of xDSL."""
    from xdsl.context import Context
    from xdsl.dialects import arith, builtin, func
    from xdsl.parser import Parser
    from xdsl.printer import Printer

    def parse(text: str) -> Any:
        context = Context()
        for dialect in (builtin.Builtin, arith.Arith, func.Func):
            context.load_dialect(dialect)
        return Parser(context, text).parse_module()

    generic, custom = source(size, generic=True), source(size)
    module = parse(custom)
    print(f"xdsl     {size:>9,} ops  {'memory':14} {memory(parse, size):9.0f} bytes an op")
    return {
        "parse generic": best(lambda: parse(generic), repeat),
        "parse custom": best(lambda: parse(custom), repeat),
        "verify": best(module.verify, repeat),
        "print": best(lambda: Printer(stream=io.StringIO()).print_op(module), repeat),
        "clone": best(module.clone, repeat),
    }


def mlir_opt(size: int, repeat: int) -> dict[str, float]:
    """Seconds of the real tool: parse with verification, and the same with a pass, printing left out."""
    tool = shutil.which("mlir-opt-19") or shutil.which("mlir-opt")
    if tool is None:
        raise SystemExit("mlir-opt is not installed")

    def run(text: str, *flags: str) -> float:
        command = [tool, *flags, "-o", "/dev/null"]
        return best(lambda: subprocess.run(command, input=text, text=True, check=True), repeat)

    generic, custom = source(size, generic=True), source(size)
    plain = run(custom)
    times = {"parse generic": run(generic), "parse custom": plain}
    for name in ("cse", "canonicalize"):
        times[name] = run(custom, f"--{name}") - plain
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--xdsl", action="store_true")
    parser.add_argument("--mlir-opt", action="store_true")
    arguments = parser.parse_args()
    systems: list[tuple[str, Callable[[int, int], dict[str, float]]]] = [("nablair", nablair)]
    if arguments.xdsl:
        systems.append(("xdsl", xdsl))
    if arguments.mlir_opt:
        systems.append(("mlir-opt", mlir_opt))
    for size in arguments.sizes:
        for name, measure in systems:
            for step, seconds in measure(size, arguments.repeat).items():
                print(
                    f"{name:8} {size:>9,} ops  {step:14} {size / seconds / 1000:9.1f} kops/s  {seconds * 1000:9.1f} ms"
                )


if __name__ == "__main__":
    main()

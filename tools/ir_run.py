"""ir-run: runs a function of a module, at any level, and prints what comes out.

    ir-run model.mlir --args x.npy 3 random
    ir-run model.mlir --entry step --level cpu --args random --size n=64

`--level interp` is the reference interpreter, which takes every level of IR; the others compile tensor-level functions
(on the CPU functions on buffers too) for a device.  There a text is checked while it runs: an access outside of its
buffer ends the run with an error; `--unsafe` leaves the checks out.  An argument is a `.npy` file, a number, or
`random` (alone: all arguments).  Buffers that the function wrote are printed too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.diagnostics import Error
from . import command_line
from .command_line import GREEDY, LIST, SWITCH, VALUE, Arguments, Flag, UsageError

if TYPE_CHECKING:
    import numpy as np

    from ..ir.dialects.func import Func
    from ..ir.types import Type

FLAGS: dict[str, Flag] = {
    "help": Flag(SWITCH, "show this"),
    "version": Flag(SWITCH, "show the version"),
    "entry": Flag(VALUE, "the function to run (main, or the only one)", "NAME"),
    "args": Flag(GREEDY, "its arguments", "a.npy 3 random .."),
    "level": Flag(VALUE, "interp (default), cpu, opencl, ptx-sim, or another device's name", "LEVEL"),
    "pass-pipeline": Flag(VALUE, "run passes first (short: -p)", "PIPELINE"),
    "size": Flag(LIST, "the size that a symbol, or '?', has in random arguments (8)", "n=64"),
    "seed": Flag(VALUE, "the seed of random arguments (0)", "SEED"),
    "check": Flag(SWITCH, "let the interpreter look for undefined reads and races"),
    "unsafe": Flag(SWITCH, "leave out the checks that keep accesses inside of buffers"),
    "allow-unregistered-dialect": Flag(SWITCH, "accept ops of unknown dialects"),
    "load-plugin": Flag(LIST, "import a module that defines dialects or passes", "MODULE"),
    "traceback": Flag(SWITCH, "show Python's traceback of faults in passes and of internal errors"),
}
ALIASES = {"p": "pass-pipeline", "h": "help"}
DEFAULT_SIZE = 8


def main(words: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    given = sys.argv[1:] if words is None else words
    sources: dict[str, str] = {}
    try:
        arguments = command_line.parse(given, FLAGS, (), ALIASES)
        usage = "ir-run FILE [--entry NAME] [--args ..] [--level LEVEL]"
        about = command_line.about(arguments, usage, "Runs a function of a module.", FLAGS)
        if about is not None:
            print(about)
            return 0
        if len(arguments.files) != 1:
            files = ", ".join(arguments.files) or "none; a file comes before --args, which takes all words up to a flag"
            raise UsageError(f"one input file; got {files}")
        name = arguments.files[0]
        sources[name] = command_line.read_input(name)
        print("\n".join(run(arguments, name, sources[name])))
        return 0
    except Error as error:
        command_line.report(error, sources, "--traceback" in given)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except Exception as error:
        command_line.report_internal(error, "--traceback" in given)
    return 1


def run(arguments: Arguments, filename: str, text: str) -> list[str]:
    """Parse, transform, run; the lines to print."""
    from ..ir.parser import parse_module  # late
    from ..ir.verifier import verify  # late
    from .ir_opt import load_plugin  # late

    for plugin in arguments.all("load-plugin"):
        load_plugin(plugin)
    module = parse_module(text, filename, arguments.switch("allow-unregistered-dialect"))
    verify(module)
    pipeline = arguments.value("pass-pipeline")
    if pipeline is not None:
        from ..passes.manager import PassManager  # late
        from .ir_opt import reproducible  # late

        with reproducible(text, pipeline, arguments):
            PassManager.parse(pipeline, restore=False).run(module)
    function = entry(module, arguments.value("entry"))
    values = function_arguments(function, arguments)
    before = [v.copy() if hasattr(v, "copy") else v for v in values]
    level = arguments.value("level") or "interp"
    if level == "interp":
        if arguments.switch("unsafe"):
            raise UsageError("--unsafe is for devices (--level=cpu, ..); the interpreter always checks")
        from ..ir.interpreter.machine import Interpreter  # late

        results = Interpreter(module, check=arguments.switch("check")).call(function.sym_name, values)
    else:
        if arguments.switch("check"):
            raise UsageError(f"--check is the interpreter's (--level=interp), not that of '{level}'")
        from ..runtime.compile import compile_function  # late

        checked = not arguments.switch("unsafe")
        results = compile_function(module, function.sym_name, level, checked=checked).run(values)
    return [*describe_results(function, results), *describe_buffers(function, before, values)]


def entry(module: Any, name: str | None) -> Func:
    """The function to run."""
    functions = {f.sym_name: f for f in module.functions() if not f.is_declaration}
    public = [f for f in functions.values() if f.sym_visibility != "private"]
    if name is None and len(public) == 1:
        return public[0]
    found = functions.get(name or "main")
    if found is None:
        what = f"there is no function '@{name}'" if name else "there are several functions and none is '@main'"
        raise UsageError(f"{what}; --entry is one of: {', '.join(functions) or '(the module has no functions)'}")
    return found


def function_arguments(function: Func, arguments: Arguments) -> list[Any]:
    """The values that --args gives, converted to the types of the function."""
    types = function.type.inputs
    words = [w for group in arguments.values.get("args", ()) for w in group.split()]
    if words == ["random"]:
        words = ["random"] * len(types)
    if len(words) != len(types):
        listed = ", ".join(map(str, types))
        raise UsageError(f"'@{function.sym_name}' takes {len(types)} arguments ({listed}); --args gives {len(words)}")
    import numpy as np

    from ..ir.types import INDEX  # late

    sizes = given_sizes(arguments.all("size"), types)
    seed = arguments.value("seed") or "0"
    if not (seed.isascii() and seed.isdigit()):
        raise UsageError(f"--seed takes a number from 0 on, not '{seed}'")
    generator = np.random.default_rng(int(seed))
    values: list[Any] = []
    for number, (word, type, name) in enumerate(zip(words, types, [a.name for a in function.arguments])):
        if word == "random" and type is INDEX and name in sizes:
            word = str(sizes[name])
        values.append(argument(word, type, number, sizes, generator))
    return values


def given_sizes(words: Sequence[str], types: Sequence[Type]) -> dict[str, int]:
    """The sizes that all symbols of these types, and `?`, have in random arguments."""
    from ..ir.builders.sizes import symbols  # late

    named = {d for type in types for d in _extents(type) if isinstance(d, str)}
    sizes = {name: DEFAULT_SIZE for d in sorted(named) for name in sorted(symbols(d) if d != "?" else {d})}
    for word in words:
        name, _, value = word.rpartition("=")
        if not (value.isascii() and value.isdigit()) or not name:
            raise UsageError(f"--size takes NAME=NUMBER with a number from 0 on, not '{word}'")
        if name not in sizes:
            known = f"those of the arguments are: {', '.join(sizes)}" if sizes else "the arguments have none"
            raise UsageError(f"--size: there is no size '{name}'; {known}")
        sizes[name] = int(value)
    return sizes


def _extents(type: Type) -> tuple[int | str, ...]:
    """The extents of an array, symbols by name and `?` where any will do; none of a scalar."""
    from ..ir.types import ShapedType  # late

    if not isinstance(type, ShapedType):
        return ()
    return getattr(type, "dims", None) or tuple("?" if d < 0 else d for d in type.shape)


def argument(word: str, type: Type, position: int, sizes: dict[str, int], generator: np.random.Generator) -> Any:
    """One argument."""
    import numpy as np

    from ..ir.numeric import dtype  # late
    from ..ir.types import ShapedType  # late

    wanted = dtype(type)
    if word == "random":
        return random_value(type, wanted, sizes, generator)
    if word.endswith(".npy"):
        try:
            value = np.load(word)
        except (OSError, ValueError, EOFError) as error:
            raise UsageError(f"cannot read '{word}': {getattr(error, 'strerror', None) or error}") from None
    else:
        try:
            value = np.asarray(float(word) if wanted.kind not in "iub" else int(word, 0))
        except ValueError:
            raise UsageError(f"argument {position}: '{word}' is no .npy file, no number, and not 'random'") from None
    if not isinstance(type, ShapedType) and value.size != 1:
        raise UsageError(f"argument {position}: {type} is one number, '{word}' has the shape {value.shape}")
    if word.endswith(".npy") and not np.can_cast(value.dtype, wanted, "same_kind"):
        raise UsageError(f"argument {position}: {type} needs dtype {wanted}, '{word}' has {value.dtype}")
    if wanted.kind in "iu" and value.size:
        least, most = int(np.iinfo(wanted).min), int(np.iinfo(wanted).max)
        if int(value.min()) < least or int(value.max()) > most:
            raise UsageError(f"argument {position}: {type} holds {least} to {most}, '{word}' does not fit")
    if not isinstance(type, ShapedType):
        return wanted.type(value.item())
    return np.array(value, dtype=wanted)


def random_value(type: Type, wanted: np.dtype[Any], sizes: dict[str, int], generator: np.random.Generator) -> Any:
    """A random scalar or array of a type."""
    from ..ir.builders.sizes import evaluate  # late
    from ..ir.types import ShapedType  # late

    try:
        shape = tuple(evaluate(d, sizes) for d in _extents(type))
    except ZeroDivisionError:
        raise UsageError(f"--size: an extent of {type} is a quotient by 0") from None
    if any(n < 0 for n in shape):
        raise UsageError(f"--size: {type} has no array of shape {shape}")
    try:
        if wanted.kind == "b":
            drawn: Any = generator.integers(0, 2, shape)
        elif wanted.kind in "iu":
            drawn = generator.integers(0, 10, shape)
        else:
            drawn = generator.standard_normal(shape)
    except (MemoryError, ValueError):
        # ValueError: more elements than NumPy counts.
        raise UsageError(f"--size: there is no memory for an array of shape {shape} of {type}") from None
    return drawn.astype(wanted) if isinstance(type, ShapedType) else wanted.type(drawn)


def describe_results(function: Func, results: Sequence[Any]) -> list[str]:
    """A line or more for each result."""
    return [_value(f"result {i}", type, value) for i, (type, value) in enumerate(zip(function.type.results, results))]


def describe_buffers(function: Func, before: Sequence[Any], after: Sequence[Any]) -> list[str]:
    """A line or more for each buffer that changed."""
    from ..ir.types import MemRefType  # late

    return [
        _value(f"argument {i}", type, new)
        for i, (type, old, new) in enumerate(zip(function.type.inputs, before, after))
        if isinstance(type, MemRefType) and old.tobytes() != new.tobytes()
    ]


def _value(what: str, type: Type, value: Any) -> str:
    import numpy as np

    text = np.array2string(np.asarray(value), separator=", ", threshold=64)
    return f"{what} : {type} =" + (f"\n{text}" if "\n" in text else f" {text}")


if __name__ == "__main__":
    sys.exit(main())

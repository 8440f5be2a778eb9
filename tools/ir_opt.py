"""ir-opt: reads IR, runs passes, prints IR or target text.

    ir-opt model.mlir --canonicalize --cse
    ir-opt -p 'canonicalize,func.func(cse)' < model.mlir

Errors go to stderr as `file:line:col: error: ..`, with the line, a caret and notes; the exit status is then 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ..ir.diagnostics import Error, origin
from ..ir.operations import Operation
from ..lowering.targets import TARGETS, check_level
from . import command_line
from .command_line import LIST, SWITCH, VALUE, Arguments, Flag, UsageError

FLAGS: dict[str, Flag] = {
    "help": Flag(SWITCH, "show this"),
    "version": Flag(SWITCH, "show the version"),
    "o": Flag(VALUE, "write to FILE", "FILE"),
    "pass-pipeline": Flag(VALUE, "run a pipeline: 'a,b{opt=1},func.func(c)' (short: -p)", "PIPELINE"),
    "pass": Flag(LIST, "run a pass, or a named pipeline; may be repeated, in order", "NAME"),
    "emit": Flag(VALUE, "what to print: mlir, llvm, asm, opencl, ptx, or what a plugin adds", "KIND"),
    "verify-each": Flag(SWITCH, "verify after every pass (on; --verify-each=false turns it off)"),
    "verify-diagnostics": Flag(SWITCH, "check that errors are those that 'expected-error {{..}}' comments announce"),
    "split-input-file": Flag(SWITCH, "treat the pieces between '// -----' lines one by one"),
    "allow-unregistered-dialect": Flag(SWITCH, "accept ops of unknown dialects"),
    "mlir-print-op-generic": Flag(SWITCH, "print the generic form"),
    "mlir-compat": Flag(SWITCH, "print what the real mlir-opt reads: generic form, our 'linalg' as 'nb_linalg'"),
    "mlir-print-debuginfo": Flag(SWITCH, "print locations"),
    "mlir-print-ir-before": Flag(LIST, "dump the IR before these passes to stderr", "PASSES"),
    "mlir-print-ir-before-all": Flag(SWITCH, "dump the IR before each pass"),
    "mlir-print-ir-after": Flag(LIST, "dump the IR after these passes to stderr", "PASSES"),
    "mlir-print-ir-after-all": Flag(SWITCH, "dump the IR after each pass"),
    "mlir-print-ir-after-change": Flag(SWITCH, "dump the first state, and the IR after each pass that changed it"),
    "mlir-timing": Flag(SWITCH, "show how long each pass took"),
    "mlir-pass-statistics": Flag(SWITCH, "show what each pass counted"),
    "remarks": Flag(SWITCH, "show why passes did not do what schedules ask, on stderr"),
    "mlir-pass-pipeline-crash-reproducer": Flag(VALUE, "write IR and pipeline to FILE when a pass fails", "FILE"),
    "trace-rewrites": Flag(SWITCH, "show each rewrite of canonicalize on stderr"),
    "dump-pass-pipeline": Flag(SWITCH, "print the pipeline to stderr before it runs"),
    "load-plugin": Flag(LIST, "import a module that defines dialects, passes, rules or targets", "MODULE"),
    "list-passes": Flag(SWITCH, "list all passes with their options"),
    "list-pipelines": Flag(SWITCH, "list the named pipelines"),
    "list-patterns": Flag(SWITCH, "list the rules of canonicalize"),
    "list-dialects": Flag(SWITCH, "list all dialects"),
    "show-op": Flag(VALUE, "show the definition of an op", "NAME"),
    "traceback": Flag(SWITCH, "show Python's traceback of faults in passes and of internal errors"),
}
ALIASES = {"p": "pass-pipeline", "h": "help"}


def main(words: Sequence[str] | None = None) -> int:
    """The command; its exit status."""
    try:
        return run(sys.argv[1:] if words is None else words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def run(words: Sequence[str]) -> int:
    """As `main`, with a command line."""
    from ..passes import registry  # late
    from ..passes.pipelines import PIPELINES  # late

    traceback = "--traceback" in words
    sources: dict[str, str] = {}
    try:
        for word, following in zip(words, [*words[1:], ""]):
            # Plugins come first: they may define passes that other flags name.
            if word.lstrip("-").startswith("load-plugin") and word.startswith("-"):
                for name in (word.partition("=")[2] or following).split(","):
                    load_plugin(name)
        arguments = command_line.parse(
            words, FLAGS, [*registry.pass_names(), *registry.ALIASES, *PIPELINES, "pass"], ALIASES
        )
        shown = describe(arguments)
        if shown is not None:
            print(shown)
            return 0
        if len(arguments.files) > 1:
            raise UsageError(f"one input file at most; got {', '.join(arguments.files)}")
        name = arguments.files[0] if arguments.files else "-"
        text = sources[name] = command_line.read_input(name)
        return Session(arguments, name, text).run()
    except Error as error:
        command_line.report(error, sources, traceback)
    except BrokenPipeError:
        raise
    except Exception as error:
        command_line.report_internal(error, traceback)
    return 1


def _load_file(path: str) -> None:
    """Import a file, once, as a module, by whose name what it registers is found; it may import the files beside it."""
    from importlib.util import module_from_spec, spec_from_file_location

    folder, file = os.path.split(os.path.abspath(path))
    name = first = f"nablair_plugin_{os.path.splitext(file)[0]}"
    number = 1
    while (known := sys.modules.get(name)) is not None:
        if known.__file__ == os.path.join(folder, file):
            return
        number += 1
        name = f"{first}_{number}"
    spec = spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def load_plugin(name: str) -> None:
    """Import a plugin, by module name or path of a `.py` file."""
    try:
        if name.endswith(".py"):
            _load_file(name)
        else:
            import_module(name)
    except ImportError as error:
        raise UsageError(f"cannot load the plugin '{name}': {error}") from error
    except OSError as error:
        raise UsageError(f"cannot load the plugin '{name}': {error.strerror}") from error
    except Exception as error:
        failure = UsageError(f"cannot load the plugin '{name}': {type(error).__name__}: {error}")
        raise failure.note("raised here", origin(error)) from error


@contextmanager
def reproducible(text: str, pipeline: str, arguments: Arguments) -> Generator[None]:
    """Where a pass itself is at fault, write its input to a file and say how to come here again."""
    try:
        yield
    except Error as error:
        if command_line.fault_of(error) is None or any(n.message.startswith("to reproduce") for n in error.notes):
            raise
        import shlex
        import tempfile

        words = ["ir-opt", "", f"--pass-pipeline={pipeline}"]
        words += [f"--load-plugin={plugin}" for plugin in arguments.all("load-plugin")]
        try:
            with tempfile.NamedTemporaryFile("w", prefix="nablair-", suffix=".mlir", delete=False) as out:
                words[1] = out.name
                out.write(f"// {shlex.join(words)}\n{text}")
        except OSError as problem:
            raise error.note(f"its input could not be kept: {problem.strerror}") from error.__cause__
        error.note(f"to reproduce: {shlex.join([*words, '--traceback'])}")
        raise


def describe(arguments: Arguments) -> str | None:
    """What --help, --version, the lists and --show-op print; None when none was asked for."""
    usage = "ir-opt [FILE or -] [--PASS[=OPTIONS] ..] [-p PIPELINE] [flags]"
    flags = FLAGS
    if arguments.switch("help"):
        from ..passes.registry import ALIASES as PASS_ALIASES  # late

        flags = {**FLAGS, **{alias: Flag(SWITCH, f"another name of --{name}") for alias, name in PASS_ALIASES.items()}}
    about = command_line.about(arguments, usage, "Reads IR, runs passes, prints IR.", flags)
    if about is not None:
        return about
    asked = [
        flag for flag in ("list-passes", "list-pipelines", "list-patterns", "list-dialects") if arguments.switch(flag)
    ]
    name = arguments.value("show-op")
    if not asked and name is None:
        return None
    from . import catalogue  # late

    parts = [getattr(catalogue, flag.replace("list-", "") + "_text")() for flag in asked]
    return "\n\n".join(parts if name is None else [*parts, catalogue.op_text(name)])


class Session:
    """One input through the pipeline."""

    def __init__(self, arguments: Arguments, filename: str, text: str) -> None:
        self.arguments = arguments
        self.filename = filename
        self.text = text
        self.kind = arguments.value("emit") or "mlir"
        if self.kind != "mlir" and self.kind not in TARGETS:
            raise UsageError(f"--emit is one of mlir, {', '.join(TARGETS)}; got '{self.kind}'")
        self.pipeline = pipeline_text(arguments)

    def run(self) -> int:
        """Process all pieces and write the result; the exit status."""
        split = self.arguments.switch("split-input-file")
        check = self.arguments.switch("verify-diagnostics")
        outputs: list[str] = []
        status = 0
        for piece in pieces(self.text) if split else [self.text]:
            error: Error | None = None
            try:
                outputs.append(self.process(piece))
            except Error as caught:
                error = caught
            if check:
                from .expected import check_diagnostics  # late

                problems = check_diagnostics(self.filename, piece, error)
            else:
                problems = [error] if error is not None else []
            for problem in problems:
                command_line.report(problem, {self.filename: self.text}, self.arguments.switch("traceback"))
                status = 1
        self.write("// -----\n".join(outputs))
        return status

    def process(self, text: str) -> str:
        """The output for one piece of input."""
        from ..ir.parser import parse_module  # late
        from ..ir.verifier import verify  # late

        module: Operation = parse_module(text, self.filename, self.arguments.switch("allow-unregistered-dialect"))
        verify(module)
        manager = self.manager()
        if manager is not None:
            if self.arguments.switch("dump-pass-pipeline"):
                print(f"Pass Manager with {len(list(manager.all_passes()))} passes:\n{manager}", file=sys.stderr)
            with reproducible(text, str(manager), self.arguments):
                manager.run(module)
        if self.kind == "mlir":
            return self.print(module)
        target = TARGETS[self.kind]
        check_level(module, target)
        return target.text(module)

    def print(self, op: Operation) -> str:
        """IR text in the form that the flags ask for."""
        from ..ir.printer import print_op  # late

        text = print_op(
            op,
            generic=self.arguments.switch("mlir-print-op-generic"),
            compat=self.arguments.switch("mlir-compat"),
            locations=self.arguments.switch("mlir-print-debuginfo"),
        )
        return text if text.endswith("\n") else text + "\n"

    def write(self, text: str) -> None:
        """Write to `-o` or stdout."""
        target = self.arguments.value("o")
        if target is None or target == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
            return
        try:
            with open(target, "w", encoding="utf-8") as out:
                out.write(text)
        except OSError as error:
            raise UsageError(f"cannot write '{target}': {error.strerror}") from None

    def manager(self) -> Any:
        """The pass manager that the flags describe; None when no pass was asked for."""
        if self.pipeline is None:
            return None
        from ..passes.instrument import Remarks  # late
        from ..passes.manager import PassManager  # late

        manager = PassManager.parse(
            self.pipeline,
            verify_each=self.arguments.switch("verify-each", True),
            restore=False,
            warn=False,
            reproducer=self.arguments.value("mlir-pass-pipeline-crash-reproducer"),
        )
        manager.instrumentations += instrumentations(self.arguments, self.print)
        manager.instrumentations.append(Remarks(self.arguments.switch("remarks"), {self.filename: self.text}))
        if self.arguments.switch("trace-rewrites"):
            for pass_ in manager.all_passes():
                if hasattr(pass_, "trace"):
                    setattr(pass_, "trace", True)  # noqa: B010
        return manager


def pipeline_text(arguments: Arguments) -> str | None:
    """The pipeline that the flags spell, in order."""
    whole = arguments.value("pass-pipeline")
    parts = [whole] if whole is not None else []
    if parts and arguments.others:
        raise UsageError("give passes as flags or as --pass-pipeline, not both")
    for name, value in arguments.others:
        if name == "pass":
            parts.append(value or "")
        else:
            parts.append(name if value is None else f"{name}{{{value}}}")
    return ",".join(parts) if parts else None


def instrumentations(arguments: Arguments, text: Callable[[Operation], str]) -> list[Any]:
    """The instrumentations that the flags ask for."""
    from ..passes.registry import lookup  # late

    before, after = (
        [lookup(name).name for name in arguments.all(f"mlir-print-ir-{when}")] for when in ("before", "after")
    )
    before_all, after_all = arguments.switch("mlir-print-ir-before-all"), arguments.switch("mlir-print-ir-after-all")
    changes = arguments.switch("mlir-print-ir-after-change")
    timing, statistics = arguments.switch("mlir-timing"), arguments.switch("mlir-pass-statistics")
    if not (before or after or before_all or after_all or changes or timing or statistics):
        return []
    from ..passes import instrument  # late

    made: list[Any] = []
    if before or after or before_all or after_all or changes:
        made.append(
            instrument.PrintIR(None if before_all else before, None if after_all else after, changes, None, text)
        )
    if timing:
        made.append(instrument.Timing())
    if statistics:
        made.append(instrument.Statistics())
    return made


def pieces(text: str) -> list[str]:
    """The texts between `// -----` lines, each behind as many empty lines as stand before it, so that places hold."""
    found: list[str] = []
    lines: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n")):
        if line.startswith("// -----"):
            found.append("\n" * start + "\n".join(lines))
            lines, start = [], number + 1
        else:
            lines.append(line)
    return [*found, "\n" * start + "\n".join(lines)]


if __name__ == "__main__":
    sys.exit(main())

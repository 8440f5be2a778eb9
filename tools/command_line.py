"""Command lines with mlir-opt's habits: `--flag`, `-flag`, `--flag=value`, `--flag value`; a table lists the flags.

Written here because `argparse` alone would take a good part of the time that a tool has to start, and because the order
of passes among the flags counts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ..ir.diagnostics import Error, origin, plugin_line

SWITCH, VALUE, LIST, GREEDY = "switch", "value", "list", "greedy"


class Flag:
    """One flag: a switch, one value, a value that may be given several times, or all words up to the next flag."""

    __slots__ = ("help", "kind", "metavar")

    def __init__(self, kind: str, help: str, metavar: str = "") -> None:
        self.kind = kind
        self.help = help
        self.metavar = metavar


class UsageError(Error):
    """A command line that makes no sense."""


class Arguments:
    """What a command line said: files, values by flag, and the flags that are none of the table's, in order."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.values: dict[str, list[str]] = {}
        self.others: list[tuple[str, str | None]] = []

    def switch(self, name: str, default: bool = False) -> bool:
        """Whether a switch is on."""
        given = self.values.get(name)
        if not given:
            return default
        if given[-1] not in ("true", "false", "1", "0"):
            raise UsageError(f"--{name} takes true or false, not '{given[-1]}'")
        return given[-1] in ("true", "1")

    def value(self, name: str) -> str | None:
        """The last value given to a flag."""
        given = self.values.get(name)
        return given[-1] if given else None

    def all(self, name: str) -> list[str]:
        """All values given to a flag; commas separate too."""
        return [item for value in self.values.get(name, ()) for item in value.split(",") if item]


def parse(
    words: Sequence[str],
    flags: Mapping[str, Flag],
    others: Sequence[str] = (),
    aliases: Mapping[str, str] | None = None,
) -> Arguments:
    """Arguments of a command line; `others` are names that may be flags too, kept in order in `Arguments.others`."""
    found = Arguments()
    queue = list(reversed(words))
    while queue:
        word = queue.pop()
        if word == "--":
            found.files += reversed(queue)
            break
        if word == "-" or not word.startswith("-"):
            found.files.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = (aliases or {}).get(name, name)
        flag = flags.get(name)
        if flag is None:
            if name in others:
                found.others.append((name, value if equals else None))
                continue
            import difflib

            near = difflib.get_close_matches(name, [*flags, *others], 1)
            raise UsageError(f"unknown flag '{word}'" + (f"; did you mean '--{near[0]}'?" if near else "; see --help"))
        values = found.values.setdefault(name, [])
        if flag.kind == SWITCH:
            values.append(value if equals else "true")
            continue
        if not equals:
            if not queue or (flag.kind == GREEDY and queue[-1].startswith("--")):
                raise UsageError(f"--{name} needs a value")
            value = queue.pop()
        if flag.kind == VALUE:
            values.clear()
        values.append(value)
        while flag.kind == GREEDY and queue and not queue[-1].startswith("--"):
            values.append(queue.pop())
        if flag.kind == LIST and name in others:
            found.others.append((name, value))
    return found


def about(arguments: Arguments, usage: str, description: str, flags: Mapping[str, Flag]) -> str | None:
    """What `--help` or `--version` prints; None when neither was asked for."""
    if arguments.switch("help"):
        return _help_text(usage, description, flags)
    if arguments.switch("version"):
        from .. import __version__  # late

        return f"nablair {__version__}"
    return None


def _help_text(usage: str, description: str, flags: Mapping[str, Flag]) -> str:
    """What `--help` prints."""
    lines = [f"usage: {usage}", "", description, ""]
    for name, flag in flags.items():
        shown = ("-" if len(name) == 1 else "--") + name
        shown += {SWITCH: "", VALUE: f"={flag.metavar}", LIST: f"={flag.metavar}", GREEDY: f" {flag.metavar}"}[
            flag.kind
        ]
        lines.append(f"  {shown:<44}{flag.help}" if len(shown) < 43 else f"  {shown}\n  {'':<44}{flag.help}")
    return "\n".join(lines)


def report(error: Error, sources: Mapping[str, str] | None = None, traceback: bool = False) -> None:
    """Show an error on stderr as `file:line:col: error: ..`, coloured on a terminal.

    `traceback`: above it, Python's traceback of the fault in a pass that it speaks of, or of a plugin that it comes
    from.
    """
    cause = fault_of(error) or (error if plugin_line(error) is not None else None)
    if traceback and cause is not None:
        _print_traceback(cause)
    text = error.render(sources)
    head = text.partition("\n")[0]
    if ": error: " not in head:
        text = f"error: {text}"
    if sys.stderr.isatty():
        text = text.replace("error: ", "\033[1;31merror: \033[0m", 1).replace("note: ", "\033[1;36mnote: \033[0m")
    print(text, file=sys.stderr)


def report_internal(error: BaseException, traceback: bool) -> None:
    """Show a fault of the tool itself: a few lines, and the traceback where it was asked for."""
    if traceback:
        _print_traceback(error)
    shown = Error(f"internal error: {type(error).__name__}: {error}").note("raised here", origin(error))
    print(f"error: {shown.render()}", file=sys.stderr)
    if not traceback:
        print("note: --traceback shows how it came to that", file=sys.stderr)


def fault_of(error: Error) -> BaseException | None:
    """The exception of another kind that an error was made from: a fault in a pass, not in its input."""
    cause = error.__cause__
    return None if cause is None or isinstance(cause, Error) else cause


def _print_traceback(fault: BaseException) -> None:
    import traceback

    traceback.print_exception(fault)


def read_input(name: str) -> str:
    """The text of a file, or of stdin for `-`; bytes that are not UTF-8 are kept as surrogates."""
    if name == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    try:
        with open(name, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"cannot open '{name}': {error.strerror}") from None

"""What shows a pipeline at work: IR dumps, times, statistics; all in the form that MLIR's tools print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from time import perf_counter
from typing import TextIO

from ..ir.diagnostics import Remark
from ..ir.operations import Operation
from .manager import Instrumentation, Pass

RULE = "===" + "-" * 73 + "==="


def report_header(title: str) -> str:
    """The three lines above a report."""
    return f"{RULE}\n{' ' * 25}... {title} report ...\n{RULE}"


class PrintIR(Instrumentation):
    """Dumps of the IR before and after passes, on `stream`.

    `before` and `after` name passes; None means all.  With `changes`, dumps are made only behind passes that changed
    the IR, and the first state is shown too.  A failing pass is always followed by a dump, if there are any.
    """

    def __init__(
        self,
        before: Collection[str] | None = (),
        after: Collection[str] | None = (),
        changes: bool = False,
        stream: TextIO | None = None,
        text: Callable[[Operation], str] = str,
    ) -> None:
        self.names_before = before
        self.names_after = after
        self.changes = changes
        self.stream = stream
        self.text = text
        self.previous: list[str] = []

    def start(self, op: Operation) -> None:
        if self.changes:
            self._dump("Initial State", op)

    def before(self, pass_: Pass, op: Operation) -> None:
        if self.names_before is None or pass_.name in self.names_before:
            self._dump(f"Before {_title(pass_)}", op)
        if self.changes:
            self.previous.append(self.text(op))

    def after(self, pass_: Pass, op: Operation) -> None:
        same = self.changes and self.previous.pop() == self.text(op)
        wanted = self.names_after is None or pass_.name in self.names_after or (self.changes and not self.names_after)
        if wanted and not same:
            self._dump(f"After {_title(pass_)}", op)

    def failed(self, pass_: Pass, op: Operation) -> None:
        if self.changes:
            self.previous.pop()
        self._dump(f"After {type(pass_).__name__} Failed ({pass_.name})", op)

    def _dump(self, what: str, op: Operation) -> None:
        symbol = getattr(op.properties.get("sym_name"), "value", None)
        if op.name != "builtin.module":
            what += f" ('{op.name}' operation" + (f": @{symbol})" if symbol else ")")
        stream = self.stream or sys.stderr
        stream.write(f"// -----// IR Dump {what} //----- //\n{self.text(op).rstrip()}\n\n")


def _title(pass_: Pass) -> str:
    return f"{type(pass_).__name__} ({pass_.name})"


class Remarks(Instrumentation):
    """What passes say without failing, on `stream`: warnings, and with `all_` remarks too.

    `sources` maps file names to texts that are not on disk.
    """

    def __init__(self, all_: bool, sources: Mapping[str, str] | None = None, stream: TextIO | None = None) -> None:
        self.all = all_
        self.sources = sources
        self.stream = stream

    def remark(self, pass_: Pass, remark: Remark) -> None:
        if self.all or remark.severity == "warning":
            (self.stream or sys.stderr).write(remark.render(self.sources) + "\n")


class Timing(Instrumentation):
    """How long each pass took, as a table when the pipeline is done."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.seconds: dict[int, float] = {}
        self.began = perf_counter()

    def before(self, pass_: Pass, op: Operation) -> None:
        self.began = perf_counter()

    def after(self, pass_: Pass, op: Operation) -> None:
        self.seconds[id(pass_)] = self.seconds.get(id(pass_), 0.0) + perf_counter() - self.began

    def failed(self, pass_: Pass, op: Operation) -> None:
        self.after(pass_, op)

    def finish(self, passes: Sequence[Pass]) -> None:
        total = sum(self.seconds.values())
        lines = [report_header("Execution time"), f"  Total Execution Time: {total:.4f} seconds", ""]
        lines.append("  ----Wall Time----  ----Name----")
        for pass_ in passes:
            seconds = self.seconds.get(id(pass_), 0.0)
            lines.append(f"  {seconds:8.4f} ({100 * seconds / (total or 1.0):5.1f}%)  {type(pass_).__name__}")
        lines.append(f"  {total:8.4f} (100.0%)  Total")
        (self.stream or sys.stderr).write("\n".join(lines) + "\n")


class Statistics(Instrumentation):
    """What each pass counted, when the pipeline is done."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def finish(self, passes: Sequence[Pass]) -> None:
        lines = [report_header("Pass statistics")]
        for pass_ in passes:
            lines.append(type(pass_).__name__)
            lines += [f"  (S) {value:6} {name}" for name, value in pass_.statistics.items()]
        (self.stream or sys.stderr).write("\n".join(lines) + "\n")

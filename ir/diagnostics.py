"""Errors: one root, a class for each kind, and the text that a person reads.

An error says what was wrong, where, and what would be right.  In IR text that is
`file:line:col: error: message`, the line itself, a caret, and notes below; from Python it is the message
followed by the user's own source line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Self

from .location import FileLoc, is_users

if TYPE_CHECKING:
    from types import FrameType, TracebackType

    from .location import Location

LINE_LIMIT = 160
"""The longest source line that is shown whole."""


class Note:
    """A remark below an error: `message`, and where it points (None: nowhere)."""

    __slots__ = ("location", "message")

    def __init__(self, message: str, location: Location | None = None) -> None:
        self.message = message
        self.location = location


class Error(Exception):
    """Root of all errors of nablair.

    `message` is one sentence, `location` where the fault stands (None: unknown), `notes` what else to know.
    """

    def __init__(self, message: str, location: Location | None = None, notes: Sequence[Note] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.location = location
        self.notes = list(notes)

    def note(self, message: str, location: Location | None = None) -> Self:
        """Add a note below the error and return the error."""
        self.notes.append(Note(message, location))
        return self

    def from_plugin(self, fault: BaseException) -> Self:
        """Note the line of a plugin that the error, or the exception that it was made from, comes from, if it is one's
        and not an error that the plugin itself meant to raise; return the error."""
        line = plugin_line(fault)
        is_meant = isinstance(fault, Error) and line == _line_of(fault.__traceback__, lambda frame: True)
        return self if line is None or is_meant else self.note("raised from here", line)

    def render(self, sources: Mapping[str, str] | None = None) -> str:
        """The whole diagnostic as text; `sources` maps file names to texts that are not on disk (stdin)."""
        texts = sources or {}
        lines = _render("error", self.message, self.location, texts)
        for note in self.notes:
            lines += _render("note", note.message, note.location, texts)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.render() if self.location is not None or self.notes else self.message


def shown(value: object) -> str:
    """What was given, as short text for a message."""
    try:
        text = repr(value)
    except Exception:  # an object of the user's, or an integer too long to be written out
        text = f"an object of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def origin(fault: BaseException) -> FileLoc | None:
    """The line of Python that an exception comes from: the innermost that is not this library's, nor one of those that
    it is built on; where all are, the line that raised it."""
    return plugin_line(fault) or _line_of(fault.__traceback__, lambda frame: True)


def plugin_line(fault: BaseException) -> FileLoc | None:
    """`origin`, or None where no code but this library's was running."""
    return _line_of(fault.__traceback__, is_users)


def _line_of(trace: TracebackType | None, wanted: Callable[[FrameType], bool]) -> FileLoc | None:
    """The innermost line of a traceback in a wanted frame."""
    found: FileLoc | None = None
    while trace is not None:
        if wanted(trace.tb_frame):
            found = FileLoc(trace.tb_frame.f_code.co_filename, trace.tb_lineno, 1)
        trace = trace.tb_next
    return found


class Remark:
    """What a pass says without failing: `severity` is "remark" or "warning"."""

    __slots__ = ("location", "message", "severity")

    def __init__(self, message: str, location: Location | None = None, severity: str = "remark") -> None:
        self.message = message
        self.location = location
        self.severity = severity

    def render(self, sources: Mapping[str, str] | None = None) -> str:
        """The whole diagnostic as text; `sources` maps file names to texts that are not on disk (stdin)."""
        return "\n".join(_render(self.severity, self.message, self.location, sources or {}))


def _render(kind: str, message: str, location: Location | None, sources: Mapping[str, str]) -> list[str]:
    place = location.file_position() if location is not None else None
    if place is None:
        return [f"{kind}: {message}" if kind != "error" else message]
    out = [f"{place.file}:{place.line}:{place.column}: {kind}: {message}"]
    line = _line(place, sources)
    # Python's own places say the line only: the caret then stands where its text begins.
    text, column = _excerpt(line, max(place.column, len(line) - len(line.lstrip()) + 1))
    if text.strip():
        out.append("  " + text)
        out.append("  " + "".join("\t" if c == "\t" else " " for c in text[: column - 1]) + "^")
    return out


def _excerpt(text: str, column: int) -> tuple[str, int]:
    """A long line cut to what stands around a column, and the column's place in it."""
    if len(text) <= LINE_LIMIT:
        return text, column
    start = max(0, min(column - LINE_LIMIT // 2, len(text) - LINE_LIMIT))
    end = start + LINE_LIMIT
    before, after = ".. " if start else "", " .." if end < len(text) else ""
    return before + text[start:end] + after, column - start + len(before)


def _line(place: FileLoc, sources: Mapping[str, str]) -> str:
    if place.file in sources:
        lines = sources[place.file].split("\n")
        return lines[place.line - 1] if 0 < place.line <= len(lines) else ""
    import linecache

    return linecache.getline(place.file, place.line).rstrip("\n")


class ShapeError(Error, ValueError):
    """Shapes that do not fit an operation."""


class DTypeError(Error, TypeError):
    """Element types that do not fit an operation."""


class SubscriptError(Error, IndexError):
    """A subscript outside of what it points into."""


class VerifyError(Error):
    """IR that breaks an invariant of an op, of SSA form or of a level."""


class ParseError(Error, ValueError):
    """Text that is not IR."""


class PassError(Error):
    """A pass that cannot do its work, or an unknown pass or option."""


class LoweringError(Error):
    """IR that a target cannot express, or a target tool that refused the text."""


class CheckError(Error):
    """A check that failed while a program ran: an access outside of its buffer, or an assertion."""


class AllocationError(Error, MemoryError):
    """Memory that the system or a device does not have."""


class DeviceError(Error, RuntimeError):
    """A device that is missing, refused work, or reported a fault."""

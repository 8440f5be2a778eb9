"""Diagnostics that a file announces: `// expected-error@+1 {{part of the message}}`.

`@+n` and `@-n` count lines from the comment's, `@above` and `@below` are the lines beside it, none is the same line.
`expected-note` announces a note; `expected-error-re` takes a regular expression.
"""

from __future__ import annotations

import re

from ..ir.diagnostics import Error, VerifyError
from ..ir.location import FileLoc, Location

_COMMENT = re.compile(r"expected-(error|note)(-re)?\s*(?:@(above|below|[+-]\d+|unknown))?\s*\{\{(.*?)\}\}")
_NEAR = {None: 0, "above": -1, "below": 1}


class Expected:
    """One announcement: kind, line (None: anywhere), text, and where it stands."""

    def __init__(self, kind: str, line: int | None, pattern: str, is_regex: bool, place: FileLoc) -> None:
        self.kind = kind
        self.line = line
        self.pattern = pattern
        self.is_regex = is_regex
        self.place = place
        self.met = False

    def meets(self, kind: str, line: int | None, message: str) -> bool:
        """Whether a diagnostic is the one announced."""
        if kind != self.kind or (self.line is not None and self.line != line):
            return False
        return bool(re.search(self.pattern, message)) if self.is_regex else self.pattern in message


def announcements(filename: str, text: str) -> list[Expected]:
    """All that a text announces."""
    found: list[Expected] = []
    for number, line in enumerate(text.split("\n"), 1):
        comment = line.find("//")
        for match in _COMMENT.finditer(line, comment) if comment >= 0 else ():
            kind, regex, place, pattern = match.groups()
            target = None if place == "unknown" else number + (_NEAR[place] if place in _NEAR else int(place))
            found.append(
                Expected(kind, target, pattern, regex is not None, FileLoc(filename, number, match.start() + 1))
            )
    return found


def check_diagnostics(filename: str, text: str, error: Error | None) -> list[Error]:
    """What is wrong with the error of a piece of input (None: it had none), as errors; empty when all was announced."""
    expected = announcements(filename, text)
    problems: list[Error] = []
    if error is not None:
        if not _announce(expected, "error", error.location, error.message):
            problems.append(VerifyError(f"unexpected error: {error.message}", error.location, error.notes))
        for note in error.notes:
            _announce(expected, "note", note.location, note.message)
    for missed in expected:
        if not missed.met:
            problems.append(VerifyError(f'expected {missed.kind} "{missed.pattern}" was not produced', missed.place))
    return problems


def _announce(expected: list[Expected], kind: str, location: Location | None, message: str) -> bool:
    place = location.file_position() if location is not None else None
    line = place.line if place is not None else None
    for candidate in expected:
        if not candidate.met and candidate.meets(kind, line, message):
            candidate.met = True
            return True
    return False

"""Tokens of IR text: one regular expression splits the whole text at once.

A token is a plain string; its first character tells its kind (`%` value, `^` block, `@` symbol, `#` attribute, `!`
type, `"` string, a digit, a letter, else punctuation).  A shaped type without line breaks (`tensor<4x?xf32>`) is one
token, so that the parser finds the type by one look into a table.  Any character that begins nothing is a token of its
own: lexing never fails, the parser reports it.  Offsets of tokens and lines are kept for locations and messages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate
from typing import NoReturn, TypeVar

from .diagnostics import Note, ParseError
from .location import FileLoc

T = TypeVar("T")

_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SUFFIX = r"(?:[0-9]++|[A-Za-z$._-][A-Za-z0-9$._-]*+)"
_ATOM = rf'(?:->|[^<>"\n\-/]++|-|/(?!/)|{_STRING})'
_FLAT = rf"<{_ATOM}*+>"
_NESTED = rf"<(?:{_ATOM}|{_FLAT})*+>"
_TOKEN = "|".join(
    (
        rf"%{_SUFFIX}(?:\#[0-9]++)?",
        rf"(?:tensor|memref|vector)<(?:{_ATOM}|{_NESTED})*+>",
        r"[A-Za-z_][A-Za-z0-9_$.]*+",
        r"->",
        r"0x[0-9A-Fa-f]++",
        r"[0-9]++(?:\.[0-9]*+(?:[eE][-+]?[0-9]++)?)?",
        _STRING,
        rf"@(?:{_SUFFIX}|{_STRING})",
        rf"[\#!]{_SUFFIX}",
        rf"\^{_SUFFIX}",
        r"::",
        r"[^\s]",
        r"\Z",
    )
)
_SPLIT = re.compile(rf"((?:\s++|//[^\n]*+)*+)({_TOKEN})", re.ASCII)

IDENTIFIER_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
DIGITS = frozenset("0123456789")


def tokenize(text: str) -> tuple[list[str], list[int]]:
    """The tokens of `text` and their offsets; at the end stand empty tokens."""
    pieces = _SPLIT.split(text)
    starts = list(accumulate(map(len, pieces)))[1::3]
    tokens = pieces[2::3]
    end = len(text)
    del starts[len(tokens) :]
    tokens += ["", "", "", ""]
    starts += [end, end, end, end]
    return tokens, starts


class Lexer:
    """A position in a list of tokens, with the small pieces of syntax that all parsers share."""

    tokens: list[str]
    starts: list[int]
    i: int

    def __init__(self, text: str, filename: str = "-") -> None:
        self.text = text
        self.filename = filename
        self.tokens, self.starts = tokenize(text)
        self.i = 0
        self._lines: list[int] = [0, *(m.end() for m in re.finditer("\n", text))]

    # Places and errors.

    def position(self, index: int) -> FileLoc:
        """The place of the token at `index`."""
        return self.offset_position(self.starts[index])

    def offset_position(self, offset: int) -> FileLoc:
        """The place of a character."""
        line = bisect_right(self._lines, offset)
        return FileLoc(self.filename, line, offset - self._lines[line - 1] + 1)

    @property
    def here(self) -> FileLoc:
        """The place of the current token."""
        return self.position(self.i)

    @property
    def sources(self) -> Mapping[str, str]:
        """The text by its file's name, for rendering diagnostics."""
        return {self.filename: self.text}

    def error(self, message: str, index: int | None = None, note: str = "", note_index: int = 0) -> NoReturn:
        """Raise a ParseError at the current token, or at the token `index`; `note` points to the token `note_index`."""
        notes = [Note(note, self.position(note_index))] if note else []
        raise ParseError(message, self.position(self.i if index is None else index), notes)

    def unexpected(self, expected: str) -> NoReturn:
        """Raise a ParseError that says what should stand here."""
        token = self.tokens[self.i]
        found = "the end of the text" if not token else f"'{token if len(token) < 40 else token[:37] + '...'}'"
        self.error(f"expected {expected}, found {found}")

    # Small syntax.

    def at(self, token: str) -> bool:
        """Whether the current token is `token`."""
        return self.tokens[self.i] == token

    def accept(self, token: str) -> bool:
        """Step over `token` if it stands here."""
        if self.tokens[self.i] == token:
            self.i += 1
            return True
        return False

    def expect(self, token: str) -> None:
        """Step over `token`, which must stand here."""
        if self.tokens[self.i] != token:
            self.unexpected(f"'{token}'")
        self.i += 1

    def at_identifier(self) -> bool:
        """Whether a bare identifier stands here."""
        return self.tokens[self.i][:1] in IDENTIFIER_START

    def identifier(self) -> str:
        """A bare identifier, dots allowed."""
        token = self.tokens[self.i]
        if token[:1] not in IDENTIFIER_START or "<" in token:
            self.unexpected("an identifier")
        self.i += 1
        return token

    def integer(self) -> int:
        """An integer literal, perhaps negative, of 64 bits; the least of them is not a number here but means `?`."""
        start = self.i
        negative = self.accept("-")
        token = self.tokens[self.i]
        if token[:1] not in DIGITS or "." in token:
            self.unexpected("an integer")
        self.i += 1
        value = self.to_integer(token)
        if value >= 1 << 63:
            self.error(f"{'-' if negative else ''}{token} does not fit into 64 bits", start)
        return -value if negative else value

    def to_integer(self, token: str) -> int:
        """The value of an integer token."""
        if token.startswith("0x"):
            return int(token, 16)
        if len(token) > 1000:
            self.error("integer literal too large", self.i - 1)
        return int(token)

    def string(self) -> str:
        """A string literal's value."""
        token = self.tokens[self.i]
        if token[:1] != '"' or len(token) < 2:
            self.unexpected("a string")
        self.i += 1
        return self.unquote(token)

    def unquote(self, token: str) -> str:
        r"""The value of a string token: `\\ \" \n \t` and bytes `\HH`."""
        if "\\" not in token:
            return token[1:-1]
        out = bytearray()
        rest = iter(re.split(r"\\([0-9A-Fa-f]{2}|.)", token[1:-1]))
        out += next(rest).encode("utf-8", "surrogateescape")
        for escape in rest:
            simple = {"\\": b"\\", '"': b'"', "n": b"\n", "t": b"\t"}.get(escape)
            if simple is None and len(escape) != 2:
                self.error(f"unknown escape '\\{escape}' in a string", self.i - 1)
            out += bytes((int(escape, 16),)) if simple is None else simple
            out += next(rest).encode("utf-8", "surrogateescape")
        return out.decode("utf-8", "surrogateescape")

    def symbol(self) -> str:
        """`@name` or `@"any text"`: the name."""
        token = self.tokens[self.i]
        if token[:1] != "@" or len(token) < 2:
            self.unexpected("a symbol")
        self.i += 1
        return self.unquote(token[1:]) if token[1] == '"' else token[1:]

    def optional_symbol(self) -> str | None:
        """A symbol if one stands here."""
        return self.symbol() if self.tokens[self.i][:1] == "@" else None

    def list(self, open: str, item: Callable[[], T], close: str) -> list[T]:
        """`open item, item, .. close`; `open` and `close` may be empty strings when a list stands bare."""
        items: list[T] = []
        if open:
            self.expect(open)
        if close and self.accept(close):
            return items
        while True:
            items.append(item())
            if not self.accept(","):
                break
        if close:
            self.expect(close)
        return items

    def skip_to(self, offset: int) -> None:
        """Make the first token that starts at or after `offset` the current one."""
        i, starts, tokens = self.i, self.starts, self.tokens
        while starts[i] < offset and tokens[i]:
            i += 1
        self.i = i

"""Source locations: where an operation comes from.  They stay outside equality and digests of IR.

Locations are immutable; `str(location)` is the text inside `loc(...)`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import FrameType


def quote(text: str) -> str:
    r"""A string literal of IR text: `\\` for a backslash, `\HH` for quotes and bytes outside printable ASCII."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    out: list[str] = []
    for byte in text.encode("utf-8", "surrogateescape"):
        if byte == 0x5C:
            out.append("\\\\")
        elif 0x20 <= byte < 0x7F and byte != 0x22:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:02X}")
    return '"' + "".join(out) + '"'


class Location:
    """Base of all locations."""

    __slots__ = ()

    def file_position(self) -> FileLoc | None:
        """The first file position that this location leads to, or None."""
        return None

    def __repr__(self) -> str:
        return f"loc({self})"


class UnknownLoc(Location):
    """No location is known."""

    __slots__ = ()

    def __str__(self) -> str:
        return "unknown"


UNKNOWN = UnknownLoc()


class FileLoc(Location):
    """`"file":line:column`, both counted from 1."""

    __slots__ = ("column", "file", "line")

    def __init__(self, file: str, line: int, column: int) -> None:
        self.file = file
        self.line = line
        self.column = column

    def file_position(self) -> FileLoc:
        return self

    def __str__(self) -> str:
        return f"{quote(self.file)}:{self.line}:{self.column}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileLoc) and (self.file, self.line, self.column) == (
            other.file,
            other.line,
            other.column,
        )

    def __hash__(self) -> int:
        return hash((self.file, self.line, self.column))


class CompoundLoc(Location):
    """Base of locations made of others.

    Inlining nests them as deep as calls nest, so nothing here recurses: the hash is kept, the rest walks with a stack.
    """

    __slots__ = ("_hash", "children")
    children: tuple[Location, ...]
    _hash: int

    def _finish(self, *children: Location) -> None:
        self.children = children
        self._hash = hash((type(self), self._own(), children))

    def _own(self) -> str:
        """What the location says itself, beside its children."""
        return ""

    def _pieces(self) -> list[str | Location]:
        """The text, with the children in their places."""
        raise NotImplementedError

    def file_position(self) -> FileLoc | None:
        pending: list[Location] = [self]
        while pending:
            location = pending.pop()
            if isinstance(location, CompoundLoc):
                pending += reversed(location.children)
            elif isinstance(location, FileLoc):
                return location
        return None

    def __str__(self) -> str:
        out: list[str] = []
        pending: list[str | Location] = [self]
        while pending:
            piece = pending.pop()
            if isinstance(piece, CompoundLoc):
                pending += reversed(piece._pieces())
            else:
                out.append(str(piece))
        return "".join(out)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, CompoundLoc) or self._hash != other._hash:
            return False
        pending: list[tuple[Location, Location]] = [(self, other)]
        while pending:
            one, two = pending.pop()
            if one is two:
                continue
            if not isinstance(one, CompoundLoc) or not isinstance(two, CompoundLoc):
                if isinstance(one, CompoundLoc) or isinstance(two, CompoundLoc) or one != two:
                    return False
            elif type(one) is not type(two) or one._own() != two._own() or len(one.children) != len(two.children):
                return False
            else:
                pending += zip(one.children, two.children)
        return True

    def __hash__(self) -> int:
        return self._hash


class NameLoc(CompoundLoc):
    """`"name"` or `"name"(child)`."""

    __slots__ = ("name",)

    def __init__(self, name: str, child: Location = UNKNOWN) -> None:
        self.name = name
        self._finish(child)

    @property
    def child(self) -> Location:
        """The location that the name is given to."""
        return self.children[0]

    def _own(self) -> str:
        return self.name

    def _pieces(self) -> list[str | Location]:
        return [quote(self.name)] if self.child is UNKNOWN else [quote(self.name), "(", self.child, ")"]


class CallSiteLoc(CompoundLoc):
    """`callsite(callee at caller)`."""

    __slots__ = ()

    def __init__(self, callee: Location, caller: Location) -> None:
        self._finish(callee, caller)

    @property
    def callee(self) -> Location:
        """The location of the op in the function that was called."""
        return self.children[0]

    @property
    def caller(self) -> Location:
        """The location of the call."""
        return self.children[1]

    def _pieces(self) -> list[str | Location]:
        return ["callsite(", self.callee, " at ", self.caller, ")"]


class FusedLoc(CompoundLoc):
    """`fused[a, b]`: several locations that became one."""

    __slots__ = ()

    def __init__(self, parts: Sequence[Location]) -> None:
        self._finish(*parts)

    @property
    def parts(self) -> tuple[Location, ...]:
        """The locations that became one."""
        return self.children

    def _pieces(self) -> list[str | Location]:
        pieces: list[str | Location] = ["fused["]
        for index, part in enumerate(self.children):
            pieces += [", ", part] if index else [part]
        return [*pieces, "]"]


# A fused location names at most this many sources: rewriting a long chain must not make locations that grow with it.
MAX_FUSED = 8


def fuse(locations: Sequence[Location]) -> Location:
    """One location for a replacement of several ops: unknown ones dropped, nested fusions flattened, no repeats."""
    if len(locations) == 1:
        return locations[0]
    parts: dict[Location, None] = {}
    for location in locations:
        for part in location.parts if isinstance(location, FusedLoc) else (location,):
            if part is not UNKNOWN and len(parts) < MAX_FUSED:
                parts[part] = None
    if not parts:
        return UNKNOWN
    return next(iter(parts)) if len(parts) == 1 else FusedLoc(tuple(parts))


_PACKAGE = str(Path(__file__).resolve().parent.parent)
# Frames of the library itself are skipped when looking for the user's line; its tests and examples are users.
_INNER = (
    *[f"{_PACKAGE}/{room}/" for room in ("ir", "passes", "lowering", "runtime", "autograd", "tools")],
    f"{_PACKAGE}/testing.py",
)
_LIBRARIES = frozenset({*sys.stdlib_module_names, "numpy", "ml_dtypes", "llvmlite", "pyopencl"})
"""Packages that run on behalf of whoever calls them."""


@lru_cache(maxsize=4096)
def _is_inner(filename: str) -> bool:
    return str(Path(filename).resolve()).startswith(_INNER)


def is_users(frame: FrameType) -> bool:
    """Whether code runs in a frame that is neither this library's nor of a package that it is built on."""
    package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return package not in _LIBRARIES and not _is_inner(frame.f_code.co_filename)


@lru_cache(maxsize=65536)
def _file_loc(filename: str, line: int, column: int) -> FileLoc:
    return FileLoc(filename, line, column)


def caller_location() -> Location:
    """The innermost Python frame outside this library: the user's own line."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and _is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return UNKNOWN
    return _file_loc(frame.f_code.co_filename, frame.f_lineno, 1)


def called_function() -> str:
    """The name of the function of this library that the user's own line calls."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    name = ""
    while frame is not None and _is_inner(frame.f_code.co_filename):
        name = frame.f_code.co_name
        if name == "__init__":
            name = type(frame.f_locals["self"]).__name__
        frame = frame.f_back
    return name.strip("_")

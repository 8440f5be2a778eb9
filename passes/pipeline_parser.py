"""Pipeline text to passes: `a,b{opt=1 other=x},func.func(c)`.

    pipeline ::= element ("," element)*
    element  ::= pass ["{" option* "}"] | named-pipeline | op-name "(" pipeline ")"
    option   ::= name ["=" value]        separated by blanks

An option's value ends at a blank; quotes or braces around it keep blanks and are taken off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..ir.diagnostics import PassError
from .pipelines import PIPELINES
from .registry import PASSES, lookup, pass_names, suggest

if TYPE_CHECKING:
    from .manager import Pass

_NAME = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*")
_KEY = re.compile(r"\s*([A-Za-z_][\w.-]*)(=)?")


@dataclass
class Nest:
    """A pipeline for each op named `anchor` (`any`: every op) directly inside the op that is being transformed."""

    anchor: str
    passes: list[Pass | Nest]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.passes))})"


def parse_pipeline(text: str) -> list[Pass | Nest]:
    """The passes that `text` names; PassError with the column when it is malformed."""
    return _Parser(text, ()).run()


class _Parser:
    """One left-to-right scan; `active` are the named pipelines being expanded, to refuse one that contains itself."""

    def __init__(self, text: str, active: tuple[str, ...]) -> None:
        self.text = text
        self.active = active
        self.at = 0

    def error(self, message: str) -> PassError:
        return PassError(f"{message} at column {self.at + 1} of the pass pipeline '{self.text}'")

    def run(self) -> list[Pass | Nest]:
        # The stack holds the open nests; no recursion, so that depth is bounded by memory alone.
        done: list[Pass | Nest] = []
        stack: list[tuple[str, list[Pass | Nest]]] = []
        if not self.text.strip():
            return done
        while True:
            name = self.name()
            if self.accept("("):
                stack.append((name, done))
                done = []
                if not self.accept(")"):
                    continue
                self.at -= 1
            else:
                done += self.element(name)
            while stack and self.accept(")"):
                anchor, outer = stack.pop()
                outer.append(Nest(anchor, done))
                done = outer
            if self.accept(","):
                continue
            if self.at < len(self.text):
                raise self.error(f"expected ',' or the end, found '{self.text[self.at]}'")
            if stack:
                raise self.error(f"expected ')' to close '{stack[-1][0]}('")
            return done

    def name(self) -> str:
        found = _NAME.match(self.text, self.at)
        if found is None:
            raise self.error("expected the name of a pass")
        self.at = found.end()
        return found[1]

    def accept(self, character: str) -> bool:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        found = self.text.startswith(character, self.at)
        self.at += found
        return found

    def element(self, name: str) -> list[Pass | Nest]:
        options = self.options() if self.accept("{") else {}
        if name in PIPELINES and name not in PASSES:
            if options:
                raise PassError(f"the pipeline '{name}' takes no options")
            if name in self.active:
                raise PassError(f"the pipeline '{name}' contains itself")
            return _Parser(PIPELINES[name], (*self.active, name)).run()
        try:
            cls = lookup(name)
        except PassError:
            raise PassError(f"unknown pass '{name}'; {suggest(name, [*pass_names(), *sorted(PIPELINES)])}") from None
        return [cls.with_options(options)]

    def options(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while not self.accept("}"):
            key = _KEY.match(self.text, self.at)
            if key is None:
                raise self.error("expected the name of an option or '}'")
            self.at = key.end()
            found[key[1]] = self.value() if key[2] else ""
        return found

    def value(self) -> str:
        start, depth, quoted = self.at, 0, ""
        while True:
            if self.at >= len(self.text):
                raise self.error("expected '}' to close the options")
            c = self.text[self.at]
            if quoted:
                quoted = "" if c == quoted else quoted
            elif c in "'\"":
                quoted = c
            elif c in "{[(":
                depth += 1
            elif depth and c in "}])":
                depth -= 1
            elif not depth and (c == "}" or c.isspace()):
                break
            self.at += 1
        value = self.text[start : self.at]
        wrapped = len(value) > 1 and value[0] + value[-1] in ("''", '""', "{}")
        return value[1:-1] if wrapped else value

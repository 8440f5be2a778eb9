"""FileCheck in Python: does a text hold what `// CHECK` lines say, in order?

    // CHECK-LABEL: @name          where a part of the text begins; the lines up to the next label are matched inside it
    // CHECK: %[[X:.*]] = a.b      somewhere after the last match; captures X
    // CHECK-NEXT: c.d %[[X]]      on the next line
    // CHECK-SAME: {{i(32|64)}}    on the same line; a regular expression
    // CHECK-NOT: e.f              nowhere between the matches around it
    // CHECK-DAG: g.h              in any order among neighbouring DAG lines

Blanks count as one.  The prefix `CHECK` can be another word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PIECE = re.compile(r"\{\{(?P<regex>.*?)\}\}|\[\[(?P<name>\w+)(?::(?P<capture>.*?))?\]\](?!\])")


@dataclass
class Directive:
    """One CHECK line: its kind (`""`, `NEXT`, `SAME`, `NOT`, `DAG`, `LABEL`), pattern and line number."""

    kind: str
    pattern: str
    line: int


class Mismatch(AssertionError):
    """A text that is not as its CHECK lines say."""


def directives(text: str, prefix: str = "CHECK") -> list[Directive]:
    """The CHECK lines of a file."""
    form = re.compile(rf"//\s*{re.escape(prefix)}(?:-(NEXT|SAME|NOT|DAG|LABEL))?:(.*)$")
    return [
        Directive(match[1] or "", match[2].strip(), number)
        for number, line in enumerate(text.splitlines(), 1)
        if (match := form.search(line))
    ]


def compile_pattern(pattern: str, known: dict[str, str]) -> re.Pattern[str]:
    """The regular expression of a pattern, with what earlier patterns captured put in."""
    out: list[str] = []
    seen: set[str] = set()
    at = 0
    for piece in [*PIECE.finditer(pattern), None]:
        literal = pattern[at : piece.start() if piece else len(pattern)]
        out += [r"[ \t]+" if part.isspace() else re.escape(part) for part in re.split(r"(\s+)", literal) if part]
        if piece is None:
            break
        at = piece.end()
        name, capture = piece["name"], piece["capture"]
        if piece["regex"] is not None:
            out.append(f"(?:{piece['regex']})")
        elif capture is not None:
            out.append(f"(?P<{name}>{capture})")
            seen.add(name)
        elif name in seen:
            out.append(f"(?P={name})")
        elif name in known:
            out.append(re.escape(known[name]))
        else:
            raise Mismatch(f"[[{name}]] is used before it is captured")
    return re.compile("".join(out))


class _Checker:
    """Matches directives one after the other in `text[start:end]`."""

    def __init__(self, text: str, source: str, known: dict[str, str], start: int, end: int) -> None:
        self.text, self.source, self.known = text, source, known
        self.at, self.end = start, end
        self.forbidden: list[Directive] = []
        self.dag_start: int | None = None

    def fail(self, directive: Directive, message: str) -> Mismatch:
        rest = self.text[self.at : self.end].strip("\n").splitlines()[:12]
        shown = "\n".join(f"  | {line}" for line in rest) or "  | (end of the output)"
        kind = f"CHECK{'-' if directive.kind else ''}{directive.kind}"
        return Mismatch(
            f"{self.source}:{directive.line}: {kind}: {directive.pattern}\n{message}; the output goes on:\n{shown}"
        )

    def find(self, directive: Directive, start: int, end: int) -> re.Match[str] | None:
        found = compile_pattern(directive.pattern, self.known).search(self.text, start, end)
        if found:
            self.known.update({k: v for k, v in found.groupdict().items() if v is not None})
        return found

    def line_end(self, at: int) -> int:
        newline = self.text.find("\n", at, self.end)
        return self.end if newline < 0 else newline

    def run(self, directive: Directive) -> None:
        kind = directive.kind
        if kind == "NOT":
            self.forbidden.append(directive)
            return
        if kind == "DAG":
            self.dag_start = self.at if self.dag_start is None else self.dag_start
            found = self.find(directive, self.dag_start, self.end)
            if found is None:
                raise self.fail(directive, "not found")
            self.at = max(self.at, found.end())
            return
        self.dag_start = None
        start, end = self.at, self.end
        if kind == "SAME":
            end = self.line_end(self.at)
        elif kind == "NEXT":
            start = min(self.line_end(self.at) + 1, self.end)
            end = self.line_end(start)
        found = self.find(directive, start, end)
        if found is None:
            where = {"NEXT": "not on the next line", "SAME": "not on the same line"}.get(kind, "not found")
            raise self.fail(directive, where)
        self.settle(found.start())
        self.at = found.end()

    def settle(self, end: int) -> None:
        """Refuse what must not stand before `end`."""
        for directive in self.forbidden:
            if compile_pattern(directive.pattern, self.known).search(self.text, self.at, end):
                raise self.fail(directive, "found, but must not be there")
        self.forbidden.clear()


def check(output: str, checks: str, source: str = "-", prefix: str = "CHECK") -> None:
    """Raise Mismatch unless `output` is as the CHECK lines in the text `checks` say."""
    todo = directives(checks, prefix)
    if not todo:
        raise Mismatch(f"{source}: there are no {prefix} lines")
    known: dict[str, str] = {}
    # (where the part's label begins, where it ends, the directives for what is behind it)
    parts: list[tuple[int, int, list[Directive]]] = [(0, 0, [])]
    for directive in todo:
        if directive.kind == "LABEL":
            found = compile_pattern(directive.pattern, {}).search(output, parts[-1][1])
            if found is None:
                raise _Checker(output, source, known, parts[-1][1], len(output)).fail(directive, "not found")
            parts.append((found.start(), found.end(), []))
        else:
            parts[-1][2].append(directive)
    for (_, start, inside), (end, _, _) in zip(parts, [*parts[1:], (len(output), 0, [])]):
        checker = _Checker(output, source, known, start, end)
        for directive in inside:
            checker.run(directive)
        checker.settle(end)

"""What makes pocl fast: its own mathematical functions are calls that are never inlined.

pocl compiles with clang, whose builtins are single instructions.  A program for pocl gets definitions of the exact
functions by those builtins, put before its text.  `fma` is replaced only where the processor has the instruction.
"""

from __future__ import annotations

import re

UNARY = ("sqrt", "rint", "floor", "ceil", "trunc", "fabs")

_USED = re.compile(r"\b(fma|copysign|" + "|".join(UNARY) + r")\(")
_ATTRIBUTES = "static inline __attribute__((overloadable, always_inline))"


def _definition(name: str, type: str, arity: int) -> str:
    arguments = ", ".join("abc"[:arity])
    parameters = ", ".join(f"{type} {a}" for a in "abc"[:arity])
    builtin = f"__builtin_{name}{'f' if type == 'float' else ''}"
    return f"{_ATTRIBUTES} {type} builtin_{name}({parameters}) {{ return {builtin}({arguments}); }}"


def prelude(text: str) -> str:
    """The definitions that a program's text needs; lines of the text keep their numbers in complaints."""
    used = sorted({match[1] for match in _USED.finditer(text)})
    types = ("float", "double") if "double" in text else ("float",)
    lines: list[str] = []
    for name in used:
        arity = 3 if name == "fma" else 2 if name == "copysign" else 1
        own = [_definition(name, type, arity) for type in types]
        # pocl's header has macros of these names.
        own += [f"#undef {name}", f"#define {name} builtin_{name}"]
        lines += ["#ifdef __FMA__", *own, "#endif"] if name == "fma" else own
    return "\n".join([*lines, "#line 1", ""]) if lines else ""

"""The manifest of dialects: a row for each, of names alone, so that reading it imports nothing.

What needs to know which dialects there are reads this table: the lookup of ops (`registry`), the builder's methods,
canonicalize's rules, the interpreter's handlers, the front-end's functions, what a level may hold, the names for
mlir-opt.  A plugin adds a row with `register` and then has all of that too.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final, Literal, NamedTuple

from .diagnostics import Error

Level = Literal["any", "tensor", "kernel", "loop"]


class Dialect(NamedTuple):
    """A dialect: its name, the level that its ops belong to, and the modules that speak of it."""

    name: str
    level: Level
    ops: str
    """The module that defines the op classes."""
    rewrites: str = ""
    """The module whose `RULES` rewrite its ops, if any do; those of a plugin may rewrite the ops of any dialect."""
    meaning: str = ""
    """The module that registers the interpreter's handlers of ops whose meaning `evaluate` cannot say."""
    functions: str = ""
    """The module of front-end functions on its ops that are written by hand, not declared by an op."""
    foreign: str = ""
    """What it prints as for mlir-opt, which takes `name` for a dialect of its own."""

    def load(self) -> None:
        """Import the op classes."""
        import_module(self.ops)


def _row(
    name: str, level: Level, rewrites: bool = False, meaning: str = "", functions: bool = False, foreign: str = ""
) -> Dialect:
    root = __name__.partition(".")[0]
    return Dialect(
        name,
        level,
        f"{root}.ir.dialects.{name}",
        f"{root}.passes.rewrites.{name}" if rewrites else "",
        f"{root}.ir.interpreter.{meaning}" if meaning else "",
        f"{root}.autograd.functions.{name}" if functions else "",
        foreign,
    )


DIALECTS: Final[dict[str, Dialect]] = {
    row.name: row
    for row in (
        _row("builtin", "any"),
        _row("func", "any", meaning="functions"),
        _row("elementwise", "tensor", rewrites=True, functions=True),
        _row("array", "tensor", rewrites=True, functions=True),
        _row("linalg", "tensor", functions=True, foreign="nb_linalg"),
        _row("loss", "tensor", functions=True),
        _row("kernel", "kernel", meaning="kernel"),
        _row("arith", "loop", rewrites=True),
        _row("math", "loop", rewrites=True),
        _row("cf", "loop", meaning="loop"),
        _row("scf", "loop", rewrites=True, meaning="loop"),
        _row("memref", "loop", meaning="loop"),
        _row("vector", "loop", rewrites=True, meaning="loop"),
        _row("gpu", "loop", meaning="gpu"),
        _row("nvgpu", "loop", meaning="tensor_cores"),
        _row("llvm", "loop"),
    )
}
"""The dialects by name."""


BUILT_IN: Final = frozenset(DIALECTS)
"""The names of our own dialects."""


def register(dialect: Dialect) -> None:
    """Make a dialect known; Error when there is another of its name."""
    known = DIALECTS.setdefault(dialect.name, dialect)
    if known != dialect:
        raise Error(f"there is a dialect '{dialect.name}' already, whose ops {known.ops} defines")


def dialect_of(op_name: str) -> Dialect | None:
    """The dialect of an op's name, if it is known."""
    return DIALECTS.get(op_name.partition(".")[0])


def at_level(level: Level) -> list[Dialect]:
    """The dialects of a level."""
    return [d for d in DIALECTS.values() if d.level == level]

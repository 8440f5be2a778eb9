"""Which dialects exist, where their definitions stand, and the lookup of op classes by name.

Dialect modules are imported when an op of theirs is first looked up, so that a tool pays only for what a file uses.
"""

from __future__ import annotations

from importlib import import_module

from .definition import OPS, Op

DIALECTS: dict[str, str] = {
    name: f"{__package__}.dialects.{name}"
    for name in (
        "builtin",
        "func",
        "elementwise",
        "array",
        "linalg",
        "loss",
        "kernel",
        "arith",
        "math",
        "cf",
        "scf",
        "memref",
        "vector",
        "gpu",
        "nvgpu",
        "llvm",
    )
}
"""Dialect name -> module that defines its ops; a plugin adds its own with `register_dialect`."""


def register_dialect(name: str, module: str) -> None:
    """Make the ops of `name` known: importing `module` must define their classes."""
    DIALECTS[name] = module


def load_dialect(name: str) -> bool:
    """Import a dialect's definitions; whether the dialect is known."""
    module = DIALECTS.get(name)
    if module is None:
        return False
    import_module(module)
    return True


def suggestion(name: str) -> str:
    """`; did you mean 'linalg.reduce_sum'?` for the name of no op, "" when nothing is near."""
    from difflib import get_close_matches

    dialect, _, rest = name.partition(".")
    near = [dialect] if dialect in DIALECTS else get_close_matches(dialect, DIALECTS, 1)
    if near:
        load_dialect(near[0])
    found = get_close_matches(f"{near[0]}.{rest}" if near else name, OPS, 1, 0.7)
    return f"; did you mean '{found[0]}'?" if found else ""


def lookup(name: str) -> type[Op] | None:
    """The class of the op `name`, or None when no dialect defines it."""
    found = OPS.get(name)
    if found is None and load_dialect(name.partition(".")[0]):
        found = OPS.get(name)
    return found

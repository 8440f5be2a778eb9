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


def lookup(name: str) -> type[Op] | None:
    """The class of the op `name`, or None when no dialect defines it."""
    found = OPS.get(name)
    if found is None and load_dialect(name.partition(".")[0]):
        found = OPS.get(name)
    return found

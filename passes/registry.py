"""Which passes exist: name -> module.  A pass's module is imported when the pass is first asked for.

Adding a pass is one row here and one module; a plugin adds its own by defining a subclass of `Pass`, or, to stay lazy,
with `register_pass`.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from ..ir.diagnostics import PassError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .manager import Pass

PASS_CLASSES: dict[str, type[Pass]] = {}
"""All pass classes defined so far, by name; `lookup` imports modules on demand."""

PASSES: dict[str, str] = {
    name: f"{__package__}.{module}"
    for name, module in {
        "autodiff": "autodiff.transform",
        "block-reduction": "loops.block_reduction",
        "bufferize": "bufferize",
        "canonicalize": "canonicalize",
        "collapse": "loops.collapse",
        "cse": "cse",
        "dce": "dce",
        "decompose": "decompose",
        "expand-math": "expand_math",
        "fuse": "fusion.fuse",
        "inline": "inline",
        "insert-checks": "checks.insert_checks",
        "licm": "licm",
        "lower-to-kernels": "lower_to_kernels",
        "lower-to-loops": "lower_to_loops",
        "map-gpu": "loops.map_gpu",
        "set-target": "set_target",
        "pack": "loops.pack",
        "parallel": "loops.parallel",
        "plan": "schedules.plan",
        "promote": "loops.promote",
        "rebase": "loops.rebase",
        "split-reduce": "splits.reduce",
        "strip-annotations": "checks.strip_annotations",
        "tile": "loops.tile",
        "unroll-jam": "loops.unroll_jam",
        "vectorize": "loops.vectorize",
    }.items()
}
"""Pass name -> module whose import defines the pass."""

ALIASES: dict[str, str] = {"lower-broadcast": "lower-to-kernels"}
"""Former name -> name; pipelines may use either, and print the name."""


def register_pass(name: str, module: str) -> None:
    """Make the pass `name` known: importing `module` must define it."""
    PASSES[name] = module


def pass_names() -> list[str]:
    """The names of all passes, sorted."""
    return sorted({*PASSES, *PASS_CLASSES})


def lookup(name: str) -> type[Pass]:
    """The class of the pass `name`, or of its alias; PassError when there is none."""
    name = ALIASES.get(name, name)
    found = PASS_CLASSES.get(name)
    if found is None and name in PASSES:
        import_module(PASSES[name])
        found = PASS_CLASSES.get(name)
    if found is None:
        raise PassError(f"unknown pass '{name}'; {suggest(name, pass_names())}")
    return found


def suggest(name: str, known: Iterable[str]) -> str:
    """`did you mean 'x'?` when a name is near, and what exists."""
    names = list(known)
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"{hint}known: {', '.join(names) or 'none'}"

"""A plugin's target: the kernels of a module as an outline, a line for each.

ir-opt --load-plugin docs/programs/outline.py docs/programs/chain.mlir -p kernel --emit=outline
"""

from collections import Counter

from nablair.ir.dialects import kernel
from nablair.ir.dialects.func import Func
from nablair.lowering.targets import TargetText, register

register(TargetText("outline", __name__, "kernel", level="kernel"))


def emit_module(module):
    """The text of a kernel-level module."""
    lines = []
    for function in module.body.block:
        if isinstance(function, Func):
            lines.append(f"@{function.sym_name}")
            for op in function.walk():
                if isinstance(op, kernel.Launch):
                    counts = Counter(inner.name for inner in op.walk() if inner is not op)
                    lines.append("  " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
    return "\n".join(lines) + "\n"

"""A plugin: an op with its meaning, its derivative and a pass, without a change to nablair.

ir-opt --load-plugin docs/programs/plugin.py docs/programs/plugin.mlir -p 'autodiff,count-ops'
"""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from nablair.ir.definition import Api, Sample
from nablair.ir.dialects.elementwise.family import UnaryFloat
from nablair.ir.interfaces import HasPartials
from nablair.passes.manager import Pass


class Softsign(UnaryFloat, HasPartials):
    """x / (1 + |x|)."""

    name = "demo.softsign"
    api = Api("softsign", "float")
    samples = (Sample("x / (1 + np.abs(x))"),)

    def formula(self, x):
        return x / (1.0 + np.abs(x))

    def scalar(self, b, *operands):
        (x,) = operands
        return b.div(x, b.add(b.constant(1.0, x.type), b.abs(x)))

    def partials(self, b):
        """1 / (1 + |x|)**2: how a change of x changes the result."""
        base = b.add(b.abs(self.x), 1.0)
        yield lambda t: b.div(t, b.mul(base, base))


@dataclass
class CountOps(Pass):
    """Print how often each op occurs."""

    name: ClassVar[str] = "count-ops"

    def run(self, op):
        for name, times in sorted(Counter(o.name for o in op.walk()).items()):
            print(f"// {times:2} {name}")

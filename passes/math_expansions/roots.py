"""rsqrt: 1 / sqrt(x), two correctly rounded steps. Estimates with Newton steps are a target's override: they miss
denormals and infinity.
"""

from __future__ import annotations

from .builder import MathBuilder, V


def rsqrt(b: MathBuilder[V], x: V) -> V:
    return b.div(b.constant(1.0, x), b.sqrt(x))

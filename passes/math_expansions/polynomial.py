"""Polynomial evaluation and error-free transformations."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import MathBuilder, V


def horner(b: MathBuilder[V], x: V, coefficients: Sequence[float]) -> V:
    """c[0] + c[1] x + c[2] x**2 + .., one fma a step.

    Horner's scheme and not a tree: loops are unrolled over independent elements, which hides the latency, and its
    rounding error is the smallest.
    """
    total = b.constant(coefficients[-1], x)
    for c in reversed(coefficients[:-1]):
        total = b.fma(total, x, b.constant(c, x))
    return total


def two_sum(b: MathBuilder[V], x: V, y: V) -> tuple[V, V]:
    """(s, e) with s = x + y rounded and s + e = x + y exactly (Knuth)."""
    s = b.add(x, y)
    y_part = b.sub(s, x)
    return s, b.add(b.sub(x, b.sub(s, y_part)), b.sub(y, y_part))


def fast_two_sum(b: MathBuilder[V], x: V, y: V) -> tuple[V, V]:
    """(s, e) as of `two_sum`, where |x| >= |y| or x is a multiple of y's last place (Dekker)."""
    s = b.add(x, y)
    return s, b.sub(y, b.sub(s, x))


def two_product(b: MathBuilder[V], x: V, y: V) -> tuple[V, V]:
    """(p, e) with p = x * y rounded and p + e = x * y exactly."""
    p = b.mul(x, y)
    return p, b.fma(x, y, b.neg(p))

"""The IR itself: types, attributes, values, operations, op definitions, text, verifier, rewriting, interpreter."""

from __future__ import annotations

from .operations import Operation


def _text_of(op: Operation) -> str:
    from .printer import print_op  # late: most programs print no IR

    return print_op(op)


Operation.text_of = _text_of

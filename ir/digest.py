"""A digest of what IR says.

It is the same for the same structure in every process, whatever the values are named and wherever the ops come from.

Two ops have one digest exactly when their generic forms agree with values numbered in text order and locations left
out.  Symbol names, attributes and types count.
"""

from __future__ import annotations

import hashlib

from .operations import Operation
from .printer import print_op


def digest(op: Operation) -> str:
    """The digest of an op and all inside it: 64 hexadecimal digits (BLAKE2b, 256 bits)."""
    text = print_op(op, generic=True, keep_names=False)
    return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=32).hexdigest()

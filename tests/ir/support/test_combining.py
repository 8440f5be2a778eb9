"""The words of reductions and atomic updates, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from nablair.ir.support.combining import combiner
from nablair.ir.types import F32, I32, Type

KINDS = {
    "add": (np.add, "fi"),
    "mul": (np.multiply, "fi"),
    "maximum": (np.maximum, "f"),
    "minimum": (np.minimum, "f"),
    "maxnum": (np.fmax, "f"),
    "minnum": (np.fmin, "f"),
    "maxs": (np.maximum, "i"),
    "mins": (np.minimum, "i"),
    "maxu": (lambda a, b: np.maximum(a.view(np.uint32), b.view(np.uint32)).view(np.int32), "i"),
    "minu": (lambda a, b: np.minimum(a.view(np.uint32), b.view(np.uint32)).view(np.int32), "i"),
    "and": (np.bitwise_and, "i"),
    "or": (np.bitwise_or, "i"),
    "xor": (np.bitwise_xor, "i"),
}
FLOATS = np.array([-2.5, 0.0, 3.0, np.nan, np.inf], np.float32)
INTEGERS = np.array([-3, 0, 1, 7, 2**31 - 1], np.int32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("letter", "element"), [("f", F32), ("i", I32)])
def test_a_word_combines_as_numpy_does(kind: str, letter: str, element: Type) -> None:
    reference, kinds = KINDS[kind]
    if letter not in kinds:
        with pytest.raises(ValueError, match=f"'{kind}' does not combine elements of type {element}"):
            combiner(kind, element)
        return
    values = FLOATS if letter == "f" else INTEGERS
    a, b = np.repeat(values, 5), np.tile(values, 5)
    with np.errstate(all="ignore"):
        expected = reference(a, b)
        np.testing.assert_array_equal(combiner(kind, element)(a, b), expected)
        # With the letter of the element type behind it, as upstream spells it.
        suffix = {"f": "f", "i": "i"}[letter]
        if kind in ("add", "mul", "maximum", "minimum", "and", "or", "xor"):
            np.testing.assert_array_equal(combiner(kind + suffix, element)(a, b), expected)


def test_an_assignment_takes_the_new_value() -> None:
    assert combiner("assign", F32)(np.array(1), np.array(2)) == 2
    with pytest.raises(ValueError, match="'average' does not combine"):
        combiner("average", F32)

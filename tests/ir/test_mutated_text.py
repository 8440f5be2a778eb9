"""Whatever the text: a diagnostic refuses it, or it is IR that its own text gives back, and that passes take.

The texts are those of all levels with a few faults each: tokens exchanged, removed and doubled, numbers at the edge of
their types, types and names of other kinds, lines of other texts.
"""

from __future__ import annotations

from random import Random

import pytest
from fuzzing import cases
from text_checks import accepted, check_pipeline, check_text
from text_mutator import mutate, seeds

pytestmark = pytest.mark.fuzz

TEXTS = 1500
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
def test_mutated_texts(part: int) -> None:
    corpus = seeds()
    kept = 0
    for number in range(part, cases(TEXTS), PARTS):
        text = mutate(Random(number), corpus)
        try:
            module = accepted(text)
            if module is None:
                continue
            kept += 1
            check_text(module)
            check_pipeline(module, "canonicalize,cse,dce")
            check_pipeline(module, ("kernel", "loop-cpu", "loop-cuda")[number % 3])
        except Exception as error:
            error.add_note(f"text {number}:\n{text}")
            raise
    assert kept > TEXTS // PARTS // 20


def test_the_seeds_stand_as_they_are() -> None:
    corpus = seeds()
    assert len(corpus) > 100
    for text in corpus:
        module = accepted(text)
        assert module is not None
        check_text(module)

"""The CPU on every row of the op table, in every element type, on special values, and on sizes that fill vectors."""

from __future__ import annotations

import pytest
from device_rows import Case, cases, larger_cases, other_elements, special_cases

from nablair.ir.types import BF16, F16, F32, F64
from nablair.runtime.compile import compile_function


def on_cpu(chosen: list[Case]) -> list[str]:
    """What the CPU gets wrong."""
    results = [(c, compile_function(c.module).run(c.arrays)) for c in chosen]
    return [w for c, found in results if (w := c.complaint(found))]


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_every_row(element):
    assert on_cpu(cases([element])) == []


def test_other_element_types():
    assert on_cpu(cases(other_elements(), lambda i: i % 2 == 0)) == []


@pytest.mark.parametrize("element", [F32, F64], ids=str)
def test_special_values(element):
    assert on_cpu(special_cases(element)) == []


@pytest.mark.parametrize("element", [F32, F64, F16, BF16], ids=str)
def test_vectors_blocks_and_tiles(element):
    assert on_cpu(larger_cases(element)) == []

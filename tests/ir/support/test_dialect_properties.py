"""Properties that upstream keeps in attributes of its own: what is written is read back, and the rest is refused."""

from __future__ import annotations

import itertools

import pytest

from nablair.ir.attributes import DialectAttr
from nablair.ir.support.dialect_properties import (
    FAST_MATH_FLAGS,
    DialectEnumeration,
    fast_math,
    integer_list,
    integer_lists,
    overflow_flags,
)


@pytest.mark.parametrize(
    ("pattern", "text"), [("kind<{}>", "#vector.kind<maxnumf>"), ("<dim {}>", "#vector<dim maxnumf>")]
)
def test_an_enumeration_reads_as_its_name(pattern: str, text: str) -> None:
    kind = DialectEnumeration("vector", pattern, ("add", "maxnumf"), default="add")
    attribute = kind.to_attribute("maxnumf")
    assert str(attribute) == text
    assert kind.decode(attribute) == "maxnumf"
    with pytest.raises(ValueError, match="'mean' is none of add, maxnumf"):
        kind.to_attribute("mean")


def test_lists_of_integers_read_as_tuples() -> None:
    for values in [(), (3,), (0, -1, 7)]:
        assert integer_list().decode(integer_list().to_attribute(values)) == values
    groups = ((0, 1), (), (2,))
    assert integer_lists().decode(integer_lists().to_attribute(groups)) == groups


def test_sets_of_flags_read_as_sets_and_fast_is_all_of_them() -> None:
    flags = fast_math()
    plain = [f for f in FAST_MATH_FLAGS if f != "fast"]
    for count in range(3):
        for chosen in itertools.combinations(plain, count):
            attribute = flags.to_attribute(chosen)
            assert isinstance(attribute, DialectAttr)
            assert flags.decode(attribute) == frozenset(chosen)
            assert flags.parse_short(flags.short(attribute)[1:-1]) is attribute
    assert flags.decode(flags.to_attribute({"fast"})) == frozenset(plain)
    assert flags.decode(flags.to_attribute("contract")) == {"contract"}
    assert overflow_flags().decode(overflow_flags().to_attribute(("nsw", "nuw"))) == {"nsw", "nuw"}
    with pytest.raises(ValueError, match="quick: not among reassoc"):
        flags.to_attribute({"quick"})

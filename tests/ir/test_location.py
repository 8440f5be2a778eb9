"""Locations: text, equality, fusion, and nesting as deep as calls nest."""

from nablair.ir.location import (
    MAX_FUSED,
    UNKNOWN,
    CallSiteLoc,
    FileLoc,
    FusedLoc,
    Location,
    NameLoc,
    caller_location,
    fuse,
)
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op

F = FileLoc("f.py", 3, 7)
G = FileLoc("g.py", 1, 1)


def test_text() -> None:
    assert str(F) == '"f.py":3:7'
    assert str(NameLoc("n")) == '"n"'
    assert str(NameLoc("n", F)) == '"n"("f.py":3:7)'
    assert str(CallSiteLoc(F, G)) == 'callsite("f.py":3:7 at "g.py":1:1)'
    assert str(FusedLoc([F, NameLoc("n", G), UNKNOWN])) == 'fused["f.py":3:7, "n"("g.py":1:1), unknown]'
    assert repr(FusedLoc([])) == "loc(fused[])"


def test_equality_is_by_structure() -> None:
    assert CallSiteLoc(F, NameLoc("a")) == CallSiteLoc(FileLoc("f.py", 3, 7), NameLoc("a"))
    assert hash(CallSiteLoc(F, G)) == hash(CallSiteLoc(F, G))
    assert CallSiteLoc(F, G) != CallSiteLoc(G, F)
    assert CallSiteLoc(F, G) != FusedLoc([F, G])
    assert NameLoc("a") != NameLoc("b")
    assert NameLoc("a") != F
    assert F != G


def test_the_first_file_is_the_position() -> None:
    assert FusedLoc([NameLoc("x"), CallSiteLoc(UNKNOWN, NameLoc("y", G)), F]).file_position() is G
    assert NameLoc("x").file_position() is None
    assert UNKNOWN.file_position() is None


def test_fusion_is_flat_without_repeats_and_bounded() -> None:
    assert fuse([F, UNKNOWN]) is F
    assert fuse([UNKNOWN, UNKNOWN]) is UNKNOWN
    assert fuse([F, FusedLoc([G, F])]) == FusedLoc([F, G])
    many = fuse([FileLoc("f", i, 1) for i in range(100)])
    assert isinstance(many, FusedLoc)
    assert len(many.parts) == MAX_FUSED


def test_deep_call_sites() -> None:
    def chain() -> Location:
        location: Location = F
        for line in range(3000):
            location = CallSiteLoc(location, FileLoc("c.py", line + 1, 1))
        return location

    one, two = chain(), chain()
    assert one == two
    assert hash(one) == hash(two)
    assert one.file_position() is F
    module = parse_module("func.func private @f()")
    module.block.first.location = one
    text = print_op(module, locations=True)
    assert parse_module(text).block.first.location == one


def test_the_caller_is_outside_of_the_library() -> None:
    place = caller_location().file_position()
    assert place is not None
    assert place.file == __file__

"""Affine expressions: simplification, text, evaluation, parsing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nablair.ir.affine import AffineExpr, AffineMap, constant, dim, symbol
from nablair.ir.attributes import AffineMapAttr
from nablair.ir.diagnostics import ParseError
from nablair.ir.parser import Parser


def parse(text: str) -> AffineMap:
    found = Parser(text).attribute()
    assert isinstance(found, AffineMapAttr)
    return found.map


@pytest.mark.parametrize(
    "text",
    [
        "affine_map<(d0, d1)[s0] -> (d0 + d1 * 2 + s0 - 1, d1 floordiv 4)>",
        "affine_map<() -> ()>",
        "affine_map<(d0) -> (-d0 + 9)>",
        "affine_map<(d0, d1) -> ((d0 + d1) mod 4, d0 ceildiv 3)>",
        "affine_map<(d0, d1) -> (0, d1)>",
        "affine_map<(d0)[s0] -> (d0 * s0)>",
    ],
)
def test_text_round_trips(text: str) -> None:
    found = Parser(text).attribute()
    assert str(found) == text
    assert Parser(str(found)).attribute() is found


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("affine_map<(i, j) -> (j + i)>", "affine_map<(d0, d1) -> (d0 + d1)>"),
        ("affine_map<(i) -> (2 * i - i + 3 - 3)>", "affine_map<(d0) -> (d0)>"),
        ("affine_map<(i) -> ((4 * i) floordiv 2)>", "affine_map<(d0) -> (d0 * 2)>"),
        ("affine_map<(i) -> ((4 * i + 8) mod 4)>", "affine_map<(d0) -> (0)>"),
        ("affine_map<(i) -> (-(i - 1))>", "affine_map<(d0) -> (-d0 + 1)>"),
    ],
)
def test_simplification(text: str, same: str) -> None:
    assert str(Parser(text).attribute()) == same


@pytest.mark.parametrize(
    "body",
    [
        "(d0) -> (d1)",
        "(d0, d0) -> (d0)",
        "(d0) -> (d0 floordiv 0)",
        "(d0, d1) -> (d0 * d1)",
        "(d0) -> (4 mod d0)",
        "(d0) -> (d0 +)",
        "(d0) -> d0",
        "(d0)",
        "(d0) -> (d0 d0)",
    ],
)
def test_bad_maps(body: str) -> None:
    with pytest.raises(ParseError):
        Parser(f"affine_map<{body}>").attribute()


def expressions() -> st.SearchStrategy[AffineExpr]:
    leaves = st.sampled_from([dim(0), dim(1), symbol(0)]) | st.integers(-9, 9).map(constant)
    positive = st.integers(1, 7)

    def grow(inner: st.SearchStrategy[AffineExpr]) -> st.SearchStrategy[AffineExpr]:
        return (
            st.tuples(inner, inner).map(lambda p: p[0] + p[1])
            | st.tuples(inner, inner).map(lambda p: p[0] - p[1])
            | st.tuples(inner, st.integers(-5, 5)).map(lambda p: p[0] * p[1])
            | st.tuples(inner, positive).map(lambda p: p[0] // p[1])
            | st.tuples(inner, positive).map(lambda p: p[0] % p[1])
            | st.tuples(inner, positive).map(lambda p: p[0].ceildiv(p[1]))
        )

    return st.recursive(leaves, grow, max_leaves=8)


@given(expressions(), st.integers(-20, 20), st.integers(-20, 20), st.integers(-20, 20))
def test_text_keeps_the_meaning(expr: AffineExpr, a: int, b: int, s: int) -> None:
    map = AffineMap(2, 1, [expr])
    again = parse(f"affine_map<{map}>")
    assert again is map
    python = str(expr).replace("floordiv", "//").replace("mod", "%")
    if "ceildiv" not in python:
        assert expr.evaluate([a, b], [s]) == eval(python, {"d0": a, "d1": b, "s0": s})
    assert again.evaluate([a, b], [s]) == map.evaluate([a, b], [s])


@given(expressions(), st.integers(-20, 20), st.integers(-20, 20), st.integers(-20, 20))
def test_replacement_is_substitution(expr: AffineExpr, a: int, b: int, s: int) -> None:
    changed = expr.replace({0: dim(1) * 2 + 1})
    assert changed.evaluate([a, b], [s]) == expr.evaluate([2 * b + 1, b], [s])


def test_composition() -> None:
    outer = parse("affine_map<(d0, d1) -> (d1, d0 + 1)>")
    inner = parse("affine_map<(d0) -> (d0 * 2, d0 - 1)>")
    assert str(outer.compose(inner)) == "(d0) -> (d0 - 1, d0 * 2 + 1)"
    with pytest.raises(ValueError, match="compose"):
        inner.compose(inner)


def test_linear_forms() -> None:
    (expr,) = parse("affine_map<(d0, d1) -> (d0 * 3 - d1 + 7)>").results
    assert expr.linear() == ({0: 3, 1: -1}, 7)
    assert (dim(0) // 2).linear() is None
    assert expr.dims() == {0, 1}

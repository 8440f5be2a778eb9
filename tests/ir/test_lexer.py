"""Tokens, offsets and the small syntax of the lexer."""

import pytest

from nablair.ir.diagnostics import ParseError
from nablair.ir.lexer import Lexer, tokenize


def tokens(text: str) -> list[str]:
    return [t for t in tokenize(text)[0] if t]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('%r:2 = "a.b"(%x#1)', ["%r", ":", "2", "=", '"a.b"', "(", "%x#1", ")"]),
        ("%0->%a-b", ["%0", "->", "%a-b"]),
        ("arith.addi a.b$c_1", ["arith.addi", "a.b$c_1"]),
        ("tensor<4x?xf32>,f32", ["tensor<4x?xf32>", ",", "f32"]),
        ("memref<4xf32, strided<[?, 1], offset: ?>, 1>", ["memref<4xf32, strided<[?, 1], offset: ?>, 1>"]),
        ('tensor<?xf32, ["a>b"]>', ['tensor<?xf32, ["a>b"]>']),
        ("tensor<4xf32", ["tensor", "<", "4", "xf32"]),
        ("affine_map<(d0)->(d0)>", ["affine_map", "<", "(", "d0", ")", "->", "(", "d0", ")", ">"]),
        ("1.5e-3 0x7F 12 -3 1. 2e5", ["1.5e-3", "0x7F", "12", "-", "3", "1.", "2", "e5"]),
        ('@f @"a b" ^bb1 #m !t #gpu.thread<x>', ["@f", '@"a b"', "^bb1", "#m", "!t", "#gpu.thread", "<", "x", ">"]),
        ("a // comment %x\nb// end", ["a", "b"]),
        ("@a::@b", ["@a", "::", "@b"]),
        ('"a\\"b" "', ['"a\\"b"', '"']),
        ("é\x00", ["é", "\x00"]),
    ],
)
def test_tokens(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_offsets_point_at_tokens() -> None:
    text = '  %a = "x.y"() // c\n\t: tensor<4xf32> \n'
    found, starts = tokenize(text)
    assert all(text[s : s + len(t)] == t for t, s in zip(found, starts))
    assert starts[-1] == len(text)


def test_positions_count_from_one() -> None:
    lexer = Lexer("a\n\n  b\n", "f.mlir")
    lexer.i = 1
    place = lexer.here
    assert (place.file, place.line, place.column) == ("f.mlir", 3, 3)


@pytest.mark.parametrize(
    ("token", "value"),
    [('"plain"', "plain"), (r'"\\\"\n\t\41"', '\\"\n\tA'), (r'"\C3\A9"', "é"), (r'"\FF"', "\udcff"), ('"é"', "é")],
)
def test_strings(token: str, value: str) -> None:
    assert Lexer(token).string() == value


@pytest.mark.parametrize("token", [r'"\q"', '"open', "name", r'"\C"'])
def test_bad_strings(token: str) -> None:
    with pytest.raises(ParseError):
        Lexer(token).string()


def test_lists() -> None:
    lexer = Lexer("(1, 2, -3) [] 4, 5")
    assert lexer.list("(", lexer.integer, ")") == [1, 2, -3]
    assert lexer.list("[", lexer.integer, "]") == []
    assert lexer.list("", lexer.integer, "") == [4, 5]


def test_errors_show_the_line() -> None:
    lexer = Lexer("a\n  = b", "f.mlir")
    lexer.i = 1
    with pytest.raises(ParseError) as caught:
        lexer.expect("(")
    assert caught.value.render({"f.mlir": lexer.text}).split("\n") == [
        "f.mlir:2:3: error: expected '(', found '='",
        "    = b",
        "    ^",
    ]

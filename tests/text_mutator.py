"""Texts of every level with faults in them: the seeds, and what a mutation does to one.

A text is cut into tokens, and a mutation removes, doubles, exchanges or replaces some of them: a number by one at the
edge of a type, a type by another, a name by another of its kind, a line by a line of another text.  The same random
generator gives the same texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from level_sources import FORWARD, GRADIENTS
from text_samples import SAMPLES

from nablair.ir.definition import OPS
from nablair.ir.diagnostics import Error
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify

HERE = Path(__file__).parent
MAX_SEED = 6000
"""Longer seeds are left out: a mutation of a long text mostly repeats the same parse."""

TOKENS = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|[%@^#!]?[\w$.-]*[\w$]|\s+|->|::|(?:tensor|memref|vector)<[^<>\n]*>|.', re.DOTALL | re.ASCII
)

NUMBERS = (
    "0", "1", "-1", "2", "3", "7", "8", "16", "31", "32", "33", "63", "64", "65", "127", "128", "255", "256",
    "1000", "65535", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
    "9999999999999999999999999", "0x7FC00001", "0x7F800001", "0xFF", "0x7FF8000000000001", "0.0", "-0.0", "1.5",
    "1.0e-400", "1.0e400", "1e5", "3.4028235677973366e38", "1.00000005960464477539062500000001",
)  # fmt: skip
ELEMENTS = ("i1", "i8", "i16", "i32", "i64", "i128", "si32", "ui8", "index", "f16", "bf16", "f32", "f64", "!foo.bar")
TYPES = (
    "i1", "i8", "i16", "i32", "i64", "i128", "i7", "si32", "ui8", "ui64", "index", "f16", "bf16", "f32", "f64",
    "none", "tensor<f32>", "tensor<4xf32>", "tensor<?xf32>", "tensor<0x3xf32>", "tensor<4x?xi32>", "tensor<?xi32>",
    "tensor<4xi1>", "tensor<2x2xindex>", "tensor<*xf32>", "vector<4xf32>", "vector<4xi1>", "vector<1xindex>",
    "vector<2x2xf16>", "vector<f32>", "memref<4xf32>", "memref<?xf32>", "memref<4x?xi8>", "memref<f32>",
    "memref<0xf64>", "memref<4xf32,strided<[?],offset:?>>", "memref<4xf32,3>",
    "memref<?x?xf32,affine_map<(d0,d1)->(d1,d0)>>", 'tensor<?xf32,["n"]>', "tensor<9223372036854775808xf32>",
    "vector<4294967296x4294967296xf32>", "tensor<4xtensor<f32>>", "()->()", "(f32)->i32", "!foo.bar",
    "!gpu.async.token", "memref<4x!foo.bar>", "complex<f32>", "tuple<>", "i0", "i16777217",
)  # fmt: skip
ATTRIBUTES = (
    '"text"', '"\\00\\FF"', "@symbol", '@"a\\22b"', "@a::@b", "unit", "true", "false", "[]", "[1,2]", "{}",
    "{a=1:i32}", "array<i64>", "array<i64:1,-2>", "array<i32:1>", "array<f32:0x7FC00002>",
    "dense<1>:tensor<4xi32>", "dense<[]>:tensor<0xf32>", "affine_map<(d0)->(d0)>",
    "affine_map<(d0)[s0]->(d0floordiv0)>", "strided<[1],offset:?>", "#foo.bar", "#foo<bar>", "f32",
    "tensor<4xf32>", "1:index", "0:i64",
)  # fmt: skip
PUNCTUATION = (
    "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", "=", "->", "::", "?", "-", "+", "*", "/", "#", "%", "@", "^",
    "!", '"', "'", ";", "attributes", "loc(unknown)", "to", "in", "ins", "outs",
)  # fmt: skip
CONSTRUCTED = [
    """func.func @main(%a: tensor<4xi32>, %b: tensor<?xi32>, %v: vector<4xf32>, %m: memref<4x?xf32>, %i: index,
    %c: i1) {
  %0 = arith.constant dense<1> : tensor<4xi32>
  %1 = arith.addi %0, %0 : tensor<4xi32>
  %2 = arith.subi %b, %b : tensor<?xi32>
  %3 = arith.cmpi slt, %b, %b : tensor<?xi32>
  %4 = arith.constant dense<[1.0, -0.0, 2.5, 0x7FC00001]> : vector<4xf32>
  %5 = arith.maximumf %v, %4 : vector<4xf32>
  %6 = memref.load %m[%i, %i] : memref<4x?xf32>
  %7 = arith.constant 0 : index
  %8 = arith.constant 4 : index
  %9 = arith.divsi %8, %7 : index
  scf.for %k = %7 to %8 step %9 {
    memref.store %6, %m[%k, %i] : memref<4x?xf32>
  }
  %10 = scf.if %c -> (f32) {
    scf.yield %6 : f32
  } else {
    %11 = arith.constant 0x7FC00002 : f32
    scf.yield %11 : f32
  }
  scf.forall (%p, %q) in (4, %i) {
  }
  return
}
""",
    """module attributes {nablair.target = {kind = "cpu"}, a.b = array<f64: 1.0, 0x7FF8000000000001>} {
  "foo.op"() ({
  ^bb0:
  }, {
  }) {x = [1 : i8, "s", @f::@g]} : () -> ()
  %0:2 = "foo.pair"() : () -> (i32, f32)
  "foo.branch"(%0#0) ({
  ^bb0(%a: i32):
    "foo.jump"()[^bb1, ^bb2] : () -> ()
  ^bb1:
    "foo.end"() : () -> ()
  ^bb2:
    "foo.end"(%0#1) : (f32) -> ()
  }) : (i32) -> ()
  func.func private @"a\\"b"(i32, tensor<?xf32>) -> f64
}
""",
]


@cache
def seeds() -> list[str]:
    """The valid texts, in custom and in generic form."""
    paths = sorted(p for folder in ("filecheck", "../docs/programs") for p in (HERE / folder).rglob("*.mlir"))
    texts = [part for path in paths for part in re.split(r"^// -----.*$", path.read_text(), flags=re.MULTILINE)]
    texts += [*SAMPLES.values(), *FORWARD.values(), *(text for text, _ in GRADIENTS.values()), *CONSTRUCTED]
    found: dict[str, None] = {}
    for text in texts:
        text = re.sub(r"//[^\n]*\n", "\n", text)
        try:
            module = parse_module(text, allow_unregistered=True)
            verify(module)
        except Error:
            continue
        for form in (print_op(module), print_op(module, generic=True)):
            if len(form) <= MAX_SEED:
                found[form] = None
    return list(found)


def mutate(random: Random, corpus: list[str]) -> str:
    """A text of the corpus with one to four mutations."""
    text = random.choice(corpus)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        text = random.choice(_MUTATIONS)(text, random, corpus)
    return text


def _tokens(text: str) -> tuple[list[str], list[int]]:
    """The tokens with the spaces between them, and the places of the tokens that are not spaces."""
    tokens = TOKENS.findall(text) or [""]
    return tokens, [i for i, t in enumerate(tokens) if not t.isspace()] or [0]


def _kind(token: str) -> str:
    first = token[:1]
    if first in '%@^#!"':
        return first
    if first.isdigit():
        return "0"
    if token in _TYPE_NAMES or token.partition("<")[0] in ("tensor", "memref", "vector"):
        return "type"
    if "." in token and first.isalpha():
        return "op"
    return "word" if first.isalpha() else token


_TYPE_NAMES = frozenset(TYPES)


def _exchange_kind(text: str, random: Random, corpus: list[str]) -> str:
    """A token becomes another of its kind: of the text, or of the tables above."""
    tokens, places = _tokens(text)
    at = random.choice(places)
    kind = _kind(tokens[at])
    tables = {
        "0": NUMBERS,
        "type": TYPES,
        "op": list(OPS),
        '"': [*ATTRIBUTES, *OPS],
        "word": ATTRIBUTES,
        "@": ATTRIBUTES,
    }
    if kind in tables and random.random() < 0.6:
        tokens[at] = random.choice(tables[kind])
        if kind == '"' and "." in tokens[at] and tokens[at][0] != '"':
            tokens[at] = f'"{tokens[at]}"'
    else:
        tokens[at] = random.choice([tokens[i] for i in places if _kind(tokens[i]) == kind])
    return "".join(tokens)


def _everywhere(text: str, random: Random, corpus: list[str]) -> str:
    """A number, type or word becomes another wherever it stands, inside of shaped types too."""
    words = re.findall(r"(?<![\w.$%@#!^-])[a-z0-9][\w.]*|(?<=[<x])[0-9?]+(?=x)|(?<=[x<])[a-z]+[0-9]*(?=[,>])", text)
    old = random.choice(words or ["f32"])
    if old == "?" or old.isdigit():
        new = random.choice(("0", "1", "2", "3", "4", "5", "7", "64", "65", "4294967296", "9223372036854775807", "?"))
    elif old in _TYPE_NAMES:
        new = random.choice(ELEMENTS)
    elif "." in old and old[0].isalpha():
        new = random.choice([name for name in OPS if name.partition(".")[0] == old.partition(".")[0]] or list(OPS))
    else:
        new = random.choice((*words, *NUMBERS))
    return re.sub(rf"(?<![\w.$%@#!^]){re.escape(old)}(?![\w.])|(?<=[<x]){re.escape(old)}(?=[x,>])", lambda _: new, text)


def _exchange_any(text: str, random: Random, corpus: list[str]) -> str:
    tokens, places = _tokens(text)
    tokens[random.choice(places)] = random.choice(random.choice((NUMBERS, TYPES, ATTRIBUTES, PUNCTUATION)))
    return "".join(tokens)


def _swap(text: str, random: Random, corpus: list[str]) -> str:
    tokens, places = _tokens(text)
    a = random.randrange(len(places))
    b = min(a + random.choice((1, 2)), len(places) - 1) if random.random() < 0.5 else random.randrange(len(places))
    a, b = places[a], places[b]
    tokens[a], tokens[b] = tokens[b], tokens[a]
    return "".join(tokens)


def _remove(text: str, random: Random, corpus: list[str]) -> str:
    tokens, places = _tokens(text)
    start = random.randrange(len(places))
    stop = min(start + random.choice((0, 0, 0, 1, 2, 5)), len(places) - 1)
    del tokens[places[start] : places[stop] + 1]
    return "".join(tokens)


def _double(text: str, random: Random, corpus: list[str]) -> str:
    tokens, places = _tokens(text)
    start = random.randrange(len(places))
    stop = min(start + random.choice((0, 0, 1, 2, 5)), len(places) - 1)
    part = tokens[places[start] : places[stop] + 1]
    at = places[stop] + 1 if random.random() < 0.5 else random.choice(places)
    return "".join([*tokens[:at], random.choice(("", " ", ", ")), *part, *tokens[at:]])


def _remove_group(text: str, random: Random, corpus: list[str]) -> str:
    """A bracketed group goes, with or without its brackets."""
    tokens, places = _tokens(text)
    opening = [i for i in places if tokens[i] in "({[<"]
    if not opening:
        return text
    start = stop = random.choice(opening)
    depth = 0
    for stop in range(start, len(tokens)):
        depth += (tokens[stop] in "({[<") - (tokens[stop] in ")}]>")
        if depth == 0:
            break
    if random.random() < 0.5:
        return "".join(tokens[:start] + tokens[stop + 1 :])
    return "".join(tokens[: start + 1] + tokens[stop:])


def _insert(text: str, random: Random, corpus: list[str]) -> str:
    tokens, places = _tokens(text)
    tokens.insert(random.choice(places), random.choice(random.choice((NUMBERS, TYPES, ATTRIBUTES, PUNCTUATION))) + " ")
    return "".join(tokens)


def _lines(text: str, random: Random, corpus: list[str]) -> str:
    """A line goes, is doubled, moves, or comes from another text."""
    lines = text.split("\n")
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    way = random.randrange(4)
    if way == 0:
        del lines[at]
    elif way == 1:
        lines.insert(to, lines[at])
    elif way == 2:
        lines.insert(to, lines.pop(at))
    else:
        other = random.choice(corpus).split("\n")
        start = random.randrange(len(other))
        lines[at:at] = other[start : start + random.choice((1, 1, 2, 5))]
    return "\n".join(lines)


def _truncate(text: str, random: Random, corpus: list[str]) -> str:
    cut = random.randrange(len(text) + 1)
    return text[:cut] + random.choice(("", "", "\n}", "\n}\n}"))


def _splice(text: str, random: Random, corpus: list[str]) -> str:
    other = random.choice(corpus).split("\n")
    lines = text.split("\n")
    return "\n".join(lines[: random.randrange(len(lines) + 1)] + other[random.randrange(len(other) + 1) :])


def _character(text: str, random: Random, corpus: list[str]) -> str:
    at = random.randrange(len(text) + 1)
    new = random.choice(("", "", "\0", "\x7f", "é", "٣", "\u2028", '"', "\\", "x", "0", "?", "%", "\t", "\r", "//"))
    return text[:at] + new + text[at + random.randrange(2) :]


_MUTATIONS: tuple[Callable[[str, Random, list[str]], str], ...] = (
    *(_exchange_kind,) * 8,
    *(_everywhere,) * 8,
    *(_exchange_any,) * 3,
    *(_swap,) * 2,
    *(_remove,) * 2,
    *(_double,) * 2,
    *(_insert,) * 2,
    *(_lines,) * 3,
    _remove_group,
    _truncate,
    _splice,
    _character,
)

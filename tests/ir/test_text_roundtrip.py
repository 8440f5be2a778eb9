"""Print -> parse -> print is a fixpoint in both forms, and whatever the text, the parser ends in a ParseError or IR."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_samples import SAMPLES

from nablair.ir import registry
from nablair.ir.definition import OPS
from nablair.ir.diagnostics import ParseError, VerifyError
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify


@pytest.mark.parametrize("name", SAMPLES)
def test_both_forms_are_fixpoints_and_say_the_same(name: str) -> None:
    module = parse_module(SAMPLES[name], allow_unregistered=True)
    verify(module)
    custom = print_op(module)
    generic = print_op(module, generic=True)
    assert print_op(parse_module(custom, allow_unregistered=True)) == custom
    assert print_op(parse_module(generic, allow_unregistered=True), generic=True) == generic
    bare = print_op(module, keep_names=False)
    assert print_op(parse_module(generic, allow_unregistered=True), keep_names=False) == bare
    assert print_op(parse_module(custom, allow_unregistered=True), keep_names=False) == bare


@pytest.mark.parametrize("name", SAMPLES)
def test_locations_survive(name: str) -> None:
    module = parse_module(SAMPLES[name], "first.mlir", allow_unregistered=True)
    for generic in (False, True):
        text = print_op(module, generic=generic, locations=True)
        again = parse_module(text, "second.mlir", allow_unregistered=True)
        assert [op.location for op in again.walk()] == [op.location for op in module.walk()]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_clone_prints_the_same(name: str) -> None:
    module = parse_module(SAMPLES[name], allow_unregistered=True)
    text = print_op(module)
    copy = module.clone()
    verify(copy)
    assert print_op(copy) == text
    assert print_op(module) == text


def test_every_assembly_string_compiles() -> None:
    from nablair.ir import assembly
    from nablair.ir.op_checks import check_of

    for dialect in registry.DIALECTS:
        registry.load_dialect(dialect)
    assert len(OPS) > 200
    for name, cls in OPS.items():
        if cls.__module__.startswith("nablair."):
            assert assembly.custom_parser(cls) is not None, name
            assert assembly.custom_printer(cls) is not None, name
            check_of(cls)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[%#!@^]?[\w$.-]+|->|\s+|.', re.S)
_INSERTS = (
    *"(){}[]<>,:=*-^%@#!",
    "->",
    "0",
    "-1",
    "1.5",
    "0x7F800000",
    "99999999999999999999999",
    "%0",
    "%x#7",
    "^bb1",
    "@f",
    "#m",
    "!t",
    '"test.op"',
    '"',
    "i32",
    "f32",
    "index",
    "i0",
    "i99999999999",
    "tensor<4xf32>",
    "tensor<",
    "memref<?x?xf32>",
    "vector<0xf32>",
    "dense<",
    "affine_map<(d0) -> (d0 floordiv 0)>",
    "loc(",
    "loc(#a)",
    "unit",
    "array<i64: 1>",
    "module",
    "func.func",
    "return",
    "scf.for",
    "kernel.load",
    "elementwise.add",
    "// comment\n",
    "\x00",
    "é",
    "\ud800",
)


def check_text(text: str) -> None:
    """Parse, verify and print a text; only ParseError and VerifyError may come out, and they can be rendered."""
    try:
        module = parse_module(text, "fuzz.mlir", allow_unregistered=True)
        verify(module)
    except (ParseError, VerifyError) as error:
        assert error.render({"fuzz.mlir": text})
        return
    printed = print_op(module)
    assert print_op(parse_module(printed, allow_unregistered=True)) == printed


def mutate(rng: random.Random, text: str) -> str:
    """A few tokens removed, repeated, exchanged or put in."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(tokens))
        match rng.randrange(6):
            case 0:
                del tokens[at : at + rng.randrange(1, 4)]
            case 1:
                tokens.insert(at, rng.choice(_INSERTS))
            case 2:
                tokens[at] = rng.choice(_INSERTS)
            case 3:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 4:
                tokens[at] = rng.choice(tokens)
            case _:
                tokens[at:at] = tokens[at : at + 20]
    return "".join(tokens)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 1 << 60))
def test_mutated_texts_end_in_diagnostics(name: str, seed: int) -> None:
    check_text(mutate(random.Random(seed), SAMPLES[name]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(_INSERTS), max_size=30).map(" ".join) | st.text(max_size=60))
def test_arbitrary_texts_end_in_diagnostics(text: str) -> None:
    check_text(text)

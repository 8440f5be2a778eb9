"""The numbers of a device: read from an attribute, written to one, and refused where they say nothing."""

from dataclasses import replace
from typing import Any

import pytest

from nablair.ir.attributes import DictAttr
from nablair.ir.diagnostics import PassError
from nablair.ir.parser import parse_module
from nablair.ir.target import DEFAULTS, NUMBERS, Target, from_attribute


def test_a_target_is_an_attribute() -> None:
    target = Target(kind="cuda", vector_bits=128, features=("sm_80", "ptx70"))
    assert from_attribute(target.attribute()) == target
    target_text = 'nablair.target = {kind = "opencl", grain = 7}'
    module = parse_module(f"module attributes {{{target_text}}} {{ func.func private @f() }}")
    found = Target.of(module.block.first)
    assert (found.kind, found.grain, found.rows) == ("opencl", 7, 64)
    assert Target.of(parse_module("")) == Target()


@pytest.mark.parametrize("kind", DEFAULTS)
@pytest.mark.parametrize("name", NUMBERS)
def test_each_number_is_read_back_and_the_others_are_the_kinds(kind: str, name: str) -> None:
    base = DEFAULTS[kind]
    default = getattr(base, name)
    value: Any = default if isinstance(default, str) else ("one", "two") if isinstance(default, tuple) else default + 3
    target = replace(base, **{name: value})
    attribute = target.attribute()
    assert from_attribute(attribute) == target
    entries = {"kind": attribute.entries["kind"], name: attribute.entries[name]}
    assert from_attribute(DictAttr(entries)) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("512 : i64", "is 512 : i64; a target is a dictionary"),
        ('{kind = "gpu"}', "has the kind 'gpu'; there are cpu, opencl, cuda"),
        ("{kind = 3}", "has the kind 3; there are cpu"),
        ("{vectorbits = 512}", "has the unknown entry 'vectorbits'; there are kind, vector_bits"),
        ('{vector_bits = "512"}', "has vector_bits = 512; it is an integer from 1 up"),
        ("{vector_bits = 0}", "has vector_bits = 0; it is an integer from 1 up"),
        ("{vector_bits = true}", "has vector_bits = true; it is an integer from 1 up"),
        ("{vector_bits = 5.0e2 : f64}", "has vector_bits = .*; it is an integer from 1 up"),
        ("{l3 = -1}", "has l3 = -1; it is an integer from 0 up"),
        ('{features = "avx"}', "has features = avx; it is a list of strings"),
        ("{features = [1, 2]}", "has features = .*; it is a list of strings"),
    ],
)
def test_what_says_nothing_of_a_target_is_refused_where_it_stands(text: str, message: str) -> None:
    module = parse_module(f"\nmodule attributes {{nablair.target = {text}}} {{ func.func private @f() }}")
    with pytest.raises(PassError, match=f"the attribute nablair.target {message}") as error:
        Target.of(module.block.first)
    assert "-:2:1" in str(error.value)


def test_memory_that_a_device_lacks_has_no_bytes() -> None:
    module = parse_module("module attributes {nablair.target = {l3 = 0}} { func.func private @f() }")
    assert Target.of(module).l3 == 0

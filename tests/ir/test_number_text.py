"""Numbers in text: every bit pattern is kept, and a decimal is rounded once to its type, however long it is."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

import pytest
from fuzzing import cases

from nablair.ir.attributes import Attribute, DenseArrayAttr, DenseAttr, FloatAttr
from nablair.ir.diagnostics import Error
from nablair.ir.dialects import arith
from nablair.ir.float_bits import bits_to_float, float_to_bits
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.types import BF16, F16, F32, F64, FloatType, TensorType
from nablair.ir.verifier import verify
from nablair.passes.manager import PassManager

pytestmark = pytest.mark.fuzz

FLOATS = [F16, BF16, F32, F64]


def attribute(text: str) -> Attribute:
    """The attribute that a text says."""
    module = parse_module(f'"test.op"() {{a = {text}}} : () -> ()', allow_unregistered=True)
    return module.block.first.attributes["a"]


def patterns(type: FloatType) -> list[int]:
    """Bits of numbers, zeros, infinities, and NaN that are quiet or signal, with any payload, of both signs."""
    random = Random(type.name)
    mantissa = type.mantissa_bits
    top = ((1 << type.exponent_bits) - 1) << mantissa
    quiet = 1 << (mantissa - 1)
    bits = [0, 1, top - 1, top, top | 1, top | quiet, top | quiet | 1, top | quiet - 1]
    bits += [top | random.randrange(1, 1 << mantissa) for _ in range(cases(4))]
    bits += [random.randrange(1 << (type.width - 1)) for _ in range(cases(10))]
    return [b | sign for b in bits for sign in (0, 1 << (type.width - 1))]


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_bits_survive(type: FloatType) -> None:
    """In scalars, arrays, lists and splats, and in what is interned with another NaN before it."""
    bits = patterns(type)
    for b in bits:
        scalar = FloatAttr.from_bits(b, type)
        assert attribute(str(scalar)) is scalar
        assert scalar.bits == b
        assert DenseAttr.splat(TensorType([3], type), scalar).scalar() is scalar
        text = str(scalar).partition(" : ")[0]
        array = attribute(f"array<{type}: {text}, 1.0>")
        assert isinstance(array, DenseArrayAttr)
        assert array.bits == (b, float_to_bits(1.0, type))
        splat = attribute(f"dense<{text}> : tensor<2x{type}>")
        assert isinstance(splat, DenseAttr)
        assert splat.bits() == (b,)
    array = DenseArrayAttr.from_bits(bits, type)
    assert attribute(str(array)) is array
    dense = attribute(
        f"dense<{[str(FloatAttr.from_bits(b, type)).partition(' : ')[0] for b in bits]}>".replace("'", "")
        + f" : tensor<{len(bits)}x{type}>"
    )
    assert isinstance(dense, DenseAttr)
    assert list(dense.bits()) == bits
    assert attribute(str(dense)) is dense


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_canonical_constants_keep_their_bits(type: FloatType) -> None:
    """Constants that are shared, moved, splatted or chosen by a fold."""
    for b in patterns(type)[::3]:
        text = str(FloatAttr.from_bits(b, type))
        module = parse_module(
            f"""func.func @f(%v: {type}) -> ({type}, vector<4x{type}>) {{
              %c = arith.constant {text}
              %t = arith.constant true
              %s = arith.select %t, %c, %v : {type}
              %x = vector.broadcast %s : {type} to vector<4x{type}>
              return %s, %x : {type}, vector<4x{type}>
            }}"""
        )
        PassManager.parse("canonicalize,cse").run(module)
        found: list[Any] = [op.value for op in module.walk() if isinstance(op, arith.Constant)]
        assert {v.bits if isinstance(v, FloatAttr) else v.bits()[0] for v in found} == {b}


def nearest(number: Fraction, type: FloatType) -> int:
    """The bits of the nearest float, the even one of two, found by bisection over all floats of the type."""
    top = ((1 << type.exponent_bits) - 1) << type.mantissa_bits
    sign, number = (1 << (type.width - 1) if number < 0 else 0), abs(number)

    def value(bits: int) -> Fraction:
        if bits < top:
            return Fraction(bits_to_float(bits, type))
        return 2 * Fraction(bits_to_float(top - 1, type)) - Fraction(
            bits_to_float(top - 2, type)
        )  # the next power of two

    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if value(middle) <= number else (low, middle)
    below, above = number - value(low), value(high) - number
    return sign | (high if above < below or (above == below and low & 1) else low)


def decimal(number: Fraction, digits: int) -> str:
    """The first digits of a number behind its point, cut."""
    scaled = abs(number.numerator) * 10**digits // number.denominator
    text = f"{scaled:0{digits + 1}}"
    return f"{'-' if number < 0 else ''}{text[:-digits]}.{text[-digits:]}"


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_decimals_are_rounded_once(type: FloatType) -> None:
    """Decimals at, and a little beside, what lies halfway between two floats."""
    random = Random(type.width)
    top = ((1 << type.exponent_bits) - 1) << type.mantissa_bits
    for n in range(cases(60)):
        bits = random.choice([0, 1, top - 2, random.randrange(1, 50), random.randrange(top - 1)]) if n else top - 2
        low, high = (Fraction(bits_to_float(b, type)) for b in (bits, bits + 1))
        tie = (low + high) / 2 + (high - low if bits == top - 2 and n % 2 == 0 else 0)
        number = tie * random.choice(
            (1, 1, Fraction(1, 1) + Fraction(random.choice((-1, 1)), 10 ** random.choice((18, 30, 60))))
        )
        text = decimal(number * random.choice((-1, 1)), 1200 if type is F64 else 250)
        exact = Fraction(text)
        expected = nearest(exact, type) | (1 << (type.width - 1) if text[0] == "-" else 0)
        for found in (attribute(f"{text} : {type}"), attribute(f"array<{type}: {text}>")):
            assert isinstance(found, FloatAttr | DenseArrayAttr)
            assert found.bits in (expected, (expected,)), text
        dense = attribute(f"dense<{text}> : tensor<{type}>")
        assert isinstance(dense, DenseAttr)
        assert dense.bits() == (expected,)


@pytest.mark.parametrize("type", FLOATS, ids=str)
def test_the_decimal_that_is_printed_is_the_shortest(type: FloatType) -> None:
    for b in patterns(type):
        text = str(FloatAttr.from_bits(b, type)).partition(" : ")[0]
        if text.startswith("0x"):
            continue
        digits = text.lstrip("-").partition("e")[0].replace(".", "").strip("0")
        if len(digits) > 1:
            value = bits_to_float(b, type)
            assert float_to_bits(float(f"{value:.{len(digits) - 2}e}"), type) != b, text


HUGE = ("9223372036854775808", "18446744073709551616", "9999999999999999999999999", "-9223372036854775809")


@pytest.mark.parametrize("number", HUGE)
@pytest.mark.parametrize(
    "text",
    [
        "func.func @f() {{\n scf.forall (%i) in ({}) {{\n }}\n return\n}}",
        "func.func @f() {{\n scf.forall (%i) = ({}) to (4) step (1) {{\n }}\n return\n}}",
        "func.func @f(%m: memref<4xf32>) {{\n"
        " %s = memref.subview %m[{}] [1] [1] : memref<4xf32> to memref<1xf32>\n return\n}}",
        "func.func @f(%x: tensor<{}xf32>)",
        "func.func private @f(memref<{}x?xf32>)",
        "func.func private @f(vector<{}xf32>)",
        "func.func private @f(memref<4xf32, strided<[{}]>>)",
        "func.func private @f(memref<4xf32, strided<[1], offset: {}>>)",
        "func.func @f() {{\n %c = arith.constant {} : index\n return\n}}",
        "func.func @f() {{\n %c = arith.constant dense<{}> : vector<2xindex>\n return\n}}",
        '"test.op"() {{a = affine_map<(d0) -> (d0 * {})>}} : () -> ()',
        '"test.op"() {{a = affine_map<(d0) -> (d0 + 9223372036854775807 - {})>}} : () -> ()',
        '"test.op"() {{a = array<si64: {}>}} : () -> ()',
        '"test.op"() {{a = {} : i32}} : () -> ()',
        '"test.op"() : () -> () loc("f":{}:1)',
        '%a:{} = "test.op"() : () -> (i32)',
    ],
)
def test_numbers_beyond_64_bits_are_refused(text: str, number: str) -> None:
    with pytest.raises(Error):
        verify(parse_module(text.format(number), allow_unregistered=True))


@pytest.mark.parametrize("head", ["tensor", "memref", "vector"])
def test_shapes_of_more_elements_than_64_bits_count_are_refused(head: str) -> None:
    with pytest.raises(Error, match="more elements than 64 bits count"):
        parse_module(f"func.func private @f({head}<4294967296x4294967296xf32>)")
    assert "4294967296x2147483647" in print_op(parse_module(f"func.func private @f({head}<4294967296x2147483647xf32>)"))

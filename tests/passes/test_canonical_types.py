"""Canonicalize leaves valid IR of every type that an op takes: extents unknown or zero, integers of any width, and
constants that become known only then."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
from fuzzing import cases

from nablair.ir import registry
from nablair.ir.definition import OPS, SAME_TYPE, OperandField
from nablair.ir.diagnostics import Error, LoweringError
from nablair.ir.parser import parse_module
from nablair.ir.printer import print_op
from nablair.ir.verifier import verify
from nablair.lowering.llvm.emit import emit_module
from nablair.passes.manager import PassManager

pytestmark = pytest.mark.fuzz

SHAPES = ("{}", "tensor<?x{}>", "tensor<4x{}>", "tensor<2x?x{}>", "tensor<0x3x{}>", "tensor<{}>", "vector<4x{}>")
INTEGERS = ("i1", "i7", "i8", "i32", "i64", "i128", "index")
FLOATS = ("f16", "bf16", "f32", "f64")
NUMBERS = {"float": ("0.0", "-0.0", "1.0", "-2.5", "0x{nan}", "0x{inf}"), "int": ("0", "1", "-1", "5")}


def names() -> list[str]:
    """The ops of `arith` and `math` with one type for all operands and the result."""
    for dialect in ("arith", "math"):
        registry.load_dialect(dialect)
    return sorted(
        name
        for name, cls in OPS.items()
        if name.partition(".")[0] in ("arith", "math")
        and SAME_TYPE in cls.traits
        and all(isinstance(f, OperandField) for f in cls.definition.operands)
    )


def literal(element: str, number: str) -> str:
    """A number as it stands in text for an element type."""
    nan = {"f16": "7E01", "bf16": "7FC1", "f32": "7FC00001", "f64": "7FF8000000000001"}.get(element, "")
    inf = {"f16": "7C00", "bf16": "7F80", "f32": "7F800000", "f64": "7FF0000000000000"}.get(element, "")
    return {"i1": {"5": "true", "-1": "true", "1": "true", "0": "false"}}.get(element, {}).get(
        number, number.format(nan=nan, inf=inf)
    )


def check(text: str) -> bool:
    """Canonicalize and cse end in valid IR without constants of other dialects; False where the text is refused."""
    try:
        module = parse_module(text)
        verify(module)
    except Error:
        return False
    PassManager.parse("canonicalize,cse,canonicalize").run(module)
    assert not [op for op in module.walk() if op.name == "array.constant"], text
    assert print_op(parse_module(print_op(module))) == print_op(module)
    return True


@pytest.mark.parametrize("name", names())
def test_folds_of_any_type(name: str) -> None:
    """An op of one value with itself, with constants on either side, and of constants, twice in a row."""
    random = Random(name)
    arity = len(OPS[name].definition.operands)
    floats = OPS[name].definition.operands[0].constraint.description.startswith("a float")
    pairs = list(product(SHAPES, FLOATS if floats else INTEGERS))
    taken = 0
    for shape, element in random.sample(pairs, min(len(pairs), cases(16))):
        type = shape.format(element)
        kind = "float" if element in FLOATS else "int"
        constants = []
        for k in range(2):
            text = literal(element, random.choice(NUMBERS[kind]))
            body = text if shape == "{}" else f"dense<{text}>"
            suffix = "" if body in ("true", "false") else f" : {type}"
            constants.append("" if "?" in type else f"%c{k} = arith.constant {body}{suffix}")
        values = ["%x", "%y", *(f"%c{k}" for k in range(2) if constants[k])]
        lines = [line for line in constants if line]
        for n in range(6):
            operands = ", ".join(random.choices([*values, "%x"], k=arity))
            types = ", ".join([type] * arity)
            lines.append(f'%r{n} = "{name}"({operands}) : ({types}) -> {type}')
            values.append(f"%r{n}")
        results = [v for v in values if v.startswith("%r")]
        text = (
            f"func.func @f(%x: {type}, %y: {type}) -> ({', '.join([type] * len(results))}) {{\n"
            + "\n".join(lines)
            + f"\nreturn {', '.join(results)} : {', '.join([type] * len(results))}\n}}"
        )
        taken += check(text)
    assert taken > 3


@pytest.mark.parametrize("type", ["tensor<?xi32>", "tensor<4xi32>", "vector<4xi7>", "i128", "index", "tensor<0xi1>"])
def test_comparisons_and_choices_of_any_type(type: str) -> None:
    one = type.replace("i32", "i1").replace("i7", "i1").replace("i128", "i1").replace("index", "i1")
    text = f"""func.func @f(%x: {type}, %y: {type}) -> ({one}, {one}, {type}) {{
      %0 = arith.cmpi slt, %x, %x : {type}
      %1 = arith.cmpi uge, %y, %y : {type}
      %2 = arith.xori %1, %1 : {one}
      %3 = arith.select %2, %x, %y : {one + ", " if one != "i1" else ""}{type}
      return %0, %2, %3 : {one}, {one}, {type}
    }}"""
    assert check(text)


BECOMES = {
    "a step of 0": "scf.for %i = %a to %b step %zero {\n}",
    "a negative step": "scf.for %i = %a to %b step %minus {\n}",
    "bounds the wrong way": "scf.for %i = %b to %a step %b {\n}",
    "an axis out of range": "%d = memref.dim %m, %b : memref<4x?xf32>",
    "a negative axis": "%d = memref.dim %m, %minus : memref<4x?xf32>",
    "a subscript out of range": "%d = memref.load %m[%b, %minus] : memref<4x?xf32>",
    "a negative extent": "%d = memref.alloc(%minus) : memref<?xf32>",
    "a box out of range": "%d = memref.subview %m[%b, %minus] [4, 1] [1, 1] : memref<4x?xf32> to "
    "memref<4x1xf32, strided<[?, 1], offset: ?>>",
    "a lane out of range": "%d = vector.extract %v[%b] : f32 from vector<4xf32>",
    "a lane to put out of range": "%d = vector.insert %f, %v[%minus] : f32 into vector<4xf32>",
    "a mask of too many lanes": "%d = vector.create_mask %b : vector<4xi1>",
    "a mask of fewer than no lanes": "%d = vector.create_mask %minus : vector<4xi1>",
    "a division by 0": "%d = arith.divsi %b, %zero : index\n%e = arith.remui %b, %zero : index",
    "a shift by too much": "%d = arith.shli %a, %b : index\n%e = arith.shrsi %a, %minus : index",
    "the least integer by -1": "%least = arith.shli %one, %last : index\n%d = arith.divsi %least, %minus : index",
}


@pytest.mark.parametrize("name", BECOMES)
def test_what_becomes_known_may_have_no_meaning(name: str) -> None:
    """Constants come to light that no sane program has: the IR stays valid, since nothing says that it ever runs."""
    text = f"""func.func @f(%m: memref<4x?xf32>, %v: vector<4xf32>, %f: f32, %flag: i1) {{
      %one = arith.constant 1 : index
      %zero = arith.subi %one, %one : index
      %minus = arith.subi %zero, %one : index
      %a = arith.addi %one, %one : index
      %last = arith.constant 63 : index
      %b = arith.addi %one, %last : index
      scf.if %flag {{
        {BECOMES[name]}
        memref.store %f, %m[%a, %b] : memref<4x?xf32>
      }}
      return
    }}"""
    module = parse_module(text)
    verify(module)
    PassManager.parse("canonicalize,cse,canonicalize").run(module)
    assert print_op(parse_module(print_op(module))) == print_op(module)


@pytest.mark.parametrize("name", ["a step of 0", "a negative step", "an axis out of range", "a negative axis"])
def test_a_target_refuses_what_is_known_to_have_no_meaning(name: str) -> None:
    text = f"""func.func @f(%m: memref<4x?xf32>) {{
      %a = arith.constant 0 : index
      %zero = arith.constant 0 : index
      %minus = arith.constant -1 : index
      %b = arith.constant 64 : index
      {BECOMES[name]}
      return
    }}"""
    module = parse_module(text)
    verify(module)
    with pytest.raises(LoweringError, match=r"needs a (positive step|constant axis)"):
        emit_module(module)

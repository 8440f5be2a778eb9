"""Short ways to make tensor-level ops in tests and to compare arrays by the precision of their type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from op_table import Row

from nablair.ir.attributes import Attribute
from nablair.ir.builders.tensor import TensorBuilder
from nablair.ir.definition import CONSTANT
from nablair.ir.dialects.builtin import Module
from nablair.ir.dialects.func import Func, Return
from nablair.ir.interpreter.machine import Interpreter
from nablair.ir.numeric import dtype
from nablair.ir.operations import Block
from nablair.ir.support.shapes import tensor_type
from nablair.ir.types import F32, Type

EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def arguments(*shapes: Sequence[int | str], element: Type = F32) -> tuple[Any, ...]:
    """A builder, and a value for each shape (an extent may be a name)."""
    block = Block([tensor_type(s, element) for s in shapes])
    return TensorBuilder(block), *block.arguments


def fold(value: Any) -> Any:
    """What the op of a value folds to: an attribute, a value or None."""
    op = value.defining_op
    constants: list[Attribute | None] = []
    for operand in op.operands:
        source = operand.defining_op
        constants.append(source.properties["value"] if source is not None and CONSTANT in source.traits else None)
    return op.fold(constants)


def run(*values: Any, arrays: Sequence[Any]) -> list[Any]:
    """The values, computed from arrays for the arguments of their block."""
    module = _module(values)
    return Interpreter(module).call("main", arrays)


def _module(values: Sequence[Any]) -> Module:
    """A module whose @main is a copy of the values' block and returns them."""
    block = values[0].block
    function = Func.of("main", [a.type for a in block.arguments], [v.type for v in values])
    table: dict[Any, Any] = dict(zip(block.arguments, function.arguments))
    for op in block:
        function.entry.append(op.clone(table))
    TensorBuilder(function.entry).create(Return, [table[v] for v in values])
    return Module.of([function])


def interpret(row: Row, element: Type, arrays: Sequence[Any]) -> list[Any]:
    """The results of a row's op by the reference meaning."""
    return Interpreter(row.module(element)).call("main", arrays)


def assert_close(found: Any, expected: Any, ulps: float = 4) -> None:
    """Equal shapes; integers equal; floats within `ulps` of the type's precision, relative and absolute."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if found.dtype.kind in "biu":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = ulps * EPSILON[found.dtype.name]
    np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=tolerance, atol=tolerance)


def check_row(row: Row, element: Type) -> None:
    """A row's meaning against NumPy, and its dtypes."""
    arrays = row.arrays(element)
    function = row.function(element)
    found = Interpreter(Module.of([function])).call("main", arrays)
    expected = row.expected(arrays)
    for value, array, wanted in zip(function.returns.operands, found, expected, strict=True):
        assert isinstance(array, np.ndarray)
        assert array.dtype == dtype(value.type)
        assert_close(array, wanted, ulps=8)


def check_point(row: Row, element: Type) -> None:
    """A row's scalar code (its `point`, `view` or `scatter`) against its meaning."""
    import numpy_point

    arrays = row.arrays(element)
    op: Any = row.function(element).returns.prev
    with np.errstate(all="ignore"):
        compute = numpy_point.scatter if hasattr(op, "scatter") else numpy_point.compute
        assert_close(compute(op, arrays), op.evaluate(*arrays), ulps=32)


def check_text(row: Row) -> None:
    """A row's module is valid IR; printed, parsed and printed again, in both forms, it is the same."""
    from nablair.ir.parser import parse_module
    from nablair.ir.printer import print_op
    from nablair.ir.verifier import verify

    module = row.module(row.elements[0])
    verify(module)
    for generic in (False, True):
        text = print_op(module, generic=generic)
        assert print_op(parse_module(text), generic=generic) == text


def check_expansion(row: Row, element: Type) -> None:
    """The expansion of a row's op has the op's result types and meaning."""
    arrays = row.arrays(element)
    function = row.function(element)
    module = Module.of([function])
    whole = Interpreter(module).call("main", arrays)
    op: Any = function.returns.prev
    types = [r.type for r in op.results]
    parts = op.expand(TensorBuilder.before_op(op))
    assert [v.type for v in parts] == types
    op.replace_by(parts)
    for found, expected in zip(Interpreter(module).call("main", arrays), whole, strict=True):
        assert_close(found, expected, ulps=16)

"""Scalar code without op names: each method gives the op for its operands, and that computes the function."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from built import computed
from fuzzing import cases

from nablair.ir.builders.scalar import FUNCTIONS, ScalarBuilder
from nablair.ir.types import F64, I32, Type

FLOATS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rem": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "powf": np.power,
    "neg": np.negative,
    "abs": np.abs,
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "sqrt")},
    **{name: getattr(np, name) for name in ("sin", "cos", "floor", "ceil", "trunc")},
    "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": np.vectorize(math.erf),
    "fma": lambda x, y, z: x * y + z,
}
INTEGERS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": lambda x, y: np.trunc(x / y).astype(np.int32),
    "floordiv": np.floor_divide,
    "rem": np.fmod,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and_": np.bitwise_and,
    "or_": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not_": np.bitwise_not,
    "neg": np.negative,
    "abs": np.abs,
    "fma": lambda x, y, z: x * y + z,
}
UNSIGNED: dict[str, Callable[..., Any]] = {
    "div": np.floor_divide,
    "floordiv": np.floor_divide,
    "rem": np.remainder,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


def arity(name: str) -> int:
    if name == "fma":
        return 3
    return 1 if name in FUNCTIONS or name in ("neg", "abs", "not_", *FUNCTIONS) else 2


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    check(name, FLOATS[name], F64, lambda r: r.choice([r.uniform(0.1, 3), r.uniform(0.1, 30)]), np.float64)


@pytest.mark.parametrize("name", INTEGERS)
def test_signed_integers(name: str) -> None:
    check(name, INTEGERS[name], I32, lambda r: r.choice([-1000, -7, -1, 1, 2, 9, 500]), np.int32)


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned_integers(name: str) -> None:
    def reference(x: Any, y: Any) -> Any:
        return UNSIGNED[name](x.view(np.uint32), y.view(np.uint32)).view(np.int32)

    check(name, reference, I32, lambda r: r.choice([-1000, -7, -1, 1, 2, 9, 500]), np.int32, unsigned=True)


def check(
    name: str,
    reference: Callable[..., Any],
    type: Type,
    draw: Callable[[random.Random], float],
    dtype: Any,
    **keywords: bool,
) -> None:
    """A method on values, and on a value and a number on either side, against NumPy."""
    rng = random.Random(name)
    count = arity(name)
    for case in range(cases(6)):
        numbers = [draw(rng) for _ in range(count)]
        numbers_in_place = {case % (count + 1)} if count == 2 and case % 3 else set[int]()

        def write(b: ScalarBuilder, *values: Any, numbers: Any = numbers, fixed: Any = numbers_in_place) -> list[Any]:
            operands = [n if i in fixed else v for i, (n, v) in enumerate(zip(numbers, values, strict=True))]
            return [getattr(b, name)(*operands, **keywords)]

        arrays = [np.asarray(n, dtype) for n in numbers]
        (found,) = computed(ScalarBuilder, [type] * count, write, *arrays)
        expected = reference(*arrays)
        np.testing.assert_allclose(found, expected, rtol=0 if dtype is np.int32 else 1e-13)
        assert np.asarray(found).dtype == dtype


@pytest.mark.parametrize(("unsigned", "expected"), [(False, -1), (True, (2**32 - 2) >> 2)])
def test_shifts_keep_the_sign_or_not(unsigned: bool, expected: int) -> None:
    (found,) = computed(ScalarBuilder, [I32], lambda b, x: [b.shr(b.shl(x, 1), 2, unsigned)], np.int32(-1))
    assert found == expected


def test_numbers_alone_have_no_type() -> None:
    with pytest.raises(TypeError, match="at least one value"):
        computed(ScalarBuilder, [F64], lambda b, x: [b.add(1.0, 2.0)], 1.0)


@pytest.mark.parametrize("values", [(1.0, math.nan), (math.nan, 1.0), (math.nan, math.nan), (-0.0, 0.0), (0.0, -0.0)])
def test_the_greater_of_a_nan_is_a_nan_and_of_equal_zeros_the_second(values: tuple[float, float]) -> None:
    for name in ("maximum", "minimum"):
        (found,) = computed(ScalarBuilder, [F64, F64], lambda b, x, y, n=name: [getattr(b, n)(x, y)], *values)
        if any(map(math.isnan, values)):
            assert math.isnan(found)
        else:
            assert math.copysign(1, found) == math.copysign(1, values[1])

"""Python numbers beside Tensors: they keep value and weak type until they meet an operand, in jit as eagerly; what does
not fit a dtype is refused."""

from __future__ import annotations

import enum
import math
import operator
import random
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag
from nablair.autograd.dtypes import DTYPES
from tests.fuzzing import cases

# Drawn programs: eagerly, compiled (for other numbers of the same types first), and by NumPy.

COMPLEX: Any = 1j
INTEGERS = [0, 1, 2, 3, -1, -2, 5, 100, 127, 128, -128, -129, 255, 256, 300, 2**15, 2**31, -(2**31), 2**40, 2**53 + 1]
INTEGERS += [2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**64, 2**70]
FLOATS = [0.0, -0.0, 0.1, 0.5, 1.0, 3.0, -2.5, 1 / 3, 1e-8, 1e10, 1e38, 1e39, 1e300, 5e-324, math.inf, -math.inf]
FLOATS += [math.nan]
ON_ARRAYS = ["add", "subtract", "multiply", "maximum", "minimum", "less", "greater_equal", "equal", "divide"]
ON_ARRAYS += ["floor_divide", "remainder", "pow"]
ON_NUMBERS = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
NUMPY = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}


def number(draw: random.Random, kind: type | None = None) -> Any:
    kind = kind or draw.choice([int, int, float, float, bool])
    if kind is bool:
        return draw.random() < 0.5
    if draw.random() < 0.4:
        return kind(draw.randint(-9, 9)) if kind is int else draw.uniform(-4, 4)
    return draw.choice(INTEGERS if kind is int else FLOATS)


def scalar_program(draw: random.Random, count: int, depth: int) -> Any:
    """A function of a list of numbers that gives a number."""
    if depth == 0 or draw.random() < 0.3:
        place = draw.randrange(count)
        return lambda numbers: numbers[place]
    left, right = scalar_program(draw, count, depth - 1), scalar_program(draw, count, depth - 1)
    apply = draw.choice(ON_NUMBERS)
    return lambda numbers: apply(left(numbers), right(numbers))


def program(draw: random.Random, arrays: int, count: int, depth: int) -> Any:
    """A function of a list of arrays and a list of numbers that gives an array (or a number)."""
    if depth == 0:
        if draw.random() < 0.55:
            place = draw.randrange(arrays)
            return lambda xs, _: xs[place]
        inner = scalar_program(draw, count, 2)
        return lambda _, numbers: inner(numbers)
    kind = draw.random()
    left, right = program(draw, arrays, count, depth - 1), program(draw, arrays, count, depth - 1)
    if kind < 0.1:
        return lambda xs, numbers: ag.where(xs[0] == xs[0], left(xs, numbers), right(xs, numbers))
    if kind < 0.2:
        low, high = scalar_program(draw, count, 1), scalar_program(draw, count, 1)
        return lambda xs, numbers: ag.clip(left(xs, numbers), low(numbers), high(numbers))
    if kind < 0.25:
        return lambda xs, numbers: ag.full_like(left(xs, numbers), right([xs[0]] * arrays, numbers))
    apply = getattr(ag, draw.choice(ON_ARRAYS))
    return lambda xs, numbers: apply(left(xs, numbers), right(xs, numbers))


def array(draw: random.Random, dtype: str) -> Any:
    shape = draw.choice([(), (3,), (3,)])
    values = np.array([draw.randint(0, 100) for _ in range(math.prod(shape))]).reshape(shape)
    if dtype == "bool":
        return ag.asarray(values % 2 == 0)
    return ag.asarray(values / 8 if "float" in dtype else values, dtype=dtype)


def outcome(f: Any) -> Any:
    """The dtype and the bits of a result, or the kind of the error."""
    try:
        result = ag.asarray(f())
    except (nablair.DTypeError, ZeroDivisionError, OverflowError, nablair.ShapeError) as error:
        return type(error)
    values = result.numpy()
    if result.dtype.is_float:
        values = np.where(np.isnan(values.astype(np.float64)), np.zeros_like(values), values)
    return result.dtype, result.shape, values.tobytes()


@pytest.mark.parametrize("seed", range(cases(40)))
def test_a_drawn_program_is_the_same_compiled(seed):
    draw = random.Random(seed)
    given = [number(draw) for _ in range(3)]
    first = [number(draw, type(v)) for v in given]
    xs = [array(draw, draw.choice(list(DTYPES))) for _ in range(2)]
    body = program(draw, 2, 3, 2)

    @ag.jit
    def f(arguments, *, k):
        return body(arguments["x"], [*arguments["n"], k])

    for numbers in (first, given, given):
        wanted = outcome(lambda: body(xs, numbers))  # noqa: B023 (it is called at once)
        found = outcome(lambda: f({"x": xs, "n": numbers[:2]}, k=numbers[2]))  # noqa: B023
        assert found == wanted, (numbers, xs)


@pytest.mark.parametrize("dtype", [n for n in DTYPES if n not in ("bool", "bfloat16")])
def test_an_operand_is_what_numpy_makes_of_the_number(dtype):
    draw = random.Random(dtype)
    x = array(draw, dtype)
    compiled: dict[str, Any] = {name: ag.jit(getattr(ag, name)) for name in NUMPY}
    for value in [*INTEGERS, *(FLOATS if "float" in dtype else []), True]:
        name = draw.choice(list(NUMPY))
        try:
            with np.errstate(all="ignore"):
                wanted = NUMPY[name](x.numpy(), value)
        except OverflowError:
            for f in (getattr(ag, name), compiled[name]):
                with pytest.raises(nablair.DTypeError, match=f"{value} does not fit {dtype}"):
                    f(x, value)
            continue
        for f in (getattr(ag, name), compiled[name]):
            found = f(x, value)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted, str((name, value)))


def test_numbers_compile_once_for_all_values():
    f = ag.jit(lambda x, n: (x * (n["s"] * 2 + n["t"][0]), x + n["k"]))
    x = ag.asarray([1, 2], dtype=ag.float64)
    for s, t, k in [(0.1, 3, True), (1e300, -5, False), (-0.0, 2**70, True)]:
        product, total = f(x, {"s": s, "t": [t], "k": k})
        np.testing.assert_array_equal(product, np.asarray(x) * (s * 2 + t))
        np.testing.assert_array_equal(total, np.asarray(x) + k)
    assert f.stats().compiles == 1


def test_a_trace_holds_for_numbers_that_take_the_same_way():
    power = ag.jit(lambda x, n: x * 2**n)
    byte = ag.asarray([3], dtype=ag.int8)
    for _ in range(2):
        assert power(byte, 3).dtype is ag.int8 and power(byte, 3).tolist() == [24]
        assert power(byte, -1).dtype is ag.float32 and power(byte, -1).tolist() == [1.5]
    assert power.stats().compiles == 2

    @ag.jit
    def inverse(x, s):
        try:
            return x * (1 / s)
        except ZeroDivisionError:
            return x

    x = ag.asarray([3.0])
    assert [float(inverse(x, s)[0]) for s in (2.0, 0.0, 4.0, 0.0)] == [1.5, 3.0, 0.75, 3.0]
    assert inverse.stats().compiles == 1  # without the number nothing is computed


def test_tensors_of_numbers_are_handles_of_their_own():
    """Binding one to another value changes no other, neither eagerly, where small numbers are kept, nor in a trace."""

    def changed(s):
        made = ag.asarray(s), ag.positive(s), ag.reshape(s, ()), ag.broadcast_to(s, ())
        for tensor in made:
            tensor += 1
        return made, ag.asarray([1.0]) * s, ag.asarray(s)

    for mode in (changed, ag.jit(changed), ag.jit(changed)):
        made, product, again = mode(2)
        assert [v.item() for v in made] == [3] * 4 and product.item() == again.item() == 2

    @ag.jit
    def filled(x, s):
        made = ag.zeros(2) + 0
        made[0] = s
        made += x
        return made

    x = ag.asarray([1.0, 2.0])
    for _ in range(2):
        assert filled(x, 5).tolist() == [6, 2] and x.tolist() == [1, 2]


def test_symbolic_sizes_are_numbers_too():
    """What is computed of a size that is known at a call alone is Python's, as without symbols, and must fit."""

    def body(x, s):
        n = x.shape[0]
        return x * (1 / n), x * (n * 0.1 + s), x * n**2, s / n * x, ag.full((2,), n * s, dtype=ag.float64)

    f = ag.jit(body, dynamic=True)
    for n in (3, 7):
        x = ag.ones(n, dtype=ag.float64)
        for found, wanted in zip(f(x, 0.3), body(x, 0.3), strict=True):
            assert found.dtype is wanted.dtype and found.tolist() == wanted.tolist()
    assert f.stats().compiles == 1
    hundreds = ag.jit(lambda x: x + x.shape[0] * 50, dynamic=True)
    assert hundreds(ag.ones(2, dtype=ag.int8)).tolist() == [101, 101]
    with pytest.raises(nablair.DTypeError, match="150 does not fit int8"):
        hundreds(ag.ones(3, dtype=ag.int8))


def test_results_of_numbers_alone():
    assert ag.jit(lambda s: s)(3).dtype is ag.int64 and ag.jit(lambda s: s / 2)(3).dtype is ag.float32
    assert ag.jit(lambda s: (s > 2, round(s), abs(-s), divmod(s, 2)))(2.5)[0].dtype is ag.bool
    assert [v.item() for v in ag.jit(lambda s: (round(s), -s, *divmod(s, 2), 1 // s))(2.5)] == [2, -2.5, 1.0, 0.5, 0]
    with pytest.raises(nablair.DTypeError, match="does not fit int64"):
        ag.jit(lambda s: s * 2)(2**63)
    assert ag.add(2, 3).dtype is ag.int64 and ag.multiply(0.5, 3).dtype is ag.float32


def test_numbers_and_numpy_scalars():
    for mode in (lambda f: f, ag.jit):
        half = ag.asarray([1.0], dtype=ag.float16)
        assert mode(lambda x, s: x * s)(half, np.float64(0.1)).dtype is ag.float64
        assert mode(lambda x, s: x * s)(half, 0.1).dtype is ag.float16
        assert mode(lambda x, s: (x * s) * np.float32(2))(half, 3).dtype is ag.float32
    assert ag.jit(lambda s: np.float64(2) * s)(0.1).item() == 0.2
    assert ag.jit(lambda s: s * np.array([2.0, 3.0]))(0.1).tolist() == [0.2, 3 * 0.1]


def test_numbers_of_subclasses_are_weak():
    class Level(enum.IntEnum):
        HIGH = 3

    byte = ag.asarray([2], dtype=ag.int8)
    assert (byte * Level.HIGH).dtype is ag.int8
    assert ag.jit(lambda x, n: x * 2 if n is Level.HIGH else x)(byte, Level.HIGH).tolist() == [4]


def test_what_a_traced_number_refuses():
    x = ag.asarray([1.0, 2.0])
    for f in (
        lambda s: x if s else -x,
        lambda s: math.sqrt(s),
        lambda s: int(s),
        lambda s: x[: s + 1],
        lambda s: {s: x},
        lambda s: np.asarray(s),
        lambda s: ag.asarray([s, 1]),
        lambda s: ag.arange(s),
        lambda s: f"{s:.1f}",
    ):
        with pytest.raises(ag.TraceError, match=r"static_argnames|return it"):
            ag.jit(f)(1)
    kept: list[Any] = []
    with pytest.raises(nablair.Error, match="changes what the function reads: kept"):
        ag.jit(lambda s: kept.append(s) or s)(1.0)
    with pytest.raises(ag.TraceError, match="after the function ended"):
        _ = x * kept[0]
    assert "float" in repr(kept[0])


def test_a_number_as_a_subscript():
    f = ag.jit(lambda x, i: x[i])
    x = ag.asarray([[1.0, 2.0], [3.0, 4.0]])
    for _ in range(2):
        assert f(x, 1).tolist() == [3, 4] and f(x, -2).tolist() == [1, 2]
        with pytest.raises(IndexError, match="out of range"):
            f(x, 2)
        with pytest.raises(nablair.DTypeError, match="mask"):
            f(x, True)


# What does not fit.

REFUSED = {
    "clip": lambda s: ag.clip(ag.ones(2, dtype=ag.int8), s, 2 * s),
    "clip above": lambda s: ag.clip(ag.ones(2, dtype=ag.int8), max=s),
    "full": lambda s: ag.full((2,), s, dtype=ag.int8),
    "full_like": lambda s: ag.full_like(ag.ones(2, dtype=ag.int8), s),
    "pad": lambda s: ag.pad(ag.ones(2, dtype=ag.int8), 1, constant_values=s),
    "asarray": lambda s: ag.asarray(s, dtype=ag.int8),
    "item": lambda s: _assigned(s),
    "update": lambda s: operator.iadd(ag.ones(2, dtype=ag.int8), s),
    "where": lambda s: ag.asarray(ag.where(True, ag.ones(2, dtype=ag.int8), s), dtype=ag.int8, copy=False),
}


def _assigned(value: Any) -> Any:
    x = ag.ones(2, dtype=ag.int8) + 0
    x[0] = value
    return x


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("value", [300, -129, 0.5, math.nan, math.inf, 2**70, 3, True])
def test_elements_fit_or_are_refused(name, value):
    f = REFUSED[name]
    compiled: Any = ag.jit(f)
    if name == "clip above" and value == math.inf:
        assert f(value).tolist() == compiled(value).tolist() == [1, 1]
    elif isinstance(value, int) and -128 <= value <= 127:
        assert f(value).dtype is compiled(value).dtype is ag.int8
        assert f(value).tolist() == compiled(value).tolist()
    elif name == "where" and isinstance(value, float):
        assert ag.where(True, ag.ones(2, dtype=ag.int8), value).dtype is ag.float32
    else:
        for mode in (f, compiled, compiled):
            with pytest.raises(nablair.DTypeError):
                mode(value)


def test_more_elements_that_do_not_fit():
    for f in (
        lambda: ag.arange(200, dtype=ag.int8),
        lambda: ag.arange(-1, 5, dtype=ag.uint8),
        lambda: ag.arange(0.5, 3, dtype=ag.int32),
        lambda: ag.linspace(0, 300, 3, dtype=ag.int8),
        lambda: ag.asarray([1, 300], dtype=ag.int8),
        lambda: ag.asarray([[1, 2], [0.5, 2]], dtype=ag.int64),
        lambda: ag.asarray([1, math.nan], dtype=ag.int64),
        lambda: ag.asarray([2, 0], dtype=ag.bool),
        lambda: ag.asarray([2**63, -1]),
        lambda: ag.asarray([2**63]),
        lambda: ag.asarray(2**63),
        lambda: ag.asarray([2**64], dtype=ag.uint64),
        lambda: ag.full((2,), 10**400),
        lambda: ag.full((2,), COMPLEX),
        lambda: ag.asarray(1j),
        lambda: ag.ones(2) * COMPLEX,
        lambda: ag.clip(ag.ones(2, dtype=ag.int8), np.array(0), None),
        lambda: ag.full_like(ag.ones(2, dtype=ag.int8), ag.asarray(0.5)),
        lambda: ag.asarray([10**400, 0.5]),
    ):
        with pytest.raises(nablair.DTypeError):
            f()


def test_elements_that_fit():
    three: Any = np.int64(3)
    assert ag.arange(three).dtype is ag.int64 and ag.arange(np.float64(3)).dtype is ag.float64
    assert ag.arange(128, dtype=ag.int8).tolist() == list(range(128))
    assert ag.arange(5, 0, -2, dtype=ag.uint8).tolist() == [5, 3, 1]
    assert ag.arange(2**64 - 1, 2**64 - 4, -1, dtype=ag.uint64).tolist() == [2**64 - 1, 2**64 - 2, 2**64 - 3]
    assert ag.arange(-(2**63), 2**63 - 1, 2**63).tolist() == [-(2**63), 0]
    assert ag.arange(0.0, 3.0, dtype=ag.int32).tolist() == [0, 1, 2]
    assert ag.asarray([2**63, 1], dtype=ag.uint64).tolist() == [2**63, 1]
    assert ag.asarray([2**70, 0.5], dtype=ag.float64).tolist() == [2**70, 0.5]
    assert ag.asarray([1.0, -3.0], dtype=ag.int8).tolist() == [1, -3] and ag.asarray([]).dtype is ag.float32
    assert ag.full((1,), 1e300).tolist() == [math.inf]
    assert ag.full((1,), 2.0, dtype=ag.int8).tolist() == [2]
    # Rounded once: by way of float32 it would become 1.
    assert float(ag.full((), 1.00390625000001, dtype=ag.bfloat16)) == 1.0078125
    assert float(ag.ones((), dtype=ag.bfloat16) * 1.00390625000001) == 1.0078125
    assert float(ag.jit(lambda x, s: x * s)(ag.ones((), dtype=ag.bfloat16), 1.00390625000001)) == 1.0078125


@pytest.mark.parametrize("device", ["opencl:0", "ptx-sim"])
def test_numbers_lie_where_the_tensors_do(device):
    if device not in [*ag.devices(), "ptx-sim"]:
        pytest.skip(f"no {device}")
    x = ag.asarray([[1.0, 2.0], [3.0, 4.0]], device=device)
    y = ag.asarray([[1.0, 2.0], [3.0, 4.0]])

    def body(x, s, i):
        triangles = ag.tril(x) + ag.triu(x, k=1)
        one_hot = ag.one_hot(ag.astype(x[0], ag.int64), 4, dtype=ag.float32)
        indexed = ag.take(x, i, axis=0) + x[i] + x[0, 1]
        chosen = ag.where(True, x, s) + ag.where(x > s, s, 3) + ag.clip(x, s, 3.5) + ag.full_like(x, s) + s // x
        return triangles, one_hot, indexed, chosen, ag.pad(x, 1, constant_values=s), ag.logsumexp(x) * (s + i) ** 2

    for mode in (lambda f: f, ag.jit):
        for found, wanted in zip(mode(body)(x, 1.5, 1), body(y, 1.5, 1), strict=True):
            assert found.device == device
            np.testing.assert_allclose(found, wanted, rtol=1e-6)
    made = [ag.arange(1, 6, 2, device=device), ag.eye(2, k=1, device=device), ag.linspace(0, 1, 3, device=device)]
    made += [ag.full((2,), v, device=device) for v in (3, np.float32(3))]
    assert all(v.device == device for v in made)
    assert [v.tolist() for v in made] == [[1, 3, 5], [[0, 1], [0, 0]], [0, 0.5, 1], [3, 3], [3, 3]]


def test_dtypes_compare_with_anything():
    others: tuple[Any, ...] = (
        ",",
        "(",
        "f4,f4",
        "no",
        "",
        None,
        3,
        [1],
        {},
        object(),
        np.zeros(2),
        ag.ones(2),
        np.dtype("f4,i4"),
    )
    for other in others:
        assert all((dtype == other) is False and (other != dtype) is not False for dtype in DTYPES.values())
        with pytest.raises(nablair.DTypeError, match="no dtype for"):
            ag.zeros(2).astype(other)
    assert ag.float32 == "float32" and ag.float32 == np.float32 and ag.float32 == np.dtype("f4")

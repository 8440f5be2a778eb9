"""jit: specialisations, structures, static and donated arguments, out=, effects, and the text at every stage."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

F32 = np.float32


def test_counts():
    f = ag.jit(lambda a, b: a + b)
    x, y = ag.asarray([1.0, 2.0]), ag.zeros((3, 2))
    for _ in range(4):
        f(x, x)
    assert (f.stats().hits, f.stats().misses, f.stats().compiles) == (3, 1, 1)
    f(y, y)
    f(x, x)
    f(ag.asarray([1, 2]), x)
    assert (f.stats().hits, f.stats().misses, f.stats().compiles) == (4, 3, 3)


def test_as_a_decorator_with_options():
    @ag.jit(static_argnames="n")
    def power(x, n):
        """The n-th power."""
        y = x
        for _ in range(n - 1):
            y = y * x
        return y

    assert power.__name__ == "power" and power.__doc__ == "The n-th power."
    for n in (1, 3, 3, 2):
        assert float(power(ag.asarray(2.0), n)) == 2**n
    assert float(power(2.0, n=3)) == 8
    assert power.stats().misses == 4  # n = 1, 3, 2, and one with a number and a keyword


def test_static_values_of_other_types_differ():
    f = ag.jit(lambda x, k: x * k, static_argnames=("k",))
    x = ag.asarray([1, 2])
    assert f(x, 1).dtype is ag.int64 and f(x, 1.0).dtype is ag.float32 and f(x, True).dtype is ag.int64


def test_bad_options():
    with pytest.raises(nablair.Error, match="'m'"):
        ag.jit(lambda n: n, static_argnames="m")
    with pytest.raises(nablair.Error, match="hashable"):
        ag.jit(lambda n: n, static_argnames="n")([1])


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Point:
    x: Any
    y: Any


def test_structures_in_and_out():
    def f(tree, flag=None, *, name="a"):
        d, (p, q), point = tree
        return {"sum": d["u"] + p.first, "list": [q, None, name], "pair": Pair(point.x * 2, point.y), "flag": flag}

    one, two = ag.asarray([1.0]), ag.asarray([2.0])
    tree = ({"u": one}, [Pair(two, 3), two], Point(one, 5.0))
    for mode in (lambda f: f, ag.jit):
        made = mode(f)(tree, name="b")
        assert set(made) == {"sum", "list", "pair", "flag"} and made["flag"] is None
        assert float(made["sum"]) == 3 and made["list"][1:] == [None, "b"] and float(made["list"][0]) == 2
        assert type(made["pair"]) is Pair and float(made["pair"].first) == 2 and float(made["pair"].second) == 5


def test_numbers_do_not_specialise():
    f = ag.jit(lambda x, k: x * k)
    x = ag.asarray([1.0, 2.0])
    for k in (0.5, 0.25, -3.0):
        np.testing.assert_array_equal(f(x, k), np.asarray(x) * F32(k))
    assert f.stats().compiles == 1
    assert f(x, 2).dtype is ag.float32 and f.stats().compiles == 2


def test_results_that_are_inputs():
    f = ag.jit(lambda x, y: (x, y + 1, x))
    x = ag.asarray([1.0])
    array = np.array([5.0], F32)
    for _ in range(3):
        a, b, c = f(x, x)
        assert [float(v) for v in (a, b, c)] == [1, 2, 1]
        d, _, _ = f(array, x)
        array += 1
        assert d.tolist() == (array - 1).tolist()


def test_the_same_result_twice():
    f = ag.jit(lambda x: (lambda y: (y, y))(x * 2))
    for _ in range(3):
        a, b = f(ag.asarray([3.0]))
        assert float(a) == float(b) == 6


def test_out():
    f = ag.jit(lambda x: x * 2)
    x = ag.asarray([1.0, 2.0])
    target = np.zeros(2, F32)
    assert f(x, out=target) is target
    np.testing.assert_array_equal(target, [2, 4])
    tensor = ag.zeros(2)
    assert f(x, out=tensor) is tensor
    np.testing.assert_array_equal(tensor, [2, 4])
    strided = np.zeros(4, F32)[::2]
    f(x, out=strided)
    np.testing.assert_array_equal(strided, [2, 4])
    for wrong in (np.zeros(3, F32), np.zeros(2), (target, target)):
        with pytest.raises(nablair.ShapeError, match="out="):
            f(x, out=wrong)
    pair = ag.jit(lambda x: (x + 1, x - 1))
    up, down = np.zeros(2, F32), np.zeros(2, F32)
    pair(x, out=(up, down))
    np.testing.assert_array_equal([up, down], [[2, 3], [0, 1]])


FUNCTIONS_OF_ONE = [ag.jit(lambda x: x), ag.jit(lambda x: x * 2), ag.jit(lambda x: ag.zeros(2) + 1)]
"""Without a kernel, with one, and with one that reads nothing."""


@pytest.mark.parametrize("device", ag.devices())
@pytest.mark.parametrize("function", FUNCTIONS_OF_ONE)
def test_results_that_do_not_fit_in_out(function, device):
    x, read_only = ag.asarray([3.0, 4.0], device=device), np.full(2, 7, F32)
    read_only.flags.writeable = False
    given = [np.full(3, 7, F32), np.full((1, 2), 7, F32), np.full(2, 7.0), np.full(2, 7, np.int32), read_only, 3, "ab"]
    for wrong in given:
        with pytest.raises(nablair.Error, match="out="):
            function(x, out=wrong)
        assert not isinstance(wrong, np.ndarray) or (wrong == 7).all()
    for made in (np.zeros(2, F32), np.zeros(4, F32)[::-2]):
        function(x, out=made)
        np.testing.assert_array_equal(made, np.asarray(function(x)))


def test_one_array_for_two_results():
    pair = ag.jit(lambda x: (x + 1, x - 1))
    base, tensor = np.zeros(4, F32), ag.zeros(2)
    for wrong in ((base[:2], base[1:3]), (tensor, tensor), (base[:2], base[:2]), (base[:2],), base[:2]):
        with pytest.raises(nablair.Error, match="out="):
            pair(ag.asarray([1.0, 2.0]), out=wrong)
    pair(ag.asarray([1.0, 2.0]), out=(base[:2], base[2:]))
    np.testing.assert_array_equal(base, [2, 3, 0, 1])


def test_overlapping_out():
    base = np.arange(6, dtype=F32)
    f = ag.jit(lambda x: ag.flip(x) + x)
    f(base[:4], out=base[2:])
    np.testing.assert_array_equal(base, [0, 1, 3, 3, 3, 3])


def test_dynamic_sizes():
    f = ag.jit(lambda x, y: ag.softmax(x @ y + 1) * 2, dynamic=True)
    for n, m in ((2, 3), (5, 7), (9, 4)):
        x, y = np.random.default_rng(n).normal(size=(n, m)).astype(F32), np.eye(m, dtype=F32)
        expected = np.exp(x + 1) / np.exp(x + 1).sum(-1, keepdims=True) * 2
        made = f(x, y)
        assert made.shape == (n, m)
        np.testing.assert_allclose(made, expected, rtol=1e-5)
    assert f.stats().compiles == 1


def test_calls_inside_of_traces_are_inlined():
    inner = ag.jit(lambda x: x * 3)
    outer = ag.jit(lambda x: inner(x) + inner(ag.asarray([1.0])))
    assert float(outer(ag.asarray([2.0]))) == 9
    assert outer.lower(ag.asarray([2.0])).as_text("trace").count("elementwise.mul") == 2


def test_methods():
    class Scale:
        def __init__(self, k):
            self.k = ag.asarray([k])

        @ag.jit
        def apply(self, x):
            return x * self.k

    assert float(Scale(3.0).apply(ag.asarray([2.0]))) == 6


def test_bound_handles_are_effects():
    counter = ag.asarray([0.0])

    @ag.jit
    def f(x):
        counter_before = counter + 0
        counter.__iadd__(x)
        return counter_before

    for i in range(4):
        assert float(f(ag.asarray([2.0]))) == 2 * i
    assert float(counter) == 8 and f.stats().compiles == 1
    counter.__imul__(0)
    assert float(f(ag.asarray([1.0]))) == 0 and float(counter) == 1


def test_a_failed_trace_leaves_handles_alone():
    counter = ag.asarray([1.0])

    @ag.jit
    def f(x):
        counter.__iadd__(x)
        raise KeyError("no")

    with pytest.raises(KeyError):
        f(ag.asarray([1.0]))
    assert float(counter) == 1 and float(ag.jit(lambda x: x + counter)(ag.asarray([1.0]))) == 2


def test_escaped_tensors_are_refused():
    kept: dict[int, Any] = {}
    ag.jit(lambda x: kept.update({0: x * 2}) or x)(ag.asarray([1.0]))
    for use in (lambda: kept[0] + 1, lambda: kept[0].numpy(), lambda: ag.jit(lambda x: x + kept[0])(ag.asarray([1.0]))):
        with pytest.raises(nablair.Error, match="return it"):
            use()


def test_lowered_text_and_compiled():
    f = ag.jit(lambda x, y: ag.relu(x * y) + 1)
    x = ag.asarray(np.arange(8, dtype=F32))
    lowered = f.lower(x, x)
    assert "elementwise.relu %" in lowered.as_text("trace")
    assert "func.func @main(%x: tensor<8xf32>" in lowered.as_text("trace")
    assert "elementwise.mul" in lowered.as_text() and "kernel.launch" in lowered.as_text("kernel")
    assert "memref" in lowered.as_text("loop") and "define" in lowered.as_text("llvm")
    assert "main" in lowered.as_text("asm")
    with pytest.raises(nablair.Error, match="stage"):
        lowered.as_text("nonsense")
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(x, x), np.asarray(x) ** 2 + 1)
    with pytest.raises(nablair.ShapeError, match="compiled for"):
        compiled(x[:4], x[:4])


@pytest.mark.parametrize("given", [(2.0, "b"), ([2.0], "a"), (True, "a")], ids=str)
def test_a_compiled_form_names_what_differs_beside_arrays(given):
    f = ag.jit(lambda x, y, key: x, static_argnames="key")
    x = ag.asarray([1.0])
    compiled = f.lower(x, 3.0, "a").compile()
    assert compiled(x, 2.0, "a").tolist() == [1.0]
    with pytest.raises(nablair.ShapeError, match="compiled for"):
        compiled(x, *given)
    with pytest.raises(nablair.ShapeError, match="another structure, or with other values"):
        compiled(x, 2.0, "b")


def test_ops_know_the_users_line():
    def f(x):
        return ag.exp(x)  # this line

    module = ag.jit(f).lower(ag.asarray([1.0])).module
    (op,) = [o for o in module.walk() if o.name == "elementwise.exp"]
    place = op.location.file_position()
    assert place is not None and place.file == __file__
    assert "this line" in Path(__file__).read_text().splitlines()[place.line - 1]


def test_closures_through_functions_and_partials():
    from functools import partial

    factor = 2.0

    def inner(x, shift):
        return x * factor + shift

    shifted = partial(inner, shift=1.0)
    f = ag.jit(lambda x: shifted(x))
    assert float(f(ag.asarray(3.0))) == 7
    factor = 10.0
    assert float(f(ag.asarray(3.0))) == 31


def test_rebound_functions_are_seen():
    def one(x):
        return x + 1

    def five(x):
        return x + 5

    helper = one
    f = ag.jit(lambda x: helper(x))
    assert float(f(ag.asarray(1.0))) == 2
    helper = five
    assert float(f(ag.asarray(1.0))) == 6


def test_captured_containers_are_seen():
    params = {"w": ag.asarray([1.0]), "k": [2.0]}
    f = ag.jit(lambda x: x * params["w"] + params["k"][0])
    x = ag.asarray([3.0])
    assert float(f(x)) == 5
    params["w"] = ag.asarray([10.0])
    assert float(f(x)) == 32
    params["k"][0] = 0.0
    assert float(f(x)) == 30
    params["w"] += 1
    assert float(f(x)) == 33


def test_more_arguments_than_ctypes_passes():
    f = ag.jit(lambda xs: [x + 1 for x in xs[:3]] + [sum(xs[3:])])
    numbers = [np.full((), i, F32) for i in range(1030)]
    for _ in range(2):
        *three, total = f(numbers)
        assert [float(v) for v in three] == [1, 2, 3] and float(total) == sum(range(3, 1030))


@pytest.mark.parametrize(
    "values", [(0.0, -0.0), (1, True, 1.0, np.float32(1)), ((1,), (True,), (1.0,)), ((0.0,), (-0.0,))]
)
def test_values_that_compare_equal_are_told_apart(values: tuple[Any, ...]) -> None:
    state: dict[str, Any] = {}
    first = values[0]

    def number(value: Any) -> Any:
        return value[0] if isinstance(value, tuple) else value

    @partial(ag.jit, static_argnames="k")
    def by_argument(x: ag.Tensor, k: Any) -> ag.Tensor:
        return x * number(k)

    @ag.jit
    def by_cell(x: ag.Tensor) -> ag.Tensor:
        return x * number(first)

    @ag.jit
    def by_dict(x: ag.Tensor) -> ag.Tensor:
        return x * number(state["k"])

    x = ag.asarray(np.array([1, 2], np.int32))
    for value in values * 2:
        first = state["k"] = value
        expected = x * number(value)
        for found in (by_argument(x, value), by_cell(x), by_dict(x)):
            assert found.dtype is expected.dtype
            np.testing.assert_array_equal(np.signbit(found.numpy()), np.signbit(expected.numpy()))
    assert by_argument.stats().compiles == len(values)


def test_nan_is_the_same_value_as_nan() -> None:
    f = ag.jit(lambda x, k: x * k, static_argnames="k")
    for _ in range(3):
        f(ag.ones((2,)), float("nan"))
    assert f.stats().compiles == 1


def test_arrays_of_foreign_byte_order_are_converted() -> None:
    f = ag.jit(lambda x: x + 1)
    for dtype in (">f4", ">i8", "<f4"):
        x = np.arange(4, dtype=dtype)
        np.testing.assert_array_equal(f(x).numpy(), x + 1)


def test_defaults_and_attributes_of_functions_are_guarded() -> None:
    def by_default(x: ag.Tensor, k: list[float] = [2.0], *, more: Any = {"m": 1.0}) -> ag.Tensor:  # noqa: B006
        return x * k[0] * more["m"]

    def by_attribute(x: ag.Tensor) -> ag.Tensor:
        return x * by_attribute.factor  # pyright: ignore[reportFunctionMemberAccess]

    x = ag.ones((2,))
    compiled = ag.jit(by_default)
    assert compiled(x).tolist() == [2.0, 2.0]
    assert by_default.__defaults__ is not None and by_default.__kwdefaults__ is not None
    by_default.__defaults__[0][0] = 3.0
    assert compiled(x).tolist() == [3.0, 3.0]
    by_default.__kwdefaults__["more"]["m"] = 2.0
    assert compiled(x).tolist() == [6.0, 6.0]
    by_attribute.factor = 2.0  # pyright: ignore[reportFunctionMemberAccess]
    compiled = ag.jit(by_attribute)
    assert compiled(x).tolist() == [2.0, 2.0]
    by_attribute.factor = 5.0  # pyright: ignore[reportFunctionMemberAccess]
    assert compiled(x).tolist() == [5.0, 5.0]


def test_reshapes_keep_symbols() -> None:
    f = ag.jit(lambda x: ag.logsumexp(ag.reshape(x, (x.shape[0], -1)), axis=1), dynamic=True)
    for rows in (2, 3, 5):
        x = np.ones((rows, 1, 1), np.float32)
        np.testing.assert_allclose(f(x).numpy(), np.ones(rows), rtol=1e-6)
    assert f.stats().compiles == 1

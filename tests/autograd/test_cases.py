"""Inputs that broke systems of this kind: each row in eager calls, under jit, and in gradients where it has one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nablair
from nablair import autograd as ag

F32 = np.float32


def eager(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on Tensors, as `jit` calls it."""
    return lambda *args: function(*[ag.asarray(a) if isinstance(a, np.ndarray) else a for a in args])


MODES = [pytest.param(eager, id="eager"), pytest.param(ag.jit, id="jit")]
modes = pytest.mark.parametrize("mode", MODES)


def equal(actual: Any, expected: Any) -> None:
    """Bit for bit, NaN equal to NaN."""
    np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))


def near(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=atol)


@modes
def test_01_gradient_of_an_untaken_branch(mode):
    f = mode(ag.grad(lambda x: ag.sum(ag.where(x == 0, 0, x * ag.sqrt(x)))))
    near(f(ag.asarray([0.0, 4.0])), [0.0, 3.0])


def test_01_backward():
    x = ag.Tensor([0.0, 4.0], requires_grad=True)
    ag.sum(ag.where(x == 0, 0, x * ag.sqrt(x))).backward()
    near(x.grad, [0.0, 3.0])


@modes
def test_02_nan_is_not_swallowed(mode):
    nan, two = ag.asarray([np.nan]), ag.asarray([2.0])
    for f in (
        lambda: ag.maximum(nan, two),
        lambda: ag.maximum(two, nan),
        lambda: ag.minimum(two, nan),
        lambda: ag.minimum(nan, two),
        lambda: ag.relu(nan),
        lambda: ag.clip(nan, 0, 1),
        lambda: ag.max(ag.concat([two, nan, two])),
        lambda: ag.min(ag.concat([two, nan, two])),
    ):
        assert np.isnan(mode(f)().numpy()).all()


@modes
def test_03_tie_of_maximum(mode):
    a, b = mode(ag.grad(lambda a, b: ag.sum(ag.maximum(a, b)), argnums=(0, 1)))(ag.asarray([1.0]), ag.asarray([1.0]))
    equal(a, [0.5])
    equal(b, [0.5])


@modes
@pytest.mark.parametrize("name", ["relu", "abs"])
def test_04_kinks_at_zero(mode, name):
    equal(mode(ag.grad(lambda x: ag.sum(getattr(ag, name)(x))))(ag.asarray([0.0, 1.0])), [0.0, 1.0])


@modes
def test_05_sqrt_at_zero(mode):
    equal(mode(ag.grad(ag.sqrt))(0.0), np.inf)


@modes
def test_06_no_overflow(mode):
    x = ag.asarray([100.0, -100.0])
    near(mode(ag.softplus)(x), [100.0, 3.783506e-44], rtol=1e-5, atol=1e-44)
    near(mode(ag.grad(lambda x: ag.sum(ag.softplus(x))))(x), [1.0, 0.0])
    gradient = mode(ag.grad(lambda x: ag.sum(ag.sigmoid(x))))(x).numpy()
    assert (gradient >= 0).all() and (gradient < 1e-40).all()
    near(mode(ag.grad(ag.gelu))(1e13), 1.0)
    near(mode(ag.log1p)(1e-8), 1e-8, rtol=1e-6, atol=0)
    near(mode(ag.expm1)(1e-8), 1e-8, rtol=1e-6, atol=0)


@modes
def test_07_nan_checks_stay(mode):
    x = ag.asarray([np.nan, np.inf, 1.0])
    equal(mode(ag.isnan)(x), [True, False, False])
    equal(mode(ag.isfinite)(x), [False, False, True])
    equal(mode(ag.isinf)(x), [False, True, False])
    equal(mode(lambda x: x - x)(x), [np.nan, np.nan, 0.0])


def test_08_floating_point_mode_of_the_process():
    ag.jit(lambda x: ag.exp(x) * 2)(ag.asarray([1.0])).numpy()
    assert F32(1e-40) * F32(1) == F32(1e-40) != 0
    assert np.array([5e-324]) * 1.0 == 5e-324


@modes
def test_09_broadcasting_gradient_is_summed(mode):
    a, b = np.arange(4, dtype=F32).reshape(4, 1), np.arange(5, dtype=F32).reshape(1, 5)
    da, db = mode(ag.grad(lambda a, b: ag.sum(a * b), argnums=(0, 1)))(a, b)
    equal(da, np.full((4, 1), b.sum()))
    equal(db, np.full((1, 5), a.sum()))


@modes
def test_10_several_reduced_axes(mode):
    x = np.ones((2, 3, 4), F32)
    equal(mode(ag.grad(lambda x: ag.sum(ag.mean(x, axis=(0, 2)))))(x), np.full((2, 3, 4), 1 / 8))


@modes
def test_11_fused_and_unfused_consumer(mode):
    a, b = np.linspace(-1, 1, 6, dtype=F32), np.linspace(2, 3, 6, dtype=F32)

    def f(a, b):
        y = a * b
        return ag.sum(y + ag.softmax(y) * ag.asarray(np.arange(6, dtype=F32)))

    y = a.astype(float) * b
    e = np.exp(y - y.max())
    p, w = e / e.sum(), np.arange(6)
    dy = 1 + p * (w - (p * w).sum())
    da, db = mode(ag.grad(f, argnums=(0, 1)))(a, b)
    near(da, dy * b)
    near(db, dy * a, atol=1e-5)


@modes
def test_12_same_array_in_two_places(mode):
    w = ag.asarray([1.0, 2.0, 3.0])
    da, db = mode(ag.grad(lambda a, b: ag.sum(a * b), argnums=(0, 1)))(w, w)
    equal(da, [1, 2, 3])
    equal(db, [1, 2, 3])


def test_12_same_leaf_twice():
    w = ag.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    ag.sum(w * w).backward()
    equal(w.grad, [2, 4, 6])


def test_13_output_aliases_input():
    x = np.arange(5, dtype=F32)
    f = ag.jit(lambda x: x[::-1] * 2 + x[0])
    expected = x[::-1] * 2 + x[0]
    f(x, out=x)
    equal(x, expected)


def test_13_donated():
    f = ag.jit(lambda x: x + 1, donate_argnames="x")
    x = ag.asarray([1.0, 2.0])
    equal(f(x), [2.0, 3.0])
    with pytest.raises(nablair.Error, match="donated"):
        x.numpy()
    with pytest.raises(nablair.Error, match="donated"):
        _ = x + 1
    with pytest.raises(nablair.Error, match="donated"):
        f(x)


SCALE = 2


def scaled(x):
    return x * SCALE


def test_14_cells_and_globals_change():
    global SCALE
    s = 2
    by_cell, by_global = ag.jit(lambda x: x * s), ag.jit(lambda x: scaled(x))
    x = ag.asarray([1.0])
    for _ in range(3):
        equal(by_cell(x), [2.0])
        equal(by_global(x), [2.0])
    s = SCALE = 5
    try:
        equal(by_cell(x), [5.0])
        equal(by_global(x), [5.0])
    finally:
        SCALE = 2
    assert by_cell.stats().compiles == 2


def test_14_captured_arrays_change():
    w, table, array = ag.asarray([1.0]), {"k": 3.0}, np.array([10.0], F32)
    f = ag.jit(lambda x: x * w + table["k"] + array)
    x = ag.asarray([2.0])
    for _ in range(3):
        equal(f(x), [15.0])
    w = ag.asarray([4.0])
    equal(f(x), [21.0])
    w += 1
    equal(f(x), [23.0])
    assert f.stats().compiles == 1
    array[0] = 20
    equal(f(x), [33.0])
    table["k"] = 0.0
    equal(f(x), [30.0])
    strided = np.arange(4, dtype=F32)[::2]
    g = ag.jit(lambda x: x + strided)
    for _ in range(3):
        equal(g(x), [2.0, 4.0])
    strided[:] = 7
    equal(g(x), [9.0, 9.0])


def test_15_keywords_scalars_and_unused_inputs():
    f = ag.jit(lambda x, scale=1.0: x * scale)
    x = ag.asarray([1.0, 2.0])
    equal(f(x, scale=3), [3.0, 6.0])
    equal(f(x, scale=4), [4.0, 8.0])
    equal(f(x), [1.0, 2.0])
    g = ag.jit(ag.grad(lambda s, x: s * x))
    equal(g(3.0, ag.asarray(2.0)), 2.0)
    equal(ag.jit(ag.grad(lambda s, x: s * x, argnums=1))(3.0, ag.asarray(2.0)), 3.0)
    equal(ag.jit(ag.grad(lambda a, b: ag.sum(a), argnums=1))(x, x), [0.0, 0.0])


def test_16_caches_are_bounded():
    from nablair.autograd import jitted, lazy

    f = ag.jit(lambda x: x)
    for n in range(1, 3000):
        f(np.zeros(n, F32))
    assert len(f._specialisations) <= jitted.SPECIALISATIONS
    before = ag.eager_stats().compiles
    for n in range(2, 3000):
        (ag.asarray(np.zeros(n, F32)) * 0.1 + 3).numpy()
    assert ag.eager_stats().compiles <= before + 1
    assert len(lazy._plans) <= lazy.PLANS


COUNT = 20_000


def test_17_deep_eager():
    x = ag.asarray([1.0, 2.0])
    y = x
    for _ in range(COUNT):
        y = y + x
    equal(y, np.asarray(x) * (COUNT + 1))


@pytest.mark.parametrize("shape", [(2, 3, 4)])
@modes
def test_19_strides(mode, shape):
    x = np.random.default_rng(0).normal(size=shape).astype(F32)
    t = ag.asarray(x)
    equal(mode(lambda t: t[::-1, :, 0] - 0.25)(t), x[::-1, :, 0] - F32(0.25))
    equal(mode(lambda t: t[:, ::-2, 1:] * 2)(t), x[:, ::-2, 1:] * 2)
    equal(mode(lambda t: ag.permute_dims(t, (2, 0, 1)) + 1)(t), x.transpose(2, 0, 1) + 1)
    equal(mode(lambda t: t + 1)(x[::-1, :, 0]), x[::-1, :, 0] + 1)
    equal(mode(lambda t: t + 1)(x.T), x.T + 1)
    equal(mode(lambda t: t * 2)(np.broadcast_to(x[0, 0], (3, 4))), np.broadcast_to(x[0, 0], (3, 4)) * 2)


@modes
def test_20_zero_sizes(mode):
    empty, scalar = np.zeros((0, 3), F32), np.array(3.0, F32)
    equal(mode(lambda x: x + 1)(empty), empty)
    equal(mode(ag.sum)(empty), 0.0)
    equal(mode(lambda x: ag.sum(x, axis=0))(empty), np.zeros(3))
    equal(mode(lambda x: ag.sum(x))(scalar), 3.0)
    equal(mode(lambda a, b: a @ b)(np.zeros((3, 0), F32), np.zeros((0, 4), F32)), np.zeros((3, 4)))
    with pytest.raises(nablair.ShapeError, match="max"):
        mode(ag.max)(empty)


@modes
def test_21_integers(mode):
    five, three = np.array([-5, 5], np.int32), np.array([3, -3], np.int32)
    equal(mode(lambda a, b: a // b)(five, three), five // three)
    equal(mode(lambda a, b: a % b)(five, three), five % three)
    half = mode(lambda a, b: a / b)(np.array([1], np.int32), np.array([2], np.int32))
    assert half.dtype == ag.float32
    equal(half, [0.5])
    equal(mode(lambda a: a + a)(np.array([2**31 - 1], np.int32)), [-2])


@modes
def test_22_promotion_with_python_numbers(mode):
    def dtype(f, array):
        return mode(f)(array).dtype

    assert dtype(lambda x: x * 2.0, np.ones(2, F32)) is ag.float32
    assert dtype(lambda x: x * 2.0, np.ones(2, np.float16)) is ag.float16
    assert dtype(lambda x: x * 2, np.ones(2, np.int32)) is ag.int32
    assert dtype(lambda x: x + 1, np.ones(2, bool)) is ag.int64
    assert dtype(lambda x: x * 2.0, np.ones(2, np.int32)) is ag.float32
    assert ag.jit(lambda x, s: x * s)(np.ones(2, np.float16), 3.0).dtype is ag.float16


@modes
def test_23_sums_keep_their_digits(mode):
    tenths = np.full(1_000_000, 0.1, F32)
    assert abs(float(mode(ag.sum)(tenths)) / tenths.sum(dtype=np.float64) - 1) < 1e-6
    ones = np.ones(2**24 + 256, F32)
    assert float(mode(ag.sum)(ones)) == 2**24 + 256


def test_24_threads():
    f = ag.jit(lambda x, k: ag.tanh(x * k) + k)
    expected = ag.jit(lambda x, k: ag.tanh(x * k) + k)
    xs = [ag.asarray(np.full(16, i / 8, F32)) for i in range(8)]
    answers = [expected(x, x).numpy() for x in xs]
    failures: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            lazily = (xs[number] * 0.7 + xs[number]).numpy()
            if not np.array_equal(f(xs[number], xs[number]).numpy(), answers[number]):
                failures.append(number)
            if not np.allclose(lazily, xs[number].numpy() * 1.7):
                failures.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@modes
def test_25_many_dimensions(mode):
    x = np.arange(2**9, dtype=F32).reshape((2,) * 9)
    equal(mode(lambda x: x * 2 + 1)(x), x * 2 + 1)
    equal(mode(lambda x: ag.sum(x, axis=(0, 3, 7)))(x), x.sum(axis=(0, 3, 7)))
    order = (8, 0, 7, 1, 6, 2, 5, 3, 4)
    equal(mode(lambda x: ag.permute_dims(x, order))(x), x.transpose(order))


@pytest.mark.parametrize(
    ("read", "advice"),
    [
        (lambda x: float(x), "ag.where"),
        (lambda x: int(x), "ag.where"),
        (lambda x: x.item(), "ag.where"),
        (lambda x: x.numpy(), "return it"),
        (lambda x: np.asarray(x), "return it"),
        (lambda x: x if x > 0 else -x, "ag.where"),
        (lambda x: range(x), "static_argnames"),
    ],
)
def test_27_reading_while_tracing(read, advice):
    with pytest.raises(nablair.Error, match=advice) as caught:
        ag.jit(lambda x: read(x))(ag.asarray(1.0))
    assert caught.value.location is not None and __file__ in str(caught.value)


def test_27_reading_a_captured_value():
    w = ag.asarray(2.0)
    with pytest.raises(nablair.Error, match="traced"):
        ag.jit(lambda x: x * float(w))(ag.asarray(1.0))


@modes
def test_28_mixed_dtypes(mode):
    f32, f64, f16, i32 = (np.array([1.5, 2], d) for d in (F32, np.float64, np.float16, np.int32))
    pairs = ((f32, f64, ag.float64), (f16, f16, ag.float16), (i32, f32, ag.float32), (f16, f32, ag.float32))
    for a, b, dtype in pairs:
        made = mode(lambda a, b: a * b + b)(a, b)
        assert made.dtype is dtype
        near(made, (a.astype(float) * b + b), rtol=1e-3)
    bf16 = ag.asarray([1.5], dtype="bfloat16")
    assert mode(lambda a, b: a * b)(bf16, ag.asarray([2.0], dtype="float16")).dtype is ag.float32
    with pytest.raises(nablair.DTypeError, match="uint64"):
        mode(lambda a, b: a + b)(np.array([1], np.uint64), np.array([1], np.int8))


@modes
def test_29_contraction_keeps_accuracy(mode):
    rows = np.zeros((32769, 3), F32)
    rows[:, 0] = np.arange(32769)
    eye = np.eye(3, dtype=F32)
    made = mode(lambda rows, eye: ag.sum((eye @ rows[:, :, None]) ** 2, axis=(1, 2)))(ag.asarray(rows), ag.asarray(eye))
    assert float(made[-1]) == 1073741824


@modes
def test_30_fusing_through_a_view(mode):
    x, y = np.array([[1, 2], [3, 4]], F32), np.array([[10, 20], [30, 40]], F32)
    made = mode(lambda x, y: ag.flip(x, axis=1) + (ag.sum(y, axis=1) + y))(ag.asarray(x), ag.asarray(y))
    equal(made, [[42, 91], [64, 113]])


@modes
def test_31_index_order_of_a_transposed_input(mode):
    x = ag.asarray([[1.541, -0.2934], [-2.1788, 0.5684]])
    assert int(mode(lambda x: ag.argmin(x.T + 0.5))(x)) == 1


@modes
def test_32_keys_have_dtypes(mode):
    def f(a, b):
        return ag.outer(ag.astype(ag.astype(b, "int32"), "float32"), ag.astype(ag.astype(a, "int32"), "float32"))

    g = mode(f)
    for first, second in ((np.int8, np.int16), (np.uint8, np.uint16), (np.int64, np.int32), (np.uint16, np.int8)):
        equal(g(np.array([10, 20], first), np.array([1, 2], second)), [[10, 20], [20, 40]])


@modes
def test_33_digits_of_constants(mode):
    x = np.random.default_rng(3).normal(size=65_536).astype(F32)
    r, s = 1 / 3, 128**-0.5
    equal(mode(lambda x: (x * r) * s)(x), (x * F32(r)) * F32(s))

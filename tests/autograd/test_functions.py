"""Functions against NumPy and SciPy: values eagerly and under jit, gradients against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.special as special
from op_table import ROWS as ROWS_OF_OPS
from op_table import Row

import nablair
from nablair import autograd as ag
from nablair.autograd.functions.from_ops import declaring
from nablair.ir.dialect import BUILT_IN
from nablair.ir.types import F32

SINGLE = np.float32


def data(*shape: int, low: float = -2.0, high: float = 2.0, seed: int = 0) -> Any:
    return np.random.default_rng(seed + len(shape)).uniform(low, high, shape).astype(SINGLE)


A, B, POSITIVE = data(3, 4), data(3, 4, seed=9), data(3, 4, low=0.2)
CUBE, ROW, INTS = data(2, 3, 4), data(4, seed=5), np.array([[3, -7, 2], [5, 0, -1]], np.int32)

MODES: tuple[Callable[..., Any], ...] = (lambda f: f, ag.jit)
"""Op by op, and compiled as a whole."""


def softmax(x: Any, axis: int) -> Any:
    return special.softmax(x.astype(float), axis=axis)


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    x = x.astype(float)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


def index_add(x: Any, u: Any) -> Any:
    x = x.copy()
    for source, column in enumerate((2, 0, 2)):
        x[:, column] += u[:, source]
    return x


def scatter_add(x: Any, u: Any) -> Any:
    x = x.copy()
    np.add.at(x, (np.arange(3)[:, None], np.array([[0, 3, 0]] * 3)), u)
    return x


ROWS: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    ("pow", ag.pow, np.power, (POSITIVE, B)),
    ("pow-2", lambda x: x**2, lambda x: x**2, (A,)),
    ("pow-3", lambda x: x**3, lambda x: x**3, (A,)),
    ("rpow", lambda x: 2**x, lambda x: SINGLE(2) ** x, (A,)),
    ("rsub", lambda x: 1 - x, lambda x: 1 - x, (A,)),
    ("rdiv", lambda x: 1 / x, lambda x: 1 / x, (POSITIVE,)),
    ("clip", lambda x: ag.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5), (A,)),
    ("where", lambda x, y: ag.where(x > y, x, y * 2), lambda x, y: np.where(x > y, x, y * 2), (A, B)),
    ("square", ag.square, np.square, (A,)),
    ("gelu", ag.gelu, lambda x: 0.5 * x * (1 + special.erf(x / np.sqrt(2))), (A,)),
    ("leaky_relu", ag.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), (A,)),
    ("elu", ag.elu, lambda x: np.where(x > 0, x, np.expm1(x)), (A,)),
    ("sum", ag.sum, np.sum, (A,)),
    ("sum-axis", lambda x: ag.sum(x, axis=1, keepdims=True), lambda x: x.sum(1, keepdims=True), (CUBE,)),
    ("mean", lambda x: ag.mean(x, axis=(0, -1)), lambda x: x.mean((0, -1)), (CUBE,)),
    ("var", lambda x: ag.var(x, axis=0, correction=1), lambda x: x.var(0, ddof=1), (A,)),
    ("std", ag.std, np.std, (A,)),
    ("prod", lambda x: ag.prod(x, axis=0), lambda x: x.prod(0), (A,)),
    ("max", lambda x: ag.max(x, axis=-1), lambda x: x.max(-1), (A,)),
    ("min", ag.min, np.min, (A,)),
    ("matmul", ag.matmul, np.matmul, (A, data(4, 5))),
    ("matmul-batch", ag.matmul, np.matmul, (CUBE, data(4, 2))),
    ("matvec", ag.matmul, np.matmul, (A, ROW)),
    (
        "tensordot",
        lambda x, y: ag.tensordot(x, y, axes=([0, 2], [0, 1])),
        lambda x, y: np.tensordot(x, y, ([0, 2], [0, 1])),
        (CUBE, data(2, 4, 3)),
    ),
    ("vecdot", ag.vecdot, lambda x, y: (x * y).sum(-1), (A, B)),
    ("softmax", ag.softmax, lambda x: softmax(x, -1), (A,)),
    ("softmax-0", lambda x: ag.softmax(x, axis=0), lambda x: softmax(x, 0), (A,)),
    ("log_softmax", ag.log_softmax, lambda x: np.log(softmax(x, -1)), (A,)),
    ("logsumexp", lambda x: ag.logsumexp(x, axis=0), lambda x: special.logsumexp(x, axis=0), (A,)),
    ("layer_norm", ag.layer_norm, layer_norm, (A, ROW, data(4, seed=7))),
    ("layer_norm-bias", lambda x, b: ag.layer_norm(x, bias=b), lambda x, b: layer_norm(x, 1, b), (A, ROW)),
    ("reshape", lambda x: ag.reshape(x, (2, -1)), lambda x: x.reshape(2, -1), (A,)),
    ("permute", lambda x: ag.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1), (CUBE,)),
    ("moveaxis", lambda x: ag.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1), (CUBE,)),
    ("broadcast_to", lambda x: ag.broadcast_to(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), (A,)),
    ("expand_dims", lambda x: ag.expand_dims(x, axis=1), lambda x: x[:, None], (A,)),
    ("squeeze", lambda x: ag.squeeze(x[:, :1], axis=1), lambda x: x[:, 0], (A,)),
    ("flip", ag.flip, np.flip, (A,)),
    ("roll", lambda x: ag.roll(x, 2, axis=1), lambda x: np.roll(x, 2, 1), (A,)),
    ("concat", lambda x, y: ag.concat([x, y], axis=1), lambda x, y: np.concatenate([x, y], 1), (A, B)),
    ("stack", lambda x, y: ag.stack([x, y], axis=1), lambda x, y: np.stack([x, y], 1), (A, B)),
    (
        "pad",
        lambda x: ag.pad(x, ((1, 0), (2, 3)), constant_values=1),
        lambda x: np.pad(x, ((1, 0), (2, 3)), constant_values=1),
        (A,),
    ),
    ("slice", lambda x: x[1:, ::-2], lambda x: x[1:, ::-2], (A,)),
    ("index", lambda x: x[-1, None, ..., 2], lambda x: x[-1, None, ..., 2], (CUBE,)),
    ("take", lambda x: x[:, np.array([2, 0, -1])], lambda x: x[:, [2, 0, -1]], (A,)),
    (
        "take_along",
        lambda x: ag.take_along_axis(x, np.array([[0], [2], [1]]), axis=1),
        lambda x: np.take_along_axis(x, np.array([[0], [2], [1]]), 1),
        (A,),
    ),
    (
        "index_add",
        lambda x, u: ag.index_add(x, np.array([2, 0, 2]), u, axis=1),
        lambda x, u: index_add(x, u),
        (A, data(3, 3)),
    ),
    (
        "scatter_add",
        lambda x, u: ag.scatter_add(x, np.array([[0, 3, 0]] * 3), u, axis=1),
        lambda x, u: scatter_add(x, u),
        (A, data(3, 3)),
    ),
    ("tril", ag.tril, np.tril, (A,)),
    ("triu", lambda x: ag.triu(x, k=1), lambda x: np.triu(x, 1), (A,)),
    ("mse", ag.mse_loss, lambda x, y: ((x - y) ** 2).mean(), (A, B)),
    (
        "smooth_l1",
        lambda x, y: ag.smooth_l1_loss(x, y, reduction="none"),
        lambda x, y: np.where(abs(x - y) < 1, 0.5 * (x - y) ** 2, abs(x - y) - 0.5),
        (A, B),
    ),
    (
        "bce",
        lambda x, y: ag.bce_with_logits(x, y, reduction="sum"),
        lambda x, y: (np.logaddexp(0, x) - x * y).sum(),
        (A, B),
    ),
    (
        "cross_entropy",
        lambda x: ag.cross_entropy(x, np.array([0, 3, 1])),
        lambda x: -np.log(softmax(x, -1))[range(3), [0, 3, 1]].mean(),
        (A,),
    ),
]  # fmt: skip

EXACT: list[tuple[str, Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    ("argmax", ag.argmax, np.argmax, (A,)),
    ("argmin", lambda x: ag.argmin(x, axis=0, keepdims=True), lambda x: x.argmin(0, keepdims=True), (A,)),
    ("any", lambda x: ag.any(x > 1.9, axis=0), lambda x: (x > 1.9).any(0), (A,)),
    ("all", lambda x: ag.all(x), lambda x: x.all(), (INTS,)),
    ("sum-ints", ag.sum, np.sum, (INTS,)),
    ("sum-bools", lambda x: ag.sum(x > 0, axis=0), lambda x: (x > 0).sum(0), (INTS,)),
    ("compare", lambda x, y: (x < y) | ~(x == y), lambda x, y: (x < y) | ~(x == y), (A, B)),
    ("arange", lambda: ag.arange(2, 11, 3), lambda: np.arange(2, 11, 3), ()),
    ("arange-down", lambda: ag.arange(5, 0, -2), lambda: np.arange(5, 0, -2), ()),
    ("linspace", lambda: ag.linspace(0, 1, 5), lambda: np.linspace(0, 1, 5, dtype=SINGLE), ()),
    ("eye", lambda: ag.eye(3, 4, k=1), lambda: np.eye(3, 4, 1, dtype=SINGLE), ()),
    ("zeros", lambda: ag.zeros((2, 3)), lambda: np.zeros((2, 3), SINGLE), ()),
    ("full", lambda: ag.full((2,), 7), lambda: np.full(2, 7), ()),
    ("ones_like", ag.ones_like, np.ones_like, (INTS,)),
    ("astype", lambda x: ag.astype(x, "int8"), lambda x: np.trunc(x).astype(np.int8), (A,)),
    ("unstack", lambda x: ag.unstack(x, axis=1)[2], lambda x: x[:, 2], (A,)),
    ("one_hot", lambda x: ag.one_hot(x, 4), lambda x: (x[..., None] == np.arange(4)).astype(SINGLE), (INTS,)),
    ("outer", ag.outer, np.outer, (INTS[0], INTS[1])),
    ("isin-range", lambda x: ag.logical_and(x > -1, x < 1), lambda x: (x > -1) & (x < 1), (A,)),
]


@pytest.mark.parametrize(("name", "function", "reference", "arrays"), ROWS, ids=[r[0] for r in ROWS])
def test_values(name, function, reference, arrays):
    expected = reference(*arrays)
    for mode in MODES:
        made = mode(function)(*[ag.asarray(a) for a in arrays])
        assert made.shape == np.shape(expected) and made.dtype is ag.float32
        np.testing.assert_allclose(made.numpy(), expected, rtol=2e-5, atol=2e-6)


def declared() -> Iterator[tuple[str, Callable[..., Any], Row, Any]]:
    """The functions that ops declare, on two samples of the op whose properties are parameters."""
    for name, cls in declaring().items():
        api = cls.api
        assert api is not None
        if cls.name.partition(".")[0] not in BUILT_IN:
            continue
        tried = 0
        for row in ROWS_OF_OPS:
            given = {"axis" if key == "axes" else key: value for key, value in row.properties.items()}
            takes = given.keys() <= {*api.options, *api.keywords} and "preferred_element_type" not in given
            if row.name == cls.name and takes and tried < 2:
                tried += 1
                yield name, partial(getattr(ag, name), **given), row, F32 if F32 in row.elements else row.elements[0]


DECLARED = list(declared())


@pytest.mark.parametrize(("name", "function", "row", "element"), DECLARED, ids=[f"{d[0]}-{d[2].id}" for d in DECLARED])
def test_declared_functions(name: str, function: Callable[..., Any], row: Row, element: Any) -> None:
    """Values and dtypes, op by op and compiled, and gradients by `grad` and `backward`, which must agree."""
    arrays = row.arrays(element)
    (expected,) = row.expected(arrays)
    made = [mode(function)(*map(ag.asarray, arrays)) for mode in MODES]
    for found in made:
        assert found.shape == np.shape(expected) and found.dtype == made[0].dtype
        np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5, atol=2e-6)
    if not row.differentiable or element is not F32:
        return
    wrt = row.differentiable

    def loss(*tensors: Any) -> Any:
        return ag.sum(function(*tensors))

    wide = [a.astype(float) if a.dtype == np.float32 else a for a in arrays]
    leaves = [ag.Tensor(a, requires_grad=True) if i in wrt else ag.asarray(a) for i, a in enumerate(wide)]
    loss(*leaves).backward()
    for i, gradient in zip(wrt, ag.jit(ag.grad(loss, argnums=wrt))(*wide), strict=True):
        np.testing.assert_allclose(np.asarray(leaves[i].grad), gradient.numpy(), rtol=1e-9, atol=1e-12)


def test_every_declared_function_is_tried() -> None:
    ours = {name for name, cls in declaring().items() if cls.name.partition(".")[0] in BUILT_IN}
    assert ours - {d[0] for d in DECLARED} == set()


@pytest.mark.parametrize(("name", "function", "reference", "arrays"), EXACT, ids=[r[0] for r in EXACT])
def test_exact_values(name, function, reference, arrays):
    expected = reference(*arrays)
    for mode in MODES:
        made = mode(function)(*[ag.asarray(a) for a in arrays])
        assert made.dtype == np.asarray(expected).dtype
        np.testing.assert_array_equal(made.numpy(), expected)


@pytest.mark.parametrize(("name", "function", "reference", "arrays"), ROWS, ids=[r[0] for r in ROWS])
def test_gradients(name, function, reference, arrays):
    """In float64 against central differences: `grad` under jit, and `backward`."""
    arrays = [a.astype(float) for a in arrays]
    weights = np.random.default_rng(3).normal(size=np.shape(reference(*arrays)))

    def loss(*tensors: Any) -> Any:
        return ag.sum(function(*tensors) * weights)

    gradients = ag.jit(ag.grad(loss, argnums=tuple(range(len(arrays)))))(*arrays)
    leaves = [ag.Tensor(a, requires_grad=True) for a in arrays]
    loss(*leaves).backward()
    step = 1e-6
    for number, gradient in enumerate(gradients):
        np.testing.assert_allclose(np.asarray(leaves[number].grad), gradient.numpy(), rtol=1e-9, atol=1e-12)
        direction = np.random.default_rng(number).normal(size=arrays[number].shape)

        def value(t: float, number: int = number, direction: Any = direction) -> float:
            moved = [a + t * direction if i == number else a for i, a in enumerate(arrays)]
            return float((reference(*moved) * weights).sum())

        slope = (value(step) - value(-step)) / (2 * step)
        assert (gradient.numpy() * direction).sum() == pytest.approx(slope, rel=1e-5, abs=1e-7)


def test_new_shapes_compile_nothing():
    """Chains without sizes of their own are compiled once for all shapes."""
    chains: list[Callable[..., Any]] = [
        lambda x, w: ag.relu(x * 0.3 + x) - 1.5,
        lambda x, w: ag.tanh(x @ w),
        lambda x, w: ag.sum(x * x, axis=1),
        lambda x, w: ag.mean(x, axis=0),
        lambda x, w: ag.softmax(x * 2, axis=-1),
        lambda x, w: ag.argmax(x, axis=1),
        lambda x, w: x + ag.sum(w, axis=1),
        lambda x, w: ag.layer_norm(x),
    ]
    for chain in chains:
        counts: list[int] = []
        for rows, columns, out in ((3, 4, 5), (6, 7, 8), (20, 9, 33)):
            x, w = data(rows, columns, seed=rows), data(columns, out, seed=out)
            made = chain(ag.asarray(x), ag.asarray(w)).numpy()
            counts.append(ag.eager_stats().compiles)
            fixed = ag.jit(chain)(ag.asarray(x), ag.asarray(w)).numpy()
            np.testing.assert_allclose(made, fixed, rtol=1e-5, atol=1e-6)
        assert counts[0] == counts[1] == counts[2]


def test_eager_numbers_compile_nothing():
    x = ag.asarray(A)
    (x * 0.123).numpy()
    before = ag.eager_stats().compiles
    for value in (0.25, 1e-3, -7.5):
        np.testing.assert_array_equal((x * value).numpy(), A * SINGLE(value))
    assert ag.eager_stats().compiles == before


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: ag.asarray(A) + ag.asarray(data(5)), nablair.ShapeError, ("add", "(3, 4)", "(5,)")),
        (lambda: ag.asarray(A) @ ag.asarray(A), nablair.ShapeError, ("matmul", "(3, 4)")),
        (lambda: ag.reshape(A, (5, 2)), nablair.ShapeError, ("reshape", "(3, 4)", "(5, 2)")),
        (lambda: ag.sum(A, axis=2), nablair.ShapeError, ("sum", "axis 2")),
        (lambda: ag.concat([A, ROW]), nablair.ShapeError, ("concat",)),
        (lambda: ag.mse_loss(A, ROW), nablair.ShapeError, ("mse", "(3, 4)", "(4,)")),
        (lambda: ag.logical_and(A, A), nablair.DTypeError, ("logical_and", "float32")),
        (lambda: ag.asarray(np.array([1], np.uint8)) + 300, nablair.DTypeError, ("300", "uint8")),
        (lambda: ag.asarray(A).T.T[7], IndexError, ("7", "(3, 4)")),
        (lambda: ag.asarray(CUBE).T, nablair.ShapeError, ("mT",)),
        (lambda: ag.squeeze(A, axis=0), nablair.ShapeError, ("squeeze",)),
    ],
)
def test_errors_name_the_op_and_the_line(call, kind, words):
    for mode in MODES:
        with pytest.raises(kind) as caught:
            mode(call)()
        for word in words:
            assert word in str(caught.value)
        if kind is not IndexError:
            assert __file__ in str(caught.value)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_index_add_of_what_is_taken_from_its_base(count: int) -> None:
    places = np.array([0, -1, 0])

    def doubled(x: ag.Tensor) -> ag.Tensor:
        y = ag.pow(ag.abs(x) + 1, ag.tanh(x))  # costs too much to be computed twice
        return ag.index_add(y, places, ag.take(y, places, axis=0) * 2) * 1.5

    expected = np.ones(count)
    np.add.at(expected, places, 2.0)
    np.testing.assert_allclose(ag.jit(doubled)(np.zeros(count)).numpy(), expected * 1.5)

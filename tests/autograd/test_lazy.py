"""Eager ops: when they are computed, what is kept, and the structures around them."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections import OrderedDict, defaultdict, namedtuple

import numpy as np
import pytest

from nablair import autograd as ag
from nablair.autograd import lazy, pytree

F32 = np.float32


def runs() -> int:
    return ag.eager_stats().runs


def test_nothing_is_computed_before_it_is_read():
    before = runs()
    x = ag.asarray([1.0, 2.0])
    y = ag.exp(x) * 2 + 1
    assert y.shape == (2,) and y.dtype is ag.float32 and runs() == before
    np.testing.assert_allclose(y, np.exp([1, 2]) * 2 + 1, rtol=1e-6)
    y.numpy()
    assert runs() == before + 1


def test_what_a_tensor_shows_is_computed_along():
    x = ag.asarray([1.0, 2.0])
    y = x * 3
    z = y + 1
    before = runs()
    z.numpy()
    y.numpy()
    assert runs() == before + 1


def test_long_chains_run_in_pieces():
    x = ag.asarray([1.0, 2.0])
    before = runs()
    for _ in range(3 * lazy.LIMIT + 3):
        x = x + 1
    assert runs() - before == 3


def test_a_loop_that_reads_every_step_does_not_start_anew():
    h = ag.asarray([1.0])
    for _ in range(50):
        h = h * 1.01
        float(ag.sum(h))
    plans = len(lazy._plans)
    for _ in range(50):
        h = h * 1.01
        float(ag.sum(h))
    assert len(lazy._plans) == plans


def test_memory_is_given_back():
    x = ag.asarray(np.zeros(1000, F32))
    y = x + 1
    array = weakref.ref(x._lazy())
    y.numpy()
    del x
    gc.collect()
    assert array() is None


def test_chains_of_one_shape_are_collapsed():
    def chain(x):
        return ag.tanh(x * 0.77 + 0.3).numpy()

    chain(ag.zeros((2, 3)) + 0)
    x = ag.asarray(np.zeros((2, 3, 4), F32))
    chain(x)
    before = ag.eager_stats().compiles
    for shape in ((5,), (2, 2, 2, 2), (1, 1), (0, 4)):
        assert chain(ag.asarray(np.zeros(shape, F32))).shape == shape
    assert ag.eager_stats().compiles == before


def test_extents_of_one_are_not_stretched():
    """A plan for (n, m) + (m,) must not be taken for (n, 1) + (m,)."""
    for a, b in (((3, 4), (4,)), ((3, 1), (4,)), ((1, 4), (4,)), ((3, 4), (1,)), ((4, 4), (4,))):
        x, y = np.arange(np.prod(a), dtype=F32).reshape(a), np.arange(np.prod(b), dtype=F32).reshape(b)
        np.testing.assert_array_equal(ag.asarray(x) * 0.3 + ag.asarray(y), x * F32(0.3) + y)


def test_plans_that_run_often_agree():
    x = np.linspace(-1, 1, 24, dtype=F32)
    for shape in ((24,), (2, 12), (4, 6)):
        for _ in range(2 * lazy.OFTEN):
            made = ag.sum(ag.asarray(x.reshape(shape)) * 0.6, axis=-1).numpy()
            np.testing.assert_allclose(made, (x.reshape(shape) * 0.6).sum(-1), rtol=1e-4, atol=1e-6)


Named = namedtuple("Named", ["p", "q"])


@dataclasses.dataclass
class Record:
    a: object
    b: object


def test_pytrees():
    node = {
        "z": [1, (2, None)],
        "a": Named(3, {}),
        "r": Record(4, [5]),
        "o": OrderedDict([("k", 6)]),
        "d": defaultdict(list, k=7),
    }
    leaves, tree = pytree.flatten(node)
    assert sorted(leaves) == [1, 2, 3, 4, 5, 6, 7] and tree.size == 7
    again = pytree.unflatten(tree, leaves)
    assert again == node and type(again["a"]) is Named and type(again["r"]) is Record
    assert type(again["o"]) is OrderedDict and again["d"].default_factory is list
    assert pytree.flatten(again)[1] == tree and hash(pytree.flatten(again)[1]) == hash(tree)
    assert pytree.flatten([1, 2])[1] != pytree.flatten((1, 2))[1] != pytree.flatten([1, [2]])[1]
    assert pytree.flatten({2: "a", "b": 1})[0] == ["a", 1]
    with pytest.raises(ValueError, match="leaves"):
        pytree.unflatten(tree, [*leaves, 8])


@pytest.mark.parametrize(
    ("made", "other", "shape"),
    [
        (lambda: ag.zeros((3,)), np.ones(3, np.float32), (3,)),
        (lambda: ag.ones((4, 1)), np.ones((4, 1), np.float32), (4, 1)),
        (lambda: ag.full((3, 3), 2.0), np.ones((3, 3), np.float32), (3, 3)),
        (lambda: ag.zeros((2, 3)), np.ones((1, 3), np.float32), (2, 3)),
    ],
)
def test_arrays_of_one_value_have_the_size_that_they_were_made_with(made, other, shape):
    """The size stands in the value, so that such a graph is not generalised to other sizes."""
    expected = made().numpy() + other
    total = made() + other
    assert total.shape == shape
    np.testing.assert_array_equal(total.numpy(), expected)


def test_backward_through_an_array_of_one_value():
    w = ag.Tensor(np.ones((3, 4), np.float32), requires_grad=True)
    (w * ag.ones((3, 4))).sum().backward()
    assert w.grad is not None
    np.testing.assert_array_equal(w.grad.numpy(), np.ones((3, 4)))

"""The Tensor object: what goes in and out, operators, binding, dtypes and their promotion."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nablair
from nablair import autograd as ag
from nablair.autograd.dtypes import DTYPES, as_dtype, promote

F32 = np.float32


def test_the_package_is_lazy():
    code = "import sys, nablair; from nablair import autograd; assert 'numpy' not in sys.modules; autograd.exp; "
    code += "assert 'numpy' in sys.modules; assert 'llvmlite' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_exists_and_others_do_not():
    for name in ag.__all__:
        assert getattr(ag, name) is not None or name == "newaxis"
        assert name in dir(ag)
    with pytest.raises(AttributeError, match="no_such_name"):
        ag.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_attributes():
    x = ag.asarray(np.zeros((2, 3), F32))
    assert (x.shape, x.ndim, x.size, x.device) == ((2, 3), 2, 6, "cpu")
    assert x.dtype is ag.float32 and x.dtype == np.float32 and x.dtype == "float32" and x.dtype != np.float64
    assert x.T.shape == x.mT.shape == (3, 2)
    assert len(x) == 2 and [row.shape for row in x] == [(3,), (3,)]


def test_asarray_copies_unless_told_not_to():
    array = np.arange(4, dtype=F32)
    copied, shared = ag.asarray(array), ag.asarray(array, copy=False)
    array[0] = 7
    assert float(copied[0]) == 0 and float(shared[0]) == 7
    assert np.shares_memory(shared.numpy(), array)


@pytest.mark.parametrize(
    ("given", "dtype", "shape"),
    [
        (1.5, ag.float32, ()),
        (3, ag.int64, ()),
        (True, ag.bool, ()),
        ([1.5, 2], ag.float32, (2,)),
        ([[1, 2], [3, 4]], ag.int64, (2, 2)),
        (np.float64(2), ag.float64, ()),
        ([np.float64(2)], ag.float64, (1,)),
        (np.zeros((0, 3), np.uint8), ag.uint8, (0, 3)),
        (np.zeros((2, 3), ">i2"), ag.int16, (2, 3)),
        (np.zeros(2, ml_dtypes.bfloat16), ag.bfloat16, (2,)),
        (memoryview(b"ab"), ag.uint8, (2,)),
        ([], ag.float32, (0,)),
    ],
)
def test_asarray_dtypes(given, dtype, shape):
    made = ag.asarray(given)
    assert made.dtype is dtype and made.shape == shape


def test_asarray_of_tensors_and_other_dtypes():
    x = ag.asarray([1.7, -1.7, 300.0])
    np.testing.assert_array_equal(ag.asarray([x[0], x[1]]), np.array([1.7, -1.7], F32))
    np.testing.assert_array_equal(ag.asarray(x, dtype=ag.int8), [1, -1, 127])
    np.testing.assert_array_equal(ag.asarray([1.0, -1.0], dtype="int32"), [1, -1])
    with pytest.raises(nablair.DTypeError, match="complex"):
        ag.asarray(np.zeros(2, complex))
    with pytest.raises(nablair.DTypeError):
        ag.asarray(["a"])


def test_protocols():
    x = ag.asarray([[1.0, 2.0], [3.0, 4.0]])
    view = x.numpy()
    assert not view.flags.writeable and np.shares_memory(view, x.numpy())
    assert np.asarray(x).base is not None and np.array(x, np.float64).dtype == np.float64
    np.testing.assert_array_equal(np.from_dlpack(x), view)
    assert x.tolist() == [[1, 2], [3, 4]] and x[1, 0].item() == 3
    assert (float(x[0, 0]), int(x[1, 1]), bool(x[0, 0] > 5), range(9)[ag.asarray(4)]) == (1.0, 4, False, 4)
    with pytest.raises(nablair.ShapeError, match=r"\(2, 2\)"):
        float(x)
    with pytest.raises(nablair.DTypeError, match="index"):
        range(9)[x[0, 0]]
    assert repr(ag.asarray([1, 2])) == "Tensor([1, 2], dtype=int64)"
    assert "requires_grad=True" in repr(ag.Tensor([1.0], requires_grad=True))


def test_operators_with_numbers_arrays_and_tensors():
    x, array = ag.asarray([4.0, 9.0]), np.array([2.0, 3.0], F32)
    cases = [
        (x + 1, [5, 10]), (1 + x, [5, 10]), (x - 1, [3, 8]), (1 - x, [-3, -8]), (x * 2, [8, 18]), (2 * x, [8, 18]),
        (x / 2, [2, 4.5]), (36 / x, [9, 4]), (x // 2, [2, 4]), (9 // x, [2, 1]), (x % 5, [4, 4]), (10 % x, [2, 1]),
        (x**2, [16, 81]), (2**x, [16, 512]), (-x, [-4, -9]), (+x, [4, 9]), (abs(-x), [4, 9]), (x @ x, 97),
        (x + array, [6, 12]), (array * x, [8, 27]), (array - x, [-2, -6]), (x @ array, 35), (array @ x, 35),
        (x > 4, [False, True]), (x <= 4, [True, False]), (x == array, [False, False]), (x != 4, [False, True]),
        ((x > 4) & (x < 10), [False, True]), ((x > 4) | (x < 5), [True, True]), (~(x > 4), [True, False]),
        ((x > 4) ^ True, [True, False]),
    ]  # fmt: skip
    for made, expected in cases:
        assert isinstance(made, ag.Tensor)
        np.testing.assert_array_equal(made, expected)
    with pytest.raises(TypeError):
        text: Any = "a"
        _ = x + text


def test_handles_are_bound_and_values_do_not_change():
    x = ag.asarray([1.0, 2.0])
    alias, before = x, x + 0
    x += 1
    x *= 2
    assert alias is x
    np.testing.assert_array_equal(x, [4, 6])
    np.testing.assert_array_equal(before, [1, 2])
    n = ag.asarray([3, 4])
    n //= 2
    assert n.dtype is ag.int64
    with pytest.raises(nablair.ShapeError):
        x += np.zeros((2, 2), F32)


def test_a_view_of_a_value_outlives_the_tensor():
    view = (ag.asarray(np.arange(4096, dtype=F32)) + 1).numpy()
    for _ in range(20):
        (ag.asarray(np.zeros(4096, F32)) + 5).numpy()
    np.testing.assert_array_equal(view, np.arange(1, 4097))


def test_indexing_errors():
    x = ag.zeros((2, 3))
    for key in ((0, 0, 0), (2,), (0, -4), (..., ...)):
        with pytest.raises(IndexError):
            x[key]
    with pytest.raises(nablair.DTypeError, match=r"ag\.where"):
        x[x > 0]
    with pytest.raises(nablair.DTypeError):
        x["a"]


@pytest.mark.parametrize(
    "key",
    [
        0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(5, 1, -2), slice(3, 3), slice(-2, 100),
        None, ..., (0, 1), (slice(None), 2), (..., 1), (None, ..., slice(1, 3), None), (slice(None), [1, 0, 2]),
        (np.array([[1], [0]]),), (1, slice(None, None, 2), np.array([-1, 0])), (np.int64(1), slice(None)),
    ],
)  # fmt: skip
def test_indexing(key):
    x = np.arange(60, dtype=np.int32).reshape(3, 4, 5)
    np.testing.assert_array_equal(ag.asarray(x)[key], x[key])


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def test_promotion_is_numpys_on_integers_and_a_table_elsewhere():
    for a in INTEGERS:
        for b in INTEGERS:
            if "uint64" in (a, b) and a[0] != b[0]:
                with pytest.raises(nablair.DTypeError, match="uint64"):
                    promote(DTYPES[a], DTYPES[b])
                continue
            assert promote(DTYPES[a], DTYPES[b]) == np.promote_types(a, b)
        for f in ("float16", "bfloat16", "float32", "float64"):
            assert promote(DTYPES[a], DTYPES[f]) is promote(DTYPES[f], DTYPES[a]) is DTYPES[f]
    assert promote(ag.float16, ag.bfloat16) is ag.float32
    assert promote(ag.float16, ag.float64) is ag.float64
    assert promote(ag.bool, ag.int8) is ag.int8
    assert ag.result_type(ag.int8, 1.5) is ag.float32
    assert ag.result_type(ag.float16, 1.5) is ag.float16
    assert ag.result_type(ag.int8, 1, ag.uint8) is ag.int16


def test_tensors_of_no_axes_promote_as_arrays():
    half = ag.asarray([1.0], dtype=ag.float16)
    assert (half * 2.0 * 3).dtype is ag.float16
    assert (half * (ag.asarray(2.0) * 3)).dtype is ag.float32
    assert (half * ag.asarray(2.0, dtype=ag.float16)).dtype is ag.float16
    byte = ag.asarray([1], dtype=ag.int8)
    assert (byte * 3).dtype is ag.int8 and (byte * ag.add(1, 2)).dtype is ag.int64
    total = byte + ag.asarray(300)
    assert total.dtype is ag.int64 and total.tolist() == [301]


def test_negative_zero_and_exact_numbers():
    x = ag.asarray([0.0])
    assert np.signbit((x * -0.0).numpy())[0] and not np.signbit((x * 0.0).numpy())[0]
    assert ((x + 1).numpy(), (x + True).numpy()) == (1, 1)


def test_dtypes_pickle_and_compare():
    for dtype in DTYPES.values():
        assert pickle.loads(pickle.dumps(dtype)) is dtype and as_dtype(dtype.numpy) is dtype
    assert as_dtype(float) is ag.float32 and as_dtype(int) is ag.int64 and as_dtype(bool) is ag.bool
    with pytest.raises(nablair.DTypeError, match="float32"):
        as_dtype("float128x")


def test_mixed_devices_are_refused():
    from nablair.autograd.abstract import abstract_value
    from nablair.autograd.tensor import make

    there = make(abstract_value(ag.float32, (2,), "ptx-sim"), np.zeros(2, F32))
    with pytest.raises(nablair.DeviceError, match="ptx-sim"):
        _ = there + ag.asarray([1.0, 2.0])
    assert (there * 2.0).device == "ptx-sim"
    with pytest.raises(nablair.DeviceError, match="nowhere"):
        ag.default_device("nowhere")


def test_default_device_is_put_back():
    with ag.default_device("cpu") as name:
        assert name == "cpu" and ag.zeros(2).device == "cpu"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (0, 7), (-1, np.arange(20).reshape(4, 5)), (slice(1, None), np.arange(5)), ((..., 2), -1),
        ((1, slice(None, None, -2)), 3), ((slice(None, None, -2), 1, slice(1, 4)), np.arange(6).reshape(2, 3)),
        (slice(2, 2), 9), ((None, 2, 3), np.arange(5)), (..., 5),
        ((slice(None), slice(3, 0, -2)), np.arange(30).reshape(3, 2, 5)),
    ],
)  # fmt: skip
def test_assignment_to_parts(key, value):
    for dtype in (np.int32, F32):
        x = np.arange(60).reshape(3, 4, 5).astype(dtype)
        t = ag.asarray(x)
        alias, before = t, t + 0
        t[key] = value
        expected = x.copy()
        expected[key] = value
        assert alias is t and t.dtype == dtype
        np.testing.assert_array_equal(t, expected)
        np.testing.assert_array_equal(before, x)


def test_assignment_is_differentiable_and_traced():
    def f(x, y):
        z = x * 2
        z[1:] = y
        return ag.sum(z * z)

    x, y = np.array([1.0, 2, 3], F32), np.array([4.0, 5], F32)
    for mode in (lambda f: f, ag.jit):
        dx, dy = mode(ag.grad(f, argnums=(0, 1)))(ag.asarray(x), ag.asarray(y))
        np.testing.assert_array_equal(dx, [8, 0, 0])
        np.testing.assert_array_equal(dy, [8, 10])


def test_copies_and_pickles():
    for requires_grad in (False, True):
        x = ag.Tensor([[1.0, 2.0]], dtype="float16", requires_grad=requires_grad)
        again = [pickle.loads(pickle.dumps(x)), copy.deepcopy(x), ag.asarray(x)]
        with ag.no_grad():
            x += 1
        for other in again:
            assert other.dtype is ag.float16 and other.requires_grad == requires_grad and other.tolist() == [[1, 2]]
    assert ag.asarray(x, copy=False) is x
    assert f"{ag.asarray(1.25):.1f} {ag.asarray([1])}" == "1.2 Tensor([1], dtype=int64)"

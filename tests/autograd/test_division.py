"""// and % of floats are NumPy's bit for bit, on every device, for quotients of every size and all special values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from nablair import autograd as ag
from tests.fuzzing import cases

DTYPES: list[Any] = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64]


def operands(dtype: Any) -> tuple[Any, Any]:
    """All pairs of special values, random bits, and pairs whose quotients are of every size, whole ones too."""
    info, random = ml_dtypes.finfo(dtype), np.random.default_rng(0)
    least, normal, most = (float(v) for v in (info.smallest_subnormal, info.smallest_normal, info.max))
    positive = [0.0, least, 3 * least, normal, 1.5 * normal, most, most / 2, np.inf, np.nan, float(info.eps)]
    positive += [1.0, 0.5, 2.0, 1.5, 3.0, 0.1, 0.2, 5.0, 6.0, 1e3]
    special = np.array([s * v for v in positive for s in (1, -1)]).astype(dtype)
    count, bits = cases(200), np.dtype(dtype).itemsize * 8
    anything = random.integers(0, 2**bits, (2, count), dtype=np.uint64).astype(f"u{bits // 8}").view(dtype)
    ordinary = random.normal(size=(2, count)) * np.exp(random.normal(0, 4, (2, count)))
    whole = ordinary[1] * random.integers(-100, 100, count)
    with np.errstate(over="ignore"):
        x = [np.repeat(special, special.size), anything[0], ordinary[0].astype(dtype), whole.astype(dtype)]
        y = [np.tile(special, special.size), anything[1], ordinary[1].astype(dtype), ordinary[1].astype(dtype)]
    return np.concatenate(x), np.concatenate(y)


def reference(function: Any, x: Any, y: Any) -> Any:
    """NumPy computes 16 bits in float32."""
    with np.errstate(all="ignore"):
        if x.dtype.itemsize == 2:
            return function(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)
        return function(x, y)


def assert_same_bits(found: Any, wanted: Any, *given: Any) -> None:
    bits = f"u{wanted.dtype.itemsize}"
    assert found.dtype == wanted.dtype
    different = (found.view(bits) != wanted.view(bits)) & ~(np.isnan(found) & np.isnan(wanted))
    assert not different.any(), [(*(g[i] for g in given), found[i], wanted[i]) for i in np.flatnonzero(different)[:5]]


@pytest.mark.parametrize("device", ["cpu", "opencl:0", "ptx-sim"])
def test_quotients_and_remainders_are_numpys(device):
    if device not in [*ag.devices(), "ptx-sim"]:
        pytest.skip(f"no {device}")
    pairs = [operands(dtype) for dtype in DTYPES]
    f = ag.jit(lambda pairs: [(x // y, x % y) for x, y in pairs], device=device)
    for (x, y), (quotient, rest) in zip(pairs, f(pairs), strict=True):
        assert_same_bits(quotient.numpy(), reference(np.floor_divide, x, y), x, y)
        assert_same_bits(rest.numpy(), reference(np.remainder, x, y), x, y)


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_by_one_they_are_the_same(dtype):
    """Eagerly, without the other beside it, and for arrays of few elements, whose code has no vectors."""
    x, y = operands(dtype)
    for function, numpy in ((ag.floor_divide, np.floor_divide), (ag.remainder, np.remainder)):
        wanted = reference(numpy, x, y)
        assert_same_bits(function(ag.asarray(x), ag.asarray(y)).numpy(), wanted, x, y)
        scalar = ag.jit(function)
        for i in range(0, x.size, x.size // 20):
            assert_same_bits(scalar(x[i : i + 1], y[i : i + 1]).numpy(), wanted[i : i + 1], x[i : i + 1], y[i : i + 1])


def test_the_derivative_is_the_quotient():
    x, y = np.array([7.5, -7.5, 1.0, 6.0, 5.0]), np.array([2.0, 2.0, 0.1, 0.2, np.inf])
    by_x, by_y = ag.jit(ag.grad(lambda x, y: ag.sum(x % y), argnums=(0, 1)))(x, y)
    assert by_x.tolist() == [1.0] * 5 and by_y.tolist() == (-(x // y)).tolist() == [-3.0, 4.0, -9.0, -29.0, 0.0]
    leaves = [ag.Tensor(v, requires_grad=True) for v in (x, y)]
    ag.sum(leaves[0] % leaves[1] + leaves[0] // leaves[1]).backward()
    assert [np.asarray(v.grad).tolist() for v in leaves] == [by_x.tolist(), by_y.tolist()]

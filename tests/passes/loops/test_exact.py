"""Every loop pass leaves every bit of the results as it is, on sizes around those of vectors, unrolling and tiles."""

from __future__ import annotations

import warnings

import pytest
from kernel_programs import chain, layer_norm, matmul, reduced, softmax, squares, transposed
from loop_stages import check_exact, lowered, parsed, random

from nablair.ir.dialects.kernel import Launch
from nablair.ir.types import TensorType
from nablair.passes.schedules.schedule import Packing, Schedule

SIZES = [0, 1, 2, 3, 4, 15, 16, 17, 60]


@pytest.mark.parametrize("columns", [*SIZES, 64, 100])
@pytest.mark.parametrize("symbolic", [False, True])
def test_elementwise(columns: int, symbolic: bool) -> None:
    text = chain("m", "n") if symbolic else chain(2, columns)
    check_exact(parsed(text), [random(2, columns), random(columns), random(2, columns)])


@pytest.mark.parametrize("columns", [1, 4, 17])
@pytest.mark.parametrize("symbolic", [False, True])
def test_strided_access(columns: int, symbolic: bool) -> None:
    text = transposed("m", "n") if symbolic else transposed(3, columns)
    check_exact(parsed(text), [random(3, columns), random(columns, 3)])


@pytest.mark.parametrize("columns", SIZES[1:])
@pytest.mark.parametrize("symbolic", [False, True])
def test_rows(columns: int, symbolic: bool) -> None:
    dims = ("m", "n") if symbolic else (2, columns)
    check_exact(parsed(softmax(*dims)), [random(2, columns)])
    check_exact(parsed(layer_norm(*dims)), [random(2, columns), random(columns), random(columns)])


@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_columns_with_memory_of_their_own(columns: int, symbolic: bool) -> None:
    dims = ("m", "n") if symbolic else (5, columns)
    check_exact(parsed(softmax(*dims, axis=0)), [random(5, columns)])


@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_sums(columns: int, axes: tuple[int, ...], symbolic: bool) -> None:
    dims = ("m", "n") if symbolic else (5, columns)
    check_exact(parsed(reduced("reduce_sum", *dims, *axes)), [random(5, columns)])


@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("symbolic", [False, True])
def test_sums_beside_their_terms(columns: int, symbolic: bool) -> None:
    dims = ("m", "n") if symbolic else (3, columns)
    check_exact(parsed(squares(*dims)), [random(3, columns), random(3, columns, seed=1)])


@pytest.mark.parametrize("m", [1, 2, 6, 7, 13])
@pytest.mark.parametrize("n", [1, 3, 8, 11])
@pytest.mark.parametrize("symbolic", [False, True])
def test_products(m: int, n: int, symbolic: bool) -> None:
    k = 5
    dims = ("m", "n", "k") if symbolic else (m, n, k)
    check_exact(parsed(matmul(*dims, epilogue=True)), [random(m, k), random(k, n), random(n)])


@pytest.mark.parametrize("form", ["NN", "NT", "TN", "TT"])
def test_forms_of_products(form: str) -> None:
    m, n, k = 13, 11, 3
    a = random(m, k) if form[0] == "N" else random(k, m)
    b = random(k, n) if form[1] == "N" else random(n, k)
    check_exact(parsed(matmul(m, n, k, form)), [a, b, random(n)])


@pytest.mark.parametrize(("m", "n", "k"), [(2, 2, 2), (6, 8, 8), (7, 9, 11), (8, 17, 4), (13, 3, 0), (12, 16, 5)])
@pytest.mark.parametrize("form", ["NN", "NT"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_blocked_and_packed_products(m: int, n: int, k: int, form: str, symbolic: bool) -> None:
    dims = ("m", "n", "k") if symbolic else (m, n, k)
    text = matmul(*dims, form, epilogue=True)
    (launch,) = [op for op in lowered(parsed(text), "kernel").walk() if isinstance(op, Launch)]
    left, right, *_ = [i for i, value in enumerate(launch.ins) if isinstance(value.type, TensorType)]
    schedule = Schedule(
        loops=((2, 4), (1, 8), (0, 3), (1, 8)),
        vector=((1, 4), (2, 4)),
        unroll=((1, 2), (0, 3)),
        pack=(Packing(right, 2, panel=8), Packing(left, 3, pad=4)),
    )
    b = random(k, n) if form == "NN" else random(n, k)
    check_exact(parsed(text), [random(m, k), b, random(n)], schedule)


@pytest.mark.parametrize("form", ["NN", "TN"])
@pytest.mark.parametrize("symbolic", [False, True])
def test_products_in_chains(form: str, symbolic: bool) -> None:
    """A block of the fold is a chain of its own; copies take whole chains."""
    m, n, k = 4, 9, 11
    text = matmul(*(("m", "n", "k") if symbolic else (m, n, k)), form, epilogue=True)
    (launch,) = [op for op in lowered(parsed(text), "kernel").walk() if isinstance(op, Launch)]
    left, right, *_ = [i for i, value in enumerate(launch.ins) if isinstance(value.type, TensorType)]
    packs = (Packing(right, 1, panel=8), Packing(left, 2, pad=4)) if form == "NN" else (Packing(right, 1, panel=8),)
    schedule = Schedule(
        loops=((2, 4), (0, 3), (1, 8)),
        chain=((2, 4),),
        vector=((1, 4), (2, 4)) if form == "NN" else ((1, 4),),
        unroll=((1, 2), (0, 3)),
        pack=packs,
    )
    a = random(m, k) if form == "NN" else random(k, m)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_exact(parsed(text), [a, random(k, n), random(n)], schedule)


def test_batched_products() -> None:
    m, n, k = 7, 9, 3
    check_exact(parsed(matmul(m, n, k, "NT", batch=(2,))), [random(2, m, k), random(2, n, k), random(n)])

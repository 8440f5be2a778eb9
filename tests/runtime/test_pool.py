"""The pool of result memory: alignment, recycling through views, limits, threads, statistics."""

import gc
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from nablair.runtime.native_pool import NativePool
from nablair.runtime.native_pool import make_pool as choose_pool
from nablair.runtime.pool import BufferPool

F32 = np.dtype(np.float32)


@pytest.fixture(params=[BufferPool, NativePool])
def make_pool(request):
    return request.param


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (16,), (17,), (3, 5, 7), (512, 513), (1,) * 9])
@pytest.mark.parametrize("dtype", [np.dtype(np.int8), F32, np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16), "?"])
def test_arrays_are_plain_aligned_and_writable(make_pool, shape, dtype):
    array = make_pool().empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert address(array) % 64 == 0
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
    array[...] = 1
    assert (array == np.ones(shape, dtype)).all()


@pytest.mark.parametrize("size", [1, 16, 100, 1000, 1 << 20, 4 << 20])
def test_a_dead_array_is_the_next_one(make_pool, size):
    pool = make_pool()
    first = address(pool.empty((size,), F32))
    assert [address(pool.empty((size,), F32)) for _ in range(5)] == [first] * 5
    assert pool.statistics().created == 1


def test_arrays_alive_at_once_never_overlap(make_pool):
    pool = make_pool()
    arrays = [pool.empty((n % 70,), F32) for n in range(500)]
    for value, array in enumerate(arrays):
        array[...] = value
    assert all((array == value).all() for value, array in enumerate(arrays))


def test_views_keep_the_block(make_pool):
    pool = make_pool()
    array = pool.empty((64, 64), F32)
    place = address(array)
    view = array[3:, ::2].T.view(np.int32)[1:]
    memory = memoryview(view)
    del array, view
    assert address(pool.empty((64, 64), F32)) != place
    assert pool.statistics().live_blocks == 1
    del memory
    assert pool.statistics().live_blocks == 0
    assert place in {address(a) for a in [pool.empty((64, 64), F32) for _ in range(2)]}


def test_arrays_outlive_their_pool(make_pool):
    pool = make_pool()
    array = pool.empty((100,), F32)
    array[...] = 7
    del pool
    gc.collect()
    assert (array == 7).all()


def test_free_blocks_stay_within_the_limit(make_pool):
    pool = make_pool(limit=1 << 20)
    for size in (1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        arrays = [pool.empty((size,), np.dtype(np.int8)) for _ in range(20)]
        del arrays
        assert pool.statistics().cached_bytes <= 1 << 20
        assert pool.statistics().live_bytes == 0


def test_sizes_of_the_past_make_way(make_pool):
    pool = make_pool(limit=1 << 20)
    old = [pool.empty((1 << 16,), np.dtype(np.int8)) for _ in range(16)]
    del old
    place = address(pool.empty((1 << 19,), np.dtype(np.int8)))
    assert address(pool.empty((1 << 19,), np.dtype(np.int8))) == place


def test_no_reference_is_lost_or_kept(make_pool):
    pool = make_pool()
    allocate = pool.allocator((3, 5), F32)
    watched = [F32, np.ndarray, None]
    before = [sys.getrefcount(thing) for thing in watched]
    for _ in range(20_000):
        allocate().T[1:]
        pool.empty((7,), F32)
    after = [sys.getrefcount(thing) for thing in watched]
    assert [b - a for a, b in zip(before, after)] == pytest.approx([0] * len(watched), abs=5)


def test_both_sides_of_a_fork_have_memory_of_their_own(make_pool):
    script = (
        "import os, sys\n"
        "import numpy as np\n"
        f"from {make_pool.__module__} import {make_pool.__name__} as Pool\n"
        "pool = Pool()\n"
        "kept = [pool.empty((n,), np.dtype('f4')) for n in range(50)]\n"
        "child = os.fork()\n"
        "for round in range(100):\n"
        "    arrays = [pool.empty((n,), np.dtype('f4')) for n in range(50)]\n"
        "    for n, array in enumerate(arrays):\n"
        "        array[...] = n + child\n"
        "    assert all((array == np.float32(n + child)).all() for n, array in enumerate(arrays))\n"
        "    kept, arrays = arrays, kept\n"
        "assert pool.statistics().created == 150, pool.statistics()\n"
        "if child:\n"
        "    sys.exit(os.waitpid(child, 0)[1])\n"
    )
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_fastest_pool(monkeypatch):
    assert type(choose_pool()) is NativePool
    monkeypatch.setattr(NativePool, "is_available", staticmethod(lambda: False))
    assert type(choose_pool()) is BufferPool


def test_trim_gives_all_back(make_pool):
    pool = make_pool()
    kept = pool.empty((10,), F32)
    arrays = [pool.empty((1000, n), F32) for n in range(9)]
    del arrays
    assert pool.statistics().cached_bytes > 0
    pool.trim()
    statistics = pool.statistics()
    assert (statistics.cached_blocks, statistics.cached_bytes, statistics.live_blocks) == (0, 0, 1)
    assert kept.shape == (10,)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 511, 512, 513, 5 << 10, (1 << 20) + 1, 3 << 20])
def test_little_of_a_block_is_waste(make_pool, size):
    pool = make_pool()
    array = pool.empty((size,), np.dtype(np.int8))
    assert array.nbytes <= pool.statistics().live_bytes <= max(1.25 * size, size + 64)


def test_allocator_equals_empty(make_pool):
    pool = make_pool()
    allocate = pool.allocator((8, 8), "float32")
    first, second = allocate(), allocate()
    assert (first.shape, first.dtype) == ((8, 8), F32)
    places = {address(first), address(second)}
    assert len(places) == 2
    del first, second
    assert address(pool.empty((8, 8), F32)) in places


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "message"),
    [
        ((3,), object, TypeError, "Python objects"),
        ((3,), np.dtype(object), (TypeError, ValueError), "object"),
        ((-3,), F32, ValueError, "negative"),
        ((-3, -4), F32, ValueError, "negative"),
        ((1 << 40, 1 << 40), F32, MemoryError, "cannot allocate .* for shape"),
        ((1 << 55,), F32, MemoryError, "allocate"),
        (("a",), F32, ValueError, "a"),
        ((3,), "no_such_type", TypeError, "no_such_type"),
    ],
)
def test_what_cannot_be_allocated(make_pool, shape, dtype, error, message):
    pool = make_pool()
    with pytest.raises(error, match=message):
        pool.empty(shape, dtype)
    assert pool.statistics().live_blocks == 0


def test_shapes_and_dtypes_as_numpy_takes_them(make_pool):
    pool = make_pool()
    assert pool.empty(5, np.float32).shape == (5,)
    assert pool.empty([np.int64(2), 3], "i2").dtype == np.int16


def test_many_threads(make_pool):
    pool = make_pool(limit=1 << 16)
    faults = []

    def work(seed):
        kept = []
        for i in range(2000):
            array = pool.empty(((i * seed) % 97, 8), F32)
            array[...] = seed
            kept.append(array)
            if len(kept) > 7:
                if not (kept.pop(i % 7) == seed).all():
                    faults.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    statistics = pool.statistics()
    assert statistics.live_blocks == 0
    assert statistics.cached_bytes <= (1 << 16) + 97 * 32 * 8


@pytest.mark.parametrize("module, name", [("pool", "BufferPool"), ("native_pool", "NativePool")])
def test_arrays_alive_at_exit_are_no_trouble(module, name):
    script = (
        "import numpy as np\n"
        f"from nablair.runtime.{module} import {name}\n"
        f"pool = {name}()\n"
        "arrays = [pool.empty((n,), np.dtype('f4')) for n in range(100)]\n"
        "class Keeper: pass\n"
        "Keeper.me = Keeper(); Keeper.me.array = pool.empty((9,), np.dtype('f4'))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stderr == ""

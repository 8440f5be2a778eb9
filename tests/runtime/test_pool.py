"""The pool of result memory: alignment, recycling through views, limits, threads, statistics."""

import gc
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

from nablair.runtime.pool import BufferPool

F32 = np.dtype(np.float32)


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (16,), (17,), (3, 5, 7), (512, 513), (1,) * 9])
@pytest.mark.parametrize("dtype", [np.dtype(np.int8), F32, np.dtype(np.float64), np.dtype(ml_dtypes.bfloat16), "?"])
def test_arrays_are_plain_aligned_and_writable(shape, dtype):
    array = BufferPool().empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert address(array) % 64 == 0
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
    array[...] = 1
    assert (array == np.ones(shape, dtype)).all()


@pytest.mark.parametrize("size", [1, 16, 100, 1000, 1 << 20, 4 << 20])
def test_a_dead_array_is_the_next_one(size):
    pool = BufferPool()
    first = address(pool.empty((size,), F32))
    assert [address(pool.empty((size,), F32)) for _ in range(5)] == [first] * 5
    assert pool.statistics().created == 1


def test_arrays_alive_at_once_never_overlap():
    pool = BufferPool()
    arrays = [pool.empty((n % 70,), F32) for n in range(500)]
    for value, array in enumerate(arrays):
        array[...] = value
    assert all((array == value).all() for value, array in enumerate(arrays))


def test_views_keep_the_block():
    pool = BufferPool()
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


def test_arrays_outlive_their_pool():
    pool = BufferPool()
    array = pool.empty((100,), F32)
    array[...] = 7
    del pool
    gc.collect()
    assert (array == 7).all()


def test_free_blocks_stay_within_the_limit():
    pool = BufferPool(limit=1 << 20)
    for size in (1 << 10, 1 << 16, 1 << 18, 1 << 20, 1 << 22):
        arrays = [pool.empty((size,), np.dtype(np.int8)) for _ in range(20)]
        del arrays
        assert pool.statistics().cached_bytes <= 1 << 20
        assert pool.statistics().live_bytes == 0


def test_sizes_of_the_past_make_way():
    pool = BufferPool(limit=1 << 20)
    old = [pool.empty((1 << 16,), np.dtype(np.int8)) for _ in range(16)]
    del old
    place = address(pool.empty((1 << 19,), np.dtype(np.int8)))
    assert address(pool.empty((1 << 19,), np.dtype(np.int8))) == place


def test_trim_gives_all_back():
    pool = BufferPool()
    kept = pool.empty((10,), F32)
    arrays = [pool.empty((1000, n), F32) for n in range(9)]
    del arrays
    assert pool.statistics().cached_bytes > 0
    pool.trim()
    statistics = pool.statistics()
    assert (statistics.cached_blocks, statistics.cached_bytes, statistics.live_blocks) == (0, 0, 1)
    assert kept.shape == (10,)


@pytest.mark.parametrize("size", [0, 1, 64, 65, 511, 512, 513, 5 << 10, (1 << 20) + 1, 3 << 20])
def test_little_of_a_block_is_waste(size):
    pool = BufferPool()
    array = pool.empty((size,), np.dtype(np.int8))
    assert array.nbytes <= pool.statistics().live_bytes <= max(1.25 * size, size + 64)


def test_allocator_equals_empty():
    pool = BufferPool()
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
def test_what_cannot_be_allocated(shape, dtype, error, message):
    pool = BufferPool()
    with pytest.raises(error, match=message):
        pool.empty(shape, dtype)
    assert pool.statistics().live_blocks == 0


def test_shapes_and_dtypes_as_numpy_takes_them():
    pool = BufferPool()
    assert pool.empty(5, np.float32).shape == (5,)
    assert pool.empty([np.int64(2), 3], "i2").dtype == np.int16


def test_many_threads():
    pool = BufferPool(limit=1 << 16)
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


def test_arrays_alive_at_exit_are_no_trouble():
    script = (
        "import numpy as np\n"
        "from nablair.runtime.pool import BufferPool\n"
        "pool = BufferPool()\n"
        "arrays = [pool.empty((n,), np.dtype('f4')) for n in range(100)]\n"
        "class Keeper: pass\n"
        "Keeper.me = Keeper(); Keeper.me.array = pool.empty((9,), np.dtype('f4'))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stderr == ""

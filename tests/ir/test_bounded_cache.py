"""The cache of what is dear to make: its bound, and what several threads see of it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from fuzzing import cases

from nablair.ir.bounded_cache import BoundedCache


def test_the_entry_not_used_for_longest_goes_first() -> None:
    cache: BoundedCache[int] = BoundedCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert cache.get("b") is None and cache.get("a") == 1 and len(cache) == 2
    cache.discard(lambda value: value == 1)
    assert cache.get("a") is None and cache.get("c") == 3
    cache.clear()
    assert len(cache) == 0


@pytest.mark.parametrize("seed", range(cases(3)))
def test_threads_make_each_entry_once(seed: int) -> None:
    """Entries of one cache are made with those of another, and some attempts fail: they are made by who asks next."""
    inner: BoundedCache[int] = BoundedCache(64)
    outer: BoundedCache[int] = BoundedCache(64)
    made: Counter[tuple[str, int]] = Counter()
    failures = Random(seed).sample(range(12), 3)
    left = Counter(failures)

    def inner_value(key: int) -> int:
        made["inner", key] += 1
        time.sleep(0.001)
        return key

    def outer_value(key: int) -> int:
        made["outer", key] += 1
        time.sleep(0.002)
        if left[key]:
            left[key] -= 1
            raise ValueError(key)
        return 100 * key + inner.get_or_make(key // 3, lambda: inner_value(key // 3))

    def work(number: int) -> int:
        random, failed = Random(f"{seed} {number}"), 0
        for _ in range(40):
            key = random.randrange(12)
            try:
                assert outer.get_or_make(key, lambda key=key: outer_value(key)) == 100 * key + key // 3
            except ValueError:
                failed += 1
        return failed

    with ThreadPoolExecutor(8) as pool:
        failed = sum(pool.map(work, range(8)))
    assert failed == len(failures)
    assert all(count == 1 + (key in failures and room == "outer") for (room, key), count in made.items())


def test_nobody_waits_for_what_another_key_takes() -> None:
    cache: BoundedCache[str] = BoundedCache(8)
    cache.put("known", "at hand")
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> str:
        begun.set()
        assert go_on.wait(20)
        return "made"

    def quickly(read: Callable[[], str | None]) -> str | None:
        return others.submit(read).result(20)

    with ThreadPoolExecutor(2) as makers, ThreadPoolExecutor(2) as others:
        first = makers.submit(cache.get_or_make, "slow", slow)
        assert begun.wait(20)
        second = makers.submit(cache.get_or_make, "slow", lambda: "made again")
        try:
            assert quickly(lambda: cache.get("known")) == "at hand"
            assert quickly(lambda: cache.get("slow")) is None
            assert quickly(lambda: cache.get_or_make("other", lambda: "other")) == "other"
            assert not first.done() and not second.done()
        finally:
            go_on.set()
        assert first.result(20) == second.result(20) == "made"


def test_a_maker_may_ask_for_other_keys() -> None:
    cache: BoundedCache[int] = BoundedCache(64)

    def triangle(n: int) -> int:
        return n + cache.get_or_make(n - 1, lambda: triangle(n - 1)) if n else 0

    assert cache.get_or_make(30, lambda: triangle(30)) == 465 and len(cache) == 31

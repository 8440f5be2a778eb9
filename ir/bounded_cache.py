"""The cache of what is dear to make: compiled functions, plans, specialisations."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Hashable
from contextlib import contextmanager
from typing import Generic, TypeVar

from .forking import COMPILER, shared_lock

T = TypeVar("T")


class _Maker:
    """The lock of a key whose entry is being made, and how many threads hold it or wait for it."""

    __slots__ = ("lock", "users")

    def __init__(self, rank: int) -> None:
        self.lock = shared_lock(rank)
        self.users = 0


class BoundedCache(Generic[T]):
    """A dict that forgets the entry not used for longest; several threads may use it.

    Of several threads that miss the same key one makes the entry (`get_or_make`) and the others wait for it; threads
    with other keys, made or not, wait for nobody.  `rank` is that of the locks of keys (`ir.forking`): a cache whose
    entries are made with the help of another cache has an earlier rank than that.
    """

    def __init__(self, size: int, rank: int = COMPILER) -> None:
        self.size = size
        self._rank = rank
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._makers: dict[Hashable, _Maker] = {}
        self._lock = shared_lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Hashable) -> T | None:
        """The entry, which counts as used; None where there is none."""
        with self._lock:
            found = self._entries.get(key)
            # Until the dict is half full, no entry will have to go for long: there is no need to say which was used.
            if found is not None and 2 * len(self._entries) > self.size:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: T) -> T:
        """Add an entry."""
        with self._lock:
            self._entries[key] = value
            while len(self._entries) > self.size:
                self._entries.popitem(last=False)
            return value

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """The entry, made now where there is none.

        When `make` raises, the error is the caller's, and each thread that waited tries for itself.
        """
        found = self.get(key)
        if found is not None:
            return found
        with self.making(key):
            found = self.get(key)
            return self.put(key, make()) if found is None else found

    @contextmanager
    def making(self, key: Hashable) -> Generator[None]:
        """Be the one thread that makes what belongs to a key."""
        with self._lock:
            maker = self._makers.setdefault(key, _Maker(self._rank))
            maker.users += 1
        try:
            with maker.lock:
                yield
        finally:
            with self._lock:
                maker.users -= 1
                if not maker.users:
                    self._makers.pop(key, None)

    def discard(self, is_useless: Callable[[T], bool]) -> None:
        """Forget entries that nobody can ask for again."""
        with self._lock:
            for key in [k for k, v in self._entries.items() if is_useless(v)]:
                del self._entries[key]

    def clear(self) -> None:
        """Forget all; what is being made is added when it is done."""
        with self._lock:
            self._entries.clear()

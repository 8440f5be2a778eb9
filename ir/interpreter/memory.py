"""Buffers of the loop level: NumPy views, with bounds, undefined elements and races checked on demand.

A memref is a NumPy view of its elements; a subview is a view of a view.  What is known about single elements is kept
beside the array that owns the memory, by the element's place in it, so any number of views may overlap.

- Undefined elements: memory from `memref.alloc` and `memref.alloca` is filled with NaN (floats) or an odd pattern
  (integers); with `check_undefined` a read of an element that nothing has written is an error.
- Races: with `check_races`, while `thread` is set, an element that one thread writes and another one reads or writes
  before the next barrier is an error, whatever the order in which the interpreter runs them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..diagnostics import AllocationError, Error
from ..numeric import dtype
from ..operations import Operation
from ..types import FloatType, MemRefType

if TYPE_CHECKING:
    from ..arrays import Array

NOBODY = -1
SEVERAL = -2


class InterpreterError(Error):
    """A program that has no meaning: the op, its place, and what went wrong."""


class Owner:
    """What is known of the elements of one array that owns memory; it keeps the array alive."""

    __slots__ = ("address", "array", "defined", "readers", "size", "writers")

    def __init__(self, array: Array, defined: bool) -> None:
        import numpy as np

        self.array = array
        self.address = array.__array_interface__["data"][0]
        self.size = array.size
        self.defined = None if defined else np.zeros(array.size, bool)
        self.readers: Array | None = None
        self.writers: Array | None = None


class Memory:
    """All buffers of one run."""

    def __init__(self, check_undefined: bool = False, check_races: bool = False) -> None:
        self.check_undefined = check_undefined
        self.check_races = check_races
        self.thread: int | None = None
        """The thread of the block that runs now, while races are looked for."""
        self.globals: dict[str, Array] = {}
        """The arrays of the module's globals, by name."""
        self._owners: dict[int, Owner] = {}

    @property
    def checks(self) -> bool:
        """Whether single accesses are looked at."""
        return self.check_undefined or (self.check_races and self.thread is not None)

    def allocate(self, type: MemRefType, shape: Sequence[int]) -> Array:
        """Fresh memory for a buffer."""
        import numpy as np

        kind = dtype(type)
        try:
            array = np.empty(shape, kind)
        except (MemoryError, ValueError, OverflowError) as error:
            raise AllocationError(f"cannot allocate {type} of shape {tuple(map(int, shape))}: {error}") from None
        if isinstance(type.element, FloatType):
            array.fill(np.nan)
        else:
            array.reshape(-1).view(np.uint8)[:] = 0 if kind.kind == "b" else 0xA5
        if self.check_undefined:
            self._owners[id(array)] = Owner(array, defined=False)
        return array

    def free(self, view: Array) -> None:
        """Forget a buffer; its elements are undefined from here on."""
        owner = self._owners.get(id(root(view)))
        if owner is not None and owner.defined is not None:
            owner.defined[:] = False

    def owner(self, view: Array) -> Owner:
        """What is known of the memory behind a view; memory from outside counts as defined."""
        array = root(view)
        found = self._owners.get(id(array))
        if found is None:
            found = self._owners[id(array)] = Owner(array, defined=True)
        return found

    def before_read(self, op: Operation, view: Array, places: Array | None = None) -> None:
        """Check a read of a view's elements, or of those at `places` counted along its flat memory from its start."""
        if not self.checks:
            return
        owner = self.owner(view)
        at = positions(view, owner) if places is None else start(view, owner) + places
        if owner.defined is not None and not owner.defined[at].all():
            raise fault(op, f"reads an element of {describe(view)} that nothing has written")
        if self.check_races and self.thread is not None:
            self._race(op, owner, at, writes=False)

    def before_write(self, op: Operation, view: Array, places: Array | None = None) -> None:
        """Note a write; arguments as in `before_read`."""
        if not self.checks:
            return
        owner = self.owner(view)
        at = positions(view, owner) if places is None else start(view, owner) + places
        if owner.defined is not None:
            owner.defined[at] = True
        if self.check_races and self.thread is not None:
            self._race(op, owner, at, writes=True)

    def _race(self, op: Operation, owner: Owner, at: Array, writes: bool) -> None:
        import numpy as np

        thread = NOBODY if self.thread is None else self.thread
        if owner.readers is None or owner.writers is None:
            owner.readers = np.full(owner.size, NOBODY, np.int32)
            owner.writers = np.full(owner.size, NOBODY, np.int32)
        others = [(owner.writers, "written")] + ([(owner.readers, "read")] if writes else [])
        for table, deed in others:
            known = table[at]
            clash = (known != NOBODY) & (known != thread)
            if clash.any():
                other = int(np.extract(clash, known)[0])
                who = "several threads" if other == SEVERAL else f"thread {other}"
                verb = "writes" if writes else "reads"
                raise fault(op, f"races: thread {thread} {verb} an element {deed} by {who} since the last barrier")
        table = owner.writers if writes else owner.readers
        known = table[at]
        table[at] = np.where((known == NOBODY) | (known == thread), thread, SEVERAL)

    @contextmanager
    def acting(self, thread: int) -> Generator[None]:
        """Accesses are those of a thread for a while; faults name it."""
        self.thread = thread
        try:
            yield
        except InterpreterError as error:
            raise error.note(f"in thread {thread} of the block") from None
        finally:
            self.thread = None

    @contextmanager
    def unwatched(self) -> Generator[None]:
        """No looking for races for a while."""
        saved, self.thread = self.thread, None
        yield
        self.thread = saved

    def barrier(self) -> None:
        """All accesses so far happen before all later ones."""
        for owner in self._owners.values():
            owner.readers = owner.writers = None


def fault(op: Operation, message: str) -> InterpreterError:
    """An error at an op."""
    return InterpreterError(f"'{op.name}' op {message}", op.location)


def failed(op: Operation, error: Exception) -> InterpreterError:
    """An exception that came out of an op, and the line of the plugin that it comes from, if it is one's."""
    return fault(op, f"failed: {error}").from_plugin(error)


def describe(view: Array) -> str:
    """A buffer in a message."""
    return f"a buffer of shape {list(view.shape)}"


def root(view: Array) -> Array:
    """The array that owns a view's memory."""
    base = view.base
    while base is not None and hasattr(base, "strides"):
        view, base = base, base.base
    return view


def start(view: Array, owner: Owner) -> int:
    """The place of a view's first element in its owner."""
    return (view.__array_interface__["data"][0] - owner.address) // view.itemsize


def positions(view: Array, owner: Owner) -> Array:
    """The places of all elements of a view in its owner, an integer array of the view's shape."""
    import numpy as np

    place: Array = np.asarray(start(view, owner))
    for extent, stride in zip(view.shape, view.strides, strict=True):
        place = np.add(np.expand_dims(place, -1), np.arange(extent) * (stride // view.itemsize))
    return place


def element(op: Operation, view: Array, subscripts: Sequence[int]) -> Array:
    """The element at the subscripts as a view of rank 0; an error when it lies outside."""
    place = tuple([int(s) for s in subscripts])
    for axis, (at, extent) in enumerate(zip(place, view.shape, strict=True)):
        if not 0 <= at < extent:
            raise fault(op, f"is out of bounds: subscript {at} along axis {axis}, which has {extent} elements")
    return view[(*place, ...)]


def box(op: Operation, view: Array, subscripts: Sequence[int], shape: Sequence[int]) -> Array:
    """The box of `shape` whose axes are the view's last ones; an error when it reaches outside."""
    place = list(map(int, subscripts))
    lead = view.ndim - len(shape)
    if lead < 0:
        if view.ndim == 0 and all(extent == 1 for extent in shape):
            return view.reshape(shape)
        raise fault(op, f"moves a vector of shape {list(shape)} in {describe(view)}")
    ends = [at + extent for at, extent in zip(place, [1] * lead + list(shape), strict=True)]
    for axis, (at, end, extent) in enumerate(zip(place, ends, view.shape, strict=True)):
        if at < 0 or end > extent:
            wanted = f"elements {at} to {end - 1}" if end - at > 1 else f"subscript {at}"
            raise fault(op, f"is out of bounds: {wanted} along axis {axis}, which has {extent} elements")
    inner = [slice(at, end) for at, end in zip(place[lead:], ends[lead:], strict=True)]
    return view[(*place[:lead], *inner, ...)]


def flat(view: Array) -> Array:
    """All memory of the array that owns a view, in order."""
    import numpy as np

    array = root(view)
    return np.lib.stride_tricks.as_strided(array, (array.size,), (array.itemsize,))


def restrided(op: Operation, view: Array, first: int, shape: Sequence[int], strides: Sequence[int]) -> Array:
    """A view from element `first` of the owner's memory on, strides in elements; an error when it reaches outside."""
    import numpy as np

    memory = flat(view)
    if all(shape):
        reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
        low, high = first + sum(r for r in reach if r < 0), first + sum(r for r in reach if r > 0)
        if low < 0 or high >= memory.size:
            raise fault(op, f"is out of bounds: elements {low} to {high} of a buffer of {memory.size}")
    return np.lib.stride_tricks.as_strided(
        memory[max(0, min(first, memory.size)) :], tuple(shape), [s * view.itemsize for s in strides]
    )

"""The machine that runs one batch of CTAs: lanes, their memory accesses and the checks on them.

Every thread of the batch is a lane; a CTA takes a multiple of 32 lanes, so that warps are rows of 32. The compiled
blocks call `load`, `store` and their like with addresses per lane and the mask of active lanes (None for all).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .copies import AsyncCopies
from .counters import bank_conflicts, sectors
from .emitter import GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW
from .faults import PtxFault, Site
from .memory import Allocation
from .races import RaceDetector
from .warps import Warps

if TYPE_CHECKING:
    from .launch import Launch

IN_FLIGHT = 2
_PATTERN = {size: np.dtype(f"uint{8 * size}").type(int("01" * size, 16)) for size in (1, 2, 4, 8)}
_FLIGHT = {size: np.dtype(f"uint{8 * size}").type(int("02" * size, 16)) for size in (1, 2, 4, 8)}
_UFUNCS = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip

_VERBS = {"read": "reads", "write": "stores to"}


def _units(nbytes: int) -> tuple[int, range]:
    """Widest integer that covers an access of that size in whole steps, and the steps."""
    unit = min(nbytes & -nbytes, 8)
    return unit, range(nbytes // unit)


class Machine:
    """State of the CTAs numbered `first` to `last` (exclusive) of a launch."""

    def __init__(self, launch: Launch, first: int, last: int) -> None:
        self.launch = launch
        self.checks = launch.checks
        self.counters = launch.counters
        self.memory = launch.memory
        self.symbols = launch.symbols
        self.kernel = launch.compiled.kernel
        block = launch.block
        self.cta_threads = block[0] * block[1] * block[2]
        self.cta_lanes = -(-self.cta_threads // 32) * 32
        self.count = (last - first) * self.cta_lanes
        lane = np.arange(self.count, dtype=np.int64)
        self.within = (lane % self.cta_lanes).astype(np.uint32)
        self.cta = lane // self.cta_lanes
        self.threads = (lane + first * self.cta_lanes + 1).astype(np.int32)
        self.dead = self.within >= self.cta_threads
        self.everyone = None if self.cta_threads == self.cta_lanes else ~self.dead
        self.assigned: dict[int, Any] = {}
        self.epoch = 0
        self.ticks = np.zeros(self.count // 32, np.int64) if launch.compiled.warp_sync else None
        self.shared_limit = launch.compiled.shared_bytes + launch.shared_bytes
        self.shared_stride = -(-self.shared_limit // 16) * 16
        self.shared = np.full((last - first) * self.shared_stride, 0xCD, np.uint8)
        self.shared_state = np.zeros(self.shared.size, np.uint8)
        self.cta_base = self.cta * self.shared_stride
        self.local_stride = -(-launch.compiled.local_bytes // 16) * 16
        self.local = np.full(self.count * self.local_stride, 0xCD, np.uint8)
        granule = launch.compiled.granule.get("shared", 4)
        self.shared_shift = granule.bit_length() - 1
        ordered = self.ticks is not None
        self.shared_races = (
            RaceDetector(self.shared.size // granule, self.cta_lanes, ordered) if self.checks.shared_races else None
        )
        self.special = self._special_registers(first)
        self.copies = AsyncCopies(self)
        self.warp = Warps(self)

    def _special_registers(self, first: int) -> dict[str, Any]:
        (bx, by, bz), (gx, gy, gz) = self.launch.block, self.launch.grid
        number = (self.cta + first).astype(np.uint32)
        lane = self.within % np.uint32(32)
        u32 = np.uint32
        special: dict[str, Any] = {
            "%tid.x": self.within % u32(bx), "%tid.y": self.within // u32(bx) % u32(by),
            "%tid.z": self.within // u32(bx * by),
            "%ctaid.x": number % u32(gx), "%ctaid.y": number // u32(gx) % u32(gy), "%ctaid.z": number // u32(gx * gy),
            "%laneid": lane, "%warpid": self.within // u32(32),
            "%nwarpid": u32(self.cta_lanes // 32),
            "%lanemask_eq": u32(1) << lane, "%lanemask_lt": (u32(1) << lane) - u32(1),
            "%smid": u32(0), "%nsmid": u32(1),
            "%dynamic_smem_size": u32(self.launch.shared_bytes), "%total_smem_size": u32(self.shared_limit),
            "%clock": u32(0), "%clock64": np.uint64(0), "%globaltimer": np.uint64(0), "%gridid": np.uint64(0),
        }  # fmt: skip
        special["%lanemask_le"] = special["%lanemask_lt"] | special["%lanemask_eq"]
        special["%lanemask_gt"], special["%lanemask_ge"] = ~special["%lanemask_le"], ~special["%lanemask_lt"]
        for axis, threads, ctas in zip("xyz", (bx, by, bz), (gx, gy, gz)):
            special[f"%ntid.{axis}"], special[f"%nctaid.{axis}"] = u32(threads), u32(ctas)
        return special

    # Masks and registers.

    def guard(self, predicate: Any, negated: bool, m: Any) -> Any:
        """Mask of the active lanes whose guard holds: None for all lanes, False for none."""
        if negated:
            predicate = ~predicate
        if np.ndim(predicate) == 0:
            return m if predicate else False
        if m is not None:
            predicate = predicate & m
        elif predicate.all():
            return None
        return predicate if predicate.any() else False

    def assign(self, register: int, m: Any) -> None:
        known = self.assigned.get(register, False)
        self.assigned[register] = None if m is None or known is None else m | known

    def require(self, register: int, m: Any, where: int) -> None:
        """Fault where an active lane reads a register that it has not assigned."""
        known = self.assigned.get(register, False)
        if known is None or not self.checks.uninitialised:
            return
        missing = np.broadcast_to(~known if known is not False else np.bool_(True), self.count)
        missing = missing if m is None else missing & m
        if missing.any():
            name = list(self.kernel.registers)[register]
            self.fault(
                "uninitialised", f"register `{name}` is read before it is assigned", where, int(missing.argmax())
            )

    def active(self, m: Any) -> np.ndarray:
        return np.ones(self.count, bool) if m is None else m

    def spread(self, value: Any) -> np.ndarray:
        """One element per lane, contiguous."""
        return np.ascontiguousarray(np.broadcast_to(value, self.count))

    def fault(self, kind: str, message: str, where: int, lane: int, address: int | None = None) -> None:
        instruction = self.kernel.instructions[where]
        x, y, z = (int(self.special[f"%tid.{axis}"][lane]) for axis in "xyz")
        cta_x, cta_y, cta_z = (int(self.special[f"%ctaid.{axis}"][lane]) for axis in "xyz")
        site = Site(self.kernel.name, instruction.line, instruction.text, (cta_x, cta_y, cta_z), (x, y, z))
        raise PtxFault(kind, message, site, address)

    def now(self, m: Any) -> Any:
        """Time stamp of an access: the barrier's number above 32 bits, the warp's synchronisations below."""
        if self.ticks is None:
            return np.int64(self.epoch << 32)
        stamp = np.repeat(self.ticks + (self.epoch << 32), 32)
        return stamp if m is None else stamp[m]

    # Addresses.

    def _aligned(self, address: np.ndarray, nbytes: int, m: Any, where: int) -> np.ndarray:
        """Addresses per lane, those of idle lanes replaced by that of an active one."""
        address = np.broadcast_to(address, self.count)
        if m is not None:
            address = np.where(m, address, address[int(m.argmax())])
        if nbytes > 1 and int(np.bitwise_or.reduce(address)) & (nbytes - 1):
            wrong = (address & (nbytes - 1)) != 0
            lane = int((wrong if m is None else wrong & m).argmax())
            found = int(address[lane])
            self.fault("misaligned", f"0x{found:x} is not a multiple of {nbytes}", where, lane, found)
        return address

    def locate_global(
        self, address: Any, nbytes: int, m: Any, where: int, alignment: int = 0
    ) -> tuple[np.ndarray, Allocation | None]:
        """Arena offsets per lane, and the allocation where all lanes are in one; aligned to their size unless said."""
        address = self._aligned(address, alignment or nbytes, m, where)
        lowest = int(address.min())
        offsets = address - GLOBAL_BASE
        allocation = self.memory.find(lowest)
        if allocation is not None and int(address.max()) - GLOBAL_BASE + nbytes <= allocation.end:
            return offsets, allocation
        outside = ~self.memory.contains(offsets, nbytes)
        outside = outside if m is None else outside & m
        if outside.any():
            lane = int(outside.argmax())
            found = int(address[lane])
            self.fault(
                "out-of-bounds", f"{nbytes} bytes at 0x{found:x}, {self.memory.describe(found)}", where, lane, found
            )
        return offsets, None

    def locate_shared(self, address: Any, nbytes: int, m: Any, where: int) -> np.ndarray:
        """Offsets per lane into the shared memory of all CTAs of the batch."""
        address = self._aligned(address, nbytes, m, where)
        self._within(address, nbytes, self.shared_limit, "shared", m, where)
        return address + self.cta_base

    def _locate_local(self, address: Any, nbytes: int, m: Any, where: int) -> np.ndarray:
        address = self._aligned(address, nbytes, m, where)
        self._within(address, nbytes, self.launch.compiled.local_bytes, "local", m, where)
        return address + np.arange(self.count, dtype=np.int64) * self.local_stride

    def _within(self, address: np.ndarray, nbytes: int, limit: int, space: str, m: Any, where: int) -> None:
        if int(address.min()) < 0 or int(address.max()) + nbytes > limit:
            lane = int((((address < 0) | (address + nbytes > limit)) & self.active(m)).argmax())
            found = int(address[lane])
            self.fault(
                "out-of-bounds", f"{nbytes} bytes at {found} of {limit} bytes of {space} memory", where, lane, found
            )

    # Loads and stores.

    def load(self, space: str, address: Any, dtype: Any, count: int, m: Any, where: int, strong: bool) -> list[Any]:
        """`count` consecutive elements for every lane."""
        size = np.dtype(dtype).itemsize
        nbytes = size * count
        if space == "generic":
            return self._by_space(
                address, m, where, lambda one, at, mask: self.load(one, at, dtype, count, mask, where, strong)
            )
        if space == "global":
            uniform = np.ndim(address) == 0
            offsets, allocation = self.locate_global(address, nbytes, m, where)
            self._check_global("strong read" if strong else "read", offsets, allocation, nbytes, m, where)
            data = self.memory.arena
            if uniform:
                offsets = offsets[0]
        elif space == "shared":
            offsets = self.locate_shared(address, nbytes, m, where)
            self.check_shared("strong read" if strong else "read", offsets, nbytes, m, where)
            data = self.shared
        else:
            offsets, data = self._locate_local(address, nbytes, m, where), self.local
        view = data.view(dtype)
        index = offsets >> (size.bit_length() - 1)
        return [view.take(index + k if k else index) for k in range(count)]

    def store(self, space: str, address: Any, values: list[Any], dtype: Any, m: Any, where: int, strong: bool) -> None:
        """Consecutive elements of every active lane; of lanes that meet, the last one's stay."""
        size = np.dtype(dtype).itemsize
        nbytes = size * len(values)
        if space == "generic":
            wide = [self.spread(value) for value in values]
            self._by_space(
                address, m, where, lambda one, at, mask: self.store(one, at, wide, dtype, mask, where, strong) or []
            )
            return
        if space == "global":
            offsets, allocation = self.locate_global(address, nbytes, m, where)
            self._check_global("strong write" if strong else "write", offsets, allocation, nbytes, m, where)
            data = self.memory.arena
        elif space == "shared":
            offsets = self.locate_shared(address, nbytes, m, where)
            self.check_shared("strong write" if strong else "write", offsets, nbytes, m, where)
            data = self.shared
        else:
            offsets, data = self._locate_local(address, nbytes, m, where), self.local
        view = data.view(dtype)
        index = (offsets if m is None else offsets[m]) >> (size.bit_length() - 1)
        for k, value in enumerate(values):
            view[index + k] = value if m is None or np.ndim(value) == 0 else value[m]

    def _by_space(self, address: Any, m: Any, where: int, action: Any) -> list[Any]:
        """Run an access on a generic address once for each space that lanes point to."""
        address = self.spread(address)
        active = self.active(m)
        merged: list[Any] = []
        for space, low, high in (
            ("global", GLOBAL_BASE, 1 << 62),
            ("local", LOCAL_WINDOW, GLOBAL_BASE),
            ("shared", SHARED_WINDOW, LOCAL_WINDOW),
        ):  # fmt: skip
            inside = (address >= low) & (address < high) & active
            if not inside.any():
                continue
            found = action(space, address if space == "global" else address - low, None if inside.all() else inside)
            merged = [np.where(inside, new, old) for new, old in zip(found, merged)] if merged else found
            active = active & ~inside
        if active.any():
            lane = int(active.argmax())
            found = int(address[lane])
            self.fault("out-of-bounds", f"generic address 0x{found:x} is in no space", where, lane, found)
        return merged

    def read_bytes(self, address: Any, alignment: int, nbytes: int, m: np.ndarray, where: int) -> np.ndarray:
        """Check the read of `nbytes` per active lane of any length; gives the arena offsets of the active lanes."""
        offsets, allocation = self.locate_global(address, nbytes, m, where, alignment)
        self._check_global("read", offsets, allocation, nbytes, m, where)
        return offsets[m]

    def parameter(self, address: Any, offset: int, dtype: Any, where: int) -> Any:
        """A value of the parameter buffer; its address is the same in all lanes."""
        position = int(np.ravel(address)[0]) + offset
        raw = self.launch.parameters[position : position + np.dtype(dtype).itemsize]
        if len(raw) < np.dtype(dtype).itemsize:
            self.fault(
                "out-of-bounds", f"parameter byte {position} of {len(self.launch.parameters)}", where, 0, position
            )
        return np.frombuffer(raw, dtype)[0]

    # Checks.

    def _check_global(
        self, kind: str, offsets: np.ndarray, allocation: Allocation | None, nbytes: int, m: Any, where: int
    ) -> None:
        counters = self.counters
        lanes = self.count if m is None else int(np.count_nonzero(m))
        reads = kind.endswith("read")
        if reads:
            counters.global_load_bytes += lanes * nbytes
        else:
            counters.global_store_bytes += lanes * nbytes
        if self.launch.profile:
            requests, touched = sectors(offsets, m)
            if reads:
                counters.global_loads += requests
                counters.global_load_sectors += touched
            else:
                counters.global_stores += requests
                counters.global_store_sectors += touched
        if self.checks.uninitialised and (allocation is None or not allocation.written):
            self._check_state(self.memory.state, kind, offsets, nbytes, m, where, "global")
        if self.checks.global_races:
            if allocation is not None:
                self._check_race(allocation, kind, offsets, nbytes, m, where)
                return
            for one in self.memory.allocations:
                inside = (offsets >= one.start) & (offsets < one.end) & self.active(m)
                if inside.any():
                    self._check_race(one, kind, offsets, nbytes, inside, where)

    def _check_race(
        self, allocation: Allocation, kind: str, offsets: np.ndarray, nbytes: int, m: Any, where: int
    ) -> None:
        detector, shift = self.launch.races(allocation, self.cta_lanes)
        local = offsets - allocation.start
        self._report_race(detector, shift, kind, local, nbytes, m, where, "global", GLOBAL_BASE + allocation.start)

    def check_shared(
        self, kind: str, offsets: np.ndarray, nbytes: int, m: Any, where: int, landing: bool = False
    ) -> None:
        """State and races of an access to shared memory; `landing` is the end of an asynchronous copy."""
        if self.launch.profile and not landing:
            requests, conflicts = bank_conflicts(offsets - self.cta_base, nbytes, m)
            self.counters.shared_requests += requests
            self.counters.shared_bank_conflicts += conflicts
        if not landing and (self.checks.uninitialised or self.copies.busy):
            self._check_state(self.shared_state, kind, offsets, nbytes, m, where, "shared")
        if self.shared_races is not None:
            self._report_race(self.shared_races, self.shared_shift, kind, offsets, nbytes, m, where, "shared", 0)

    def _check_state(
        self, state: np.ndarray, kind: str, offsets: np.ndarray, nbytes: int, m: Any, where: int, space: str
    ) -> None:
        unit, steps = _units(nbytes)
        view, good = state.view(f"uint{8 * unit}"), _PATTERN[unit]
        index = (offsets if m is None else offsets[m]) >> (unit.bit_length() - 1)
        stores = kind.endswith("write")
        flying = space == "shared" and self.copies.busy
        for step in steps:
            if flying or not stores:
                found = view.take(index + step)
                fine = not (found & _FLIGHT[unit]).any() if stores else (found == good).all()
                if not fine:
                    self._report_state(state, kind, offsets, nbytes, m, where, space)
            if stores:
                view[index + step] = good

    def _report_state(
        self, state: np.ndarray, kind: str, offsets: np.ndarray, nbytes: int, m: Any, where: int, space: str
    ) -> None:
        bytes_of = state[offsets[:, None] + np.arange(nbytes)]
        for value, name, text in (
            (IN_FLIGHT, "async-copy", "this {} meets a cp.async that no cp.async.wait has completed"),
            (0, "uninitialised", "this {} meets bytes that nobody has written"),
        ):
            matters = value == IN_FLIGHT or (self.checks.uninitialised and not kind.endswith("write"))
            wrong = (bytes_of == value).any(axis=1) & self.active(m)
            if matters and wrong.any():
                lane = int(wrong.argmax())
                address = (
                    int(offsets[lane]) + GLOBAL_BASE if space == "global" else int(offsets[lane] - self.cta_base[lane])
                )
                self.fault(name, f"{text.format(kind)} ({space} memory, address 0x{address:x})", where, lane, address)

    def _report_race(
        self, detector: RaceDetector, shift: int, kind: str, offsets: np.ndarray, nbytes: int, m: Any, where: int,
        space: str, base: int,
    ) -> None:  # fmt: skip
        active, threads = (offsets, self.threads) if m is None else (offsets[m], self.threads[m])
        first = active >> shift
        now = self.now(m)
        for step in range((nbytes + (1 << shift) - 1) >> shift):
            position, other = detector.access(kind, first + step if step else first, threads, now)
            if position >= 0:
                lane = position if m is None else int(np.flatnonzero(m)[position])
                address = base + int(offsets[lane]) if space == "global" else int(offsets[lane] - self.cta_base[lane])
                reason = "the end of the launch" if space == "global" else "a barrier"
                here, there = _VERBS.get(kind, "updates"), _VERBS.get(other, "updates")
                message = (
                    f"this thread {here} {space} address 0x{address:x}, and another thread {there} it before {reason}"
                )
                self.fault("race", message, where, lane, address)

    # Atomics and matrices.

    def atomic(
        self, operation: str, space: str, address: Any, b: Any, c: Any, dtype: Any, m: Any, where: int, wants: bool
    ) -> Any:
        """Read, combine and write one element per lane; lanes that meet take turns. Returns the values before."""
        if space == "generic":
            wide, third = self.spread(b), c if c is None else self.spread(c)
            found = self._by_space(
                address, m, where,
                lambda one, at, mask: [self.atomic(operation, one, at, wide, third, dtype, mask, where, wants)],
            )  # fmt: skip
            return found[0]
        size = np.dtype(dtype).itemsize
        if space == "global":
            offsets, allocation = self.locate_global(address, size, m, where)
            self._check_global("atomic", offsets, allocation, size, m, where)
            view = self.memory.arena.view(dtype)
        else:
            offsets = self.locate_shared(address, size, m, where)
            self.check_shared("atomic", offsets, size, m, where)
            view = self.shared.view(dtype)
        lanes = np.flatnonzero(self.active(m))
        index = (offsets >> (size.bit_length() - 1))[lanes]
        values = self.spread(b)[lanes]
        if not wants and operation in _UFUNCS:
            _UFUNCS[operation].at(view, index, values)
            return None
        third = values if c is None else self.spread(c)[lanes]
        old = np.zeros(self.count, dtype)
        for lane, at, value, other in zip(lanes, index, values, third):
            before = old[lane] = view[at]
            if operation in _UFUNCS:
                view[at] = _UFUNCS[operation](before, value)
            elif operation == "exch":
                view[at] = value
            elif operation == "cas":
                view[at] = other if before == value else before
            elif operation == "inc":
                view[at] = 0 if before >= value else before + np.uint32(1)
            else:
                view[at] = value if before == 0 or before > value else before - np.uint32(1)
        return old

    def load_matrix(self, address: Any, count: int, transpose: bool, m: Any, where: int) -> list[np.ndarray]:
        """`ldmatrix`: `count` 8x8 matrices of 16-bit elements for each warp, one row per address."""
        self.warp.whole(m, where)
        giving = (np.arange(self.count) % 32 < 8 * count) & self.active(m)
        rows = self.locate_shared(address, 16, giving, where)
        self.check_shared("read", rows, 16, giving, where)
        halves = self.shared.view(np.uint16)
        starts = (rows >> 1).reshape(-1, 32)[:, : 8 * count]
        matrices = halves[starts[:, :, None] + np.arange(8)].reshape(-1, count, 8, 8)
        if transpose:
            matrices = matrices.swapaxes(2, 3)
        return [np.ascontiguousarray(matrices[:, k]).view(np.uint32).reshape(-1) for k in range(count)]

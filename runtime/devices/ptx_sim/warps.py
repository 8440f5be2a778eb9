"""What the lanes of a warp do together: shuffles, votes, reductions, and matrix products on fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import floats

if TYPE_CHECKING:
    from .machine import Machine

_LANES = np.arange(32)
_FULL = 0xFFFFFFFF
_REDUCE = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _bits(mask: np.ndarray) -> np.ndarray:
    """One 32-bit word per warp."""
    return np.packbits(mask.reshape(-1, 32), axis=1, bitorder="little").view(np.uint32).reshape(-1)


class Warps:
    """The warps of one batch of CTAs. `members` is the membermask that the instruction names."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def _participants(self, members: Any, m: Any, where: int) -> np.ndarray | None:
        """Lanes that take part, None for all; a named lane that is neither here nor has exited is a fault."""
        machine = self.machine
        if m is None and np.ndim(members) == 0 and int(members) == _FULL:
            return None
        active = machine.active(m)
        named = machine.spread(members).astype(np.uint32)
        itself = (named >> (machine.within & np.uint32(31))) & np.uint32(1)
        outside = active & (itself == 0)
        if outside.any():
            machine.fault("convergence", "this lane is not in its own membermask", where, int(outside.argmax()))
        absent = named & np.repeat(_bits(~machine.dead) & ~_bits(active), 32)
        late = active & (absent != 0)
        if late.any() and machine.checks.convergence:
            lane = int(late.argmax())
            text = f"lanes 0x{int(absent[lane]):08x} of the membermask have not arrived here"
            machine.fault("convergence", text, where, lane)
        return active

    def whole(self, m: Any, where: int) -> None:
        """Fault unless every warp that takes part does so with all lanes."""
        if m is None:
            return
        rows = m.reshape(-1, 32)
        partial = rows.any(axis=1) & ~rows.all(axis=1)
        if partial.any():
            lane = int(partial.argmax()) * 32
            self.machine.fault(
                "convergence", "an instruction for a whole warp with some of its lanes only", where, lane
            )

    def synchronize(self, members: Any, m: Any, where: int) -> None:
        """`bar.warp.sync`: orders the lanes of each warp that takes part."""
        self._participants(members, m, where)
        ticks = self.machine.ticks
        assert ticks is not None
        ticks += 1 if m is None else m.reshape(-1, 32).any(axis=1)

    def active(self, m: Any) -> np.ndarray:
        return np.repeat(_bits(self.machine.active(m)), 32)

    def shuffle(
        self, mode: str, a: Any, b: Any, c: Any, members: Any, m: Any, where: int, wants_predicate: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """`shfl.sync`: values of other lanes, and whether the source lane was in range."""
        machine = self.machine
        present = self._participants(members, m, where)
        values = machine.spread(a).reshape(-1, 32)
        step = machine.spread(b).reshape(-1, 32).astype(np.int64) & 31
        limits = machine.spread(c).reshape(-1, 32).astype(np.int64)
        clamp, segment = limits & 31, (limits >> 8) & 31
        top = (_LANES & segment) | (clamp & ~segment)
        source = {
            "up": _LANES - step, "down": _LANES + step, "bfly": _LANES ^ step,
            "idx": (_LANES & segment) | (step & ~segment),
        }[mode]  # fmt: skip
        inside = source >= top if mode == "up" else source <= top
        source = np.where(inside, source, _LANES)
        if present is not None and machine.checks.convergence:
            there = np.take_along_axis(present.reshape(-1, 32), source, 1).reshape(-1)
            # A lane that tests the predicate may be about to discard the value.
            missing = present & ~there
            if missing.any() and not wants_predicate:
                lane = int(missing.argmax())
                text = f"shfl reads lane {int(source.reshape(-1)[lane])}, which does not take part"
                machine.fault("convergence", text, where, lane)
        return np.take_along_axis(values, source, 1).reshape(-1), inside.reshape(-1)

    def vote(self, mode: str, predicate: Any, members: Any, m: Any, where: int) -> np.ndarray:
        """`vote.sync`: one answer for all lanes of a warp that take part."""
        present = self._participants(members, m, where)
        values = self.machine.spread(predicate)
        true = values if present is None else values & present
        false = ~values if present is None else ~values & present
        if mode == "ballot":
            return np.repeat(_bits(true), 32)
        any_true, any_false = (np.repeat(_bits(part) != 0, 32) for part in (true, false))
        return {"any": any_true, "all": ~any_false, "uni": ~(any_true & any_false)}[mode]

    def reduce(self, operation: str, value: Any, members: Any, m: Any, where: int) -> np.ndarray:
        """`redux.sync` on 32-bit integers."""
        present = self._participants(members, m, where)
        values = self.machine.spread(value)
        if present is not None:
            limits = np.iinfo(values.dtype)
            identity = {"min": limits.max, "max": limits.min, "and": -1 if limits.min else limits.max}.get(operation, 0)
            values = np.where(present, values, values.dtype.type(identity))
        return np.repeat(_REDUCE[operation].reduce(values.reshape(-1, 32), axis=1), 32)

    def multiply_matrix(
        self, depth: int, kind: str, a: list[Any], b: list[Any], c: list[Any], m: Any, where: int
    ) -> list[np.ndarray]:
        """`mma.sync.m16n8k{depth}`: D = A B + C, summed in float64 and rounded once (hardware's order is unspecified).

        Fragments are laid out as in PTX ISA, section 9.7.14.5: lane = 4 g + t holds rows g and g + 8 and columns
        around t.
        """
        self.whole(m, where)
        machine = self.machine
        warps = machine.count // 32
        g, t = _LANES >> 2, _LANES & 3
        rows = [machine.spread(part).reshape(warps, 32) for part in a]
        columns = [machine.spread(part).reshape(warps, 32) for part in b]
        left, right = np.zeros((warps, 16, depth), np.float32), np.zeros((warps, depth, 8), np.float32)
        if kind == "tf32":
            for k, part in enumerate(rows):
                left[:, g + 8 * (k & 1), t + 4 * (k >> 1)] = _tf32(part)
            for k, part in enumerate(columns):
                right[:, t + 4 * k, g] = _tf32(part)
        else:
            for half in (0, 1):
                for k, part in enumerate(rows):
                    left[:, g + 8 * (k & 1), 2 * t + half + 8 * (k >> 1)] = _half(part, half, kind)
                for k, part in enumerate(columns):
                    right[:, 2 * t + half + 8 * k, g] = _half(part, half, kind)
        packed = len(c) == 2
        total = np.zeros((warps, 16, 8), np.float32)
        for k in range(4):
            part = machine.spread(c[k >> 1] if packed else c[k]).reshape(warps, 32)
            total[:, g + 8 * (k >> 1), 2 * t + (k & 1)] = _half(part, k & 1, "f16") if packed else part
        result = np.matmul(left, right, dtype=np.float64) + total
        parts = [result[:, g + 8 * (k >> 1), 2 * t + (k & 1)].reshape(-1) for k in range(4)]
        if not packed:
            return [part.astype(np.float32) for part in parts]
        low_high = [part.astype(np.float16).view(np.uint16).astype(np.uint32) for part in parts]
        return [low_high[k] | (low_high[k + 1] << np.uint32(16)) for k in (0, 2)]


def _tf32(bits: np.ndarray) -> np.ndarray:
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def _half(bits: np.ndarray, half: int, kind: str) -> np.ndarray:
    """The lower or upper 16 bits as float32."""
    part = (bits >> np.uint32(16 * half)).astype(np.uint16)
    return part.view(np.float16).astype(np.float32) if kind == "f16" else floats.widen_bf16(part)

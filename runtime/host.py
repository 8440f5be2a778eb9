"""What the processor under us can do: vector width, instruction sets, cache sizes.

Facts come from the operating system, so that a warm start (cached objects only) never imports llvmlite; where it does
not tell, LLVM is asked.  Names of features are LLVM's (`avx512bf16`, `fma`), whatever the source.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

# /proc/cpuinfo spells a few features otherwise than LLVM does, once underscores are gone.
_LLVM_NAMES = {"sse41": "sse4.1", "sse42": "sse4.2", "pni": "sse3", "abm": "lzcnt", "cmplegacy": "cmp-legacy"}


class _Cache(NamedTuple):
    """A cache: its bytes, those of a way and of a line; 0 for what the system does not tell."""

    nbytes: int
    way: int
    line: int


_USUAL_CACHE = _Cache(32 << 10, 4 << 10, 64)
"""A first cache whose ways are as long as a page, so that its sets are found before addresses are translated."""

# What a processor of the last fifteen years has at least: used where the system does not tell (containers).
_SMALLEST_CACHES = {1: 32 << 10, 2: 256 << 10, 3: 2 << 20}


@dataclass(frozen=True, slots=True)
class HostFeatures:
    """The host processor. `l1`, `l2` (of one core) and `l3` (shared) are the bytes of its data caches, `l1_way` and
    `line` those of a way and of a line of the first."""

    name: str
    machine: str
    features: frozenset[str]
    l1: int
    l2: int
    l3: int
    l1_way: int
    line: int

    @property
    def vector_bits(self) -> int:
        """512 with AVX-512 (F, VL, BW, DQ), 256 with AVX2 and FMA, 128 otherwise."""
        if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= self.features:
            return 512
        return 256 if {"avx2", "fma"} <= self.features else 128

    @property
    def vector_registers(self) -> int:
        """32 with AVX-512 and on AArch64, 16 otherwise."""
        return 32 if self.vector_bits == 512 or self.machine in ("aarch64", "arm64") else 16

    @property
    def fma(self) -> bool:
        return "fma" in self.features or self.machine in ("aarch64", "arm64")

    @property
    def avx512bf16(self) -> bool:
        """Whether `vdpbf16ps` exists (bfloat16 products accumulated in float32)."""
        return "avx512bf16" in self.features

    @property
    def f16c(self) -> bool:
        """Whether float16 converts to and from float32 in one instruction."""
        return "f16c" in self.features


@cache
def host_features() -> HostFeatures:
    """The facts of this machine, read once."""
    name, features = _from_system()
    if not features:
        name, features = _from_llvm()
    found = _caches()
    sizes = _SMALLEST_CACHES | {level: c.nbytes for level, c in found.items()}
    first = found.get(1, _USUAL_CACHE)
    way, line = first.way or _USUAL_CACHE.way, first.line or _USUAL_CACHE.line
    return HostFeatures(name, platform.machine(), features, sizes[1], sizes[2], sizes[3], way, line)


def _from_system() -> tuple[str, frozenset[str]]:
    """Name and features of the first processor in /proc/cpuinfo; empty where there is no such file or no flags."""
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace") as lines:
            fields: dict[str, str] = {}
            for line in lines:
                if not line.strip():
                    break
                key, _, value = line.partition(":")
                fields[key.strip()] = value.strip()
    except OSError:
        return "", frozenset()
    flags = [flag.replace("_", "") for flag in fields.get("flags", "").split()]
    return fields.get("model name", "unknown"), frozenset(_LLVM_NAMES.get(flag, flag) for flag in flags)


def _from_llvm() -> tuple[str, frozenset[str]]:
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), frozenset(name for name, present in features.items() if present)


def _caches() -> dict[int, _Cache]:
    """The data caches by level, as far as the system tells."""
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    found: dict[int, _Cache] = {}
    for index in sorted(_CACHES.glob("index*")):
        try:
            if (index / "type").read_text().strip() == "Instruction":
                continue
            size = (index / "size").read_text().strip()
            nbytes = int(size.rstrip("KMG")) * units.get(size[-1:], 1)
            level = int((index / "level").read_text())
        except (OSError, ValueError):
            continue
        ways, line = (_number(index / name) for name in ("ways_of_associativity", "coherency_line_size"))
        found[level] = _Cache(nbytes, nbytes // ways if ways else 0, line)
    return found


def _number(path: Path) -> int:
    """The number in a file; 0 where the system does not tell."""
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0

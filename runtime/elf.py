"""Loading a relocatable x86-64 ELF object into this process, without LLVM.

In goes the object file that LLVM emitted (now, or in another process long ago: a cached object loads without importing
llvmlite at all) and the addresses of the symbols it leaves open; out comes an `ElfImage` with the addresses of the
symbols it defines.  The image is one anonymous mapping in three stretches of pages, so that no page is ever writable
and executable at once:

    code + call stubs (r-x) | constants + global offset table (r--) | data (rw-)

A call or a read reaches its target by a 32-bit displacement.  A symbol outside the image may lie farther away: a call
then goes through a stub (`jmp [rip]`), an address comes from the offset table.  Unwind tables are left out: kernels do
not throw, and nothing registers them.  Format: System V ABI, AMD64 supplement, chapter 4.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from ..ir.diagnostics import AllocationError, LoweringError

_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_ALLOC, _WRITE, _EXECUTE = 0x2, 0x1, 0x4
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_R_64, _R_PC32, _R_PLT32, _R_GOTPCREL, _R_PC64, _R_GOTPCRELX, _R_REX_GOTPCRELX = 1, 2, 4, 9, 24, 41, 42
_STUB = b"\xff\x25\x00\x00\x00\x00"  # jmp qword ptr [rip + 0]; the address follows

Resolver = Callable[[str], "int | None"]


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Relocation(NamedTuple):
    section: int
    place: int
    kind: int
    symbol: int
    addend: int


class ElfImage:
    """An object file in memory, ready to run; unmapped by `close()` or when the image dies.

    `resolve(name)` gives the address of a symbol that the object leaves open, or None.
    Raises LoweringError for a file this loader does not understand, an open symbol, or a system that denies
    executable memory; the message names `name`.
    """

    def __init__(self, data: bytes, resolve: Resolver, *, name: str) -> None:
        self._name = name
        self._symbols: dict[str, int] = {}
        self._map: mmap.mmap | None = None
        try:
            self._load(data, resolve)
        except (struct.error, IndexError, ValueError, OverflowError) as fault:
            raise LoweringError(f"object of '{name}' is damaged: {fault}") from fault

    def address(self, symbol: str) -> int:
        """The address of a symbol that the object defines; KeyError otherwise."""
        return self._symbols[symbol]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(self._symbols)

    def close(self) -> None:
        """Unmap the code. The caller sees to it that nothing runs in it or will."""
        self._symbols.clear()
        if self._map is not None:
            self._map.close()
            self._map = None

    def _load(self, data: bytes, resolve: Resolver) -> None:
        if data[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<HH", data, 16) != (1, 62):
            raise LoweringError(f"object of '{self._name}' is not a relocatable x86-64 ELF file")
        sections = _sections(data)
        placed, stretches = _place(sections)
        relocations = _relocations(data, sections, placed)
        # Room for a stub and an offset-table slot for every relocation: a few bytes too many, no second pass.
        stubs = _align(stretches[0], 16)
        code_size = _pages(stubs + 16 * len(relocations))
        table = _align(stretches[1], 8)
        constants_size = _pages(table + 8 * len(relocations))
        origins = (0, code_size, code_size + constants_size)
        size = origins[2] + _pages(stretches[2])
        try:
            flags, prot = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
            memory = mmap.mmap(-1, size, flags=flags, prot=prot)
        except (OSError, OverflowError):
            raise AllocationError(f"no memory for the {size} bytes of '{self._name}', code and constants") from None
        self._map = memory
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        starts = {index: origins[stretch] + offset for index, (stretch, offset) in placed.items()}
        for index, start in starts.items():
            section = sections[index]
            if section.kind != _NOBITS:
                memory[start : start + section.size] = data[section.offset : section.offset + section.size]
        values = self._read_symbols(data, sections, {index: base + start for index, start in starts.items()}, resolve)
        patch = _Patcher(memory, base, stubs, origins[1] + table)
        for entry in relocations:
            if not patch.apply(entry, starts[entry.section], values[entry.symbol]):
                raise LoweringError(f"object of '{self._name}' has a relocation of unknown type {entry.kind}")
        self._protect(base, code_size, mmap.PROT_READ | mmap.PROT_EXEC)
        self._protect(base + code_size, constants_size, mmap.PROT_READ)

    def _read_symbols(
        self, data: bytes, sections: list[_Section], addresses: dict[int, int], resolve: Resolver
    ) -> list[int]:
        """Addresses by index in the symbol table; defined global symbols also go into `_symbols`."""
        values: list[int] = []
        for table in sections:
            if table.kind != _SYMTAB:
                continue
            strings = sections[table.link].offset
            for at in range(table.offset, table.offset + table.size, 24):
                name_at, info, _, section, value, _ = struct.unpack_from("<IBBHQQ", data, at)
                end = data.index(b"\0", strings + name_at)
                name = data[strings + name_at : end].decode()
                if section in addresses:
                    value += addresses[section]
                    if info >> 4:  # bound globally: an entry point
                        self._symbols[name] = value
                elif section == _UNDEFINED and name:
                    value = self._resolve(name, resolve)
                elif section == _COMMON:
                    raise LoweringError(f"object of '{self._name}' has a common symbol '{name}'; define it instead")
                values.append(value)
        return values

    def _resolve(self, name: str, resolve: Resolver) -> int:
        address = resolve(name)
        if address is None:
            raise LoweringError(f"object of '{self._name}' needs the symbol '{name}', which nothing here defines")
        return address

    def _protect(self, address: int, size: int, protection: int) -> None:
        if size and _mprotect()(address, size, protection):
            raise LoweringError(
                f"cannot make the code of '{self._name}' executable (errno {ctypes.get_errno()}):"
                " this system denies executable memory"
            )


class _Patcher:
    """Applies relocations to an image; makes stubs and offset-table slots as they are first needed."""

    def __init__(self, memory: mmap.mmap, base: int, stubs: int, table: int) -> None:
        self._memory = memory
        self._base = base
        self._next_stub = stubs
        self._next_slot = table
        self._stubs: dict[int, int] = {}
        self._slots: dict[int, int] = {}

    def apply(self, entry: _Relocation, section_start: int, value: int) -> bool:
        """Patch one place; False for a type that is not known."""
        place = section_start + entry.place
        here = self._base + place
        if entry.kind == _R_64:
            struct.pack_into("<Q", self._memory, place, (value + entry.addend) & (2**64 - 1))
        elif entry.kind == _R_PC64:
            struct.pack_into("<q", self._memory, place, value + entry.addend - here)
        elif entry.kind in (_R_GOTPCREL, _R_GOTPCRELX, _R_REX_GOTPCRELX):
            struct.pack_into("<i", self._memory, place, self._slot(value) + entry.addend - here)
        elif entry.kind in (_R_PC32, _R_PLT32):
            distance = value + entry.addend - here
            if entry.kind == _R_PLT32 and not -(2**31) <= distance < 2**31:
                distance = self._stub(value) + entry.addend - here
            struct.pack_into("<i", self._memory, place, distance)
        else:
            return False
        return True

    def _stub(self, target: int) -> int:
        if target not in self._stubs:
            at = self._next_stub
            self._memory[at : at + 14] = _STUB + struct.pack("<Q", target)
            self._stubs[target] = self._base + at
            self._next_stub += 16
        return self._stubs[target]

    def _slot(self, target: int) -> int:
        if target not in self._slots:
            struct.pack_into("<Q", self._memory, self._next_slot, target)
            self._slots[target] = self._base + self._next_slot
            self._next_slot += 8
        return self._slots[target]


def _sections(data: bytes) -> list[_Section]:
    (table,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", data, table + index * size)) for index in range(count)]


def _place(sections: list[_Section]) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """Give every section that lives in memory a stretch (0 code, 1 constants, 2 data) and an offset in it."""
    placed: dict[int, tuple[int, int]] = {}
    ends = [0, 0, 0]
    for index, section in enumerate(sections):
        # Other kinds that live in memory are unwind tables (LLVM gives .eh_frame a kind of its own) and notes.
        if not section.flags & _ALLOC or section.kind not in (_PROGBITS, _NOBITS):
            continue
        stretch = 0 if section.flags & _EXECUTE else 2 if section.flags & _WRITE else 1
        start = _align(ends[stretch], max(section.alignment, 1))
        placed[index] = stretch, start
        ends[stretch] = start + section.size
    return placed, ends


def _relocations(data: bytes, sections: list[_Section], placed: dict[int, tuple[int, int]]) -> list[_Relocation]:
    """All relocations of the sections that live in memory."""
    return [
        _Relocation(table.info, place, info & 0xFFFFFFFF, info >> 32, addend)
        for table in sections
        if table.kind == _RELA and table.info in placed
        for place, info, addend in struct.iter_unpack("<QQq", data[table.offset : table.offset + table.size])
    ]


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _pages(size: int) -> int:
    return _align(size, mmap.PAGESIZE)


@cache
def _mprotect() -> Callable[[int, int, int], int]:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    function.restype = ctypes.c_int
    return function

"""Emission of `memref`: buffers are addresses with extents and strides known to the emitter, views are arithmetic."""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import LoweringError
from ...ir.dialects import memref
from ...ir.target import ALIGNMENT
from ...ir.types import DYNAMIC, MemRefType, element_bytes
from ...ir.values import Value
from ..emission import chosen_extent
from .failure import OUT_OF_MEMORY
from .function import Buffer, Function, emits
from .types import llvm_type

MOST_BYTES = 1 << 62
"""What stands for any larger number of bytes; there is no such memory."""
MOST_STACK_BYTES = 4 << 20
"""What the stack variables of one function may take together; threads have some 8 MiB in all."""

ATOMIC = {
    "addf": "fadd", "addi": "add", "assign": "xchg", "maxs": "max", "maxu": "umax", "mins": "min", "minu": "umin",
    "ori": "or", "andi": "and",
}  # fmt: skip


def entries(f: Function, values: Any) -> list[int | str]:
    """Numbers as they are, values by name."""
    return [f.index(v) if isinstance(v, Value) else v for v in values]


@emits("memref.load")
def _load(f: Function, op: Any) -> None:
    type = op.result.type
    address = f.address(op.memref, entries(f, op.indices))
    f.bind(op.result, f.value(f"load {llvm_type(type)}, ptr {address}, align {element_bytes(type)}"))


@emits("memref.store")
def _store(f: Function, op: Any) -> None:
    address = f.address(op.memref, entries(f, op.indices))
    f.line(f"store {f.typed(op.value)}, ptr {address}, align {element_bytes(op.value.type)}{nontemporal(op)}")


def nontemporal(op: Any) -> str:
    """The metadata of a store that bypasses the caches."""
    return ", !nontemporal !0" if op.nontemporal else ""


@emits("memref.alloca")
def _alloca(f: Function, op: Any) -> None:
    type = op.result.type
    if not type.is_static:
        raise LoweringError(f"memref.alloca of {type}: stack memory has a fixed size", op.location)
    f.stack_bytes += type.num_elements * element_bytes(type.element)
    if f.stack_bytes > MOST_STACK_BYTES:
        message = f"memref.alloca of {type}: a function has {MOST_STACK_BYTES} bytes of stack; use memref.alloc"
        raise LoweringError(message, op.location)
    name = f"%{f.fresh('a')}"
    text = f"[{max(1, type.num_elements)} x {llvm_type(type.element)}]"
    f.entry.append(f"  {name} = alloca {text}, align {ALIGNMENT}")
    f.buffers[op.result] = f.buffer_of(_plain(type), name, ())


def _plain(type: MemRefType) -> MemRefType:
    return MemRefType(type.shape, type.element)


@emits("memref.alloc")
def _alloc(f: Function, op: Any) -> None:
    type = op.result.type
    sizes = entries(f, op.sizes)
    rest = iter(sizes)
    count: int | str = element_bytes(type.element)
    for extent in type.shape:
        count = _checked_product(f, count, next(rest) if extent == DYNAMIC else extent)
    # aligned_alloc wants a multiple of the alignment, and a size of 0 may give no address.
    if isinstance(count, int):
        rounded: int | str = min(count + ALIGNMENT, MOST_BYTES) // ALIGNMENT * ALIGNMENT
    else:
        rounded = f.value(f"and i64 {f.add(count, ALIGNMENT)}, {-ALIGNMENT}")
    pointer = f.call("aligned_alloc", "ptr", [("i64", str(ALIGNMENT)), ("i64", str(rounded))])
    f.require(f.value(f"icmp ne ptr {pointer}, null"), str(OUT_OF_MEMORY))
    f.failures.live.append(pointer)
    f.buffers[op.result] = f.buffer_of(_plain(type), pointer, sizes)


def _checked_product(f: Function, a: int | str, b: int | str) -> int | str:
    """A number of bytes, or one beyond all memory where the product is (or a factor was negative)."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if a == 1 or b == 1:
        product = b if a == 1 else a
    else:
        f.declare("llvm.umul.with.overflow.i64", "{ i64, i1 }", ["i64", "i64"])
        pair = f.value(f"call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 {_clamped(a)}, i64 {_clamped(b)})")
        overflows = f.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
        product = f.value(f"select i1 {overflows}, i64 -1, i64 {f.value(f'extractvalue {{ i64, i1 }} {pair}, 0')}")
    return f.call("llvm.umin.i64", "i64", [("i64", str(product)), ("i64", str(MOST_BYTES))])


def _clamped(factor: int | str) -> int | str:
    return min(factor, MOST_BYTES) if isinstance(factor, int) else factor


@emits("memref.dealloc")
def _dealloc(f: Function, op: Any) -> None:
    pointer = f.buffers[op.memref].pointer
    f.call_void("free", [("ptr", pointer)])
    if pointer in f.failures.live:
        f.failures.live.remove(pointer)


@emits("memref.dim")
def _dim(f: Function, op: Any) -> None:
    f.bind(op.result, chosen_extent(op, f.buffers[op.source].sizes, f.index(op.index)))


@emits("memref.subview")
def _subview(f: Function, op: Any) -> None:
    source = f.buffers[op.source]
    pointer = f.element_address(source, op.source.type.element, entries(f, op.offsets))
    sizes = entries(f, op.sizes)
    strides = [f.multiply(a, b) for a, b in zip(source.strides, entries(f, op.strides), strict=True)]
    kept = [i for i in range(len(sizes)) if i not in op.dropped]
    f.buffers[op.result] = Buffer(pointer, tuple(sizes[i] for i in kept), tuple(strides[i] for i in kept))


@emits("memref.collapse_shape")
def _collapse(f: Function, op: memref.CollapseShape) -> None:
    source = f.buffers[op.source]
    sizes: list[int | str] = []
    strides: list[int | str] = []
    for group in op.reassociation:
        size: int | str = 1
        for axis in group:
            size = f.multiply(size, source.sizes[axis])
        sizes.append(size)
        strides.append(source.strides[group[-1]])
    f.buffers[op.result] = Buffer(source.pointer, tuple(sizes), tuple(strides))


@emits("memref.expand_shape")
def _expand(f: Function, op: memref.ExpandShape) -> None:
    source = f.buffers[op.source]
    shape = entries(f, op.output_shape)
    strides: list[int | str] = [0] * len(shape)
    for group, outer in zip(op.reassociation, source.strides, strict=True):
        stride = outer
        for axis in reversed(group):
            strides[axis] = stride
            stride = f.multiply(stride, shape[axis])
    f.buffers[op.result] = Buffer(source.pointer, tuple(shape), tuple(strides))


@emits("memref.reinterpret_cast")
def _reinterpret(f: Function, op: Any) -> None:
    source = f.buffers[op.source]
    flat = Buffer(source.pointer, (DYNAMIC,), (1,))
    pointer = f.element_address(flat, op.source.type.element, entries(f, op.offsets))
    f.buffers[op.result] = Buffer(pointer, tuple(entries(f, op.sizes)), tuple(entries(f, op.strides)))


@emits("memref.cast")
def _cast(f: Function, op: Any) -> None:
    source, type = f.buffers[op.source], op.result.type
    sizes = tuple(s if d == DYNAMIC else d for s, d in zip(source.sizes, type.shape, strict=True))
    f.buffers[op.result] = Buffer(source.pointer, sizes, source.strides)


@emits("memref.copy")
def _copy(f: Function, op: Any) -> None:
    source, target = f.buffers[op.source], f.buffers[op.target]
    element = op.source.type.element
    if op.source.type.layout is not None or op.target.type.layout is not None:
        raise LoweringError("memref.copy copies contiguous buffers; copy views by a kernel", op.location)
    count: int | str = element_bytes(element)
    for size in source.sizes:
        count = f.multiply(count, size)
    arguments = [("ptr", target.pointer), ("ptr", source.pointer), ("i64", str(count)), ("i1", "false")]
    f.call_void("llvm.memmove.p0.p0.i64", arguments)


@emits("memref.prefetch")
def _prefetch(f: Function, op: Any) -> None:
    address = f.address(op.memref, entries(f, op.indices))
    numbers = (int(op.isWrite), op.localityHint, int(op.isDataCache))
    f.call_void("llvm.prefetch.p0", [("ptr", address), *(("i32", str(n)) for n in numbers)])


@emits("memref.atomic_rmw")
def _atomic(f: Function, op: Any) -> None:
    instruction = ATOMIC.get(op.kind)
    if instruction is None:
        raise LoweringError(f"the llvm target has no atomic '{op.kind}'", op.location)
    address = f.address(op.memref, entries(f, op.indices))
    f.bind(op.result, f.value(f"atomicrmw {instruction} ptr {address}, {f.typed(op.value)} seq_cst"))
